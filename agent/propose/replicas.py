"""Proposals about replica lists: replicas that move (KIP-455), or only another preferred leader.

The prediction covers the whole topic: reads by both measures, and bytes across racks from leader to follower and from
leader (or near replica) to reader. After a move every new replica is taken to be in sync; the leader stays where it is
unless it gave its place away, and is the preferred one where an election is part of the proposal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.detect.assess import bits_for
from agent.detect.tally import Reads
from agent.detect.traffic import measured, states_of
from agent.plan.reading import Readers, readers_of
from agent.propose.scene import Draft, Scene, finished
from agent.propose.side_effects import Fetches, fetches, rows_of, side_effects
from agent.values.assessment import Locality, Measure
from agent.values.basis import basis_of_topic
from agent.values.finding import Evidence, Subject
from agent.values.flows import Flows, Reader, add, bytes_per_s, read_flows, replication_flows, usd_per_day
from agent.values.locality import RackBits, topic_masks
from agent.values.observation import Part
from agent.values.plan import PlacementPlan
from agent.values.proposal import (
    Move,
    PlacementChange,
    Predicted,
    Proposal,
    ProposalKind,
    ProposalReason,
    placement_rows,
)
from agent.values.replicas import settled_topic
from agent.values.snapshot import PartitionState, TopicState
from agent.values.unseen import gaps_of, seen_of
from agent.values.words import counted, sized
from assignors.problem import TopicPartition


class Forecast(NamedTuple):
    """A topic's reads and traffic in one state of its replicas."""

    shares: tuple[Locality, ...]
    flows: Flows | None
    fetches: Fetches


def placement(plan: PlacementPlan, scene: Scene) -> Proposal:
    """The proposal that carries out a placement plan."""
    topic = settled_topic(scene.snapshot.topics[plan.topic], scene.snapshot)
    subject = Subject("topic", plan.topic)
    before, after = placement_rows(plan.changes)
    readers = readers_of(topic, scene.rests.readers.get(plan.topic, ()))
    now, then = _forecast(topic, readers, scene), _forecast(_changed(topic, plan), readers, scene)
    moves = _leader_moves(plan) if plan.leaders_only else _replica_moves(plan, scene)
    predicted = _predicted(plan, moves, now, then, scene)
    effects = side_effects(plan, topic, (now.fetches, then.fetches), predicted, scene)
    draft = Draft(
        kind=ProposalKind.LEADERS if plan.leaders_only else ProposalKind.REASSIGN,
        reason=plan.reason,
        subject=subject,
        sentence="; ".join((_sentence(plan, topic, predicted), *effects.clauses)),
        before=before,
        after=after,
        moves=moves,
        predicted=predicted,
        evidence=(*_evidence(plan, topic, readers, scene), *effects.evidence),
        findings=plan.findings,
        lower_bound=float(plan.lower_bound),
        optimal=plan.optimal,
        placements=plan.changes,
        basis=basis_of_topic(topic, scene.snapshot),
    )
    return finished(draft, scene.rests.hash(plan.reason, subject, before, after), scene.snapshot, scene.limits)


def _changed(topic: TopicState, plan: PlacementPlan) -> TopicState:
    """The topic once the plan is carried out."""
    after = {change.id: change.after for change in plan.changes}
    states: list[PartitionState] = []
    for state in topic.partitions:
        replicas = after.get(state.id)
        if replicas is None:
            states.append(state)
        elif plan.leaders_only:
            states.append(state._replace(replicas=replicas, leader=replicas[0]))
        else:
            leader = state.leader if state.leader in replicas else replicas[0]
            states.append(state._replace(replicas=replicas, isr=replicas, leader=leader))
    return topic._replace(partitions=tuple(states))


def _forecast(topic: TopicState, readers: Mapping[TopicPartition, Readers], scene: Scene) -> Forecast:
    groups = scene.rests.readers.get(topic.name, ())
    snapshot, bits = scene.snapshot, bits_for(groups, scene.snapshot, scene.memo)
    shares = measured(_reads(readers, bits), {topic.name: topic_masks(topic, bits)}, snapshot.bytes_per_s)
    rows, selector = rows_of(readers), bits.selector_is_rack_aware
    if gaps_of(snapshot, (Part.GROUPS,)):  # any partition may have readers that are not shown
        rows += [Reader(state.id, None, 1) for state in topic.partitions]
    return Forecast(
        shares if readers else (),
        add(
            replication_flows(topic.partitions, scene.racks, snapshot.bytes_per_s),
            read_flows(rows, states_of([topic]), scene.racks, snapshot.bytes_per_s, selector=selector),
        ),
        fetches(topic, rows, scene.racks, selector=selector),
    )


def _reads(readers: Mapping[TopicPartition, Readers], bits: RackBits) -> Reads:
    reads: list[tuple[int, list[TopicPartition]]] = []
    for partition, of in readers.items():
        reads += [(bits.bit(rack), [partition] * count) for rack, count in of.by_rack]
        reads.append((0, [partition] * of.unknown))
    return reads


def _replica_moves(plan: PlacementPlan, scene: Scene) -> tuple[Move, ...]:
    """One move per new replica, paired with the one that it stands in for."""
    moves: list[Move] = []
    for change in plan.changes:
        gone = [broker for broker in change.before if broker not in change.after]
        new = [broker for broker in change.after if broker not in change.before]
        size = scene.snapshot.size_bytes.get(change.id)
        moves += [
            Move("replica", str(change.id), str(source), str(target), size)
            for source, target in zip(gone, new, strict=True)
        ]
    return tuple(moves)


def _leader_moves(plan: PlacementPlan) -> tuple[Move, ...]:
    return tuple(
        Move("leader", str(change.id), str(change.before[0]), str(change.after[0]), 0) for change in plan.changes
    )


def _predicted(plan: PlacementPlan, moves: tuple[Move, ...], now: Forecast, then: Forecast, scene: Scene) -> Predicted:
    sizes = [move.bytes for move in moves]
    copied = None if None in sizes else sum(size for size in sizes if size is not None)
    rate = scene.limits.proposals.move_bytes_per_s
    seconds = None if copied is None or plan.leaders_only else round(copied / rate, 1)
    return Predicted(
        before=now.shares,
        after=then.shares,
        cross_rack_bytes_per_s_before=bytes_per_s(now.flows),
        cross_rack_bytes_per_s_after=bytes_per_s(then.flows),
        usd_per_day_before=usd_per_day(now.flows, scene.limits),
        usd_per_day_after=usd_per_day(then.flows, scene.limits),
        moves=len(moves),
        bytes_to_move=copied,
        seconds=seconds,
    )


def _sentence(plan: PlacementPlan, topic: TopicState, predicted: Predicted) -> str:
    changed, partitions = len(plan.changes), len(topic.partitions)
    match plan.reason:
        case ProposalReason.MEND_RACK_SPREAD:
            replicas = sum(len(state.replicas) for state in topic.partitions)
            copied = predicted.bytes_to_move
            cost = "how many bytes that copies is unknown" if copied is None else f"{sized(copied)} are copied"
            return (
                f"Move {predicted.moves:,} of {counted(replicas, 'replica')} of {plan.topic}, so that no rack holds "
                f"more copies of a partition than it must; {cost}"
            )
        case ProposalReason.LEADERS_TO_READERS:
            before, after = (_crossing(shares) for shares in (predicted.before, predicted.after))
            return (
                f"Let {changed:,} of {counted(partitions, 'partition')} of {plan.topic} be led where they are read: "
                f"reads across racks fall from {before} to {after}; no data moves"
            )
        case _:
            return (
                f"Give {changed:,} of {counted(partitions, 'partition')} of {plan.topic} another preferred leader, so "
                f"that leaders are even over the racks; no data moves"
            )


def _crossing(shares: tuple[Locality, ...]) -> str:
    read = next(x for x in shares if x.measure is Measure.READ_LOCAL and x.unit == "partitions")
    return f"{read.total - read.local - read.unknown:.0f} of {read.total:.0f}"


def _evidence(
    plan: PlacementPlan, topic: TopicState, readers: Mapping[TopicPartition, Readers], scene: Scene
) -> Evidence:
    racks = scene.racks

    def spread(change: PlacementChange, replicas: tuple[int, ...]) -> str:
        return f"{change.id}: " + " ".join(racks.get(broker, "?") for broker in replicas)

    shown = plan.changes[:20]
    return (
        ("partitions", len(topic.partitions)),
        ("partitions_changed", len(plan.changes)),
        ("replica_racks_before", tuple(spread(change, change.before) for change in shown)),
        ("replica_racks_after", tuple(spread(change, change.after) for change in shown)),
        ("readers", seen_of(sum(of.total + of.unknown for of in readers.values()), scene.snapshot, Part.GROUPS)),
        ("bytes_counted", "leader to follower, leader or near replica to reader"),
    )
