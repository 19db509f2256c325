"""Reading what `bound` is asked: a TOML or JSON file, options, or both, the options deciding."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from routeproof.checkers.values import read_json
from routeproof.spec.errors import InputError, refuse

__all__ = ["SECTIONS", "document", "merged", "read_spec"]

SECTIONS = ("node", "device", "envelope", "kernel_options", "ladder", "alias")

_ENVELOPE = ("batch", "query", "total", "past_capacity", "enforced")


def document(spec: Path | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked, as one document."""
    return merged(read_spec(spec) if spec else {}, options)


def merged(spec: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The document with what the options say in place of its own; an empty one may leave it so."""
    given: dict[str, dict[str, Any] | str] = {}
    node: dict[str, Any] = dict(_pairs(options["node"], "--node"))
    if options["preset"] is not None:
        if node.get("preset", options["preset"]) != options["preset"]:
            refuse("--preset", f"{options['preset']!r} contradicts --node preset={node['preset']}")
        node["preset"] = options["preset"]
    device = options["device"]
    if device is not None:
        given["device"] = _pairs((device,), "--device") if "=" in device else {"preset": device}
    envelope: dict[str, Any] = {
        name: options[name] for name in _ENVELOPE if options[name] is not None
    }
    if options["allow_query_above_total"]:
        envelope["allow_query_above_total"] = True
    kernels = dict(_pairs(options["kernel_options"], "--kernel-options"))
    sections = {"node": node, "envelope": envelope, "kernel_options": kernels}
    given |= {name: facts for name, facts in sections.items() if facts}
    given |= {name: options[name] for name in ("ladder", "alias") if options[name] is not None}
    return _merged(spec, given)


def read_spec(path: Path) -> dict[str, Any]:
    """The document in a file; the ending says which of the two it is."""
    if path.suffix == ".json":
        document = read_json(path)
    elif path.suffix == ".toml":
        document = _read_toml(path)
    else:
        refuse(str(path), "a SPEC ends in .toml or .json")
    if not isinstance(document, dict):
        refuse(str(path), "expected a table of sections: node, device, envelope")
    return document


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error.reason}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: malformed TOML: {error}") from error


def _pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`KEY=VALUE,KEY=VALUE` of a repeatable option; a key is given once."""
    found: dict[str, str] = {}
    for text in texts:
        for part in text.split(","):
            key, equals, value = (one.strip() for one in part.partition("="))
            if not (key and equals and value):
                refuse(option, f"expected KEY=VALUE, got {part!r}")
            if key in found:
                refuse(option, f"{key!r} is given twice")
            found[key] = value
    return found


def _merged(document: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the sections and facts of the options in place of its own.

    A section that is a preset's name stays one beside further facts of the same section.
    """
    found = dict(document)
    for name, given in options.items():
        before = found.get(name)
        if isinstance(before, str) and isinstance(given, Mapping):
            before = {"preset": before}
        if isinstance(before, Mapping) and isinstance(given, Mapping):
            said = {key.replace("-", "_") for key in given}
            kept = {key: one for key, one in before.items() if key.replace("-", "_") not in said}
            found[name] = {**kept, **given}
        else:
            found[name] = given
    return found
