"""The kernels of GroupQueryAttention by name: drawn launches, rows of its recipe, saved runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from routeproof.kernels_ref.backends import Backend, load
from routeproof.models.ort.gqa import node
from routeproof.spec.errors import refuse
from routeproof.spec.execution import Fault, Kernels, LaunchReport

from .crosscheck import crosscheck
from .draw import admitted, draw
from .launch import ROUTES, Route, from_recipe_row
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
            return crosscheck(drawn.launch, plan(drawn.recipe), self._backend, contents)
        except Fault as fault:
            run = {"route": drawn.launch.route, "spec": drawn.document, "state": drawn.state}
            raise Fault(fault.region, fault.problem, {**run, "contents": contents}) from fault

    def row(self, row: Mapping[str, Any]) -> LaunchReport:
        recipe = answers(_RECIPE, row)
        if recipe["out.status"] != "ok":
            refuse(_RECIPE, f"the recipe's status is {recipe['out.status']}: nothing to carve")
        return crosscheck(from_recipe_row(row), plan(recipe), self._backend, 0)

    def run(self, run: Mapping[str, Any]) -> LaunchReport:
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
        return crosscheck(found.launch, plan(found.recipe), self._backend, run["contents"])


def kernels(backend: str) -> Kernels:
    """The kernels on a backend: `numpy` or `cupy`.

    Raises:
        InputError: the backend is not there.
    """
    return _Kernels(load(backend))
