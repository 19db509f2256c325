"""Small products of values around states that an obligation admits, to be tried exhaustively.

`Case` reads route, phase and cache mode from an obligation's id. `draw` draws states of such an
invocation inside its envelope; `around` makes a box of one: some symbols take the values at the
edges of the claim too (at the bound, one beyond it, zero, the other member), all others stay.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from routeproof.spec.terms import Bool, Enum, Int, any_of

ROUTES = ("mea", "unfused", "flash", "flash-fast-decode", "xqa")
_FIRST = {"prompt": None, "first": True, "single": True, "chunk": False, "decode": False}
_MEMBERS = ("xqa", "cudnn", "flash", "flash_fast_decode", "memory_efficient", "unfused")
_TOKENS = (1, 2, 3, 17, 63, 64, 65, 100, 128, 129, 500, 2048)
_CAPACITY = (1, 2, 16, 63, 64, 65, 255, 256, 257, 1000, 4096, 8192, 16_320, 32_768, 65_536)
_LONG = (64, 257, 1000, 4096, 8192, 16_320, 16_384, 24_576, 32_768, 65_536)
_DEVICE = (1, 2, 16, 46, 82, 108, 127, 128, 129, 132, 142, 144, 200, 304, 1024)
_WINDOW = (-1, -1, 1, 100, 128, 4096, 2**31 - 1)
_HEAD_SIZES = {
    "mea": (8, 16, 64, 80, 96, 128, 136, 256, 512, 1016, 1024),
    "unfused": (8, 16, 64, 80, 96, 128, 256, 1024, 1032, 4096),
    "flash": (8, 32, 40, 64, 72, 80, 96, 128, 136, 192, 248, 256),
}


@dataclass(frozen=True)
class Case:
    """What an obligation's id says: `ort.gqa.bound.<route>.<phase or head size>[.<cache mode>]`."""

    id: str

    @property
    def words(self):
        """Return the parts of the id behind `ort.gqa.bound`."""
        return self.id.split(".")[3:]

    @property
    def route(self):
        """Return the route as ids spell it."""
        return self.words[0]

    @property
    def phase(self):
        """Return the phase; XQA's is decode."""
        return "decode" if self.route == "xqa" else self.words[1]

    @property
    def fast(self):
        """Return whether the route is Flash fast decode."""
        return self.route == "flash-fast-decode"

    @property
    def one_token(self):
        """Return whether the query is a single token."""
        return self.phase in ("single", "decode")

    @property
    def first_prompt(self):
        """Return whether the prompt is the first, None where the obligation leaves it open."""
        return _FIRST[self.phase]

    @property
    def member(self):
        """Return the route as the reachable backends spell it."""
        return self.route.replace("mea", "memory_efficient").replace("-", "_")

    @property
    def head_size(self):
        """Return the only head size of the obligation, if it has one."""
        return int(self.words[1]) if self.route == "xqa" else None

    def says(self, word):
        """Return whether the id has the word, as `windowed` or `separate-past`."""
        return word in self.words


def draw(case, count, rng, *, far=False, idle=False):
    """Return columns of states that look like the case, enum members as their index.

    `far` ones lie near the machine's limits; `idle` ones have little work and a long cache.
    """

    def pick(*pool):
        return rng.choice(np.array(pool), count)

    def often(share):
        return rng.random(count) < share

    def size(*pool, up_to):
        if not far:
            return pick(*pool[: 4 if idle else None])
        return np.minimum(np.exp2(rng.random(count) * np.log2(up_to)).astype(np.int64) + 1, up_to)

    tokens = np.ones(count, int) if case.one_token else size(*_TOKENS, up_to=2**31 - 1)
    batch = size(1, 1, 1, 2, 3, 5, 8, up_to=2**24)
    capacity = pick(*_LONG) if idle else size(*_CAPACITY, up_to=2**31 - 1)
    staged = case.says("windowed") & (tokens > 1)
    visible = capacity + np.where(staged, tokens, 0)
    quantized = often(0.4) & (case.route in ("flash", "xqa"))
    bits = pick(4, 8) if case.says("packed") else pick(0, 0, 4, 8)
    bits = np.zeros(count, int) if case.says("unpacked") else bits
    if case.route == "xqa":
        bits = np.where(quantized, 8, bits)
    kind = np.where(quantized, pick(1, 2), 0)
    other_kind = kind if case.route == "xqa" else np.where(quantized, pick(0, 1, 2), 0)
    length = np.maximum(1, (visible * pick(1, 1, 1, 0.5, 0.01)).astype(int))
    length = np.minimum(length, pick(*_LONG)) if idle else length
    heads = pick(1, 1, 2) if idle else size(1, 1, 2, 3, 4, 8, up_to=65_535)
    group = pick(1, 1, 2) if idle else pick(1, 1, 2, 4, 5, 7, 8, 16, 32)
    route = case.route.removesuffix("-fast-decode")
    head = case.head_size or pick(*_HEAD_SIZES[route])
    windows = _WINDOW
    if case.fast:
        windows = _WINDOW[2:] if case.says("local-window") else _WINDOW[:1]
    separate = np.full(count, case.says("separate-past"))
    return {
        "batch_size": batch,
        "sequence_length": tokens,
        "head_size": np.broadcast_to(head, count),
        "present_kv_cache_capacity": capacity,
        "past_kv_cache_capacity": np.where(separate, capacity, 0),
        "requires_separate_past_buffer": separate,
        "is_first_prompt": often({None: 0.5, True: 1.0, False: 0.0}[case.first_prompt]),
        "total_sequence_length": length,
        "bound.qkv_element_size": np.full(count, 2),
        "bound.cache_element_size": np.where(bits > 0, 1, pick(1, 2)),
        "bound.batch_size_bound": batch + pick(0, 0, 0, 1, 3),
        "bound.sequence_length_bound": tokens + pick(0, 0, 0, 1, 64),
        "bound.num_heads": heads * group,
        "bound.kv_num_heads": heads,
        "bound.head_size_bound": head + pick(0, 0, 0, 7, 8, 64, 1000),
        "bound.present_kv_cache_capacity_bound": capacity + pick(0, 0, 0, 1, 300),
        "bound.kv_cache_bit_width": bits,
        "bound.is_windowed_kv_cache": np.full(count, case.says("windowed")),
        "bound.k_quantization": kind,
        "bound.v_quantization": other_kind,
        **{f"bound.{flag}": often(0.5) for flag in ("do_rotary", "is_packed_qkv")},
        "bound.use_qk_norm": often(0.5) & ~quantized & (not case.fast),
        **{f"bound.{phase}_reachable": often(0.8) for phase in ("prompt", "decode")},
        **{
            f"bound.reachable_backends.{member}": often(1.0 if member == case.member else 0.15)
            & (member != "cudnn")
            for member in _MEMBERS
        },
        "bound.device_major": pick(8, 9, 10),
        "bound.device_minor": pick(0, 6, 9),
        "bound.multi_processor_count": pick(*_DEVICE),
        "bound.is_bf16": often(0.5),
        "bound.xqa_kv_type": np.where(quantized, pick(1, 2), 0),
        "bound.xqa_head_sink_storage": pick(0, 1, 2),
        "bound.head_sink_may_be_prepacked": often(0.3),
        "bound.local_window_size": pick(*windows),
    }


def _beside(name, state):
    """Return the values at which the claim changes, for one integer symbol around a state."""
    value = int(state[name])
    bound = int(state.get(f"bound.{name}_bound", value))
    near = {
        "head_size": (value - 8, value + 4, value + 8, bound // 8 * 8, bound // 8 * 8 + 8),
        "total_sequence_length": (
            0,
            1,
            int(state["present_kv_cache_capacity"]),
            int(state["present_kv_cache_capacity"]) + 1,
        ),
        "bound.head_size_bound": (value - 1, value + 1, value + 8),
        "bound.num_heads": (value - 1, 2 * value, value + int(state["bound.kv_num_heads"])),
        "bound.kv_num_heads": (1, 2 * value),
        "bound.kv_cache_bit_width": (0, 4, 8),
        "bound.cache_element_size": (1, 2),
        "bound.qkv_element_size": (4,),
        "bound.local_window_size": (-1, 0, 1, value + 1),
        "bound.device_major": (7, 8, 9),
        "bound.device_minor": (-1, 0, 9),
        "past_kv_cache_capacity": (0, 1, value + 1),
    }
    return near.get(name, (1, value - 1, value + 1, bound, bound + 1))


def _choices(symbol, state, rng):
    """Return the values of one axis: the state's own and up to three others."""
    own = state[symbol.name]
    if isinstance(symbol, Bool):
        return (False, True)
    if isinstance(symbol, Enum):
        others = [code for code in range(len(symbol.members.members)) if code != own]
        return (int(own), int(rng.choice(others)))
    lowest = -1 if symbol.name.endswith(("window_size", "minor")) else 0
    beside = {int(one) for one in _beside(symbol.name, state)} - {int(own)}
    others = [one for one in sorted(beside) if one >= lowest]
    chosen = rng.choice(others, min(len(others), int(rng.integers(1, 4))), replace=False)
    return tuple(sorted({int(own), *map(int, chosen)}))


def around(symbols, state, rng, most, axes):
    """Return a box of so many states, values by name, around one; the named axes come first."""
    box = {name: (value.item(),) for name, value in state.items()}
    order = [symbols[int(index)] for index in rng.permutation(len(symbols))]
    order.sort(key=lambda symbol: axes.index(symbol.name) if symbol.name in axes else len(axes))
    count = 1
    for symbol in order:
        choices = _choices(symbol, state, rng)
        if count * len(choices) <= most:
            box[symbol.name] = choices
            count *= len(choices)
    return box


def columns_of(box):
    """Return every state of the box, a column per symbol."""
    shape = [len(one) for one in box.values()]
    places = np.unravel_index(np.arange(np.prod(shape)), shape)
    return {
        name: np.array(one)[place] for (name, one), place in zip(box.items(), places, strict=True)
    }


def stacked(boxes):
    """Return the states of all boxes below each other, and where each box begins."""
    parts = [columns_of(box) for box in boxes]
    counts = [len(next(iter(part.values()))) for part in parts]
    starts = list(itertools.accumulate(counts[:-1], initial=0))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, starts


def pins(box, symbols):
    """Return the conditions that a state is one of the box's, an interval where it is one."""
    return {f"{one.name} in the box": _pin(one, box[one.name]) for one in symbols}


def _pin(symbol, choices):
    if isinstance(symbol, Bool):
        return any_of(*(symbol if value else ~symbol for value in choices))
    if isinstance(symbol, Enum):
        return any_of(*(symbol == symbol.members.members[code] for code in choices))
    assert isinstance(symbol, Int)
    low, high = choices[0], choices[-1]
    if len(choices) == high - low + 1:
        return (symbol >= low) & (symbol <= high)
    return symbol.is_in(*choices)


def splits(case, states):
    """Return the splits that Flash takes and, by name, the rule that decided so.

    The heuristic written down once more, on columns: float32 efficiencies, a double 0.85.
    """
    tokens, length = states["sequence_length"], states["total_sequence_length"]
    capacity, window = states["present_kv_cache_capacity"], states["bound.local_window_size"]
    if case.says("windowed"):
        length = np.minimum(length, capacity + np.where(tokens > 1, tokens, 0))
    if case.fast:
        length = np.where(window > 0, np.minimum(length, window), length)
    head = states["head_size"]
    blocks = -(-length // np.select([head <= 64, head <= 128], [256, 128], 64))
    heads = states["bound.kv_num_heads" if case.fast else "bound.num_heads"]
    work = states["batch_size"] * heads * -(-tokens // 64)
    device = states["bound.multi_processor_count"]
    most = np.minimum(np.minimum(128, device), blocks)

    count = np.arange(1, 129)
    waves = (work[:, None] * count).astype(np.float32) / device[:, None].astype(np.float32)
    efficiency = waves / np.ceil(waves)
    each = -(-blocks[:, None] // count)
    fewer = -(-blocks[:, None] // np.maximum(count - 1, 1))
    tried = ((count == 1) | (each != fewer)) & (count <= most[:, None])
    best = np.max(np.where(tried, efficiency, 0), axis=1).astype(np.float64)
    good = tried & (efficiency.astype(np.float64) >= 0.85 * best[:, None])
    busy = work.astype(np.float32) >= np.float32(0.8) * device.astype(np.float32)
    taken = np.where(busy, 1, 1 + np.argmax(good, axis=1))
    rules = {
        "enough work": busy,
        "efficiency": (taken > 1) & (taken < most),
        "capped by 128": (taken == 128) & (device > 128) & (blocks > 128),
        "capped by multiprocessors": (taken == device) & (device < np.minimum(128, blocks)),
        "capped by KV blocks": (taken == blocks) & (blocks < np.minimum(128, device)),
    }
    several = (taken > 1) | busy
    return taken, {name: several & holds for name, holds in rules.items()}
