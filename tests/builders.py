"""Builders of observations: what the brokers answer, in one breath, with members' bytes as clients send them.

``an_observation(a=(1, 4), b=(2,), c=(3,))`` has brokers 1 and 4 in rack a, and so on; rack ``_`` tells none. A builder
may be changed between looks; `Run` carries memory and memos from look to look as the agent's loop does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from agent.decode.members import decode_members
from agent.decode.values import (
    Assignment,
    StickyUserData,
    StreamsAssignment,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Subscription,
)
from agent.detect.find import detect
from agent.execute.probe_bytes import encode_sticky, encode_subscription, encode_subscription_info
from agent.memory.remember import remember
from agent.model.build_snapshot import build_snapshot
from agent.predict.predict import predict_groups
from agent.values.assessment import DetectionResult
from agent.values.finding import Finding, FindingReason
from agent.values.limits import GroupLimits, Limits, LocatorKind, RackLocator
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.observation import (
    Gap,
    GapCause,
    GapScope,
    Observation,
    ObservationPart,
    PrincipalRights,
    RawApplicationLag,
    RawBroker,
    RawClassicGroup,
    RawConsumerGroup,
    RawConsumerMember,
    RawGroup,
    RawListedGroup,
    RawMember,
    RawPartition,
    RawRackRow,
    RawRackTable,
    RawReassignment,
    RawStreamsGroup,
    RawStreamsMember,
    RawSubtopology,
    RawTasks,
    RawTopic,
)
from agent.values.snapshot import Snapshot, TaskCopy
from assignors.problem import TaskId, TopicPartition
from tests.decode.assignments import encode_assignment, encode_assignment_info
from tests.snapshots import tasks, tp, tps

TAKEN_MS = 1_760_000_000_000
MONOTONIC_MS = 50_000_000
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@dataclass
class Answers:
    """What the brokers would answer now."""

    brokers: dict[int, RawBroker] = field(default_factory=dict)
    topics: dict[str, RawTopic] = field(default_factory=dict)
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    broker_configs: dict[int, dict[str, str]] = field(default_factory=dict)
    groups: dict[str, RawGroup] = field(default_factory=dict)
    listed: dict[str, RawListedGroup] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    committed: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    sizes: dict[tuple[int, TopicPartition], int] = field(default_factory=dict)
    moves: dict[TopicPartition, RawReassignment] = field(default_factory=dict)
    lags: list[RawApplicationLag] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    rights: PrincipalRights = field(
        default_factory=lambda: PrincipalRights(cluster_describe=True, cluster_describe_configs=True)
    )
    extra: dict[str, Any] = field(default_factory=dict)

    def broker(self, broker_id: int, rack: str | None, *, fenced: bool | None = False, **configs: str) -> Answers:
        name = None if rack in (None, "_") else rack
        self.brokers[broker_id] = RawBroker(broker_id, f"kafka-{broker_id}", 9092, name, fenced)
        self.broker_configs.setdefault(broker_id, {"replica.selector.class": SELECTOR})
        return self

    def without_broker(self, broker_id: int) -> Answers:
        del self.brokers[broker_id]
        return self

    def selector(self, value: str | None) -> Answers:
        self.broker_configs = {b: {} if value is None else {"replica.selector.class": value} for b in self.brokers}
        return self

    def topic(
        self,
        name: str,
        *replicas: tuple[int, ...],
        topic_id: str | None = None,
        isr: Mapping[int, tuple[int, ...]] | None = None,
        offline: tuple[int, ...] = (),
        ends: Iterable[int] | None = None,
        **configs: str,
    ) -> Answers:
        """One tuple of replicas per partition; the first leads and all are in sync unless told otherwise."""
        rows = []
        for number, of in enumerate(replicas):
            in_sync = (isr or {}).get(number, tuple(replica for replica in of if replica not in offline))
            gone = tuple(replica for replica in of if replica in offline)
            leader = next((replica for replica in of if replica in in_sync and replica not in gone), None)
            rows.append(RawPartition(number, leader, of, in_sync, gone))
        self.topics[name] = RawTopic(name, topic_id or f"id-{name}", name.startswith("__"), tuple(rows), None)
        self.topic_configs[name] = {"min.insync.replicas": "1"} | {k.replace("_", "."): v for k, v in configs.items()}
        for number, end in enumerate(ends if ends is not None else [1_000] * len(replicas)):
            self.ends[TopicPartition(name, number)] = end
        return self

    def without_topic(self, name: str) -> Answers:
        del self.topics[name]
        return self

    def moving(
        self, partition: str, replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]
    ) -> Answers:
        """A reassignment in flight; metadata shows the union, new replicas first."""
        self.moves[tp(partition)] = RawReassignment(tp(partition), replicas, adding, removing)
        return self

    def group(
        self,
        name: str,
        *members: RawMember,
        assignor: str = "cooperative-sticky",
        state: str = "Stable",
        **changes: Any,
    ) -> Answers:
        shown = members if state == "Stable" else tuple(m._replace(metadata=b"", assignment=b"") for m in members)
        raw = RawClassicGroup(name, state, "consumer", assignor if state == "Stable" else "", shown, 1)
        self.groups[name] = raw._replace(**changes)
        self.listed[name] = RawListedGroup(name, "consumer", state, "classic")
        return self

    def kip848(
        self, name: str, *members: RawConsumerMember, state: str = "Stable", assignor: str = "uniform"
    ) -> Answers:
        self.groups[name] = RawConsumerGroup(name, state, 7, 7, assignor, members, 1)
        self.listed[name] = RawListedGroup(name, "consumer", state, "consumer")
        return self

    def kip1071(
        self,
        name: str,
        *members: RawStreamsMember,
        subtopologies: tuple[RawSubtopology, ...] | None,
        state: str = "Stable",
    ) -> Answers:
        self.groups[name] = RawStreamsGroup(name, state, 5, 5, subtopologies, members, 1)
        self.listed[name] = RawListedGroup(name, "streams", state, "streams")
        return self

    def streams(self, name: str, *instances: tuple[RawMember, ...], state: str = "Stable") -> Answers:
        return self.group(name, *(member for of in instances for member in of), assignor="stream", state=state)

    def without_group(self, name: str) -> Answers:
        del self.groups[name], self.listed[name]
        return self

    def gap(
        self,
        part: ObservationPart,
        cause: GapCause = GapCause.TIMED_OUT,
        subject: str = "",
        scope: GapScope = GapScope.NAMED,
    ) -> Answers:
        self.gaps.append(Gap(part, cause, subject, f"the call for {part} gave nothing", scope))
        return self

    def says(self, group: str, process: str, task: str, role: str, lag: int, *, at_s: float) -> Answers:
        """What the application's own endpoint tells at that second."""
        row = RawApplicationLag(group, process, tasks(task)[0], role, lag, TAKEN_MS + round(at_s * 1000))
        self.lags = [old for old in self.lags if (old.group_id, old.process_id, old.task) != row[:3]] + [row]
        return self

    def at(self, second: float = 0.0) -> Observation:
        """The answers of a look at that second."""
        kinds = get_args(RawGroup)
        return Observation(
            cluster_id="test-cluster",
            controller=min(self.brokers, default=None),
            brokers=tuple(self.brokers[key] for key in sorted(self.brokers)),
            topics=tuple(self.topics[key] for key in sorted(self.topics)),
            topic_configs={name: dict(config) for name, config in self.topic_configs.items()},
            broker_configs={broker: dict(config) for broker, config in self.broker_configs.items()},
            committed_offsets={group: dict(offsets) for group, offsets in self.committed.items()},
            end_offsets=dict(self.ends),
            listed_groups=tuple(self.listed[key] for key in sorted(self.listed)),
            groups=tuple(sorted(self.groups.values(), key=lambda group: kinds.index(type(group)))),
            reassignments=tuple(self.moves[key] for key in sorted(self.moves)),
            replica_bytes=dict(self.sizes),
            application_lags=tuple(self.lags),
            rights=self.rights,
            gaps=tuple(self.gaps),
            taken_ms=TAKEN_MS + round(second * 1000),
            monotonic_ms=MONOTONIC_MS + round(second * 1000),
            took_ms=100,
            **self.extra,
        )


def an_observation(**racks: tuple[int, ...]) -> Answers:
    answers = Answers()
    for name, brokers in (racks or {"a": (1,), "b": (2,), "c": (3,)}).items():
        for broker_id in brokers:
            answers.broker(broker_id, name)
    return answers


def reader(
    member_id: str,
    rack: str | None,
    reads: str,
    *,
    topics: tuple[str, ...] | None = None,
    version: int = 3,
    generation: int | None = 4,
    owned: str | None = None,
    user_data: bytes | None = None,
    **changes: Any,
) -> RawMember:
    """A member of a classic consumer group; it reads (``"orders-0 orders-1"``) what it owned before, unless told."""
    held = tps(reads)
    subscription = Subscription(
        version=version,
        topics=topics if topics is not None else tuple(sorted({p.topic for p in held})),
        user_data=user_data if user_data is not None else encode_sticky(StickyUserData(None, generation)),
        owned=held if owned is None else tps(owned),
        generation=generation,
        rack=rack,
    )
    raw = RawMember(
        member_id, None, f"client-{member_id}", "/10.0.0.1", encode_subscription(subscription),
        encode_assignment(Assignment(version, held, None)),
    )  # fmt: skip
    return raw._replace(**changes)


def consumer(member_id: str, rack: str | None, reads: str, *, target: str | None = None) -> RawConsumerMember:
    """A member of a KIP-848 group."""
    held = tps(reads)
    topics = tuple(sorted({p.topic for p in held}))
    wanted = held if target is None else tps(target)
    return RawConsumerMember(
        member_id, None, rack, 7, f"client-{member_id}", "/10.0.0.1", topics, None, held, wanted, 1
    )


def process_id(number: int) -> str:
    return f"{number:08x}-0000-0000-0000-000000000000"


def instance(
    number: int,
    rack: str | None,
    active: Mapping[str, str] | None = None,
    standby: Mapping[str, str] | None = None,
    *,
    sums: Mapping[str, int] | None = None,
    topics: tuple[str, ...] | None = None,
    owned: str = "",
    generation: int | None = 4,
    next_rebalance_ms: int | None = None,
    tags: tuple[tuple[str, str], ...] = (),
    version: int = 11,
    thread: int = 1,
    header_only: bool = False,
) -> tuple[RawMember, ...]:
    """One thread of a KafkaStreams instance: tasks with their source partitions (``{"0_1": "orders-1"}``).

    Threads of one instance are made by several calls with the same number and different ``thread``.
    """
    runs = sorted((p, task) for task, sources in (active or {}).items() for p in tps(sources))
    partitions = tuple(p for p, _ in runs)
    subscription = StreamsSubscription(
        version=version, latest_supported=11 if version > 2 else None, process_id=process_id(number), prev_tasks=(),
        standby_tasks=(), endpoint=None, unique_field=1 if version >= 8 else None,
        offset_sums={tasks(task)[0]: offset for task, offset in (sums or {}).items()},
        error_code=0 if version >= 9 else None, client_tags=tags if version >= 11 else None,
    )  # fmt: skip
    user_data = encode_subscription_info(StreamsSubscriptionHeader(12, 12) if header_only else subscription)
    names = topics if topics is not None else tuple(sorted({p.topic for p in partitions}))
    subscription = Subscription(3, names, user_data, tps(owned), generation, rack)
    data = StreamsAssignment(
        version=min(version, 11), commonly_supported=11, active=tuple(tasks(task)[0] for _, task in runs),
        standby=tuple((tasks(task)[0], tps(sources)) for task, sources in (standby or {}).items()),
        partitions_by_host=(), standby_partitions_by_host=(), error_code=0, next_rebalance_ms=next_rebalance_ms,
    )  # fmt: skip
    assignment = Assignment(3, partitions, encode_assignment_info(data))
    client = f"app-{number}-StreamThread-{thread}-consumer"
    member_id = f"{client}-{number:04d}-{thread}"
    return (
        RawMember(member_id, None, client, f"/10.0.0.{number}", encode_subscription(subscription),
                  encode_assignment(assignment)),
    )  # fmt: skip


def streams_member(
    number: int,
    rack: str | None,
    *,
    active: str = "",
    standby: str = "",
    warmup: str = "",
    offsets: Mapping[str, tuple[int, int]] | None = None,
    tags: tuple[tuple[str, str], ...] = (),
) -> RawStreamsMember:
    """A member of a KIP-1071 group; ``offsets``: task -> (offset, end offset)."""

    def named(text: str) -> tuple[TaskId, ...]:
        return tuple(TaskId(str(task.subtopology), task.partition) for task in tasks(text))

    held = RawTasks(named(active), named(standby), named(warmup))
    offsets_by_task = {named(task)[0]: of for task, of in (offsets or {}).items()}
    now = tuple((task, offset) for task, (offset, _) in offsets_by_task.items())
    ends = tuple((task, end) for task, (_, end) in offsets_by_task.items())
    return RawStreamsMember(
        f"member-{number}", None, rack, 5, f"app-{number}-StreamThread-1", f"/10.0.0.{number}", process_id(number),
        tags, held, held, now, ends,
    )  # fmt: skip


def subtopology(name: str, sources: str, changelogs: str = "", repartition: str = "") -> RawSubtopology:
    return RawSubtopology(name, tuple(sources.split()), tuple(repartition.split()), tuple(changelogs.split()), ())


class Run:
    """The agent's loop without its shell: look after look, with memory and memos carried on."""

    def __init__(self, limits: Limits | None = None, memory: Memory | None = None, *, memos: bool = True) -> None:
        self.limits = limits or Limits()
        self.memory = memory or Memory()
        self._memos = (Memo(), Memo(), Memo()) if memos else (None, None, None)
        self.snapshot: Snapshot
        self.detection: DetectionResult

    def look(self, observation: Observation) -> Run:
        of_decode, of_model, of_detect = self._memos
        decoded = decode_members(observation, of_decode)
        self.snapshot = build_snapshot(observation, decoded, self.memory, self.limits, of_model)
        self.detection = detect(self.snapshot, self.memory, self.limits, of_detect)
        far = [self.snapshot.groups[name] for name, one in self.detection.assessments.items() if one.gap > 0]
        predictions = predict_groups(far, self.snapshot, self.limits, Memo())
        self.memory = remember(self.memory, self.snapshot, self.detection, predictions)
        for memo in self._memos:
            if memo is not None:
                memo.turn()
        return self

    def of(self, reason: FindingReason) -> list[Finding]:
        """The findings of one reason in the last look."""
        return [finding for finding in self.detection.findings if finding.reason is reason]

    def copy(self, group: str, task: str, process: int) -> TaskCopy:
        """One copy of a task in the last snapshot."""
        wanted = process_id(process), tasks(task)[0]
        return next(c for c in self.snapshot.copies[group] if (c.process_id, c.task) == wanted)


def with_group(name: str, **settings: Any) -> Limits:
    """Limits that know the settings of one application."""
    return Limits(groups={name: GroupLimits(known=True, **settings)})


WIRE = RackLocator(name="wire", kind=LocatorKind.WIRE)
TABLE = RackLocator(name="file", kind=LocatorKind.TABLE)


def located(locator: str, *rows: str, age_ms: int = 0) -> RawRackTable:
    """What a locator told: ``located("file", "broker.1=a", "host.10.0.0.1=b")``."""
    read = []
    for row in rows:
        key, _, rack = row.rpartition("=")
        of = next(kind for kind in ("group.instance.id", "client.id", "broker", "host") if key.startswith(f"{kind}."))
        read.append(RawRackRow(of, key[len(of) + 1 :], rack))
    return RawRackTable(locator, tuple(sorted(read)), age_ms)
