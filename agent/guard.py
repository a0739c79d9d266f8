"""May this proposal be acted on now? What is not surely safe is held.

The order is from what could lose data to what is only impolite: a partition under its min ISR; a part that could not be
seen; a proposal whose ground has changed or whose time is over; a reassignment that is running; a group that is not
stable; a rack that has not held still; an act too short a time ago; advice, which only its owner can follow; and last
the mode. The first reason found is the answer, so the sentence an operator reads is always the gravest one, also in a
dry run.

`Hold` may end by itself, `Refuse` is final for this proposal. Pure: it compares the proposals with a fresh snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from agent.limits import Limits, Mode
from agent.memo import Memo
from agent.memory import Memory
from agent.memory.sightings import sightings, unsteady
from agent.model.snapshot import ConsumerGroup, PartitionState, Snapshot, StreamsGroup
from agent.observation import Gap, Part
from agent.propose.proposal import Proposal, ProposalKind
from agent.propose.rests import Rests


class HoldReason(StrEnum):
    """Why a proposal waits; each may pass without anybody changing the proposal."""

    UNDER_MIN_ISR = "a partition in the proposal is under its min ISR"
    UNKNOWN = "a part that the proposal needs could not be seen"
    REASSIGNMENT_RUNNING = "a reassignment is already in progress"
    GROUP_NOT_STABLE = "the group is not stable now"
    RACK_NOT_STEADY = "a rack has not been stable for long enough"
    COOLING_DOWN = "the last act is too recent"
    OWNER_ACTS = "only the owner of the client or broker can do it"
    DRY_RUN = "rackwise runs dry"
    NOT_YET = "acting comes with a later release"


class RefuseReason(StrEnum):
    """Why a proposal is over; the next cycle makes a new one if there is still something to propose."""

    STALE_SNAPSHOT = "what the proposal rests on has changed since it was made"
    EXPIRED = "the proposal's time is over"


class Allow(NamedTuple):
    """It may be done now."""

    proposal_id: str
    sentence: str


class Hold(NamedTuple):
    """Not now."""

    proposal_id: str
    reason: HoldReason
    sentence: str
    until_ms: int | None = None
    """Epoch milliseconds when it may be asked again; None when nobody can tell."""


class Refuse(NamedTuple):
    """Never."""

    proposal_id: str
    reason: RefuseReason
    sentence: str


Verdict = Allow | Hold | Refuse


class Ground(NamedTuple):
    """What the guard judges by."""

    fresh: Snapshot
    memory: Memory
    limits: Limits
    rests: Rests
    unsteady: frozenset[int]
    """Brokers whose rack has not held still."""


def guard(proposals: Sequence[Proposal], fresh: Snapshot, memory: Memory, limits: Limits) -> tuple[Verdict, ...]:
    """One verdict per proposal, in their order."""
    steady = unsteady(sightings(memory, fresh), fresh.monotonic_ms, limits)
    ground = Ground(fresh, memory, limits, Rests(fresh, Memo()), steady)
    return tuple(_judge(proposal, ground) for proposal in proposals)


def allowed(proposals: Iterable[Proposal], verdicts: Iterable[Verdict]) -> tuple[Proposal, ...]:
    """The proposals that may be acted on now, in their order."""
    free = {verdict.proposal_id for verdict in verdicts if isinstance(verdict, Allow)}
    return tuple(proposal for proposal in proposals if proposal.id in free)


def _judge(proposal: Proposal, ground: Ground) -> Verdict:
    for check in CHECKS:
        verdict = check(proposal, ground)
        if verdict is not None:
            return verdict
    return Allow(proposal.id, "allowed: nothing stands against it")


# --- what could lose data ---------------------------------------------------------------------------------------


def _under_min_isr(proposal: Proposal, ground: Ground) -> Verdict | None:
    for state in _partitions(proposal, ground.fresh):
        minimum = ground.fresh.topics[state.id.topic].min_isr
        in_sync = len([broker for broker in state.isr if broker not in state.offline])
        # As the broker counts: a partition never needs more in-sync replicas than it has replicas.
        if state.leader is None or (minimum is not None and in_sync < min(minimum, len(state.replicas))):
            sentence = f"held: {state.id} has {in_sync} in-sync replicas, and its min ISR is {minimum}"
            return Hold(proposal.id, HoldReason.UNDER_MIN_ISR, sentence)
    return None


def _unknown(proposal: Proposal, ground: Ground) -> Verdict | None:
    for gap in ground.fresh.gaps:
        if _needs(proposal, gap, ground.fresh):
            what = f"{gap.part.value} of {gap.subject}" if gap.subject else gap.part.value
            return Hold(proposal.id, HoldReason.UNKNOWN, f"held: {what} could not be seen ({gap.cause.value})")
    for state in _partitions(proposal, ground.fresh):
        if ground.fresh.topics[state.id.topic].min_isr is None:
            sentence = f"held: the min ISR of {state.id.topic} is not known"
            return Hold(proposal.id, HoldReason.UNKNOWN, sentence)
    return None


# --- what would be wrong by now ---------------------------------------------------------------------------------


def _stale(proposal: Proposal, ground: Ground) -> Verdict | None:
    now = ground.rests.hash(proposal.reason, proposal.subject, proposal.before, proposal.after)
    if now == proposal.snapshot_hash:
        return None
    sentence = f"refused: what it rests on about {proposal.subject} has changed since it was made"
    return Refuse(proposal.id, RefuseReason.STALE_SNAPSHOT, sentence)


def _expired(proposal: Proposal, ground: Ground) -> Verdict | None:
    late_ms = ground.fresh.taken_ms - proposal.expires_ms
    if late_ms <= 0:
        return None
    return Refuse(proposal.id, RefuseReason.EXPIRED, f"refused: it expired {late_ms / 1000:.0f} s ago")


# --- what would get into the way of something -------------------------------------------------------------------


def _reassignment_running(proposal: Proposal, ground: Ground) -> Verdict | None:
    running = ground.fresh.reassignments
    match proposal.kind:
        case ProposalKind.REASSIGN:
            ours = sorted(running)
        case ProposalKind.LEADERS:
            ours = sorted(partition for partition in running if partition.topic == proposal.subject.name)
        case ProposalKind.TRIGGER:
            topics = set(ground.rests.topics(proposal.subject.name))
            ours = sorted(partition for partition in running if partition.topic in topics)
        case ProposalKind.ADVISE:
            return None
    if not ours:
        return None
    whose = "rackwise's own" if running[ours[0]].own else "somebody else's"
    sentence = f"held: {len(ours)} reassignments are already in progress, {ours[0]} is {whose}"
    return Hold(proposal.id, HoldReason.REASSIGNMENT_RUNNING, sentence)


def _group_not_stable(proposal: Proposal, ground: Ground) -> Verdict | None:
    group = ground.fresh.groups.get(proposal.subject.name)
    if proposal.kind is not ProposalKind.TRIGGER or not isinstance(group, ConsumerGroup | StreamsGroup):
        return None
    if group.state == "Stable" and not group.hidden:
        return None
    return Hold(proposal.id, HoldReason.GROUP_NOT_STABLE, f"held: group {group.id} is {group.state}, not Stable")


def _rack_not_steady(proposal: Proposal, ground: Ground) -> Verdict | None:
    if not ground.unsteady or proposal.kind is ProposalKind.ADVISE:
        return None
    named = {broker for row in (*proposal.before, *proposal.after) for broker in row.value if isinstance(broker, int)}
    if proposal.kind is ProposalKind.TRIGGER:
        topics = [ground.fresh.topics[name] for name in ground.rests.topics(proposal.subject.name)]
        named = {broker for topic in topics for state in topic.partitions for broker in state.replicas}
    restless = sorted(named & ground.unsteady)
    if not restless:
        return None
    sentence = f"held: the rack of broker {restless[0]} has not been stable for long enough"
    return Hold(proposal.id, HoldReason.RACK_NOT_STEADY, sentence)


def _cooling_down(proposal: Proposal, ground: Ground) -> Verdict | None:
    acted_ms = ground.memory.acts.get(str(proposal.subject))
    if acted_ms is None or proposal.kind is not ProposalKind.TRIGGER:
        return None
    left_ms = ground.limits.trigger_cooldown_ms - (ground.fresh.monotonic_ms - acted_ms)
    if left_ms <= 0:
        return None
    sentence = f"held: the last act on {proposal.subject} is too recent, {left_ms / 1000:.0f} s are left"
    return Hold(proposal.id, HoldReason.COOLING_DOWN, sentence, ground.fresh.taken_ms + left_ms)


# --- what is not ours to do -------------------------------------------------------------------------------------


def _owner_acts(proposal: Proposal, ground: Ground) -> Verdict | None:
    del ground
    if proposal.kind is not ProposalKind.ADVISE:
        return None
    return Hold(proposal.id, HoldReason.OWNER_ACTS, "held: only the owner of the client or broker can follow advice")


def _mode(proposal: Proposal, ground: Ground) -> Verdict | None:
    mode = ground.limits.mode
    if mode is Mode.EXECUTE:
        return Hold(proposal.id, HoldReason.NOT_YET, "held: not yet, acting comes with a later release")
    return Hold(proposal.id, HoldReason.DRY_RUN, f"held: mode is {mode.value}, a dry run, so nothing is touched")


CHECKS: tuple[Callable[[Proposal, Ground], Verdict | None], ...] = (
    _under_min_isr,
    _unknown,
    _stale,
    _expired,
    _reassignment_running,
    _group_not_stable,
    _rack_not_steady,
    _cooling_down,
    _owner_acts,
    _mode,
)
"""Gravest first."""

_PLACEMENT = (Part.BROKERS, Part.TOPICS, Part.TOPIC_CONFIGS, Part.REASSIGNMENTS)
_NEEDED: dict[ProposalKind, tuple[Part, ...]] = {
    ProposalKind.REASSIGN: _PLACEMENT,
    ProposalKind.LEADERS: (*_PLACEMENT, Part.GROUPS),
    ProposalKind.TRIGGER: (Part.BROKERS, Part.TOPICS, Part.GROUPS),
    ProposalKind.ADVISE: (),
}


def _needs(proposal: Proposal, gap: Gap, fresh: Snapshot) -> bool:
    """Whether a gap leaves open something that this proposal needs; other topics and groups do not concern it."""
    if gap.part not in _NEEDED[proposal.kind]:
        return False
    if not gap.subject or gap.part is Part.REASSIGNMENTS:
        return True
    name = proposal.subject.name
    return gap.subject == name or (name not in fresh.topics and name not in fresh.groups)


def _partitions(proposal: Proposal, fresh: Snapshot) -> list[PartitionState]:
    """The partitions that a proposal changes, as far as they are still there."""
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return []
    topic = fresh.topics.get(proposal.subject.name)
    keys = {row.key for row in proposal.before}
    return [state for state in topic.partitions if str(state.id) in keys] if topic is not None else []
