"""Finding things by name: the closest match, the file and line, and no silent duplicates."""

import pytest

from routeproof.checkers.registry import (
    build,
    function_names,
    load_function,
    load_ladders,
    load_obligations,
    pick,
    select_obligations,
)
from routeproof.models.catalogue import LADDERS
from routeproof.spec.errors import ModelError, RouteproofError, UnknownNameError
from routeproof.spec.terms import symbol_int

HEAD = """\
from routeproof.spec.function import Source
from routeproof.spec.obligation import Claim, obligation
from routeproof.spec.terms import TRUE, symbol_int

SOURCE = Source("a.cc", "f", "r1")
"""
ONE = """
@obligation("own.one", "holds", source=SOURCE)
def one():
    return Claim(TRUE)
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a file of obligations and gives its path."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="own.py"):
        path = tmp_path / name
        path.write_text(HEAD + text)
        return path

    return write


def message(path):
    """Return the one line that a malformed file gives."""
    with pytest.raises(RouteproofError) as error:
        load_obligations([path])
    return str(error.value)


def test_a_file_gives_its_obligations_in_order(write):
    """Single ones and tuples of them, wherever they are kept."""
    more = ONE.replace("one", "two") + "both = (two,)\nother = 3\n" + ONE
    known = load_obligations([write(more)])
    assert list(known) == ["own.two", "own.one"]
    assert known["own.one"].location.endswith("own.py:13")


def test_two_files_are_one_book(write):
    """Obligations of several files, in the order of the files."""
    paths = [write(ONE), write(ONE.replace("one", "two"), "more.py")]
    assert list(load_obligations(paths)) == ["own.one", "own.two"]


def test_files_of_one_name_stay_apart(write, tmp_path):
    """Each is a module of its own."""
    (tmp_path / "sub").mkdir()
    paths = [write(ONE), write(ONE.replace("one", "two"), "sub/own.py")]
    assert list(load_obligations(paths)) == ["own.one", "own.two"]


def test_a_duplicate_id_is_refused(write):
    """With both places, in one file or across two."""
    text = ONE + ONE.replace("def one", "def other")
    with pytest.raises(ModelError, match=r"own\.py:1\d: id 'own\.one' is taken by .*own\.py:7"):
        load_obligations([write(text)])
    with pytest.raises(ModelError, match=r"more\.py:7: id 'own\.one' is taken by .*own\.py:7"):
        load_obligations([write(ONE), write(ONE, "more.py")])


def test_a_syntax_error_names_its_line(write):
    """As the compiler sees it."""
    assert "own.py:7: SyntaxError" in message(write("\ndef broken(:\n"))


def test_an_exception_names_the_line_of_the_file(write, tmp_path):
    """Also where it was raised further down, also by a relative path."""
    path = write("\ndef boom():\n    return 1 // 0\n\nboom()\n")
    assert "own.py:8: ZeroDivisionError" in message(path)
    assert message(path.relative_to(tmp_path)).startswith("own.py:8: ZeroDivisionError")


def test_a_malformed_model_names_the_line_of_the_file(write):
    """The error of the language, at the user's own line."""
    assert "own.py:7: expected an int or Int term" in message(
        write('\nx = symbol_int("x") + True\n')
    )
    assert "own.py:7: " in message(write('\nif symbol_int("x") == 3: pass\n'))


def test_an_error_in_an_imported_module_names_the_import(write, monkeypatch, tmp_path):
    """The line of the user's file from which it came."""
    (tmp_path / "broken_helper.py").write_text("\n" * 9 + "def broken(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "own.py:6: SyntaxError" in message(write("import broken_helper\n"))


@pytest.mark.parametrize("status", ["0", "1", "'stop'"])
def test_a_file_that_exits_is_an_error(write, status):
    """Or the command would end as if all were well."""
    assert "own.py:7: SystemExit" in message(write(f"import sys\nsys.exit({status})\n"))


def test_a_file_that_prints_leaves_standard_output_alone(write, capsys):
    """A report on standard output stays a report."""
    load_obligations([write(ONE + "print('hello')\n")])
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_a_file_that_is_not_there_or_is_empty(write, tmp_path):
    """Neither passes as a book without fault."""
    assert "nowhere.py: no such file" in message(tmp_path / "nowhere.py")
    assert "not a file" in message(tmp_path)
    assert "no obligation in" in message(write(""))


@pytest.mark.parametrize("mark", ["", '@pytest.mark.parametrize("size", [1])\n'])
def test_parameters_that_only_pytest_gives_are_told(write, mark):
    """In one line, with what to do."""
    text = ONE.replace("@", "import pytest\n@").replace("def one()", f"{mark}def one(size)")
    (one,) = load_obligations([write(text)]).values()
    told = r"^own\.py:8: own\.one needs size: run pytest, .* each= \[RP101\]$"
    with pytest.raises(ModelError, match=told):
        build(one)


def test_each_value_is_an_obligation_of_the_file(write):
    """With the value in its id, and its statement."""
    text = ONE.replace("own.one", "own.{n}").replace("SOURCE)", 'SOURCE, each={"n": (1, 2)})')
    text = text.replace("one()", "one(n)").replace("TRUE", "symbol_int('x') < n")
    known = load_obligations([write(text)])
    x = symbol_int("x")
    assert {name: build(one).goal for name, one in known.items()} == {
        "own.1": x < 1,
        "own.2": x < 2,
    }


def test_records_of_a_file_resolve_their_annotations(write):
    """A dataclass in the user's file finds the names it is written with."""
    text = """
from __future__ import annotations
from dataclasses import dataclass
from routeproof.spec.records import Int32, Record, symbols
@dataclass(frozen=True, slots=True)
class Own(Record):
    size: Int32
own = symbols(Own)
"""
    path = write("")
    path.write_text(text.lstrip() + HEAD + ONE)
    assert list(load_obligations([path])) == ["own.one"]


def known(*names):
    """Return a mapping from ids to themselves, as a stand-in for obligations."""
    return {name: name for name in names}


def test_globs_and_ids_select_in_order():
    """Each obligation once, in the order of the book."""
    book = known("a.b", "a.c", "d.e")
    assert select_obligations(book, []) == ["a.b", "a.c", "d.e"]
    assert select_obligations(book, ["d.*", "a.c", "a.[c-z]"]) == ["a.c", "d.e"]


def test_a_pattern_that_matches_nothing_is_an_error():
    """Even beside one that does: nothing is skipped in silence."""
    with pytest.raises(UnknownNameError, match=r"did you mean 'ort\.gqa\.one'"):
        select_obligations(known("ort.gqa.one"), ["ort.*", "ort.gqa.on"])
    with pytest.raises(UnknownNameError, match="unknown obligation"):
        select_obligations(known("a.b"), ["A.*"])


def test_an_unknown_name_carries_the_closest_match():
    """Or all there are, if none is close."""
    assert pick("ladder", "ort.gqa", ["ort.gqa"]) == "ort.gqa"
    with pytest.raises(
        UnknownNameError, match=r"unknown ladder 'ort\.gqs'; did you mean 'ort\.gqa'\?"
    ):
        pick("ladder", "ort.gqs", ["other", "ort.gqa"])


def test_the_catalogue_answers_to_its_names():
    """Every function and ladder loads under the name it is listed with."""
    assert {load_function(name).name for name in function_names()} == set(function_names())
    for name in LADDERS:
        assert all(ladder.outcomes for ladder in load_ladders(name).values())
    with pytest.raises(UnknownNameError, match=r"did you mean 'ort\.gqa\.flash'"):
        load_function("ort.gqa.flsh")
    with pytest.raises(UnknownNameError):
        load_ladders("nothing")


def test_the_installed_proofs_load():
    """Without a file, the book is the one that is shipped."""
    assert all(name == one.id for name, one in load_obligations().items())
    assert load_obligations()
