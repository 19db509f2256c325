"""Obligations, envelopes and phases: what a statement says of itself."""

import pytest

from routeproof.spec.envelope import Bound, Envelope
from routeproof.spec.errors import ModelError
from routeproof.spec.function import Source
from routeproof.spec.interpret import evaluate
from routeproof.spec.ladder import Rung
from routeproof.spec.obligation import (
    DECLARED,
    Claim,
    Obligation,
    Rows,
    Verdict,
    declaring,
    obligation,
    parameters_left,
)
from routeproof.spec.phase import Phases
from routeproof.spec.recipe import Checks, status_sort
from routeproof.spec.terms import EnumSort, IntDomain, first, symbol_float, symbol_int, to_float

X, Y = symbol_int("x"), symbol_int("y")
SOURCE = Source("kernel.cc", "Size", "r1")


def _obligation(**changes):
    fields = {
        "id": "kernel.size",
        "title": "size fits",
        "source": SOURCE,
        "expected": Verdict.PROVED,
        "statement": lambda: Claim(X > 0),
        "location": "kernel.py:1",
    }
    return Obligation(**{**fields, **changes})


@pytest.mark.parametrize("name", ["", "size", "Kernel.size", "kernel size.x", "kernel..size"])
def test_ids_are_dotted_lower_case_words(name):
    """Anything else could not be globbed or typed."""
    with pytest.raises(ModelError, match="dotted lower-case"):
        _obligation(id=name)


@pytest.mark.parametrize("verdict", [Verdict.UNKNOWN, Verdict.VACUOUS, Verdict.DISAGREEMENT])
def test_failures_are_never_expected(verdict):
    """Not knowing, knowing nothing and contradicting oneself are no goals."""
    with pytest.raises(ModelError, match="never an expectation"):
        _obligation(expected=verdict)


def test_decorator_keeps_where_it_was_written():
    """The location is the file and line of the function that builds the statement."""

    @obligation("kernel.size", "size fits", source=SOURCE)
    def size():
        return Claim(X > 0)

    assert size.expected is Verdict.PROVED
    assert size.location.startswith(__file__)
    assert isinstance(size.statement(), Claim)


def _over(each, name="my.bound.{sms}", title="{sms} multiprocessors", **more):
    """Return what a function of one number becomes."""

    def bound(sms, more=1):
        return Claim(X * more > sms)

    return obligation(name, title, source=SOURCE, each=each, **more)(bound)


def test_each_value_gives_an_obligation():
    """With the value in id, title and statement; expectation, note and line are shared."""
    made = _over({"sms": (82, 108)}, expect="refuted", note="{sms} stays as it is")
    assert [(one.id, one.title) for one in made] == [
        ("my.bound.82", "82 multiprocessors"),
        ("my.bound.108", "108 multiprocessors"),
    ]
    assert [one.statement().goal for one in made] == [X > 82, X > 108]
    assert {(one.expected, one.note, one.location) for one in made} == {
        (Verdict.REFUTED, "{sms} stays as it is", made[0].location)
    }


def test_each_combination_of_values():
    """The last axis runs fastest; values are written as the id says."""
    made = _over({"sms": iter((8, 82)), "more": (1, 2)}, "my.{sms:03}.by-{more}", "plain")
    assert [one.id for one in made] == [
        "my.008.by-1",
        "my.008.by-2",
        "my.082.by-1",
        "my.082.by-2",
    ]
    assert made[3].statement().goal is (X * 2 > 82)


def test_without_axes_braces_are_text():
    """A title may speak of sets."""
    assert obligation("a.b", "x is in {1}")(lambda: Claim(X > 0)).title == "x is in {1}"


MISTAKEN_AXES = {
    "a parameter that there is not": (({"smz": (1,)},), r"bound\(\) takes no 'smz'"),
    "an id for all": (({"sms": (1, 2)}, "my.bound"), r"the id lacks \{sms\}"),
    "an axis left out of the id": (({"sms": (1,), "more": (1,)},), r"the id lacks \{more\}"),
    "no values": (({"sms": ()},), "sms has no values"),
    "no axes": (({},), "each names no parameter"),
    "one value": (({"sms": 82},), "sms=82 is no list of values"),
    "a text": (({"sms": "82"},), "sms='82' is no list of values"),
    "a list of axes": ((["sms"],), "no mapping of parameters"),
    "an id that is none": (({"sms": ("RTX 4090",)},), r"'my\.bound\.RTX 4090' is not dotted"),
    "one id for two": (({"sms": (1, 1.2)}, "my.{sms:.0f}"), r"two combinations .* 'my\.1'"),
    "another name in the title": (
        ({"sms": (1,)}, "my.{sms}", "{sns}"),
        r"no axis 'sns'; did you mean 'sms'",
    ),
    "a number in braces": (({"sms": (1,)}, "my.{sms}", "{0}"), "positional"),
    "a format that is none": (({"sms": (1,)}, "my.{sms:q}"), "cannot be written for sms=1: "),
    "half a brace": (({"sms": (1,)}, "my.{sms"), r"'my\.\{sms': expected '}'"),
    "an id that is no text": (({"sms": (1,)}, 3), "3: "),
    "a title that is no text": (({"sms": (1,)}, "my.{sms}", 3), "3"),
}


@pytest.mark.parametrize(("given", "told"), MISTAKEN_AXES.values(), ids=MISTAKEN_AXES)
def test_mistakes_of_axes_are_told(given, told):
    """In one line, where the obligation is declared."""
    with pytest.raises(ModelError, match=told) as caught:
        _over(*given)
    assert "\n" not in str(caught.value)


def test_what_a_statement_still_needs():
    """Parameters without a value; one that each= fills in, or that has a default, is none."""

    def bound(sms, models, more=1, *_, **__):
        return Claim(X * more > sms + models)

    assert parameters_left(bound) == ["sms", "models"]
    (made,) = obligation("a.{sms}", "t", each={"sms": (1,)})(bound)
    assert parameters_left(made.statement) == ["models"]


def test_declared_obligations_are_known():
    """To who waits for them, also where several are made at once."""
    with declaring() as made:
        several = _over({"sms": (1, 2)})
        one = obligation("a.b", "t")(lambda: Claim(X > 0))
    assert made == [*several, one]


def test_a_module_knows_what_its_body_declared(tmp_path, monkeypatch):
    """Whatever becomes of the names, through factories of others, and nothing that it imports."""
    head = "from routeproof.spec.obligation import obligation\n"
    factory = "def make(name):\n    obligation(f'made.{name}', 't')(lambda: None)\nmake('there')\n"
    (tmp_path / "a_factory.py").write_text(head + factory)
    loop = "import a_factory\nclass Any:\n    for name in 'ab':\n        a_factory.make(name)\n"
    (tmp_path / "a_loop.py").write_text(loop)
    monkeypatch.syspath_prepend(tmp_path)
    import a_factory
    import a_loop

    assert [one.id for one in vars(a_factory)[DECLARED]] == ["made.there"]
    assert [one.id for one in vars(a_loop)[DECLARED]] == ["made.a", "made.b"]


def test_claim_lists_assumptions_before_envelope():
    """Both are conditions; a goal without parts is called goal."""
    bound = Bound(X, 1, 8, enforced=True, source=SOURCE)
    claim = Claim(X > 0, {"y is positive": Y > 0}, Envelope((bound,)))
    assert list(claim.conditions) == ["y is positive", str(bound)]
    assert list(claim.goals) == ["goal"]


def test_conditions_of_one_text_stay_apart():
    """A bound never takes the place of another, nor of an assumption."""
    terms = [symbol_int("n", IntDomain(0, most)) for most in (5, 9)]
    one, two = (Bound(term, None, 3, enforced=True, source=SOURCE) for term in terms)
    assert str(one) == str(two)
    claim = Claim(terms[0] > 0, {str(one): terms[0] > 1}, Envelope((one, two, one)))
    assert list(claim.conditions) == [str(one), f"{one} (2)", f"{one} (3)"]
    assert list(claim.conditions.values()) == [terms[0] > 1, one.holds, two.holds]


def test_envelope_admits_what_all_bounds_admit():
    """Open ends do not bound; a bound may be another term."""
    bounds = (
        Bound(X, 1, Y, enforced=True, source=SOURCE),
        Bound(Y, None, 8, enforced=False, source=SOURCE),
    )
    envelope = Envelope(bounds)
    assert evaluate(envelope.admits, {"x": 3, "y": 3}) is True
    assert evaluate(envelope.admits, {"x": 4, "y": 3}) is False
    assert evaluate(envelope.admits, {"x": 4, "y": 9}) is False


def test_what_nothing_enforces_is_named():
    """A proof is conditional on exactly the declared bounds."""
    declared = Bound(X, 1, 8, enforced=False, source=SOURCE)
    enforced = Bound(Y, 1, 8, enforced=True, source=SOURCE)
    assert Envelope((declared, enforced)).declared_only == (declared,)
    assert "declared only" in str(declared)
    assert "enforced" in str(enforced)


AUTHORS_MISTAKES = {
    "a bound that is enforced, more or less": lambda: Bound(X, 0, 5, "no", SOURCE),
    "a bound of a condition": lambda: Bound(X > 0, 0, 5, enforced=True, source=SOURCE),
    "a forgotten comma": lambda: Envelope(Bound(X, 0, 5, enforced=True, source=SOURCE)),
    "a guard that is always true": lambda: Rung("a", guard=True),
    "a check that is always met": lambda: Checks(status_sort("o")).require(needs=1, failure="o"),
    "rows of nowhere": lambda: Rows(3, None, []),
    "half a float": lambda: to_float(X, 16),
    "a float of a text": lambda: symbol_float("x", "32"),
    "a search without end": lambda: first("c", X, lambda c: c > 1, otherwise=0, at_most=None),
    "no members": lambda: EnumSort("s", ()),
    "a member twice": lambda: EnumSort("s", ("a", "a")),
    "too many members": lambda: EnumSort("s", tuple(map(str, range(200)))),
    "half a bound": lambda: IntDomain(0, 1.5),
    "a title of two lines": lambda: _obligation(title="one\ntwo"),
    "a label of two lines": lambda: Claim(X > 0, shows={"one\ntwo": X}),
}


@pytest.mark.parametrize("make", AUTHORS_MISTAKES.values(), ids=AUTHORS_MISTAKES)
def test_mistakes_are_told_where_they_are_made(make):
    """In one line, not by a traceback from inside an engine."""
    with pytest.raises(ModelError) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_phases_know_gaps_and_overlaps():
    """Total and disjoint are conditions on a state."""
    phases = Phases({"one": X <= 3, "two": X >= 3, "three": X > 9})
    assert evaluate(phases.total, {"x": 5}) is True
    assert evaluate(phases.disjoint, {"x": 3}) is False
    assert evaluate(Phases({"one": X < 3}).total, {"x": 3}) is False
