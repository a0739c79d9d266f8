"""Plans of whole clusters, from their newest looks: replicas per cluster, then each group on its own.

The stages are the agent's: what is proposed for a group is what its agent would propose for it, and the optimum beside
it is the exact one. Replicas are planned where the whole cluster is seen; leaders are left to the agent, which knows
all their readers at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from agent.detect.find import detect
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.values.assessment import Assessment, Detection, Measure
from agent.values.memo import Memo
from agent.values.plan import Plan
from agent.values.proposal import Proposal, ProposalKind
from agent.values.snapshot import ConsumerGroup, Group, StreamsGroup
from pipeline.backtest.look import HistoryLook
from pipeline.backtest.slices import LookRebuilder
from pipeline.backtest.strategy_replay import without_cluster_bounds
from pipeline.fleet.solving import SolvedProblem

T = TypeVar("T")


class FleetAnswer(NamedTuple):
    """What is planned for a subject."""

    subject: str
    kind: str
    """consumer, tasks or replicas."""
    planned: SolvedProblem


def replicas_of(look: HistoryLook) -> Iterator[FleetAnswer]:
    """The replicas of a whole cluster: one answer per topic that is to be mended."""
    alone = replace(look.snapshot, groups={}, copies={})
    detection = detect(alone, replace(look.memory, streams={}, rebalancing={}), look.limits, Memo())
    plan = make_plan(alone, detection, look.limits, Memo())
    spread = tuple(part for part in plan.placements if not part.leaders_only)
    proposals = propose(alone, Plan(placements=spread), detection, look.limits, Memo())
    for one in proposals:
        if one.kind is ProposalKind.REASSIGN:
            replicas = sum(len(state.replicas) for state in alone.topics[one.subject.name].partitions)
            bound = None if one.lower_bound is None else int(one.lower_bound)
            yield FleetAnswer(
                one.subject.name,
                "replicas",
                SolvedProblem(
                    size=replicas,
                    readers=len(alone.brokers),
                    lower_bound=bound,
                    moved=len(one.moves),
                    optimal=bool(one.optimal),
                    proposals=(one,),
                ),
            )


def weight_of(group: Group) -> float:
    """How long planning a group takes, roughly: what it reads, and a little more where there is more of it."""
    items = items_of(group)
    readers = len(group.processes) if isinstance(group, StreamsGroup) else _members(group)
    return 50.0 + items + items * min(readers, 1000) / 100


def items_of(group: Group) -> int:
    """Partitions, or tasks of an application."""
    match group:
        case StreamsGroup():
            return len(group.topology.tasks) if group.topology is not None else 0
        case ConsumerGroup():
            return sum(len(member.assigned or ()) for member in group.members)
        case _:
            return 0


def groups_of(cluster: str, rows: Sequence[Sequence[Any]]) -> Iterator[FleetAnswer]:
    """The answers for the groups of slices: one row about the world, then the groups."""
    look = LookRebuilder(cluster).look(rows)
    limits = without_cluster_bounds(look.limits)
    memos = [Memo() for _ in range(3)]
    detection = detect(look.snapshot, look.memory, limits, memos[0])
    plan = make_plan(look.snapshot, detection, limits, memos[1])
    own = Plan(triggers=plan.triggers, advice=_of_groups(plan), predictions=plan.predictions)
    proposals = propose(look.snapshot, own, detection, limits, memos[2])
    by_group: dict[str, list[Proposal]] = {}
    for one in proposals:
        by_group.setdefault(one.subject.name, []).append(one)
    for name, group in look.snapshot.groups.items():
        yield _answer(group, detection, tuple(by_group.get(name, ())))


def _of_groups(plan: Plan) -> Any:
    return tuple(part for part in plan.advice if part.subject_kind == "group")


def _answer(group: Group, detection: Detection, proposals: tuple[Proposal, ...]) -> FleetAnswer:
    assessment: Assessment = detection.assessments[group.id]
    kind = "tasks" if isinstance(group, StreamsGroup) else "consumer"
    if assessment.why_not is not None:
        why_not = assessment.why_not.value
        planned = SolvedProblem(size=items_of(group), readers=_members(group), why_not=why_not, proposals=proposals)
        return FleetAnswer(group.id, kind, planned)
    kafka = next(one for one in assessment.current if one.measure is Measure.KAFKA and one.unit == "partitions")
    planned = SolvedProblem(
        size=items_of(group) or int(kafka.total),
        readers=_members(group),
        crossing=assessment.crossing,
        optimal_crossing=assessment.optimal_crossing,
        lower_bound=assessment.lower_bound,
        moved=assessment.moved,
        optimal=assessment.optimal_crossing == assessment.lower_bound,
        proposals=proposals,
    )
    return FleetAnswer(group.id, kind, planned)


def _members(group: Group) -> int:
    return len(group.members) if isinstance(group, ConsumerGroup | StreamsGroup) else 0


def chunks(rows: Iterable[T], most: int) -> Iterator[list[T]]:
    """Rows in lists of at most so many."""
    held: list[T] = []
    for row in rows:
        held.append(row)
        if len(held) >= most:
            yield held
            held = []
    if held:
        yield held
