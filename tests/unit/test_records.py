"""Records: typed fields become symbols, terms have paths, choices go field by field."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from routeproof.spec.errors import ModelError
from routeproof.spec.interpret import evaluate
from routeproof.spec.records import (
    EnumSet,
    Float32,
    Int32,
    Int64,
    Record,
    SizeT,
    leaves,
    select,
    symbols,
)
from routeproof.spec.terms import Bool, Enum, EnumSort, Float, Int, IntDomain, symbol_bool

KIND = EnumSort("kind", ("none", "int8"))
SHADE = EnumSort("shade", ("none", "int8"))


@dataclass(frozen=True, slots=True)
class Inner(Record):
    """Two machine integers."""

    rows: Int32
    bytes: SizeT


@dataclass(frozen=True, slots=True)
class Outer(Record):
    """A field of every kind."""

    length: Int64
    flag: Bool
    kind: Annotated[Enum, KIND]
    kinds: Annotated[EnumSet, KIND]
    softcap: Float32
    ratio: Annotated[Float, 64]
    inner: Inner


@dataclass(frozen=True, slots=True)
class Shades(Record):
    """A set over another sort."""

    kinds: Annotated[EnumSet, SHADE]


outer = symbols(Outer, "outer")


def test_symbols_have_the_declared_sorts():
    """Each annotation becomes a symbol of that sort, domain and width."""
    assert outer.length.domain == IntDomain(-(2**63), 2**63 - 1)
    assert outer.inner.bytes.domain == IntDomain(0, 2**64 - 1)
    assert outer.inner.rows.domain == IntDomain(-(2**31), 2**31 - 1)
    assert outer.kind.members is KIND
    assert (outer.softcap.width, outer.ratio.width) == (32, 64)
    assert isinstance(outer.flag, Bool)


def test_leaves_are_named_like_their_symbols():
    """The path of a field is the name of its symbol, in declared order."""
    names = ["length", "flag", "kind", "kinds.none", "kinds.int8", "softcap", "ratio"]
    names += ["inner.rows", "inner.bytes"]
    found = leaves(outer, "outer")
    assert list(found) == [f"outer.{name}" for name in names]
    assert all(term.name == path for path, term in found.items())
    assert list(leaves(symbols(Outer))) == names


def test_symbols_are_the_same_each_time():
    """Two instances of the symbolic record are made of the same terms."""
    assert list(leaves(symbols(Outer, "outer")).values()) == list(leaves(outer).values())


def test_a_set_answers_per_member():
    """Membership is one boolean per member; an unknown member is an error."""
    assert outer.kinds.has("int8").name == "outer.kinds.int8"
    with pytest.raises(ModelError, match="no member 'fp8'"):
        outer.kinds.has("fp8")


@pytest.mark.parametrize(
    "hint",
    [Int, Enum, Float, int, list[Int], Annotated[Int, 32], Annotated[Float, IntDomain(0, 1)]],
    ids=str,
)
def test_a_field_needs_a_machine_type(hint):
    """An input without a width, range or sort, or with that of another sort, is refused."""
    record = dataclass(frozen=True)(type("Bad", (Record,), {"__annotations__": {"field": hint}}))
    with pytest.raises(ModelError, match=r"bad\.field: an input field needs"):
        symbols(record, "bad")


def test_a_record_holds_terms():
    """A Python number in a record is an error that names the field."""
    with pytest.raises(ModelError, match=r"^rows: a record holds terms"):
        leaves(Inner(rows=3, bytes=outer.inner.bytes))


def test_select_goes_field_by_field():
    """Every leaf of the result is the choice between the leaves."""
    test, other = symbol_bool("test"), symbols(Outer, "other")
    chosen = leaves(select(test, outer, other))
    for path, term in chosen.items():
        one, two = leaves(outer)[path], leaves(other)[path]
        state = {one.name: True, two.name: False} if isinstance(one, Bool) else {}
        state |= {one.name: "int8", two.name: "none"} if isinstance(one, Enum) else {}
        state |= {} if state else {one.name: 1, two.name: 2}
        assert evaluate(term, {**state, "test": True}) == state[one.name]
        assert evaluate(term, {**state, "test": False}) == state[two.name]


@pytest.mark.parametrize(
    ("one", "two"), [(outer, outer.inner), (symbols(Shades), Shades(outer.kinds))]
)
def test_select_joins_only_what_is_alike(one, two):
    """Two different records, or sets over different sorts, have no choice between them."""
    with pytest.raises(ModelError, match=r"select\(\) joins"):
        select(symbol_bool("test"), one, two)
