"""Published models and devices by name, and the plain reader of facts in front of the models."""

from dataclasses import dataclass
from typing import Literal

import pytest

from routeproof.models.facts import Range, read_facts
from routeproof.models.ort.gqa.node import read
from routeproof.models.presets import find, published
from routeproof.spec.errors import InputError, UnknownNameError


@pytest.mark.parametrize("kind", ["models", "devices"])
def test_every_entry_answers_to_its_name_and_names_its_source(kind):
    """In any case of letters; no two share a name."""
    names = [entry["name"] for entry in published(kind)]
    assert len({name.lower() for name in names}) == len(names) > 40
    for entry in published(kind):
        assert find(kind, entry["name"].swapcase()) is entry
        assert entry["source"]


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        ("models", "qwen2.5-1.5b", "Qwen2.5-1.5B-Instruct"),
        ("models", "PHI-4-mini", "Phi-4-mini-instruct"),
        ("models", "phi-4", "phi-4"),
        ("devices", "l4", "L4"),
        ("devices", "rtx 4090", "GeForce RTX 4090"),
        ("devices", "GeForce RTX 4090 L", "GeForce RTX 4090 Laptop"),
        ("devices", "h200", "H200-SXM-141GB"),
    ],
)
def test_a_prefix_that_one_name_has_is_enough(kind, text, name):
    """A whole name wins over those that it starts."""
    assert find(kind, text)["name"] == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qwen3", "'qwen3' is the start of Qwen3-0.6B, Qwen3-1.7B"),
        ("lama", "unknown model preset 'lama'.*Llama-3.1-8B"),
        ("Phi4", "did you mean"),
        ("", "known: "),
    ],
)
def test_an_unclear_name_says_what_it_may_be(text, message):
    """All that start so, or contain it, or the closest."""
    with pytest.raises(UnknownNameError, match=message):
        find("models", text)


def test_a_preset_brings_the_models_own_facts():
    """Window, QK-norm and head sinks; everything else is a default, and can be given."""
    envelope = {"query": 1, "total": 1}
    asked = read({"node": "gpt-oss-20b", "device": "L4", "envelope": envelope})
    assert (asked.node.window, asked.node.head_sink) == (128, "dynamic_conversion")
    assert "12 of 24" in next(str(fact.value) for fact in asked.facts if fact.name == "layers")
    assert read({"node": "Qwen3-8B", "device": "L4", "envelope": envelope}).node.qk_norm
    node = {"preset": "gpt-oss-20b", "window": "none", "head_sink": "none"}
    asked = read({"node": node, "device": "L4", "envelope": envelope})
    assert (asked.node.window, asked.node.head_sink) == (None, "none")
    origins = {fact.name: fact.origin for fact in asked.facts}
    assert origins["window"] == "given"
    assert origins["num_heads"] == "preset gpt-oss-20b"
    assert origins["rotary"] == "default"
    assert "layers" not in origins  # of the other layers, as is asked


def test_the_present_holds_what_the_past_and_the_total_need():
    """A windowed cache holds its window, whatever the total."""
    base = {"device": "L4", "envelope": {"query": 1, "total": "1..100"}}
    assert read({**base, "node": "phi-4"}).capacity == 100
    static = {**base, "envelope": {**base["envelope"], "past_capacity": 4096}}
    assert read({**static, "node": "phi-4"}).capacity == 4096
    windowed = {"preset": "phi-4", "window": 64, "windowed_cache": "on"}
    assert read({**base, "node": windowed}).capacity == 64


ONE = Range(1, 1)


@dataclass(frozen=True)
class Facts:
    """One fact of each kind."""

    rows: Range = ONE
    count: int = 3
    name: Literal["a", "b"] = "a"
    flag: bool = False
    scale: float = 1.0
    most: int | None = None


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"rows": "2..5"}, "rows", Range(2, 5)),
        ({"rows": "1_024"}, "rows", Range(1024, 1024)),
        ({"rows": 7}, "rows", Range(7, 7)),
        ({"rows": [2, 5]}, "rows", Range(2, 5)),
        ({"count": "12"}, "count", 12),
        ({"name": "b"}, "name", "b"),
        ({"flag": "on"}, "flag", True),
        ({"flag": True}, "flag", True),
        ({"scale": "0.5"}, "scale", 0.5),
        ({"scale": 2}, "scale", 2.0),
        ({"most": "none"}, "most", None),
        ({"most": 4}, "most", 4),
    ],
)
def test_texts_and_values_mean_the_same(given, field, value):
    """As options write facts, and as TOML and JSON do."""
    record, facts = read_facts(Facts, given, "part", {}, "")
    assert getattr(record, field) == value
    assert [fact.name for fact in facts if fact.origin == "given"] == [field]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": True}, "part.rows: expected an integer or a range"),
        ({"rows": [1]}, "part.rows: expected"),
        ({"rows": [True, 2]}, "part.rows: expected"),
        ({"rows": "5..2"}, "part.rows: the range 5..2 is empty"),
        ({"rows": -1}, "part.rows: -1..-1 is not within"),
        ({"count": True}, "part.count: expected an integer, got True"),
        ({"count": 1.0}, "part.count: expected an integer, got 1.0"),
        ({"count": 2**31}, "part.count: 2147483648 is not in"),
        ({"name": 1}, "part.name: 1 is not one of a, b"),
        ({"name": True}, "part.name: True is not one of a, b"),
        ({"flag": 1}, "part.flag: expected on or off, got 1"),
        ({"scale": True}, "part.scale: expected a finite number"),
        ({"scale": "inf"}, "part.scale: expected a finite number"),
        ({"cuont": 1}, "part: unknown field 'cuont'; did you mean 'count'?"),
        ([], "part: expected a table of facts"),
    ],
)
def test_a_value_of_another_kind_is_refused(given, message):
    """True is no integer, and 1 is no switch."""
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        read_facts(Facts, given, "part", {}, "")
