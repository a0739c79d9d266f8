"""Three columns for a group: now, what its own assignor would give, the optimum; and whether a rebalance is worth it.

Partitions are counted by Kafka's measure, bytes per second where reads really go. What is unknown is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agent.detect.tally import Reads, Tally, gain, tally_reads
from agent.detect.traffic import Bytes, current_reads, optimal_reads, states_of, weigh
from agent.detect.weighted import gained as gained_bytes
from agent.plan.worth import given_reads, group_rates, judged_ground, total_reads, worth, worth_bytes
from agent.values.assessment import Assessment, Weighing
from agent.values.flows import Reader, priced, read_flows, usd_per_day
from agent.values.limits import Limits
from agent.values.locality import Ground
from agent.values.memo import Memo
from agent.values.prediction import Given, Prediction
from agent.values.snapshot import ConsumerGroup, GroupKind, RackState, ReaderGroup, Snapshot, StreamsGroup
from agent.values.words import counted, sized
from assignors.problem import ConsumerResult, TaskId, TaskResult, TopicPartition

Moves = tuple[tuple[TopicPartition, str, str], ...]
"""(partition, from, to): members, or Streams processes."""


class Column(NamedTuple):
    """What an assignment costs."""

    crossing: int
    """Partitions read across racks, by Kafka's measure."""
    unknown: int
    """Partitions of which that is unknown."""
    crossing_bytes_per_s: float | None
    """Bytes per second read across racks, by where reads really go; None where a rate, rack or selector is unknown."""
    moved: int
    """Partitions (Streams: tasks) that have another owner than now."""
    reads: int
    """Partitions that are read."""
    usd_per_day: float | None
    """What those bytes cost a day; None where they are unknown or have no price."""


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
    own_bytes: float | None = None
    """Bytes per second that cross with its own assignor, by Kafka's measure and weights; None without either."""
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
        why = "it was not assessed" if assessment is None or assessment.why_not is None else assessment.why_not.value
        return Columns(
            group_id=group.id, kind=group.kind, now=None, own=None, optimum=None, worth=f"It cannot be judged: {why}.",
            prediction=prediction,
        )  # fmt: skip
    ground = judged_ground(group, assessment, snapshot, memo if memo is not None else Memo())
    rate_of = group_rates(assessment, [snapshot.topics[name] for name in ground.masks], snapshot)
    given = prediction.settled if prediction is not None else None
    now = current_reads(group, ground)

    def column(reads: Reads, moved: int) -> tuple[Column, Tally, Bytes | None]:
        tally, read = tally_reads(reads, ground.masks)
        if rate_of is None or not all(p in rate_of for _, partitions in reads for p in partitions):
            return Column(tally.crossing, tally.unknown, None, moved, tally.total, None), tally, None
        kafka, weighed = weigh(reads, ground.masks, rate_of)
        in_bytes = None if read.unknown or weighed.unknown else weighed.total - weighed.local
        usd = bill(reads, ground, in_bytes, rate_of, snapshot, limits)
        return Column(tally.crossing, tally.unknown, in_bytes, moved, tally.total, usd), tally, kafka

    first, now_tally, now_bytes = column(now, 0)
    own, gained, saved, left = None, 0, None, None
    if given is not None:
        own, own_tally, own_bytes = column(given_reads(group, ground, given), moved_by(group, given))
        gained = min(now_tally.crossing - own_tally.crossing, gain(now_tally, own_tally))
        if now_bytes is not None and own_bytes is not None:
            saved, left = gained_bytes(now_bytes, own_bytes), own_bytes.total - own_bytes.local - own_bytes.unknown
    best = now if assessment.result is None else optimal_reads(group, ground, assessment.result)
    return Columns(
        group_id=group.id,
        kind=group.kind,
        now=first,
        own=own,
        own_bytes=None if assessment.weighing is None else left,
        optimum=column(best, assessment.moved)[0],
        worth=_worth(assessment, prediction, gained, limits)
        if assessment.weighing is None
        else _worth_in_bytes(assessment, assessment.weighing, prediction, saved, limits),
        prediction=prediction,
    )


def moved_by(group: ReaderGroup, given: Given) -> int:
    """Partitions (Streams: active tasks) that have another owner afterwards; what had none before does not count."""
    if isinstance(group, ConsumerGroup):
        return len(own_moves(group, given))
    runs = {task: process.id for process in group.processes for task in process.active}
    return sum(runs.get(task, process) != process for process, tasks in given.active.items() for task in tasks)


def own_moves(group: ReaderGroup, given: Given) -> Moves:
    """Everything that the group's own assignor gives to another owner."""
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
    """Everything that the optimum gives to another owner."""
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


def _nothing_to_gain(assessment: Assessment, best: str) -> str:
    """Only what is known can be called the best; a reader in a rack without brokers is none of what can be gained."""
    if not assessment.at_optimum:
        unknown = (
            f"{counted(round(assessment.unknown), 'read')} of unknown locality" if assessment.unknown else "some racks"
        )
        return f"No further known read can be made local by Kafka's rule; not judged: {unknown}."
    away = (
        f"; {counted(assessment.away, 'reader')} in no broker's rack read all across racks" if assessment.away else ""
    )
    return f"No further read can be made local by Kafka's rule: {best}{away}."


def _worth_in_bytes(
    assessment: Assessment, weighing: Weighing, prediction: Prediction | None, saved: float | None, limits: Limits
) -> str:
    """By weights of the pipeline; ``saved`` by the group's own assignor, None where it is not predicted."""
    total, best = f"{sized(weighing.total)}/s", f"the optimum would make {sized(weighing.gained)}/s"
    if not weighing.gained:
        return _nothing_to_gain(assessment, "by weights it is at its optimum")
    if prediction is None or prediction.settled is None or saved is None:
        why = (
            "no prediction was asked for"
            if prediction is None or prediction.why_not is None
            else prediction.why_not.value
        )
        home = f"The optimum makes {sized(weighing.gained)}/s of {total} local"
        return f"{home}; the result of its own assignor is unknown: {why}."
    enough = worth_bytes(saved, weighing.total, limits)
    verdict = "Worth a rebalance by the thresholds" if enough else "Not worth a rebalance"
    return f"{verdict}: its own assignor would make {sized(saved)}/s of {total} local, {best}."


def _worth(assessment: Assessment, prediction: Prediction | None, gained: int, limits: Limits) -> str:
    total = total_reads(assessment)
    reads = counted(round(total), "read")
    if gained < 0:
        verb = "crosses" if gained == -1 else "cross"
        return f"Not worth a rebalance: with its own assignor {counted(-gained, 'more read')} {verb} than now."
    if assessment.gap <= 0:
        return _nothing_to_gain(assessment, "it is at its optimum")
    if prediction is None or prediction.settled is None:
        why = (
            "no prediction was asked for"
            if prediction is None or prediction.why_not is None
            else prediction.why_not.value
        )
        best = f"The optimum makes {assessment.gap} of {reads} local"
        return f"{best}; the result of its own assignor is unknown: {why}."
    best = f"the optimum would make {assessment.gap}"
    if gained <= 0:
        return f"Not worth a rebalance: its own assignor would make no further read local, {best} of {total:,.12g}."
    if not worth(gained, total, limits):
        return f"Not worth a rebalance: its own assignor would make {gained} of {reads} local, {best}."
    return f"Worth a rebalance by the thresholds: its own assignor would make {gained} of {reads} local, {best}."


_ELSEWHERE = "(no broker's)"
"""A rack without brokers has no name in the ground, but it is known, and known to be none of theirs."""


def bill(  # noqa: PLR0917 (an assignment, what is known of it, and the world)
    reads: Reads,
    ground: Ground,
    crossing_bytes_per_s: float | None,
    rates: Mapping[TopicPartition, float],
    snapshot: Snapshot,
    limits: Limits,
) -> float | None:
    """Dollars a day of the bytes that cross; None where they are unknown, or a pair of racks has no price."""
    if crossing_bytes_per_s is None:
        return None
    if not limits.price.between:
        return None if limits.price.usd_per_gb is None else priced(crossing_bytes_per_s, limits.price.usd_per_gb)
    names = {bit: name for name, bit in ground.bits.bit_of.items()}
    readers = [
        Reader(partition, names.get(bit, _ELSEWHERE) if bit else None)
        for bit, partitions in reads
        for partition in partitions
    ]
    states = states_of(snapshot.topics[name] for name in ground.masks)
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
    flows = read_flows(readers, states, racks, rates, selector=ground.bits.selector_is_rack_aware)
    return usd_per_day(flows, limits)
