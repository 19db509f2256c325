"""Exact maxima against the evaluation of every state, which shares no code with them."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from bound import independent
from bound.documents import document, usual
from bound.independent import (
    Case,
    Device,
    Envelope,
    Node,
    Options,
    brute,
    random_case,
    unfused_over,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.checkers.bounding.answer import Answer, answer
from routeproof.checkers.registry import load_question
from routeproof.spec.errors import InputError

REVISIONS = ("older", "newest")
OFF = Options(cudnn="off")
SMALL = Envelope((1, 4), (1, 70), (1, 300), 300)


def agree(case: Case, revision: str, alias: str = "any") -> Answer:
    """The answer, after a comparison of every entry with all states of the case."""
    found = answer(load_question(document(case, revision, alias)))
    entries = {(one.phase, one.route, one.alias): one for one in found.entries}
    every = brute(*case, revision)
    wanted = {
        key: most for key, most in every.items() if key[1] != "errors" and alias in ("any", key[2])
    }
    assert set(entries) == set(wanted)
    refused = {(phase, error_alias) for phase, _, error_alias in found.question.errors}
    assert refused == {
        (phase, one) for phase, route, one in every if route == "errors" and alias in ("any", one)
    }
    if found.exact_bytes is not None and found.closed_bytes is not None:
        assert found.closed_bytes >= found.exact_bytes
    for key, most in wanted.items():
        entry = entries[key]
        assert entry.exact_bytes == most.bytes, key
        assert entry.status == ("unavailable" if most.bytes is None else "exact"), key
        if entry.structural_bytes is not None and entry.exact_bytes is not None:
            assert entry.structural_bytes >= entry.exact_bytes, key
        unfused = unfused_over(case.node, case.envelope, key[0], key[2])
        assert unfused is not None
        assert entry.unfused_bytes == unfused.bytes, key
    return found


def only_chunks_of_several_rows(envelope: Envelope) -> bool:
    """No first prompt, no single token, and a batch that no chunk takes."""
    (batch, _), (few, many), (short, long) = envelope.batch, envelope.query, envelope.total
    overlap = max(few, short) <= min(many, long)
    return batch > 1 and few > 1 and not overlap


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(REVISIONS))
def test_every_small_case_is_the_maximum_over_its_states(seed: int, revision: str):
    """All routes, cache modes, alias states and envelopes, batch varying."""
    case = usual(random_case(np.random.default_rng(seed)))
    if case is None:
        return
    if only_chunks_of_several_rows(case.envelope):
        with pytest.raises(InputError, match="admit no Run"):
            agree(case, revision)
    else:
        agree(case, revision)


ROUTES = {
    "xqa": Case(Node(num_heads=8, kv_num_heads=2, head_size=64), Device(8, 0, 23), OFF, SMALL),
    "xqa windowed": Case(
        Node(
            num_heads=8,
            kv_num_heads=1,
            head_size=128,
            is_windowed_kv_cache=True,
            local_window_size=600,
        ),
        Device(9, 0, 17),
        OFF,
        Envelope((1, 30), (1, 40), (1, 700), 600),
    ),
    "flash": Case(
        Node(num_heads=3, kv_num_heads=3, head_size=256, do_rotary=True),
        Device(8, 6, 40),
        OFF,
        Envelope((1, 5), (1, 150), (1, 600), 640),
    ),
    "flash windowed": Case(
        Node(
            num_heads=2,
            kv_num_heads=1,
            head_size=256,
            is_windowed_kv_cache=True,
            local_window_size=200,
            is_packed_qkv=True,
        ),
        Device(8, 0, 30),
        OFF,
        Envelope((1, 5), (1, 150), (1, 600), 200),
    ),
    "flash quantised": Case(
        Node(
            cache_type="int8",
            cache_element_size=1,
            kv_cache_bit_width=8,
            k_quantization="per_tensor",
            v_quantization="per_tensor",
            num_heads=6,
            kv_num_heads=2,
            head_size=96,
        ),
        Device(8, 9, 24),
        OFF,
        SMALL,
    ),
    "fast decode": Case(
        Node(num_heads=6, kv_num_heads=1, head_size=64, local_window_size=700),
        Device(8, 0, 108),
        OFF,
        Envelope((1, 5), (1, 100), (1, 1300), 1300),
    ),
    "memory-efficient": Case(
        Node(num_heads=4, kv_num_heads=2, head_size=192),
        Device(7, 5, 40),
        OFF,
        SMALL,
    ),
    "unfused": Case(
        Node(num_heads=4, kv_num_heads=4, head_size=264),
        Device(7, 5, 40),
        replace(OFF, disable_mea=True),
        SMALL,
    ),
    "query above total": Case(
        Node(num_heads=2, kv_num_heads=1, head_size=64),
        Device(8, 0, 60),
        OFF,
        Envelope((1, 3), (1, 200), (1, 120), 1024, allow_query_above_total=True),
    ),
}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", ROUTES)
def test_every_route_is_the_maximum_over_its_states(name: str, revision: str):
    """With batches, phases and devices on which counts jump."""
    found = agree(ROUTES[name], revision)
    assert any(entry.status == "exact" for entry in found.entries)


def test_the_examples_reach_every_route():
    """Each of them is the route that it is named after, somewhere."""
    reached = Counter(
        route
        for case in ROUTES.values()
        for revision in REVISIONS
        for _, route, _ in brute(*case, revision)
    )
    assert set(independent.ROUTES) - {"cudnn", "errors"} <= set(reached)


QWEN = {
    "1.5B": Node(num_heads=12, kv_num_heads=2, head_size=128, do_rotary=True),
    "7B": Node(num_heads=28, kv_num_heads=4, head_size=128, do_rotary=True),
}


@pytest.mark.parametrize("alias", ["any", "both", "none", "one"])
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("model", QWEN)
def test_qwen_is_the_maximum_over_a_million_states(model: str, revision: str, alias: str):
    """82 multiprocessors, cuDNN off, batch 1, query up to 1,024, total up to 1,152."""
    envelope = Envelope((1, 1), (1, 1024), (1, 1152), 1152)
    case = Case(QWEN[model], Device(12, 0, 82), OFF, envelope)
    found = agree(case, revision, alias)
    refused = alias == "one" and revision == "older"
    assert found.status == ("unavailable" if refused else "exact")
