"""Commands by the topic: each arrives once, in order, whichever agent leads by then, and junk delays none of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from agent.act.commands_topic import _READ_S, TopicInbox, end_of, first_position, send_command
from agent.act.inbox import MAX_BYTES, POSITION, CommandInbox, command_bytes
from agent.act.leadership_term import CommandBacklog
from agent.errors import ClusterUnreachable, ConfigError
from agent.execute.commands.command_context import CommandOrigin
from agent.journal.entries import JournalState
from tests.act.answered_commands import with_answers
from tests.act.journals import delete_topics, make_topics, new_prefix
from tests.cluster.driver import ClusterDriver
from tests.conftest import WatchedCluster
from tests.journals import journal
from tests.observe.live import wait_for


def waiting(inbox: CommandInbox, view: JournalState, count: int) -> list[str]:
    """The ids that wait, once there are that many."""
    wait_for(lambda: len(inbox.read(view)) >= count, f"{count} commands arrive; {inbox.problem()}")
    return [one.id for one in inbox.read(view)]


@dataclass
class Row:
    """A record, or (without an offset) the end of the partition."""

    at: int | None
    data: bytes | None = None

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self.at is None else None

    def offset(self) -> int | None:
        return self.at

    def value(self) -> bytes | None:
        return self.data

    def timestamp(self) -> tuple[int, int]:
        return (TIMESTAMP_LOG_APPEND_TIME, 1_000)


@dataclass
class Log:
    """A consumer of a topic that has so many records, and perhaps more to come with each reading."""

    rows: list[Row]
    endless: bool = False
    at: int = 0

    def consume(self, most: int, timeout: float) -> list[Row]:
        found = self.rows[self.at : self.at + most]
        self.at += len(found)
        if self.endless and not found:
            self.rows += [Row(len(self.rows) + n, b"junk") for n in range(most)]
            return self.consume(most, timeout)
        return found if self.endless or len(found) == most else [*found, Row(None)]

    def close(self) -> None:
        pass


def reading(log: Log, end: int) -> TopicInbox:
    inbox = TopicInbox({}, "rackwise.commands", "rackwise")
    inbox._consumer, inbox._end = log, end  # type: ignore[assignment] # as much of one as is used
    return inbox


PAUSE = command_bytes({"id": "stop", "verb": "pause"})[1]


def test_junk_before_a_pause_does_not_keep_it_from_being_heard() -> None:
    inbox = reading(Log([*(Row(at, b"junk") for at in range(350)), Row(350, PAUSE)]), 351)
    backlog = CommandBacklog()
    assert backlog.why_not(inbox) is not None
    assert [one.id for one in inbox.read({})] == ["stop"]
    assert inbox.problem() == "skipped 350 records of rackwise.commands: no command"
    assert inbox.unread() is None
    assert backlog.why_not(inbox) is not None, "what was passed over is no reason to begin"
    assert inbox.caught_up()
    backlog.reads(inbox, some=True, unanswered=True)
    assert backlog.why_not(inbox) is not None
    backlog.answered(inbox, unanswered=False, holds_plans=False, full=False)
    assert backlog.why_not(inbox) is None
    inbox.read({})
    assert inbox.problem() is None, "said once"


def test_a_topic_that_is_written_faster_than_it_is_read_is_caught_up_with_as_it_was_when_it_was_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = itertools.count()  # a reading takes as many fetches as it may, however slow the machine
    monkeypatch.setattr("agent.act.commands_topic.time", SimpleNamespace(monotonic=lambda: next(ticks) * _READ_S / 10))
    inbox = reading(Log([*(Row(at, b"junk") for at in range(150)), Row(150, PAUSE)], endless=True), 151)
    assert not inbox.caught_up()
    assert [one.id for one in inbox.read({})] == ["stop"]
    assert inbox.caught_up()
    assert inbox.read(with_answers({}, *inbox.read({}))) == (), "a reading of an endless topic ends"


def test_many_commands_are_handed_out_a_few_at_a_time_and_junk_takes_no_place_of_theirs() -> None:
    rows = [Row(at, b"junk" if at % 2 else command_bytes({"id": f"c-{at}"})[1]) for at in range(400)]
    inbox = reading(Log(rows), 400)
    first = inbox.read({})
    assert [one.id for one in first] == [f"c-{at}" for at in range(0, 200, 2)]
    assert not inbox.caught_up()
    assert [one.id for one in inbox.read(with_answers({}, *first))] == [f"c-{at}" for at in range(200, 400, 2)]
    assert not inbox.caught_up(), "one record is left"
    inbox.read(with_answers({}, *first))
    assert not inbox.caught_up(), "and nothing is read while so many wait"
    assert inbox.read(with_answers({}, *first, *inbox.read(with_answers({}, *first)))) == ()
    assert inbox.caught_up()


@pytest.fixture
def servers(cluster: ClusterDriver | WatchedCluster) -> str:
    return cluster.bootstrap_servers


def send(servers: str, prefix: str, name: str, timeout_ms: int = 10_000) -> str:
    return send_command(
        {"bootstrap.servers": servers},
        f"{prefix}.commands",
        {"id": name, "verb": "pause"},
        cluster="c-1",
        sender="cli",
        at_ms=1_000,
        timeout_ms=timeout_ms,
    )


def inbox_on(servers: str, prefix: str) -> TopicInbox:
    return TopicInbox({"bootstrap.servers": servers}, f"{prefix}.commands", prefix)


@pytest.mark.integration
def test_commands_arrive_in_order_until_the_journal_has_their_answers(servers: str) -> None:
    prefix = new_prefix()
    make_topics(servers, prefix)
    view = journal(*first_position({}, end_of({"bootstrap.servers": servers}, f"{prefix}.commands")), at_ms=1)
    for name in ("first", "second", "third"):
        assert send(servers, prefix, name) == name
    foreign = Producer({"bootstrap.servers": servers})
    for data in (b"garbage", None, b'{"id": "x", "t": "' + b"y" * MAX_BYTES + b'"}'):
        foreign.produce(f"{prefix}.commands", key=b"?", value=data)
    assert foreign.flush(10) == 0
    send(servers, prefix, "second")  # sent again, because its sender did not hear that it was taken
    send(servers, prefix, "fourth")

    one = inbox_on(servers, prefix)
    assert waiting(one, view, 5) == ["first", "second", "third", "second", "fourth"]
    first, second, *_ = one.read(view)
    assert first.value == {"id": "first", "verb": "pause"}
    assert first.after.key == POSITION
    assert first.came == CommandOrigin(live=False), "it waited, in a topic that was made with the clocks of senders"
    view = with_answers(view, first, second)
    assert [command.id for command in one.read(view)] == ["third", "fourth"], "answered is answered, sent twice or not"
    one.close()

    two = inbox_on(servers, prefix)
    assert waiting(two, view, 2) == ["third", "fourth"], "a takeover goes on where the journal says"
    rest = two.read(view)
    view = with_answers(view, *rest)
    assert two.read(view) == ()
    assert view[POSITION].value["next"] == 8

    delete_topics(servers, *(f"{prefix}.{name}" for name in ("commands", "journal", "leader")))
    make_topics(servers, prefix)
    send(servers, prefix, "fifth")
    assert waiting(two, view, 1) == ["fifth"], "a topic that was made anew is read from its beginning"
    two.close()


@pytest.mark.integration
def test_a_journal_without_a_position_begins_at_the_end_and_what_comes_then_is_live(servers: str) -> None:
    prefix = new_prefix()
    config, topic = {"bootstrap.servers": servers}, f"{prefix}.commands"
    make_topics(servers, prefix)
    admin = AdminClient(config)
    (made,) = admin.incremental_alter_configs([arrival(topic)]).values()
    made.result(30)
    send(servers, prefix, "of-yesterday")
    led_from = end_of(config, topic)
    send(servers, prefix, "of-today")
    inbox = TopicInbox(config, topic, prefix, led_from)
    view = journal(*first_position({}, led_from), at_ms=1)
    assert waiting(inbox, view, 1) == ["of-today"]
    (one,) = inbox.read(view)
    assert one.came.live
    assert one.came.at_ms is not None, "the broker's time, as the topic has it"
    assert one.came.at_ms > 1_000, "and not the one that its sender wrote"
    inbox.close()

    late = TopicInbox(config, topic, prefix)
    assert (late.read({}), late.problem()) == ((), None)
    send(servers, prefix, "later")
    assert waiting(late, {}, 1) == ["later"], "the end as it is at the first read, where it was not known before"
    late.close()


def arrival(topic: str) -> ConfigResource:
    change = ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])


@pytest.mark.integration
def test_a_command_that_cannot_be_written_is_told(servers: str) -> None:
    with pytest.raises(ConfigError, match="There is no topic"):
        send(servers, new_prefix(), "a")
    with pytest.raises(ClusterUnreachable, match="could not be written"):
        send("127.0.0.1:1", new_prefix(), "a", timeout_ms=1_000)
    inbox = inbox_on("127.0.0.1:1", new_prefix())
    inbox._config["socket.timeout.ms"] = 1_000
    assert inbox.read({}) == ()
    assert "could not be read" in (inbox.problem() or "")
    inbox.close()
