"""Maximising regime by regime: on toys whose states can all be tried, and where it must refuse."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.checkers.decide import decide_claim
from routeproof.checkers.maximise import lemmas, maximise
from routeproof.checkers.solver import Options
from routeproof.spec.errors import UnsupportedError
from routeproof.spec.interpret import evaluate
from routeproof.spec.objective import Case, Domain, Held, Objective, Step
from routeproof.spec.terms import Int, IntDomain, ceil_div, integer, maximum, symbol_int

ROWS, TOKENS = symbol_int("rows", IntDomain(1, 10**6)), symbol_int("tokens", IntDomain(1, 10**6))
DEVICE = symbol_int("device", IntDomain(1, 1000))
KEY = symbol_int("key", IntDomain(1, 10**9))
WIDE = symbol_int("wide", IntDomain(1, 2**80))


def splits(key: Int) -> Int:
    """As many as the device has room for: falls while the size grows."""
    return maximum(1, DEVICE // key)


def toy(every: int = 8, limit: int = 10**12) -> Objective:
    """Bytes of rows and tokens times the splits of the work, which is rows times blocks of 8."""
    work = ROWS * ceil_div(TOKENS, 8)
    size = 4 * ROWS * TOKENS * splits(work) + TOKENS
    held = Held(
        splits(KEY),
        {KEY: work},
        KEY >= DEVICE,
        (
            Step(ROWS, integer(1), integer(0), integer(10**9)),
            Step(TOKENS, integer(every), integer(0), integer(10**9)),
        ),
    )
    within = {"positive": (ROWS >= 1) & (TOKENS >= 1)}
    return Objective("toy", (ROWS, TOKENS), size, size <= limit, within, held)


def held_by(value: Int, keys, settles=DEVICE) -> Objective:
    """The toy with another held part."""
    held = Held(value, keys, next(iter(keys)) >= settles, toy().held.steps)
    size = 4 * ROWS * TOKENS * held.part + TOKENS
    return replace(toy(), size=size, ok=size >= 0, held=held)


def large() -> Objective:
    """The toy on devices of any size."""
    device = symbol_int("device", IntDomain(1, 10**12))
    value = maximum(1, device // KEY)
    steps = toy(every=1).held.steps
    held = Held(value, toy().held.keys, device <= KEY, steps)
    size = 4 * ROWS * TOKENS * held.part
    return replace(toy(), size=size, ok=size >= 0, held=held)


def case(objective: Objective, rows, tokens, device=20, **relation) -> Case:
    """The toy on ranges of rows and tokens."""
    domain = Domain({ROWS: rows, TOKENS: tokens}, **relation)
    facts = {"device": device, "the held part": 1}
    return Case("p", "r", "a", objective, domain, facts, {}, {}, lambda _: ())


def tried(asked: Case):
    """The sizes of all states, by trying them."""
    (rows, tokens), domain = (asked.domain.ranges[axis] for axis in (ROWS, TOKENS)), asked.domain
    for row in range(rows[0], rows[1] + 1):
        for token in range(tokens[0], tokens[1] + 1):
            place = {ROWS: row, TOKENS: token}
            if domain.equal and row != token:
                continue
            if domain.less and place[domain.less[0]] >= place[domain.less[1]]:
                continue
            state = {"rows": row, "tokens": token, **asked.facts}
            yield evaluate(asked.objective.size, state), place


RANGES = st.tuples(st.integers(1, 30), st.integers(0, 30)).map(lambda one: (one[0], sum(one)))


@given(
    RANGES,
    RANGES,
    st.integers(1, 60),
    st.sampled_from(
        [{}, {"equal": (ROWS, TOKENS)}, {"less": (ROWS, TOKENS)}, {"less": (TOKENS, ROWS)}]
    ),
)
def test_the_maximum_is_that_of_all_states(rows, tokens, device, relation):
    """Whatever ties the two axes together; and the state attains it."""
    if "equal" in relation:
        rows = tokens = (max(rows[0], tokens[0]), max(rows[1], tokens[1]))
    asked = case(toy(), rows, tokens, device, **relation)
    sizes = list(tried(asked))
    found = maximise(asked)
    if not sizes:
        assert found is None
        return
    most = max(size for size, _ in sizes)
    assert found is not None
    assert (found.size, found.failing) == (most, None)
    assert (most, dict(found.state)) in [(size, dict(state)) for size, state in sizes]


def test_a_state_whose_size_fails_is_told():
    """There is no maximum then, whatever the other states need."""
    found = maximise(case(toy(limit=1000), (1, 30), (1, 30)))
    assert found is not None
    assert found.failing is not None
    state = {axis.name: value for axis, value in found.failing.items()}
    assert evaluate(toy().size, {**state, "device": 20}) > 1000


def test_many_rows_settle_into_one_regime():
    """Beyond the device's size there is nothing to try: a million rows cost as much as twenty."""
    few, many = (maximise(case(toy(), (1, top), (1, 8))) for top in (40, 10**6))
    assert few is not None
    assert many is not None
    assert many.regimes == few.regimes
    assert many.size == 4 * 10**6 * 8 + 8


@pytest.mark.parametrize("claim", [one.name for one in lemmas(toy())])
def test_what_it_rests_on_is_proved(claim):
    """Of the toy as of every route."""
    (lemma,) = (one for one in lemmas(toy()) if one.name == claim)
    assert decide_claim(lemma.claim, Options()).verdict == "proved"


def verdicts(objective):
    """What is decided of each lemma, by its short name."""
    found = lemmas(objective)
    return {
        one.name.partition(": ")[2]: decide_claim(one.claim, Options()).verdict for one in found
    }


def test_a_size_that_falls_breaks_its_lemma():
    """The corner does not need most then, and the lemma says so."""
    falling = replace(toy(), size=10**7 - ROWS, held=None)
    assert verdicts(falling)["the corner needs most"] == "refuted"


def test_a_key_that_falls_breaks_its_lemma():
    """Equal ends would not mean a constant held part."""
    held = replace(toy().held, keys={KEY: 10**7 - ROWS})
    size = 4 * ROWS * held.part
    broken = replace(toy(), size=size, ok=size >= 0, held=held)
    assert verdicts(broken)["the keys grow"] == "refuted"


def test_a_held_part_that_never_is_one_breaks_its_lemma():
    """What has settled is taken for a single split."""
    held = replace(toy().held, settled=KEY >= 2)
    assert verdicts(replace(toy(), held=held))["settled, it is 1"] == "refuted"


def test_states_that_a_larger_one_leaves_break_their_lemma():
    """What holds of the least state would not hold of all."""
    odd = {"not five": ~(ROWS == 5)}
    assert verdicts(replace(toy(), within=odd))["larger states are its own"] == "refuted"


@pytest.mark.parametrize(
    ("objective", "ranges", "message"),
    [
        (toy(every=16), ((1, 3), (1, 64)), "the stated regimes do not fit"),
        (toy(), ((1, 10), (0, 3)), "tokens is declared 1..1000000, not 0..3"),
        (replace(toy(), within={"two": ROWS >= 2}), ((1, 9), (1, 3)), "not every state has two"),
        (held_by(KEY - 1, toy().held.keys), ((1, 9), (1, 3)), "is not a count"),
        (held_by(splits(KEY), {KEY: ROWS - 1}), ((1, 9), (1, 3)), "key is declared 1..1000000000"),
        (
            held_by(maximum(1, 2**70 // WIDE), {WIDE: ROWS * 2**62}, 2**79),
            ((1, 9), (1, 3)),
            "keys beyond 64 bits",
        ),
        (replace(toy(), ok=symbol_int("the held part") >= 0), ((1, 9), (1, 3)), "is needed here"),
        (replace(toy(), size=ROWS), ((1, 3), (1, 3)), "does not occur"),
    ],
)
def test_a_route_that_is_stated_wrongly_is_refused(objective, ranges, message):
    """It has no maximum rather than a wrong one."""
    with pytest.raises(UnsupportedError, match=message):
        maximise(case(objective, *ranges))


def test_too_many_regimes_are_refused():
    """Before memory is spent on them."""
    with pytest.raises(UnsupportedError, match="too many"):
        maximise(case(large(), (1, 10**6), (1, 10**6), device=10**9))


def test_what_settles_only_for_a_while_is_refused():
    """`settled` has to hold for every larger key."""
    held = replace(toy().held, settled=(KEY >= 20) & (KEY <= 40))
    with pytest.raises(UnsupportedError, match="settled at"):
        maximise(case(replace(toy(), held=held), (1, 100), (1, 8)))
