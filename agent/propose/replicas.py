"""Proposals about replica lists: reassignments (KIP-455) and preferred leaders, with their side effects.

The forecast covers the whole topic: reads by both measures, and bytes across racks from leader to follower and from
leader (or near replica) to reader. Every new replica is assumed in sync; the leader stays unless it lost its place,
and is the preferred one where an election is part of the proposal.

Side effects are preferred leaders by broker and rack, and traffic across racks. Where rates are unknown, fetches are
counted: one for each follower and each reader of a partition that fetches from another rack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agent.detect.assess import bits_for
from agent.detect.assess_consumers import Reads
from agent.detect.traffic import measured
from agent.plan.leader_balance import LeaderCounts, PartitionReaders, readers_of
from agent.propose.propose_context import ProposalDraft, ProposeContext, finished
from agent.values.assessment import Locality, LocalityMeasure, RackBits, topic_masks
from agent.values.cycle import basis_of_topic, gaps_of, known_part
from agent.values.finding import Evidence, SubjectId
from agent.values.limits import Limits
from agent.values.number_format import counted, few, sized, usd, usd_per_gb
from agent.values.observation import ObservationPart
from agent.values.plan import PlacementPlan
from agent.values.proposal import (
    PlacementChange,
    PredictedEffect,
    Proposal,
    ProposalKind,
    ProposalMove,
    ProposalReason,
    placement_rows,
)
from agent.values.rates import Flows, RackReads, Racks, add, bytes_per_s, read_flows, replication_flows, usd_per_day
from agent.values.snapshot import PartitionState, TopicState, states_of
from agent.values.throttles import settled_topic
from assignors.problem import TopicPartition

_SHOWN = 6
_KEPT = 50
_LEAST_RATE = 0.5
"""bytes/s; less than that is the rounding of sums, no change."""


class CrossRackFetches(NamedTuple):
    """Fetches across racks; None where a rack or the selector is not known."""

    followers: int | None
    all: int | None
    """Followers and readers."""


class SideEffects(NamedTuple):
    """Parts of the sentence, each a clause, and the same as evidence."""

    clauses: tuple[str, ...]
    evidence: Evidence


def fetches(topic: TopicState, rows: Iterable[RackReads], racks: Racks, *, selector: bool | None) -> CrossRackFetches:
    """The number of fetches of a topic across racks."""
    ones = dict.fromkeys((state.id for state in topic.partitions), 1.0)
    states = {state.id: state for state in topic.partitions}
    copied = replication_flows(topic.partitions, racks, ones)
    total = add(copied, read_flows(rows, states, racks, ones, selector=selector))
    return CrossRackFetches(
        None if copied is None else round(sum(copied.values())), None if total is None else round(sum(total.values()))
    )


def rows_of(readers: Mapping[TopicPartition, PartitionReaders]) -> list[RackReads]:
    """Readers as flows count them; those of unknown rack have none."""
    rows = [RackReads(p, rack, count) for p, of in readers.items() for rack, count in of.by_rack]
    return rows + [RackReads(p, None, of.unknown) for p, of in readers.items() if of.unknown]


def side_effects(
    plan: PlacementPlan,
    before: TopicState,
    counts: tuple[CrossRackFetches, CrossRackFetches],
    predicted: PredictedEffect,
    context: ProposeContext,
) -> SideEffects:
    """Preferred leaders and cross-rack traffic before and after the plan."""
    changed = [change for change in plan.changes if change.before[0] != change.after[0]]
    leaders = Counter(state.replicas[0] for state in before.partitions if state.replicas)
    then = leaders.copy()
    then.subtract(change.before[0] for change in changed)
    then.update(change.after[0] for change in changed)
    racks, racks_then = _by_rack(leaders, context.racks), _by_rack(then, context.racks)
    now, after = counts
    of_leaders = _leaders(plan, changed, (leaders, then), (racks, racks_then))
    clauses = [of_leaders, _traffic(now, after, predicted, context.limits)]
    if plan.reason is ProposalReason.MEND_RACK_SPREAD:
        clauses += (
            _worse_leaders(changed, predicted.moves, context)
            if changed
            else _worse_traffic(plan, before, counts, predicted)
        )
    return SideEffects(
        tuple(clauses),
        (
            ("preferred_leaders_changed", len(changed)),
            ("preferred_leaders_by_broker_before", _rows(leaders, "broker ")),
            ("preferred_leaders_by_broker_after", _rows(then, "broker ")),
            ("preferred_leaders_by_rack_before", _rows(racks, "rack ")),
            ("preferred_leaders_by_rack_after", _rows(racks_then, "rack ")),
            ("fetches_across_racks_before", now.all),
            ("fetches_across_racks_after", after.all),
        ),
    )


def _by_rack(leaders: Counter[int], racks: Racks) -> Counter[str]:
    by_rack: Counter[str] = Counter()
    for broker, count in leaders.items():
        by_rack[racks.get(broker, "?")] += count
    return by_rack


def _rows(leaders: Counter[Any], word: str) -> tuple[str, ...]:
    shown = [f"{word}{name}: {leaders[name]:,}" for name in sorted(leaders)]
    return (*shown[:_KEPT], *([f"and {len(shown) - _KEPT:,} more"] if len(shown) > _KEPT else []))


def _leaders(
    plan: PlacementPlan,
    changed: list[PlacementChange],
    brokers: tuple[Counter[int], Counter[int]],
    racks: tuple[Counter[str], Counter[str]],
) -> str:
    if not changed:
        return "no preferred leader changes"
    by_broker, by_rack = _differences(*brokers), _differences(*racks)
    head = f"{counted(len(changed), 'preferred leader')} {'changes' if len(changed) == 1 else 'change'}"
    if not by_broker:
        return f"{head}, and each broker leads as many partitions of {plan.topic} as before"
    in_racks = f", by rack: {by_rack}" if by_rack else ", and each rack leads as many as before"
    return f"{head}, by broker: {by_broker}{in_racks}"


def _differences(before: Counter[Any], after: Counter[Any]) -> str:
    names = [name for name in sorted({*before, *after}) if before[name] != after[name]]
    return few([f"{name} from {before[name]:,} to {after[name]:,}" for name in names], _SHOWN)


def _traffic(now: CrossRackFetches, then: CrossRackFetches, predicted: PredictedEffect, limits: Limits) -> str:
    before, after = predicted.cross_rack_bytes_per_s_before, predicted.cross_rack_bytes_per_s_after
    if before is not None and after is not None:
        return f"traffic across racks {_rates(before, after)}{_money(predicted, limits)}"
    if now.all is not None and then.all is not None:
        return f"fetches across racks by followers and readers {_counts(now.all, then.all)}, their bytes are unknown"
    if now.followers is not None and then.followers is not None:
        counts = _counts(now.followers, then.followers)
        return f"fetches across racks by followers {counts}, those by readers and their bytes are unknown"
    return "the change in traffic across racks is unknown"


def _rates(before: float, after: float) -> str:
    """The change of a rate in bytes/s; a change that rounded figures would hide has its size."""
    if abs(after - before) < _LEAST_RATE:
        return f"stays at {sized(after)}/s"
    if sized(before) == sized(after):
        return f"{_change(before, after)}s by {sized(abs(after - before))}/s to {sized(after)}/s"
    return f"{_change(before, after)}s from {sized(before)}/s to {sized(after)}/s"


def _counts(before: int, after: int) -> str:
    return f"{_change(before, after)} {f'at {after:,}' if before == after else f'from {before:,} to {after:,}'}"


def _change(before: float, after: float) -> str:
    if before == after:
        return "stay"
    return "rise" if after > before else "fall"


def _money(predicted: PredictedEffect, limits: Limits) -> str:
    before, after = predicted.usd_per_day_before, predicted.usd_per_day_after
    if before is None or after is None:
        return ""
    now, then = usd(before), usd(after)
    set_price = limits.price
    price = "the prices set" if set_price.between or set_price.usd_per_gb is None else usd_per_gb(set_price.usd_per_gb)
    if now != then:
        return f" ({now} to {then} a day at {price})"
    apart = abs((predicted.cross_rack_bytes_per_s_after or 0) - (predicted.cross_rack_bytes_per_s_before or 0))
    return f" ({then} a day{' before and after' if apart >= _LEAST_RATE else ''} at {price})"


def _worse_leaders(changed: list[PlacementChange], moves: int, context: ProposeContext) -> list[str]:
    """Brokers that unavoidably lead more than now and more than an even share."""
    counts = LeaderCounts(context.snapshot, frozenset(), context.limits)
    most, _ = counts.most_even()
    now = counts.of_broker.copy()
    for change in changed:
        counts.give(change.before[0], change.after[0])
    worse = [broker for broker in sorted(counts.of_broker) if counts.of_broker[broker] > most.get(broker, now[broker])]
    if not worse:
        return []
    shown = ", ".join(f"{broker} from {now[broker]:,} to {counts.of_broker[broker]:,}" for broker in worse[:_SHOWN])
    more = f" and of {len(worse) - _SHOWN:,} more" if len(worse) > _SHOWN else ""
    what = f"no set of {counted(moves, 'move')} off brokers that are away"
    return [f"{what} keeps all others from leading more partitions of the cluster: broker {shown}{more}"]


def _worse_traffic(
    plan: PlacementPlan,
    before: TopicState,
    counts: tuple[CrossRackFetches, CrossRackFetches],
    predicted: PredictedEffect,
) -> list[str]:
    """For rising traffic: moves are chosen by the number of fetches, not by bytes."""
    now, after = counts
    states = {state.id: state for state in before.partitions}
    preferred = all(states[change.id].leader == change.before[0] for change in plan.changes)
    if not preferred or now.all is None or after.all is None:
        return []
    if after.all > now.all:
        return [f"no set of {counted(predicted.moves, 'move')} has fewer fetches across racks"]
    rate, rate_then = predicted.cross_rack_bytes_per_s_before, predicted.cross_rack_bytes_per_s_after
    if rate is None or rate_then is None or rate_then - rate < _LEAST_RATE:
        return []
    fetches = _counts(now.all, after.all)
    return [f"moves are chosen by the number of fetches across racks, which {fetches}, and not by their bytes"]


class TopicForecast(NamedTuple):
    """A topic's reads and traffic in one state of its replicas."""

    shares: tuple[Locality, ...]
    flows: Flows | None
    fetches: CrossRackFetches


def placement(plan: PlacementPlan, context: ProposeContext) -> Proposal:
    """The proposal that carries out a placement plan."""
    topic = settled_topic(context.snapshot.topics[plan.topic], context.snapshot)
    subject = SubjectId("topic", plan.topic)
    before, after = placement_rows(plan.changes)
    readers = readers_of(topic, context.preconditions.readers.get(plan.topic, ()))
    now, then = _forecast(topic, readers, context), _forecast(_changed(topic, plan), readers, context)
    moves = _leader_moves(plan) if plan.leaders_only else _replica_moves(plan, context)
    predicted = _predicted(plan, moves, now, then, context.limits)
    effects = side_effects(plan, topic, (now.fetches, then.fetches), predicted, context)
    draft = ProposalDraft(
        kind=ProposalKind.LEADERS if plan.leaders_only else ProposalKind.REASSIGN,
        reason=plan.reason,
        subject=subject,
        sentence="; ".join((_sentence(plan, topic, predicted), *effects.clauses)),
        before=before,
        after=after,
        moves=moves,
        predicted=predicted,
        evidence=(*_evidence(plan, topic, readers, context), *effects.evidence),
        findings=plan.findings,
        lower_bound=float(plan.lower_bound),
        optimal=plan.optimal,
        placements=plan.changes,
        basis=basis_of_topic(topic, context.snapshot),
    )
    preconditions = context.preconditions.hash(plan.reason, subject, before, after)
    return finished(draft, preconditions, context.snapshot, context.limits)


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


def _forecast(
    topic: TopicState, readers: Mapping[TopicPartition, PartitionReaders], context: ProposeContext
) -> TopicForecast:
    groups = context.preconditions.readers.get(topic.name, ())
    snapshot, bits = context.snapshot, bits_for(groups, context.snapshot, context.memo)
    shares = measured(_reads(readers, bits), {topic.name: topic_masks(topic, bits)}, snapshot.bytes_per_s)
    rows, selector = rows_of(readers), bits.selector_is_rack_aware
    if gaps_of(snapshot, (ObservationPart.GROUPS,)):  # any partition may have readers that are not shown
        rows += [RackReads(state.id, None, 1) for state in topic.partitions]
    return TopicForecast(
        shares if readers else (),
        add(
            replication_flows(topic.partitions, context.racks, snapshot.bytes_per_s),
            read_flows(rows, states_of([topic]), context.racks, snapshot.bytes_per_s, selector=selector),
        ),
        fetches(topic, rows, context.racks, selector=selector),
    )


def _reads(readers: Mapping[TopicPartition, PartitionReaders], bits: RackBits) -> Reads:
    reads: list[tuple[int, list[TopicPartition]]] = []
    for partition, of in readers.items():
        reads += [(bits.bit(rack), [partition] * count) for rack, count in of.by_rack]
        reads.append((0, [partition] * of.unknown))
    return reads


def _replica_moves(plan: PlacementPlan, context: ProposeContext) -> tuple[ProposalMove, ...]:
    """One move per new replica, paired with the replica that it replaces."""
    moves: list[ProposalMove] = []
    for change in plan.changes:
        gone = [broker for broker in change.before if broker not in change.after]
        new = [broker for broker in change.after if broker not in change.before]
        size = context.snapshot.size_bytes.get(change.id)
        moves += [
            ProposalMove("replica", str(change.id), str(source), str(target), size)
            for source, target in zip(gone, new, strict=True)
        ]
    return tuple(moves)


def _leader_moves(plan: PlacementPlan) -> tuple[ProposalMove, ...]:
    return tuple(
        ProposalMove("leader", str(change.id), str(change.before[0]), str(change.after[0]), 0)
        for change in plan.changes
    )


def _predicted(
    plan: PlacementPlan, moves: tuple[ProposalMove, ...], now: TopicForecast, then: TopicForecast, limits: Limits
) -> PredictedEffect:
    sizes = [move.bytes for move in moves]
    copied = None if None in sizes else sum(size for size in sizes if size is not None)
    rate = limits.proposals.move_bytes_per_s
    seconds = None if copied is None or plan.leaders_only else round(copied / rate, 1)
    return PredictedEffect(
        before=now.shares,
        after=then.shares,
        cross_rack_bytes_per_s_before=bytes_per_s(now.flows),
        cross_rack_bytes_per_s_after=bytes_per_s(then.flows),
        usd_per_day_before=usd_per_day(now.flows, limits),
        usd_per_day_after=usd_per_day(then.flows, limits),
        moves=len(moves),
        bytes_to_move=copied,
        seconds=seconds,
    )


def _sentence(plan: PlacementPlan, topic: TopicState, predicted: PredictedEffect) -> str:
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
    read = next(x for x in shares if x.measure is LocalityMeasure.READ_LOCAL and x.unit == "partitions")
    return f"{read.total - read.local - read.unknown:.0f} of {read.total:.0f}"


def _evidence(
    plan: PlacementPlan, topic: TopicState, readers: Mapping[TopicPartition, PartitionReaders], context: ProposeContext
) -> Evidence:
    racks = context.racks

    def spread(change: PlacementChange, replicas: tuple[int, ...]) -> str:
        return f"{change.id}: " + " ".join(racks.get(broker, "?") for broker in replicas)

    shown = plan.changes[:20]
    return (
        ("partitions", len(topic.partitions)),
        ("partitions_changed", len(plan.changes)),
        ("replica_racks_before", tuple(spread(change, change.before) for change in shown)),
        ("replica_racks_after", tuple(spread(change, change.after) for change in shown)),
        (
            "readers",
            known_part(sum(of.total + of.unknown for of in readers.values()), context.snapshot, ObservationPart.GROUPS),
        ),
        ("bytes_counted", "leader to follower, leader or near replica to reader"),
    )
