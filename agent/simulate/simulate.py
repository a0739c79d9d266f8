"""Simulates changes of a snapshot with the agent's own stages: groups under each assignor, findings, rack losses.

Columns of a group that a change concerns: now, its own assignor after the change, the best then. The present
assignment is none of the changed group (leavers' partitions wait, newcomers read nothing), so both are made anew.
Findings and proposals are of the cluster in which each such group has what its own assignor gives it in the end; a
group whose assignor cannot be predicted has what is left of the present assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from agent.detect.assess_consumers import Reads, consumer_problem, count_reads
from agent.detect.assess_tasks import task_problem
from agent.detect.find import detect
from agent.detect.traffic import topic_rates, weigh
from agent.money.costs import costs_of
from agent.money.traffic import CrossRackTraffic
from agent.plan.gain_thresholds import (
    ComparisonColumn,
    crossing_usd_per_day,
    given_reads,
    group_comparison,
    group_locality,
    moved_by,
)
from agent.plan.make import make_plan
from agent.plan.plugin_gain import plugin_answer, plugin_question, plugin_sentence
from agent.predict.predict import predict
from agent.propose.make import propose
from agent.simulate.rack_loss import RackLoss, rack_losses
from agent.simulate.what_if import RemoveRack, SimulatedChange, SimulatedCluster, what_if
from agent.simulate.what_if_groups import with_assignment
from agent.values.assessment import Assessment, GroupLocality, LocalityMeasure, NotAssessed
from agent.values.finding import Finding
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory, gone_for_good
from agent.values.plan import PredictedAssignment, Prediction
from agent.values.proposal import Proposal
from agent.values.snapshot import ConsumerGroup, OtherGroup, RackState, ReaderGroup, Snapshot, StreamsGroup, topics_of
from assignors.optimal import optimal_consumer, optimal_tasks
from assignors.problem import BadProblem, TaskId, TopicPartition


class StandbyCounts(NamedTuple):
    """Standbys of a Streams application."""

    copies: int
    sharing_a_rack: int
    """Of those the ones in the rack of the task itself or of another of its standbys, for certain."""


class AssignmentOutcome(NamedTuple):
    """Locality and standbys of a group under one assignment."""

    reads: int
    """Partitions that the group reads."""
    cost: ComparisonColumn
    standbys: StandbyCounts | None
    """None for groups that have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSimulation:
    """One group, before and after."""

    group_id: str
    kind: str
    now: AssignmentOutcome | None
    own: AssignmentOutcome | None
    """What its own assignor gives after the change, in the end."""
    plugin: AssignmentOutcome | None
    """KIP-848: what the plug-in for brokers gives after the change; None for other groups, and where it is unknown."""
    plugin_gain: str | None
    """What that is against its own assignor; None for groups that the plug-in does not concern."""
    optimum: AssignmentOutcome | None
    """The best after the change; ``moved`` counts what one member has now and another gets."""
    waiting: int | None
    """Partitions without a reader until the group has rebalanced; None where a reader may be in a rack that goes."""
    prediction: Prediction | None
    why_not: str | None
    """Why columns are missing."""


def simulated_groups(
    cluster: SimulatedCluster,
    assessments: Mapping[str, Assessment],
    after: SimulatedCluster,
    resulting: Mapping[str, Assessment],
    *,
    racks_go: bool = False,
) -> tuple[GroupSimulation, ...]:
    """Every group that the changes from ``cluster`` to ``after`` concern, by id.

    ``assessments`` are of ``cluster``, ``resulting`` of ``after``.
    ``racks_go``: whether racks are removed with their readers; readers of unknown rack may be among these.
    """
    simulated: list[GroupSimulation] = []
    for name, group in sorted(after.snapshot.groups.items()):
        before = cluster.snapshot.groups.get(name)
        if isinstance(group, OtherGroup) or before is None or isinstance(before, OtherGroup):
            continue
        if _concerned(group, before, cluster, after):
            columns = group_comparison(before, assessments.get(name), None, cluster.snapshot, cluster.limits)
            one = _simulated(group, before, columns.now, after, racks_go=racks_go)
            simulated.append(_with_plugin(one, group, resulting.get(name), after))
    return tuple(simulated)


def _concerned(group: ReaderGroup, before: ReaderGroup, cluster: SimulatedCluster, after: SimulatedCluster) -> bool:
    """Whether a change reaches the group: it is another one, its settings are, or a topic that it reads is."""
    if group is not before or after.limits.group(group.id) != cluster.limits.group(group.id):
        return True
    if after.snapshot.group_configs.get(group.id) != cluster.snapshot.group_configs.get(group.id):
        return True
    topics = {*topics_of(group), *_changelogs(group)}
    return any(after.snapshot.topics.get(topic) is not cluster.snapshot.topics.get(topic) for topic in topics)


def _simulated(
    group: ReaderGroup, before: ReaderGroup, now: ComparisonColumn | None, after: SimulatedCluster, *, racks_go: bool
) -> GroupSimulation:
    prediction = predict(group, after.snapshot, after.limits)
    owned = _held(before)
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
    unplaced = racks_go and any(reader.rack.state is not RackState.KNOWN for reader in before.readers)
    return GroupSimulation(
        group_id=group.id,
        kind=group.kind.value,
        now=None
        if now is None
        else AssignmentOutcome(
            len(owned), now, _standbys(_present(before), {r.id: r.rack.name for r in before.readers}, before)
        ),
        own=own,
        plugin=None,
        plugin_gain=None,
        optimum=optimum,
        waiting=None if unplaced else len({partition for partition, _ in owned} - held),
        prediction=prediction,
        why_not=why_not or (NotAssessed.NO_RACKS.value if optimum is None else None),
    )


def _with_plugin(
    simulated: GroupSimulation, group: ReaderGroup, assessment: Assessment | None, after: SimulatedCluster
) -> GroupSimulation:
    """With the plug-in's column, for a group that it concerns."""
    own = None if simulated.prediction is None else simulated.prediction.settled
    asked = plugin_question(group, assessment, after.snapshot, after.limits, Memo(), own)
    if asked is None:
        return simulated
    answer = plugin_answer(asked)
    outcome = None if answer is None else AssignmentOutcome(answer.cost.reads, answer.cost, None)
    return replace(simulated, plugin=outcome, plugin_gain=plugin_sentence(asked))


def _outcome(
    group: ReaderGroup, assignment: PredictedAssignment, after: SimulatedCluster, racks: Mapping[str, str | None]
) -> AssignmentOutcome:
    locality = group_locality(group, after.snapshot, Memo())
    reads = given_reads(group, locality, assignment)
    tally = count_reads(reads, locality.masks)[0]
    in_bytes, usd = _bytes(reads, locality, after)
    cost = ComparisonColumn(tally.crossing, tally.unknown, in_bytes, moved_by(group, assignment), tally.total, usd)
    return AssignmentOutcome(tally.total, cost, _standbys(assignment, racks, group))


def _bytes(reads: Reads, locality: GroupLocality, cluster: SimulatedCluster) -> tuple[float | None, float | None]:
    """Bytes per second read across racks and dollars a day, by where reads really go; None where one is unknown."""
    snapshot = cluster.snapshot
    rates = topic_rates([snapshot.topics[name] for name in locality.masks], snapshot)
    rate_of = None if rates is None else dict(rates)
    if rate_of is None or any(partition not in rate_of for _, held in reads for partition in held):
        return None, None
    weighed = weigh(reads, locality.masks, rate_of)[1]
    in_bytes = None if weighed.unknown else weighed.total - weighed.local
    return in_bytes, crossing_usd_per_day(reads, locality, in_bytes, rate_of, snapshot, cluster.limits)


def _best(group: ReaderGroup, after: SimulatedCluster) -> PredictedAssignment | None:
    """The optimum by Kafka's measure: everything that the group subscribes to, whichever member has it now."""
    locality = group_locality(group, after.snapshot, Memo())
    if not group.members or not any(locality.bits.reader(reader.rack) for reader in group.readers):
        return None
    if isinstance(group, ConsumerGroup):
        if any(member.assigned is None for member in group.members):
            return None
        held = {partition.topic for partition, _ in _held(group)}
        return (
            None
            if held - locality.masks.keys()
            else PredictedAssignment(
                optimal_consumer(consumer_problem(group, locality, LocalityMeasure.KAFKA)).assignment
            )
        )
    topology = group.topology
    if topology is None or any(source.topic not in locality.masks for t in topology.tasks for source in t.sources):
        return None
    settings = after.limits.group(group.id)
    problem = replace(
        task_problem(group, topology, locality, settings, LocalityMeasure.KAFKA),
        num_standby_replicas=settings.num_standby_replicas,
        rack_aware_tags=settings.rack_aware_assignment_tags,
    )
    result = optimal_tasks(problem)
    sources = {task.id: task.sources for task in topology.tasks}
    reads = {process: _sources(tasks, sources) for process, tasks in result.active.items()}
    return PredictedAssignment(reads, active=result.active, standby=result.standby)


def _standbys(target: PredictedAssignment, racks: Mapping[str, str | None], group: ReaderGroup) -> StandbyCounts | None:
    if not isinstance(group, StreamsGroup):
        return None
    places: dict[TaskId, list[str | None]] = {}
    for process, tasks in target.standby.items():
        for task in tasks:
            places.setdefault(task, []).append(racks.get(process))
    runs = {task: racks.get(process) for process, tasks in target.active.items() for task in tasks}
    sharing = 0
    for task, standby_racks in places.items():
        seen = [runs.get(task)]
        for rack in standby_racks:
            sharing += rack is not None and rack in seen
            seen.append(rack)
    return StandbyCounts(sum(map(len, places.values())), sharing)


def _present(group: ReaderGroup) -> PredictedAssignment:
    if isinstance(group, ConsumerGroup):
        return PredictedAssignment({})
    return PredictedAssignment(
        {},
        active={process.id: process.active for process in group.processes},
        standby={process.id: process.standby for process in group.processes},
    )


def _held(group: ReaderGroup) -> list[tuple[TopicPartition, str]]:
    """(partition, reader) now."""
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


class AddedCopies(NamedTuple):
    """The added replicas of one topic."""

    topic: str
    replicas: int
    bytes_to_copy: int | None
    """Sizes of their partitions, once for each added replica; None where a size is unknown."""
    traffic_before: CrossRackTraffic
    """Copies of the topic across racks without the changes."""
    traffic_after: CrossRackTraffic
    """The same with the changes."""


def added_copies(before: Snapshot, after: Snapshot) -> tuple[AddedCopies, ...]:
    """A row for every topic that gets a replica on a broker where it has none of that partition, sorted by topic."""
    held = {state.id: set(state.replicas) for topic in before.topics.values() for state in topic.partitions}
    sizes_by_topic: dict[str, list[int | None]] = {}
    for name, topic in sorted(after.topics.items()):
        for state in topic.partitions:
            added = len(set(state.replicas) - held.get(state.id, set()))
            sizes_by_topic.setdefault(name, []).extend([before.size_bytes.get(state.id)] * added)
    added_to = {name: sizes for name, sizes in sizes_by_topic.items() if sizes}
    if not added_to:
        return ()
    now, later = costs_of(before).topics, costs_of(after).topics
    return tuple(
        AddedCopies(
            name,
            len(sizes),
            None if None in sizes else sum(size for size in sizes if size is not None),
            now[name].replicate,
            later[name].replicate,
        )
        for name, sizes in added_to.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """All that changes would change."""

    changes: tuple[str, ...]
    groups: tuple[GroupSimulation, ...]
    found: tuple[Finding, ...]
    """Findings that are not there now."""
    gone: tuple[Finding, ...]
    proposals: tuple[Proposal, ...]
    """What rackwise would propose then."""
    proposals_now: tuple[Proposal, ...]
    """What it proposes without the changes."""
    copies: tuple[AddedCopies, ...]
    """What replicas that are added cost, by topic."""
    losses: tuple[tuple[str, RackLoss | None, RackLoss | None], ...]
    """(rack, what losing it costs now, and then) where that differs; None where there is no such rack."""


def simulate(
    snapshot: Snapshot, memory: Memory, limits: Limits, changes: tuple[SimulatedChange, ...]
) -> SimulationResult:
    """What those changes would lead to. Raises ``BadInput`` for changes that cannot be."""
    after = what_if(SimulatedCluster(snapshot, limits), changes)
    alive = {broker.id for broker in snapshot.brokers if broker.alive}
    gone = alive - {broker.id for broker in after.snapshot.brokers if broker.alive}
    later = gone_for_good(memory, after.snapshot, after.limits.racks.broker_absent_for_ms, gone)
    memo = Memo()
    before, resulting = detect(snapshot, memory, limits, memo), detect(after.snapshot, later, after.limits, memo)
    groups = simulated_groups(
        SimulatedCluster(snapshot, limits),
        before.assessments,
        after,
        resulting.assessments,
        racks_go=any(isinstance(one, RemoveRack) for one in changes),
    )
    settled = _settled(after.snapshot, groups)
    then = resulting if settled is after.snapshot else detect(settled, later, after.limits, memo)
    plan = make_plan(settled, then, after.limits, None)
    plan_now = make_plan(snapshot, before, limits, None)
    known, expected = {one.id for one in before.findings}, {one.id for one in then.findings}
    losses = {loss.rack: loss for loss in rack_losses(snapshot)}
    losses_then = {loss.rack: loss for loss in rack_losses(after.snapshot)}
    return SimulationResult(
        changes=tuple(map(str, changes)),
        groups=groups,
        found=tuple(one for one in then.findings if one.id not in known),
        gone=tuple(one for one in before.findings if one.id not in expected),
        proposals=propose(settled, plan, then, after.limits, None),
        proposals_now=propose(snapshot, plan_now, before, limits, None),
        copies=added_copies(snapshot, after.snapshot),
        losses=tuple(
            (rack, losses.get(rack), losses_then.get(rack))
            for rack in sorted({*losses, *losses_then})
            if losses.get(rack) != losses_then.get(rack)
        ),
    )


def _settled(snapshot: Snapshot, groups: Iterable[GroupSimulation]) -> Snapshot:
    """The snapshot in which each of these groups has what its own assignor gives it in the end, where that is known."""
    for one in groups:
        group = snapshot.groups[one.group_id]
        settled = None if one.prediction is None else one.prediction.settled
        if settled is not None and isinstance(group, ReaderGroup):
            snapshot = with_assignment(snapshot, group, settled)
    return snapshot
