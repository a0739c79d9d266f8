"""An admin client that answers what a test wants: brokers that contradict each other cannot be had on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.values.observation import RawBroker, RawPartition, RawReassignment, RawTopic
from agent.values.throttles import KEYS_OF, SeenThrottle, ThrottleChange, ThrottleResource
from agent.wire.changes import (
    DONE,
    ChangeResult,
    DescribedThrottles,
    Fate,
    LeaveOut,
    LeaveOutThrottles,
    RequestPrecheck,
)
from agent.wire.cluster_calls import ClusterAnswer, DescribedConfigs, TopicsAnswer
from agent.wire.failure import CallFailed, Deadline
from assignors.problem import TopicPartition

UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"


def topic(
    name: str, replicas: tuple[int, ...], *, topic_id: str = "id", isr: tuple[int, ...] = (), leader: int = 1
) -> RawTopic:
    """A topic of one partition."""
    return RawTopic(name, topic_id, False, (RawPartition(0, leader, replicas, isr or replicas, ()),), None)


def unknown(name: str) -> RawTopic:
    """What a broker says of a topic that it does not know."""
    return RawTopic(name, None, False, (), UNKNOWN_TOPIC)


@dataclass
class StubAdminClient:
    """Each witness tells its own; all calls are kept."""

    witnesses: Mapping[int, tuple[RawTopic, ...]] = field(default_factory=dict)
    up: tuple[int, ...] = (1, 2, 3)
    fenced: tuple[int, ...] = ()
    moves: tuple[RawReassignment, ...] = ()
    min_isr: Mapping[str, str] = field(default_factory=dict)
    throttles: tuple[SeenThrottle, ...] = ()
    """Of the keys that are set."""
    mute: frozenset[int] = frozenset()
    """Brokers whose throttles cannot be read."""
    behind: tuple[str, ...] = ()
    """Topics whose throttles a broker has not yet."""
    failure: CallFailed | None = None
    answer: ChangeResult = DONE
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def describe_brokers(self, deadline_ms: int) -> ClusterAnswer:
        if self.failure is not None:
            raise self.failure
        self.calls.append(("brokers",))
        rows = [RawBroker(one, "127.0.0.1", 1, None, one in self.fenced) for one in (*self.up, *self.fenced)]
        return ClusterAnswer("stub", 1, tuple(sorted(rows)), None)

    def list_reassignments(self, deadline_ms: int) -> tuple[RawReassignment, ...]:
        self.calls.append(("reassignments",))
        return self.moves

    def describe_topics(self, deadline_ms: int, *, names: Iterable[str], avoid: int | None = None) -> TopicsAnswer:
        who = next(one for one in sorted(self.witnesses) if one != avoid)
        self.calls.append(("topics", who))
        wanted = set(names)
        return TopicsAnswer(tuple(row for row in self.witnesses[who] if row.name in wanted), {}, who)

    def describe_topic_configs(self, topics: Iterable[str], keys: Iterable[str], deadline_ms: int) -> DescribedConfigs:
        return DescribedConfigs(
            {name: {"min.insync.replicas": self.min_isr[name]} for name in topics if name in self.min_isr}, ()
        )

    def describe_throttles(self, topics: Iterable[str], brokers: Iterable[int], deadline_ms: int) -> DescribedThrottles:
        asked = list(brokers)
        self.calls.append(("throttles", tuple(sorted(asked))))
        resources = [ThrottleResource(topic=name) for name in topics]
        resources += [ThrottleResource(broker=one) for one in asked if one not in self.mute]
        keys = ((resource, key) for resource in resources for key in KEYS_OF[resource.kind])
        return DescribedThrottles({key: self._throttle(*key) for key in keys}, (), self.behind)

    def _throttle(self, resource: ThrottleResource, key: str) -> SeenThrottle:
        found = (one for one in self.throttles if one[:2] == (resource, key))
        return next(found, SeenThrottle(resource, key, None))

    def replica_sizes(
        self, replicas: Mapping[int, Iterable[TopicPartition]], deadline_ms: int
    ) -> dict[tuple[TopicPartition, int], int]:
        return {(partition, broker): 1_000 * broker for broker, rows in replicas.items() for partition in rows}

    def alter_placements(
        self,
        targets: Mapping[TopicPartition, Any],
        deadline_ms: int,
        begin_by: Deadline | None = None,
        leave_out: LeaveOut | None = None,
    ) -> dict[TopicPartition, ChangeResult]:
        """The last look is what the first witness and the list of reassignments say."""
        if begin_by is not None and begin_by.over:
            return dict.fromkeys(targets, ChangeResult(Fate.NOT_SENT))
        topics = {row.name: row for row in self.witnesses[min(self.witnesses)]} if self.witnesses else {}
        left_out = (
            leave_out(RequestPrecheck(topics, {row.id: row for row in self.moves})) if leave_out is not None else ()
        )
        wanted = {id_: target for id_, target in targets.items() if id_ not in left_out}
        if wanted:
            self.calls.append(("alter", wanted))
        return dict.fromkeys(targets, ChangeResult(Fate.NOT_SENT)) | dict.fromkeys(wanted, self.answer)

    def elect_preferred(
        self, partitions: Iterable[TopicPartition], deadline_ms: int, begin_by: Deadline | None = None
    ) -> dict[TopicPartition, ChangeResult]:
        wanted = list(partitions)
        self.calls.append(("elect", wanted))
        return dict.fromkeys(wanted, self.answer)

    def change_throttles(
        self,
        changes: Iterable[ThrottleChange],
        deadline_ms: int,
        begin_by: Deadline | None = None,
        leave_out: LeaveOutThrottles | None = None,
    ) -> dict[ThrottleResource, ChangeResult]:
        every = list(changes)
        now = {
            one: None if one.resource.broker in self.mute else self._throttle(one.resource, one.key) for one in every
        }
        topics = {row.name: row for row in self.witnesses[min(self.witnesses)]} if self.witnesses else {}
        left_out = leave_out(now, topics) if leave_out is not None else ()
        wanted = [one for one in every if one.resource not in left_out]
        if wanted:
            self.calls.append(("throttle", wanted))
        answers = {one.resource: ChangeResult(Fate.NOT_SENT) for one in every}
        return answers | {one.resource: self.answer for one in wanted}
