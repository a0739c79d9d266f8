"""The signed journal on real brokers: forged records come to nothing, keys are replaced, lost tails are noticed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from agent.act.commands_topic import send_command
from agent.act.inbox import POSITION
from agent.act.journal.journal_topic import JournalWatermark, KafkaJournalPlan
from agent.act.leadership import JournalLeadership
from agent.act.lease import LeadershipPlan, committed_watermark
from agent.errors import BadInput
from agent.journal.entries import JournalKey, JournalPort, JournalState, JournalTrust, JournalWrite
from agent.journal.record_trust import LEADER, signed_watermark
from tests.act.journals import (
    CLUSTER,
    a_write,
    committed_journal,
    leadership_plan,
    make_topics,
    new_prefix,
    opened,
    plan,
)
from tests.act.leader_processes import members_of
from tests.cluster.driver import ClusterDriver
from tests.conftest import WatchedCluster
from tests.observe.live import wait_for

pytestmark = pytest.mark.integration
KEY, NEXT, THEIRS = (JournalKey(text.encode() * 3) for text in ("in force", "the next", "a foe's "))
Start = Callable[[LeadershipPlan], JournalLeadership]


@pytest.fixture
def servers(cluster: ClusterDriver | WatchedCluster) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def prefix(servers: str) -> str:
    one = new_prefix()
    make_topics(servers, one)
    return one


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def started(one: LeadershipPlan) -> JournalLeadership:
            leadership = JournalLeadership(one)
            stack.callback(leadership.close)
            leadership.start()
            leadership.begin(CLUSTER)
            return leadership

        yield started


def keyed(servers: str, prefix: str, *keys: JournalKey, **more: Any) -> KafkaJournalPlan:
    return plan(servers, prefix, keys=keys, **more)


def forge(servers: str, prefix: str, key: str, value: bytes | None, **headers: str) -> None:
    """A plain record, as any principal with Write on the topic writes it."""
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(f"{prefix}.journal", key=key, value=value, partition=0, headers=headers or None)
    assert producer.flush(20) == 0


def numbers(view: JournalState) -> dict[str, Any]:
    return {key: entry.value.get("n") for key, entry in view.items() if key not in (LEADER, POSITION)}


EVIL = b'{"v":1,"kind":"open","at_ms":1,"epoch":99,"seq":0,"value":{"n":666}}'


def test_forged_records_are_never_carried_out_and_are_gone_with_the_next_leader(servers: str, prefix: str) -> None:
    with opened(keyed(servers, prefix, KEY)) as one:
        one.append(a_write("plan/a", n=1), a_write("plan/b", n=2))
    forge(servers, prefix, "plan/p-evil", EVIL)
    forge(servers, prefix, "plan/a", EVIL, ce_id="99-0", rackwise_code=f"{KEY.id}:{'0' * 64}")
    forge(servers, prefix, "plan/b", None)
    assert numbers(committed_journal(servers, prefix).view)["plan/p-evil"] == 666, "without the key it reads so"
    with opened(keyed(servers, prefix, KEY)) as two:
        assert (two.epoch, numbers(two.view())) == (2, {"plan/a": 1, "plan/b": 2})
        assert two.doubted == 3
        assert "3 records of" in (two.notice() or "")
        assert numbers(committed_journal(servers, prefix).view) == {"plan/a": 1, "plan/b": 2}, (
            "it was overwritten, for all readers"
        )
    with opened(keyed(servers, prefix, KEY)) as three:
        assert (three.epoch, numbers(three.view())) == (3, {"plan/a": 1, "plan/b": 2})


def test_a_record_of_another_while_an_agent_leads_is_noticed_and_overwritten(servers: str, prefix: str) -> None:
    with opened(keyed(servers, prefix, KEY)) as one:
        one.append(a_write("plan/a", n=1))
        one.append(a_write("plan/a", n=2))
        assert one.notice() is None, "own transactions leave no gap"
        forge(servers, prefix, "plan/a", EVIL)
        one.append(a_write("plan/b", n=3))
        assert numbers(one.view()) == {"plan/a": 2, "plan/b": 3}
        assert (one.doubted, "1 record of" in (one.notice() or "")) == (1, True)
        assert numbers(committed_journal(servers, prefix).view) == {"plan/a": 2, "plan/b": 3}
        one.append(JournalWrite("plan/b", "gone", None))
        assert numbers(one.view()) == {"plan/a": 2}


def test_keys_are_replaced_one_agent_after_the_other(servers: str, prefix: str) -> None:
    with opened(keyed(servers, prefix, KEY)) as one:
        one.append(a_write("plan/a", n=1), JournalWrite("plan/gone", "gone", None))
    with opened(keyed(servers, prefix, NEXT, KEY)) as two:
        two.append(a_write("plan/b", n=2))
    with opened(keyed(servers, prefix, KEY)) as three:
        assert numbers(three.view()) == {"plan/a": 1, "plan/b": 2}, "an agent that has only the former one goes on"
        three.append(a_write("plan/c", n=3))
    with opened(keyed(servers, prefix, NEXT, KEY)) as four:
        assert len(numbers(four.view())) == 3
    with opened(keyed(servers, prefix, NEXT)) as five:
        assert (numbers(five.view()), five.doubted) == ({"plan/a": 1, "plan/b": 2, "plan/c": 3}, 0)
    for keys, says in (((), "has no key"), ((THEIRS,), "signed with another key")):
        with pytest.raises(BadInput, match=says), opened(keyed(servers, prefix, *keys)):
            pass


def test_a_journal_gets_its_first_key(servers: str, prefix: str) -> None:
    with opened(plan(servers, prefix)) as old:
        old.append(a_write("plan/a", n=1))
    with pytest.raises(BadInput, match="No record of the journal") as refused, opened(keyed(servers, prefix, KEY)):
        pass
    end = int(refused.value.todo.rpartition("=")[2])
    forge(servers, prefix, "plan/p-evil", EVIL)
    with opened(keyed(servers, prefix, KEY, unsigned_below=end)) as first:
        assert (numbers(first.view()), first.doubted) == ({"plan/a": 1}, 1)
    with opened(keyed(servers, prefix, KEY)) as second:
        assert numbers(second.view()) == {"plan/a": 1}


def journal_of(leadership: JournalLeadership) -> JournalPort:
    found: JournalPort = wait_for(leadership.journal, f"it leads; {leadership.problem()}", 60)
    return found


def test_a_tail_that_the_group_knows_and_the_topic_has_not_keeps_agents_from_leading(
    servers: str, prefix: str, start: Start
) -> None:
    own = leadership_plan(servers, prefix, keys=(KEY,))
    one = start(own)
    journal = journal_of(one)
    journal.append(a_write("plan/a", n=1))
    reached: JournalWatermark = journal.reached  # type: ignore[attr-defined] # of the journal in Kafka
    wait_for(lambda: committed_watermark(one._lease_plan(), 10_000) == reached, f"{reached} is remembered", 30)
    one.close()
    commit(servers, prefix, signed_watermark(JournalTrust((KEY,), CLUSTER), f"{reached.epoch} {reached.end + 50}"))
    two = start(own)
    lost = f"it ends at offset .* and offset {reached.end + 50} was reached before"
    wait_for(lambda: "has lost records" in (two.problem() or ""), "it stands aside", 60)
    assert two.journal() is None
    assert re.search(lost, two.problem() or "")


def test_an_epoch_that_a_stranger_committed_keeps_agents_aside_with_its_name(
    servers: str, prefix: str, start: Start
) -> None:
    commit(servers, prefix, "999 999")
    one = start(leadership_plan(servers, prefix, keys=(KEY,)))
    wait_for(lambda: "is not signed with this agent's key" in (one.problem() or ""), "it stands aside", 60)
    assert one.journal() is None


def commit(servers: str, prefix: str, metadata: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    told_ = ConsumerGroupTopicPartitions(f"{prefix}-leader", [TopicPartition(f"{prefix}.leader", 0, 0, metadata)])

    def committed() -> bool:
        (future,) = admin.alter_consumer_group_offsets([told_]).values()
        return all(one.error is None for one in future.result(20).topic_partitions)

    wait_for(committed, "it is committed", 30)


def test_a_lock_topic_with_three_partitions_has_one_leader(servers: str, prefix: str, start: Start) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_partitions([NewPartitions(f"{prefix}.leader", 3)])[f"{prefix}.leader"].result(30)
    agents = [start(leadership_plan(servers, prefix, name)) for name in ("one", "two", "three")]
    wait_for(lambda: len(members_of(servers, f"{prefix}-leader") - {"joining"}) == 3, "all three take part", 60)
    (leader,) = wait_for(lambda: [one for one in agents if one.may_act()], "one leads", 60)
    wait_for(
        lambda: all(one._lease is not None and one._lease._held == (one is leader) for one in agents), "settled", 30
    )
    assert f"{prefix}.leader has 3 partitions, and only partition 0 counts" in leader.notices()
    assert [one.may_act() for one in agents].count(True) == 1


def test_a_new_journal_takes_no_command_that_was_sent_before_it(servers: str, prefix: str, start: Start) -> None:
    send(servers, prefix, "of-yesterday")
    one = start(leadership_plan(servers, prefix))
    journal = journal_of(one)
    send(servers, prefix, "of-today")
    inbox = one.inbox()
    assert inbox is not None
    (found,) = wait_for(lambda: inbox.read(journal.view()), f"it arrives; {inbox.problem()}", 30)
    assert (found.id, found.came.live) == ("of-today", True), "also a command sent before the first look"
    assert [notice for notice in one.notices() if "are not signed" in notice]


def send(servers: str, prefix: str, name: str) -> None:
    send_command(
        {"bootstrap.servers": servers}, f"{prefix}.commands", {"id": name, "verb": "PAUSE", "who": "x", "at_ms": 1},
        cluster="c", sender="x", at_ms=1, timeout_ms=20_000,
    )  # fmt: skip
