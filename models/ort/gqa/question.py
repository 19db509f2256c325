"""What `routeproof bound` asks of GroupQueryAttention: cases to maximise, rows to execute them by.

The total length is taken to live on the CPU, where the runtime classifies a Run: first prompt,
chunk (batch 1 only) or decode. Which route runs follows from the ladder with every run-time fact
free: aliasing as asked, the probes of XQA and cuDNN either way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, cast

from routeproof.spec import floats
from routeproof.spec.errors import refuse
from routeproof.spec.interpret import Value, compile_terms
from routeproof.spec.objective import Case, Domain, Execution, Fact, Lemma, Question, Run
from routeproof.spec.obligation import Claim
from routeproof.spec.program import Program
from routeproof.spec.records import flat, leaves, symbols
from routeproof.spec.terms import Enum, Int, Term, align_up, constant, ite, substitute
from routeproof.spec.text import closest

from . import ladder
from .node import Asked, read
from .objectives import BATCH, QUERY, TOTAL, objective
from .preparation import cache_row_bytes
from .problem import AGGREGATE_BACKEND, PREPROCESS_MODE, LadderFacts, Problem
from .split_work import SPLIT_WORK

__all__ = ["lemmas", "question", "regions", "run_of"]

_AXIS_NAMES = {BATCH: "batch_size", QUERY: "sequence_length", TOTAL: "total_sequence_length"}
_OUTPUT = {"older": "out", "newest": "out_newest"}
_CACHE = {"int8": ("int8", 1, 8), "fp8": ("fp8", 1, 8), "int4": ("uint8", 1, 4)}
_PARTS = ("xqa", "flash", "memory_efficient", "unfused")
_FLAGS = (
    "past_key_shared",
    "past_value_shared",
    "xqa_shared_memory_ok",
    "cudnn_is_stable",
    "cudnn_is_supported",
)
_HALVES = ("compaction_key", "compaction_value")  # of one region
_Path = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a phase on which the recipe is one formula: its name there, and the states.

    `tokens` are the query lengths that the ladder tells apart: 1, and 2 for all longer ones.
    """

    phase: str
    name: str
    domain: Domain
    tokens: tuple[int, ...] = (2,)


def question(document: Mapping[str, Any]) -> Question:
    """The cases of a SPEC.

    Raises:
        InputError: a fact is unknown, malformed or contradicts another.
    """
    asked = read(document)
    found, outcome = _Found(), _outcomes(asked)
    for part in _parts(asked):
        for run in _runs(asked):
            ends = {tokens: outcome(part, tokens, run) for tokens in part.tokens}
            if len({*ends.values()}) == 1:
                found.add(asked, part, run, *next(iter(ends.values())))
            else:
                for tokens, end in ends.items():
                    found.add(asked, _with(part, tokens), run, *end)
    if not (found.cases or found.unsized or found.errors):
        envelope = asked.envelope
        refuse(
            "envelope",
            f"batch {envelope.batch}, query {envelope.query} and total {envelope.total} admit no "
            "Run: several tokens after a first prompt need batch 1",
        )
    for alias in dict.fromkeys(map(_alias, _runs(asked))) if _has_refused(asked) else ():
        found.errors["chunk", "batch_size_must_be_1", alias] = None
    return Question(
        facts=(*asked.facts, *_derived(asked)),
        conditional_on=_declared(asked),
        cases=tuple(found.cases.values()),
        references=found.references,
        unsized=tuple(found.unsized),
        errors=tuple(found.errors),
        structural=partial(_structural, asked),
        closed=partial(_closed, asked),
        preserved=partial(_preserved, asked),
        regions=regions,
        run=partial(run_of, asked),
        lemmas=lemmas(asked.ladder),
    )


@cache
def _with(part: _Part, tokens: int) -> _Part:
    """The part of a first prompt with one token, or with several."""
    low, high = part.domain.ranges[QUERY]
    ends = (1, 1) if tokens == 1 else (max(low, 2), high)
    ranges = {**part.domain.ranges, QUERY: ends, TOTAL: ends}
    return replace(part, domain=Domain(ranges, part.domain.equal), tokens=(tokens,))


class _Found:
    """What the parts and runs lead to, each outcome once."""

    def __init__(self) -> None:
        self.cases: dict[tuple[_Path, _Part], Case] = {}
        self.references: dict[tuple[str, str], tuple[Case, ...]] = {}
        self.unsized: dict[_Path, None] = {}
        self.errors: dict[_Path, None] = {}
        self._seen: set[tuple[_Part, str]] = set()

    def add(
        self, asked: Asked, part: _Part, run: Mapping[str, Value], route: str, error: str
    ) -> None:
        """What one part of a phase leads to under one combination of run-time facts."""
        alias = _alias(run)
        place = (part.phase, error if route == "error" else route, alias)
        if route == "error":
            self.errors[place] = None
            return
        if route == "cudnn":
            self.unsized[place] = None
        else:
            self.cases.setdefault((place, part), _case(asked, part, run, route))
        if (part, alias) not in self._seen:
            self._seen.add((part, alias))
            reference = _case(asked, part, run, "unfused")
            key = (part.phase, alias)
            self.references[key] = (*self.references.get(key, ()), reference)


@cache
def lemmas(revision: str) -> tuple[Lemma, ...]:
    """That 2 tokens stand for any longer query wherever a route is chosen."""
    facts, ends = symbols(LadderFacts), _ends(revision)
    length, new = facts.sequence_length, facts.kv_sequence_length
    few: dict[Term, Term] = {
        length: ite(length == 1, 1, 2),
        new: ite(new == 0, 0, ite(length == 1, 1, 2)),
    }
    claim = Claim(
        {
            name: one == cast("Enum", two)
            for name, one, two in zip(("route", "error"), ends, substitute(ends, few), strict=True)
        },
        {"there is a token": length >= 1, "no negative length": new >= 0},
    )
    return (Lemma(f"{revision} ladder: the route depends on one token or several", claim),)


def _parts(asked: Asked) -> Iterator[_Part]:
    """The phases in the order of a session, cut where the recipe is another formula."""
    envelope = asked.envelope
    batch = (envelope.batch.low, envelope.batch.high)
    query, total = envelope.query, envelope.total
    low, high = max(query.low, total.low), min(query.high, total.high)
    if low == 1 and asked.node.windowed_cache:
        yield _Part("prefill", "single", Domain({BATCH: batch, TOTAL: (1, 1)}), (1,))
        low = 2
    if low <= high:
        ranges = {BATCH: batch, QUERY: (low, high), TOTAL: (low, high)}
        tokens = (*[1] * (low == 1), *[2] * (high > 1))
        yield _Part("prefill", "first", Domain(ranges, equal=(QUERY, TOTAL)), tokens)
    if envelope.batch.low == 1:
        yield from _chunks(asked)
    if query.low == 1 and total.high >= 2:
        ranges = {BATCH: batch, TOTAL: (max(2, total.low), total.high)}
        yield _Part("decode", "decode", Domain(ranges), (1,))


def _chunks(asked: Asked) -> Iterator[_Part]:
    """Several tokens, not the whole sequence: fewer than it, or more where that is admitted."""
    query, total = asked.envelope.query, asked.envelope.total
    few = max(2, query.low)
    below = ((few, min(query.high, total.high - 1)), (max(total.low, few + 1), total.high))
    above = ((max(few, total.low + 1), query.high), (total.low, min(total.high, query.high - 1)))
    orders = [(below, (QUERY, TOTAL))]
    if asked.envelope.allow_query_above_total:
        orders.append((above, (TOTAL, QUERY)))
    for (lengths, totals), less in orders:
        if lengths[0] <= lengths[1] and totals[0] <= totals[1]:
            ranges = {BATCH: (1, 1), QUERY: lengths, TOTAL: totals}
            yield _Part("chunk", "chunk", Domain(ranges, less=less))


def _has_refused(asked: Asked) -> bool:
    """Whether some Run is a chunk of several rows, which the classifier refuses."""
    return asked.envelope.batch.high > 1 and any(True for _ in _chunks(asked))


def _runs(asked: Asked) -> Iterator[Mapping[str, Value]]:
    """Every combination of the run-time facts beside the lengths, defaults first."""
    for values in itertools.product((True, False), repeat=len(_FLAGS)):
        run: dict[str, Value] = dict(zip(_FLAGS, values, strict=True))
        alias = _alias(run)
        if asked.alias in ("any", alias) and (asked.past_capacity or alias == "none"):
            yield run


def _alias(run: Mapping[str, Value]) -> str:
    shared = int(bool(run["past_key_shared"])) + int(bool(run["past_value_shared"]))
    return ("none", "one", "both")[shared]


@cache
def _ends(revision: str) -> tuple[Enum, Enum]:
    """The route that a Run takes and the error it ends in, as terms over the ladder's facts."""
    found = ladder.outcome(ladder.ladders()[revision])
    return found.route, found.error


def _outcomes(asked: Asked) -> Callable[[_Part, int, Mapping[str, Value]], tuple[str, str]]:
    """The route of a Run, and the error if that is `error`, on this node and device."""
    static = {
        name: value
        for name, value in _ladder_row(asked, False, 1, {}).items()
        if name not in ladder.RUNTIME_FACTS
    }
    facts = {one: constant(one, static[one.name]) for one in _symbols(static)}
    program = compile_terms(substitute(_ends(asked.ladder), facts))

    def outcome(part: _Part, tokens: int, run: Mapping[str, Value]) -> tuple[str, str]:
        route, error = program(_ladder_row(asked, part.phase == "prefill", tokens, run))
        return str(route), str(error)

    return outcome


def _symbols(names: Collection[str]) -> Iterator[Term]:
    return (one for name, one in leaves(symbols(LadderFacts)).items() if name in names)


def _case(asked: Asked, part: _Part, run: Mapping[str, Value], route: str) -> Case:
    separate, prefill = _is_separate(asked, run), part.phase == "prefill"
    facts = flat(_complete_row(asked, route, (1, 1, 1), prefill=prefill, separate=separate))

    def execute(state: Mapping[Int, int]) -> tuple[Execution, ...]:
        found = run_of(asked, {n: state.get(axis, 1) for axis, n in _AXIS_NAMES.items()} | {**run})
        rung, phase = found.dispatch
        said = {
            "out.is_first_prompt": prefill,
            "out.is_subsequent_prompt": part.phase == "chunk",
        }
        return (
            replace(found.recipe(route), answers={"out.status": "ok"}),
            replace(rung, answers={f"{found.outcome}.route": route}),
            replace(phase, answers={**phase.answers, **said}),
        )

    return Case(
        phase=part.phase,
        route=route,
        alias=_alias(run),
        objective=objective(
            route, part.name, windowed=asked.node.windowed_cache, separate=separate
        ),
        domain=part.domain,
        facts=facts,
        runtime=run,
        names=_AXIS_NAMES,
        execute=execute,
    )


def _is_separate(asked: Asked, run: Mapping[str, Value]) -> bool:
    """Whether a half aliased pair keeps its past tensor; a windowed cache has none to keep."""
    return _alias(run) == "one" and not asked.node.windowed_cache


def run_of(asked: Asked, state: Mapping[str, Value]) -> Run:
    """Any Run of the node: a batch, a query and a total length, and every run-time fact.

    Raises:
        InputError: the state has other names, or values of another kind.
    """
    _check_state(state)
    batch, query, total = (int(state[name]) for name in _AXIS_NAMES.values())
    lengths = (batch, query, total)
    run = {name: value for name, value in state.items() if name not in _AXIS_NAMES.values()}
    prefill, separate = query == total, _is_separate(asked, run)

    def recipe(route: str) -> Execution:
        row = _complete_row(asked, route, lengths, prefill=prefill, separate=separate)
        return Execution("ort.gqa.complete", row, {})

    return Run(
        dispatch=(
            Execution("ort.gqa.ladder", _ladder_row(asked, prefill, query, run), {}),
            Execution(
                "ort.gqa.classifier",
                _classifier_row(lengths),
                {"out.status": "ok", "out.is_first_prompt": prefill},
            ),
        ),
        outcome=_OUTPUT[asked.ladder],
        recipe=recipe,
        outside=tuple(_outside(asked, lengths, _alias(run))),
    )


def _check_state(state: Mapping[str, Value]) -> None:
    kinds: dict[str, type] = dict.fromkeys(_AXIS_NAMES.values(), int) | dict.fromkeys(_FLAGS, bool)
    for name in state:
        if name not in kinds:
            refuse(f"state.{name}", f"is nothing of a Run{closest(name, list(kinds))}")
    for name in kinds:
        if type(state.get(name)) is not kinds.get(name):
            refuse(f"state.{name}", f"a Run has {', '.join(kinds)}, got {state.get(name)!r}")


def _outside(asked: Asked, lengths: tuple[int, int, int], alias: str) -> Iterator[str]:
    """What the envelope does not admit of a Run."""
    envelope = asked.envelope
    ranges = (("batch", envelope.batch), ("query", envelope.query), ("total", envelope.total))
    for (name, admitted), value in zip(ranges, lengths, strict=True):
        if not admitted.low <= value <= admitted.high:
            yield f"{name} {value:,} is not in {admitted}"
    if lengths[1] > lengths[2] and not envelope.allow_query_above_total:
        yield "query above total"
    if asked.alias not in ("any", alias):
        yield f"alias {alias} is not {asked.alias}"
    if alias != "none" and not asked.past_capacity:
        yield f"alias {alias} without a past"


def _storage(asked: Asked) -> tuple[str, int, int]:
    """The cache's type, bytes per element and bits of a packed row."""
    cache = asked.node.cache
    return _CACHE.get(cache, (asked.node.type if cache == "same" else cache, 2, 0))


def _complete_row(
    asked: Asked, route: str, lengths: tuple[int, int, int], *, prefill: bool, separate: bool
) -> dict[str, Any]:
    """The input of `ort.gqa.complete` for a batch, a query and a total length."""
    node, device = asked.node, asked.device
    batch, query, total = lengths
    _, size, bits = _storage(asked)
    major, minor = device.capability
    backend, fast = route.removesuffix("_fast_decode"), route == "flash_fast_decode"
    mode = backend if backend in PREPROCESS_MODE.members else "invalid"
    window = node.window or -1
    return {
        "problem": {
            "qkv_element_size": 2,
            "cache_element_size": size,
            "batch_size": batch,
            "sequence_length": query,
            "num_heads": node.num_heads,
            "kv_num_heads": node.kv_num_heads,
            "head_size": node.head_size,
            "present_kv_cache_capacity": asked.capacity,
            "past_kv_cache_capacity": asked.past_capacity,
            "kv_cache_bit_width": bits,
            "k_quantization": node.quantizations[0],
            "v_quantization": node.quantizations[1],
            "is_windowed_kv_cache": node.windowed_cache,
            "is_first_prompt": prefill,
            "do_rotary": node.rotary,
            "is_packed_qkv": node.packed,
            "use_qk_norm": node.qk_norm,
            "requires_separate_past_buffer": separate,
        },
        "route": {
            "backend": backend,
            "preparation": {"preprocess_mode": mode, "use_flash_attention_fast_decode": fast},
            "xqa": {
                "device_major": major,
                "device_minor": minor,
                "multi_processor_count": device.sms,
                "kv_type": _kv_type(asked),
                "head_sink_storage": node.head_sink,
                "is_bf16": node.type == "bf16",
            },
            "flash": {
                "total_sequence_length": total,
                "local_window_size": window,
                "multi_processor_count": device.sms,
                "fast_decode": fast,
            },
            "unfused": {"total_sequence_length": total},
        },
    }


def _kv_type(asked: Asked) -> str:
    """The cache's type as XQA names it; it has no name for 4 bits."""
    return {"int8": "int8", "fp8": "fp8"}.get(asked.node.cache, "none")


def _ladder_row(
    asked: Asked, prefill: bool, query: int, run: Mapping[str, Value]
) -> dict[str, Value]:
    """The input of `ort.gqa.ladder`."""
    node, options = asked.node, asked.options
    major, minor = asked.device.capability
    return {
        "element_type": node.type,
        "cache_type": _storage(asked)[0],
        "k_quant_type": node.quantizations[0],
        "v_quant_type": node.quantizations[1],
        "kv_scales_same_tensor": node.same_scale_tensor,
        "enable_xqa": options.xqa == "on",
        "is_unidirectional": node.causal,
        "has_attention_bias": node.attention_bias,
        "device_major": major,
        "device_minor": minor,
        "is_first_prompt": prefill,
        "sequence_length": query,
        "kv_sequence_length": query if node.new_kv else 0,
        "softcap": floats.round_to(node.softcap, 32),
        "use_qk_norm": node.qk_norm,
        "smooth_softmax": node.smooth_softmax,
        "has_head_sink": node.head_sink != "none",
        "num_heads": node.num_heads,
        "kv_num_heads": node.kv_num_heads,
        "head_size": node.head_size,
        "local_window_size": node.window or -1,
        "past_kv_format_bnsh": True,
        "enable_cudnn_flash_attention": options.cudnn == "on",
        "auto_enable_cudnn_flash_attention": options.cudnn == "auto",
        "disable_flash_attention": options.flash == "off",
        "disable_flash_decode": options.flash_decode == "off",
        "disable_memory_efficient_attention": options.memory_efficient == "off",
        "is_windowed_kv_cache": node.windowed_cache,
        **run,
    }


def _classifier_row(lengths: tuple[int, int, int]) -> dict[str, Value]:
    batch, query, total = lengths
    return {
        "batch_size": batch,
        "sequence_length": query,
        "total_sequence_length": total,
        "total_sequence_length_on_cpu": True,
        "has_past": query < total,
        "past_sequence_length": max(0, total - query),
    }


def _structural(asked: Asked, routes: frozenset[str]) -> Execution:
    """The aggregate over a set of routes, as the estimator computes it for this envelope."""
    return Execution("ort.gqa.bounds", {"bounds": _bounds(asked, routes)}, {"out.status": "ok"})


def _closed(asked: Asked, routes: frozenset[str]) -> Execution | None:
    """The same with Flash's accumulators in closed form, where the device is in its table."""
    peak = SPLIT_WORK.get(asked.device.sms)
    row = {
        "bounds": _bounds(asked, routes),
        "split_work": peak.split_work if peak else 0,
        "fast_decode_is_one_token": asked.ladder == "newest",
    }
    return Execution("ort.gqa.closed_bounds", row, {"out.status": "ok"}) if peak else None


def _bounds(asked: Asked, routes: frozenset[str]) -> dict[str, Any]:
    """What an estimator knows: upper bounds, facts, phases and reachable routes."""
    node, envelope = asked.node, asked.envelope
    _, size, bits = _storage(asked)
    major, minor = asked.device.capability
    phases = {part.phase for part in _parts(asked)}
    return {
        "qkv_element_size": 2,
        "cache_element_size": size,
        "batch_size_bound": envelope.batch.high,
        "sequence_length_bound": envelope.query.high,
        "num_heads": node.num_heads,
        "kv_num_heads": node.kv_num_heads,
        "head_size_bound": node.head_size,
        "present_kv_cache_capacity_bound": asked.capacity,
        "kv_cache_bit_width": bits,
        "k_quantization": node.quantizations[0],
        "v_quantization": node.quantizations[1],
        "is_windowed_kv_cache": node.windowed_cache,
        "do_rotary": node.rotary,
        "is_packed_qkv": node.packed,
        "use_qk_norm": node.qk_norm,
        "prompt_reachable": bool(phases & {"prefill", "chunk"}),
        "decode_reachable": "decode" in phases,
        "reachable_backends": [one for one in AGGREGATE_BACKEND.members if one in routes],
        "device_major": major,
        "device_minor": minor,
        "multi_processor_count": asked.device.sms,
        "is_bf16": node.type == "bf16",
        "xqa_kv_type": _kv_type(asked),
        "xqa_head_sink_storage": node.head_sink,
        "head_sink_may_be_prepacked": node.head_sink == "prepacked_fp32",
        "local_window_size": node.window or -1,
    }


def _preserved(asked: Asked, alias: str) -> int:
    """Bytes that the adapter adds for the past tensor of a half aliased pair.

    Rounded up to 256, because the next region starts there; the sources do not say whether the
    adapter rounds, and without it the sum can be less than the recipe.
    """
    if alias != "one" or asked.node.windowed_cache:
        return 0
    lengths = (asked.envelope.batch.high, 1, 1)
    row = _complete_row(asked, "unfused", lengths, prefill=False, separate=True)
    return int(_past()(row["problem"])[0])


@cache
def _past() -> Program[Value]:
    """Bytes of the past tensor as preparation preserves it, padded."""
    problem = symbols(Problem)
    heads = problem.batch_size * problem.kv_num_heads
    tensor = heads * problem.past_kv_cache_capacity * cache_row_bytes(problem)
    return compile_terms((align_up(tensor, 256),))


def regions(output: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Name, offset and size (bytes) of every region that an executed recipe has."""
    out = output["out"]
    parts = [("preparation", out["preparation"], 0)]
    parts += [(name, out[name], out["backend_offset_bytes"]) for name in _PARTS]
    found = [
        (f"{part}.{key.removesuffix('_offset_bytes')}", start + offset, size)
        for part, layout, start in parts
        for key, offset in layout.items()
        if key.endswith("_offset_bytes")
        and not key.startswith(_HALVES)
        and (size := layout[key.replace("_offset_bytes", "_bytes")])
    ]
    return sorted(found, key=lambda region: region[1])


def _derived(asked: Asked) -> tuple[Fact, ...]:
    """What follows from the facts and is no field of its own."""
    return (
        Fact("envelope", "past_capacity", asked.past_capacity, "used"),
        Fact("envelope", "present_capacity", asked.capacity, "used"),
        Fact("run", "total_length_on", "cpu", "assumed"),
        Fact("run", "past_format", "bnsh", "assumed"),
    )


def _declared(asked: Asked) -> tuple[str, ...]:
    """The ranges that nothing enforces, which the answer is conditional on."""
    envelope = asked.envelope
    enforced = {one.strip() for one in envelope.enforced.split(",")}
    found = [
        f"{name} {getattr(envelope, name)}"
        for name in ("batch", "query", "total")
        if name not in enforced
    ]
    order = () if envelope.allow_query_above_total else ("query <= total",)
    return (*found, *order)
