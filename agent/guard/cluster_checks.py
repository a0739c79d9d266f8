"""Checks of a proposal against the cluster and of its gain, in every mode. Pure.

Order, gravest first: under min ISR; a gap; an absent broker that may be restarting; changed preconditions or expiry; a
running reassignment; an unstable group; a rack that changed lately; an act too short a time ago; advice; the mode.
Then gain: least gain, hysteresis, pay-back and cooldown. Repairs of rack spread pass whatever they cost; a claimed gain
that is unknown is held.
"""

from __future__ import annotations

from agent.execute.reassign.executor_view import under_min_isr_meanwhile
from agent.guard.guard_context import DAY_MS, Check, GuardContext
from agent.journal.triggers import TriggerVerdict, acted_at, triggers
from agent.propose.propose_context import rests_on_brokers, touched_brokers
from agent.values.assessment import Locality, LocalityMeasure
from agent.values.kafka import STABLE
from agent.values.last_known import FAILED
from agent.values.limits import AgentMode, Limits
from agent.values.memory import absence_words
from agent.values.number_format import counted, lasted, sized, sized_apart, usd
from agent.values.observation import Gap, ObservationPart
from agent.values.proposal import (
    CheckPassed,
    Hold,
    HoldReason,
    PredictedEffect,
    Proposal,
    ProposalKind,
    ProposalReason,
    Refuse,
    RefuseReason,
    saved_bytes_per_s,
    saved_usd_per_day,
)
from agent.values.rates import BYTES_PER_GB
from agent.values.snapshot import OtherGroup, PartitionState, ReaderGroup, Snapshot
from agent.values.weights import FigureBasis


def _enough_in_sync(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    for state in _partitions(proposal, context.fresh):
        minimum = context.fresh.topics[state.id.topic].min_isr
        in_sync = len([broker for broker in state.isr if broker not in state.offline])
        # As the broker counts: a partition never needs more in-sync replicas than it has replicas.
        if state.leader is None:
            return Hold(proposal.id, HoldReason.UNDER_MIN_ISR, f"{state.id} has no leader")
        if minimum is not None and in_sync < min(minimum, len(state.replicas)):
            sentence = f"{state.id} has {counted(in_sync, 'in-sync replica')}, and its min ISR is {minimum}"
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
            return Hold(proposal.id, HoldReason.UNDER_MIN_ISR, why)
    return None


def _state_known(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    for gap in context.fresh.gaps:
        if _needs(proposal, gap, context.fresh):
            return _unknown(proposal, gap)
    for state in _partitions(proposal, context.fresh):
        if context.fresh.topics[state.id.topic].min_isr is None:
            return Hold(proposal.id, HoldReason.UNKNOWN, f"the min ISR of {state.id.topic} is unknown")
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
    sentence = f"{absent}; this waits until it is back or has been absent for {lasted(least_ms)}"
    return Hold(proposal.id, HoldReason.BROKER_ABSENT, sentence, context.fresh.taken_ms + left_ms[broker])


def _unchanged(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    now = context.preconditions.hash(proposal.reason, proposal.subject, proposal.before, proposal.after)
    if now == proposal.snapshot_hash:
        return None
    for gap in context.fresh.gaps:
        # What a failed call hides may be as it was.
        needed = gap.cause in FAILED and gap.part in _NEEDED[proposal.kind]
        if needed and may_hide_preconditions(gap, proposal, context.fresh):
            return _unknown(proposal, gap)
    sentence = f"the state of {proposal.subject} has changed since it was proposed"
    return Refuse(proposal.id, RefuseReason.STALE_SNAPSHOT, sentence)


def _not_expired(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    late_ms = context.fresh.taken_ms - proposal.expires_ms
    if late_ms <= 0:
        return None
    return Refuse(proposal.id, RefuseReason.EXPIRED, f"it expired {lasted(late_ms)} ago")


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
    sentence = f"already in progress: {counted(len(ours), 'reassignment')}, {ours[0]} is {whose}"
    return Hold(proposal.id, HoldReason.REASSIGNMENT_RUNNING, sentence)


def _group_stable(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    group = context.fresh.groups.get(proposal.subject.name)
    if proposal.kind is not ProposalKind.TRIGGER or not isinstance(group, ReaderGroup):
        return None
    if group.state == STABLE and not group.hidden:
        return None
    state = "hidden from rackwise" if group.hidden else f"{group.state}, not Stable"
    return Hold(proposal.id, HoldReason.GROUP_NOT_STABLE, f"group {group.id} is {state}")


def _racks_stable(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    if not context.unsteady:
        return None
    restless = sorted(touched_brokers(proposal, context.preconditions) & context.unsteady)
    if not restless:
        return None
    sentence = f"the rack of broker {restless[0]} has not been stable for long enough"
    return Hold(proposal.id, HoldReason.RACK_NOT_STEADY, sentence)


def _cooldown_of_trigger_over(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    acted_ms = context.memory.acts.get(str(proposal.subject))
    if acted_ms is None or proposal.kind is not ProposalKind.TRIGGER:
        return None
    left_ms = context.limits.proposals.trigger_cooldown_ms - (context.fresh.monotonic_ms - acted_ms)
    if left_ms <= 0:
        return None
    sentence = f"the cooldown of {proposal.subject} ends in {lasted(left_ms)}"
    return Hold(proposal.id, HoldReason.COOLING_DOWN, sentence, context.fresh.taken_ms + left_ms)


def _agent_can_do_it(proposal: Proposal, _context: GuardContext) -> Hold | Refuse | None:
    if proposal.kind is not ProposalKind.ADVISE:
        return None
    return Hold(proposal.id, HoldReason.OWNER_ACTS, "only the owner of the client or broker can follow advice")


def _mode_execute(proposal: Proposal, context: GuardContext) -> Hold | Refuse | None:
    mode = context.limits.mode
    if mode is AgentMode.EXECUTE:
        return None
    return Hold(proposal.id, HoldReason.DRY_RUN, f"mode is {mode.value}, a dry run: nothing is changed")


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
    kind, name = proposal.subject
    group = fresh.groups.get(name)
    is_described = name in fresh.topics if kind == "topic" else group is not None and not isinstance(group, OtherGroup)
    return gap.name == name or not is_described


def may_hide_preconditions(gap: Gap, proposal: Proposal, fresh: Snapshot) -> bool:
    """Whether it may hide a precondition: any gap but one of another topic or group."""
    kind, name = proposal.subject
    others = fresh.groups if kind == "group" else fresh.topics
    return not gap.name or gap.name == name or gap.name not in others


def _unknown(proposal: Proposal, gap: Gap) -> Hold:
    what = f"{gap.part.value} of {gap.subject}" if gap.subject else gap.part.value
    return Hold(proposal.id, HoldReason.UNKNOWN, f"{what} unknown ({gap.cause.value})")


def _partitions(proposal: Proposal, fresh: Snapshot) -> list[PartitionState]:
    """The partitions that a proposal changes, as far as they still exist."""
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return []
    topic = fresh.topics.get(proposal.subject.name)
    changed = {change.id for change in proposal.placements}
    return [state for state in topic.partitions if state.id in changed] if topic is not None else []


SAVERS = frozenset((ProposalReason.REBALANCE_IMPROVES, ProposalReason.LEADERS_TO_READERS))
"""Reasons that claim to save cross-rack bytes."""


def local_gain(predicted: PredictedEffect, unit: str = "partitions") -> tuple[float, float] | None:
    """(reads that become local by Kafka's measure, all reads) in that unit; None where not predicted."""
    before, after = _by_kafka(predicted.before, unit), _by_kafka(predicted.after, unit)
    return None if before is None or after is None else (after.local - before.local, before.total)


def copying_usd(predicted: PredictedEffect, limits: Limits) -> float | None:
    """The cost of copying when every byte crosses racks; None when bytes or price are unknown."""
    if predicted.bytes_to_move == 0:
        return 0.0
    if predicted.bytes_to_move is None or limits.price.usd_per_gb is None:
        return None
    return predicted.bytes_to_move / BYTES_PER_GB * max((limits.price.usd_per_gb, *limits.price.between.values()))


def _not_tried(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    """The same trigger again: the last rebalance did not change its preconditions."""
    if proposal.reason is not ProposalReason.REBALANCE_IMPROVES:
        return None
    window_ms = context.limits.execute.hysteresis_window_ms
    for entry in reversed(triggers(context.records.view, proposal.subject.name)):
        judged = entry.judgement
        lately = context.now_ms - entry.intended_ms < window_ms
        if (
            entry.proposal_id != proposal.id
            or judged is None
            or judged.verdict is TriggerVerdict.NOT_DONE
            or not lately
        ):
            continue
        ago = lasted(context.now_ms - entry.intended_ms)
        sentence = f"the same trigger was sent {ago} ago: {judged.verdict.value} ({judged.sentence})"
        return Hold(proposal.id, HoldReason.TRIED, sentence, entry.intended_ms + window_ms)
    return CheckPassed(f"the same trigger was not sent within {lasted(window_ms)}")


def _enough_gain(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    if proposal.reason not in SAVERS:
        return None
    limits = context.limits
    factor, lately = _margin(proposal, context)
    sentences: list[str] = []
    unit = "bytes_per_s" if _weighed(proposal) and proposal.kind is ProposalKind.TRIGGER else "partitions"
    home = local_gain(proposal.predicted, unit)
    if home is not None and unit == "bytes_per_s":
        least = limits.gain.min_share * home[1] * factor
        made, bound = sized_apart(home[0], least)
        sentences.append(f"it makes {made}/s of {sized(home[1])}/s local; the least gain is {bound}/s{lately}")
        if home[0] < least:
            return Hold(proposal.id, HoldReason.TOO_LITTLE_GAIN, sentences[-1])
    elif home is not None:
        least = max(float(limits.gain.min_partitions), limits.gain.min_share * home[1]) * factor
        of = counted(round(home[1]), "partition")
        sentences.append(f"it makes {home[0]:,.10g} of {of} local; the least gain is {least:.1f}{lately}")
        if home[0] < least:
            return Hold(proposal.id, HoldReason.TOO_LITTLE_GAIN, sentences[-1])
    if limits.gain.min_bytes_per_s > 0:
        saved, least = saved_bytes_per_s(proposal.predicted), limits.gain.min_bytes_per_s * factor
        if saved is None:
            sentence = f"the traffic across racks that it saves is unknown; the least gain is {sized(least)}/s{lately}"
            return Hold(proposal.id, HoldReason.TOO_LITTLE_GAIN, sentence)
        made, bound = sized_apart(saved, least)
        sentences.append(f"it saves {made}/s; the least gain is {bound}/s{lately}")
        if saved < least:
            return Hold(proposal.id, HoldReason.TOO_LITTLE_GAIN, sentences[-1])
    return CheckPassed("; ".join(sentences) or "no least gain is set")


def _pays_back(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    most_days = context.limits.execute.payback_days
    if proposal.reason not in SAVERS or most_days is None:
        return None
    cost, saved = copying_usd(proposal.predicted, context.limits), saved_usd_per_day(proposal.predicted)
    if cost == 0:
        return CheckPassed("it copies nothing, so there is nothing to pay back")
    if cost is None or saved is None:
        what = "its saving per day" if cost is not None else "the number of bytes it copies, or their price,"
        sentence = f"{what} is unknown, so its pay-back time is unknown (execute.payback_days)"
        return Hold(proposal.id, HoldReason.NO_PAYBACK, sentence)
    if saved <= 0:
        loss = f"it costs {usd(-saved)} a day more" if saved < 0 else "it saves nothing"
        sentence = f"copying costs up to {usd(cost)}, and {loss}"
        return Hold(proposal.id, HoldReason.NO_PAYBACK, sentence)
    days = cost / saved
    sentence = (
        f"copying costs up to {usd(cost)} and saves {usd(saved)} a day: "
        f"paid back in {lasted(days * DAY_MS)}, at most {lasted(most_days * DAY_MS)} are allowed"
    )
    return Hold(proposal.id, HoldReason.NO_PAYBACK, sentence) if days > most_days else CheckPassed(sentence)


def _cooldown_of_plans_over(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    """The cooldown of plans; triggers have their own among the refusals of groups."""
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return None
    cooldown_ms, last_ms = context.limits.execute.cooldown_ms, context.records.moved.get(proposal.subject.name)
    if last_ms is None:
        return CheckPassed(f"the journal has no ended plan of topic {proposal.subject.name}")
    left_ms = cooldown_ms - (context.now_ms - last_ms)
    ago = f"the last plan of topic {proposal.subject.name} ended {lasted(context.now_ms - last_ms)} ago"
    if left_ms <= 0:
        return CheckPassed(ago)
    sentence = f"{ago}, and the cooldown is {lasted(cooldown_ms)}"
    return Hold(proposal.id, HoldReason.COOLING_DOWN, sentence, context.now_ms + left_ms)


def _margin(proposal: Proposal, context: GuardContext) -> tuple[float, str]:
    """(factor, text) by which the least gain grows for a subject changed lately."""
    execute, name = context.limits.execute, proposal.subject.name
    if proposal.kind is ProposalKind.TRIGGER:
        last_ms = max(acted_at(context.records.view, name), default=None)
    else:
        last_ms = context.records.moved.get(name)
    if last_ms is None or context.now_ms - last_ms >= execute.hysteresis_window_ms:
        return 1.0, ""
    ago, more = lasted(context.now_ms - last_ms), f"{execute.hysteresis_share * 100:.0f} %"
    return 1 + execute.hysteresis_share, f" ({more} more than set: its last change or trigger was {ago} ago)"


def _weighed(proposal: Proposal) -> bool:
    return dict(proposal.evidence).get("basis") == FigureBasis.WEIGHTS.value


def _by_kafka(rows: tuple[Locality, ...], unit: str) -> Locality | None:
    return next((row for row in rows if row.measure is LocalityMeasure.KAFKA and row.unit == unit), None)


WORTH_CHECKS: tuple[Check, ...] = (_cooldown_of_plans_over, _not_tried, _enough_gain, _pays_back)
"""Gravest first."""
