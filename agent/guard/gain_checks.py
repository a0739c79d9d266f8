"""Checks of gain: least gain, hysteresis, pay-back and cooldown. Pure.

Repairs of rack spread pass whatever they cost. A claimed gain that is unknown is held.
"""

from __future__ import annotations

from agent.guard.guard_context import DAY_MS, Check, GuardContext
from agent.journal.triggers import TriggerVerdict, acted_at, triggers
from agent.values.assessment import Locality, LocalityMeasure
from agent.values.limits import Limits
from agent.values.number_format import counted, lasted, sized, sized_apart, usd
from agent.values.proposal import (
    PredictedEffect,
    Proposal,
    ProposalKind,
    ProposalReason,
    saved_bytes_per_s,
    saved_usd_per_day,
)
from agent.values.rates import BYTES_PER_GB
from agent.values.verdict import CheckPassed, Hold, HoldReason
from agent.values.weights import FigureBasis

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
        sentence = f"held: the same trigger was sent {ago} ago: {judged.verdict.value} ({judged.sentence})"
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
            return Hold(proposal.id, HoldReason.TOO_LITTLE_GAIN, f"held: {sentences[-1]}")
    elif home is not None:
        least = max(float(limits.gain.min_partitions), limits.gain.min_share * home[1]) * factor
        of = counted(round(home[1]), "partition")
        sentences.append(f"it makes {home[0]:,.10g} of {of} local; the least gain is {least:.1f}{lately}")
        if home[0] < least:
            return Hold(proposal.id, HoldReason.TOO_LITTLE_GAIN, f"held: {sentences[-1]}")
    if limits.gain.min_bytes_per_s > 0:
        saved, least = saved_bytes_per_s(proposal.predicted), limits.gain.min_bytes_per_s * factor
        if saved is None:
            sentence = (
                f"held: the traffic across racks that it saves is unknown; the least gain is {sized(least)}/s{lately}"
            )
            return Hold(proposal.id, HoldReason.TOO_LITTLE_GAIN, sentence)
        made, bound = sized_apart(saved, least)
        sentences.append(f"it saves {made}/s; the least gain is {bound}/s{lately}")
        if saved < least:
            return Hold(proposal.id, HoldReason.TOO_LITTLE_GAIN, f"held: {sentences[-1]}")
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
        sentence = f"held: {what} is unknown, so its pay-back time is unknown (execute.payback_days)"
        return Hold(proposal.id, HoldReason.NO_PAYBACK, sentence)
    if saved <= 0:
        loss = f"it costs {usd(-saved)} a day more" if saved < 0 else "it saves nothing"
        sentence = f"held: copying costs up to {usd(cost)}, and {loss}"
        return Hold(proposal.id, HoldReason.NO_PAYBACK, sentence)
    days = cost / saved
    sentence = (
        f"copying costs up to {usd(cost)} and saves {usd(saved)} a day: "
        f"paid back in {lasted(days * DAY_MS)}, at most {lasted(most_days * DAY_MS)} are allowed"
    )
    return Hold(proposal.id, HoldReason.NO_PAYBACK, f"held: {sentence}") if days > most_days else CheckPassed(sentence)


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
    sentence = f"held: {ago}, and the cooldown is {lasted(cooldown_ms)}"
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
