"""Every published model on some devices: what is reserved today, what could be, what is needed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from routeproof.checkers.registry import load_presets, load_question, preset_name
from routeproof.checkers.report import dump
from routeproof.spec.errors import InputError

from .answer import answer
from .report import SCHEMA_VERSION, ratio

__all__ = ["Row", "as_text", "chosen", "rows"]

_TOKENS = 8192
_SIZES = ("unfused_bytes", "structural_bytes", "closed_bytes", "exact_bytes")
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """One model on one device, everything within so many tokens (bytes; None: not known)."""

    device: str
    model: str
    tokens: int
    status: str
    reason: str
    unfused_bytes: int | None
    structural_bytes: int | None
    closed_bytes: int | None
    exact_bytes: int | None


def rows(devices: Sequence[str], document: Mapping[str, Any]) -> Iterator[Row]:
    """A row per device and model; the document's other facts hold for all.

    Without lengths of its own the envelope ends at 8,192 tokens, or at the model's context if that
    is shorter.
    """
    for device in devices:
        for entry in load_presets("models"):
            tokens = min(_TOKENS, entry["context"] or _TOKENS)
            lengths = {"query": f"1..{tokens}", "total": f"1..{tokens}"}
            asked = {
                **document,
                "node": {**document.get("node", {}), "preset": entry["name"]},
                "device": device,
                "envelope": {**lengths, **document.get("envelope", {})},
            }
            found = answer(load_question(asked))
            total = next(one.value for one in found.question.facts if one.name == "total")
            sizes = {size: getattr(found, size) for size in _SIZES}
            last = int(str(total).rpartition("..")[2])
            yield Row(device, entry["name"], last, found.status, found.reason, **sizes)


def chosen(devices: str, document: Mapping[str, Any]) -> list[str]:
    """The devices that are asked for, each once, by their full names."""
    node = document.get("node", {})
    if not isinstance(node, Mapping) or "preset" in node:
        raise InputError("--matrix takes every published model: give no preset")
    if "device" in document:
        raise InputError("--matrix names its devices: give no other")
    return list(dict.fromkeys(preset_name("devices", one.strip()) for one in devices.split(",")))


def as_text(found: Sequence[Row], form: str) -> str:
    """Markdown tables, one per device, in MiB; or CSV or JSON in bytes."""
    match form:
        case "json":
            return dump({"schema_version": SCHEMA_VERSION, "rows": [asdict(one) for one in found]})
        case "csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, Row.__dataclass_fields__, lineterminator="\n")
            writer.writeheader()
            writer.writerows(asdict(one) for one in found)
            return text.getvalue()
        case _:
            return "\n".join(_markdown(found))


def _markdown(found: Sequence[Row]) -> Iterator[str]:
    for device in dict.fromkeys(one.device for one in found):
        yield f"### {device}, in MiB\n"
        yield (
            "| model | tokens | unfused | structural | closed form | exact "
            "| structural / exact | closed form / exact |"
        )
        yield "|---|---:|---:|---:|---:|---:|---:|---:|"
        for one in found:
            if one.device == device:
                sizes = " | ".join(_mebibytes(getattr(one, size)) for size in _SIZES[:-1])
                exact = _mebibytes(one.exact_bytes, one.reason or one.status)
                times = " | ".join(
                    _times(getattr(one, size), one.exact_bytes)
                    for size in ("structural_bytes", "closed_bytes")
                )
                yield f"| {one.model} | {one.tokens:,} | {sizes} | {exact} | {times} |"
        yield ""


def _mebibytes(size: int | None, otherwise: str = "unavailable") -> str:
    return otherwise if size is None else f"{size / _MEBIBYTE:,.1f}"


def _times(larger: int | None, exact: int | None) -> str:
    found = ratio(larger, exact)
    return "" if found is None else f"{found:,.2f}"
