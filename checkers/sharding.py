"""A run in parts: every so many obligations in turn, and the parts put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from routeproof import __version__
from routeproof.spec.errors import InputError
from routeproof.spec.obligation import Obligation

from .discharge import Result
from .formats.reading import Report
from .report import Shard

__all__ = ["merged", "parse_shard", "part_of"]


_LONGEST = 20


def parse_shard(text: str) -> tuple[int, int]:
    """`I/N` as two numbers, 1 <= I <= N."""
    index, slash, count = text.partition("/")
    are_numbers = slash and text.isascii() and index.isdecimal() and count.isdecimal()
    if not (are_numbers and len(text) < _LONGEST and 1 <= int(index) <= int(count)):
        raise InputError(f"--shard {text}: expected I/N with 1 <= I <= N, such as 2/4")
    return int(index), int(count)


def part_of(
    chosen: Sequence[Obligation], index: int, count: int, *shared: object
) -> tuple[Sequence[Obligation], Shard]:
    """The obligations of one part, and what a merge needs to know of the whole.

    What is `shared` is known by its `repr`: parts are of one run if that is the same for all.
    """
    selection = _digest([one.id for one in chosen])
    run = _digest(list(map(repr, shared)))
    return chosen[index - 1 :: count], Shard(index, count, len(chosen), selection, run)


def merged(reports: Sequence[Report]) -> list[Result]:
    """The results of the whole run in its order; `InputError` unless all parts of it are there."""
    parts: dict[int, Report] = {}
    whole: Shard | None = None
    for report in reports:
        shard = report.shard
        if shard is None:
            raise InputError(f"{report.path}: no part of a run: check --shard writes those")
        if shard.index in parts:
            other = parts[shard.index].path
            raise InputError(f"{report.path}: part {shard.index}, which {other} is already")
        if report.version != __version__:
            raise InputError(
                f"{report.path}: made by routeproof {report.version}, and this is {__version__}"
            )
        whole = whole or shard
        if replace(shard, index=whole.index) != whole:
            raise InputError(
                f"{report.path}: part of another run than {reports[0].path}: other obligations,"
                " files, options or baseline"
            )
        parts[shard.index] = report
    return _interleaved(parts, whole) if whole else []


def _interleaved(parts: Mapping[int, Report], whole: Shard) -> list[Result]:
    """Each part's results in turn, once nothing is missing and nothing is too much."""
    missing = next((at for at in range(1, whole.count + 1) if at not in parts), None)
    if missing:
        raise InputError(f"part {missing} of {whole.count} is missing")
    for index, part in parts.items():
        due = len(range(index - 1, whole.total, whole.count))
        if len(part.results) != due:
            raise InputError(f"{part.path}: {len(part.results)} results, {due} are due")
    results = [parts[at % whole.count + 1].results[at // whole.count] for at in range(whole.total)]
    if _digest([result.id for result in results]) != whole.selection:
        raise InputError("the parts do not hold the obligations of the whole run")
    return results


def _digest(ids: Sequence[str]) -> str:
    return blake2b("\n".join(ids).encode(), digest_size=16).hexdigest()
