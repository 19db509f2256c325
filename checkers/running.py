"""One run of many obligations: what the cache knows first, the rest by workers."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from routeproof.spec.errors import RouteproofError
from routeproof.spec.obligation import Obligation

from .announcing import Announcement
from .caching.verdicts import Cache, Mode, open_cache, recalled, remember
from .discharge import Result, result_of
from .pool import Watch, Work, run
from .solver import Options

__all__ = ["Request", "decide_all"]


@dataclass(frozen=True, slots=True)
class Request:
    """What to decide: ids and globs, files of the user's own, how, by how many workers.

    `cache` is the folder of verdicts (None: nothing is kept), `seconds` the time for the whole run.
    """

    patterns: Sequence[str]
    files: Sequence[Path]
    options: Options
    jobs: int
    cache: Path | None = None
    mode: Mode = "use"
    seconds: float | None = None


def decide_all(chosen: Sequence[Obligation], request: Request, watch: Watch) -> Generator[Result]:
    """Results as they come, in no particular order."""
    until = None if request.seconds is None else time.monotonic() + request.seconds
    cache = request.cache and open_cache(request.cache, request.options, request.mode)
    digests: dict[str, str] = {}

    def hear(name: str, said: Announcement) -> None:
        if said.kind == "built":
            digests[name] = said.text
        watch(name, said)

    left = {one.id: one for one in chosen}
    if cache and not request.files and cache.mode == "use":
        yield from _known(chosen, request.options, cache, left)
    work = Work(request.files, request.options, cache or None, until, hear)
    try:
        yield from run(list(left.values()), work, request.jobs)
    finally:
        if cache and not request.files:
            remember(cache, digests)


def _known(
    chosen: Sequence[Obligation], options: Options, cache: Cache, left: dict[str, Obligation]
) -> Iterator[Result]:
    """Results of the package's obligations that need no worker; taken out of those `left`."""
    for one in chosen:
        started = time.monotonic()
        try:
            found = recalled(one, options, cache)
        except RouteproofError:  # a worker says what is wrong
            continue
        if found:
            del left[one.id]
            yield result_of(one, found, started)
