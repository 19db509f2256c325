"""A statement's digest: one for what no engine can tell apart, another for all else."""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from enum import StrEnum

import pytest
from differential.strategies import terms
from hypothesis import given

from routeproof.checkers.caching.fingerprint import digest, statement_digest
from routeproof.checkers.evaluator import recorded
from routeproof.checkers.registry import load_obligations
from routeproof.spec.derivation import Digests
from routeproof.spec.envelope import Bound, Envelope
from routeproof.spec.errors import InputError
from routeproof.spec.function import Source
from routeproof.spec.ladder import Ladder, Rung
from routeproof.spec.obligation import Claim, Reach, Rows
from routeproof.spec.terms import (
    EnumSort,
    IntDomain,
    symbol_bool,
    symbol_enum,
    symbol_int,
    topological,
)

SOURCE = Source("kernel.cc", "Size", "r1")
x = symbol_int("x", IntDomain(0, 9))
y = symbol_int("y", IntDomain(0, 9))
flag = symbol_bool("flag")
CLAIM = Claim(
    {"first": x + y <= 18, "second": flag | ~flag},
    assuming={"some": x >= 1, "more": y >= 1},
    envelope=Envelope((Bound(x, 1, 5, enforced=True, source=SOURCE),)),
    shows={"sum": x + y},
)


def test_it_repeats():
    """Two statements built from the same parts."""
    again = Claim(
        {"first": x + y <= 18, "second": flag | ~flag},
        assuming={"some": x >= 1, "more": y >= 1},
        envelope=Envelope((Bound(x, 1, 5, enforced=True, source=SOURCE),)),
        shows={"sum": x + y},
    )
    assert statement_digest(again) == statement_digest(CLAIM)


@pytest.mark.parametrize(
    "change",
    [
        {"goal": {"first": x + y <= 17, "second": flag | ~flag}},
        {"goal": {"first": x + y <= 18}},
        {"goal": {"second": flag | ~flag, "first": x + y <= 18}},
        {"goal": {"one": x + y <= 18, "second": flag | ~flag}},
        {"assuming": {"some": x >= 1}},
        {"assuming": {"more": y >= 1, "some": x >= 1}},
        {"assuming": {"some": x >= 2, "more": y >= 1}},
        {"envelope": None},
        {"envelope": Envelope((Bound(x, 1, 5, enforced=False, source=SOURCE),))},
        {"envelope": Envelope((Bound(x, 1, None, enforced=True, source=SOURCE),))},
        {
            "envelope": Envelope(
                (Bound(x, 1, 5, enforced=True, source=replace(SOURCE, place="Other")),)
            )
        },
        {"shows": {}},
        {"shows": {"sum": x}},
        {"shows": {"total": x + y}},
        {"solver_only": True},
        {"settles": {"x": 3}},
        {"regimes": {"low": x < 3}},
    ],
)
def test_every_part_counts(change):
    """Also those that are only displayed: an entry is shown as it was kept."""
    assert statement_digest(replace(CLAIM, **change)) != statement_digest(CLAIM)


@pytest.mark.parametrize(
    "other",
    [
        symbol_int("x", IntDomain(0, 10)),
        symbol_int("x", IntDomain(0, 9, 3)),
        symbol_int("z", IntDomain(0, 9)),
        x + 0 * y + 1,
    ],
)
def test_every_term_counts(other):
    """The domain and the name of a symbol are part of what is claimed."""
    assert statement_digest(Claim(other <= 9)) != statement_digest(Claim(x <= 9))


def test_sorts_count():
    """A condition, and enums of one name with other members."""
    kinds = [symbol_enum("x", EnumSort("Kind", names)) for names in (("a", "b"), ("a", "c"))]
    found = {statement_digest(Claim(kind == "a")) for kind in kinds}
    assert len(found | {statement_digest(Claim(symbol_bool("x")))}) == 3


def test_a_decision_table_is_its_ladder_and_outcome():
    """Rungs in order, what runs, which facts are static."""

    def reach(outcome="slow", *, runs=True, static=(flag,), runtime=(x,)):
        rungs = (Rung("fast", flag & (x > 3)), Rung("slow", x >= 0, runs))
        return Reach(Ladder("kernel", rungs, static, runtime), outcome)

    others = (reach(), reach("fast"), reach(runs=False), reach(static=(flag, x), runtime=()))
    assert len(set(map(statement_digest, others))) == 4
    assert statement_digest(reach()) == statement_digest(reach())


def test_recorded_rows_are_the_model_and_the_bytes(monkeypatch, tmp_path):
    """Another byte in the file, or another term in the model, is another statement."""
    (tmp_path / "recorded_rows").mkdir()
    (tmp_path / "recorded_rows" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "recorded_rows" / "rows.gz"
    file.write_bytes(b"one")
    rows = Rows("ort.gqa.unfused", "recorded_rows", "rows.gz")
    first = statement_digest(rows)
    assert statement_digest(rows) == first
    assert statement_digest(replace(rows, function="ort.gqa.xqa")) != first
    file.write_bytes(b"two")
    assert statement_digest(rows) != first


def test_a_users_own_kind_of_claim_is_not_recognised():
    """It may answer otherwise than its fields say."""

    class Other(Claim):
        """One whose conditions are not its own."""

    @dataclass(frozen=True)
    class Bounds(Envelope):
        """One whose bounds are not its own."""

    assert statement_digest(Other(x <= 9)) is None
    assert statement_digest(Claim(x <= 9, envelope=Bounds(()))) is None


def test_data_is_told_apart_to_the_type():
    """1, 1.0 and true are three; the order of keys does not count."""
    assert len({digest(one) for one in (1, 1.0, True, "1", [1], {"1": 1})}) == 6
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


KNOWN = {}


@given(term=terms())
def test_no_two_terms_share_a_digest(term):
    """Equal terms are one object, so that every other object has to have another digest."""
    names = Digests(16)
    for node in topological((term,)):
        assert KNOWN.setdefault(names(node), node) is node


ORDERED = """\
import json, sys
from routeproof.checkers.caching.fingerprint import statement_digest
from routeproof.checkers.process import prepare
from routeproof.checkers.registry import build, load_obligations
prepare()
known = load_obligations()
names = [one for one in known if one.endswith(sys.argv[1])]
if sys.argv[2] == "backwards":
    names.reverse()
print(json.dumps({name: statement_digest(build(known[name])) for name in names}, sort_keys=True))
"""


@pytest.mark.parametrize("ending", ["newest", "window"])
def test_it_does_not_depend_on_what_was_built_before(ending):
    """Other processes, other hash seeds, the statements in another order."""
    assert any(one.endswith(ending) for one in load_obligations())
    forwards, backwards = (
        subprocess.run(
            [sys.executable, "-c", ORDERED, ending, order],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for order, seed in (("forwards", "1"), ("backwards", "2"))
    )
    assert forwards == backwards


class Shown(int):
    """A number that shows as another."""

    def __repr__(self):
        """Show what is the same for many."""
        return "5"


class Named(StrEnum):
    """A text with a name of its own."""

    ONE = "x"


def test_numbers_of_a_kind_of_their_own_are_the_numbers_they_are():
    """Whatever they show."""
    one, two = (Claim(symbol_int("n", IntDomain(0, Shown(most))) <= 5) for most in (5, 7))
    assert statement_digest(one) != statement_digest(two)


def test_a_member_of_a_users_enum_is_nothing_that_is_recognised():
    """What it is may change below its name."""
    assert statement_digest(Claim(x + y >= 0, settles={Named.ONE: 3})) is None


def test_names_of_a_kind_of_their_own_are_plain_texts():
    """In claims and enums: they travel between processes."""
    claim = Claim({Named.ONE: x >= 0}, assuming={Named.ONE: x >= 1}, shows={Named.ONE: x})
    names = [*claim.goals, *claim.assuming, *claim.shows, *EnumSort("one", (Named.ONE,)).members]
    assert [type(name) for name in names] == [str] * 4
    assert set(names) == {"x"}


@pytest.mark.parametrize(
    ("package", "resource"),
    [("no_such", "rows"), ("json", "nothing"), ("json", ""), ("json.x", "x")],
)
def test_rows_that_cannot_be_read_have_no_digest(package, resource):
    """Who replays them says what is wrong."""
    rows = Rows("ort.gqa.classifier", package, resource)
    assert statement_digest(rows) is None
    with pytest.raises(InputError, match="cannot read"):
        list(recorded(rows))
