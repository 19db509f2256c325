"""The kernels of GroupQueryAttention by name: drawn launches, rows of its recipe, saved runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from routeproof.kernels_ref.backends import Backend, load
from routeproof.models.ort.gqa import node
from routeproof.spec.errors import refuse
from routeproof.spec.execution import Fault, Kernels, LaunchReport
from routeproof.spec.interpret import Value

from .crosscheck import check_counts, crosscheck
from .draw import admitted, draw
from .launch import ROUTES, Launch, Route, from_recipe_row
from .plan import answers, plan

__all__ = ["kernels"]

_RECIPE = "ort.gqa.complete"


class _Kernels:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.device = backend.device

    def random(self, number: int, seed: int) -> LaunchReport:
        drawn = draw(number, seed)
        contents = seed * 1_000_003 + number
        try:
            return self._checked(drawn.launch, drawn.recipe, contents)
        except Fault as fault:
            run = {"route": drawn.launch.route, "spec": drawn.document, "state": drawn.state}
            raise Fault(fault.region, fault.problem, {**run, "contents": contents}) from fault

    def row(self, row: Mapping[str, Any]) -> LaunchReport:
        recipe = answers(_RECIPE, row)
        if recipe["out.status"] != "ok":
            refuse(_RECIPE, f"the recipe's status is {recipe['out.status']}: nothing to carve")
        return self._checked(from_recipe_row(row), recipe, 0)

    def run(self, run: Mapping[str, Any]) -> LaunchReport:
        if unknown := run.keys() - {"route", "spec", "state", "contents"}:
            refuse("launch", f"unknown key {min(unknown)!r}")
        for key, kind in (("route", str), ("spec", dict), ("state", dict), ("contents", int)):
            if type(run.get(key)) is not kind:
                refuse("launch", f"needs {key!r} ({kind.__name__}), got {run.get(key)!r}")
        if run["contents"] < 0:
            refuse("launch.contents", f"{run['contents']} is not a seed")
        if run["route"] not in ROUTES:
            refuse("launch.route", f"{run['route']!r} is not one of {', '.join(ROUTES)}")
        route = cast("Route", run["route"])
        found = admitted(route, node.read(run["spec"]), run["state"])
        if isinstance(found, str):
            refuse("launch", found)
        return self._checked(found.launch, found.recipe, run["contents"])

    def _checked(self, launch: Launch, recipe: Mapping[str, Value], contents: int) -> LaunchReport:
        """Regions and results first: what is wrong there names bytes."""
        report = crosscheck(launch, plan(recipe), self._backend, contents)
        check_counts(launch, recipe)
        return report


def kernels(backend: str) -> Kernels:
    """The kernels on a backend: `numpy` or `cupy`.

    Raises:
        InputError: the backend is not there.
    """
    return _Kernels(load(backend))
