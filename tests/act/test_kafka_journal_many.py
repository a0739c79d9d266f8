"""A plan of 100,000 partitions in a journal on real brokers, signed and not: accepted, changed, and taken over."""

from __future__ import annotations

import time

import pytest

from agent.act.journal.journal_topic import KafkaJournalPlan
from agent.errors import FencedOut
from agent.journal import plan_entries
from agent.journal.entries import JournalKey
from agent.values.reassignment import PlanState, ReassignmentPlan, ReassignmentTarget, moved_by
from assignors.problem import TopicPartition
from tests.act.journals import make_topics, new_prefix, opened, plan
from tests.cluster.driver import ClusterDriver
from tests.conftest import WatchedCluster

pytestmark = pytest.mark.integration
KEY, NEXT = (JournalKey(text.encode() * 3) for text in ("in force", "the next"))
PLAN = ReassignmentPlan(
    "p-1",
    tuple(
        ReassignmentTarget(
            TopicPartition("orders", at), "A" * 22, (at % 29, 30, 31), (at % 29, 32, 31), 10**9 + at, 1e5 / 3 + at,
            gain=at / 7,
        )
        for at in range(100_000)
    ),
    order=1,
)  # fmt: skip


@pytest.mark.parametrize("keys", [(), (KEY,)], ids=["unsigned", "signed"])
def test_a_plan_of_100000_partitions_is_accepted_changed_and_taken_over(
    cluster: ClusterDriver | WatchedCluster, keys: tuple[JournalKey, ...]
) -> None:
    servers, prefix = cluster.bootstrap_servers, new_prefix()
    make_topics(servers, prefix)

    def by(agent: str, *given: JournalKey) -> KafkaJournalPlan:
        return plan(servers, prefix, agent, keys=given)

    took: dict[str, float] = {}
    with opened(by("one", *keys)) as one:
        begin = time.monotonic()
        one.append(*plan_entries.changed(one.view(), [PLAN]))
        took["accepted"] = time.monotonic() - begin
        begin = time.monotonic()
        lines = plan_entries.changed(one.view(), [PLAN._replace(paused=True)])
        one.append(*lines)
        took["changed"] = time.monotonic() - begin
        assert [line.key for line in lines] == ["plan/p-1"], "its partitions are written once"
        begin = time.monotonic()
        # The first is not closed: it is as one that was killed, and finds itself fenced.
        with opened(by("two", *keys)) as two:
            took["taken over"] = time.monotonic() - begin
            assert plan_entries.plans(two.view()) == (PLAN._replace(paused=True),)
            every = moved_by(PLAN, {target.id for target in PLAN.targets})
            ended = PLAN._replace(state=PlanState.DONE, moved=every, sentence="100,000 partitions moved as planned")
            two.append(*plan_entries.changed(two.view(), [ended]))
        with pytest.raises(FencedOut):
            one.append(*plan_entries.changed(one.view(), [PLAN._replace(paused=False)]))
    if keys:
        begin = time.monotonic()
        with opened(by("three", NEXT, KEY)) as three:
            took["signed again"] = time.monotonic() - begin
            assert plan_entries.plans(three.view()) == (ended,)
        with opened(by("four", NEXT)) as four:
            assert plan_entries.plans(four.view()) == (ended,), "with the former key gone"
    print({what: round(seconds, 2) for what, seconds in took.items()})
