"""The wheel holds what git holds of the package folders, no more and no less."""

import email
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def files(root: Path) -> list[Path]:
    """Return what git tracks or would add, as it lies in the working tree, relative to the top."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout
    paths = {Path(name) for name in listed.split("\0") if name}
    return sorted(path for path in paths if (root / path).is_file() or (root / path).is_symlink())


@pytest.fixture(scope="module")
def copy(root: Path, files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout, links kept, that a build may write to."""
    top = tmp_path_factory.mktemp("copy")
    for path in files:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, top / path, follow_symlinks=False)
    return top


def build(copy: Path, out: Path, *options: str) -> Path:
    """Build with the tools installed here and return the wheel."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *options]
    subprocess.run([*command, str(copy)], cwd=out, check=True)  # pytest shows what it prints
    (wheel,) = out.glob("*.whl")
    return wheel


def contents(wheel: Path) -> dict[str, bytes]:
    """Return every file of the wheel, by its name there."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def from_sdist(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the wheel built from the sdist built from the checkout, which is what is published."""
    return contents(build(copy, tmp_path_factory.mktemp("sdist")))


@pytest.fixture(scope="module")
def metadata(from_sdist: dict[str, bytes]) -> Message:
    """Return the wheel's metadata."""
    (name,) = (name for name in from_sdist if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(from_sdist[name])


def test_wheel_is_what_git_holds(
    from_sdist: dict[str, bytes], copy: Path, files: list[Path], folders: dict[str, str]
):
    """Each file of the package folders is in the wheel under its installed name, unchanged."""
    expected = {
        Path(*package.split("."), path.relative_to(folder)).as_posix(): (copy / path).read_bytes()
        for package, folder in folders.items()
        for path in files
        if path.is_relative_to(folder) and not (copy / path).is_symlink()
    }
    found = {name: data for name, data in from_sdist.items() if name.startswith("routeproof/")}
    assert set(found) == set(expected)  # a missing one: list it in packages or package-data
    assert found == expected
    assert "routeproof/py.typed" in found


def test_nothing_generic_at_the_top(from_sdist: dict[str, bytes], metadata: Message):
    """Only routeproof and its metadata reach anyone's site-packages."""
    tops = {name.split("/")[0] for name in from_sdist}
    assert tops == {"routeproof", f"routeproof-{metadata['Version']}.dist-info"}


def test_sdist_is_whole(
    from_sdist: dict[str, bytes], copy: Path, tmp_path_factory: pytest.TempPathFactory
):
    """The wheel built straight from the checkout is the one built from the sdist."""
    assert contents(build(copy, tmp_path_factory.mktemp("wheel"), "--wheel")) == from_sdist


def test_metadata(metadata: Message):
    """The wheel names its licence and Python, and never has a solver compiled on aarch64."""
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    solver = [line for line in metadata.get_all("Requires-Dist", []) if line.startswith("z3-")]
    assert solver == [
        'z3-solver==4.15.4.0; platform_machine == "aarch64"',
        'z3-solver>=4.15.4; platform_machine != "aarch64"',
    ]
