"""Telemetry in a file: whole lines, a largest size, and no error in the loop when a disk is full."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from agent.errors import BadInput
from agent.record.files import TelemetryFile, read_events
from agent.telemetry.looks import looks_in
from tests.record.test_telemetry import SMALL, lines_of


class Text(NamedTuple):
    text: str


def write(file: TelemetryFile, *texts: str) -> list[str]:
    return [line.text for line in file.copied(Text(text) for text in texts)]


def test_lines_are_passed_on_and_appended(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    file = TelemetryFile(path, 1_000_000)
    assert write(file, "1", "2") == ["1", "2"]
    assert write(file, "3") == ["3"]
    assert (path.read_text(), file.written, file.dropped, file.problem()) == ("1\n2\n3\n", 3, 0, None)
    assert path.stat().st_mode & 0o007 == 0, "telemetry names groups and hosts: not for everybody on the machine"


def test_at_its_largest_size_it_is_renamed_and_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    file = TelemetryFile(path, 4)
    for text in ("abc", "def", "ghi"):
        write(file, text)
    assert (path.read_text(), path.with_name("t.jsonl.1").read_text()) == ("ghi\n", "def\n")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        pytest.param("/dev/full", "/dev/full: No space left on device", id="a full disk"),
        pytest.param("/proc/none/t.jsonl", "/proc/none/t.jsonl: No such file or directory", id="no such directory"),
    ],
)
def test_what_cannot_be_written_is_a_sentence_and_the_lines_go_on(path: str, sentence: str) -> None:
    file = TelemetryFile(Path(path), 1_000_000)
    texts = ["x" * 100_000] * 3
    assert write(file, *texts) == texts
    assert (file.problem(), file.written, file.dropped) == (sentence, 0, 3)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        pytest.param(Path.mkdir, "a directory", id="a directory, which would be renamed at its largest size"),
        pytest.param(os.mkfifo, "a named pipe", id="a pipe without a reader, which would hold the loop up"),
    ],
)
def test_only_a_file_is_opened_and_renamed(tmp_path: Path, make: Callable[[Path], None], kind: str) -> None:
    path = tmp_path / "t.jsonl"
    make(path)
    file = TelemetryFile(path, 1)
    assert write(file, "1") == ["1"]
    assert (file.problem(), file.dropped) == (f"{path}: it is {kind}, and a regular file is expected", 1)
    assert [one.name for one in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_line_that_a_crash_cut_in_two_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = [*lines_of(SMALL, look="l-1"), *lines_of(SMALL, look="l-2")]
    path.write_text("\n".join(lines)[:-10])
    looks = [{event.look for event in look} for look in looks_in(read_events(path))]
    assert looks == [{"l-1"}, {"l-2"}]
    assert sum(1 for _ in read_events(path)) == len(lines) - 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(None, "cannot be read: No such file or directory", id="missing"),
        pytest.param("hello\n", "is not a telemetry file", id="something else"),
        pytest.param("{}\n", "is not a telemetry file", id="other JSON"),
    ],
)
def test_a_file_that_holds_no_telemetry_is_bad_input(tmp_path: Path, content: str | None, sentence: str) -> None:
    path = tmp_path / "t.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInput, match=sentence) as refused:
        list(read_events(path))
    assert refused.value.exit_code == 2
