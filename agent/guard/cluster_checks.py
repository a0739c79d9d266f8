"""Checks of a proposal against the cluster, in every mode, without the journal.

Order, gravest first: under min ISR; a gap; an absent broker that may be restarting; changed preconditions or expiry; a
running reassignment; an unstable group; a rack that changed lately; an act too short a time ago; advice; the mode.
"""

from __future__ import annotations

from agent.guard.guard_context import Check, GuardContext
from agent.propose.propose_context import rests_on_brokers, touched_brokers
from agent.values.kafka import STABLE
from agent.values.limits import AgentMode
from agent.values.memory import absence_words
from agent.values.number_format import counted, lasted
from agent.values.observation import Gap, ObservationPart
from agent.values.proposal import Proposal, ProposalKind
from agent.values.replicas import under_min_isr_meanwhile
from agent.values.snapshot import PartitionState, ReaderGroup, Snapshot
from agent.values.verdict import Hold, HoldReason, Refuse, RefuseReason


def _enough_in_sync(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    for state in _partitions(proposal, context.fresh):
        minimum = context.fresh.topics[state.id.topic].min_isr
        in_sync = len([broker for broker in state.isr if broker not in state.offline])
        # As the broker counts: a partition never needs more in-sync replicas than it has replicas.
        if state.leader is None:
            return Hold(proposal.id, HoldReason.UNDER_MIN_ISR, f"held: {state.id} has no leader")
        if minimum is not None and in_sync < min(minimum, len(state.replicas)):
            sentence = f"held: {state.id} has {counted(in_sync, 'in-sync replica')}, and its min ISR is {minimum}"
            return Hold(proposal.id, HoldReason.UNDER_MIN_ISR, sentence)
    return None


def _enough_in_sync_while_moving(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    """A moving partition has more replicas, so a min ISR above its former number of replicas counts in full."""
    if proposal.kind is not ProposalKind.REASSIGN:
        return None
    after = {change.id: change.after for change in proposal.placements}
    for state in _partitions(proposal, context.fresh):
        minimum, added = context.fresh.topics[state.id.topic].min_isr or 0, after.get(state.id, ())
        if (why := under_min_isr_meanwhile(state.id, minimum, state.replicas, added)) is not None:
            return Hold(proposal.id, HoldReason.UNDER_MIN_ISR, f"held: {why}")
    return None


def _state_known(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    for gap in context.fresh.gaps:
        if _needs(proposal, gap, context.fresh):
            what = f"{gap.part.value} of {gap.subject}" if gap.subject else gap.part.value
            return Hold(proposal.id, HoldReason.UNKNOWN, f"held: {what} unknown ({gap.cause.value})")
    for state in _partitions(proposal, context.fresh):
        if context.fresh.topics[state.id.topic].min_isr is None:
            return Hold(proposal.id, HoldReason.UNKNOWN, f"held: the min ISR of {state.id.topic} is unknown")
    return None


def _brokers_present(proposal: Proposal, context: GuardContext) -> Hold | None:
    """A broker that may be restarting: moves away from it would have to be undone."""
    if not context.absences or not rests_on_brokers(proposal):
        return None
    least_ms = context.limits.racks.broker_absent_for_ms
    left_ms = {
        broker: left for broker, absence in context.absences.items() if (left := least_ms - (absence.for_ms or 0)) > 0
    }
    named = left_ms.keys() & touched_brokers(proposal, context.preconditions)
    if not named:
        return None
    broker = max(sorted(named), key=left_ms.__getitem__)
    absent = absence_words(broker, context.absences[broker])
    sentence = f"held: {absent}; this waits until it is back or has been absent for {lasted(least_ms)}"
    return Hold(proposal.id, HoldReason.BROKER_ABSENT, sentence, context.fresh.taken_ms + left_ms[broker])


def _unchanged(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    now = context.preconditions.hash(proposal.reason, proposal.subject, proposal.before, proposal.after)
    if now == proposal.snapshot_hash:
        return None
    sentence = f"refused: the state of {proposal.subject} has changed since it was proposed"
    return Refuse(proposal.id, RefuseReason.STALE_SNAPSHOT, sentence)


def _not_expired(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    late_ms = context.fresh.taken_ms - proposal.expires_ms
    if late_ms <= 0:
        return None
    return Refuse(proposal.id, RefuseReason.EXPIRED, f"refused: it expired {lasted(late_ms)} ago")


def _nothing_moves(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    running = context.fresh.reassignments
    match proposal.kind:
        case ProposalKind.REASSIGN:
            ours = sorted(running)
        case ProposalKind.LEADERS:
            ours = sorted(partition for partition in running if partition.topic == proposal.subject.name)
        case ProposalKind.TRIGGER:
            topics = set(context.preconditions.topics(proposal.subject.name))
            ours = sorted(partition for partition in running if partition.topic in topics)
        case ProposalKind.ADVISE:
            return None
    if not ours:
        return None
    whose = "rackwise's own" if running[ours[0]].own else "another tool's"
    sentence = f"held: already in progress: {counted(len(ours), 'reassignment')}, {ours[0]} is {whose}"
    return Hold(proposal.id, HoldReason.REASSIGNMENT_RUNNING, sentence)


def _group_stable(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    group = context.fresh.groups.get(proposal.subject.name)
    if proposal.kind is not ProposalKind.TRIGGER or not isinstance(group, ReaderGroup):
        return None
    if group.state == STABLE and not group.hidden:
        return None
    state = "hidden from rackwise" if group.hidden else f"{group.state}, not Stable"
    return Hold(proposal.id, HoldReason.GROUP_NOT_STABLE, f"held: group {group.id} is {state}")


def _racks_stable(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    if not context.unsteady:
        return None
    restless = sorted(touched_brokers(proposal, context.preconditions) & context.unsteady)
    if not restless:
        return None
    sentence = f"held: the rack of broker {restless[0]} has not been stable for long enough"
    return Hold(proposal.id, HoldReason.RACK_NOT_STEADY, sentence)


def _cooldown_of_trigger_over(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    acted_ms = context.memory.acts.get(str(proposal.subject))
    if acted_ms is None or proposal.kind is not ProposalKind.TRIGGER:
        return None
    left_ms = context.limits.proposals.trigger_cooldown_ms - (context.fresh.monotonic_ms - acted_ms)
    if left_ms <= 0:
        return None
    sentence = f"held: the cooldown of {proposal.subject} ends in {lasted(left_ms)}"
    return Hold(proposal.id, HoldReason.COOLING_DOWN, sentence, context.fresh.taken_ms + left_ms)


def _agent_can_do_it(proposal: Proposal, _context: GuardContext) -> Hold | Refuse | None:
    if proposal.kind is not ProposalKind.ADVISE:
        return None
    return Hold(proposal.id, HoldReason.OWNER_ACTS, "held: only the owner of the client or broker can follow advice")


def _mode_execute(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    mode = context.limits.mode
    if mode is AgentMode.EXECUTE:
        return None
    return Hold(proposal.id, HoldReason.DRY_RUN, f"held: mode is {mode.value}, a dry run: nothing is changed")


CHECKS: tuple[Check, ...] = (
    _enough_in_sync,
    _enough_in_sync_while_moving,
    _state_known,
    _brokers_present,
    _unchanged,
    _not_expired,
    _nothing_moves,
    _group_stable,
    _racks_stable,
    _cooldown_of_trigger_over,
    _agent_can_do_it,
    _mode_execute,
)
"""Gravest first."""

_PLACEMENT = (
    ObservationPart.BROKERS,
    ObservationPart.TOPICS,
    ObservationPart.TOPIC_CONFIGS,
    ObservationPart.REASSIGNMENTS,
)
_NEEDED: dict[ProposalKind, tuple[ObservationPart, ...]] = {
    ProposalKind.REASSIGN: _PLACEMENT,
    ProposalKind.LEADERS: (*_PLACEMENT, ObservationPart.GROUPS),
    ProposalKind.TRIGGER: (ObservationPart.BROKERS, ObservationPart.TOPICS, ObservationPart.GROUPS),
    ProposalKind.ADVISE: (),
}


def _needs(proposal: Proposal, gap: Gap, fresh: Snapshot) -> bool:
    """Whether a gap hides something that the proposal needs; other topics and groups do not concern it."""
    if gap.part not in _NEEDED[proposal.kind]:
        return False
    if not gap.subject or gap.part is ObservationPart.REASSIGNMENTS:
        return True
    name = proposal.subject.name
    return gap.subject == name or (name not in fresh.topics and name not in fresh.groups)


def _partitions(proposal: Proposal, fresh: Snapshot) -> list[PartitionState]:
    """The partitions that a proposal changes, as far as they still exist."""
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return []
    topic = fresh.topics.get(proposal.subject.name)
    changed = {change.id for change in proposal.placements}
    return [state for state in topic.partitions if state.id in changed] if topic is not None else []
