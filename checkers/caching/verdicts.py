"""Verdicts by content: looked up before anything is decided, and kept once it is.

A key covers the obligation's statement, the tool's sources, the versions below it and all options.
Only what is proved, refuted or replayed is kept; a kept counterexample is executed again before it
is believed. Statements of the package need not even be built as long as no file of it changes.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from routeproof.checkers.announcing import built, stage, warn
from routeproof.checkers.counterexample import Replayer
from routeproof.checkers.decide import Decision
from routeproof.checkers.decisions import decision_from_json, decision_to_json
from routeproof.checkers.discharge import decide
from routeproof.checkers.registry import build
from routeproof.checkers.report import plain
from routeproof.checkers.solver import Options
from routeproof.checkers.values import read_state
from routeproof.spec.errors import InputError
from routeproof.spec.obligation import Claim, Obligation, Reach, Rows, Statement, Verdict

from .fingerprint import digest, statement_digest
from .sources import Sources, read_sources
from .store import Store

__all__ = ["VERDICTS", "Cache", "Mode", "cached_decision", "open_cache", "recalled", "remember"]

Mode = Literal["use", "verify"]
VERDICTS, _STATEMENTS = "verdicts", "statements"
_KEPT: Mapping[type, tuple[Verdict, ...]] = {
    Claim: (Verdict.PROVED, Verdict.REFUTED),
    Reach: (Verdict.PROVED,),
    Rows: (Verdict.REPLAYED,),
}
_WITHOUT_STATE = (Verdict.PROVED, Verdict.REPLAYED)


@dataclass(frozen=True)
class Cache:
    """Where verdicts are kept, and all that they depend on besides statement and options."""

    store: Store
    sources: Sources
    environment: Mapping[str, str]
    mode: Mode = "use"

    def key(self, obligation: Obligation, statement: str, options: Options) -> dict[str, Any]:
        """Everything that the verdict depends on."""
        return {
            "obligation": obligation.id,
            "statement": statement,
            "tool": self.sources.tool,
            "environment": dict(self.environment),
            "options": asdict(options),
        }

    @cached_property
    def statements(self) -> dict[str, str]:
        """The digests of the package's statements, as far as they are known."""
        found = self.store.get(_STATEMENTS, self.package)
        return {str(name): str(one) for name, one in (found or {}).items()}

    @property
    def package(self) -> dict[str, Any]:
        """Everything that the statements of the package depend on."""
        return {"package": self.sources.package, "environment": dict(self.environment)}


def open_cache(root: Path, options: Options, mode: Mode = "use") -> Cache | None:
    """The cache in that folder; None, with a warning, where it cannot be relied on."""
    sources = read_sources()
    if sources.stale:
        warn(
            f"cache: not used, as Python runs an older compiled form of {sources.stale};"
            " touch the file to have it compiled again"
        )
        return None
    if sources.edited:
        warn(f"cache: not used, as {sources.edited} was written after this run began")
        return None
    try:
        root.mkdir(parents=True, exist_ok=True)
        is_usable = os.access(root, os.R_OK | os.W_OK | os.X_OK)
    except OSError:
        is_usable = False
    if not is_usable:
        warn(f"cache: not used, as nothing can be written below {root}")
        return None
    names = ["numpy", "sympy", "z3-solver", *(["cvc5"] if options.second else [])]
    versions = {name: _version(name) for name in names}
    environment = {
        "python": f"{sys.version} -O{sys.flags.optimize}",
        "platform": " ".join((sys.platform, platform.machine(), *platform.libc_ver())),
        **versions,
    }
    return Cache(Store(root), sources, environment, mode)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def cached_decision(obligation: Obligation, options: Options, cache: Cache) -> Decision:
    """The decision, from the cache, or newly made and kept."""
    stage("building")
    statement = build(obligation)
    known = statement_digest(statement)
    if known is None:
        return decide(statement, options)
    built(known)
    key = cache.key(obligation, known, options)
    found = _recalled(cache, key, statement)
    if found and cache.mode == "use":
        return replace(found, cached=True)
    decision = decide(statement, options)
    if found:
        return _compared(cache, key, found, decision)
    _keep(cache, key, statement, decision)
    return decision


def recalled(obligation: Obligation, options: Options, cache: Cache) -> Decision | None:
    """What is kept of an obligation of the package; nothing is built unless it was refuted."""
    known = cache.statements.get(obligation.id)
    if known is None:
        return None
    key = cache.key(obligation, known, options)
    found = _read(cache, key)
    if found and not (found.verdict in _WITHOUT_STATE and found.counterexample is None):
        statement = build(obligation)
        found = _recalled(cache, key, statement) if statement_digest(statement) == known else None
    return replace(found, cached=True) if found else None


def remember(cache: Cache, digests: Mapping[str, str]) -> None:
    """Keep the digests of statements of the package that have been built."""
    if digests.keys() - cache.statements.keys() and cache.sources.unchanged():
        _put(cache, _STATEMENTS, cache.package, {**cache.statements, **digests})


def _read(cache: Cache, key: Mapping[str, Any]) -> Decision | None:
    """What is kept under the key, if it can be read."""
    body = cache.store.get(VERDICTS, key)
    if body is None:
        return None
    try:
        return decision_from_json(body)
    except InputError as error:
        _ignored(key, str(error))
        return None


def _recalled(cache: Cache, key: Mapping[str, Any], statement: Statement) -> Decision | None:
    """What is kept under the key, if it can be read, fits the statement, and replays."""
    found = _read(cache, key)
    if found is None:
        return None
    if found.verdict not in _KEPT[type(statement)]:
        _ignored(key, f"{found.verdict} is nothing that is kept of it")
        return None
    if isinstance(statement, Claim) and not _replays(statement, found):
        _ignored(key, "the counterexample does not replay")
        return None
    return found


def _replays(claim: Claim, found: Decision) -> bool:
    """Whether there is a counterexample exactly if one is due, and it shows what it says."""
    shown = found.counterexample
    if found.verdict is not Verdict.REFUTED or shown is None:
        return found.verdict is not Verdict.REFUTED and shown is None
    replayer = Replayer(claim)
    try:
        state = read_state(replayer.symbols, shown.state, "cache")
    except InputError:
        return False
    if not replayer.fails(state):
        return False
    again = replace(replayer.execute(state, shown.movable), moved=shown.moved)
    return digest(plain(asdict(again))) == digest(plain(asdict(shown)))


def _ignored(key: Mapping[str, Any], why: str) -> None:
    warn(f"cache: the entry of {key['obligation']} is ignored: {why}")


def _keep(cache: Cache, key: Mapping[str, Any], statement: Statement, decision: Decision) -> None:
    """Store what is decided, unless something is no longer, or never was, what the key says."""
    if decision.verdict not in _KEPT[type(statement)] or not cache.sources.unchanged():
        return
    if statement_digest(statement) != key["statement"]:  # recorded rows are read from a file
        return
    installed, solver = cache.environment["z3-solver"], decision.evidence.get("solver")
    if isinstance(solver, str) and not f"z3 {installed}".startswith(solver):
        warn(f"cache: nothing is kept, as {solver} answers where {installed} is installed")
        return
    _put(cache, VERDICTS, key, decision_to_json(decision))


def _put(cache: Cache, kind: str, key: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    try:
        cache.store.put(kind, key, body)
    except OSError as error:
        warn(f"cache: cannot write below {cache.store.root}: {error.strerror}")


def _compared(cache: Cache, key: Mapping[str, Any], kept: Decision, new: Decision) -> Decision:
    """The new decision, or that the two disagree; the entry is then dropped."""
    if new.verdict is Verdict.UNKNOWN or _scope(new) == _scope(kept):
        return new
    cache.store.drop(VERDICTS, key)
    reason = f"the cache said {kept.verdict}, deciding again says {new.verdict}"
    if new.verdict is kept.verdict:
        reason = f"the cache said {kept.verdict} of other inputs or conditions"
    return replace(new, verdict=Verdict.DISAGREEMENT, reason=f"{reason}; the entry is dropped")


def _scope(decision: Decision) -> tuple[object, ...]:
    """The verdict and what it is about; how it was found may differ."""
    return (
        decision.verdict,
        dict(decision.axes),
        tuple(decision.assumptions),
        tuple(decision.conditional_on),
        decision.enforced,
    )
