"""Reassignments of replicas so that no rack holds more of a partition than it must (KIP-36, by KIP-455).

Replication factors stay. Proven fewest bytes, then kept preferred leaders, then fewest fetches across racks. Nothing
from held findings, unknown racks, excluded topics or running reassignments. A topic that cannot be planned stops no
other; a partition without a leader stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from agent.plan.leader_balance import LeaderCounts, PartitionReaders, known_readers
from agent.plan.plan_context import PlanContext, addressed_findings, gone_brokers
from agent.values.finding import Finding, FindingReason
from agent.values.limits import Limits
from agent.values.plan import PlacementPlan, Unplanned, UnplannedKey
from agent.values.proposal import PlacementChange, ProposalReason
from agent.values.snapshot import BrokerState, PartitionState, RackState, Snapshot, TopicState
from agent.values.throttles import crowding, rack_room
from assignors.optimal import optimal_leaders, optimal_replicas
from assignors.problem import (
    LeaderCandidate,
    LeaderCapacity,
    ReplicaBroker,
    ReplicaProblem,
    ReplicaResult,
    ReplicaSet,
    TopicPartition,
)

# New preferred leaders where the leader's broker is away in an overfull rack, or is gone while another replica moves;
# chosen for all such partitions at once: brokers within their present or even share, then racks, then fetches across
# racks, then staying replicas. A new replica goes to another broker only where no order of the replicas suffices.

List = tuple[int, ...]
_Ways = dict[int, List]
"""Leader -> the replica list that it leads, itself first."""


def with_new_leaders(
    lists: Mapping[TopicPartition, List],
    states: Iterable[PartitionState],
    brokers: Iterable[ReplicaBroker],
    context: PlanContext,
    readers: Mapping[TopicPartition, PartitionReaders],
) -> dict[TopicPartition, List]:
    """The lists, with another leader where the preferred one changes."""
    gone = frozenset[int]() if context.limits.plan.keep_leaders else gone_brokers(context.found)
    changed = {state.id: state for state in states if state.id in lists and _new_leader(state, lists[state.id], gone)}
    if not changed:
        return dict(lists)
    leader_counts = LeaderCounts(context.snapshot, context.held, context.limits)
    ways = {name: _orders(state, lists[name], leader_counts) for name, state in changed.items()}
    ways = {name: of for name, of in ways.items() if of}
    room = leader_counts.room(Counter(changed[name].replicas[0] for name in ways), hard=False)
    chosen = _choose(ways, changed, leader_counts, room, readers)
    if _exceeds(chosen.values(), room):
        takers = {broker.id: broker.rack for broker in brokers if broker.accepts and broker.rack is not None}
        for name, of in ways.items():
            for leader, replicas in _elsewhere(changed[name], lists[name], takers, leader_counts.rack_of):
                of.setdefault(leader, replicas)
        chosen = _choose(ways, changed, leader_counts, room, readers)
    return {**lists, **{name: ways[name][leader] for name, leader in chosen.items()}}


def _new_leader(state: PartitionState, after: List, gone: frozenset[int]) -> bool:
    return after[0] != state.replicas[0] or (after[0] in gone and after != state.replicas)


def _orders(state: PartitionState, after: List, leader_counts: LeaderCounts) -> _Ways:
    """Led by an in-sync replica that stays or, as they are in sync by the end, by a new one."""
    able = [b for b in after if b in leader_counts.may_lead and (b in state.isr or b not in state.replicas)]
    return {broker: _with_leader(after, broker) for broker in able}


def _elsewhere(
    state: PartitionState, after: List, takers: Mapping[int, str], rack_of: Mapping[int, str]
) -> Iterator[tuple[int, List]]:
    """Led by a broker that takes the place of a new replica."""
    racks = len(set(rack_of.values()))
    most = -(-len(after) // racks)
    alone = racks > 2 and len(after) > racks and len(after) % racks not in (0, racks - 1)
    for new in [broker for broker in after if broker not in state.replicas]:
        held = Counter(rack_of.get(broker) for broker in after if broker != new)
        for taker, rack in takers.items():
            fits = rack == rack_of[new] or (not alone and held[rack] < most)
            if fits and taker not in after and taker not in state.replicas:
                yield taker, _with_leader(tuple(taker if broker == new else broker for broker in after), taker)


def _choose(
    ways: Mapping[TopicPartition, _Ways],
    states: Mapping[TopicPartition, PartitionState],
    leader_counts: LeaderCounts,
    room: LeaderCapacity,
    readers: Mapping[TopicPartition, PartitionReaders],
) -> dict[TopicPartition, int]:
    candidates = []
    for name, of in ways.items():
        size = len(of)
        candidates.append(
            [
                LeaderCandidate(
                    leader,
                    0,
                    2 * size * leader_counts.fetched_across(replicas, leader, readers.get(name))
                    + size * (leader not in states[name].replicas)
                    + place,
                )
                for place, (leader, replicas) in enumerate(of.items())
            ]
        )
    return dict(zip(ways, optimal_leaders(candidates, room), strict=True))


def _exceeds(leaders: Iterable[int], room: LeaderCapacity) -> bool:
    of_broker = Counter(leaders)
    of_rack: Counter[str] = Counter()
    for broker, count in of_broker.items():
        of_rack[room.rack_of[broker]] += count
    return any(count > room.brokers.get(broker, 0) for broker, count in of_broker.items()) or any(
        count > room.racks.get(rack, 0) for rack, count in of_rack.items()
    )


def _with_leader(replicas: List, leader: int) -> List:
    order = list(replicas)
    place = order.index(leader)
    order[0], order[place] = order[place], order[0]
    return tuple(order)


Skipped = list[tuple[UnplannedKey, Unplanned]]


class TopicRepair(NamedTuple):
    """A topic to mend: the partitions that may be touched and the findings they answer."""

    topic: str
    partitions: tuple[PartitionState, ...]
    findings: tuple[str, ...]


def mend_spread(context: PlanContext) -> tuple[list[PlacementPlan], Skipped]:
    """New replica lists for topics whose replicas share racks, and skipped findings with their reasons."""
    snapshot = context.snapshot
    wanted, skipped = _wanted(context)
    if not wanted:
        return [], skipped
    brokers = tuple(_broker(broker, context.held) for broker in snapshot.brokers)
    touched = tuple(state for topic in wanted for state in topic.partitions)
    readers = known_readers([topic.topic for topic in wanted], snapshot, context.memo)
    there = frozenset(broker.id for broker in snapshot.brokers if broker.alive and not broker.fenced)
    nearby = {} if snapshot.selector_is_rack_aware is False else readers
    sets = tuple(_replica_set(state, there, nearby.get(state.id)) for state in touched)
    result = context.memo.of(("spread",), (brokers, sets, snapshot.topics), partial(_solve, brokers, sets, snapshot))
    lists = with_new_leaders(result.replicas, touched, brokers, context, readers)
    room, stuck = rack_room(snapshot.brokers, context.held), {bad.id for bad in result.infeasible}
    skipped += [
        (state.id, Unplanned.INFEASIBLE)
        for state in touched
        if state.id in stuck or crowding(lists.get(state.id, state.replicas), room) is not None
    ]
    if context.limits.plan.keep_leaders:
        new_leaders = [s for s in touched if lists.get(s.id, s.replicas)[0] != s.replicas[0]]
        lists = {name: lists[name] for name in lists.keys() - {state.id for state in new_leaders}}
        skipped += [(state.id, Unplanned.KEEPS_LEADERS) for state in new_leaders]
    plans = [_plan(topic, lists, snapshot, optimal=result.optimal) for topic in wanted]
    return [plan for plan in plans if plan.changes], skipped


def left_out(topic: TopicState, limits: Limits) -> bool:
    """True for topics that the settings exclude, and for rackwise's own unless they were asked for."""
    return (topic.own and not limits.scope.include_own_topics) or limits.excludes_topic(topic.name)


def _wanted(context: PlanContext) -> tuple[list[TopicRepair], Skipped]:
    snapshot, limits = context.snapshot, context.limits
    sure = {broker.id for broker in snapshot.brokers if broker.rack.state is RackState.KNOWN}
    by_topic: dict[str, list[Finding]] = {}
    for finding in context.found.of(FindingReason.REPLICAS_SHARE_RACK):
        by_topic.setdefault(finding.subject.name, []).append(finding)
    wanted: list[TopicRepair] = []
    skipped: Skipped = []
    for name, findings in sorted(by_topic.items()):
        topic = snapshot.topics.get(name)
        if topic is None:
            continue
        if left_out(topic, limits):
            skipped += [(finding.id, Unplanned.EXCLUDED) for finding in findings]
            continue
        skipped += [(finding.id, Unplanned.HELD) for finding in findings if finding.held]
        answers = addressed_findings(f for f in findings if not f.held)
        if answers is None:
            continue
        mine: list[PartitionState] = []
        for state in topic.partitions:
            why = _why_not(state, snapshot, sure, context.held)
            if why is None:
                mine.append(state)
            else:
                skipped.append((state.id, why))
        if mine:
            wanted.append(TopicRepair(name, tuple(mine), answers.ids))
    return wanted, skipped


def _why_not(state: PartitionState, snapshot: Snapshot, sure: set[int], held: frozenset[int]) -> Unplanned | None:
    if state.id in snapshot.reassignments:
        return Unplanned.RUNNING
    if state.leader is None:
        return Unplanned.NO_LEADER
    if any(replica not in sure for replica in state.replicas):
        return Unplanned.UNKNOWN_RACK
    if any(replica in held for replica in state.replicas):
        return Unplanned.HELD
    return None


def _broker(broker: BrokerState, held: Iterable[int]) -> ReplicaBroker:
    """A broker takes replicas only when alive, unfenced, not cordoned and in a steady, known rack."""
    known = broker.rack.state is RackState.KNOWN
    open_for_replicas = broker.alive and not broker.fenced and not broker.cordoned
    return ReplicaBroker(
        id=broker.id,
        rack=broker.rack.name if known else None,
        accepts=known and open_for_replicas and broker.id not in held,
    )


def _replica_set(state: PartitionState, there: frozenset[int], near: PartitionReaders | None) -> ReplicaSet:
    """Neither sizes nor rates play a part: every replica too many moves once, and answers must not change with them.

    A preferred leader stays unless its broker is away: then the copy that is away moves, and not one that is in sync.
    """
    return ReplicaSet(
        id=state.id,
        replicas=state.replicas,
        readers=() if near is None else near.by_rack,
        keeps_leader=state.replicas[0] in there,
    )


def _solve(brokers: tuple[ReplicaBroker, ...], sets: tuple[ReplicaSet, ...], snapshot: Snapshot) -> ReplicaResult:
    """The least moves for these partitions; all others only weigh, so that new replicas go to the idler brokers."""
    wide, usual = split_over_replicated(sets, brokers)
    ballast = _ballast(brokers, {one.id for one in sets}, snapshot)
    result = optimal_replicas(ReplicaProblem(brokers=brokers, partitions=(*usual, *ballast), balance=False))
    if not wide:
        return result
    return ReplicaResult(
        replicas={**result.replicas, **spread_over_replicated(wide, brokers, snapshot)},
        infeasible=result.infeasible,
        optimal=result.optimal,
    )


def _ballast(brokers: Iterable[ReplicaBroker], touched: set[TopicPartition], snapshot: Snapshot) -> list[ReplicaSet]:
    """All partitions that the solver would not move, because no rack holds more of them than it must."""
    rack_of = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
    racks = len(set(rack_of.values())) or 1
    keeps: dict[tuple[int, ...], bool] = {}
    ballast: list[ReplicaSet] = []
    for topic in snapshot.topics.values():
        for state in topic.partitions:
            replicas = state.replicas
            if replicas not in keeps:
                held = Counter(rack_of.get(replica) for replica in replicas)
                keeps[replicas] = None not in held and max(held.values(), default=0) <= -(-len(replicas) // racks)
            if keeps[replicas] and state.id not in touched:
                ballast.append(ReplicaSet(id=state.id, replicas=replicas))
    return ballast


def _plan(
    topic: TopicRepair, lists: Mapping[TopicPartition, tuple[int, ...]], snapshot: Snapshot, *, optimal: bool
) -> PlacementPlan:
    changes = [
        PlacementChange(state.id, state.replicas, lists[state.id])
        for state in topic.partitions
        if state.id in lists and lists[state.id] != state.replicas
    ]
    return PlacementPlan(
        topic=topic.topic,
        reason=ProposalReason.MEND_RACK_SPREAD,
        changes=tuple(changes),
        leaders_only=False,
        lower_bound=sum(_cost(change, snapshot) for change in changes) if optimal else 0,
        optimal=optimal,
        findings=topic.findings,
    )


def _cost(change: PlacementChange, snapshot: Snapshot) -> int:
    """Bytes that a change copies; an unknown size counts as one byte, so that replicas are counted then."""
    size = snapshot.size_bytes.get(change.id)
    return len(set(change.after) - set(change.before)) * (1 if size is None else size)


# Partitions with more replicas than racks (KIP-36): no rack holds two more than another that could take one. Every step
# moves one replica from a fullest to an emptiest rack, so the number of moves is minimal.


def split_over_replicated(
    sets: Iterable[ReplicaSet], brokers: Sequence[ReplicaBroker]
) -> tuple[list[ReplicaSet], list[ReplicaSet]]:
    """Partitions that the rule "at most ceil(RF / racks)" leaves uneven, and all others."""
    racks = len({broker.rack for broker in brokers if broker.rack is not None})
    wide: list[ReplicaSet] = []
    usual: list[ReplicaSet] = []
    for one in sets:
        count = len(one.replicas)
        uneven = racks > 2 and count > racks and count % racks not in (0, racks - 1)
        (wide if uneven else usual).append(one)
    return wide, usual


def spread_over_replicated(
    sets: Iterable[ReplicaSet], brokers: Sequence[ReplicaBroker], snapshot: Snapshot
) -> Mapping[TopicPartition, tuple[int, ...]]:
    """New replica lists for those that can be more even; of equal racks the one nearest to leader and readers takes.

    Inside a rack the broker with the fewest replicas is taken first.
    """
    load = Counter(b for topic in snapshot.topics.values() for state in topic.partitions for b in state.replicas)
    spread: dict[TopicPartition, tuple[int, ...]] = {}
    for one in sorted(sets, key=attrgetter("id")):
        replicas = one.replicas
        while (step := _step(one, replicas, brokers, load)) is not None:
            giver, taker = step
            load[giver] -= 1
            load[taker] += 1
            replicas = tuple(taker if replica == giver else replica for replica in replicas)
        if replicas != one.replicas:
            spread[one.id] = replicas
    return spread


def _step(
    one: ReplicaSet, replicas: tuple[int, ...], brokers: Sequence[ReplicaBroker], load: Mapping[int, int]
) -> tuple[int, int] | None:
    """(broker that loses, broker that gains), from the fullest rack to the emptiest that can take one."""
    rack_of = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
    held = Counter(rack_of[replica] for replica in replicas)
    takers = [b for b in brokers if b.accepts and b.rack is not None and b.id not in replicas]
    if not takers or not held:
        return None
    leader_rack, readers = rack_of[one.replicas[0]], dict(one.readers)

    def far(rack: str | None) -> int:
        """Fetches across racks that one more replica in that rack adds."""
        return (rack != leader_rack) - (0 if held[rack or ""] else readers.get(rack or "", 0))

    taker = min(takers, key=lambda b: (held[b.rack or ""], far(b.rack), load[b.id], b.id))
    fullest = min(held, key=lambda rack: (-held[rack], rack == leader_rack, rack))
    if held[fullest] - held[taker.rack or ""] < 2:
        return None
    # A broker that accepts nothing is relieved first; the preferred leader stays as long as it can.
    shut = {broker.id for broker in brokers if not broker.accepts}
    stays = one.replicas[0] if one.keeps_leader else None
    givers = [replica for replica in replicas if rack_of[replica] == fullest and replica != stays]
    giver = max(givers, key=lambda replica: (replica in shut, replica != replicas[0], load[replica], replica))
    return giver, taker.id
