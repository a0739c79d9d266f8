"""The cost of losing a rack: partitions without leader or under min ISR, tasks to restore, load on the rest.

All brokers and readers of the rack are gone at once and nothing else changes: no unclean election, no reassignment, no
rebalance yet. Only what the loss adds is counted, not partitions that are leaderless or under min ISR now.

Invariant: what depends on an unknown (rack of a broker or process, min.insync.replicas, whether a standby has caught up
or a task has state) is listed as unknown. Hidden topics or groups and silent brokers are named: no loss is free then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from agent.values.cycle import known_part
from agent.values.number_format import counted, few, sized
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.snapshot import (
    PartitionState,
    RackState,
    Snapshot,
    StreamsGroup,
    StreamsProcess,
    TaskRole,
    TaskState,
    TaskStatefulness,
)
from assignors.problem import TaskId, TopicPartition

_RESTS_ON = frozenset((ObservationPart.BROKERS, ObservationPart.TOPICS, ObservationPart.GROUPS))
_Figure = TypeVar("_Figure", int, float)


class LostTask(NamedTuple):
    """A task that runs in the rack; elsewhere its state must be restored from the beginning or from far behind."""

    group: str
    task: TaskId
    process: str
    why: str = ""
    """The unknown that makes the effect unknown; empty for a task that certainly restores."""


class SurvivingBroker(NamedTuple):
    """A broker outside the rack with what it leads now and afterwards."""

    broker: int
    rack: str | None
    leaders: int
    leaders_after: int
    bytes_per_s: float | None
    """Inbound bytes per second of what it leads; None when one rate is unknown."""
    bytes_per_s_after: float | None
    led_bytes: int | None
    """Bytes on disk of what it leads; None when one size is unknown."""
    led_bytes_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLoss:
    """The loss of one rack."""

    rack: str
    brokers: tuple[int, ...]
    """Its live brokers."""
    leaderless: tuple[TopicPartition, ...] = ()
    """Led now, and no in-sync replica is outside the rack."""
    under_min_isr: tuple[TopicPartition, ...] = ()
    """At or above min ISR now; still led afterwards, but closed to writes with acks=all."""
    unknown_partitions: tuple[TopicPartition, ...] = ()
    """Unknown: one of the two, or neither."""
    tasks: tuple[LostTask, ...] = ()
    """Stateful tasks without a caught-up standby elsewhere."""
    unknown_tasks: tuple[LostTask, ...] = ()
    unknown_groups: tuple[str, ...] = ()
    """Streams groups whose tasks are all unknown."""
    survivors: tuple[SurvivingBroker, ...] = ()
    replicas: int = 0
    """Replicas on its live brokers."""
    runs: int = 0
    """Tasks that run in it for certain, with state or without."""
    unseen: tuple[str, ...] = ()
    """Unseen parts of the cluster, which may be in it, with the reason."""

    @property
    def costs_nothing(self) -> bool:
        """True when the loss certainly stops nothing."""
        return not (self.leaderless or self.under_min_isr or self.tasks or self.uncertain)

    @property
    def uncertain(self) -> bool:
        """True when something is unknown."""
        return bool(self.unknown_partitions or self.unknown_tasks or self.unknown_groups or self.unseen)

    @property
    def holds_nothing(self) -> bool:
        """True when no replica and no task was seen in it."""
        return not (self.replicas or self.runs)


def rack_losses(snapshot: Snapshot) -> tuple[RackLoss, ...]:
    """The loss of every rack with a live broker or a reader; sorted by name."""
    rack_of = {broker.id: broker.rack.name for broker in snapshot.brokers if broker.alive}
    partitions = [state for topic in snapshot.topics.values() for state in topic.partitions if state.leader is not None]
    min_isr = {name: topic.min_isr for name, topic in snapshot.topics.items()}
    groups = [group for group in snapshot.groups.values() if isinstance(group, StreamsGroup)]
    racks = {name for name in rack_of.values() if name is not None}
    racks |= {p.rack.name for group in groups for p in group.processes if p.rack.name is not None}
    partitions_of = {rack: _LostPartitions([], [], []) for rack in racks}
    for state in partitions:
        _judge(state, min_isr[state.id.topic], rack_of, partitions_of)
    loads = {broker: _Load() for broker in rack_of}
    led_in: dict[str | None, list[PartitionState]] = {}
    for state in partitions:
        if state.leader is not None and state.leader in rack_of:
            loads[state.leader].add(state, snapshot)
            led_in.setdefault(rack_of[state.leader], []).append(state)
    inputs = _Inputs(snapshot, rack_of, loads, led_in, groups, _replicas_in(snapshot, rack_of), unseen_parts(snapshot))
    return tuple(_loss(rack, partitions_of[rack], inputs) for rack in sorted(racks))


def _of(gap: Gap) -> str:
    return f" of {gap.subject}" if gap.subject and gap.part is not ObservationPart.RIGHTS else ""


def unseen_parts(snapshot: Snapshot) -> tuple[str, ...]:
    """The parts on which every rack's loss rests and that were not seen whole: ``topics: not authorized``."""
    rights = snapshot.rights
    unseen = [
        f"{gap.part}{_of(gap)}: {gap.cause}"
        for gap in snapshot.gaps
        if gap.cause is not GapCause.VANISHED
        and (
            gap.part in _RESTS_ON
            or (gap.part is ObservationPart.RIGHTS and gap.subject == ObservationPart.GROUPS.value)
        )
    ]
    unseen += [f"not shown, but there before: {counted(rights.topics_hidden, 'topic')}"] if rights.topics_hidden else []
    unseen += [f"not shown, but there before: {counted(rights.groups_hidden, 'group')}"] if rights.groups_hidden else []
    return tuple(sorted(set(unseen)))


def _replicas_in(snapshot: Snapshot, rack_of: Mapping[int, str | None]) -> Counter[str | None]:
    lists = Counter(state.replicas for topic in snapshot.topics.values() for state in topic.partitions)
    held: Counter[str | None] = Counter()
    for replicas, times in lists.items():
        for broker in replicas:
            if broker in rack_of:
                held[rack_of[broker]] += times
    return held


@dataclass(slots=True)
class _Load:
    """What a broker leads."""

    leaders: int = 0
    bytes_per_s: float | None = 0.0
    led_bytes: int | None = 0

    def add(self, state: PartitionState, snapshot: Snapshot) -> None:
        """Count one partition more."""
        self.leaders += 1
        self.bytes_per_s = _sum(self.bytes_per_s, snapshot.bytes_per_s.get(state.id))
        self.led_bytes = _sum(self.led_bytes, snapshot.size_bytes.get(state.id))


class _Inputs(NamedTuple):
    snapshot: Snapshot
    rack_of: Mapping[int, str | None]
    """Live broker -> rack."""
    loads: Mapping[int, _Load]
    led_in: Mapping[str | None, list[PartitionState]]
    groups: list[StreamsGroup]
    replicas: Mapping[str | None, int]
    unseen: tuple[str, ...]


class _LostPartitions(NamedTuple):
    leaderless: list[TopicPartition]
    under: list[TopicPartition]
    unknown: list[TopicPartition]


def _judge(
    state: PartitionState, min_isr: int | None, rack_of: Mapping[int, str | None], lost: Mapping[str, _LostPartitions]
) -> None:
    """Note the partition under every rack whose loss affects it, or may."""
    in_sync = [rack_of[broker] for broker in state.isr if broker in rack_of and broker not in state.offline]
    unknown = in_sync.count(None)
    for rack in lost if unknown else {rack for rack in in_sync if rack is not None}:
        stay = sum(name is not None and name != rack for name in in_sync)
        if not stay + unknown:
            lost[rack].leaderless.append(state.id)
        elif not stay or min_isr is None:  # with every replica in sync some min ISR would be broken
            lost[rack].unknown.append(state.id)
        elif len(in_sync) >= (least := min(min_isr, len(state.replicas))) > stay:
            (lost[rack].unknown if stay + unknown >= least else lost[rack].under).append(state.id)


def _loss(rack: str, partitions: _LostPartitions, inputs: _Inputs) -> RackLoss:
    lost, unknown, unknown_groups = _tasks(rack, inputs)
    return RackLoss(
        rack=rack,
        brokers=tuple(sorted(broker for broker, name in inputs.rack_of.items() if name == rack)),
        leaderless=tuple(sorted(partitions.leaderless)),
        under_min_isr=tuple(sorted(partitions.under)),
        unknown_partitions=tuple(sorted(partitions.unknown)),
        tasks=tuple(sorted(lost)),
        unknown_tasks=tuple(sorted(unknown)),
        unknown_groups=tuple(unknown_groups),
        survivors=_survivors(rack, inputs),
        replicas=inputs.replicas.get(rack, 0),
        runs=sum(len(p.active) for group in inputs.groups for p in group.processes if _in(p, rack)),
        unseen=inputs.unseen,
    )


def _tasks(rack: str, inputs: _Inputs) -> tuple[list[LostTask], list[LostTask], list[str]]:
    """Tasks certainly without a caught-up standby, tasks possibly without, and groups with unknown tasks."""
    lost: list[LostTask] = []
    unknown: list[LostTask] = []
    unknown_groups: list[str] = []
    for group in inputs.groups:
        if group.hidden or (group.topology is None and group.members):
            unknown_groups.append(group.id)
            continue
        tasks = {task.id: task for task in group.topology.tasks} if group.topology is not None else {}
        cover = _cover(group, rack, inputs.snapshot)
        for process in group.processes:
            here = _in(process, rack)
            if here is False:
                continue
            for active in process.active:
                covered, perhaps = cover.get(active, (frozenset[str](), frozenset[str]()))
                stateful = _stateful(tasks.get(active))
                if stateful is False or covered - {process.id}:
                    continue
                if here and stateful and not perhaps - {process.id}:
                    lost.append(LostTask(group.id, active, process.id))
                else:
                    unknown.append(LostTask(group.id, active, process.id, _not_known(here=here, stateful=stateful)))
    return lost, unknown, unknown_groups


def _not_known(*, here: bool | None, stateful: bool | None) -> str:
    """Why the effect on a task is unknown: its own rack, its state, or else a copy of it."""
    if here is None:
        return "the rack of its process is unknown"
    if stateful is None:
        return "it is unknown whether it has state"
    return "it is unknown whether a standby in another rack has caught up"


def _cover(group: StreamsGroup, rack: str, snapshot: Snapshot) -> dict[TaskId, tuple[frozenset[str], frozenset[str]]]:
    """Task -> processes that certainly have a caught-up copy elsewhere, and those that may."""
    places = {process.id: _in(process, rack) for process in group.processes}
    sure: dict[TaskId, set[str]] = {}
    maybe: dict[TaskId, set[str]] = {}
    for copy in snapshot.copies.get(group.id, ()):
        here = places.get(copy.process_id)
        if copy.role is TaskRole.ACTIVE or here is True or copy.caught_up is False or copy.process_id not in places:
            continue
        (sure if copy.caught_up and here is False else maybe).setdefault(copy.task, set()).add(copy.process_id)
    return {task: (frozenset(sure.get(task, ())), frozenset(maybe.get(task, ()))) for task in {*sure, *maybe}}


def _in(process: StreamsProcess, rack: str) -> bool | None:
    """Whether a process is in a rack; None when its rack is not known."""
    return process.rack.name == rack if process.rack.state is RackState.KNOWN else None


def _stateful(task: TaskState | None) -> bool | None:
    if task is None or task.statefulness is TaskStatefulness.UNKNOWN:
        return None
    return task.statefulness is not TaskStatefulness.STATELESS


def _survivors(rack: str, inputs: _Inputs) -> tuple[SurvivingBroker, ...]:
    """Every broker outside the rack; the controller elects the first remaining in-sync replica as leader.

    Empty where no topic was seen and some may be hidden: their leaders are unknown, not none.
    """
    if known_part(len(inputs.snapshot.topics), inputs.snapshot, ObservationPart.TOPICS) is None:
        return ()
    rack_of, now = inputs.rack_of, inputs.loads
    more = {broker: _Load() for broker in rack_of}
    for state in inputs.led_in.get(rack, ()):
        leader = next((b for b in state.replicas if b in state.isr and b in rack_of and rack_of[b] != rack), None)
        if leader is not None:
            more[leader].add(state, inputs.snapshot)
    return tuple(
        SurvivingBroker(
            broker=broker,
            rack=name,
            leaders=now[broker].leaders,
            leaders_after=now[broker].leaders + more[broker].leaders,
            bytes_per_s=now[broker].bytes_per_s,
            bytes_per_s_after=_sum(now[broker].bytes_per_s, more[broker].bytes_per_s),
            led_bytes=now[broker].led_bytes,
            led_bytes_after=_sum(now[broker].led_bytes, more[broker].led_bytes),
        )
        for broker, name in sorted(rack_of.items())
        if name != rack
    )


def _sum(one: _Figure | None, other: _Figure | None) -> _Figure | None:
    return None if one is None or other is None else one + other


SHOWN = 3
"""Partitions, tasks and parts that are named one by one; the rest is counted."""


def loss_label(loss: RackLoss) -> str:
    """The risk by its name, with the partitions: ``losing rack a leaves 2 partitions without a leader: t-0, t-1``."""
    tasks = [f"{one.group} {one.task}" for one in loss.tasks]
    parts = [
        f"{verb} {counted(len(names), noun)} {what}: {few(names, SHOWN)}"
        for verb, names, noun, what in (
            ("leaves", loss.leaderless, "partition", "without a leader"),
            ("leaves", loss.under_min_isr, "partition", "under min ISR"),
            ("makes", tasks, "task", "restore state"),
        )
        if names
    ]
    if parts:
        return f"losing rack {loss.rack} {'; '.join(parts)}"
    if loss.uncertain:
        return f"what losing rack {loss.rack} stops is not known"
    if loss.holds_nothing:
        return f"losing rack {loss.rack}"
    return f"losing rack {loss.rack} stops nothing"


def loss_details(loss: RackLoss) -> tuple[str, ...]:
    """Beside the label: unknown effects, and the load on the remaining racks."""
    if loss.holds_nothing and not loss.uncertain:
        return ("no replica and no task was seen in it",)
    return tuple([part for part in (", ".join(_unknown(loss)), _load(loss)) if part])


def loss_sentence(loss: RackLoss) -> str:
    """Stopped partitions, restoring tasks, unknown effects, and the load on the remaining racks."""
    parts = [
        f"{number} {what}"
        for number, what in (
            (len(loss.leaderless), _plural(len(loss.leaderless), "partition") + " without a leader"),
            (len(loss.under_min_isr), _plural(len(loss.under_min_isr), "partition") + " under min ISR"),
            (len(loss.tasks), _plural(len(loss.tasks), "stateful task") + " without a caught-up standby elsewhere"),
        )
        if number
    ]
    if loss.costs_nothing:
        parts = [
            "no replica and no task was seen in it" if loss.holds_nothing else "no partition stops and no task restores"
        ]
    return f"{', '.join([*parts, *_unknown(loss)])}; {_load(loss)}"


def _unknown(loss: RackLoss) -> list[str]:
    parts: list[str] = []
    numbers = len(loss.unknown_partitions), len(loss.unknown_tasks), len(loss.unknown_groups)
    named = [
        counted(number, word)
        for number, word in zip(numbers, ("partition", "task", "whole group"), strict=True)
        if number
    ]
    if named:
        parts.append(f"the effect on {' and '.join(named)} is unknown ({_unknown_effects(loss)})")
    if loss.unseen:
        parts.append(f"not all was seen ({few(loss.unseen, SHOWN)})")
    return parts


def _unknown_effects(loss: RackLoss) -> str:
    """The first of each kind, the unknowns of tasks, and the command that shows all."""
    parts = [few(loss.unknown_partitions, SHOWN)] if loss.unknown_partitions else []
    if loss.unknown_tasks:
        reasons = ", ".join(dict.fromkeys(one.why for one in loss.unknown_tasks))
        parts.append(f"{few([f'{one.group} {one.task}' for one in loss.unknown_tasks], SHOWN)}: {reasons}")
    if loss.unknown_groups:
        parts.append(f"{_plural(len(loss.unknown_groups), 'group')} {few(loss.unknown_groups, SHOWN)}")
    cut = max(len(loss.unknown_partitions), len(loss.unknown_tasks), len(loss.unknown_groups)) > SHOWN
    return "; ".join([*parts, "all: rackwise racks -o json"] if cut else parts)


def _load(loss: RackLoss) -> str:
    """Leaders, and bytes where all are known, of the remaining racks, now and afterwards."""
    leaders: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for survivor in loss.survivors:
        rack = survivor.rack or "(unknown)"
        leaders[rack] += survivor.leaders
        after[rack] += survivor.leaders_after
    if after and not leaders.total() and not after.total():
        return "no partition is led there" if len(after) == 1 else "no partition is led in the other racks"
    changes = [f"rack {rack} leads {_instead(after[rack], leaders[rack])}" for rack in sorted(after)]
    if not changes:
        return "the load on other racks is unknown" if loss.unseen else "no broker is left"
    rates = [survivor.bytes_per_s for survivor in loss.survivors]
    rates_after = [survivor.bytes_per_s_after for survivor in loss.survivors]
    if None not in rates_after and any(rates_after):
        most, least = max(value or 0 for value in rates_after), max(value or 0 for value in rates)
        changes.append(f"the busiest remaining broker takes in {sized(most)}/s instead of {sized(least)}/s")
    return ", ".join(changes)


def _instead(after: int, before: int) -> str:
    led = counted(after, "partition")
    return f"{led} as now" if after == before else f"{led} instead of {before:,}"


def _plural(number: int, word: str) -> str:
    return word if number == 1 else f"{word}s"
