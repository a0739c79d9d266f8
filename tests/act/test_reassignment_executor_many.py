"""A plan of very many partitions on real brokers: one of its topics is deleted, its agent dies, and it still ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent.act.journal.kafka_journal import KafkaJournal
from agent.act.reassign.reassignment_executor import ReassignmentExecutor
from agent.execute.reassign.messages import BatchPermission
from agent.journal import plan_entries
from agent.journal.entries import MAX_VALUE_BYTES
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import ENDED, PartitionEndReason, PlanState, ReassignmentPolicy
from agent.wire.admin_client import WireAdminClient
from assignors.problem import TopicPartition
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.act.journals import delete_topics, make_topics, new_prefix, opened, plan, records
from tests.act.reassignments import placement, plan_for, throttles, topic_with
from tests.observe.live import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.drill, pytest.mark.timeout(1_800)]
KEPT, DELETED = 5_200, 200
LIMITS = ExecuteLimits(
    batch_partitions=400,
    max_bytes_in_flight=None,
    max_moves_per_cluster=400,
    max_moves_per_broker=800,
    request_timeout_ms=60_000,
    grace_after_broker_loss_ms=120_000,
)
POLICY = ReassignmentPolicy(LIMITS, look_ms=500)


@contextmanager
def moving(journal: KafkaJournal, hand: WireAdminClient) -> Iterator[ReassignmentExecutor]:
    one = ReassignmentExecutor(
        journal=journal, admin=hand, policy=POLICY, may=lambda: BatchPermission(begin=True), tick_ms=200
    )
    one.start()
    try:
        yield one
    finally:
        assert one.close(120_000)


def test_5400_partitions_are_moved_though_a_topic_is_deleted_and_the_agent_dies() -> None:
    with EmbeddedCluster.start(ClusterSpec(heap="1g"), on_progress=print) as cluster:
        servers, prefix = cluster.bootstrap_servers, new_prefix()
        make_topics(servers, prefix)
        for topic, count in (("kept", KEPT), ("lost", DELETED)):
            topic_with(servers, topic, [[1, 2]] * count)
        with WireAdminClient({"bootstrap_servers": servers.split(",")}) as hand:
            # Until then brokers are busy with the logs of these, and answer no transaction in time.
            wait_for(lambda: logs_of(hand) == 2 * (KEPT + DELETED), "brokers have made all logs", 600)
            # Those of the topic that is deleted come last, so that most of the way is before them.
            after = {TopicPartition("kept", at): (1, 3) for at in range(KEPT)}
            after |= {TopicPartition("lost", at): (1, 3) for at in range(DELETED)}
            wanted = plan_for(hand, "p-many", after)
            assert len(wanted.targets) == KEPT + DELETED
            began = time.monotonic()
            with opened(plan(servers, prefix)) as first, moving(first, hand) as one:
                one.accept(wanted)
                wait_for(lambda: ended(first) > KEPT // 5, "a fifth of it is moved", 600)
                one.check()
                delete_topics(servers, "lost")
                # The first is not closed: the next one takes the journal from it, as from one that was killed.
                with opened(plan(servers, prefix, "two")) as second, moving(second, hand) as other:
                    taken_over = ended(second)
                    assert 0 < taken_over < KEPT
                    wait_for(lambda: over(second, other), "the plan is over", 1_200)
                    (done,) = plan_entries.plans(second.view())
                    debts, batches = (
                        plan_entries.throttle_debts(second.view()),
                        plan_entries.batches(second.view(), "p-many"),
                    )
            took_s = time.monotonic() - began
            assert (done.state, debts) == (PlanState.DONE, ()), done.sentence
            assert "200 partitions not moved: the topic was deleted" in done.sentence, done.sentence
            assert done.targets == wanted.targets
            assert set(placement(hand, "kept").values()) == {(1, 3)}
            assert throttles(hand, "kept") == {}
            assert batches
            assert all(
                end.end is PartitionEndReason.DONE for batch in batches for end in batch.ends if end.id.topic == "kept"
            )
        largest = max(len(record.value or b"") for record in records(servers, prefix))
        assert largest < MAX_VALUE_BYTES
        print(f"{took_s:.0f} s, {len(batches)} batches, taken over after {taken_over}, largest record {largest:,} B")


def logs_of(hand: WireAdminClient) -> int:
    """Number of the replicas of the topics that are moved, by the log dirs of the brokers."""
    hand.describe_brokers(LIMITS.request_timeout_ms)
    sizes = hand.describe_log_dirs(LIMITS.request_timeout_ms).replica_bytes
    return sum(1 for _, partition in sizes if partition.topic in {"kept", "lost"})


def ended(journal: KafkaJournal) -> int:
    return sum(len(batch.ends) for batch in plan_entries.batches(journal.view(), "p-many"))


def over(journal: KafkaJournal, executor: ReassignmentExecutor) -> bool:
    executor.check()
    return not executor.busy and all(one.state in ENDED for one in plan_entries.plans(journal.view()))
