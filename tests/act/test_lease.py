"""What the group of agents remembers of the journal, and which partition of the lock topic counts; without brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from agent.act.journal.journal_topic import JournalWatermark
from agent.act.lease import KafkaLease, LeasePlan, watermark_of
from agent.errors import BadInput
from agent.journal.entries import JournalKey, JournalTrust
from agent.journal.record_trust import signed_watermark

KEY, THEIRS = JournalKey(b"in force, in force"), JournalKey(b"a foe's own key ...")
TRUST = JournalTrust((KEY,), "c-1")
PLAIN, SIGNED = LeasePlan(config={}), LeasePlan(config={}, trust=TRUST)


def test_what_was_told_is_remembered() -> None:
    assert watermark_of(PLAIN, "7 120") == JournalWatermark(7, 120)
    assert watermark_of(SIGNED, signed_watermark(TRUST, "7 120")) == JournalWatermark(7, 120)
    assert watermark_of(PLAIN, signed_watermark(TRUST, "7 120")) == JournalWatermark(7, 120), (
        "the journal then asks for the key"
    )
    assert watermark_of(PLAIN, "7") == JournalWatermark(7, 0), "as up to version 0.1"
    assert watermark_of(SIGNED, "") == JournalWatermark()


@pytest.mark.parametrize(
    "data",
    [
        "0 0",
        "7 120",
        "nothing of the kind",
        signed_watermark(JournalTrust((THEIRS,), "c-1"), "0 0"),
        signed_watermark(JournalTrust((KEY,), "c-2"), "0 0"),
        signed_watermark(TRUST, "7 120").replace("7 120", "0 0"),
    ],
)
def test_what_no_agent_told_stops_the_agent_and_is_never_taken_for_nothing(data: str) -> None:
    with pytest.raises(BadInput, match="is not signed with this agent's key"):
        watermark_of(SIGNED, data)


def test_what_was_remembered_before_there_was_a_key_counts_while_the_journal_gets_one() -> None:
    first = LeasePlan(config={}, trust=TRUST._replace(unsigned_below=9))
    assert watermark_of(first, "7 8") == JournalWatermark(7, 8)
    with pytest.raises(BadInput):
        watermark_of(first, signed_watermark(JournalTrust((THEIRS,), "c-1"), "7 8"))


@pytest.mark.parametrize("text", ["", "x", "-1 5", "7 120 9", "7" * 400, "1e3 1", "\u0667 1"])
def test_without_a_key_odd_metadata_is_no_memory(text: str) -> None:
    assert watermark_of(PLAIN, text) == JournalWatermark()


@pytest.mark.parametrize(
    ("partitions", "leads"), [([0], True), ([0, 1, 2], True), ([1], False), ([1, 2], False), ([], False)]
)
def test_only_partition_0_of_the_lock_topic_makes_a_leader(partitions: list[int], leads: bool) -> None:
    lease = KafkaLease(PLAIN, clock_ms=lambda: 0)
    given = [TopicPartition("rackwise.leader", one) for one in partitions]
    lease._on_assign(_NONE, given)
    assert lease.may_act() is leads
    lease._on_taken(_NONE, [TopicPartition("rackwise.leader", 5)])
    assert lease.may_act() is leads, "another partition takes nothing away"
    lease._on_taken(_NONE, [TopicPartition("rackwise.leader", 0)])
    assert not lease.may_act()


_NONE = Consumer({"group.id": "none", "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
