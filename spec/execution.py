"""What executing a launch in its planned regions shows: the words between kernels and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Fault", "Kernels", "LaunchReport", "RegionBytes"]


class Fault(Exception):  # noqa: N818 - a finding, not an error
    """A plan and what a kernel does with it differ, or a result is wrong.

    The message names the region and the bytes; `run` says how to repeat it, if it was drawn.
    """

    def __init__(self, region: str, problem: str, run: Mapping[str, Any] | None = None) -> None:
        """`region` is the name as the plan has it, or the tensor whose contents are wrong."""
        super().__init__(region, problem, run)
        self.region, self.problem, self.run = region, problem, run

    def __str__(self) -> str:
        """One line."""
        return f"{self.region}: {self.problem}"


@dataclass(frozen=True, slots=True)
class RegionBytes:
    """One region: bytes planned, asked for by the kernel, and written; why the rest is not."""

    name: str
    planned: int
    allocated: int
    touched: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchReport:
    """What one launch showed (bytes).

    `extents` describes it in a line, `counted` says under what it is counted (cache mode,
    quantisation, type). `on_paper` says why nothing was executed, or is empty; then no byte is
    touched. `peak` are the most bytes in use at once, `taken` what the allocator took for the root,
    `error` the largest absolute difference from plain attention.
    """

    route: str
    extents: str
    counted: Mapping[str, str]
    regions: tuple[RegionBytes, ...]
    total: int
    peak: int
    taken: int = 0
    error: float = 0.0
    splits: int = 1
    is_padded: bool = False
    is_constant: bool = False
    on_paper: str = field(default="")


class Kernels(Protocol):
    """Reference kernels of one system on one backend. Every method may raise `Fault`."""

    device: str

    def random(self, number: int, seed: int) -> LaunchReport:
        """A drawn launch, the same for the same numbers."""

    def row(self, row: Mapping[str, Any]) -> LaunchReport:
        """The launch that a row of the system's complete recipe sizes."""

    def run(self, run: Mapping[str, Any]) -> LaunchReport:
        """A drawn launch again, as a fault describes it."""
