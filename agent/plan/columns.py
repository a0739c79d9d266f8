"""Three columns for a group: now, what its own assignor would give, the optimum; and whether a rebalance is worth it.

Partitions are counted by Kafka's measure, bytes per second where reads really go. What cannot be told is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agent.detect.assessment import Assessment
from agent.detect.tally import Reads, Tally, gain, tally_reads
from agent.detect.traffic import current_reads, optimal_reads, topic_rates, weigh
from agent.limits import Limits
from agent.memo import Memo
from agent.model.snapshot import ConsumerGroup, GroupKind, Snapshot, StreamsGroup
from agent.plan.worth import given_reads, judged_ground, total_reads, worth
from agent.predict.prediction import Given, Prediction
from assignors.problem import ConsumerResult, TaskId, TaskResult, TopicPartition

ReaderGroup = ConsumerGroup | StreamsGroup
Moves = tuple[tuple[TopicPartition, str, str], ...]
"""(partition, from, to): members, or Streams processes."""


class Column(NamedTuple):
    """What an assignment costs."""

    crossing: int
    """Partitions read across racks, by Kafka's measure."""
    unknown: int
    """Partitions of which that cannot be told."""
    crossing_bytes_per_s: float | None
    """Bytes per second read across racks, by where reads really go; None where a rate, rack or selector is unknown."""
    moved: int
    """Partitions (Streams: tasks) that are with somebody else than now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One group in three columns."""

    group_id: str
    kind: GroupKind
    now: Column | None
    """None where the group cannot be judged; ``worth`` says why."""
    own: Column | None
    """In the end, after follow-up rebalances and warm-ups; None where nothing is predicted, see the prediction."""
    optimum: Column | None
    worth: str
    """Why a rebalance is worth it, or why not, as one sentence."""
    prediction: Prediction | None
    """None where it was not asked for."""


def columns_of(  # noqa: PLR0917 (a group, what is known of it, and the world)
    group: ReaderGroup,
    assessment: Assessment | None,
    prediction: Prediction | None,
    snapshot: Snapshot,
    limits: Limits,
    memo: Memo | None = None,
) -> Columns:
    """The columns of one group; any snapshot will do, also one that was changed to ask "what if"."""
    if assessment is None or assessment.why_not is not None:
        why = "it was not looked at" if assessment is None or assessment.why_not is None else assessment.why_not.value
        return Columns(
            group_id=group.id, kind=group.kind, now=None, own=None, optimum=None, worth=f"It cannot be judged: {why}.",
            prediction=prediction,
        )  # fmt: skip
    ground = judged_ground(group, assessment, snapshot, memo if memo is not None else Memo())
    rates = topic_rates([snapshot.topics[name] for name in ground.masks], snapshot)
    rate_of = None if rates is None else dict(rates)
    given = prediction.settled if prediction is not None else None
    now = current_reads(group, ground)

    def column(reads: Reads, moved: int) -> tuple[Column, Tally]:
        tally, read = tally_reads(reads, ground.masks)
        in_bytes = None
        known = rate_of is not None and all(p in rate_of for _, partitions in reads for p in partitions)
        if rate_of is not None and known and not read.unknown:
            weighed = weigh(reads, ground.masks, rate_of)[1]
            in_bytes = None if weighed.unknown else weighed.total - weighed.local
        return Column(tally.crossing, tally.unknown, in_bytes, moved), tally

    first, now_tally = column(now, 0)
    own, gained = None, 0
    if given is not None:
        own, own_tally = column(given_reads(group, ground, given), moved_by(group, given))
        gained = min(now_tally.crossing - own_tally.crossing, gain(now_tally, own_tally))
    best = now if assessment.result is None else optimal_reads(group, ground, assessment.result)
    return Columns(
        group_id=group.id,
        kind=group.kind,
        now=first,
        own=own,
        optimum=column(best, assessment.moved)[0],
        worth=_worth(assessment, prediction, gained, limits),
        prediction=prediction,
    )


def moved_by(group: ReaderGroup, given: Given) -> int:
    """Partitions (Streams: active tasks) that somebody else has afterwards; what nobody had before does not count."""
    if isinstance(group, ConsumerGroup):
        return len(own_moves(group, given))
    runs = {task: process.id for process in group.processes for task in process.active}
    return sum(runs.get(task, process) != process for process, tasks in given.active.items() for task in tasks)


def own_moves(group: ReaderGroup, given: Given) -> Moves:
    """Everything that the group's own assignor gives to somebody else."""
    owner = {partition: reader for reader, held in _held(group) for partition in held}
    return tuple(
        sorted(
            (partition, owner[partition], reader)
            for reader, partitions in given.reads.items()
            for partition in partitions
            if owner.get(partition, reader) != reader
        )
    )


def best_moves(group: ReaderGroup, result: ConsumerResult | TaskResult | None) -> Moves:
    """Everything that the optimum gives to somebody else."""
    match result:
        case ConsumerResult():
            return own_moves(group, Given(result.assignment))
        case TaskResult() if isinstance(group, StreamsGroup):
            return own_moves(group, Given(_sources(group, result.active)))
        case _:
            return ()


def _held(group: ReaderGroup) -> Iterable[tuple[str, tuple[TopicPartition, ...]]]:
    if isinstance(group, ConsumerGroup):
        return [(member.id, member.assigned or ()) for member in group.members]
    return list(_sources(group, {process.id: process.active for process in group.processes}).items())


def _sources(group: StreamsGroup, active: Mapping[str, tuple[TaskId, ...]]) -> dict[str, tuple[TopicPartition, ...]]:
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology is not None else {}
    return {
        process: tuple([source for task in tasks for source in sources.get(task, ())])
        for process, tasks in active.items()
    }


def _worth(assessment: Assessment, prediction: Prediction | None, gained: int, limits: Limits) -> str:
    total = total_reads(assessment)
    if gained < 0:
        worse = "1 more read crosses" if gained == -1 else f"{-gained} more reads cross"
        return f"Not worth a rebalance: with its own assignor {worse} than now."
    if assessment.gap <= 0:
        return "Nothing can be gained: it is at its optimum."
    if prediction is None or prediction.settled is None:
        why = "it was not asked for" if prediction is None or prediction.why_not is None else prediction.why_not.value
        best = f"The optimum brings {assessment.gap} of {total:g} reads home"
        return f"{best}; what its own assignor gives cannot be told: {why}."
    best = f"the optimum would bring {assessment.gap}"
    if gained <= 0:
        return f"Not worth a rebalance: its own assignor would bring no read home, {best} of {total:g}."
    if not worth(gained, total, limits):
        return f"Not worth a rebalance: its own assignor would bring {gained} of {total:g} reads home, {best}."
    return (
        f"Worth a rebalance by the thresholds: its own assignor would bring {gained} of {total:g} reads home, {best}."
    )
