"""The mapping of folders to packages is complete, and the links for static tools agree with it."""

from pathlib import Path
from typing import Any


def package_names(root: Path, folders: dict[str, str]) -> list[str]:
    """Return the dotted name of every package below the mapped folders."""
    return sorted(
        ".".join([package, *init.parent.relative_to(root / folder).parts])
        for package, folder in folders.items()
        for init in (root / folder).rglob("__init__.py")  # rglob does not follow links
    )


def test_every_package_is_listed(
    root: Path, folders: dict[str, str], setuptools_table: dict[str, Any]
):
    """The packages listed, in order, are those on disk: an unlisted one would miss the wheel."""
    assert setuptools_table["packages"] == package_names(root, folders)


def test_every_module_is_in_a_package(root: Path, folders: dict[str, str]):
    """No module lies in a folder without __init__.py, which would miss the wheel."""
    modules = [path for folder in folders.values() for path in (root / folder).rglob("*.py")]
    assert [path for path in modules if not (path.parent / "__init__.py").is_file()] == []


def test_links_agree_with_the_mapping(root: Path, folders: dict[str, str]):
    """Each mapped folder has one relative link, from where its installed name says."""
    links = {path for path in (root / "src/routeproof").iterdir() if path.is_symlink()}
    targets = {f"routeproof.{link.name}": link.resolve() for link in links}
    mapped = {name: root / folder for name, folder in folders.items() if name != "routeproof"}
    assert targets == {name: folder.resolve() for name, folder in mapped.items()}
    assert [link for link in links if link.readlink().is_absolute()] == []


def test_no_package_of_our_name_at_the_top(root: Path):
    """No bare routeproof/ at the top, which would hide the installed package."""
    assert not (root / "routeproof").exists()
