"""The journal in a file: openings, locks, damages, lost records, and files that others may have made."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.act.journal import file_journal
from agent.act.journal.file_journal import FileJournal, read_file, watermark_path
from agent.act.own_files import holder
from agent.errors import BadInput, FencedOut, JournalUnavailable, WrongCluster
from agent.journal.entries import Entry, JournalWrite
from agent.journal.record_trust import LEADER
from tests.act.file_journals import plain
from tests.act.journals import a_write, leader

pytestmark = pytest.mark.usefixtures("disk_without_waiting")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_entries_keep_who_said_them_when_over_compactions_and_openings(path: Path) -> None:
    one = FileJournal.open(path, leader("one"))
    one.append(a_write("plan/a", n=1), a_write("plan/b", n=2))
    first = dict(one.view())
    one.close()
    two = FileJournal.open(path, leader("two"))
    assert {key: entry for key, entry in two.view().items() if key != LEADER} == {
        key: entry for key, entry in first.items() if key != LEADER
    }
    assert (two.view()[LEADER].epoch, two.view()[LEADER].value["agent"]) == (2, "two")
    two.append(a_write("plan/a", n=3))
    assert [(entry.epoch, entry.seq) for entry in (first["plan/a"], two.view()["plan/a"])] == [(1, 1), (2, 1)]
    two.close()


def test_an_append_that_returned_is_on_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = FileJournal.open(path, leader("one"))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    journal.append(a_write("plan/a", n=1))
    journal.append(a_write("plan/b", n=1))
    assert synced == [synced[0], path.stat().st_size]
    assert synced[0] < synced[1]
    journal.close()


def test_a_file_that_grows_is_compacted_while_it_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_journal, "LEAST_BYTES", 20_000)
    journal = FileJournal.open(path, leader("one"))
    sizes = []
    for number in range(200):
        journal.append(a_write("plan/a", n=number, text="x" * 500))
        sizes.append(path.stat().st_size)
    assert max(sizes) < 22_000
    assert read_file(path).view["plan/a"].value["n"] == 199
    journal.close()


def test_a_second_agent_waits_until_the_first_is_gone_however_it_ends(path: Path) -> None:
    holding = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    try:
        assert holding.stdout is not None
        assert holding.stdout.readline() == "holds\n"
        with pytest.raises(FencedOut, match=f"Another agent holds the journal .*: process {holding.pid} of ") as told:
            FileJournal.open(path, leader("two"))
        assert told.value.exit_code == 6
        assert str(holding.pid) in (holder(path) or "")
        assert read_file(path).view["plan/a"].value == {"n": 1}, "a reader needs no lock"
    finally:
        holding.send_signal(signal.SIGKILL)
        holding.wait(10)
    after = FileJournal.open(path, leader("two"))
    assert after.epoch == 2
    assert after.view()["plan/a"] == Entry("plan/a", "said", {"n": 1}, after.view()["plan/a"].at_ms, 1, 1)
    after.close()


_HOLD = """
import sys, time
from pathlib import Path
from agent.act.journal.file_journal import FileJournal
from tests.act.journals import leader, a_write
journal = FileJournal.open(Path(sys.argv[1]), leader("one"))
journal.append(a_write("plan/a", n=1))
print("holds", flush=True)
time.sleep(60)
"""


def test_a_lock_file_that_was_removed_ends_the_writer_before_two_can_write(path: Path) -> None:
    one = FileJournal.open(path, leader("one"))
    path.with_name("journal.lock").unlink()
    two = FileJournal.open(path, leader("two"))
    with pytest.raises(FencedOut, match="is not this agent's any more"):
        one.append(a_write("plan/a", n=1))
    assert isinstance(one.ended, FencedOut)
    two.append(a_write("plan/b", n=1))
    assert set(read_file(path).view) == {LEADER, "plan/b"}
    one.close()
    two.close()


@pytest.fixture
def written(path: Path) -> Path:
    journal = FileJournal.open(path, leader("one"))
    for number in range(3):
        journal.append(a_write(f"plan/{number}", n=number))
    journal.close()
    return path


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(b'"n":1', b'"n":7', "damaged in line 3: its checksum does not match", id="a byte has turned"),
        pytest.param(b"plan/1", b"\xff\xff\xff\xff\xff\xff", "damaged in line 3", id="no text any more"),
    ],
)
def test_a_damaged_line_before_others_is_never_passed_over(written: Path, old: bytes, new: bytes, told: str) -> None:
    before = written.read_bytes()
    written.write_bytes(before.replace(old, new))
    with pytest.raises(BadInput, match=told):
        FileJournal.open(written, leader("two"))
    assert written.read_bytes() == before.replace(old, new), "and the evidence stays"
    with pytest.raises(BadInput, match=told):
        read_file(written)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(bytes(range(1, 256)), id="binary, in one line"),
        pytest.param(b'{"colour": "blue"}\n', id="JSON of something else"),
        pytest.param(b"kafka:\n  bootstrap.servers: a:1\n", id="a settings file"),
    ],
)
def test_a_file_that_is_no_journal_is_not_an_empty_one_and_is_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for read in (lambda: read_file(path), lambda: FileJournal.open(path, leader("one"))):
        with pytest.raises(BadInput, match="is not a journal of rackwise"):
            read()
    assert path.read_bytes() == content


@pytest.mark.parametrize("cut", [0, 1, 5, 8, 9, 10, 30])
def test_a_first_line_that_a_crash_has_cut_anywhere_is_an_empty_journal(written: Path, cut: int) -> None:
    written.write_bytes(written.read_bytes()[:cut])
    watermark_path(written).unlink()  # nothing was acknowledged then
    assert read_file(written).view == {}
    FileJournal.open(written, leader("two")).close()


def test_a_newer_rackwises_file_is_left_alone_with_a_clear_sentence(written: Path) -> None:
    entry = {"v": 2, "key": "plan/9", "kind": "k", "value": {}}
    with written.open("ab") as file:
        file.write(file_journal._line([entry]))
    before = written.read_bytes()
    with pytest.raises(BadInput, match="a newer rackwise wrote it") as told:
        FileJournal.open(written, leader("two"))
    assert "same version" in told.value.todo
    assert written.read_bytes() == before


def test_another_clusters_file_is_left_alone(written: Path) -> None:
    with pytest.raises(WrongCluster, match="is that of cluster cluster-under-test"):
        FileJournal.open(written, leader("two", cluster="another"))


def test_a_disk_without_room_refuses_and_says_so(path: Path) -> None:
    journal = FileJournal.open(path, leader("one"))
    journal._drop_file()
    journal._file = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(JournalUnavailable, match="No space left on device"):
        journal.append(a_write("plan/a", n=1))
    assert "plan/a" not in journal.view()
    journal.append(a_write("plan/b", n=1))
    assert set(read_file(path).view) == {LEADER, "plan/b"}
    journal.close()
    with pytest.raises(JournalUnavailable, match="no longer leads"):
        journal.append(a_write("plan/c", n=1))


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailable, match="No such file"):
        FileJournal.open(tmp_path / "none" / "journal", leader("one"))
    assert read_file(tmp_path / "none" / "journal").view == {}


def test_only_the_owner_may_read_or_write_the_file(written: Path) -> None:
    assert [oct(one.stat().st_mode & 0o777) for one in (written, written.with_name("journal.lock"))] == ["0o600"] * 2
    assert json.loads(written.read_bytes().splitlines()[0][9:])[0]["key"] == LEADER


# --- what was lost, and what strangers made -----------------------------------------------------------------------


@pytest.mark.parametrize("lines", [0, 1, 2, 3])
def test_a_journal_whose_end_was_cut_by_hand_is_noticed(written: Path, lines: int) -> None:
    written.write_bytes(b"".join(written.read_bytes().splitlines(keepends=True)[:lines]))
    with pytest.raises(BadInput, match=r"has lost records: it ends with entry .*, and 1-3 was written before"):
        FileJournal.open(written, leader("two"))


def test_a_journal_that_is_gone_or_restored_from_an_older_copy_is_noticed(written: Path) -> None:
    older = written.read_bytes()
    again = FileJournal.open(written, leader("two"))
    again.append(a_write("plan/a", n=1), JournalWrite("plan/a", "gone", None))
    again.close()
    written.write_bytes(older)
    with pytest.raises(BadInput, match=r"ends with entry 1-3, and 2-2 was written before"):
        FileJournal.open(written, leader("three"))
    written.unlink()
    with pytest.raises(BadInput, match="ends with entry none"):
        FileJournal.open(written, leader("three"))


def test_a_last_entry_that_was_a_deletion_is_no_loss_after_a_compaction(path: Path) -> None:
    journal = FileJournal.open(path, leader("one"))
    journal.append(a_write("plan/a", n=1))
    journal.append(JournalWrite("plan/a", "gone", None))
    journal._compact()
    journal.close()
    after = FileJournal.open(path, leader("two"))
    assert (after.epoch, plain(after.view())) == (2, {})
    after.close()


def test_no_epoch_is_given_out_twice_also_when_its_first_entry_was_never_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FileJournal.open(path, leader("one")).close()

    def refuse(_file: int, _line: bytes) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(file_journal, "_write_all", refuse)
        with pytest.raises(JournalUnavailable):
            FileJournal.open(path, leader("two"))
    after = FileJournal.open(path, leader("three"))
    assert after.epoch == 3
    after.close()


def test_a_damaged_watermark_stops_the_agent_and_without_one_the_file_counts(written: Path) -> None:
    watermark_path(written).write_bytes(b"7 8 9\n")
    with pytest.raises(JournalUnavailable, match=r"watermark .* is damaged"):
        FileJournal.open(written, leader("two"))
    watermark_path(written).unlink()
    after = FileJournal.open(written, leader("two"))
    assert after.epoch == 2
    after.close()


BESIDE = ["journal", "journal.lock", "journal.reached"]


@pytest.mark.parametrize("name", BESIDE)
def test_no_link_is_followed(path: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "theirs"
    target.write_bytes(b"")
    path.with_name(name).symlink_to(target)
    with pytest.raises(JournalUnavailable, match="it is a symbolic link"):
        FileJournal.open(path, leader("one"))
    assert target.read_bytes() == b""


def test_a_compaction_follows_no_link_that_was_laid_for_it(written: Path, tmp_path: Path) -> None:
    target = tmp_path / "theirs"
    target.write_bytes(b"precious")
    written.with_name("journal.new").symlink_to(target)
    FileJournal.open(written, leader("two")).close()
    assert target.read_bytes() == b"precious"
    assert not written.is_symlink()


@pytest.mark.parametrize("name", BESIDE)
def test_a_pipe_is_not_waited_for(path: Path, name: str) -> None:
    os.mkfifo(path.with_name(name))
    with pytest.raises(JournalUnavailable, match=r"pipe|not a regular file"):
        FileJournal.open(path, leader("one"))
    if name == "journal":
        with pytest.raises(JournalUnavailable, match="not a regular file"):
            read_file(path)
    assert holder(path) is None or name != "journal.lock"


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("mode", [0o660, 0o606])
def test_a_file_that_others_may_write_is_refused(written: Path, name: str, mode: int) -> None:
    written.with_name(name).chmod(mode)
    with pytest.raises(JournalUnavailable, match="other users may write it: chmod go-w"):
        FileJournal.open(written, leader("two"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", BESIDE)
def test_a_file_of_another_user_is_refused(written: Path, name: str) -> None:
    os.chown(written.with_name(name), 54_321, -1)
    with pytest.raises(JournalUnavailable, match=r"it belongs to uid54321@.*, not to this agent's user"):
        FileJournal.open(written, leader("two"))


def test_a_directory_in_which_others_may_replace_files_is_refused(written: Path) -> None:
    written.parent.chmod(0o777)
    with pytest.raises(JournalUnavailable, match="other users may replace files"):
        FileJournal.open(written, leader("two"))
    written.parent.chmod(0o1777)
    FileJournal.open(written, leader("two")).close()
