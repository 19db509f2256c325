"""One GroupQueryAttention node in one envelope, as `routeproof bound` is asked about it.

This is a plain reader of documents and options, in front of the terms. Defaults are those of the
operator (contrib operator `com.microsoft.GroupQueryAttention`), except that rotary embedding is on,
as in nearly every published model; each is printed with the answer. XQA and cuDNN are taken as the
runtime takes them: XQA on where it is eligible, cuDNN on its own where the device is 9.0 or later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from routeproof.models import presets
from routeproof.models.facts import INT32_MAX, Range, read_facts
from routeproof.spec import floats
from routeproof.spec.errors import refuse
from routeproof.spec.objective import Fact
from routeproof.spec.text import closest

__all__ = ["Asked", "Device", "Envelope", "KernelOptions", "Node", "read"]

Alias = Literal["both", "none", "one", "any"]
OnOff = Literal["on", "off"]
Quantization = Literal["none", "per_tensor", "per_channel"]
_ALIASES = ("both", "none", "one", "any")
_AXES = ("batch", "query", "total")


@dataclass(frozen=True, slots=True)
class Node:
    """What the graph says of the node (sizes in elements, window in tokens)."""

    num_heads: int
    kv_num_heads: int
    head_size: int
    type: Literal["fp16", "bf16"] = "fp16"
    cache: Literal["same", "fp16", "bf16", "int8", "fp8", "int4"] = "same"
    quantization: Quantization = "none"
    v_quantization: Literal["same", "none", "per_tensor", "per_channel"] = "same"
    same_scale_tensor: bool = False
    rotary: bool = True
    packed: bool = False
    qk_norm: bool = False
    window: int | None = None
    windowed_cache: bool = False
    softcap: float = 0.0
    smooth_softmax: bool = False
    head_sink: Literal["none", "dynamic_conversion", "prepacked_fp32"] = "none"
    attention_bias: bool = False
    causal: bool = True
    new_kv: bool = True

    @property
    def quantizations(self) -> tuple[str, str]:
        """Those of K and V; V's is K's where nothing else is said."""
        value = self.v_quantization
        return self.quantization, self.quantization if value == "same" else value


@dataclass(frozen=True, slots=True)
class Device:
    """Compute capability and multiprocessors."""

    sm: str
    sms: int

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor version."""
        major, _, minor = self.sm.partition(".")
        return int(major), int(minor or 0)


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """Which kernels the session and the environment allow."""

    xqa: OnOff = "on"
    cudnn: Literal["on", "off", "auto"] = "auto"
    flash: OnOff = "on"
    flash_decode: OnOff = "on"
    memory_efficient: OnOff = "on"


@dataclass(frozen=True, slots=True)
class Envelope:
    """The admitted Runs (rows, tokens): every combination within the ranges.

    `enforced` names the ranges that the runtime rejects Runs outside of; the others are declared
    only, and the answer is conditional on them.
    """

    batch: Range
    query: Range
    total: Range
    past_capacity: int | None = None
    allow_query_above_total: bool = False
    enforced: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A whole question, every default filled in."""

    node: Node
    device: Device
    options: KernelOptions
    envelope: Envelope
    ladder: str
    alias: Alias
    facts: tuple[Fact, ...] = field(default=())

    @property
    def past_capacity(self) -> int:
        """Tokens that the past tensors hold: the upper total, or a windowed cache's window."""
        given, node = self.envelope.past_capacity, self.node
        if given is not None:
            return given
        return node.window or 0 if node.windowed_cache else self.envelope.total.high

    @property
    def capacity(self) -> int:
        """Tokens that the present tensors hold."""
        if self.node.windowed_cache:
            return self.past_capacity
        return max(self.past_capacity, self.envelope.total.high)


def read(document: Mapping[str, Any]) -> Asked:
    """The question that a SPEC asks; a contradiction is an error that names the facts."""
    sections = ("node", "device", "envelope", "kernel_options", "ladder", "alias")
    for key in document:
        if key not in sections:
            refuse("SPEC", f"unknown section {key!r}{closest(str(key), sections)}")
    node, node_facts = _read_node(document.get("node", {}))
    device, device_facts = _read_device(document.get("device", {}))
    options, option_facts = read_facts(
        KernelOptions, document.get("kernel_options", {}), "kernel_options", {}, ""
    )
    envelope, envelope_facts = read_facts(
        Envelope, document.get("envelope", {}), "envelope", {"batch": Range(1, 1)}, "default"
    )
    ladder = _one_of("ladder", document.get("ladder", "newest"), ("newest", "older"))
    alias: Any = _one_of("alias", document.get("alias", "any"), _ALIASES)
    run_facts = tuple(
        Fact("run", name, value, "given" if name in document else "default")
        for name, value in (("ladder", ladder), ("alias", alias))
    )
    facts = (*node_facts, *device_facts, *option_facts, *envelope_facts, *run_facts)
    asked = Asked(node, device, options, envelope, ladder, alias, facts)
    _check_node(node)
    _check_envelope(asked)
    return asked


def _one_of(name: str, given: object, allowed: tuple[str, ...]) -> str:
    if given not in allowed:
        hint = closest(given, allowed).partition("; known")[0] if isinstance(given, str) else ""
        refuse(name, f"{given!r} is not one of {', '.join(allowed)}{hint}")
    return str(given)


def _read_node(given: Any) -> tuple[Node, tuple[Fact, ...]]:  # noqa: ANN401 - a document's value
    given, preset = _preset(given, "node")
    if preset is None:
        return read_facts(Node, given, "node", {}, "")
    entry = presets.find("models", preset)
    known = {name: entry[name] for name in ("num_heads", "kv_num_heads", "head_size")}
    if entry["local_window_size"]:
        known["window"] = entry["local_window_size"]
    known |= {"qk_norm": True} if entry.get("qk_norm") else {}
    known |= {"head_sink": "dynamic_conversion"} if entry.get("head_sink") else {}
    node, facts = read_facts(Node, given, "node", known, f"preset {entry['name']}")
    layers, windowed = entry["layers"], entry["windowed_layers"]
    said = Fact("node", "preset", entry["name"], str(entry["source"]))
    part = f"the windowed layers, {windowed} of {layers}; window=none asks of the others"
    is_mixed = 0 < windowed < layers and "window" not in given
    some = (Fact("node", "layers", part, "preset"),) if is_mixed else ()
    return node, (said, *some, *facts)


def _read_device(given: Any) -> tuple[Device, tuple[Fact, ...]]:  # noqa: ANN401 - as above
    given, preset = _preset(given, "device")
    known: dict[str, Any] = {}
    said: tuple[Fact, ...] = ()
    origin = ""
    if preset is not None:
        entry = presets.find("devices", preset)
        major, minor = (entry[f"compute_capability_{part}"] for part in ("major", "minor"))
        known = {"sm": f"{major}.{minor}", "sms": entry["multi_processor_count"]}
        said = (Fact("device", "preset", entry["name"], str(entry["source"])),)
        origin = f"preset {entry['name']}"
    if isinstance(given.get("sm"), int | float) and not isinstance(given["sm"], bool):
        given = {**given, "sm": f"{float(given['sm'])}"}
    device, facts = read_facts(Device, given, "device", known, origin)
    if not re.fullmatch(r"\d{1,3}(\.\d)?", device.sm):
        refuse("device.sm", f"expected a compute capability such as 8.0, got {device.sm!r}")
    if device.sms < 1:
        refuse("device.sms", "a device has at least one multiprocessor")
    return device, (*said, *facts)


def _preset(given: Any, section: str) -> tuple[dict[str, Any], str | None]:  # noqa: ANN401
    """The facts without the preset's name, and that name; a section may be a name alone."""
    if isinstance(given, str):
        return {}, given
    if not isinstance(given, Mapping):
        refuse(section, f"expected a preset's name or a table of facts, got {given!r}")
    rest = {key: value for key, value in given.items() if key != "preset"}
    name = given.get("preset")
    if name is not None and not isinstance(name, str):
        refuse(f"{section}.preset", f"expected a name, got {name!r}")
    return rest, name


def _check_node(node: Node) -> None:
    for name in ("num_heads", "kv_num_heads", "head_size"):
        if getattr(node, name) < 1:
            refuse(f"node.{name}", "is at least 1")
    if node.num_heads % node.kv_num_heads:
        refuse(
            "node",
            f"num_heads {node.num_heads} is no multiple of kv_num_heads {node.kv_num_heads}",
        )
    is_quantized = any(one != "none" for one in node.quantizations)
    if is_quantized != (node.cache in ("int8", "fp8", "int4")):
        refuse(
            "node",
            f"cache {node.cache!r} contradicts quantization {node.quantization!r} and "
            f"v_quantization {node.v_quantization!r}: a cache of int8, fp8 or int4 has scales, and "
            "no other has",
        )
    if node.same_scale_tensor and (not is_quantized or len(set(node.quantizations)) > 1):
        refuse("node", "same_scale_tensor is on, but K and V are not quantised alike")
    if node.packed and not node.new_kv:
        refuse("node", "packed is on, but new_kv is off: packed QKV brings new K and V")
    if not math.isfinite(floats.round_to(node.softcap, 32)) or node.softcap < 0:
        refuse("node.softcap", f"{node.softcap} is no cap in float32")
    if node.window is not None and node.window < 1:
        refuse("node.window", "a window holds at least one token; none is no window")
    if node.windowed_cache and node.window is None:
        refuse("node", "windowed_cache is on, but window is none")


def _check_envelope(asked: Asked) -> None:
    envelope, node = asked.envelope, asked.node
    named = [one.strip() for one in envelope.enforced.split(",") if one.strip()]
    for one in named:
        if one not in _AXES:
            refuse("envelope.enforced", f"{one!r} is not one of {', '.join(_AXES)}")
    query, total = envelope.query, envelope.total
    if not envelope.allow_query_above_total and query.low > total.high:
        refuse(
            "envelope",
            f"query {query} and total {total} admit no Run: query <= total is part of the "
            "envelope, unless allow_query_above_total is on",
        )
    if node.windowed_cache and asked.past_capacity != node.window:
        refuse(
            "envelope",
            f"past_capacity {asked.past_capacity} contradicts node.window {node.window}: "
            "a windowed cache holds its window",
        )
    if asked.alias in ("both", "one") and asked.past_capacity == 0:
        refuse(
            "envelope",
            f"alias {asked.alias!r} contradicts past_capacity 0: there is no past to share",
        )
    if asked.capacity > INT32_MAX:
        refuse("envelope", f"the capacity {asked.capacity} is beyond {INT32_MAX}")
