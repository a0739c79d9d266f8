"""Which partitions' leaders shall follow their readers? Only the order of replicas changes, no data moves.

Where the brokers have no rack-aware selector (KIP-392) every reader reads from the leader. So where most readers of a
partition live in another rack, and an in-sync replica is there, that replica had better lead (LEADERS_TO_READERS).

Invariants: the gain is certain, as readers of unknown rack count for the present leader; leaders never get more uneven
over racks or brokers than the limit allows. Where writers live is not visible and not guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from agent.plan.even import Seats, led_by
from agent.plan.found import Scene, answered
from agent.plan.placements import Skipped, left_out
from agent.plan.reading import Readers, groups_by_topic, readers_of
from agent.plan.worth import worth, worth_bytes
from agent.values.finding import FindingReason
from agent.values.limits import Limits
from agent.values.plan import PlacementPlan, Unplanned
from agent.values.proposal import PlacementChange, ProposalReason
from agent.values.snapshot import PartitionState, TopicState
from agent.values.weighed import Column
from assignors.problem import TopicPartition

_Wanted = tuple[int, PartitionState, list[int]]
"""(Certain gain in readers, partition, in-sync replicas in the best rack)."""


def follow_readers(scene: Scene, seats: Seats, taken: set[TopicPartition]) -> tuple[list[PlacementPlan], Skipped]:
    """New orders of replicas, topic by topic; partitions that are taken already are left alone."""
    if scene.snapshot.selector_is_rack_aware is not False:
        return [], []
    answers = answered(scene.found.of(FindingReason.SELECTOR_NOT_RACK_AWARE))
    if answers is None:
        return [], []
    if answers.held:
        return [], [(name, Unplanned.HELD) for name in answers.ids]
    plans: list[PlacementPlan] = []
    skipped: Skipped = []
    for name, groups in groups_by_topic(scene.snapshot, scene.memo).items():
        topic = scene.snapshot.topics.get(name)
        if topic is None or left_out(topic, scene.limits):
            continue
        readers = scene.memo.of(("readers", name), (topic, *groups), partial(readers_of, topic, groups))
        column = scene.snapshot.weighed.topics.get(name, ())
        wanted, unsure = _sure(_wanted(topic, readers, seats, taken, column), seats, scene.held)
        skipped += unsure
        if not wanted:
            continue
        if not _is_worth(wanted, readers, column, scene.limits):
            skipped.append((f"topic/{name}", Unplanned.BELOW_THRESHOLD))
            continue
        changes = _within_limits(wanted, seats)
        if len(changes) < len(wanted):
            skipped.append((f"topic/{name}", Unplanned.UNEVEN))
        if changes:
            plans.append(_reader_plan(topic, changes, readers, seats, answers.ids))
    return plans, skipped


def crossing_readers(
    readers: Mapping[TopicPartition, Readers], leader_racks: Mapping[TopicPartition, str | None]
) -> int:
    """Reads of known rack that cross when these racks lead."""
    return sum(of.total - of.near(leader_racks.get(partition)) for partition, of in readers.items())


def _is_worth(
    wanted: Iterable[_Wanted], readers: Mapping[TopicPartition, Readers], column: Column, limits: Limits
) -> bool:
    """Whether the gain passes the thresholds: in bytes per second where every partition that is read has a weight."""
    rates = {partition: _rate(column, partition) for partition in readers}
    known = [(readers[partition], rate) for partition, rate in rates.items() if rate is not None]
    if len(known) < len(rates):
        return worth(sum(gain for gain, _, _ in wanted), sum(of.total + of.unknown for of in readers.values()), limits)
    gained = sum(gain * (rates[state.id] or 0.0) for gain, state, _ in wanted)
    return worth_bytes(gained, sum((of.total + of.unknown) * rate for of, rate in known), limits)


def _rate(column: Column, partition: TopicPartition) -> float | None:
    return column[partition.partition] if 0 <= partition.partition < len(column) else None


def _wanted(
    topic: TopicState,
    readers: Mapping[TopicPartition, Readers],
    seats: Seats,
    taken: set[TopicPartition],
    column: Column,
) -> list[_Wanted]:
    """What would be nearer to its readers, greatest gain first: in bytes where weights tell, else in readers."""
    wanted: list[_Wanted] = []
    for state in topic.partitions:
        of = readers.get(state.id)
        if of is None or state.id in taken or not state.replicas:
            continue
        candidates = seats.candidates(state)
        best = max((of.near(seats.rack_of[broker]) for broker in candidates), default=0)
        gain = best - of.near(seats.rack_of.get(state.replicas[0])) - of.unknown
        if gain > 0:
            wanted.append((gain, state, [b for b in candidates if of.near(seats.rack_of[b]) == best]))
    known = bool(column) and all(_rate(column, state.id) is not None for _, state, _ in wanted)
    # Evenness stops the row somewhere: what counts most comes first.
    weight = {state.id: (_rate(column, state.id) or 0.0) if known else 1.0 for _, state, _ in wanted}
    return sorted(wanted, key=lambda row: (-row[0] * weight[row[1].id], row[1].id))


def _sure(wanted: list[_Wanted], seats: Seats, held: frozenset[int]) -> tuple[list[_Wanted], Skipped]:
    """Those whose gain rests on no replica that is held, and on no leader of unknown rack: readers may be near it."""
    sure: list[_Wanted] = []
    skipped: Skipped = []
    for row in wanted:
        _, state, _ = row
        if not held.isdisjoint(state.replicas):
            skipped.append((f"topic/{state.id.topic}", Unplanned.HELD))
        elif state.replicas[0] not in seats.rack_of:
            skipped.append((f"topic/{state.id.topic}", Unplanned.UNKNOWN_RACK))
        else:
            sure.append(row)
    return sure, skipped


def _within_limits(wanted: list[_Wanted], seats: Seats) -> list[PlacementChange]:
    """The changes that keep leaders even enough, counted as they are made."""
    changes: list[PlacementChange] = []
    for _, state, near in wanted:
        allowed = [broker for broker in near if seats.allows(state.replicas[0], broker)]
        if allowed:
            leader = seats.least_busy(allowed)
            seats.give(state.replicas[0], leader)
            changes.append(led_by(state, leader))
    return sorted(changes)


def _reader_plan(
    topic: TopicState,
    changes: list[PlacementChange],
    readers: Mapping[TopicPartition, Readers],
    seats: Seats,
    findings: tuple[str, ...],
) -> PlacementPlan:
    """The plan with its bound: the reads that cross whichever in-sync replica leads."""
    leads = {state.id: state.replicas[0] for state in topic.partitions if state.replicas}
    leads.update({change.id: change.after[0] for change in changes})
    after = crossing_readers(readers, {partition: seats.rack_of.get(broker) for partition, broker in leads.items()})
    least = 0
    for state in topic.partitions:
        of = readers.get(state.id)
        if of is not None:
            options = {*seats.candidates(state), *state.replicas[:1]}
            least += of.total - max((of.near(seats.rack_of.get(broker)) for broker in options), default=0)
    return PlacementPlan(
        topic=topic.name,
        reason=ProposalReason.LEADERS_TO_READERS,
        changes=tuple(changes),
        leaders_only=True,
        lower_bound=least,
        optimal=after == least,
        findings=findings,
    )
