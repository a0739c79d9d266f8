"""Silver rows of one look, from its events, by the agent's own stages. Pure; no Spark.

Invariant: a look that is not whole, or cannot be read, gives exactly one row, of ``silver.looks``, with the reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from agent.decode.members import decode_members
from agent.model.build_snapshot import build_snapshot
from agent.model.members import broker_is_rack_aware
from agent.telemetry.changes import whole_look
from agent.telemetry.derived import AssessmentData, FindingData, ReportData, TaskCopiesData
from agent.telemetry.events import INPUT_SHAPES, EventKind, TelemetryEvent, from_pieces
from agent.telemetry.looks import CycleInputs, IncompleteLookError, limits_digest, observation_from_events
from agent.values.assessment import Locality
from agent.values.observation import Observation
from agent.values.snapshot import (
    ConsumerGroup,
    Group,
    OtherGroup,
    PartitionState,
    Range,
    Snapshot,
    StreamsGroup,
    TaskCopy,
)
from agent.values.typed_json import UnreadableError, from_json
from assignors.problem import TopicPartition
from pipeline.schemas.silver import HIDDEN, UNASSIGNED

Row = dict[str, Any]
MOST_NUMBER = 2**53
"""A partition that takes a million records a second has fewer after 280 years, and a double holds each of them."""
_TOO_LARGE = "the look cannot be read: an offset, a size or a clock in it is beyond 2^53"


class BronzeEvent(NamedTuple):
    """An event, or a fragment of one, as bronze holds it."""

    v: int
    kind: str
    subject: str
    cluster: str
    look: str
    n: int
    taken_ms: int
    data: str


class SilverRow(NamedTuple):
    """A row of a silver table, without what every row of the look has."""

    table: str
    """Name without its layer."""
    row: Row


def rows_of_look(raw: Iterable[BronzeEvent]) -> tuple[SilverRow, ...]:
    """Every silver row of the look of these events, which may come in any order and twice."""
    try:
        return rows_of_events(events_of(raw))
    except Exception as error:  # noqa: BLE001 foreign bytes in one look must not end the work on all others
        return (unreadable(problem_of(error)),)


def problem_of(error: Exception) -> str:
    """Why a look cannot be relied upon."""
    known = isinstance(error, (IncompleteLookError, UnreadableError))
    return str(error) if known else f"the look cannot be read: {error!r}"


def instance_of(look: str) -> str:
    """The agent's instance: what precedes the dash in the id of a look."""
    return look.rpartition("-")[0]


class ModelledLook(NamedTuple):
    """A look as it was recorded and as the agent's stages model it."""

    recorded: CycleInputs
    snapshot: Snapshot


def modelled(inputs: Iterable[TelemetryEvent]) -> ModelledLook:
    """The look of these events. Raises as `observation_from_events`."""
    recorded = observation_from_events(inputs)
    observation = recorded.observation
    decoded = decode_members(observation, None)
    return ModelledLook(recorded, build_snapshot(observation, decoded, recorded.memory, recorded.limits, None))


def rows_of_events(
    events: Iterable[TelemetryEvent], model: Callable[[Iterable[TelemetryEvent]], ModelledLook] = modelled
) -> tuple[SilverRow, ...]:
    """Every silver row of these events. Raises IncompleteLookError and UnreadableError."""
    inputs: list[TelemetryEvent] = []
    derived: dict[EventKind, dict[int, Any]] = {kind: {} for kind in _DERIVED}
    for event in events:
        if event.kind in _DERIVED:
            derived[event.kind][event.n] = from_json(_DERIVED[event.kind], event.data)
        elif event.kind in INPUT_SHAPES:
            inputs.append(event)
    reports: list[ReportData] = list(derived[EventKind.REPORT].values())
    copies: list[TaskCopiesData] = list(derived[EventKind.TASK_COPIES].values())
    if not inputs and reports and not reports[0].full:
        partial = {"complete": False, "full": False, "problem": None}
        task_copies = (copy for data in copies for copy in data.copies)
        return SilverRow("looks", partial), *(SilverRow("copies", _copy(copy, None, None)) for copy in task_copies)
    recorded, snapshot = model(inputs)
    _check_numbers(recorded.observation)
    return (
        SilverRow("looks", _look(recorded, snapshot)),
        *_brokers(snapshot),
        *_partitions(recorded, snapshot),
        *_groups(snapshot),
        *_copies(snapshot),
        *(SilverRow("findings", _finding(one)) for one in derived[EventKind.FINDING].values()),
        *(SilverRow("locality", row) for one in derived[EventKind.ASSESSMENT].values() for row in _locality(one)),
    )


_DERIVED: Mapping[EventKind, type] = {
    EventKind.REPORT: ReportData,
    EventKind.FINDING: FindingData,
    EventKind.ASSESSMENT: AssessmentData,
    EventKind.TASK_COPIES: TaskCopiesData,
}


def _check_numbers(seen: Observation) -> None:
    """Raises UnreadableError for an offset, a size or a clock of which later sums and differences cannot be made."""
    committed = chain.from_iterable(offsets.values() for offsets in seen.committed_offsets.values())
    numbers = chain((seen.monotonic_ms,), seen.end_offsets.values(), seen.replica_bytes.values(), committed)
    if max(map(abs, numbers)) > MOST_NUMBER:
        raise UnreadableError(_TOO_LARGE)


def events_of(raw: Iterable[BronzeEvent]) -> Iterator[TelemetryEvent]:
    """The events, fragments joined. One whose fragments did not all come is missing."""
    pieces: dict[int, dict[int, str]] = {}
    parts: dict[int, int] = {}
    for one in raw:
        data = json.loads(one.data)
        if one.kind == EventKind.FRAGMENT:
            pieces.setdefault(one.n, {})[int(data["part"])] = str(data["text"])
            parts[one.n] = int(data["parts"])
        elif one.kind in EventKind._value2member_map_:
            event = TelemetryEvent(
                EventKind(one.kind), one.subject, one.cluster, one.look, one.n, one.taken_ms, data, one.v
            )
            if event.kind is EventKind.KEPT:
                list(whole_look((event,), ()))  # what it keeps was not there, and that is the reason
            yield event
    for n, held in pieces.items():
        whole = from_pieces(held) if len(held) == parts[n] else None
        if whole is not None:
            yield whole


def unreadable(problem: str) -> SilverRow:
    """The one row of a look that cannot be relied upon, with why."""
    return SilverRow("looks", {"complete": False, "full": None, "problem": problem})


def _look(recorded: CycleInputs, snapshot: Snapshot) -> Row:
    alive = [broker for broker in snapshot.brokers if broker.alive]
    racks = {broker.rack.name for broker in alive}
    return {
        "monotonic_ms": recorded.observation.monotonic_ms,
        "complete": True,
        "full": True,
        "problem": None,
        "gaps": len(snapshot.gaps),
        "gap_parts": sorted({gap.part.value for gap in snapshot.gaps}),
        "brokers": len(alive),
        "racks": None if None in racks or not racks else len(racks),
        "known_racks": len(racks - {None}),
        "topics": len(snapshot.topics),
        "groups": len(snapshot.groups),
        "selector_is_rack_aware": snapshot.selector_is_rack_aware,
        "limits_digest": limits_digest(recorded.limits),
    }


def _brokers(snapshot: Snapshot) -> Iterator[SilverRow]:
    for broker in snapshot.brokers:
        row = {
            "broker": broker.id,
            "rack": broker.rack.name,
            "rack_state": broker.rack.state.value,
            "alive": broker.alive,
            "told_rack": broker.rack.rack_id if broker.alive else None,
            "selector_is_rack_aware": _selects(broker.id, snapshot),
        }
        yield SilverRow("brokers", row)


def _selects(broker: int | None, snapshot: Snapshot) -> bool | None:
    return None if broker is None else broker_is_rack_aware(snapshot.broker_configs.get(broker))


class _Racks(NamedTuple):
    known: Mapping[int, str | None]
    reported: Mapping[int, str | None]


def _partitions(recorded: CycleInputs, snapshot: Snapshot) -> Iterator[SilverRow]:
    racks = _Racks(
        {broker.id: broker.rack.name for broker in snapshot.brokers},
        # A broker that is gone serves no read, even if its rack is remembered.
        {broker.id: broker.rack.rack_id if broker.alive else None for broker in snapshot.brokers},
    )
    learned = recorded.memory.bytes_per_record
    for topic in snapshot.topics.values():
        compacted = None if topic.cleanup_policy is None else "compact" in topic.cleanup_policy
        common = {
            "topic": topic.name,
            "topic_id": topic.topic_id,
            "own": topic.own,
            "size_fresh": snapshot.sizes_fresh,
            "compacted": compacted,
            "learned_bytes_per_record": learned.get(topic.name),
        }
        for state in topic.partitions:
            yield SilverRow("partitions", common | _partition(state, recorded, snapshot, racks))


def _partition(state: PartitionState, recorded: CycleInputs, snapshot: Snapshot, racks: _Racks) -> Row:
    move = snapshot.reassignments.get(state.id)
    sizes = recorded.observation.replica_bytes
    return {
        "partition": state.id.partition,
        "leader": state.leader,
        "leader_rack": None if state.leader is None else racks.known.get(state.leader),
        "leader_selector": _selects(state.leader, snapshot),
        "replicas": list(state.replicas),
        "replica_racks": [racks.known.get(broker) for broker in state.replicas],
        "isr": list(state.isr),
        "isr_racks": [racks.known.get(broker) for broker in state.isr],
        "isr_told_racks": [racks.reported.get(broker) for broker in state.isr],
        "adding": None if move is None else list(move.adding),
        "removing": None if move is None else list(move.removing),
        "reassigned_by_us": None if move is None else move.own,
        "end_offset": snapshot.end_offsets.get(state.id),
        "size_bytes": snapshot.size_bytes.get(state.id),
        "replica_bytes": [sizes.get((broker, state.id)) for broker in state.replicas],
    }


def _groups(snapshot: Snapshot) -> Iterator[SilverRow]:
    for group in snapshot.groups.values():
        reads = [] if isinstance(group, OtherGroup) else list(_reads(group, snapshot))
        yield SilverRow("groups", _group(group, reads))
        yield from (SilverRow("reads", row) for row in reads)
        yield from (SilverRow("reads", row) for row in _commits(group, reads, snapshot))


def _commits(group: Group, reads: list[Row], snapshot: Snapshot) -> Iterator[Row]:
    """What the group has committed of partitions that none of its members is shown to read."""
    held = {(row["topic"], row["partition"]) for row in reads if row["role"] == "active"}
    hidden = not isinstance(group, OtherGroup) and group.hidden
    committed = snapshot.committed_offsets.get(group.id, {})
    for partition in committed:
        if partition not in held:
            yield _read(group.id, {"member": ""}, HIDDEN if hidden else UNASSIGNED, partition, committed)


def _group(group: Group, reads: list[Row]) -> Row:
    row: Row = {"group": group.id, "kind": group.kind.value, "state": group.state}
    if isinstance(group, OtherGroup):
        return row | {"hidden": False}
    digest = None
    if not group.hidden:
        held = sorted((row["member"], row["role"], row["topic"], row["partition"]) for row in reads)
        digest = hashlib.sha256(json.dumps(held).encode()).hexdigest()[:16]
    return row | {
        "assignor": group.assignor,
        "members": len(group.members),
        "hidden": group.hidden,
        "rebalance": None if group.hidden else _rebalance(group),
        "assignment_digest": digest,
    }


def _rebalance(group: ConsumerGroup | StreamsGroup) -> str | None:
    if isinstance(group, StreamsGroup) and group.join is not None:
        return group.join
    if group.assignment_epoch is not None:
        return f"epoch {group.assignment_epoch}"
    if not group.members:
        return None
    # Every rebalance raises the generation that the members report at the next one; new members have new ids.
    generation = max((member.generation for member in group.members if member.generation is not None), default=None)
    ids = "\n".join(sorted(member.id for member in group.members))
    return f"generation {generation}:{hashlib.sha256(ids.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _reads(group: ConsumerGroup | StreamsGroup, snapshot: Snapshot) -> Iterator[Row]:
    committed = snapshot.committed_offsets.get(group.id, {})
    if isinstance(group, ConsumerGroup) or not group.processes:
        for member in group.members:
            about = {
                "member": member.id,
                "client_id": member.client_id,
                "rack": member.rack.name,
                "told_rack": member.rack.rack_id,
            }
            for partition in member.assigned or ():
                yield _read(group.id, about, "active", partition, committed)
        return
    yield from _task_reads(group, committed)


def _task_reads(group: StreamsGroup, committed: Mapping[TopicPartition, int]) -> Iterator[Row]:
    """Reads by tasks: of each process its active tasks' sources, and the changelogs of its copies.

    A process's threads share its rack, so which of them reads what makes no difference here.
    """
    if group.topology is None:
        return
    tasks = {task.id: task for task in group.topology.tasks}
    for process in group.processes:
        about = {
            "member": process.id,
            "client_id": process.client_ids[0] if len(process.client_ids) == 1 else None,
            "rack": process.rack.name,
            "told_rack": process.rack.rack_id,
        }
        held = (("active", process.active), ("standby", process.standby), ("warm-up", process.warmup))
        seen: set[tuple[str, TopicPartition]] = set()
        for role, ids in held:
            for task in (tasks[name] for name in ids if name in tasks):
                for partition in task.sources if role == "active" else task.changelogs:
                    if (role, partition) not in seen:
                        seen.add((role, partition))
                        yield _read(group.id, about, role, partition, committed if role == "active" else {})


def _read(group: str, about: Row, role: str, partition: TopicPartition, committed: Mapping[TopicPartition, int]) -> Row:
    return about | {
        "group": group,
        "role": role,
        "topic": partition.topic,
        "partition": partition.partition,
        "committed_offset": committed.get(partition),
    }


def _copies(snapshot: Snapshot) -> Iterator[SilverRow]:
    for name, copies in snapshot.copies.items():
        group = snapshot.groups.get(name)
        processes = group.processes if isinstance(group, StreamsGroup) else ()
        tasks = group.topology.tasks if isinstance(group, StreamsGroup) and group.topology is not None else ()
        racks = {process.id: process.rack.name for process in processes}
        logs = {task.id: sorted({partition.topic for partition in task.changelogs}) for task in tasks}
        for copy in copies:
            yield SilverRow("copies", _copy(copy, racks.get(copy.process_id), logs.get(copy.task)))


def _copy(copy: TaskCopy, rack: str | None, changelogs: list[str] | None) -> Row:
    lag = copy.lag
    if abs(copy.end_offset_sum or 0) > MOST_NUMBER:
        raise UnreadableError(_TOO_LARGE)
    return {
        "group": copy.group_id,
        "process": copy.process_id,
        "rack": rack,
        "task": str(copy.task),
        "role": copy.role.value,
        "role_certain": copy.role_certain,
        "lag_low": None if lag is None else float(lag.low),
        "lag": _likely(lag),
        "lag_high": None if lag is None else float(lag.high),
        "lag_source": None if copy.lag_source is None else copy.lag_source.value,
        "rate": _likely(copy.rate_per_s),
        "eta_s": _likely(copy.eta_s),
        "caught_up": copy.caught_up,
        "end_offset_sum": copy.end_offset_sum,
        "changelogs": changelogs,
    }


def _likely(range_: Range | None) -> float | None:
    return None if range_ is None else float(range_.likely)


def _finding(finding: FindingData) -> Row:
    return {
        "id": finding.id,
        "reason": finding.reason,
        "severity": finding.severity,
        "subject": finding.subject,
        "sentence": finding.sentence,
        "since_ms": finding.since_ms,
        "held": finding.held,
    }


def _locality(assessment: AssessmentData) -> Iterator[Row]:
    best = {(one.measure, one.unit): one for one in assessment.optimal}
    for one in assessment.current:
        optimal: Locality | None = best.get((one.measure, one.unit))
        yield {
            "group": assessment.group,
            "measure": one.measure.value,
            "unit": one.unit,
            "local": float(one.local),
            "total": float(one.total),
            "unknown": float(one.unknown),
            "optimal_local": None if optimal is None else float(optimal.local),
        }
