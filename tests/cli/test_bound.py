"""`routeproof bound`: what it is asked, what it answers, and how it refuses."""

import csv
import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

from routeproof.checkers.bounding import answer as answering
from routeproof.checkers.bounding.report import print_text
from routeproof.checkers.decide import Decision
from routeproof.checkers.registry import load_question
from routeproof.models.presets import published
from routeproof.spec.errors import InternalError
from routeproof.spec.obligation import Verdict

QWEN = (
    *("--preset", "qwen2.5-1.5b", "--device", "sm=12.0,sms=82"),
    *("--kernel-options", "cudnn=off", "--batch", "1", "--query", "1..1024"),
    *("--total", "1..1152", "--past-capacity", "1152"),
)
TOML = """
[node]
preset = "qwen2.5-1.5b"
[device]
sm = 12.0
sms = 82
[kernel_options]
cudnn = false
[envelope]
query = "1..1024"
total = [1, 1152]
"""


def answered(call, *args):
    """The JSON answer."""
    code, out, err = call("bound", *args, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def entry(found, phase, route, alias):
    """The entry of a phase, route and alias state."""
    (one,) = (
        one
        for one in found["routes"]
        if (one["phase"], one["route"], one["alias"]) == (phase, route, alias)
    )
    return one


# Declared root, prefill and decode consumed (bytes): facts of the design document.
FIGURES = {
    "qwen2.5-1.5b": (123_273_472, 3_195_136, 56_064),
    "qwen2.5-7b": (287_441_152, 7_454_976, 130_304),
}


@pytest.mark.parametrize("model", FIGURES)
def test_the_published_figures_are_answers(call, model):
    """All six. By query heads decode would take other splits; the root holds a preserved past."""
    root, prefill, decode = FIGURES[model]
    found = answered(call, *QWEN, "--preset", model)
    assert found["unfused_bytes"] == root
    assert entry(found, "chunk", "flash", "one")["unfused_bytes"] == root
    assert entry(found, "prefill", "flash", "both")["exact_bytes"] == prefill
    fast = entry(found, "decode", "flash_fast_decode", "both")
    assert fast["exact_bytes"] == decode
    # Without a preserved past the root would be smaller by that tensor ...
    shared = answered(call, *QWEN, "--preset", model, "--alias", "both")
    kv_heads = next(one["value"] for one in found["facts"] if one["name"] == "kv_num_heads")
    assert root - shared["unfused_bytes"] == kv_heads * 1152 * 128 * 2
    # ... and splits chosen by query heads, as Flash's own are, come to other bytes.
    assert decode - entry(found, "decode", "flash", "none")["exact_bytes"] not in (0, None)


def test_nine_splits_are_chosen_by_kv_heads(call):
    """The accumulators hold 9 splits of 12 heads: of 2 KV heads' work, not of 12."""
    found = answered(call, *QWEN)
    regions = entry(found, "decode", "flash_fast_decode", "both")["regions"]
    sizes = {one["name"]: one["bytes"] for one in regions}
    assert sizes["flash.softmax_lse_accumulator"] == 4 * 9 * 12
    regions = entry(found, "decode", "flash", "none")["regions"]
    sizes = {one["name"]: one["bytes"] for one in regions}
    assert sizes["flash.softmax_lse_accumulator"] == 4 * 6 * 12


def test_the_schema_of_the_answer(call):
    """Keys that scripts rely on."""
    found = answered(call, *QWEN)
    assert found["schema_version"] == 1
    assert {"status", "exact_bytes", "structural_bytes", "unfused_bytes"} <= set(found)
    keys = ("phase", "route", "alias", "status", "exact_bytes", "attained_at", "regions")
    for one in found["routes"]:
        assert {*keys, "structural_bytes", "unfused_bytes"} <= set(one)
        assert one["ratios"]["structural"] == one["structural_bytes"] / one["exact_bytes"]
    assert found["exact_bytes"] == max(one["exact_bytes"] for one in found["routes"])
    assert all(word.startswith("proved") for word in found["proof"]["lemmas"].values())


def test_regions_end_where_the_bytes_do(call):
    """In order, without overlap, the last one ending at the total."""
    for one in answered(call, *QWEN, "--preset", "llama-3.1-8b")["routes"]:
        ends = 0
        for region in one["regions"]:
            assert region["offset_bytes"] >= ends
            ends = region["offset_bytes"] + region["bytes"]
        assert ends == one["exact_bytes"]


def test_options_toml_and_json_ask_the_same(call, tmp_path):
    """And options decide where both speak."""
    toml, as_json = tmp_path / "node.toml", tmp_path / "node.json"
    toml.write_text(TOML)
    as_json.write_text(
        json.dumps(
            {
                "node": "qwen2.5-1.5b",
                "device": {"sm": "12.0", "sms": 82},
                "kernel-options": {"cudnn": "off"},
                "envelope": {"query": [1, 1024], "total": "1..1152"},
            }
        ).replace("kernel-options", "kernel_options")
    )
    wanted = answered(call, *QWEN)["routes"]
    assert answered(call, toml)["routes"] == wanted
    assert answered(call, as_json)["routes"] == wanted
    assert answered(call, toml, *QWEN)["routes"] == wanted
    older = answered(call, as_json, "--ladder", "older", "--alias", "both")["routes"]
    assert older == answered(call, *QWEN, "--ladder", "older", "--alias", "both")["routes"]
    assert older != wanted


def test_every_fact_is_printed_with_its_origin(call):
    """Given, from the preset, or the default."""
    code, out, _ = call("bound", *QWEN, "--node", "rotary=off", "--enforced", "query")
    assert code == 0
    assert "node preset            num_heads=12, kv_num_heads=2, head_size=128" in out
    assert "node given             rotary=off" in out
    assert "node default           type=fp16, cache=same" in out
    assert "declared only   batch 1, total 1..1152, query <= total: nothing enforces it" in out


def test_text_and_csv_hold_the_same_bytes(call):
    """One line per phase, route and alias state."""
    found = answered(call, *QWEN)
    rows = list(csv.DictReader(io.StringIO(call("bound", *QWEN, "--format", "csv")[1])))
    assert [row["exact_bytes"] for row in rows] == [
        str(one["exact_bytes"]) for one in found["routes"]
    ]
    text = call("bound", *QWEN)[1]
    assert all(f"{one['exact_bytes']:,}" in text for one in found["routes"])


def test_equal_runs_give_equal_bytes(routeproof):
    """Text, JSON and CSV in a pipe."""
    for form in ("text", "json", "csv"):
        one, two = (routeproof("bound", *QWEN, "--format", form) for _ in range(2))
        assert (one.returncode, one.stdout) == (0, two.stdout)


def test_reachable_cudnn_makes_the_whole_unavailable(call):
    """Its bytes are not known; those of the other routes are listed all the same."""
    args = [one for one in QWEN if one != "cudnn=off"]
    args.remove("--kernel-options")
    found = answered(call, *args)
    assert found["status"] == "unavailable: cuDNN reachable"
    assert found["exact_bytes"] is None
    assert found["structural_bytes"] is None
    assert entry(found, "decode", "cudnn", "none")["exact_bytes"] is None
    assert entry(found, "prefill", "flash", "none")["exact_bytes"] == 3_195_136
    assert "unavailable: cuDNN reachable" in call("bound", *args)[1]


def test_an_older_device_does_not_reach_cudnn_by_itself(call):
    """It is enabled on its own from 9.0 on."""
    args = ("--preset", "qwen2.5-1.5b", "--device", "L4", "--query", "1..64", "--total", "1..64")
    assert answered(call, *args)["status"] == "exact"


def test_a_route_whose_recipe_fails_is_unbounded(call):
    """Never 0: an older ladder sends windowed caches to fast decode, which its recipe refuses."""
    found = answered(
        call,
        *("--node", "num_heads=4,kv_num_heads=1,head_size=64,window=512,windowed_cache=on"),
        *("--device", "A100-SXM4-80GB", "--query", "1..64", "--total", "1..900"),
        *("--kernel-options", "xqa=off", "--ladder", "older", "--alias", "both"),
    )
    assert found["status"].startswith("unavailable: chunk by flash_fast_decode: its recipe is")
    decode = entry(found, "decode", "flash_fast_decode", "both")
    assert decode["exact_bytes"] is None
    assert "its recipe is invalid_argument, as at batch_size 1" in decode["reason"]


def test_errors_are_outcomes_too(call):
    """The older ladder refuses a half aliased pair."""
    found = answered(call, *QWEN, "--ladder", "older")
    error = {"phase": "chunk", "error": "partial_past_present_alias", "alias": "one"}
    assert error in found["errors"]
    assert not [one for one in found["routes"] if one["alias"] == "one"]


def test_chunks_of_several_rows_are_an_error(call):
    """Which the classifier reports, before any route is chosen."""
    found = answered(call, *QWEN, "--batch", "1..4", "--alias", "both")
    error = {"phase": "chunk", "error": "batch_size_must_be_1", "alias": "both"}
    assert found["errors"] == [error]


def test_a_recipe_that_fails_is_unbounded_however_many_regimes_there_are(call):
    """XQA's grid has a limit that today's aggregate does not look at."""
    code, out, _ = call(
        *("bound", "--node", "num_heads=4,kv_num_heads=1,head_size=128", "--device"),
        *("sm=8.0,sms=1000000", "--batch", "1..400000", "--query", "1", "--total", "2..64"),
        *("--alias", "both", "--format", "json"),
    )
    found = json.loads(out)
    assert (code, found["status"].partition(":")[0]) == (3, "unavailable")
    xqa = entry(found, "decode", "xqa", "both")
    assert (xqa["status"], xqa["exact_bytes"]) == ("unavailable", None)
    assert "its recipe is unavailable, as at batch_size 400,000" in xqa["reason"]


def test_too_many_regimes_leave_the_structural_bound(call):
    """A safe bound and exit status 3, not an answer after an hour."""
    code, out, _ = call(
        *("bound", "--node", "num_heads=1,kv_num_heads=1,head_size=64", "--device"),
        *("sm=8.0,sms=2000000000", "--batch", "1..2000000", "--query", "1..2", "--total"),
        *("1..2000000000", "--kernel-options", "xqa=off", "--format", "json"),
    )
    found = json.loads(out)
    assert (code, found["status"]) == (3, "safe bound")
    assert found["exact_bytes"] is None
    assert found["structural_bytes"] > 0
    assert "too many" in found["reason"]


def test_an_open_lemma_leaves_the_structural_bound(call, monkeypatch):
    """Without it there is no upper bound but the proved one."""
    unknown = Decision(Verdict.UNKNOWN, "smt", reason="time is up")
    monkeypatch.setattr(answering, "_decided", lambda _: unknown)
    code, out, _ = call("bound", *QWEN, "--format", "json")
    found = json.loads(out)
    assert (code, found["status"], found["exact_bytes"]) == (3, "safe bound", None)
    assert found["unfused_bytes"] is None
    assert "time is up" in found["reason"]


def test_a_maximum_that_does_not_execute_is_an_error_of_ours(monkeypatch):
    """The interpreter has the last word on every state that is shown."""
    asked = load_question({"node": "phi-4", "device": "L4", "envelope": {"query": 1, "total": 9}})
    honest = answering.maximise

    def dishonest(case):
        found = honest(case)
        return answering.Maximum(found.size + 1, found.state, None, found.regimes)

    monkeypatch.setattr(answering, "maximise", dishonest)
    with pytest.raises(InternalError, match="executed"):
        answering.answer(asked)


@pytest.mark.parametrize("entry", published("models"), ids=lambda one: one["name"])
def test_every_model_has_an_answer_on_some_device(entry):
    """With the batch, the phases and the tokens of a small deployment."""
    document = {
        "node": entry["name"],
        "device": "A100-SXM4-80GB",
        "envelope": {"batch": "1..4", "query": "1..512", "total": "1..1024"},
    }
    found = answering.answer(load_question(document))
    assert found.status == "exact"
    assert found.exact_bytes <= found.structural_bytes <= found.unfused_bytes * 4


def test_the_closed_form_stands_beside_the_aggregate(call):
    """Above the exact maximum, below today's bound; not for a device beyond its table."""
    found = answered(call, *QWEN)
    assert found["exact_bytes"] < found["closed_bytes"] < found["structural_bytes"]
    huge = answered(call, *QWEN, "--device", "sm=8.0,sms=257")
    assert (huge["status"], huge["closed_bytes"]) == ("exact", None)


def test_every_model_is_a_row_of_the_matrix(call):
    """On each device; the envelope ends at 8,192 tokens or at the model's context."""
    args = ("--matrix", "L4, rtx 4090", "--query", "1..64", "--kernel-options", "cudnn=off")
    code, out, _ = call("bound", *args, "--format", "json")
    rows = json.loads(out)["rows"]
    assert code == 0
    assert len(rows) == 2 * len(published("models"))
    assert {row["device"] for row in rows} == {"L4", "GeForce RTX 4090"}
    assert {row["tokens"] for row in rows} == {4096, 8192}
    for row in rows:
        assert row["exact_bytes"] <= row["closed_bytes"] <= row["structural_bytes"]
    (one,) = (row for row in rows if (row["model"], row["device"]) == ("phi-4", "L4"))
    alone = answered(
        call,
        *("--preset", "phi-4", "--device", "L4", "--kernel-options", "cudnn=off"),
        *("--query", "1..64", "--total", "1..8192"),
    )
    assert {name: one[name] for name in one if name.endswith("_bytes")} == {
        name: alone[name] for name in alone if name.endswith("_bytes")
    }
    text = call("bound", *args)[1]
    assert text.count("| phi-4 | 8,192 |") == 2


def test_the_matrix_says_how_many_tokens_it_is_about(call):
    """And why bytes are not known."""
    args = ("--matrix", "h100-sxm5", "--query", "1..16", "--total", "1..64", "--format", "json")
    for row in json.loads(call("bound", *args)[1])["rows"]:
        assert (row["tokens"], row["device"]) == (64, "H100-SXM5-80GB")
        reason = "cuDNN reachable" if row["status"] == "unavailable" else ""
        assert row["reason"] == reason
    assert "| cuDNN reachable |" in call("bound", *args[:-2])[1]


def test_a_narrow_terminal_cuts_no_figure():
    """It may wrap lines, but a number that lacks digits is another number."""
    asked = {"node": "phi-4", "device": "L4", "envelope": {"query": "1..64", "total": "1..99"}}
    found = answering.answer(load_question(asked))
    console = Console(width=40, force_terminal=True, file=io.StringIO(), soft_wrap=True)
    print_text(console, found)
    text = console.file.getvalue()
    for one in found.entries:
        assert all(f"{size:,}" in text for size in (one.exact_bytes, one.structural_bytes))


@pytest.mark.parametrize("function", ["ort.gqa.unfused", "ort.gqa.classifier"])
def test_every_function_is_written_with_tests(call, function):
    """Without inputs on which it is needed in full, of its boundaries."""
    code, out, _ = call("bound", "--emit", "python", "--function", function)
    assert code == 0
    assert '"vector 12"' in out


def test_a_function_is_written_with_tests_that_pass(call, tmp_path):
    """Those of the inputs on which it is needed in full, one per device."""
    code, out, _ = call("bound", "--emit", "python")
    assert code == 0
    (tmp_path / "flash_accumulators.py").write_text(out)
    command = [sys.executable, "-m", "unittest", "flash_accumulators"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    changed = out.replace("2537", "2536")
    assert changed != out
    (tmp_path / "flash_accumulators.py").write_text(changed)
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--emit", "cpp", "--function", "ort.gqa.flash"), "ort.gqa.flash"),
        (("--emit", "cpp", "--function", "ort.gqa.flsh"), "did you mean 'ort.gqa.flash'?"),
        (("--emit", "cpp", "--matrix", "L4"), "--matrix and --emit exclude each other"),
        (("--emit", "cpp", "--preset", "phi-4"), "--emit writes a function: give no SPEC"),
        (("--preset", "phi-4", "--node", "preset=phi-3.5"), "contradicts --node preset=phi-3.5"),
        (("--matrix", "L4", "--device", "L4"), "--matrix names its devices"),
        (("--matrix", "L4,"), "unknown device preset ''"),
        (("--matrix", "L4", "--preset", "phi-4"), "--matrix takes every published model"),
        (("--matrix", "L4x"), "unknown device preset 'L4x'"),
    ],
)
def test_modes_that_do_not_fit_are_refused(call, args, message):
    """Status 2, nothing on standard output."""
    code, out, err = call("bound", *args)
    assert (code, out) == (2, "")
    assert message in err


BAD = {
    "a scale tensor": (
        {"node": {"preset": "phi-4", "same_scale_tensor": True}},
        "same_scale_tensor is on, but K and V are not quantised alike",
    ),
    "packed": (
        {"node": {"preset": "phi-4", "packed": True, "new_kv": False}},
        "packed is on, but new_kv is off",
    ),
    "a softcap": ({"node": {"preset": "phi-4", "softcap": 1e60}}, "1e+60 is no cap in float32"),
    "a section": ({"nod": {}}, "SPEC: unknown section 'nod'; did you mean 'node'?"),
    "a fact": ({"node": {"num_head": 3}}, "node: unknown field 'num_head'; did you mean"),
    "a missing fact": ({"node": {"num_heads": 3}}, "node: field 'kv_num_heads' is missing"),
    "a preset": ({"node": "qwen2.5-1"}, "model preset 'qwen2.5-1' is the start of Qwen2.5-1.5B"),
    "a device": ({"device": "A100-SMX4-80"}, "did you mean 'A100-SXM4"),
    "no table": ({"device": 3}, "device: expected a preset's name or a table of facts, got 3"),
    "heads": ({"node": {"preset": "phi-4", "num_heads": 7}}, "num_heads 7 is no multiple of"),
    "a cache": ({"node": {"preset": "phi-4", "cache": "int8"}}, "'int8' contradicts quantization"),
    "an empty range": ({"envelope": {"query": "9..3"}}, "query: the range 9..3 is empty"),
    "no range": ({"envelope": {"query": "few"}}, "expected an integer or a range such as 1..1024"),
    "a zero": ({"envelope": {"batch": 0}}, "envelope.batch: 0..0 is not within 1..2147483647"),
    "no Run": ({"envelope": {"query": 9, "total": 3}}, "query 9 and total 3 admit no Run"),
    "chunks": (
        {"envelope": {"batch": 2, "query": 9, "total": 12}},
        "batch 2, query 9 and total 12 admit no Run: several tokens after a first prompt",
    ),
    "no past": ({"envelope": {"past_capacity": 0}, "alias": "one"}, "there is no past to share"),
    "a window": (
        {"node": {"preset": "phi-4", "windowed_cache": True}},
        "windowed_cache is on, but window is none",
    ),
    "a ladder": ({"ladder": "newst"}, "ladder: 'newst' is not one of newest, older; did you"),
    "an alias": ({"alias": 3}, "alias: 3 is not one of both, none, one, any"),
    "a kernel": ({"kernel_options": {"cudn": "on"}}, "did you mean 'cudnn'?"),
    "a switch": ({"kernel_options": {"xqa": "perhaps"}}, "'perhaps' is not one of on, off"),
    "an axis": ({"envelope": {"enforced": "quary"}}, "'quary' is not one of batch, query, total"),
    "a version": ({"device": {"sm": "new", "sms": 3}}, "a compute capability such as 8.0"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line_that_names_the_field(call, tmp_path, what):
    """Status 2, nothing on standard output."""
    changes, message = BAD[what]
    document = {"node": "phi-4", "device": "L4", "envelope": {"query": "1..4", "total": "1..4"}}
    for name, facts in changes.items():
        mixed = isinstance(facts, dict) and isinstance(document.get(name), dict)
        document[name] = {**document[name], **facts} if mixed else facts
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(document))
    code, out, err = call("bound", spec)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "[node", "malformed TOML"),
        ("a.json", "{", "malformed JSON"),
        ("a.json", "[1]", "expected a table of sections"),
        ("a.json", '{"node": 1, "node": 2}', "key 'node' is given twice"),
        ("a.yaml", "node:", "a SPEC ends in .toml or .json"),
        ("a.toml", None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(call, tmp_path, name, text, message):
    """One line with its path."""
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    code, _, err = call("bound", path)
    assert code == 2
    assert message in err
    assert name in err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--node", "num_heads", "--node: expected KEY=VALUE, got 'num_heads'"),
        ("--node", "rotary=on,rotary=off", "--node: 'rotary' is given twice"),
        ("--device", "sm=", "--device: expected KEY=VALUE"),
    ],
)
def test_options_that_are_no_pairs_are_refused(call, option, value, message):
    """Before anything is asked."""
    code, _, err = call("bound", *QWEN, option, value)
    assert code == 2
    assert message in err
