"""One launch of GroupQueryAttention as its kernels see it: extents, types, features, no sizes.

Kernels derive from this what their loops need; what the recipe says about it is in `plan.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from routeproof.kernels_ref.formats import Cache, Element, Format, element_format, row_bytes

__all__ = ["ROUTES", "Launch", "Route", "from_recipe_row"]

Route = Literal["xqa", "flash", "flash_fast_decode", "memory_efficient", "unfused"]
ROUTES: tuple[Route, ...] = ("xqa", "flash", "flash_fast_decode", "memory_efficient", "unfused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Extents in elements or tokens; `window` is -1 for none.

    `tokens` are the query's, `total` the longest sequence with them, `capacity` and
    `past_capacity` what the present and the past tensors hold.
    """

    route: Route
    batch: int
    tokens: int
    total: int
    heads: int
    kv_heads: int
    head_size: int
    capacity: int
    past_capacity: int
    multiprocessors: int
    element: Element = "fp16"
    cache: Cache = "fp16"
    k_scales: str = "none"
    v_scales: str = "none"
    first_prompt: bool = False
    windowed: bool = False
    window: int = -1
    rotary: bool = False
    packed: bool = False
    qk_norm: bool = False
    shares_key: bool = True
    shares_value: bool = True
    softcap: float = 0.0
    smooth: bool = False
    sink: str = "none"
    bias: bool = False
    causal: bool = True

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.heads // self.kv_heads

    @property
    def quantized(self) -> bool:
        """K or V has scales."""
        return self.k_scales != "none" or self.v_scales != "none"

    @property
    def shared(self) -> bool:
        """Past and present are one buffer, for K and for V."""
        return self.shares_key and self.shares_value

    @property
    def stages(self) -> bool:
        """A windowed cache takes several tokens: they are appended to a copy."""
        return self.windowed and self.tokens > 1

    @property
    def visible(self) -> int:
        """Tokens that the cache which attention reads can hold."""
        return self.capacity + self.tokens if self.stages else self.capacity

    @property
    def storage(self) -> Format:
        """How Q, K and V lie in memory."""
        return element_format(self.element)

    @property
    def row(self) -> int:
        """Bytes of one token of one head in the cache."""
        return row_bytes(self.cache, self.head_size)

    @property
    def fast(self) -> bool:
        """Flash reads K and V from the cache in place."""
        return self.route == "flash_fast_decode"

    @property
    def mode(self) -> str:
        """How past and present lie in memory."""
        if self.windowed:
            return "windowed, staged" if self.stages else "windowed, compacted"
        if self.shared:
            return "shared"
        return "one pair shared" if self.shares_key or self.shares_value else "separate"

    def __str__(self) -> str:
        """The extents in a line."""
        return (
            f"{self.route}: batch {self.batch:,}, {self.tokens:,} of {self.total:,} tokens, "
            f"{self.heads:,} heads over {self.kv_heads:,}, head size {self.head_size:,}, "
            f"capacity {self.capacity:,}, {self.multiprocessors:,} multiprocessors"
        )

    def obstacle(self) -> str:
        """Why no Run is like this, or nothing: a recipe also answers for launches that cannot be.

        What is refused here is meaningless to execute, whatever its bytes.
        """
        past = self.total - self.tokens
        reasons = {
            f"{self.total:,} tokens do not fit a cache of {self.capacity:,}": not self.windowed
            and self.total > self.capacity,
            "a query is longer than its sequence": past < 0,
            "a first prompt has a past": self.first_prompt and past > 0,
            f"a past of {past:,} tokens does not fit {self.past_capacity:,}": not self.windowed
            and past > self.past_capacity,
            "a shared cache has two capacities": self.shared
            and self.past_capacity > 0
            and self.past_capacity != self.capacity,
            "K and V are not quantised alike": len(
                {self.k_scales == "none", self.v_scales == "none"}
            )
            > 1,
            "the cache's type contradicts its scales": self.quantized
            == (self.cache in ("fp16", "bf16")),
            "two 4-bit values make a byte": self.cache == "int4" and self.head_size % 2 > 0,
            "half of a head is rotated against the other": self.rotary and self.head_size % 2 > 0,
            "a windowed cache holds less than the window": self.windowed
            and not 0 < self.window <= self.capacity,
            "the window is not causal": self.window > 0 and not self.causal,
            "a windowed cache has no attention bias": self.windowed and self.bias,
            "only the unfused route has an attention bias": self.bias and self.route != "unfused",
            "the unfused route has no smooth softmax": self.route == "unfused"
            and (self.smooth or self.sink != "none"),
            "several tokens behind a past need batch 1": self.tokens > 1
            and past > 0
            and self.batch > 1,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")


def from_recipe_row(row: Mapping[str, Any]) -> Launch:
    """The launch that a row of `ort.gqa.complete` sizes; what the row does not say is plain.

    The row has no T for XQA and MEA: their cache is taken to be full. K and V share their buffers
    with the past wherever the route or the cache asks for it, or the row names no other past.
    """
    problem, route = row["problem"], row["route"]
    fast = route["preparation"]["use_flash_attention_fast_decode"]
    name = cast("Route", "flash_fast_decode" if fast else route["backend"])
    capacity, past = problem["present_kv_cache_capacity"], problem["past_kv_cache_capacity"]
    windowed, separate = problem["is_windowed_kv_cache"], problem["requires_separate_past_buffer"]
    whole = windowed or name in ("xqa", "flash_fast_decode") or past in (0, capacity)
    lengths = {
        "flash": route["flash"]["total_sequence_length"],
        "flash_fast_decode": route["flash"]["total_sequence_length"],
        "unfused": route["unfused"]["total_sequence_length"],
    }
    first, tokens = problem["is_first_prompt"], problem["sequence_length"]
    sink = route["xqa"]["head_sink_storage"] if name == "xqa" else "none"
    window = route["flash"]["local_window_size"] if name.startswith("flash") else -1
    return Launch(
        route=name,
        batch=problem["batch_size"],
        tokens=tokens,
        total=lengths.get(name, tokens if first else max(capacity, tokens)),
        heads=problem["num_heads"],
        kv_heads=problem["kv_num_heads"],
        head_size=problem["head_size"],
        capacity=capacity,
        past_capacity=capacity if whole and not separate else past,
        multiprocessors=route["xqa" if name == "xqa" else "flash"]["multi_processor_count"],
        element="bf16" if route["xqa"]["is_bf16"] and name == "xqa" else "fp16",
        cache=_cache(problem, route["xqa"]["kv_type"] if name == "xqa" else ""),
        k_scales=problem["k_quantization"],
        v_scales=problem["v_quantization"],
        first_prompt=first,
        windowed=windowed,
        window=capacity if windowed and window < 1 else window,
        rotary=problem["do_rotary"],
        packed=problem["is_packed_qkv"],
        qk_norm=problem["use_qk_norm"],
        shares_key=whole or separate,
        shares_value=whole and not separate,
        sink=sink,
        smooth=sink != "none",
    )


def _cache(problem: Mapping[str, Any], kv_type: str) -> Cache:
    if problem["cache_element_size"] == 2 and not problem["kv_cache_bit_width"]:
        return "fp16"
    if problem["kv_cache_bit_width"] == 4:
        return "int4"
    return "fp8" if kv_type == "fp8" else "int8"
