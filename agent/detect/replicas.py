"""Findings about topics, one per reason: replicas in one rack, small ISR, uneven preferred leaders.

Partitions are judged as after their running reassignments. Findings that rest on an unsteady rack or an absent broker
are apart, and held; unknown racks, min ISR and ISR make none. A rack's even share of preferred leaders is its share of
replicas, as far as an order of replicas can reach it; gone brokers and their partitions do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.detect.detect_context import BrokerRacks, DetectContext, either, first, named, of_all, placed
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.kafka import MIN_INSYNC_REPLICAS
from agent.values.memo import Memo, each
from agent.values.number_format import counted, listed
from agent.values.observation import ObservationPart
from agent.values.snapshot import PartitionState, Reassignment, TopicState
from agent.values.throttles import CrowdedRack, Replicas, crowding, original_replicas, target_replicas
from assignors.problem import TopicPartition

LEADERS_PER_RACK = 2
"""Preferred leaders are compared only where there are at least this many partitions per rack that holds replicas."""

_NUMBERS = {1: "one", 2: "two", 3: "three"}

_Moves = tuple[Reassignment, ...]


class RackLeaderCounts(NamedTuple):
    """Preferred leaders and replicas by rack, in the order of `BrokerRacks.racks`."""

    leaders: tuple[int, ...]
    replicas: tuple[int, ...]
    blurred: bool
    """True when the rack of some replica is not known: then shares cannot be compared."""


class TopicFindings(NamedTuple):
    """Findings of one topic."""

    findings: tuple[Finding, ...]
    spread: RackLeaderCounts | None
    """None for topics that the settings leave out."""


def replica_findings(view: DetectContext, memo: Memo) -> list[Finding]:
    """Findings about each topic, and about the preferred leaders of the cluster when all topics are visible."""
    snapshot = view.snapshot
    hidden = any(gap.part is ObservationPart.TOPICS for gap in snapshot.gaps)
    inputs = (snapshot.topics, snapshot.reassignments, view.broker_racks, view.limits, hidden)
    return memo.of(("replicas",), inputs, lambda: _findings(view, memo, hidden=hidden))


def _findings(view: DetectContext, memo: Memo, *, hidden: bool) -> list[Finding]:
    moving: dict[str, list[Reassignment]] = {}
    for move in view.snapshot.reassignments.values():
        moving.setdefault(move.id.topic, []).append(move)
    rows = [(topic, tuple(moving.get(name, ()))) for name, topic in view.snapshot.topics.items()]
    places = _Places(view.broker_racks)
    by_topic = each(
        memo,
        "replicas of",
        rows,
        lambda row: row[0].name,
        lambda row: _topic_findings(row[0], row[1], view, places),
        context=(view.broker_racks, view.limits),
    )
    findings = [finding for topic in by_topic for finding in topic.findings]
    if hidden:
        return findings
    return findings + _cluster_skew(Counter([topic.spread for topic in by_topic if topic.spread is not None]), view)


class _Place(NamedTuple):
    crowded: CrowdedRack | None
    """By racks that hold still."""
    wavering: CrowdedRack | None
    """With an unsteady rack, or a replica on an absent broker that may be restarting."""
    leader: int | None
    """Index of the rack of the preferred leader; None where it is not known, or its broker is gone."""
    racks: tuple[int, ...]
    """Indices of the racks of the replicas on brokers that are not gone; none where the preferred leader's is."""
    blurred: bool
    """True when the rack of a replica is not known."""


class _Places(dict[Replicas, _Place]):
    """Replica list -> its place, computed at first use: a cluster has few different ones."""

    def __init__(self, brokers: BrokerRacks) -> None:
        super().__init__()
        self._brokers = brokers
        self._index = {rack: number for number, rack in enumerate(brokers.racks)}
        self._leaders: dict[RackLeaderCounts, RackLeaderCounts] = {}

    def shared(self, leaders: RackLeaderCounts) -> RackLeaderCounts:
        """One object for equal ones: thousands of topics are placed alike."""
        return self._leaders.setdefault(leaders, leaders)

    def __missing__(self, replicas: Replicas) -> _Place:
        brokers = self._brokers
        unsure = not (brokers.unsteady.isdisjoint(replicas) and brokers.away.isdisjoint(replicas))
        steady = None if unsure else crowding(replicas, brokers.steady_room)
        racks = [self._index[rack] if (rack := brokers.room.rack_of.get(r)) is not None else None for r in replicas]
        alive = bool(replicas) and replicas[0] not in brokers.gone
        shares = [rack for rack, broker in zip(racks, replicas, strict=True) if alive and broker not in brokers.gone]
        self[replicas] = place = _Place(
            steady,
            crowding(replicas, brokers.room) if steady is None else None,
            racks[0] if alive else None,
            tuple([rack for rack in shares if rack is not None]),
            None in racks,
        )
        return place


def _topic_findings(topic: TopicState, moves: _Moves, view: DetectContext, places: _Places) -> TopicFindings:
    running = {move.id: move for move in moves}
    if view.limits.excludes_topic(topic.name):
        return TopicFindings(tuple(_isr(topic, running, view)) if topic.own else (), None)
    findings = list(_isr(topic, running, view))
    steady: list[tuple[TopicPartition, CrowdedRack]] = []
    wavering: list[tuple[TopicPartition, CrowdedRack]] = []
    leaders, replicas = [0] * len(view.broker_racks.racks), [0] * len(view.broker_racks.racks)
    blurred = False
    for state in topic.partitions:
        after = target_replicas(state, running.get(state.id)) if running else state.replicas
        crowded, unsure, leader, racks, unknown = places[after]
        if crowded is not None:
            steady.append((state.id, crowded))
        elif unsure is not None:
            wavering.append((state.id, unsure))
        blurred = blurred or unknown
        if leader is not None:
            leaders[leader] += 1
        for rack in racks:
            replicas[rack] += 1
    findings += _shared(topic, steady, view, held=False)
    findings += _shared(topic, wavering, view, held=True)
    spread = places.shared(RackLeaderCounts(tuple(leaders), tuple(replicas), blurred))
    findings += _topic_skew(topic, spread, view)
    return TopicFindings(tuple(findings), spread)


def _shared(
    topic: TopicState, crowded: Sequence[tuple[TopicPartition, CrowdedRack]], view: DetectContext, *, held: bool
) -> Iterable[Finding]:
    if not crowded:
        return
    partition, example = crowded[0]
    names = [str(name) for name, _ in crowded]
    state = next(state for state in topic.partitions if state.id == partition)
    replicas = target_replicas(state, view.snapshot.reassignments.get(partition))
    wait = f"; {_why_held(crowded, topic, view)}, so nothing is planned from this yet" if held else ""
    leaderless = _without_leader(crowded, topic)
    if leaderless:
        has, them = ("has", "it") if leaderless == 1 else ("have", "them")
        wait += f"; {leaderless:,} of the {len(names):,} {has} no leader to copy from, so nothing is planned for {them}"
    yield Finding(
        reason=FindingReason.REPLICAS_SHARE_RACK,
        subject=SubjectId("topic", topic.name),
        sentence=f"{topic.name} has {of_all(len(names), len(topic.partitions), 'partition')} with replicas that share "
        f"a rack while another rack is free: {partition} has {len(example.replicas)} in rack {example.rack}, "
        f"and could have {_room(example)}{wait}",
        evidence=(
            ("partitions", len(crowded)),
            ("of", len(topic.partitions)),
            ("first", first(names)),
            ("example", f"{partition}: {placed(replicas, view.broker_racks.room.rack_of)}"),
            ("free racks", example.free),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
        held=held,
        detail="held" if held else "",
    )


def _without_leader(crowded: Sequence[tuple[TopicPartition, CrowdedRack]], topic: TopicState) -> int:
    """How many of them nothing can be copied from now."""
    leaderless = {state.id for state in topic.partitions if state.leader is None}
    return sum(name in leaderless for name, _ in crowded) if leaderless else 0


def _room(example: CrowdedRack) -> str:
    """``one in b or c``: how many of the rack's replicas the free racks could take, one each."""
    spare = len(example.replicas) - 1
    if spare < len(example.free):
        return f"{_NUMBERS.get(spare, str(spare))} in {either(example.free)}"
    return f"one in {'each of ' if len(example.free) > 1 else ''}{listed(example.free)}"


def _why_held(crowded: Sequence[tuple[TopicPartition, CrowdedRack]], topic: TopicState, view: DetectContext) -> str:
    moves, brokers = view.snapshot.reassignments, view.broker_racks
    names = {name for name, _ in crowded}
    held = {
        broker
        for state in topic.partitions
        if state.id in names
        for broker in target_replicas(state, moves.get(state.id))
    }
    away = sorted(held & brokers.away)
    reasons = [f"{named('broker', away)} {'is' if len(away) == 1 else 'are'} absent"] if away else []
    reasons += ["a rack changed recently"] if not away or not held.isdisjoint(brokers.unsteady) else []
    return " and ".join(reasons)


def _isr(topic: TopicState, running: Mapping[TopicPartition, Reassignment], view: DetectContext) -> Iterable[Finding]:
    """Min ISR as the leader counts it: of all replicas, those of a running reassignment included (KIP-455)."""
    under: list[str] = []
    at: list[str] = []
    leaderless = 0
    for state in topic.partitions:
        if len(state.isr) == len(state.replicas) and not state.offline and state.leader is not None:
            continue
        in_sync = len(state.isr) if not state.offline else len([b for b in state.isr if b not in state.offline])
        least = None if topic.min_isr is None else min(topic.min_isr, len(state.replicas))
        if state.leader is None or (least is not None and in_sync < least):
            under.append(str(state.id))
            leaderless += state.leader is None
        elif in_sync == least and _lost(state, running.get(state.id)):
            at.append(str(state.id))
    if under:
        without = f" ({leaderless} without a leader)" if leaderless else ""
        what = "without a leader" if topic.min_isr is None else f"under min ISR{without}"
        yield _isr_finding(FindingReason.UNDER_MIN_ISR, topic, under, what, view)
    if at:
        yield _isr_finding(FindingReason.AT_MIN_ISR, topic, at, _AT_MIN_ISR, view)


_AT_MIN_ISR = "at min ISR: with one in-sync replica less, writes with acks=all stop"


def _lost(state: PartitionState, moving: Reassignment | None) -> bool:
    """True when a replica fell out of the ISR; one that a reassignment adds was never in it."""
    return any(replica not in state.isr or replica in state.offline for replica in original_replicas(state, moving))


def _isr_finding(
    reason: FindingReason, topic: TopicState, names: Sequence[str], what: str, view: DetectContext
) -> Finding:
    gravest = reason is FindingReason.UNDER_MIN_ISR
    return Finding(
        reason=reason,
        subject=SubjectId("topic", topic.name),
        sentence=f"{topic.name} has {of_all(len(names), len(topic.partitions), 'partition')} {what}; "
        f"min.insync.replicas is {_least(topic, names)}: {listed(names)}",
        evidence=(
            ("partitions", len(names)),
            ("of", len(topic.partitions)),
            ("first", first(names)),
            (MIN_INSYNC_REPLICAS, topic.min_isr),
        ),
        severity=FindingSeverity.CRITICAL if gravest else FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _least(topic: TopicState, names: Sequence[str]) -> str:
    """Min ISR, and the number of replicas where that is less: brokers then ask for as many as there are."""
    if topic.min_isr is None:
        return "unknown"
    wanted = set(names)
    fewest = min(len(state.replicas) for state in topic.partitions if str(state.id) in wanted)
    return f"{topic.min_isr}, of {counted(fewest, 'replica')}" if fewest < topic.min_isr else str(topic.min_isr)


def _topic_skew(topic: TopicState, spread: RackLeaderCounts, view: DetectContext) -> Iterable[Finding]:
    wavering = view.broker_racks.unsteady | view.broker_racks.away
    unsteady = bool(wavering) and any(not wavering.isdisjoint(state.replicas) for state in topic.partitions)
    yield from _skew(SubjectId("topic", topic.name), topic.name, spread, view, held=unsteady)


def _cluster_skew(spreads: Mapping[RackLeaderCounts, int], view: DetectContext) -> list[Finding]:
    """Of all topics together; many topics have the same spread."""
    leaders, replicas = [0] * len(view.broker_racks.racks), [0] * len(view.broker_racks.racks)
    for spread, times in spreads.items():
        for rack in range(len(leaders)):
            leaders[rack] += times * spread.leaders[rack]
            replicas[rack] += times * spread.replicas[rack]
    subject = SubjectId("cluster", view.snapshot.cluster_id)
    total = RackLeaderCounts(tuple(leaders), tuple(replicas), any(spread.blurred for spread in spreads))
    return list(
        _skew(subject, "the cluster", total, view, held=bool(view.broker_racks.unsteady | view.broker_racks.away))
    )


def _skew(
    subject: SubjectId, name: str, spread: RackLeaderCounts, view: DetectContext, *, held: bool
) -> Iterable[Finding]:
    leaders_total, held_replicas = sum(spread.leaders), sum(spread.replicas)
    holding = sum(replicas > 0 for replicas in spread.replicas)
    if spread.blurred or holding < 2 or leaders_total < LEADERS_PER_RACK * holding:
        return
    over, rack, share, even = max(
        [
            ((share := leaders / leaders_total) - (even := replicas / held_replicas), rack, share, even)
            for rack, leaders, replicas in zip(view.broker_racks.racks, spread.leaders, spread.replicas, strict=True)
        ]
    )
    if over <= view.limits.detect.leader_skew_share:
        return
    yield Finding(
        reason=FindingReason.LEADER_SKEW,
        subject=subject,
        sentence=f"rack {rack} has the preferred leaders of {share * 100:.0f} % of the partitions of {name}, "
        f"but {even * 100:.0f} % of their replicas",
        evidence=(
            ("rack", rack),
            ("share of preferred leaders", round(share, 4)),
            ("share of replicas", round(even, 4)),
            (
                "preferred leaders by rack",
                tuple(f"{r}: {n}" for r, n in zip(view.broker_racks.racks, spread.leaders, strict=True)),
            ),
            ("partitions", leaders_total),
        ),
        severity=FindingSeverity.INFO,
        since_ms=view.snapshot.taken_ms,
        held=held,
    )
