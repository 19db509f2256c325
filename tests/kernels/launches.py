"""Launches for tests: a question, one Run of it, and what a route needs for it."""

from routeproof.kernels_ref.backends import load
from routeproof.kernels_ref.gqa import crosscheck as checking
from routeproof.kernels_ref.gqa.draw import launch_of
from routeproof.kernels_ref.gqa.plan import answers, plan
from routeproof.models.ort.gqa import node, question

HOST = load("numpy")
NODE = {"num_heads": 8, "kv_num_heads": 2, "head_size": 64, "rotary": False}


RUN = {"tokens": 1, "total": 40, "batch": 1, "capacity": None, "alias": (True, True), "sms": 24}


def sized(route, **said):
    """Return a launch on a route and its plan: what `said` says of the Run, and of the node."""
    tokens, total, batch, capacity, alias, sms = (said.pop(key, RUN[key]) for key in RUN)
    held = (total if capacity is None else capacity) if any(alias) else total - tokens
    asked = node.read(
        {
            "node": NODE | said,
            "device": {"sm": "9.0", "sms": sms},
            "envelope": {"batch": batch, "query": tokens, "total": total, "past_capacity": held},
        }
    )
    state = {
        "batch_size": batch,
        "sequence_length": tokens,
        "total_sequence_length": total,
        "past_key_shared": alias[0],
        "past_value_shared": alias[1],
        "xqa_shared_memory_ok": True,
        "cudnn_is_stable": False,
        "cudnn_is_supported": False,
    }
    recipe = answers("ort.gqa.complete", question.run_of(asked, state).recipe(route).row)
    assert recipe["out.status"] == "ok"
    return launch_of(asked, state, route), plan(recipe)


def crosscheck(launch, planned, contents=0):
    """Execute it on the host."""
    return checking.crosscheck(launch, planned, HOST, contents)
