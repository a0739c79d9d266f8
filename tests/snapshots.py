"""Builders of snapshots for tests of the stages after ``model``: small worlds written down in one breath.

``a_cluster(a=(1, 4), b=(2,), c=(3,))`` has brokers 1 and 4 in rack a, and so on; rack ``_`` is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent.values.observation import Gap
from agent.values.snapshot import (
    UNKNOWN_RACK,
    BrokerState,
    ConsumerGroup,
    Group,
    GroupKind,
    Member,
    PartitionState,
    Rack,
    RackState,
    Reassignment,
    Snapshot,
    StreamsGroup,
    StreamsProcess,
    StreamsTopology,
    TaskCopy,
    TaskState,
    TaskStatefulness,
    TopicState,
)
from assignors.problem import TaskId, TopicPartition

NOW_MS = 1_760_000_000_000


def rack(name: str | None) -> Rack:
    return UNKNOWN_RACK if name in (None, "_") else Rack(RackState.KNOWN, name)


def tp(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def tps(text: str) -> tuple[TopicPartition, ...]:
    return tuple(sorted(tp(word) for word in text.split()))


def tasks(text: str) -> tuple[TaskId, ...]:
    return tuple(sorted(TaskId(int(word.split("_")[0]), int(word.split("_")[1])) for word in text.split()))


@dataclass
class Builder:
    """Collects the parts; ``snapshot()`` freezes them, sorted."""

    brokers: dict[int, BrokerState] = field(default_factory=dict)
    topics: dict[str, TopicState] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    copies: dict[str, tuple[TaskCopy, ...]] = field(default_factory=dict)
    reassignments: dict[TopicPartition, Reassignment] = field(default_factory=dict)
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    rates: dict[TopicPartition, float] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    selector: bool | None = True
    broker_configs: dict[int, Mapping[str, str]] = field(default_factory=dict)

    def broker(self, broker_id: int, rack_name: str | None, **changes: Any) -> Builder:
        state = BrokerState(
            id=broker_id,
            host=f"host{broker_id}",
            port=9092,
            rack=rack(rack_name),
            alive=True,
            fenced=False,
            cordoned=False,
        )
        self.brokers[broker_id] = state._replace(**changes)
        return self

    def topic(
        self,
        name: str,
        *replicas: tuple[int, ...],
        isr: Mapping[int, tuple[int, ...]] | None = None,
        leaders: Mapping[int, int | None] | None = None,
        size: int | None = 1000,
        rate: float | None = None,
        **changes: Any,
    ) -> Builder:
        """One tuple of replicas per partition; the first leads and all are in sync unless told otherwise."""
        partitions = []
        for number, of in enumerate(replicas):
            partition = TopicPartition(name, number)
            in_sync = (isr or {}).get(number, of)
            leader = (leaders or {}).get(number, next((r for r in of if r in in_sync), None))
            partitions.append(PartitionState(partition, leader, of, in_sync, ()))
            if size is not None:
                self.sizes[partition] = size
            if rate is not None:
                self.rates[partition] = rate
        state = TopicState(
            name=name, topic_id=f"id-{name}", internal=False, own=False, partitions=tuple(partitions), min_isr=1,
            cleanup_policy="delete", leader_throttle=None, follower_throttle=None,
        )  # fmt: skip
        self.topics[name] = state._replace(**changes)
        return self

    def group(
        self,
        name: str,
        *members: Member,
        kind: GroupKind = GroupKind.CLASSIC_CONSUMER,
        assignor: str | None = "cooperative-sticky",
        state: str = "Stable",
        hidden: bool = False,
    ) -> Builder:
        self.groups[name] = ConsumerGroup(
            id=name,
            kind=kind,
            state=state,
            assignor=assignor,
            members=members,
            hidden=hidden,
            epoch=None,
            assignment_epoch=None,
        )
        return self

    def streams(
        self,
        name: str,
        *processes: StreamsProcess,
        topology: Iterable[TaskState] | None,
        kind: GroupKind = GroupKind.CLASSIC_STREAMS,
        copies: tuple[TaskCopy, ...] = (),
        members: tuple[Member, ...] | None = None,
        **changes: Any,
    ) -> Builder:
        group = StreamsGroup(
            id=name, kind=kind, state="Stable", assignor="stream", processes=processes, hidden=False,
            members=members if members is not None else tuple(
                member(m, process.rack.name, None, ()) for process in processes for m in process.member_ids
            ),
            topology=None if topology is None else StreamsTopology(tuple(topology), source="inferred"),
            epoch=None, assignment_epoch=None, metadata_versions=(11,), next_rebalance_ms=None,
        )  # fmt: skip
        self.groups[name] = group._replace(**changes)
        self.copies[name] = copies
        return self

    def moving(
        self,
        partition: str,
        replicas: tuple[int, ...],
        adding: tuple[int, ...],
        removing: tuple[int, ...],
        *,
        own: bool = False,
    ) -> Builder:
        self.reassignments[tp(partition)] = Reassignment(tp(partition), replicas, adding, removing, own)
        return self

    def snapshot(self, **changes: Any) -> Snapshot:
        made = Snapshot(
            cluster_id="test-cluster",
            controller=min(self.brokers, default=None),
            brokers=tuple(self.brokers[key] for key in sorted(self.brokers)),
            topics=dict(sorted(self.topics.items())),
            groups=dict(sorted(self.groups.items())),
            copies=dict(sorted(self.copies.items())),
            reassignments=dict(sorted(self.reassignments.items())),
            broker_configs=dict(sorted(self.broker_configs.items())),
            selector_is_rack_aware=self.selector,
            size_bytes=dict(sorted(self.sizes.items())),
            bytes_per_s=dict(sorted(self.rates.items())),
            gaps=self.gaps,
            taken_ms=NOW_MS,
            monotonic_ms=5_000_000,
        )
        return replace(made, **changes)


def a_cluster(**racks: tuple[int, ...]) -> Builder:
    built = Builder()
    for name, brokers in (racks or {"a": (1,), "b": (2,), "c": (3,)}).items():
        for broker_id in brokers:
            built.broker(broker_id, name)
    return built


def member(
    member_id: str,
    rack_name: str | None,
    assigned: str | None,
    topics: tuple[str, ...] | None = None,
    **changes: Any,
) -> Member:
    """A member with its assignment as words (``"orders-0 orders-1"``); subscribed to what it is assigned by default."""
    held = None if assigned is None else tps(assigned)
    state = Member(
        id=member_id, instance_id=None, client_id=f"client-{member_id}", client_host="/10.0.0.1", rack=rack(rack_name),
        subscription_version=3, topics=topics if topics is not None else tuple(sorted({p.topic for p in held or ()})),
        topic_regex=None, owned=held, assigned=held, target=None, generation=4, epoch=None,
    )  # fmt: skip
    return state._replace(**changes)


def process(
    process_id: str,
    rack_name: str | None,
    active: str = "",
    *,
    standby: str = "",
    warmup: str = "",
    capacity: int = 1,
    tags: tuple[tuple[str, str], ...] = (),
) -> StreamsProcess:
    return StreamsProcess(
        id=process_id, rack=rack(rack_name), tags=tags, capacity=capacity,
        member_ids=tuple(f"{process_id}-m{n}" for n in range(capacity)),
        client_ids=tuple(f"{process_id}-StreamThread-{n}-consumer" for n in range(capacity)),
        active=tasks(active), standby=tasks(standby), warmup=tasks(warmup),
    )  # fmt: skip


def task(
    text: str, sources: str, statefulness: TaskStatefulness = TaskStatefulness.CHANGELOG, changelogs: str = ""
) -> TaskState:
    return TaskState(id=tasks(text)[0], sources=tps(sources), changelogs=tps(changelogs), statefulness=statefulness)
