"""The `cache` commands: what is kept, and its removal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from routeproof.checkers.report import SCHEMA_VERSION, dump
from routeproof.spec.errors import InputError

from .place import cache_place
from .store import Entry, Store
from .verdicts import VERDICTS

__all__ = ["info", "list_entries", "prune"]

_DAY = 86_400.0


def info(root: Path | None, form: str) -> None:
    """Place, number of verdicts, how many are damaged, and their size."""
    store = Store(root or cache_place())
    entries = list(store.entries(VERDICTS))
    found = {
        "schema_version": SCHEMA_VERSION,
        "place": str(store.root),
        "entries": len(entries),
        "damaged": sum(entry.document is None for entry in entries),
        "bytes": sum(entry.size for entry in entries),
    }
    if form == "json":
        click.echo(dump(found), nl=False)
        return
    click.echo(f"place    {found['place']}")
    click.echo(f"entries  {found['entries']:,}, {found['damaged']:,} of them damaged")
    click.echo(f"bytes    {found['bytes']:,}")


def list_entries(patterns: Sequence[str], root: Path | None, form: str) -> None:
    """One line, or one object, for each verdict whose obligation matches."""
    rows = [_row(entry) for entry in Store(root or cache_place()).entries(VERDICTS)]
    chosen = sorted(
        (
            row
            for row in rows
            if not patterns or any(fnmatchcase(row["id"], pattern) for pattern in patterns)
        ),
        key=lambda row: (row["id"], row["file"]),
    )
    if form == "json":
        click.echo(dump({"schema_version": SCHEMA_VERSION, "entries": chosen}), nl=False)
        return
    width = max((len(row["id"]) for row in chosen), default=0)
    for row in chosen:
        head = f"{row['verdict']:9} {row['days']:5.1f} days  {row['id']:{width}}"
        click.echo(f"{head}  {row['file']}")


def _row(entry: Entry) -> dict[str, Any]:
    document = entry.document or {"key": {}, "body": {}}
    return {
        "id": str(document["key"].get("obligation", "")),
        "verdict": str(document["body"].get("verdict", "")) if entry.document else "damaged",
        "days": round(max(0.0, time.time() - entry.used) / _DAY, 1),
        "bytes": entry.size,
        "file": str(entry.path),
    }


def prune(root: Path | None, days: float) -> None:
    """Remove, and say how much."""
    store = Store(root or cache_place())
    try:
        removed = store.prune(days * _DAY)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from error
    click.echo(f"{len(removed):,} entries removed, {sum(one.size for one in removed):,} bytes")
