"""The store: documents come back as they were put, or not at all."""

import json
import os
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.checkers.announcing import listening
from routeproof.checkers.caching import store as module
from routeproof.checkers.caching.store import Store

KEY, BODY = {"obligation": "own.one", "part": 1}, {"verdict": "proved", "text": "ü [/] \n"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def store(tmp_path):
    """Give a store whose folder does not exist yet."""
    return Store(tmp_path / "deep" / "cache")


@pytest.fixture
def warned():
    """Collect what is said."""
    said = []
    with listening(said.append):
        yield said


def file_of(store):
    """Return the only file of the store."""
    (entry,) = store.entries("verdicts")
    return entry.path


def test_what_is_put_is_got(store, warned):
    """And nothing is before that, or under another key or kind."""
    assert store.get("verdicts", KEY) is None
    store.put("verdicts", KEY, BODY)
    assert store.get("verdicts", KEY) == BODY
    assert store.get("verdicts", {**KEY, "part": True}) is None
    assert store.get("statements", KEY) is None
    store.put("verdicts", KEY, {})
    assert store.get("verdicts", KEY) == {}
    store.drop("verdicts", KEY)
    store.drop("verdicts", KEY)
    assert store.get("verdicts", KEY) is None
    assert warned == []


@given(key=st.dictionaries(st.text(), JSON), body=st.dictionaries(st.text(), JSON))
def test_any_document_survives(tmp_path_factory, key, body):
    """To the type of every value."""
    store = Store(tmp_path_factory.mktemp("store"))
    store.put("verdicts", key, body)
    assert json.dumps(store.get("verdicts", key)) == json.dumps(body)


@given(data=st.data())
def test_a_changed_byte_is_noticed(data):
    """Anywhere: in the checksum, in the key, in the body."""
    packed = module.pack({"key": KEY, "body": BODY})
    assert module.unpack(packed) == {"key": KEY, "body": BODY}
    at = data.draw(st.integers(0, len(packed) - 2))  # the last byte is the end of the line
    other = data.draw(st.integers(0, 255).filter(lambda one: one != packed[at]))
    changed = packed[:at] + bytes([other]) + packed[at + 1 :]
    assert module.unpack(changed) in (None, {"key": KEY, "body": BODY})
    if module.unpack(changed):  # a space in the first line is none of the checksum
        assert changed.split(b"\n")[1] == packed.split(b"\n")[1]
    assert module.unpack(packed[:at]) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"{}", b"null\n{}", b"\xff\xfe", b"[" * 100_000, b'{"checksum": 1}\n{}\n'],
)
def test_a_damaged_file_is_ignored_with_a_warning(store, warned, content):
    """It is overwritten by the next document."""
    store.put("verdicts", KEY, BODY)
    file_of(store).write_bytes(content)
    assert store.get("verdicts", KEY) is None
    assert [(one.kind, "is damaged" in one.text) for one in warned] == [("warning", True)]
    store.put("verdicts", KEY, BODY)
    assert store.get("verdicts", KEY) == BODY


@pytest.mark.parametrize(
    "document", [[], {"key": {}}, {"key": [], "body": {}}, {"key": {}, "b": 1}]
)
def test_a_document_of_another_shape_is_damaged(store, warned, document):
    """Whatever its checksum says."""
    store.put("verdicts", KEY, BODY)
    body = json.dumps(document).encode()
    head = json.dumps({"checksum": module.checksum(body)}).encode()
    file_of(store).write_bytes(head + b"\n" + body + b"\n")
    assert store.get("verdicts", KEY) is None
    assert len(warned) == 1


def test_an_entry_of_something_else_is_ignored(store, warned):
    """A file that was copied to another's name."""
    store.put("verdicts", KEY, BODY)
    mine = file_of(store)
    other = {"obligation": "own.two"}
    store.put("verdicts", other, {"verdict": "refuted"})
    (theirs,) = {one.path for one in store.entries("verdicts")} - {mine}
    mine.write_bytes(theirs.read_bytes())
    assert store.get("verdicts", KEY) is None
    assert "the entry of something else" in warned[0].text
    assert sorted(one.document is None for one in store.entries("verdicts")) == [False, True]


def test_a_folder_in_its_place_is_ignored(store, warned):
    """As is whatever else cannot be read."""
    store.put("verdicts", KEY, BODY)
    file = file_of(store)
    file.unlink()
    file.mkdir()
    assert store.get("verdicts", KEY) is None
    assert len(warned) == 1
    with pytest.raises(OSError, match="directory"):
        store.put("verdicts", KEY, BODY)
    assert list(file.parent.iterdir()) == [file]  # no draft is left


def test_pruning_removes_what_is_damaged_or_old(store):
    """A document that was got counts as used; a draft is another's until it is abandoned."""
    for name in ("used", "old", "damaged", "young"):
        store.put("verdicts", {"name": name}, BODY)
    by_name = {one.document["key"]["name"]: one.path for one in store.entries("verdicts")}
    draft, abandoned = (by_name["old"].parent / f".draft-{one}" for one in ("new", "gone"))
    for path in (by_name["used"], by_name["old"], draft, abandoned):
        path.touch()
        if path != draft:
            os.utime(path, (time.time() - 40 * 86_400,) * 2)
    by_name["damaged"].write_bytes(b"?")
    assert store.get("verdicts", {"name": "used"})
    removed = {one.path for one in store.prune(30 * 86_400)}
    assert removed == {by_name["old"], by_name["damaged"]}
    assert {one.path for one in store.entries("verdicts")} == {by_name["used"], by_name["young"]}
    assert draft.exists()
    assert not abandoned.exists()
    assert len(store.prune(0)) == 2


WRITER = """\
import sys
from pathlib import Path
from routeproof.checkers.caching.store import Store
for number in range(200):
    body = {"writer": sys.argv[2], "text": "x" * 1000 * number}
    Store(Path(sys.argv[1])).put("verdicts", {"key": 1}, body)
"""


def test_parallel_writers_never_mix(store, warned):
    """Whoever reads meanwhile gets a document of one of them, whole."""
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, store.root, name]) for name in ("a", "b")
    ]
    seen = []
    while any(writer.poll() is None for writer in writers):
        seen.append(store.get("verdicts", {"key": 1}))
    assert any(seen)
    assert all(len(one["text"]) % 1000 == 0 for one in seen if one)
    assert [writer.wait() for writer in writers] == [0, 0]
    assert warned == []
    assert len(list(store.root.rglob("*.json"))) == 1
    assert not list(store.root.rglob(".draft-*"))


def test_what_is_no_entry_is_left_alone(store):
    """Whoever names a folder that holds something else keeps it."""
    store.put("verdicts", KEY, BODY)
    mine = store.root / "v1" / "verdicts" / "ab" / "list.py"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    assert len(list(store.entries("verdicts"))) == 1
    assert len(store.prune(0.0)) == 1
    assert mine.read_text() == "mine"


def test_an_entry_with_a_number_that_is_none_is_damaged(store):
    """NaN is no JSON, whatever the checksum says."""
    store.put("verdicts", KEY, BODY)
    path = file_of(store)
    body = b'{"key":{"part":NaN},"body":{}}'
    head = json.dumps({"checksum": module.checksum(body)}).encode()
    path.write_bytes(head + b"\n" + body + b"\n")
    assert file_of(store) == path
    assert [entry.path for entry in store.prune(1e9)] == [path]
