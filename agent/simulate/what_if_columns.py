"""Three columns for a group that a change concerns: now, what its own assignor gives after the change, the best then.

The present assignment is not one of the changed group: who left read something that waits now, and who came reads
nothing. So both answers are asked for anew, of everything that the group subscribes to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from agent.detect.assess import topics_of
from agent.detect.assess_consumers import consumer_problem
from agent.detect.assess_tasks import task_problem
from agent.detect.tally import Reads, tally_reads
from agent.detect.traffic import topic_rates, weigh
from agent.plan.columns import Column, bill, columns_of, moved_by
from agent.plan.worth import given_reads, group_ground
from agent.predict.predict import predict
from agent.simulate.what_if import World
from agent.values.assessment import Assessment, Measure, NotAssessed
from agent.values.locality import Ground
from agent.values.memo import Memo
from agent.values.prediction import Given, Prediction
from agent.values.snapshot import ConsumerGroup, OtherGroup, RackState, ReaderGroup, StreamsGroup
from assignors.optimal import optimal_consumer, optimal_tasks
from assignors.problem import BadProblem, TaskId, TopicPartition


class Standbys(NamedTuple):
    """Standbys of a Streams application."""

    copies: int
    sharing_a_rack: int
    """Of those the ones in the rack of the task itself or of another of its standbys, for certain."""


class Outcome(NamedTuple):
    """What a group has under one assignment."""

    reads: int
    """Partitions that the group reads."""
    cost: Column
    standbys: Standbys | None
    """None for groups that have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """One group, before and after."""

    group_id: str
    kind: str
    now: Outcome | None
    own: Outcome | None
    """What its own assignor gives after the change, in the end."""
    optimum: Outcome | None
    """The best after the change; ``moved`` counts what one member has now and another gets."""
    waiting: int | None
    """Partitions without a reader until the group has rebalanced; None where a reader may be in a rack that goes."""
    prediction: Prediction | None
    why_not: str | None
    """Why columns are missing."""


def simulated_groups(
    world: World, assessments: Mapping[str, Assessment], after: World, *, racks_go: bool = False
) -> tuple[Simulated, ...]:
    """Every group that the changes from ``world`` to ``after`` concern, by id; ``assessments`` are of ``world``.

    ``racks_go``: whether racks are removed with their readers; readers of unknown rack may be among these.
    """
    simulated: list[Simulated] = []
    for name, group in sorted(after.snapshot.groups.items()):
        was = world.snapshot.groups.get(name)
        if isinstance(group, OtherGroup) or was is None or isinstance(was, OtherGroup):
            continue
        if _concerned(group, was, world, after):
            columns = columns_of(was, assessments.get(name), None, world.snapshot, world.limits)
            simulated.append(_simulated(group, was, columns.now, after, racks_go=racks_go))
    return tuple(simulated)


def _concerned(group: ReaderGroup, was: ReaderGroup, world: World, after: World) -> bool:
    """Whether a change reaches the group: it is another one, its settings are, or a topic that it reads is."""
    if group is not was or after.limits.group(group.id) != world.limits.group(group.id):
        return True
    if after.snapshot.group_configs.get(group.id) != world.snapshot.group_configs.get(group.id):
        return True
    topics = {*topics_of(group), *_changelogs(group)}
    return any(after.snapshot.topics.get(topic) is not world.snapshot.topics.get(topic) for topic in topics)


def _simulated(group: ReaderGroup, was: ReaderGroup, now: Column | None, after: World, *, racks_go: bool) -> Simulated:
    prediction = predict(group, after.snapshot, after.limits)
    owned = _held(was)
    racks = {reader.id: reader.rack.name for reader in group.readers}
    own = optimum = None
    why_not = None if prediction.why_not is None else prediction.why_not.value
    if prediction.settled is not None:
        own = _outcome(group, prediction.settled, after, racks)
    try:
        best = _best(group, after)
    except BadProblem as error:
        best, why_not = None, str(error)
    if best is not None:
        optimum = _outcome(group, best, after, racks)
    held = {partition for partition, _ in _held(group)}
    unplaced = racks_go and any(reader.rack.state is not RackState.KNOWN for reader in was.readers)
    return Simulated(
        group_id=group.id,
        kind=group.kind.value,
        now=None
        if now is None
        else Outcome(len(owned), now, _standbys(_present(was), {r.id: r.rack.name for r in was.readers}, was)),
        own=own,
        optimum=optimum,
        waiting=None if unplaced else len({partition for partition, _ in owned} - held),
        prediction=prediction,
        why_not=why_not or (NotAssessed.NO_RACKS.value if optimum is None else None),
    )


def _outcome(group: ReaderGroup, given: Given, after: World, racks: Mapping[str, str | None]) -> Outcome:
    ground = group_ground(group, after.snapshot, Memo())
    reads = given_reads(group, ground, given)
    tally = tally_reads(reads, ground.masks)[0]
    in_bytes, usd = _bytes(reads, ground, after)
    cost = Column(tally.crossing, tally.unknown, in_bytes, moved_by(group, given), tally.total, usd)
    return Outcome(tally.total, cost, _standbys(given, racks, group))


def _bytes(reads: Reads, ground: Ground, world: World) -> tuple[float | None, float | None]:
    """Bytes per second read across racks and dollars a day, by where reads really go; None where one is unknown."""
    snapshot = world.snapshot
    rates = topic_rates([snapshot.topics[name] for name in ground.masks], snapshot)
    rate_of = None if rates is None else dict(rates)
    if rate_of is None or any(partition not in rate_of for _, held in reads for partition in held):
        return None, None
    weighed = weigh(reads, ground.masks, rate_of)[1]
    in_bytes = None if weighed.unknown else weighed.total - weighed.local
    return in_bytes, bill(reads, ground, in_bytes, rate_of, snapshot, world.limits)


def _best(group: ReaderGroup, after: World) -> Given | None:
    """The optimum by Kafka's measure: everything that the group subscribes to, whichever member has it now."""
    ground = group_ground(group, after.snapshot, Memo())
    if not group.members or not any(ground.bits.reader(reader.rack) for reader in group.readers):
        return None
    if isinstance(group, ConsumerGroup):
        if any(member.assigned is None for member in group.members):
            return None
        held = {partition.topic for partition, _ in _held(group)}
        return (
            None
            if held - ground.masks.keys()
            else Given(optimal_consumer(consumer_problem(group, ground, Measure.KAFKA)).assignment)
        )
    topology = group.topology
    if topology is None or any(source.topic not in ground.masks for task in topology.tasks for source in task.sources):
        return None
    settings = after.limits.group(group.id)
    problem = replace(
        task_problem(group, topology, ground, settings, Measure.KAFKA),
        num_standby_replicas=settings.num_standby_replicas,
        rack_aware_tags=settings.rack_aware_assignment_tags,
    )
    result = optimal_tasks(problem)
    sources = {task.id: task.sources for task in topology.tasks}
    reads = {process: _sources(tasks, sources) for process, tasks in result.active.items()}
    return Given(reads, active=result.active, standby=result.standby)


def _standbys(given: Given, racks: Mapping[str, str | None], group: ReaderGroup) -> Standbys | None:
    if not isinstance(group, StreamsGroup):
        return None
    places: dict[TaskId, list[str | None]] = {}
    for process, tasks in given.standby.items():
        for task in tasks:
            places.setdefault(task, []).append(racks.get(process))
    runs = {task: racks.get(process) for process, tasks in given.active.items() for task in tasks}
    sharing = 0
    for task, standing in places.items():
        seen = [runs.get(task)]
        for rack in standing:
            sharing += rack is not None and rack in seen
            seen.append(rack)
    return Standbys(sum(map(len, places.values())), sharing)


def _present(group: ReaderGroup) -> Given:
    if isinstance(group, ConsumerGroup):
        return Given({})
    return Given(
        {},
        active={process.id: process.active for process in group.processes},
        standby={process.id: process.standby for process in group.processes},
    )


def _held(group: ReaderGroup) -> list[tuple[TopicPartition, str]]:
    """(partition, who reads it) now."""
    if isinstance(group, ConsumerGroup):
        return [(partition, member.id) for member in group.members for partition in member.assigned or ()]
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology is not None else {}
    return [(source, p.id) for p in group.processes for source in _sources(p.active, sources)]


def _sources(
    tasks: tuple[TaskId, ...], sources: Mapping[TaskId, tuple[TopicPartition, ...]]
) -> tuple[TopicPartition, ...]:
    return tuple(source for task in tasks for source in sources.get(task, ()))


def _changelogs(group: ReaderGroup) -> set[str]:
    if isinstance(group, ConsumerGroup) or group.topology is None:
        return set()
    return {log.topic for task in group.topology.tasks for log in task.changelogs}
