"""Predicted tasks of classic Kafka Streams applications, by Kafka's task assignors (KIP-441, KIP-925), and their input.

Task assignor, rack strategy, standbys and warm-ups are not in the group's bytes: they come from the settings, else
Kafka's defaults, with a note. Lags are rounded up to powers of two, so that not every record changes a prediction.
The input of consumer assignors is made here as well: topics, replica racks as brokers report them, order of members.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, replace
from importlib import import_module
from typing import NamedTuple

from agent.values.kafka import NO_STRATEGY, NUM_STANDBYS, RACK_AWARE_STRATEGY
from agent.values.limits import GroupLimits
from agent.values.plan import (
    NotPredicted,
    PredictedAssignment,
    Prediction,
    PredictionBasis,
    PredictionCertainty,
    WarmupCosts,
)
from agent.values.snapshot import (
    NO_CHANGELOG_SEEN,
    ONLY_ASSIGNORS,
    BrokerState,
    GroupKind,
    StreamsGroup,
    StreamsProcess,
    StreamsTopology,
    TaskCopy,
    TaskRole,
    TaskState,
    TaskStatefulness,
    TopicState,
)
from assignors.kafka.java import grown_table, hash_order, string_hash, utf16_key
from assignors.kafka.streams_problem import (
    LONG_MAX,
    RUNNING_ACTIVE,
    AssignmentConfigs,
    RackFacts,
    StreamsClient,
    StreamsProblem,
    StreamsResult,
)
from assignors.problem import TaskId, TopicPartition

ReplicaRacks = tuple[str | None, ...]
"""The rack of each replica of a partition; None is a broker without one."""


class RackSets(dict[tuple[int, ...], frozenset[str]]):
    """List of replicas -> their racks, without those that have none; few lists serve all partitions of a cluster."""

    __slots__ = ("_racks",)

    def __init__(self, racks: Mapping[int, str]) -> None:
        super().__init__()
        self._racks = racks

    def __missing__(self, replicas: tuple[int, ...]) -> frozenset[str]:
        racks = self[replicas] = frozenset([self._racks[broker] for broker in replicas if broker in self._racks])
        return racks


class AssignorInput(NamedTuple):
    """A group's topics and the racks of the brokers."""

    topics: Mapping[str, TopicState]
    racks: Mapping[int, str]
    """Broker -> its broker.rack; clients get none for an absent broker."""
    sets: RackSets
    """The same for lists of replicas."""
    registered: RackSets
    """Racks of lists of replicas as the coordinator has them: brokers that are stopped stay registered."""

    def replicas(self, topic: str) -> tuple[ReplicaRacks, ...] | None:
        """For each partition by number the racks of its replicas; None where a partition is missing."""
        state = self.topics.get(topic)
        if state is None or has_holes(state):
            return None
        return tuple([tuple(map(self.racks.get, one.replicas)) for one in state.partitions])

    def rack_sets(self, topic: str) -> tuple[frozenset[str], ...] | None:
        """The same as sets, without the replicas that have no rack."""
        state = self.topics.get(topic)
        if state is None or has_holes(state):
            return None
        return tuple([self.sets[one.replicas] for one in state.partitions])


def has_holes(topic: TopicState) -> bool:
    """True when a partition number is missing; they are sorted and differ."""
    return bool(topic.partitions) and topic.partitions[-1].id.partition != len(topic.partitions) - 1


def broker_racks(brokers: Iterable[BrokerState]) -> dict[int, str]:
    """Live broker -> ``broker.rack``, as clients get it."""
    return {broker.id: broker.rack.rack_id for broker in brokers if broker.alive and broker.rack.rack_id}


SHARED_BUCKET = "two members share a bucket of Kafka's hash map, where their order depends on which came first"


def share_a_bucket(members: Collection[str]) -> bool:
    """True when the order of Java's ``HashMap`` of these ids depends on that of insertion, which is unknown."""
    mask = grown_table(len(members)) - 1
    buckets = {((value := string_hash(member)) ^ (value & 0xFFFFFFFF) >> 16) & mask for member in members}
    return len(buckets) < len(members)


Lags = tuple[tuple[str, TaskId, int], ...]
"""(process, stateful task, records behind, rounded up)."""
Assign = Callable[[StreamsProblem], StreamsResult]

HIGH_AVAILABILITY = "HighAvailabilityTaskAssignor"
TASK_ASSIGNORS: Mapping[str, str] = {
    HIGH_AVAILABILITY: "high_availability",
    "LegacyStickyTaskAssignor": "legacy_sticky",
    "FallbackPriorTaskAssignor": "fallback_prior",
    "StickyTaskAssignor": "sticky_kip924",
}
"""Kafka's class -> the function and module in `assignors.kafka`, loaded when an application is predicted, because numpy
comes with it. The last is the public one (KIP-924)."""
UNKNOWN_END = 2**40
"""In place of a changelog's end that is not known: no process without a copy counts as caught up."""
MOST_WORK = 100_000
"""Pairs of task and process that the rounds until the end may cost; past it the end is worked out in one step."""
_CONFIGS = tuple(field.name for field in fields(AssignmentConfigs))
_STATEFUL = frozenset((TaskStatefulness.CHANGELOG, TaskStatefulness.SOURCE_CHANGELOG))


class StreamsRebalancePath(NamedTuple):
    """From the next rebalance to the end."""

    first: StreamsResult
    last: StreamsResult
    rebalances: int | None
    at_once: int
    warmed: tuple[tuple[str, TaskId], ...]
    """(process, task) of every warm-up on the way."""


def assignor_of(settings: GroupLimits) -> str:
    """The simple name of the task assignor's class; Kafka's default where none is set."""
    return (settings.task_assignor_class or HIGH_AVAILABILITY).rpartition(".")[2]


def assignor_name(kind: GroupKind, shown: str | None, settings: GroupLimits) -> str | None:
    """The assignor's name in predictions and plans; ``shown`` is the group's protocol name."""
    if kind is GroupKind.CLASSIC_STREAMS:
        return assignor_of(settings)
    return ONLY_ASSIGNORS.get(kind, shown)


def lags_of(group: StreamsGroup, copies: tuple[TaskCopy, ...], end_offsets: Mapping[TopicPartition, int],
            acceptable: int) -> Lags:  # fmt: skip
    """Lag in records of each stateful task on each process that does not run it; ``acceptable`` in records too."""
    held = {(copy.process_id, copy.task): copy for copy in copies if copy.role is not TaskRole.ACTIVE}
    ends = {copy.task: copy.end_offset_sum for copy in copies if copy.end_offset_sum is not None}
    lags: list[tuple[str, TaskId, int]] = []
    for task in group.topology.tasks if group.topology is not None else ():
        if not _is_stateful(task):
            continue
        end = ends.get(task.id, _end_of(task, end_offsets))
        from_nothing = _rounded(end, acceptable)
        for process in group.processes:
            if task.id in process.active:
                lag = RUNNING_ACTIVE
            else:
                lag = _lag_of(held.get((process.id, task.id)), acceptable, from_nothing)
            lags.append((process.id, task.id, lag))
    return tuple(lags)


def predict_application(
    group: StreamsGroup, topology: StreamsTopology, inputs: AssignorInput, settings: GroupLimits, lags: Lags
) -> tuple[Prediction, StreamsRebalancePath | None]:
    """The next round, and the state in the end; bytes of warm-ups are laid over it by ``with_bytes``."""
    name = assignor_of(settings)
    assign = _assign_of(name)
    if assign is None:
        why = NotPredicted.UNKNOWN_ASSIGNOR
        return Prediction(group_id=group.id, assignor=name, basis=PredictionBasis.SET, why_not=why), None
    if any(inputs.replicas(source.topic) is None for task in topology.tasks for source in task.sources):
        return Prediction(group_id=group.id, assignor=name, why_not=NotPredicted.TOPICS_UNKNOWN), None
    path = _path(_problem(group, topology, inputs, settings, lags), assign)
    unsure = _unsure(topology, settings)
    literal = "cost-equal optimum" not in (path.first.flow, path.last.flow)
    notes = list(dict.fromkeys((*path.first.warnings, *path.last.warnings, *unsure)))
    if not literal:
        notes.append("the application is so large that its rack-aware step is predicted by an optimum of equal cost")
    if name == "StickyTaskAssignor" and settings.num_standby_replicas:
        notes.append("Kafka's assignor places standbys differently from run to run here")
        literal = False
    prediction = Prediction(
        group_id=group.id,
        assignor=name,
        settings=described(settings),
        basis=PredictionBasis.SET if settings.known else PredictionBasis.ASSUMED,
        certainty=PredictionCertainty.EXACT if literal and not unsure else PredictionCertainty.COST_EQUAL,
        first=_assignment(path.first, topology),
        settled=_assignment(path.last, topology),
        rebalances=path.rebalances,
        warmups=WarmupCosts(at_once=path.at_once, tasks=len(path.warmed), disk_bytes=None, read_bytes=None)
        if path.warmed
        else None,
        notes=tuple(notes),
    )
    return prediction, path


def with_bytes(
    prediction: Prediction,
    path: StreamsRebalancePath | None,
    topology: StreamsTopology,
    size_bytes: Mapping[TopicPartition, int],
) -> Prediction:
    """The prediction with the bytes of its warm-ups, each copied once from the brokers."""
    if path is None or prediction.warmups is None:
        return prediction
    changelogs = {task.id: task.changelogs for task in topology.tasks}
    sizes = [size_bytes.get(log) for _, task in path.warmed for log in changelogs[task]]
    known = [size for size in sizes if size is not None]
    all_known = len(known) == len(sizes) and all(changelogs[task] for _, task in path.warmed)
    total = sum(known) if all_known else None
    return replace(prediction, warmups=replace(prediction.warmups, disk_bytes=total, read_bytes=total))


def described(settings: GroupLimits) -> str:
    """Settings of an application, as one clause."""
    parts = [f"{RACK_AWARE_STRATEGY} {settings.rack_aware_assignment_strategy}"]
    if settings.rack_aware_assignment_tags:
        parts.append(f"tags {', '.join(settings.rack_aware_assignment_tags)}")
    parts.append(f"{NUM_STANDBYS} {settings.num_standby_replicas}")
    parts.append(f"max.warmup.replicas {settings.max_warmup_replicas}")
    return ", ".join(parts)


def _problem(
    group: StreamsGroup, topology: StreamsTopology, inputs: AssignorInput, settings: GroupLimits, lags: Lags
) -> StreamsProblem:
    tasks = tuple(sorted(topology.tasks, key=lambda task: task.id))
    stateful = tuple(task.id for task in tasks if _is_stateful(task))
    by_process: dict[str, dict[TaskId, int]] = {process.id: {} for process in group.processes}
    for process_id, task_id, lag in lags:
        by_process[process_id][task_id] = lag
    racks = {member.id: member.rack.rack_id for member in group.members}
    topics = {tp.topic for task in tasks for tp in (*task.sources, *task.changelogs)}
    shown = {topic: replicas for topic in sorted(topics) if (replicas := inputs.replicas(topic)) is not None}
    known = {task.id for task in tasks}
    return StreamsProblem(
        tasks=tuple(task.id for task in tasks),
        stateful=stateful,
        clients=tuple(_client(process, by_process[process.id], known) for process in _in_hash_order(group.processes)),
        configs=AssignmentConfigs(**{name: getattr(settings, name) for name in _CONFIGS}),
        racks=RackFacts(
            consumer_racks={
                process.id: {member: racks.get(member) for member in process.member_ids} for process in group.processes
            },
            cluster=shown,
            described=shown,
            task_partitions={task.id: task.sources for task in tasks},
            changelog_partitions={task.id: task.changelogs for task in tasks},
        ),
    )


def _in_hash_order(processes: tuple[StreamsProcess, ...]) -> list[StreamsProcess]:
    """Processes as in ``StreamsPartitionAssignor.assign``: by their first member in the order of a Java hash map."""
    of = {member: process for process in processes for member in process.member_ids}
    in_order = {of[member].id: of[member] for member in hash_order(of, string_hash, order=utf16_key)}
    return [*in_order.values(), *(process for process in processes if process.id not in in_order)]


def _client(process: StreamsProcess, lags: Mapping[TaskId, int], known: set[TaskId]) -> StreamsClient:
    held = (*process.standby, *process.warmup)
    return StreamsClient(
        id=process.id,
        capacity=process.capacity,
        tags=dict(process.tags),
        prev_active=tuple(task for task in process.active if task in known),
        prev_standby=tuple(task for task in dict.fromkeys(held) if task in known),
        lags=lags,
    )


def _is_stateful(task: TaskState) -> bool:
    """Kafka counts a task as stateful when it has a changelog; where it is unknown which, it still has one."""
    unknown = task.statefulness is TaskStatefulness.UNKNOWN
    return task.statefulness in _STATEFUL or (unknown and task.note != NO_CHANGELOG_SEEN)


def _lag_of(copy: TaskCopy | None, acceptable: int, from_nothing: int) -> int:
    if copy is None:
        return from_nothing
    if copy.caught_up:
        return 0
    if copy.lag is None:
        return from_nothing
    behind = _rounded(int(copy.lag.likely), acceptable)
    return max(0, min(behind, from_nothing - 1)) if from_nothing > acceptable + 1 else behind


def _rounded(records: int, acceptable: int) -> int:
    if records <= acceptable:
        return min(records, acceptable) and acceptable
    return max(acceptable + 2, 1 << records.bit_length())


def _end_of(task: TaskState, end_offsets: Mapping[TopicPartition, int]) -> int:
    ends = [end_offsets.get(log) for log in task.changelogs]
    known = [end for end in ends if end is not None]
    return sum(known) if ends and len(known) == len(ends) else UNKNOWN_END


def _unsure(topology: StreamsTopology, settings: GroupLimits) -> list[str]:
    unknown = sorted({str(t.id.subtopology) for t in topology.tasks if _is_stateful(t) and not t.changelogs})
    if not unknown:
        return []
    matters = settings.num_standby_replicas or settings.rack_aware_assignment_strategy != NO_STRATEGY
    return [f"the changelog topics of subtopology {', '.join(unknown)} are unknown"] if matters else []


def _assign_of(name: str) -> Assign | None:
    """The assignor of Kafka's class of that simple name; None where it is not one of Kafka's."""
    function = TASK_ASSIGNORS.get(name)
    if function is None:
        return None
    assign: Assign = getattr(import_module(f"assignors.kafka.{function}"), function)
    return assign


def _path(problem: StreamsProblem, assign: Assign) -> StreamsRebalancePath:
    """Rebalance after rebalance with warm-ups caught up; in one step where that would take long."""
    first = result = assign(problem)
    most = max(1, MOST_WORK // max(1, len(problem.tasks) * len(problem.clients)))
    warmed: dict[tuple[str, TaskId], None] = {}
    rebalances, at_once = 1, 0
    while True:
        now = [(process, task) for process, tasks in result.warmup.items() for task in tasks]
        warmed.update(dict.fromkeys(now))
        at_once = max(at_once, len(now))
        if not result.followup_rebalance:
            return StreamsRebalancePath(first, result, rebalances, at_once, tuple(sorted(warmed)))
        if rebalances >= most:
            break
        problem = _caught_up(problem, result)
        result = assign(problem)
        rebalances += 1
    caught_up = replace(problem.configs, acceptable_recovery_lag=LONG_MAX)
    last = assign(replace(problem, configs=caught_up))
    before = {(client.id, task) for client in problem.clients for task in (*client.prev_active, *client.prev_standby)}
    new = {(p, t) for p, ts in last.active.items() for t in ts if t in set(problem.stateful)} - before
    warmed.update(dict.fromkeys(sorted(new)))
    return StreamsRebalancePath(
        first, last, None, max(at_once, min(len(new), problem.configs.max_warmup_replicas)), tuple(warmed)
    )


def _caught_up(problem: StreamsProblem, result: StreamsResult) -> StreamsProblem:
    """The next rebalance's problem, when all copies have caught up. State of revoked tasks stays for a while."""
    stateful = set(problem.stateful)
    clients = []
    for client in problem.clients:
        active, standby = result.active.get(client.id, ()), result.standby.get(client.id, ())
        lags = {task: 0 if lag == RUNNING_ACTIVE else lag for task, lag in client.lags.items()}
        lags |= dict.fromkeys(standby, 0)
        lags |= {task: RUNNING_ACTIVE for task in active if task in stateful}
        clients.append(replace(client, prev_active=active, prev_standby=standby, lags=lags))
    return replace(problem, clients=tuple(clients))


def _assignment(result: StreamsResult, topology: StreamsTopology) -> PredictedAssignment:
    sources = {task.id: task.sources for task in topology.tasks}
    warmup = {process: set(tasks) for process, tasks in result.warmup.items()}
    active = {process: result.active[process] for process in sorted(result.active)}
    return PredictedAssignment(
        reads={
            process: tuple(sorted(tp for task in tasks for tp in sources[task])) for process, tasks in active.items()
        },
        active=active,
        standby={
            process: tuple([task for task in result.standby[process] if task not in warmup.get(process, ())])
            for process in sorted(result.standby)
        },
        warmup={process: result.warmup[process] for process in sorted(result.warmup) if result.warmup[process]},
    )
