"""Telemetry that something else wrote among ours: one record hides no other one, and ends neither agent nor command."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from agent.errors import BadInput
from agent.record.files import read_events
from agent.record.newest_look import newest_events
from agent.record.reader import newest_memory
from agent.record.running_agent import KINDS, newest_in_file
from agent.telemetry.events import MAX_RECORD_CHARS, MOST_LINE_BYTES, EventKind, TelemetryEvent, from_lines, to_lines
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.typed_json import UnreadableError
from tests.record.test_telemetry import SMALL
from tests.recorded_looks import observation_to_events

LINES = [
    line.encode() for one in observation_to_events(SMALL, Memory(cycle=7), Limits(), look="l") for line in to_lines(one)
]
MEMORY = next(line for line in LINES if b'"kind":"memory"' in line)


def memory(**changes: object) -> bytes:
    """The line of the memory with other fields."""
    return json.dumps({**json.loads(MEMORY), **changes}).encode()


def fragment(look: str = "l", **changes: object) -> bytes:
    data = {"part": 0, "parts": 2, "text": "x", **changes}
    return memory(kind="fragment", look=look, data=data)


JUNK = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"\xff\xfe", id="no text"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b"7", id="a number"),
    pytest.param(b"[" * 100_000, id="nested without end"),
    pytest.param(b'{"v":' + b"9" * 400 + b"}", id="a version of 400 digits"),
    pytest.param(memory(v="1"), id="a version that is text"),
    pytest.param(memory(v=True), id="a version that is true"),
    pytest.param(memory(v=99), id="a newer version"),
    pytest.param(memory(kind=["memory"]), id="a kind that is a list"),
    pytest.param(memory(look=["l"]), id="a look that is a list"),
    pytest.param(memory(n=None), id="no number"),
    pytest.param(memory(taken_ms=10**400), id="a time of 400 digits"),
    pytest.param(memory(taken_ms=2**62), id="a time that has no date"),
    pytest.param(memory(cluster={}), id="a cluster that is an object"),
    pytest.param(memory(data=[]), id="data that are a list"),
    pytest.param(memory(data="x"), id="data that are text"),
    pytest.param(fragment(part="0"), id="a part that is text"),
    pytest.param(fragment(part=-1), id="a part below zero"),
    pytest.param(fragment(parts=10**9), id="very many parts"),
    pytest.param(fragment(parts=0), id="no parts"),
    pytest.param(fragment(text=None), id="a part without text"),
    pytest.param(fragment(parts=1, text="x"), id="a whole that is no event"),
    pytest.param(fragment(parts=1, text=fragment().decode()), id="fragments of fragments"),
]
UNUSABLE = [
    pytest.param(memory(data={}), id="no text"),
    pytest.param(memory(data={"text": 7}), id="a text that is a number"),
    pytest.param(memory(data={"text": "{}"}), id="an empty memory"),
    pytest.param(memory(data={"text": '{"v":1}'}), id="a memory without fields"),
    pytest.param(memory(data={"text": "[" * 100_000}), id="a memory without depth"),
    pytest.param(memory(data={**json.loads(MEMORY)["data"], "findings": ["f"]}), id="findings that are a list"),
    pytest.param(memory(data={**json.loads(MEMORY)["data"], "findings": {"f": 2**62}}), id="a finding of no date"),
]


@pytest.mark.parametrize("junk", [*JUNK, *UNUSABLE])
def test_the_memory_before_a_junk_record_is_restored(junk: bytes) -> None:
    left_out: list[str] = []
    found = newest_memory([MEMORY, junk], SMALL.cluster_id, left_out.append)
    assert found is not None
    assert found[0].cycle == 7
    assert len(left_out) == 1
    assert len(left_out[0]) < 500


@pytest.mark.parametrize("junk", JUNK)
def test_the_newest_events_are_found_among_junk(junk: bytes) -> None:
    left_out: list[str] = []
    found = newest_events([[*LINES, junk]], None, {EventKind.MEMORY, EventKind.LIMITS}, left_out.append)
    assert set(found) == {EventKind.MEMORY, EventKind.LIMITS}
    assert len(left_out) == 1


@pytest.mark.parametrize("junk", JUNK)
def test_the_newest_events_of_a_file_are_found_among_junk(junk: bytes, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(b"\n".join([*LINES, junk, b""]))
    found = newest_in_file(file, None, time.monotonic() + 60)
    assert set(found.events) == KINDS - {EventKind.REPORT}
    assert found.why_not is not None
    assert "shows no report; 1 of its lines could not be read" in found.why_not


@pytest.mark.parametrize("junk", JUNK)
def test_a_file_that_is_replayed_names_what_is_no_event(junk: bytes, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(b"\n".join([*LINES, junk, b""]))
    with pytest.raises(BadInput, match="is not a telemetry file"):
        list(read_events(file))


def test_a_sparse_file_is_refused_after_one_line(tmp_path: Path) -> None:
    file = tmp_path / "sparse.jsonl"
    with file.open("wb") as opened:
        opened.truncate(10_000_000_000)
    with pytest.raises(BadInput) as refused:
        list(read_events(file))
    assert refused.value.why == f"a line is longer than {MOST_LINE_BYTES:,} bytes"


def test_fragments_that_never_become_whole_are_not_kept() -> None:
    """What is open at a time is bounded over all events, so that the oldest of them is dropped."""
    text = "x" * (MAX_RECORD_CHARS // 2)
    event = TelemetryEvent(EventKind.MEMORY, "cluster/c", "c", "mine", 0, 1, {"text": text * 3})
    mine = list(to_lines(event))
    strangers = [fragment(look=f"{number}", parts=100).decode() for number in range(200)]
    assert list(from_lines([mine[0], *strangers[:100], *mine[1:]])) == [event]
    assert list(from_lines([mine[0], *strangers, *mine[1:]])) == []


def test_without_a_listener_the_first_junk_raises() -> None:
    with pytest.raises(UnreadableError):
        list(from_lines([MEMORY, b"junk"]))
