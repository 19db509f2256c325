"""Every bound obligation, tried on all states of many small boxes: no verdict is wrong on any.

A box is a product of a few values per symbol that holds a state of the obligation's envelope and
the edges around it. Nothing is sampled inside a box: its states are all evaluated, the conditions
and the goals of the claim in one pass of NumPy columns.
"""

from dataclasses import fields, replace
from functools import cache, partial

import numpy as np
import pytest
from soundness.boxes import ROUTES, Case, around, draw, pins, splits, stacked
from soundness.claims import decide

from routeproof.checkers.evaluator import Evaluator
from routeproof.checkers.readings.vectorised import compile_numpy
from routeproof.checkers.registry import load_function, load_obligations
from routeproof.models.ort.gqa import bounds as level1
from routeproof.models.ort.gqa.problem import (
    HEAD_SINK_STORAGE,
    KV_TYPE,
    QUANTIZATION,
    BoundsProblem,
    Problem,
)
from routeproof.spec.obligation import Claim
from routeproof.spec.records import symbols
from routeproof.spec.terms import FALSE, align_up, free_symbols, minimum

BOUNDS = {
    name.removeprefix("ort.gqa.bound."): one
    for name, one in load_obligations().items()
    if name.startswith(tuple(f"ort.gqa.bound.{route}." for route in ROUTES))
}
FLASH = [name for name in BOUNDS if name.startswith("flash")]
RULES = (
    "enough work",
    "efficiency",
    "capped by 128",
    "capped by multiprocessors",
    "capped by KV blocks",
)
BOXES = 10
RESOURCES = 1_000_000  # of the solver per query: a box is a small question
_PROBLEM = tuple(field.name for field in fields(Problem))
_ENUMS = {
    "k_quantization": QUANTIZATION,
    "v_quantization": QUANTIZATION,
    "xqa_kv_type": KV_TYPE,
    "xqa_head_sink_storage": HEAD_SINK_STORAGE,
}


class Enumerated:
    """A claim that is evaluated on boxes."""

    def __init__(self, claim):
        """Compile conditions and goals together."""
        self.claim = claim
        self.symbols = free_symbols(*claim.conditions.values(), *claim.goals.values())
        self._program = compile_numpy((*claim.conditions.values(), *claim.goals.values()))

    def on(self, states):
        """Return where all conditions hold, and where every goal does."""
        found, cut = self._program(states), len(self.claim.conditions)
        return np.logical_and.reduce(found[:cut]), np.logical_and.reduce(found[cut:])

    def assert_holds_on(self, boxes):
        """Assert that each box has an admitted state, and that none of those breaks a goal."""
        states, starts = stacked(boxes)
        admitted, holds = self.on(states)
        assert len(boxes) >= BOXES
        assert np.logical_or.reduceat(admitted, starts).all()
        broken = np.flatnonzero(admitted & ~holds)
        assert not [_state(states, row) for row in broken[:1]]


@cache
def _enumerated(name):
    return Enumerated(BOUNDS[name].statement())


def _case(name):
    return Case(f"ort.gqa.bound.{name}")


def _state(states, row):
    return {name: column[row].item() for name, column in states.items()}


@cache
def _admitted(name, kind="near"):
    """Return drawn states of the envelope, as columns."""
    rng, count = np.random.default_rng(11), {"near": 2_000, "far": 1_000, "idle": 8_000}[kind]
    states = draw(_case(name), count, rng, far=kind == "far", idle=kind == "idle")
    admitted, _ = _enumerated(name).on(states)
    return {key: column[admitted] for key, column in states.items()}


@cache
def _rules(name, kind):
    return splits(_case(name), _admitted(name, kind))


def _boxes(name, states, rows, *, most=800, axes=("batch_size",)):
    rng = np.random.default_rng(7)
    quantified = _enumerated(name).symbols
    return [
        around(quantified, {key: column[row] for key, column in states.items()}, rng, most, axes)
        for row in rows
    ]


@pytest.mark.parametrize("name", BOUNDS)
def test_no_state_of_a_box_breaks_the_bound(name):
    """Bounds, sizes, lengths, devices, cache layouts and flags vary, to one beyond each bound."""
    boxes = _boxes(name, _admitted(name), range(BOXES))
    _enumerated(name).assert_holds_on(boxes)


@pytest.mark.parametrize("name", BOUNDS)
def test_no_state_near_the_limit_of_64_bits_breaks_the_bound(name):
    """The boxes are those with the largest bounds, beside sizes that overflow."""
    states = _admitted(name, "far")
    (most,) = compile_numpy([_enumerated(name).claim.shown["bound bytes"]])(states)
    largest = np.argsort(most)[-BOXES:]
    assert most[largest[-1]] > 2**62
    _enumerated(name).assert_holds_on(_boxes(name, states, largest, most=200))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", FLASH)
def test_no_state_breaks_the_bound_whatever_rule_chose_the_splits(name, rule):
    """Around states with work enough for one split, at each cap, and below it for efficiency."""
    kind = "near" if rule == "enough work" else "idle"
    states, (_, rules) = _admitted(name, kind), _rules(name, kind)
    found = np.flatnonzero(rules[rule])[:BOXES]
    sizes = ("batch_size", "total_sequence_length", "bound.multi_processor_count")
    _enumerated(name).assert_holds_on(_boxes(name, states, found, most=400, axes=sizes))


@cache
def _evaluators():
    names = ("ort.gqa.complete", "ort.gqa.bounds")
    return tuple(Evaluator(load_function(name)) for name in names)


def _evaluated(case, state):
    """Return what `eval` gives for a state: the outputs of the route and of the bound."""
    bounds = {key.removeprefix("bound."): state[key] for key in state if key.startswith("bound.")}
    members = {key.split(".")[1]: bounds.pop(key) for key in list(bounds) if "." in key}
    bounds["reachable_backends"] = [member for member, reachable in members.items() if reachable]
    for key, sort in _ENUMS.items():
        bounds[key] = sort.members[bounds[key]]
    problem = {key: bounds.get(key, state.get(key)) for key in _PROBLEM}
    backend = "flash" if case.fast else case.member
    length = {"total_sequence_length": state["total_sequence_length"]}
    device = {"multi_processor_count": bounds["multi_processor_count"]}
    window = {"local_window_size": bounds["local_window_size"]}
    xqa = {key: bounds[key] for key in ("device_major", "device_minor", "is_bf16")}
    kv_type, sink = bounds["xqa_kv_type"], bounds["xqa_head_sink_storage"]
    route = {
        "backend": backend,
        "preparation": {"preprocess_mode": backend, "use_flash_attention_fast_decode": case.fast},
        "xqa": {**xqa, **device, "kv_type": kv_type, "head_sink_storage": sink},
        "flash": {**length, **window, **device, "fast_decode": case.fast},
        "unfused": length,
    }
    complete, bound = _evaluators()
    needed = complete({"in": {"problem": problem, "route": route}}, "state")["out"]
    return needed, bound({"in": {"bounds": bounds}}, "state")["out"]


@pytest.mark.parametrize("name", BOUNDS)
def test_obligations_speak_of_the_functions_that_rows_are_compared_with(name):
    """What a claim shows of a state is what `eval` computes from the state's fields."""
    case, shown = _case(name), _enumerated(name).claim.shown
    for kind, count in (("near", 8), ("far", 2)):
        states = {key: column[:count] for key, column in _admitted(name, kind).items()}
        columns = dict(zip(shown, compile_numpy(tuple(shown.values()))(states), strict=True))
        for row in range(count):
            needed, bound = _evaluated(case, _state(states, row))
            said = {label: column[row] for label, column in columns.items()}
            assert (needed["status"], bound["status"]) == ("ok", "ok")
            assert needed["total_workspace_bytes"] == said["needed bytes"]
            assert bound["total_workspace_bytes"] == said["bound bytes"]
            if "separate" not in name:
                parts = needed["preparation"]["total_preparation_bytes"], needed["backend_bytes"]
                assert parts == (said["preparation bytes"], said["backend bytes"])


@pytest.mark.parametrize("name", FLASH)
def test_the_rule_that_chose_the_splits_is_the_one_of_the_model(name):
    """The heuristic as the boxes are sorted by it takes as many splits as the recipe."""
    states, (taken, rules) = _admitted(name, "idle"), _rules(name, "idle")
    for rule in RULES:
        for row in np.flatnonzero(rules[rule])[:2]:
            needed, _ = _evaluated(_case(name), _state(states, row))
            assert needed["flash"]["selected_split_count"] == taken[row]


# obligation: conditions that it cannot do without, each with a symbol that leaves it
NEEDED = {
    "mea.prompt": {
        "the bound is ok": "bound.multi_processor_count",
        "batch within its bound": "batch_size",
        "head size is a multiple of 8": "head_size",
        "prompts are reachable": "bound.prompt_reachable",
    },
    "mea.decode": {"MEA serves the node": "head_size"},
    "mea.prompt.windowed.packed": {"windowed rows are multiples of 16 bytes": "head_size"},
    "mea.decode.windowed.unpacked": {"capacity within its bound": "present_kv_cache_capacity"},
    "unfused.prompt": {
        "query length within its bound": "sequence_length",
        "head size within its bound": "head_size",
        "KV length within the capacity": "total_sequence_length",
    },
    "unfused.decode.separate-past": {
        "the route is reachable": "bound.reachable_backends.unfused",
        "KV length within the capacity": "total_sequence_length",
    },
    "flash.first": {
        "Flash serves the head size": "head_size",
        "window is none or positive": "bound.local_window_size",
        "prompts are reachable": "bound.prompt_reachable",
    },
    "flash.decode.windowed.packed": {"batch within its bound": "batch_size"},
    "flash-fast-decode.chunk": {"fast decode serves the node": "bound.use_qk_norm"},
    "flash-fast-decode.decode.local-window": {
        "KV length within the capacity": "total_sequence_length",
        "the route is reachable": "bound.reachable_backends.flash_fast_decode",
    },
    "xqa.64": {
        "device 8.0 or newer": "bound.device_major",
        "cache type fits": "bound.xqa_kv_type",
        "head sink is valid": "bound.xqa_head_sink_storage",
    },
    "xqa.256.windowed": {"capacity within its bound": "present_kv_cache_capacity"},
}
TIGHT = (
    "mea.prompt",
    "mea.decode.windowed.unpacked",
    "unfused.prompt",
    "unfused.decode.separate-past",
    "flash.first",
    "flash.decode.windowed.packed",
    "flash-fast-decode.chunk",
    "flash-fast-decode.decode.local-window",
)
SPLIT = ("flash.decode", "flash-fast-decode.decode.local-window")


def _restricted(claim, box, quantified):
    return Claim(claim.goal, {**claim.assuming, **pins(box, quantified)})


def _refuted_box(name, weakened, states, rows, axes):
    """Return the first box around the states in which a weakened obligation has a failing state."""
    boxes = _boxes(name, states, rows, most=200, axes=axes)
    stack, starts = stacked(boxes)
    admitted, holds = Enumerated(weakened).on(stack)
    failing = np.logical_or.reduceat(admitted & ~holds, starts)
    assert failing.any()
    return boxes[np.argmax(failing)]


def _assert_refuted_by_both(name, weakened, axis="batch_size", rule=None):
    """Assert it of a box around some state, one with a large value on the axis, or of a rule."""
    states = _admitted(name, "idle" if rule else "near")
    rows = [*range(40), *np.argsort(-states[axis].astype(int), kind="stable")[:20]]
    if rule:
        rows = np.flatnonzero(_rules(name, "idle")[1][rule])[:BOXES]
    box = _refuted_box(name, weakened, states, rows, (axis, "batch_size"))
    restricted = _restricted(weakened, box, _enumerated(name).symbols)
    assert decide(restricted, resources=RESOURCES).verdict == "refuted"


@pytest.mark.parametrize(
    ("name", "dropped", "axis"),
    [(name, *pair) for name, pairs in NEEDED.items() for pair in pairs.items()],
)
def test_without_a_condition_the_enumeration_and_the_decision_refute(name, dropped, axis):
    """Each condition listed is needed: a small box has a state that breaks the goal without it."""
    claim = _enumerated(name).claim
    kept = {label: one for label, one in claim.assuming.items() if label != dropped}
    assert len(kept) == len(claim.assuming) - 1
    _assert_refuted_by_both(name, Claim(claim.goal, kept), axis)


@pytest.mark.parametrize("name", TIGHT)
def test_a_bound_one_byte_short_is_refuted_by_the_enumeration_and_the_decision(name):
    """The bound is attained: at the corner of the envelope, the need is the bound."""
    claim = _enumerated(name).claim
    need, bound = claim.shown["needed bytes"], claim.shown["bound bytes"]
    if "separate" in name:
        need -= align_up(claim.shown["past bytes"], 256)
    _assert_refuted_by_both(name, Claim(need <= bound - 1, claim.assuming))


@pytest.mark.parametrize("name", SPLIT)
def test_a_bound_for_64_splits_is_refuted_by_the_enumeration_and_the_decision(name, monkeypatch):
    """The heuristic takes up to 128, so that the bound has to count them."""
    monkeypatch.setattr(level1, "split_ceiling", partial(minimum, 64))
    envelope = replace(symbols(BoundsProblem, "bound"), is_windowed_kv_cache=FALSE)
    short, claim = level1.aggregate(envelope), _enumerated(name).claim
    goal = claim.shown["needed bytes"] <= short.output.total_workspace_bytes
    weakened = Claim(goal, {**claim.assuming, "the bound is ok": short.ok})
    _assert_refuted_by_both(name, weakened, rule="capped by 128")


@pytest.mark.parametrize("name", list(dict.fromkeys((*NEEDED, *SPLIT))))
def test_on_a_box_the_decision_proves_what_the_enumeration_finds(name):
    """The obligation itself, restricted to a box, is never refuted, and proved on the first few."""
    for box in _boxes(name, _admitted(name), range(4), most=200):
        restricted = _restricted(_enumerated(name).claim, box, _enumerated(name).symbols)
        admitted, holds = Enumerated(restricted).on(stacked([box])[0])
        assert admitted.any()
        assert holds[admitted].all()
        verdict = decide(restricted, resources=RESOURCES).verdict
        if verdict != "unknown":  # what is left to the solver may be beyond its limits
            break
    assert verdict == "proved"
