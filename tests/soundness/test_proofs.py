"""The committed obligations hold what they promise: independence, and no state found by search."""

import ast
import itertools
import random
from pathlib import Path

import pytest

from routeproof.checkers.counterexample import Replayer
from routeproof.checkers.decide import decide_claim
from routeproof.checkers.reach import decision_table
from routeproof.checkers.registry import load_ladders, load_obligations
from routeproof.checkers.sampling import Sampler, constants_of
from routeproof.checkers.solver import Limits, Options
from routeproof.proofs.ort.gqa.absolute import _REGIONS
from routeproof.proofs.ort.gqa.recipes import RECIPES, compared
from routeproof.spec.interpret import compile_terms
from routeproof.spec.obligation import Claim, Verdict
from routeproof.spec.terms import FALSE, EnumSort, all_of

PROOFS = Path(__file__).parents[2] / "proofs" / "ort" / "gqa"
OBLIGATIONS = load_obligations()
CLAIMS = [one for one in OBLIGATIONS.values() if one.expected in (Verdict.PROVED, Verdict.REFUTED)]


@pytest.mark.parametrize("path", sorted(PROOFS.glob("restated_*.py")), ids=lambda path: path.stem)
def test_restatements_see_the_vocabulary_of_the_models_only(path):
    """A restatement imports the language, other restatements and `problem`, no size function."""
    allowed = ("routeproof.spec.", "routeproof.proofs.ort.gqa.restated_")
    standard = {"__future__", "collections.abc", "dataclasses", "typing"}
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Import), f"{path.name}:{node.lineno}"
        if isinstance(node, ast.ImportFrom):
            name = node.module or ""
            assert (
                name in standard
                or name.startswith(allowed)
                or name == "routeproof.models.ort.gqa.problem"
            ), f"{path.name}:{node.lineno} imports {name}"


@pytest.mark.parametrize("name", RECIPES)
def test_every_region_has_an_absolute_obligation(name):
    """The regions of the obligations are those of the model's output."""
    assert set(_REGIONS[name]) == set(compared(name).regions)


def _claims(verdict):
    for one in CLAIMS:
        statement = one.statement() if one.expected is verdict else None
        if isinstance(statement, Claim):
            yield one.id, statement


def test_no_random_state_breaks_a_proved_claim():
    """Thousands of admitted states per claim, drawn around its constants, and none fails."""
    for name, claim in _claims(Verdict.PROVED):
        replayer = Replayer(claim)
        admitted = all_of(*claim.conditions.values())
        goal = all_of(*claim.goals.values())
        constants = constants_of((admitted, goal))
        admitting = Claim(FALSE, claim.assuming, claim.envelope)
        witness = decide_claim(admitting, Options()).counterexample
        origin = replayer.completed(witness.state)
        assert replayer.admits(origin)
        failing = Sampler(admitted & ~goal, replayer.symbols, constants)
        assert failing.find(replayer.fails, origin, 2, 1) is None, name


@pytest.mark.parametrize("revision", ["newest", "older"])
@pytest.mark.parametrize("outcome", ["xqa", "unfused", "memory_efficient", "no_route"])
def test_tables_agree_with_brute_force_over_run_time_facts(revision, outcome):
    """On random static facts, a row holds exactly where some Run takes the outcome."""
    ladder = load_ladders("ort.gqa")[revision]
    table = decision_table(ladder, outcome, Limits())
    taken = compile_terms([ladder.takes(outcome)])
    holds = compile_terms([table.condition])
    draw = random.Random(7)  # noqa: S311 - not for secrets
    reached = 0
    for _ in range(60):
        static = {fact.name: _static(fact, draw) for fact in ladder.static}
        runs = _runs(ladder.runtime)
        some = any(taken({**static, **run})[0] for run in runs)
        assert holds(static)[0] == some, static
        reached += some
    assert 0 < reached < 60 or outcome == "xqa"


def _static(fact, draw):
    likely = {
        "device_major": (7, 8, 9),
        "device_minor": (0, 9),
        "head_size": (64, 128, 256, 264, 1032, 12),
        "num_heads": (8, 12, 32),
        "kv_num_heads": (1, 2, 8),
        "local_window_size": (-1, 64),
        "softcap": (0.0, 0.0, 30.0),
    }
    if fact.name in likely:
        return draw.choice(likely[fact.name])
    if isinstance(fact.sort, EnumSort):
        return draw.choices(fact.sort.members[:2], (4, 1))[0]
    assert fact.sort_name == "bool"
    return draw.random() < 0.3


def _runs(runtime):
    values = [
        (False, True) if fact.sort_name == "bool" else (1, 2) if "kv" not in fact.name else (0, 1)
        for fact in runtime
    ]
    return [
        dict(zip((fact.name for fact in runtime), run, strict=True))
        for run in itertools.product(*values)
    ]
