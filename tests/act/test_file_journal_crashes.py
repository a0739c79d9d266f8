"""Crashes of the journal in a file: whatever they leave of it, it has what was acknowledged and nothing else."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent.act.journal import file_journal
from agent.act.journal.file_journal import FileJournal, read_file, watermark_path
from agent.errors import JournalUnavailable
from agent.journal.entries import JournalWrite
from tests.act.file_journals import plain
from tests.act.journals import a_write, leader

pytestmark = pytest.mark.usefixtures("disk_without_waiting")
KEYS = st.sampled_from(["plan/a", "plan/b", "batch/a/1", "throttle/x/y", "pause"])
NUMBERS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.none() | st.dictionaries(st.text(max_size=5), NUMBERS | st.text(max_size=20), max_size=3)
WRITES = st.lists(st.builds(JournalWrite, KEYS, st.sampled_from(["intent", "done"]), VALUES), min_size=1, max_size=4)


def said_by(writes: list[list[JournalWrite]]) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for write in (one for transaction in writes for one in transaction):
        found.pop(write.key, None)
        if write.value is not None:
            found[write.key] = (write.kind, dict(write.value))
    return found


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WRITES, min_size=1, max_size=6), st.data())
def test_a_crash_at_any_byte_leaves_whole_transactions_and_no_part_of_one(
    transactions: list[list[JournalWrite]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "journal"
        journal = FileJournal.open(path, leader("one"))
        watermark = watermark_path(path)
        ends, told = [path.stat().st_size], [watermark.read_bytes()]
        for writes in transactions:
            journal.append(*writes)
            ends.append(path.stat().st_size)
            told.append(watermark.read_bytes())
        journal.close()
        cut = data.draw(st.integers(ends[0], ends[-1]), label="bytes that reached the disk")
        torn = data.draw(st.sampled_from([b"", b"\0" * 40, b"deadbeef [}"]), label="what else the disk shows")
        path.write_bytes(path.read_bytes()[:cut] + torn)
        acknowledged = max(number for number, end in enumerate(ends) if end <= cut)
        watermark.write_bytes(told[data.draw(st.integers(0, acknowledged), label="what the watermark knows of it")])
        again = FileJournal.open(path, leader("two"))
        assert plain(again.view()) == said_by(transactions[:acknowledged])
        assert again.epoch == 2
        again.append(a_write("after", n=1))
        assert plain(read_file(path).view) == plain(again.view())
        again.close()


class Life(RuleBasedStateMachine):
    """One file through openings, crashes, refusing disks and compactions, beside a plain dictionary."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "journal"
        self.expected: dict[str, tuple[str, Any]] = {}
        self.epoch = 0
        self.open()

    def open(self) -> None:
        self.journal = FileJournal.open(self.path, leader("one"))
        assert self.journal.epoch > self.epoch
        self.epoch = self.journal.epoch

    @rule(writes=WRITES)
    def append(self, writes: list[JournalWrite]) -> None:
        self.journal.append(*writes)
        self.take(writes)

    def take(self, writes: list[JournalWrite]) -> None:
        for write in writes:
            self.expected.pop(write.key, None)
            if write.value is not None:
                self.expected[write.key] = (write.kind, dict(write.value))

    @rule()
    def compact(self) -> None:
        self.journal._compact()

    @rule(writes=WRITES, whole=st.booleans())
    def disk_refuses(self, writes: list[JournalWrite], whole: bool) -> None:
        """The line, or half of it, is there before the disk says no."""
        real = file_journal._write_all

        def refuse(file: int, line: bytes) -> None:
            real(file, line if whole else line[: len(line) // 2])
            raise OSError(errno.EIO, "Input/output error")

        file_journal._write_all = refuse
        try:
            with pytest.raises(JournalUnavailable, match="Input/output error"):
                self.journal.append(*writes)
        finally:
            file_journal._write_all = real

    @rule(torn=st.binary(max_size=30))
    def crash(self, torn: bytes) -> None:
        """The process is gone, and a half-written compaction and a torn line are left."""
        self.journal.close()
        with self.path.open("ab") as file:
            file.write(torn.replace(b"\n", b""))
        self.path.with_name("journal.new").write_bytes(torn)
        self.open()

    @rule()
    def stop(self) -> None:
        self.journal.close()
        self.open()

    @precondition(lambda self: hasattr(self, "journal"))
    @invariant()
    def file_and_writer_say_the_same(self) -> None:
        assert plain(self.journal.view()) == self.expected
        assert read_file(self.path).view == self.journal.view()

    def teardown(self) -> None:
        if hasattr(self, "journal"):
            self.journal.close()
            self.directory.cleanup()


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=25, stateful_step_count=20)
