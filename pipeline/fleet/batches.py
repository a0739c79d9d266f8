"""Fleet plans on the executors: batches of rows in, plans of whole clusters and of single groups out.

Replicas are planned for a cluster as a whole, then each group on its own. The stages are the agent's: the proposal for
a group is that of its own agent, with the exact optimum next to it. Leaders are left to the agent, which sees all their
readers at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.detect.find import detect
from agent.plan.make import make_plan
from agent.process import no_collection
from agent.propose.codec import proposal_to_bytes
from agent.propose.make import propose
from agent.values.assessment import Assessment, DetectionResult, LocalityMeasure
from agent.values.memo import Memo
from agent.values.plan import Plan
from agent.values.proposal import Proposal, ProposalKind
from agent.values.snapshot import ConsumerGroup, Group, StreamsGroup
from pipeline.backtest.look import EventRow, HistoryLook, UnusableLook, looks_of, whole_look
from pipeline.backtest.slices import GROUP, WORLD, LookRebuilder, LookSlice, LookSlicer
from pipeline.backtest.strategy_replay import without_cluster_bounds
from pipeline.backtest.units import chunks

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_EACH = 500
GROUPS_EACH = 250
"""Groups that go through the stages together; a larger one goes alone."""
Row = dict[str, Any]
Batches = Iterable["pa.RecordBatch"]
PIECE = ("cluster", "look", "taken_ms", "kind", "subject", "weight", *LookSlice._fields[5:])
"""Columns between the two halves of a job over looks. Kinds are those of slices, `ANSWER` and `UNUSABLE`."""
ANSWER = 2
"""A plan that was made with the whole cluster in view; its document is in ``group_body``."""
UNUSABLE = 3
"""A look that cannot be rebuilt; the reason is in ``group_body``."""


def cut_newest(batches: Batches, schema: Any) -> Iterator[pa.RecordBatch]:
    """Events of the newest looks in, pieces out: the world, each group, and what is planned for replicas."""
    rows = (
        EventRow(*cells)
        for batch in batches
        for cells in zip(*(batch.column(name).to_pylist() for name in EventRow._fields), strict=True)
    )
    yield from _batched(_pieces(rows), schema)


def plan_groups(batches: Batches, run: str, worlds: Mapping[str, bytes], schema: Any) -> Iterator[pa.RecordBatch]:
    """Pieces of groups in, rows of fleet.plans out. ``worlds`` are the rows about the world, by cluster."""
    rows = (row for batch in batches for row in zip(*(batch.column(name).to_pylist() for name in PIECE), strict=True))
    yield from _batched(_plans(rows, run, worlds), schema)


def _pieces(rows: Iterable[EventRow]) -> Iterator[Row]:
    for cluster, of_cluster in groupby(rows, key=itemgetter(0)):
        for found in looks_of(of_cluster):
            if isinstance(found, UnusableLook):
                yield _piece(cluster, found.name, found.taken_ms, UNUSABLE, "", found.why)
                continue
            with no_collection():
                look = whole_look(found, Memo(), Memo())
                for answer in replicas_of(look):
                    yield _answer_piece(cluster, look.name, look.snapshot.taken_ms, answer)
                for one in LookSlicer(1).rows(look):
                    group = look.snapshot.groups.get(one.subject) if one.kind == GROUP else None
                    weight = 0.0 if group is None else weight_of(group)
                    cells = (cluster, one.look, one.taken_ms, one.kind, one.subject, weight, *one[5:])
                    yield dict(zip(PIECE, cells, strict=True))


def _plans(rows: Iterable[Sequence[Any]], run: str, worlds: Mapping[str, bytes]) -> Iterator[Row]:
    for (cluster, look, taken_ms), of_look in groupby(rows, key=itemgetter(0, 1, 2)):
        world = (0, taken_ms, look, WORLD, "", 0, 0, worlds[cluster], None, None, 0, None, None)
        for pieces in chunks(of_look, GROUPS_EACH):
            slices = [(0, taken_ms, look, GROUP, row[4], *row[6:]) for row in pieces]
            began = time.process_time()
            with no_collection():
                answers = list(groups_of(cluster, [world, *slices]))
            each = (time.process_time() - began) / max(1, len(answers))
            for answer in answers:
                yield _plan_row(run, cluster, answer, look, taken_ms, each)


def plan_record(run: str, cluster: str, piece: Mapping[str, Any]) -> Row:
    """The row of fleet.plans of an `ANSWER` piece."""
    figures = json.loads(piece["group_body"])
    return {
        "run": run,
        "cluster": cluster,
        "subject": piece["subject"],
        "look": piece["look"],
        "made_ms": piece["taken_ms"],
        **figures,
    }


def _answer_piece(cluster: str, look: str, taken_ms: int, answer: FleetAnswer) -> Row:
    row = _plan_row("", cluster, answer, look, taken_ms, None)
    figures = {key: value for key, value in row.items() if key not in ("run", "cluster", "subject", "look", "made_ms")}
    return _piece(cluster, look, taken_ms, ANSWER, answer.subject, json.dumps(figures))


def _piece(cluster: str, look: str, taken_ms: int, kind: int, subject: str, text: str) -> Row:  # noqa: PLR0917 columns
    """A piece that is no group: nothing but its text is in it."""
    body = text.encode("utf-8", "backslashreplace")
    nothing = (None, None, 0, None, None)
    return dict(zip(PIECE, (cluster, look, taken_ms, kind, subject, 0.0, 0, 0, body, *nothing), strict=True))


def _plan_row(  # noqa: PLR0917 the columns of a plan
    run: str, cluster: str, answer: FleetAnswer, look: str | None, made_ms: int, cpu_s: float | None
) -> Row:
    figures = answer.planned._asdict()
    proposals = figures.pop("proposals")
    return {
        "run": run,
        "cluster": cluster,
        "subject": answer.subject,
        "kind": answer.kind,
        "look": look,
        "made_ms": made_ms,
        **figures,
        "cpu_s": cpu_s,
        "proposals": [proposal_to_bytes(one).decode() for one in proposals],
    }


def _batched(rows: Iterable[Row], schema: Any) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 an optional extra

    for some in chunks(rows, ROWS_EACH):
        yield pa.RecordBatch.from_pylist(some, schema=schema)


# --- plans of looks, by the agent's stages --------------------------------------------------------------------------


class SubjectPlan(NamedTuple):
    """The plan of one group or topic."""

    size: int
    """Partitions, tasks or replicas."""
    readers: int = 0
    """Members, or brokers."""
    crossing: int | None = None
    """Cross-rack reads now; None for replicas, or where the group cannot be planned."""
    optimal_crossing: int | None = None
    lower_bound: int | None = None
    """No plan costs less: cross-rack reads of a group, bytes that must be copied of replicas."""
    moved: int | None = None
    optimal: bool = False
    """Whether the bound is proven to be met."""
    why_not: str | None = None
    """Why the group cannot be planned."""
    proposals: tuple[Proposal, ...] = ()


class FleetAnswer(NamedTuple):
    """What is planned for a subject."""

    subject: str
    kind: str
    """consumer, tasks or replicas."""
    planned: SubjectPlan


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
                SubjectPlan(
                    size=replicas,
                    readers=len(alone.brokers),
                    lower_bound=bound,
                    moved=len(one.moves),
                    optimal=bool(one.optimal),
                    proposals=(one,),
                ),
            )


def weight_of(group: Group) -> float:
    """Relative planning time of a group, without a unit: growing with its reads, and a little faster than they do."""
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


def _answer(group: Group, detection: DetectionResult, proposals: tuple[Proposal, ...]) -> FleetAnswer:
    assessment: Assessment = detection.assessments[group.id]
    kind = "tasks" if isinstance(group, StreamsGroup) else "consumer"
    if assessment.why_not is not None:
        why_not = assessment.why_not.value
        planned = SubjectPlan(size=items_of(group), readers=_members(group), why_not=why_not, proposals=proposals)
        return FleetAnswer(group.id, kind, planned)
    kafka = next(one for one in assessment.current if one.measure is LocalityMeasure.KAFKA and one.unit == "partitions")
    planned = SubjectPlan(
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
