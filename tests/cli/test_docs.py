"""The pages for readers are true: their files run, their commands print what the pages show.

A fenced `python` or `toml` block whose first line is `# name.py` or `# name.toml` is a file, and so
is a `json` block below a line that ends with `name.json`, quoted, and a colon. In a `console` block
a line that starts with `$ ` is a command, run where the page's files lie; what follows is its
output, in which three dots stand for what is left out, be it lines or a part of one. A command that
ends with another status than 0 is followed by `$ echo $?`. Blocks of any other language are only
shown.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from routeproof.checkers import cli
from routeproof.checkers.registry import function_names
from routeproof.models.ort.gqa.split_work import SPLIT_WORK
from routeproof.spec.errors import RouteproofError

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks/README.md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
NAMED = re.compile(r"# ([\w-]+\.(?:py|toml))$")
NAMED_JSON = re.compile(r"`([\w-]+\.json)`:\n\n```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each fenced block in the language."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        if found[1] == language:
            yield text.count("\n", 0, found.start()) + 1, found[2]


def files(page: Path) -> dict[str, str]:
    """Return the files that a page shows, by name."""
    shown = [text for kind in ("python", "toml") for _, text in blocks(page, kind)]
    names = [NAMED.match(text.partition("\n")[0]) for text in shown]
    found = {name[1]: text for name, text in zip(names, shown, strict=True) if name}
    return found | dict(NAMED_JSON.findall(page.read_text(encoding="utf-8")))


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown.rstrip("\n")


def fits(shown: str, printed: str) -> bool:
    """Whether the whole output is what is shown, three dots standing for anything."""
    lines = (r"(?:.*\n)*?" if one.strip() == "..." else _line(one) for one in shown.splitlines())
    output = "".join(f"{line}\n" for line in printed.splitlines())
    return re.fullmatch("".join(lines), output) is not None


def _line(line: str) -> str:
    return ".*".join(map(re.escape, line.rstrip().split("..."))) + r"\n"


def run(command: str, folder: Path) -> tuple[int, str]:
    """Return the status of a shell command and everything it prints, without trailing blanks."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],  # noqa: S607 - the shell of whoever tests
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    return done.returncode, "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())


CONSOLES = [
    pytest.param(page, block, id=f"{page.relative_to(ROOT)}:{line}")
    for page in PAGES
    for line, block in blocks(page, "console")
]
WITH_FILES = [page for page in PAGES if files(page)]


@pytest.mark.parametrize(("page", "block"), CONSOLES)
def test_console_block_is_true(page: Path, block: str, tmp_path: Path):
    """Every command prints what the page shows, and ends with 0 or with the status it shows."""
    for name, text in files(page).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    status, told = 0, True
    for command, shown in commands(block):
        if command == "echo $?":
            assert shown == str(status), f"$? is {status}"
            told = True
            continue
        assert told or status == 0, f"ended with {status}, which the page does not show"
        status, printed = run(command, tmp_path)
        told = False
        assert fits(shown, printed), f"$ {command}\n{printed}\n-- but shown:\n{shown}"
    assert told or status == 0, f"ended with {status}, which the page does not show"


@pytest.mark.parametrize("page", WITH_FILES, ids=lambda page: page.name)
def test_every_file_shown_is_used(page: Path):
    """A file that no command of its page names would not be tested."""
    used = "\n".join(block for _, block in blocks(page, "console"))
    assert [name for name in files(page) if name not in used] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    """A link to a file of the repository names one that is there."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    inside = [one for one in targets if "://" not in one]
    assert [one for one in inside if not (page.parent / one).exists()] == []


def test_index_links_every_page():
    """docs/index.md leads to every page below docs/."""
    index = ROOT / "docs/index.md"
    linked = {
        (index.parent / one).resolve() for one in LINK.findall(index.read_text(encoding="utf-8"))
    }
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page != index}
    assert {str(page.relative_to(ROOT)) for page in pages - linked} == set()


def _codes(root: type[RouteproofError]) -> set[str]:
    return {root.code}.union(*(_codes(child) for child in root.__subclasses__()))


def test_every_error_code_has_its_heading():
    """docs/errors.md says of every code what causes it and what to do, and invents none."""
    import routeproof.checkers.pool
    import routeproof.checkers.solver  # noqa: F401 - both define errors

    text = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (RP\d{3})", text, re.MULTILINE)) == _codes(RouteproofError)


def _options(command: click.Command) -> set[str]:
    found = [one.opts for one in command.params if isinstance(one, click.Option)]
    return {max(names, key=len) for names in found}


def test_reference_names_every_option():
    """docs/reference.md has a section per command, and in it every option of that command."""
    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    section = re.compile(r"^### `routeproof (\w+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
    sections = dict(section.findall(text))
    assert set(sections) == set(cli.commands.commands)
    for name, command in cli.commands.commands.items():
        assert [one for one in _options(command) if f"`{one}" not in sections[name]] == [], name


def test_reference_names_every_function():
    """docs/reference.md names every function that `routeproof eval` answers to."""
    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    assert [name for name in function_names() if f"`{name}`" not in text] == []


def test_generated_tables_are_as_their_command_writes_them():
    """Bounds of every model, and the split work of every device."""
    command = [sys.executable, str(ROOT / "benchmarks/pages.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0


def test_table_of_the_closed_form_is_that_of_the_model():
    """docs/closed-form.md says what the model's table says."""
    page = (ROOT / "docs/closed-form.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|[^|]+\| ([\d,]+) \| (\d+\.\d\d) \|$", page, re.MULTILINE)
    assert len(rows) >= 27
    for device, work, quotient in rows:
        split_work = SPLIT_WORK[int(device)].split_work
        assert (work, quotient) == (f"{split_work:,}", f"{split_work / int(device):.2f}")
    most = max(one.split_work / device for device, one in SPLIT_WORK.items())
    assert f"The largest c(SM) up to 256 multiprocessors is {most:.2f}," in page


@pytest.mark.parametrize(
    ("shown", "printed", "wanted"),
    [
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nd", True),
        ("a\n...", "a\nb\nc", True),
        ("took ... s", "took 0.12 s", True),
        ("took ... s", "took\n0.12 s", False),
        ("a\nd", "a\nb\nd", False),
        ("a", "a\nb", False),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_what_three_dots_stand_for(shown: str, printed: str, *, wanted: bool):
    """Alone on a line: any lines, also none; inside a line: any text of that line."""
    assert fits(shown, printed) is wanted
