"""Random admitted Runs, drawn so that every route, cache mode and quantisation gets its share.

A Run is drawn as a question's node, device and envelope, with one state of it; the ladder has to
take the route that was drawn, and the recipe has to be ok. What the ladder refuses is drawn again.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from routeproof.models.ort.gqa import node, question
from routeproof.spec.interpret import Value

from .launch import Launch, Route
from .plan import answers

__all__ = ["Admitted", "Drawn", "admitted", "draw", "launch_of"]

_MODES: Mapping[Route, tuple[str, ...]] = {
    "xqa": ("shared", "windowed"),
    "flash": ("shared", "separate", "unshared", "windowed", "windowed"),
    "flash_fast_decode": ("shared",),
    "memory_efficient": ("shared", "separate", "unshared", "windowed", "windowed"),
    "unfused": ("shared", "separate", "unshared", "windowed", "windowed"),
}
_SHARES: tuple[Route, ...] = (
    "xqa",
    "flash",
    "flash_fast_decode",
    "memory_efficient",
    "flash",
    "unfused",
)
_STORED = (
    ("int8", "per_tensor"),
    ("int8", "per_channel"),
    ("fp8", "per_tensor"),
    ("fp8", "per_channel"),
    ("int4", "per_tensor"),
    ("int4", "per_channel"),
)
_HEADS: Mapping[Route, tuple[int, ...]] = {
    "xqa": (64, 64, 128, 256),
    "flash": (8, 32, 64, 72, 136, 192),
    "flash_fast_decode": (32, 64, 72, 136, 256),
    "memory_efficient": (8, 32, 64, 136, 160, 1024),
    "unfused": (8, 32, 40, 64, 136),
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question, one state of it, the launch that it leads to, and the recipe's answer."""

    document: Mapping[str, Any]
    state: Mapping[str, Value]
    launch: Launch
    recipe: Mapping[str, Value]


def draw(number: int, seed: int) -> Drawn:
    """The Run of that number; the same for the same seed, whatever was drawn before."""
    route = _SHARES[number % len(_SHARES)]
    for attempt in count():
        chance = random.Random(f"{seed} {number} {attempt}")  # noqa: S311 - not for secrets
        document, state = _question(route, number // len(_SHARES), chance)
        found = admitted(route, node.read(document), state)
        if not isinstance(found, str):
            return Drawn(document, state, found.launch, found.recipe)
    raise AssertionError  # the loop has no end


@dataclass(frozen=True, slots=True)
class Admitted:
    """A launch that the runtime takes, and the recipe's answer for it."""

    launch: Launch
    recipe: Mapping[str, Value]


def admitted(route: Route, asked: node.Asked, state: Mapping[str, Value]) -> Admitted | str:
    """The launch, or why there is none: the runtime takes another route, or cannot size it."""
    run = question.run_of(asked, state)
    if run.outside:
        return f"the envelope does not admit the state: {run.outside[0]}"
    ladder, classifier = (answers(one.function, one.row) for one in run.dispatch)
    if classifier["out.status"] != "ok":
        return f"the classifier refuses the Run: {classifier['out.error']}"
    if (taken := ladder[f"{run.outcome}.route"]) != route:
        return f"the ladder takes {taken}, not {route}"
    recipe = answers("ort.gqa.complete", run.recipe(route).row)
    if recipe["out.status"] != "ok":
        return f"the recipe's status is {recipe['out.status']}"
    launch = launch_of(asked, state, route)
    return launch.obstacle() or Admitted(launch, recipe)


def launch_of(asked: node.Asked, state: Mapping[str, Value], route: Route) -> Launch:
    """The launch that a state of a question leads to on a route."""
    one = asked.node
    element = one.type
    batch, tokens, total = (
        int(state[name]) for name in ("batch_size", "sequence_length", "total_sequence_length")
    )
    return Launch(
        route=route,
        batch=batch,
        tokens=tokens,
        total=total,
        heads=one.num_heads,
        kv_heads=one.kv_num_heads,
        head_size=one.head_size,
        capacity=asked.capacity,
        past_capacity=asked.past_capacity,
        multiprocessors=asked.device.sms,
        element=element,
        cache=element if one.cache == "same" else one.cache,
        k_scales=one.quantizations[0],
        v_scales=one.quantizations[1],
        first_prompt=tokens == total,
        windowed=one.windowed_cache,
        window=one.window or -1,
        rotary=one.rotary,
        packed=one.packed,
        qk_norm=one.qk_norm,
        shares_key=bool(state["past_key_shared"]),
        shares_value=bool(state["past_value_shared"]),
        softcap=one.softcap,
        smooth=one.smooth_softmax,
        sink=one.head_sink,
        bias=one.attention_bias,
        causal=one.causal,
    )


def _question(
    route: Route, turn: int, chance: random.Random
) -> tuple[dict[str, Any], dict[str, Value]]:
    """A node, a device, an envelope of one Run, and that Run."""
    mode = _MODES[route][turn % len(_MODES[route])]
    heads = _HEADS[route]
    kv_heads, group = chance.choice((1, 2, 3)), chance.choice((1, 2, 4, 5, 16))
    said: dict[str, Any] = {
        "kv_num_heads": kv_heads,
        "head_size": chance.choice(heads),
        "type": chance.choice(("fp16", "bf16")),
        "rotary": chance.random() < 0.5,
        "packed": chance.random() < 0.3,
        "qk_norm": chance.random() < 0.25,
        "causal": route == "xqa" or mode == "windowed" or chance.random() < 0.9,
    }
    if route in ("xqa", "flash") and turn % 4:
        cache, scales = chance.choice(_STORED if route == "flash" else _STORED[:4])
        group = chance.choice((4, 8)) if route == "xqa" else group
        said |= {"cache": cache, "quantization": scales, "head_size": chance.choice((64, 128))}
        said["v_quantization"] = chance.choice(("same", "per_tensor", "per_channel"))
        said["qk_norm"] = said["qk_norm"] and route == "flash"
    elif said["head_size"] > 512 or group > 8:
        kv_heads = said["kv_num_heads"] = 1
        group = 2 if said["head_size"] > 512 else group
    said["num_heads"] = kv_heads * group
    said |= _softmax(route, chance)
    tokens, total, batch = _lengths(route, chance)
    said |= _window(mode, total, chance) if said["causal"] else {}
    past = total - tokens
    capacity = total + chance.choice((0, 0, 1, 7, 30))
    held = {"shared": capacity, "windowed": said.get("window")}.get(mode, past)
    if mode == "separate":
        held = max(1, past + chance.choice((0, 0, 3, capacity)))
    document = {
        "node": said,
        "device": {
            "sm": chance.choice(("8.0", "8.9", "9.0")),
            "sms": chance.choice((8, 24, 68, 108, 188)),
        },
        "kernel_options": _options(route),
        # The older ladder decodes chunks fast, too.
        "ladder": "older" if route == "flash_fast_decode" and tokens > 1 else "newest",
        "envelope": {"batch": batch, "query": tokens, "total": total, "past_capacity": held},
    }
    shares = {"shared": (True, True), "windowed": (True, True), "unshared": (False, False)}
    key, value = shares.get(mode, chance.choice(((True, False), (False, True))))
    state: dict[str, Value] = {
        "batch_size": batch,
        "sequence_length": tokens,
        "total_sequence_length": total,
        "past_key_shared": key,
        "past_value_shared": value,
        "xqa_shared_memory_ok": True,
        "cudnn_is_stable": False,
        "cudnn_is_supported": False,
    }
    return document, state


def _softmax(route: Route, chance: random.Random) -> dict[str, Any]:
    """Softcap, sinks and bias, where the route admits them."""
    sinks = {
        "head_sink": chance.choice(("dynamic_conversion", "prepacked_fp32")),
        "smooth_softmax": True,
    }
    if route == "unfused":
        return {"softcap": chance.choice((0.0, 5.0)), "attention_bias": chance.random() < 0.5}
    said: dict[str, Any] = chance.choice(
        ({}, {}, sinks, {} if route == "xqa" else {"smooth_softmax": True})
    )
    return said if route == "xqa" else {**said, "softcap": chance.choice((0.0, 0.0, 5.0))}


def _lengths(route: Route, chance: random.Random) -> tuple[int, int, int]:
    """Query, total and batch: a first prompt, a chunk or a decode step, some of them long."""
    phase = chance.choice(("prompt", "chunk", "decode", "decode"))
    if route == "xqa" or (route == "flash_fast_decode" and phase == "prompt"):
        phase = "decode"
    most = chance.choice((24, 90, 330, 700)) if phase == "decode" else chance.choice((24, 90, 150))
    total = chance.randint(1, most)
    if phase == "decode":
        return 1, total, chance.choice((1, 1, 2, 3))
    if phase == "chunk" and total > 2:
        return chance.randint(2, total - 1), total, 1
    return total, total, chance.choice((1, 2, 3))


def _window(mode: str, total: int, chance: random.Random) -> dict[str, Any]:
    """A local window, which is what a windowed cache holds."""
    if mode == "windowed":
        return {"windowed_cache": True, "window": chance.choice((total, max(1, total // 2), 4, 16))}
    return chance.choice(({}, {}, {"window": chance.choice((1, 5, max(1, total // 2), total + 9))}))


def _options(route: Route) -> dict[str, str]:
    """Every route above the wanted one is switched off."""
    order = ("xqa", "cudnn", "flash_decode", "flash", "memory_efficient")
    wanted = {"flash_fast_decode": "flash_decode"}.get(route, route)
    above = order[: order.index(wanted)] if wanted in order else order
    return dict.fromkeys(above, "off") | {"cudnn": "off"}
