"""Commands of operators as bytes, and as files of a spool directory: which are taken, in which order, and whose."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.act.inbox import MAX_BYTES, POSITION, SpoolInbox, command_bytes, command_of, spool_command, spooled
from agent.act.own_files import user_at_host
from agent.errors import BadInput, ConfigError
from agent.execute.commands.command_context import CommandOrigin
from agent.journal.entries import Entry, JournalState
from tests.act.answered_commands import with_answers


@pytest.mark.parametrize(
    "command",
    [
        pytest.param({}, id="no id"),
        pytest.param({"id": 7}, id="an id that is a number"),
        pytest.param({"id": "../../etc/x"}, id="an id that is a path"),
        pytest.param({"id": ""}, id="an empty id"),
        pytest.param({"id": "a", "text": "x" * MAX_BYTES}, id="too big"),
        pytest.param({"id": "a", "n": float("inf")}, id="no JSON"),
    ],
)
def test_what_is_no_command_is_refused_where_it_is_given(command: Mapping[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="The command"):
        command_bytes(command)
    with pytest.raises(BadInput):
        spool_command(tmp_path / "spool", command, at_ms=1)
    assert not (tmp_path / "spool").exists()


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"[]",
        b"{",
        b'{"id": 1}',
        b'{"id": "\xff"}',
        b"[" * 50_000,
        b'{"id":"a","t":"' + b"x" * MAX_BYTES + b'"}',
    ],
)
def test_foreign_bytes_are_no_command(data: bytes | None) -> None:
    assert command_of(data) is None


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b'{"id":"c1","at_ms":' + b"9" * 400 + b"}", "a time of 400 digits"),
        (b'{"id":"c1","at_ms":1e400}', "infinity"),
        (b'{"id":"c1","at_ms":NaN}', "not a number"),
        (b'{"id":"c1","who":"\\ud800"}', "half a character"),
        (b'{"id":"c1","id":"c2"}', "two ids"),
        (b'{"id":"c1","a":' + b"[" * 100 + b"]" * 100 + b"}", "nested deep"),
        ('{"id":"c1"}'.encode("utf-16"), "another encoding"),
    ],
)
def test_what_no_reader_of_commands_may_meet_is_no_command(data: bytes, what: str) -> None:
    assert command_of(data) is None, what


def test_a_person_whose_name_is_no_text_is_told_so_where_the_command_is_given() -> None:
    with pytest.raises(BadInput) as refused:
        command_bytes({"id": "c1", "who": "ann\udcff@desk"})
    assert str(refused.value) == "The command cannot be sent: a text in it holds half a surrogate pair"


def test_a_file_that_was_held_back_is_as_old_as_it_is_and_not_as_new_as_its_name(tmp_path: Path) -> None:
    """Members of the directory's group may rename what another one laid down; only its owner may change its time."""
    spool = tmp_path / "spool"
    inbox = SpoolInbox(spool, spooled(spool))
    spool_command(spool, {"id": "held", "verb": "rollback"}, at_ms=1)
    (file,) = spool.iterdir()
    away = file.rename(tmp_path / "away")
    os.utime(away, (5_000, 5_000))
    assert inbox.read(placed()) == ()
    away.rename(spool / "00000000000099-held.json")
    (one,) = inbox.read(placed())
    assert (one.came.live, one.came.at_ms) == (True, 5_000_000), "it came while this agent led, and is old"


def placed(name: str = "none") -> JournalState:
    """What a journal says that has taken commands from files before."""
    return {POSITION: Entry(POSITION, "file", {"name": name}, 0, 1, 1)}


def test_files_are_taken_in_order_and_go_away_once_they_are_answered(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    inbox = SpoolInbox(spool)
    assert (inbox.read(placed()), inbox.problem()) == ((), None), "no directory, no commands"
    for at_ms, name in ((2_100_000_000_000, "early"), (1, "late"), (3, "last")):  # the clock was set back in between
        assert spool_command(spool, {"id": name, "verb": "pause"}, at_ms=at_ms) == name
    (spool / "0-strange.json").write_bytes(b"no command")
    (spool / "half.new").write_bytes(b'{"id": "ha')
    assert [one.id for one in inbox.read(placed())] == ["early", "late", "last"]
    assert "was renamed to 0-strange.bad" in (inbox.problem() or "")
    first, second, _ = inbox.read(placed())
    assert first.value == {"id": "early", "verb": "pause"}
    view = with_answers(placed(), first)
    assert [one.id for one in inbox.read(view)] == ["late", "last"]
    assert [one.id for one in SpoolInbox(spool).read(with_answers(view, second))] == ["last"], "also after a takeover"
    assert sorted(path.name for path in spool.iterdir()) == ["0-strange.bad", "02100000000002-last.json", "half.new"]


def test_a_new_journal_takes_no_command_that_was_given_before_it(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool_command(spool, {"id": "old", "verb": "pause"}, at_ms=1)
    inbox = SpoolInbox(spool, spooled(spool))
    spool_command(spool, {"id": "new", "verb": "pause"}, at_ms=2)
    assert [one.id for one in inbox.read({})] == ["new"]
    assert "1 commands in" in (inbox.problem() or "")
    assert (spool / "00000000000001-old.old").exists()


def test_a_command_tells_whose_file_it_is_and_whether_it_waited_for_the_agent(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool_command(spool, {"id": "waited", "verb": "pause"}, at_ms=1)
    before = spooled(spool)
    spool_command(spool, {"id": "live", "verb": "pause"}, at_ms=1)
    os.utime(next(spool.glob("*waited*")), (1_000, 1_000))
    waited, live = SpoolInbox(spool, before).read(placed())
    me = user_at_host(os.geteuid())
    assert (waited.came, live.came.live, live.came.owner) == (
        CommandOrigin(live=False, at_ms=1_000_000, owner=me),
        True,
        me,
    )


@pytest.mark.parametrize("kind", ["directory", "pipe", "symbolic link", "hard link"])
def test_what_is_no_plain_file_is_set_aside_and_keeps_no_other_one_waiting(tmp_path: Path, kind: str) -> None:
    spool, theirs = tmp_path / "spool", tmp_path / "theirs"
    for at_ms, name in ((1, "early"), (3, "late")):
        spool_command(spool, {"id": name, "verb": "pause"}, at_ms=at_ms)
    odd = spool / "00000000000002-odd.json"
    theirs.write_bytes(command_bytes({"id": "odd", "verb": "resume"})[1])
    make = {"directory": odd.mkdir, "pipe": lambda: os.mkfifo(odd), "symbolic link": lambda: odd.symlink_to(theirs)}
    make.get(kind, lambda: odd.hardlink_to(theirs))()
    inbox = SpoolInbox(spool)
    assert [one.id for one in inbox.read(placed())] == ["early", "late"]
    assert "00000000000002-odd.json could not be read: " in (inbox.problem() or "")
    assert [one.id for one in inbox.read(placed())] == ["early", "late"]
    assert inbox.problem() is None, "once"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories away")
def test_a_directory_that_a_stranger_made_is_not_obeyed(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool_command(spool, {"id": "a", "verb": "resume"}, at_ms=1)
    os.chown(spool, 54_321, 54_321)
    inbox = SpoolInbox(spool)
    assert inbox.read(placed()) == ()
    assert "it belongs to uid54321@" in (inbox.problem() or "")


def test_a_directory_that_is_a_link_is_not_obeyed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    spool_command(theirs, {"id": "a", "verb": "resume"}, at_ms=1)
    (tmp_path / "spool").symlink_to(theirs)
    inbox = SpoolInbox(tmp_path / "spool")
    assert inbox.read(placed()) == ()
    assert "no command is accepted" in (inbox.problem() or "")
    with pytest.raises(ConfigError, match="could not be written"):
        spool_command(tmp_path / "spool", {"id": "b"}, at_ms=1)


def test_writing_a_command_follows_no_link_that_was_laid_for_it(tmp_path: Path) -> None:
    spool, theirs = tmp_path / "spool", tmp_path / "theirs"
    spool.mkdir()
    theirs.write_bytes(b"precious")
    (spool / "00000000000001-a.json.new").symlink_to(theirs)
    with pytest.raises(ConfigError, match="could not be written"):
        spool_command(spool, {"id": "a"}, at_ms=1)
    assert theirs.read_bytes() == b"precious"


def test_a_directory_that_everybody_may_write_is_not_obeyed(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool_command(spool, {"id": "a"}, at_ms=1)
    assert oct(spool.stat().st_mode & 0o777) == "0o700"
    spool.chmod(0o777)
    inbox = SpoolInbox(spool)
    assert inbox.read({}) == ()
    assert "any user may write" in (inbox.problem() or "")


def test_a_group_may_command_where_the_directory_lets_it(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    name = spool_command(spool, {"id": "a"}, at_ms=1)
    spool.chmod(0o2770)
    inbox = SpoolInbox(spool)
    assert ([one.id for one in inbox.read(placed())], inbox.problem()) == ([name], None)
    assert oct(next(spool.iterdir()).stat().st_mode & 0o777) == "0o644", "the agent may be another user"


def test_the_agent_may_read_a_command_whatever_the_umask_of_the_one_who_commands(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    before = os.umask(0o077)
    try:
        spool_command(spool, {"id": "a"}, at_ms=1)
    finally:
        os.umask(before)
    assert oct(next(spool.iterdir()).stat().st_mode & 0o777) == "0o644"


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file is in the way")
    with pytest.raises(ConfigError, match="The command could not be written to"):
        spool_command(tmp_path / "spool", {"id": "a"}, at_ms=1)


@pytest.mark.parametrize("aside", [0, 1, 3])
def test_files_that_are_no_command_cannot_take_the_turn_of_one(tmp_path: Path, aside: int) -> None:
    """However many, and also where the names under which they are set aside are taken."""
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    for number in range(1_200):
        (spool / f"{number:014d}-x.json").symlink_to("/nowhere")
        if aside:
            (spool / f"{number:014d}-x.bad").touch()
    spool_command(spool, {"id": "stop", "verb": "pause"}, at_ms=2_000_000_000_000)
    inbox = SpoolInbox(spool)
    for _ in range(max(1, aside)):
        assert [one.id for one in inbox.read(placed())] == ["stop"]
    assert inbox.unread() is None, "what is set aside is no reason to begin anything before a command"
    assert len(list(spool.glob("*.json"))) == 1
    assert len(list(spool.glob("*.bad"))) == 1_200 * (2 if aside else 1), "and nothing is put in the place of another"


def test_a_directory_that_is_not_obeyed_cannot_be_read_and_a_file_is_passed_over(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool_command(spool, {"id": "a"}, at_ms=1)
    (spool / "0-strange.json").write_bytes(b"no command")
    inbox = SpoolInbox(spool)
    inbox.read(placed())
    assert (inbox.unread(), "is not a command" in (inbox.problem() or "")) == (None, True)
    spool.chmod(0o777)
    inbox.read(placed())
    assert inbox.unread() == inbox.problem()
    assert "any user may write" in (inbox.unread() or "")
