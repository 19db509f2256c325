"""`diff`: two revisions, SPECs, reports or answers; what moves, at which state, on both sides."""

import json

import pytest

QWEN = ["--preset", "qwen2.5-1.5b", "--device", "sm=8.6,sms=82", "--kernel-options", "cudnn=off"]
ENVELOPE = ["--query", "1..1024", "--total", "1..1152"]
SPEC = """\
{ladder}[node]
preset = "qwen2.5-1.5b"
[device]
sm = "8.6"
sms = {sms}
[kernel_options]
cudnn = "{cudnn}"
[envelope]
query = "1..{query}"
total = "1..{total}"
"""
QWEN_HEADS = (12, 2, 128)  # query heads, KV heads, head size
CHUNK = ("chunk", "both")


@pytest.fixture
def diff(call):
    """Return a function that compares and gives status and JSON."""

    def diff(*args):
        code, out, err = call("diff", *args, "--format", "json")
        assert err == ""
        return code, json.loads(out)

    return diff


@pytest.fixture
def spec(tmp_path):
    """Return a function that writes a SPEC of a small envelope."""

    def spec(name, *, ladder="", **facts):
        path = tmp_path / name
        line = f'ladder = "{ladder}"\n' if ladder else ""
        facts = {"sms": 82, "cudnn": "off", "query": 64, "total": 128, **facts}
        path.write_text(SPEC.format(ladder=line, **facts))
        return path

    return spec


@pytest.fixture
def report(own, call, tmp_path):
    """Return a function that checks obligations of the names given and saves the report."""

    def report(name, *, head=None, **expected):
        file = own(**expected) if head is None else own(head=head, **expected)
        path = tmp_path / name
        call("check", file, "--rlimit", "200000", "-j", "1", "--output", path)
        return path

    return report


def by_place(rows, *names):
    """Return the rows by what names them."""
    return {tuple(row[name] for name in names): row for row in rows}


def size(problem, sms, query, total, *, fast):
    """Return the bytes of Flash, from the facts and by hand: rotary, one row, fp16."""
    heads, kv_heads, width = problem
    work = (kv_heads if fast else heads) * -(-query // 64)
    blocks = -(-total // 128)
    most = min(128, sms, blocks)
    splits = 1
    if work < 0.8 * sms and most > 1:
        new = [c for c in range(1, most + 1) if c == 1 or -(-blocks // c) != -(-blocks // (c - 1))]
        waves = {c: work * c / sms for c in new}
        efficiency = {c: waves[c] / -(-work * c // sms) for c in new}
        splits = min(c for c in new if efficiency[c] >= 0.85 * max(efficiency.values()))
    rotary = 0 if fast else 2 * heads * query * width
    end = 256 + rotary
    lse = 4 * heads * query
    if splits == 1:
        return end + lse
    end = -(-(end + lse) // 256) * 256 + splits * lse
    return -(-end // 256) * 256 + splits * lse * width


@pytest.fixture
def revisions(diff):
    """Return what differs between the ladders on the published node."""
    globs = ["--obligations", "ort.gqa.reach.cores.*"]
    return diff("older", "newest", *QWEN, *ENVELOPE, *globs)


def test_the_newest_ladder_keeps_chunks_off_fast_decode(revisions):
    """Chunks with shared buffers change the route; half aliased pairs run instead of failing."""
    code, found = revisions
    assert code == found["exit_status"] == 1
    changes = by_place(found["bounds"]["changes"], "phase", "route", "alias")
    assert {place: one["change"] for place, one in changes.items()} == {
        ("chunk", "flash_fast_decode", "both"): "disappeared",
        ("chunk", "flash", "both"): "appeared",
        ("prefill", "flash", "one"): "appeared",
        ("chunk", "flash", "one"): "appeared",
        ("decode", "flash", "one"): "appeared",
    }
    assert found["bounds"]["unchanged"] == 5
    errors = found["bounds"]["errors"]
    assert (len(errors["a"]), errors["b"]) == (3, [])
    assert found["bounds"]["facts"]["changed"] == [
        {"section": "run", "name": "ladder", "a": ["older"], "b": ["newest"]}
    ]


def test_both_sides_are_executed_at_the_states_of_either(revisions):
    """Route and bytes of each, computed here a second time."""
    states = [
        one for one in revisions[1]["bounds"]["states"] if (one["phase"], one["alias"]) == CHUNK
    ]
    assert [one["of"] for one in states] == ["A", "B"]
    for one in states:
        query, total = (one["state"][f"{name}sequence_length"] for name in ("", "total_"))
        older, newest = (size(QWEN_HEADS, 82, query, total, fast=fast) for fast in (True, False))
        assert (one["a"]["route"], one["a"]["bytes"]) == ("flash_fast_decode", older)
        assert (one["b"]["route"], one["b"]["bytes"]) == ("flash", newest)
        assert one["difference"] == newest - older
        assert one["factor"] == pytest.approx(newest / older)
    largest = by_place(revisions[1]["bounds"]["maxima"], "phase", "alias")[CHUNK]
    assert largest["a"]["bytes"] == states[0]["a"]["bytes"] >= states[1]["a"]["bytes"]
    assert largest["b"]["bytes"] == states[1]["b"]["bytes"] >= states[0]["b"]["bytes"]


def test_where_the_other_side_fails_its_error_is_told(revisions):
    """Executed as well: an error has no bytes."""
    states = by_place(revisions[1]["bounds"]["states"], "phase", "alias")
    older = states["decode", "one"]["a"]
    assert (older["route"], older["error"], older["bytes"]) == (
        "error",
        "partial_past_present_alias",
        None,
    )
    assert (
        by_place(revisions[1]["bounds"]["maxima"], "phase", "alias")["decode", "one"]["a"] is None
    )


def test_revisions_alone_compare_obligations_alone(call):
    """Without a node; what has no counterpart is named."""
    code, out, err = call("diff", "older", "newest", "--obligations", "*.unfused.mea-without-*")
    assert (code, err) == (1, "")
    assert "5 compared: none changed" in out
    assert "only in B            ort.gqa.reach.unfused.mea-without-unquantised.newest" in out
    assert "bounds                 not compared: no node, device and envelope" in out


def test_a_ladder_against_itself_changes_nothing(call):
    """Without deciding any obligation."""
    code, out, _ = call("diff", "newest", "newest", *QWEN, "--query", "1..4", "--total", "1..4")
    assert code == 0
    assert "obligations            quantify over all facts; the ladder is the same" in out
    assert "none changed, 9 not" in out


def test_a_spec_file_serves_both_revisions(diff, spec):
    """The ladder that it names itself does not count."""
    file = spec("a.toml", ladder="older")
    code, found = diff("newest", "older", "--spec", file, "--obligations", "ort.gqa.reach.cores.*")
    assert code == 1
    assert found["bounds"]["facts"]["changed"][0]["b"] == ["older"]
    assert found["obligations"]["compared"] == 1


def test_specs_with_other_facts_move_bounds(diff, spec):
    """The same entries, with other bytes; a state may lie outside the other envelope."""
    code, found = diff(spec("a.toml"), spec("b.toml", query=128))
    assert code == 1
    assert found["obligations"] is None
    changes = by_place(found["bounds"]["changes"], "phase", "route", "alias")
    moved = changes["prefill", "flash", "none"]
    assert moved["change"] == "moved"
    before, after = (size(QWEN_HEADS, 82, n, n, fast=False) for n in (64, 128))
    assert (moved["a"]["exact_bytes"], moved["b"]["exact_bytes"]) == (before, after)
    assert moved["difference"] == after - before
    states = by_place(found["bounds"]["states"], "phase", "alias", "of")
    assert states["prefill", "none", "A"]["b"] == {**states["prefill", "none", "A"]["a"]}
    outside = states["prefill", "none", "B"]["a"]
    assert (outside["bytes"], outside["outside"]) == (after, ["query 128 is not in 1..64"])


def test_another_device_needs_other_splits(diff, spec):
    """Executed by the recipe of either, on the same chunk."""
    devices = (8, 1_000)
    _, found = diff(*(spec(f"{sms}.toml", sms=sms, total=512) for sms in devices))
    states = [
        one
        for one in found["bounds"]["states"]
        if (one["phase"], one["alias"]) == ("chunk", "none")
    ]
    assert max(one["difference"] for one in states) > 0
    for one in states:
        query, total = (one["state"][f"{name}sequence_length"] for name in ("", "total_"))
        few, many = (size(QWEN_HEADS, sms, query, total, fast=False) for sms in devices)
        assert (one["a"]["bytes"], one["b"]["bytes"]) == (few, many)
        assert one["difference"] == many - few


def test_a_route_without_a_recipe_makes_the_whole_unavailable(call, spec):
    """The entries of cuDNN appear, and there is no maximum over all routes."""
    code, out, _ = call("diff", spec("a.toml"), spec("b.toml", cudnn="on"))
    assert code == 1
    assert "appeared  chunk    cudnn  both      unavailable" in out
    assert "B: its recipe is not known" in out
    assert "status          exact  unavailable" in out


def test_specs_with_other_ladders_compare_obligations_too(diff, spec):
    """As revisions do."""
    files = (spec("a.toml", ladder="older"), spec("b.toml"))
    code, found = diff(*files, "--obligations", "ort.gqa.reach.cores.older")
    assert code == 1
    assert found["obligations"]["compared"] == 1


def test_options_take_the_place_of_what_specs_say(diff, spec):
    """On both sides."""
    code, found = diff(spec("a.toml"), spec("b.toml", sms=4), "--device", "sm=9.0,sms=7")
    assert code == 0
    assert found["bounds"]["facts"]["changed"] == []


@pytest.fixture
def answers(call, spec, tmp_path):
    """Return a SPEC, its saved answer and that of another one."""
    saved = []
    for name, query in (("one.json", 64), ("two.json", 128)):
        code, out, _ = call("bound", spec("a.toml", query=query), "--format", "json")
        assert code == 0
        (tmp_path / name).write_text(out)
        saved.append(tmp_path / name)
    return spec("a.toml"), *saved


def test_saved_answers_are_compared_and_not_executed(answers, diff, call):
    """The same changes as of the SPECs; each side knows its own states."""
    _, first, second = answers
    code, found = diff(first, second)
    assert code == 1
    assert found["obligations_note"] == "not compared: an answer of bound has none"
    assert {one["change"] for one in found["bounds"]["changes"]} == {"moved"}
    for one in found["bounds"]["states"]:
        executed = {letter for letter in "AB" if one[letter.lower()]}
        assert executed == set(one["of"].split(" and "))
    assert call("diff", first, first)[0] == 0
    assert "not executed" in call("diff", first, second)[1]


def test_a_saved_answer_against_its_spec(answers, diff):
    """The same: nothing differs. Another one: the SPEC is executed at the saved states."""
    file, first, second = answers
    assert diff(first, file)[0] == 0
    code, found = diff(second, file)
    assert code == 1
    states = by_place(found["bounds"]["states"], "phase", "alias", "of")
    assert states["prefill", "none", "A"]["b"]["bytes"] == size(
        QWEN_HEADS, 82, 128, 128, fast=False
    )


def test_a_maximum_that_is_only_bounded_is_unknown(answers, call, tmp_path):
    """Status 3, although something differs for certain."""
    _, first, second = answers
    data = json.loads(second.read_text())
    data["routes"][0] |= {"status": "safe bound", "exact_bytes": None, "attained_at": None}
    data["routes"][0]["reason"] = "a lemma [is] unknown"
    path = tmp_path / "bounded.json"
    path.write_text(json.dumps(data))
    code, out, _ = call("diff", first, path)
    assert code == 3
    assert "B: a lemma [is] unknown" in out


def test_reports_show_each_verdict_that_changes(report, call):
    """With the counterexample of the side that is refuted."""
    before = report("before.json", holds="proved", fails="refuted")
    relaxed = report("relaxed.json", holds="proved", fails="refuted")
    text = relaxed.read_text()
    data = json.loads(text)
    (broken,) = [one for one in data["obligations"] if one["id"] == "own.fails"]
    broken |= {"verdict": "proved", "counterexample": None}
    relaxed.write_text(json.dumps(data))
    code, out, _ = call("diff", before, relaxed)
    assert code == 1
    assert "2 compared: 1 changed" in out
    assert "A refuted            own.fails fails [/x]" in out
    assert "length  46,341" in out
    assert "B proved             own.fails" in out
    assert call("diff", before, before)[0] == 0


def test_reports_of_two_versions_of_the_code(own, call, diff, tmp_path):
    """The claim is the same, what it is about has changed."""
    paths = [tmp_path / name for name in ("before.json", "after.json")]
    call("check", own(holds="proved"), "-j", "1", "--output", paths[0])
    file = tmp_path / "own.py"
    file.write_text(file.read_text().replace("heads + length >= 2", "heads + length >= 3"))
    call("check", file, "-j", "1", "--output", paths[1])
    code, found = diff(*paths)
    (changed,) = found["obligations"]["changed"]
    assert code == 1
    assert (changed["a"]["verdict"], changed["b"]["verdict"]) == ("proved", "refuted")
    assert changed["b"]["counterexample"]["state"] == {"heads": 1, "length": 1}


def test_an_obligation_of_one_report_alone_is_a_difference(report, diff):
    """Named on its side."""
    both = report("both.json", holds="proved", fails="refuted")
    one = report("one.json", holds="proved")
    code, found = diff(both, one)
    assert code == 1
    assert found["obligations"]["only"] == {"a": ["own.fails"], "b": []}
    assert diff(both, one, "--obligations", "own.holds")[0] == 0


def test_an_unknown_verdict_is_never_no_difference(report, call):
    """Status 3, be it unknown on both sides."""
    path = report("open.json", open="proved")
    code, out, _ = call("diff", path, path)
    assert code == 3
    assert "1 compared: none changed, 1 open" in out
    assert "A unknown            own.open" in out


def test_equal_runs_give_equal_bytes(call, spec):
    """Text and JSON."""
    files = (spec("a.toml"), spec("b.toml", sms=4))
    for form in ("text", "json"):
        first, second = (call("diff", *files, "--format", form)[1] for _ in range(2))
        assert first == second


ANSWER = {"schema_version": 1, "routes": []}
ROUTE = {"phase": "p", "route": "r", "alias": "a", "status": "exact", "reason": ""}
ROUTE |= {"exact_bytes": 1, "structural_bytes": 1, "unfused_bytes": 1}
JUDGED = {"id": "x", "title": "t", "verdict": "refuted"}


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["oldr", "newest"], "unknown revision 'oldr'; did you mean 'older'?"),
        (["older", "newest", "--query", "1..4"], "field 'num_heads' is missing"),
        (["older", "newest", "--obligations", "*.cors.*"], "unknown obligation '*.cors.*'"),
        (["nowhere.json", "newest"], "nowhere.json: No such file"),
        (["notes.txt", "newest"], "notes.txt: a SPEC, a report or an answer ends in"),
        (["neither.json", "newest"], "neither a SPEC, nor a report of check, nor an answer"),
        (["typo.json", "newest"], "typo.json: SPEC: unknown section 'devise'; did you mean"),
        (["report.json", "older"], "a report of check and a revision of the ladder have nothing"),
        (["report.json", "answer.json"], "a report of check and an answer of bound have nothing"),
        (["older", "answer.json"], "a revision of the ladder and an answer of bound have nothing"),
        (["report.json", "report.json", "--preset", "x"], "--preset: ask of a node"),
        (["answer.json", "answer.json", "--obligations", "x"], "--obligations: there are bounds"),
        (["spec.json", "spec.json", "--spec", "spec.json"], "--spec: goes with revisions"),
        (["list.json", "report.json"], "has 'verdict', a text"),
        (["verdict.json", "report.json"], "verdict.json: x: 'sound' is no verdict"),
        (["example.json", "report.json"], "example.json: x: a counterexample has 'shows' (dict)"),
        (["version.json", "report.json"], "version.json: expected a report of schema_version 1"),
        (["twice.json", "report.json"], "twice.json: an obligation is told twice"),
        (["routes.json", "answer.json"], "a phase, route and alias state is told twice"),
        (["place.json", "answer.json"], "exact bytes come with 'attained_at'"),
        (["bytes.json", "answer.json"], "'exact_bytes' is neither a number of bytes nor null"),
        (["half.json", "answer.json"], "an answer of bound has 'errors', a list"),
    ],
)
def test_bad_input_is_told_in_one_line(call, tmp_path, monkeypatch, args, problem):
    """Status 2, and what to look at."""
    monkeypatch.chdir(tmp_path)
    whole = dict.fromkeys(("exact_bytes", "structural_bytes", "unfused_bytes"))
    answer = {**ANSWER, **whole, "status": "unavailable", "errors": [], "facts": []}
    envelope = {"query": 1, "total": 1}
    node = {"num_heads": 1, "kv_num_heads": 1, "head_size": 64}
    files = {
        "notes.txt": {},
        "neither.json": {"x": 1},
        "typo.json": {"node": {}, "devise": {}},
        "spec.json": {"node": node, "device": {"sm": 8.0, "sms": 1}, "envelope": envelope},
        "report.json": {"schema_version": 1, "obligations": []},
        "list.json": {"schema_version": 1, "obligations": [{"id": "x", "title": "t"}]},
        "version.json": {"schema_version": 2, "obligations": []},
        "verdict.json": {"schema_version": 1, "obligations": [{**JUDGED, "verdict": "sound"}]},
        "example.json": {
            "schema_version": 1,
            "obligations": [{**JUDGED, "counterexample": {"state": {}}}],
        },
        "twice.json": {"schema_version": 1, "obligations": [JUDGED, JUDGED]},
        "answer.json": answer,
        "routes.json": {**answer, "routes": [{**ROUTE, "exact_bytes": None}] * 2},
        "place.json": {**answer, "routes": [ROUTE]},
        "bytes.json": {**answer, "routes": [{**ROUTE, "exact_bytes": "1"}]},
        "half.json": ANSWER,
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    code, out, err = call("diff", *args)
    assert (code, out) == (2, "")
    assert problem in err
    assert err.count("\n") == 1
