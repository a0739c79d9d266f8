"""The change that an open proposal makes, as an imperative."""

from __future__ import annotations

from agent.values.proposal import ProposalReason
from pipeline.report import words
from pipeline.report.facts import OpenProposal

_ADVICE = {
    ProposalReason.MEND_RACK_SPREAD: "Move replicas of {}, so that no rack holds more copies than it must",
    ProposalReason.LEADERS_TO_READERS: "Give {} leaders in the racks of its readers",
    ProposalReason.LEADERS_EVEN: "Spread the preferred leaders of {} evenly over the racks",
    ProposalReason.WARMUP_PROMOTABLE: "Rebalance {} once, its warm-ups have caught up",
    ProposalReason.REBALANCE_IMPROVES: "Rebalance {} once",
    ProposalReason.SET_CLIENT_RACK: "Set client.rack for {}",
    ProposalReason.SET_BROKER_RACK: "Set broker.rack of {}",
    ProposalReason.SET_SELECTOR: "Set replica.selector.class of {}, so that reads stay in the rack",
    ProposalReason.CHANGE_ASSIGNOR: "Change the assignor of {} to a rack-aware one",
    ProposalReason.SET_STRATEGY: "Set rack.aware.assignment.strategy of {}",
    ProposalReason.SET_STANDBYS: "Spread the standbys of {} over the racks",
    ProposalReason.UPGRADE_CLIENT: "Upgrade the clients of {}, they are too old to send their rack",
    ProposalReason.USE_DROP_IN_ASSIGNOR: "Give the clients of {} a rack-aware assignor, see docs/clients.md",
    ProposalReason.REMOVE_THROTTLE: "Remove the leftover throttle on {}",
}


def todo(row: OpenProposal) -> str:
    """The proposal's change, as an imperative."""
    subject, reason = subject_of(row.subject), reason_of(row)
    return f"Check proposal {row.proposal} about {subject}" if reason is None else _ADVICE[reason].format(subject)


def reason_of(row: OpenProposal) -> ProposalReason | None:
    """The proposal's reason, which telemetry has by its name; None for one that only a newer agent knows."""
    return ProposalReason.__members__.get((row.reason or "").upper())


def subject_of(subject: str | None) -> str:
    """``group/billing`` in words."""
    kind, _, name = (subject or "").partition("/")
    return f"{kind} {words.short(name)}" if name else "the cluster"
