"""Solution of one problem, exact, as the proposal that reaches it.

Consumer groups and applications become one rebalance, replicas of a cluster one reassignment for each topic; nothing
is proposed where the answer is what runs already. Bytes and money are not part of a problem, so what is predicted
speaks of reads, moves and copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from agent.propose.propose_context import ProposalDraft, proposal_at, undated
from agent.values.assessment import Locality, LocalityMeasure
from agent.values.finding import Evidence, SubjectId
from agent.values.number_format import counted, sized
from agent.values.proposal import (
    PlacementChange,
    PredictedEffect,
    Proposal,
    ProposalKind,
    ProposalMove,
    ProposalReason,
    ProposalRow,
    placement_rows,
)
from assignors.measure import measure_consumer, measure_tasks, sole_owners
from assignors.optimal import optimal_consumer, optimal_replicas, optimal_tasks
from assignors.problem import (
    BadProblem,
    ConsumerProblem,
    ConsumerResult,
    ReplicaProblem,
    TaskId,
    TaskProblem,
    TaskResult,
    TopicPartition,
)
from pipeline.fleet.compact import Problem, size_of, written

TTL_MS = 900_000
_Held = TypeVar("_Held", TopicPartition, TaskId)


class SolvedProblem(NamedTuple):
    """What is planned for one problem."""

    size: int
    """Partitions, tasks or replicas."""
    readers: int = 0
    """Members, processes or brokers."""
    crossing: int | None = None
    """What crosses racks now, partitions or reads of tasks; None for replicas, or where it cannot be solved."""
    optimal_crossing: int | None = None
    lower_bound: int | None = None
    """No answer has a smaller cost: crossings and, of tasks, moves; of replicas bytes that must be copied."""
    moved: int | None = None
    optimal: bool = False
    """Whether the bound is proven to be met."""
    why_not: str | None = None
    """Why there is no answer."""
    proposals: tuple[Proposal, ...] = ()


def planned(cluster: str, subject: str, problem: Problem, made_ms: int) -> SolvedProblem:
    """The exact answer. A problem that contradicts itself is answered with the reason."""
    try:
        match problem:
            case ConsumerProblem():
                return _consumer(cluster, subject, problem, made_ms)
            case TaskProblem():
                return _tasks(cluster, subject, problem, made_ms)
            case ReplicaProblem():
                return _replicas(cluster, problem, made_ms)
    except BadProblem as error:
        return SolvedProblem(size=size_of(problem), why_not=str(error))


# --- groups -----------------------------------------------------------------------------------------------------


def _consumer(cluster: str, group: str, problem: ConsumerProblem, made_ms: int) -> SolvedProblem:
    result = optimal_consumer(problem)
    now = {member.id: tuple(sorted(member.owned)) for member in problem.members}
    before, best = (measure_consumer(problem, of).crossing_partitions for of in (now, result.assignment))
    figures = _Figures(before, best, size_of(problem), "partition")
    return _group(cluster, group, problem, made_ms, now, result.assignment, result, figures)


def _tasks(cluster: str, group: str, problem: TaskProblem, made_ms: int) -> SolvedProblem:
    result = optimal_tasks(problem)
    now = {process.id: tuple(sorted(process.active, key=repr)) for process in problem.processes}
    then = {process: tuple(sorted(tasks, key=repr)) for process, tasks in result.active.items()}
    before, best = (measure_tasks(problem, of).crossing for of in (now, then))
    figures = _Figures(before, best, sum(len(task.sources) for task in problem.tasks), "task")
    return _group(cluster, group, problem, made_ms, now, then, result, figures)


class _Figures(NamedTuple):
    before: int
    then: int
    reads: int
    what: str


def _group(  # noqa: PLR0917 everything that a plan of a group is made of
    cluster: str,
    group: str,
    problem: ConsumerProblem | TaskProblem,
    made_ms: int,
    now: Mapping[str, tuple[_Held, ...]],
    then: Mapping[str, Sequence[_Held]],
    result: ConsumerResult | TaskResult,
    figures: _Figures,
) -> SolvedProblem:
    """The figures, and the rebalance if it makes fewer reads cross racks."""
    proposals: tuple[Proposal, ...] = ()
    if figures.then < figures.before:
        proposals = (_rebalance(cluster, group, problem, made_ms, now, then, figures, optimal=result.optimal),)
    return SolvedProblem(
        size=size_of(problem),
        readers=len(now),
        crossing=figures.before,
        optimal_crossing=figures.then,
        lower_bound=result.lower_bound,
        moved=result.moved,
        optimal=result.optimal,
        proposals=proposals,
    )


def _rebalance(  # noqa: PLR0917 everything that a proposal is made of
    cluster: str,
    group: str,
    problem: ConsumerProblem | TaskProblem,
    made_ms: int,
    now: Mapping[str, tuple[_Held, ...]],
    then: Mapping[str, Sequence[_Held]],
    figures: _Figures,
    *,
    optimal: bool,
) -> Proposal:
    before, after, moves = _changed(now, then, figures.what)
    nearer = figures.before - figures.then
    sentence = (
        f"Rebalance {group} once: at best {nearer} of {counted(figures.reads, 'read')} "
        f"{'becomes' if nearer == 1 else 'become'} rack-local (cross-rack reads {figures.before} -> "
        f"{figures.then}), moving {counted(len(moves), figures.what)}"
    )
    consumers = isinstance(problem, ConsumerProblem)
    predicted = PredictedEffect(
        before=(_share(figures.reads, figures.before),),
        after=(_share(figures.reads, figures.then),),
        moves=len(moves),
        bytes_to_move=0 if consumers else None,
    )
    evidence: Evidence = (
        ("cluster", cluster),
        ("members" if consumers else "processes", len(now)),
        ("crossing_now", figures.before),
        ("crossing_at_best", figures.then),
        ("measure", "kafka: any replica in the member's rack"),
        ("prediction", "exact optimum at equal balance; the group's own assignor may give another assignment"),
    )
    subject = SubjectId("group", group)
    kind, reason = ProposalKind.TRIGGER, ProposalReason.REBALANCE_IMPROVES
    draft = ProposalDraft(kind, reason, subject, sentence, before, after, moves, predicted, evidence, ())
    draft = draft._replace(lower_bound=float(figures.then), optimal=optimal)
    return proposal_at(undated(draft, _digest(cluster, problem)), made_ms, TTL_MS)


def _changed(
    now: Mapping[str, tuple[_Held, ...]], then: Mapping[str, Sequence[_Held]], what: str
) -> tuple[tuple[ProposalRow, ...], tuple[ProposalRow, ...], tuple[ProposalMove, ...]]:
    """Rows of members whose assignment changes, with the moves between them."""
    rows = [name for name in sorted(now) if now[name] != tuple(then.get(name, ()))]
    owner, taker = sole_owners(now.items()), sole_owners(then.items())
    # What a consumer reads is not copied; what a task has to restore is not known from outside.
    size = 0 if what == "partition" else None
    moves = [
        ProposalMove(what, str(item), owner.get(item), taker[item], size)
        for item in sorted(taker, key=str)
        if owner.get(item) != taker[item]
    ]
    return (
        tuple([ProposalRow(name, tuple(map(str, now[name]))) for name in rows]),
        tuple([ProposalRow(name, tuple(map(str, then.get(name, ())))) for name in rows]),
        tuple(moves),
    )


def _share(reads: int, crossing: int) -> Locality:
    return Locality(LocalityMeasure.KAFKA, "partitions", float(reads - crossing), float(reads), 0.0)


# --- replicas ---------------------------------------------------------------------------------------------------


def _replicas(cluster: str, problem: ReplicaProblem, made_ms: int) -> SolvedProblem:
    result = optimal_replicas(problem)
    sets = {one.id: one for one in problem.partitions}
    topics: dict[str, list[TopicPartition]] = {}
    for partition in sorted(result.replicas):
        topics.setdefault(partition.topic, []).append(partition)
    why = "; ".join(f"{one.id}: {one.why}" for one in result.infeasible[:3]) or None
    rests = _digest(cluster, problem)
    proposals = tuple(
        _reassignment(topic, of, sets, result.replicas, rests, optimal=result.optimal, made_ms=made_ms)
        for topic, of in topics.items()
    )
    return SolvedProblem(
        size=size_of(problem),
        readers=len(problem.brokers),
        lower_bound=result.lower_bound,
        moved=result.moved_replicas,
        optimal=result.optimal,
        why_not=why,
        proposals=proposals,
    )


def _reassignment(
    topic: str,
    partitions: Iterable[TopicPartition],
    sets: Mapping[TopicPartition, object],
    after: Mapping[TopicPartition, tuple[int, ...]],
    rests: str,
    *,
    optimal: bool,
    made_ms: int,
) -> Proposal:
    moves: list[ProposalMove] = []
    changes: list[PlacementChange] = []
    for partition in partitions:
        known = sets[partition]
        before: tuple[int, ...] = known.replicas  # type: ignore[attr-defined]  # a ReplicaSet of the problem
        size: int | None = known.size_bytes  # type: ignore[attr-defined]  # as above
        moves += _replica_moves(partition, before, after[partition], size)
        changes.append(PlacementChange(partition, before, after[partition]))
    rows_before, rows_after = placement_rows(changes)
    sizes = [move.bytes for move in moves]
    copied = None if None in sizes else sum(size for size in sizes if size is not None)
    sentence = (
        f"Move {counted(len(moves), 'replica')} of {topic}, so that no rack holds more copies of a partition than it "
        "must; " + ("the bytes to copy are unknown" if copied is None else f"{sized(copied)} is copied")
    )
    draft = ProposalDraft(
        kind=ProposalKind.REASSIGN,
        reason=ProposalReason.MEND_RACK_SPREAD,
        subject=SubjectId("topic", topic),
        sentence=sentence,
        before=rows_before,
        after=rows_after,
        moves=tuple(moves),
        predicted=PredictedEffect(moves=len(moves), bytes_to_move=copied),
        evidence=(("partitions_changed", len(rows_after)),),
        findings=(),
        optimal=optimal,
        placements=tuple(changes),
    )
    return proposal_at(undated(draft, rests), made_ms, TTL_MS)


def _replica_moves(
    partition: TopicPartition, before: tuple[int, ...], after: tuple[int, ...], size: int | None
) -> Iterator[ProposalMove]:
    gone = [broker for broker in before if broker not in after]
    new = [broker for broker in after if broker not in before]
    for source, target in zip(gone, new, strict=True):
        yield ProposalMove("replica", str(partition), str(source), str(target), size)


# --- proposals --------------------------------------------------------------------------------------------------


def _digest(cluster: str, problem: Problem) -> str:
    """What the proposal rests on: the whole problem."""
    return blake2b(cluster.encode() + b"\0" + written(problem), digest_size=8).hexdigest()
