"""What ends a cost across racks: an open proposal, else what a finding names, else the command that explains it.

A proposal that raises the bill ends no cost. Of several others the one with the largest predicted gain counts, then the
one nearest to the reader: a group's own before a topic's, before one of brokers. What a topic's replication costs, no
setting of a reader ends.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import NamedTuple

from agent.values.finding import FindingReason, ends_by
from agent.values.proposal import ProposalKind, ProposalReason
from config.foreign_text import harmless
from pipeline.report.advice import reason_of, todo
from pipeline.report.facts import OpenFinding, OpenProposal, ProposalText, ReportFacts, TopicCost
from pipeline.report.summaries import CONSUME

_REPLICATE = "replicate"
_ENDS = {
    CONSUME: (
        ProposalReason.SET_CLIENT_RACK,
        ProposalReason.UPGRADE_CLIENT,
        ProposalReason.USE_DROP_IN_ASSIGNOR,
        ProposalReason.CHANGE_ASSIGNOR,
        ProposalReason.SET_STRATEGY,
        ProposalReason.REBALANCE_IMPROVES,
        ProposalReason.LEADERS_TO_READERS,
        ProposalReason.MEND_RACK_SPREAD,
        ProposalReason.SET_SELECTOR,
        ProposalReason.SET_BROKER_RACK,
    ),
    _REPLICATE: (ProposalReason.MEND_RACK_SPREAD,),
}
"""Path -> the reasons of proposals that can end what it costs, the nearest to the reader first."""
_FINDINGS = {
    CONSUME: frozenset(
        {
            FindingReason.MEMBER_WITHOUT_RACK,
            FindingReason.MEMBER_IN_NO_BROKERS_RACK,
            FindingReason.SUBSCRIPTION_TOO_OLD,
            FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM,
            FindingReason.ASSIGNOR_WOULD_NOT_FIX,
            FindingReason.GROUP_KIND_IGNORES_RACKS,
            FindingReason.RACK_AWARENESS_OFF,
            FindingReason.MIXED_VERSIONS,
            FindingReason.REPLICAS_SHARE_RACK,
            FindingReason.SELECTOR_NOT_RACK_AWARE,
            FindingReason.BROKER_RACK_MISSING,
        }
    ),
    _REPLICATE: frozenset({FindingReason.REPLICAS_SHARE_RACK}),
}
"""Path -> the reasons of findings whose end can end what it costs."""

_MOST_LINES = 3
_SEE = {
    CONSUME: "See why its reads cross racks",
    _REPLICATE: "See why its copies cross racks",
    "": "See why what producers send crosses racks",
}


class CostRemedy(NamedTuple):
    """What ends the cost of some groups and topics of a cluster."""

    cluster: str
    todo: str
    """An imperative."""
    command: str
    """A command, or the line of a configuration."""
    proposal: OpenProposal | None = None
    findings: tuple[OpenFinding, ...] = ()


class RemedyBook:
    """The open proposals and findings, by their subjects."""

    def __init__(self, facts: ReportFacts) -> None:
        self._texts = {(row.cluster, row.proposal): row for row in facts.texts}
        self._proposals: dict[tuple[str, str], list[OpenProposal]] = defaultdict(list)
        for proposal in facts.standing:
            self._proposals[proposal.cluster, _about(proposal.subject)].append(proposal)
        self._findings: dict[tuple[str, str], list[OpenFinding]] = defaultdict(list)
        self._by_id: dict[tuple[str, str], OpenFinding] = {}
        for finding in facts.findings:
            self._findings[finding.cluster, _about(finding.subject)].append(finding)
            self._by_id[finding.cluster, finding.id] = finding

    def of(self, cost: TopicCost) -> CostRemedy:
        """The remedy of one cost."""
        topic = f"topic/{cost.topic}"
        subjects = (f"group/{cost.group}", topic, "") if cost.path == CONSUME else (topic,)
        known = _ENDS.get(cost.path, ())
        able = [
            (known.index(reason), proposal)
            for subject in subjects
            for proposal in self._proposals.get((cost.cluster, subject), ())
            if (reason := reason_of(proposal)) in known and (proposal.predicted_usd_per_day or 0.0) >= 0.0
        ]
        if able:
            _, best = min(able, key=lambda one: (-(one[1].predicted_usd_per_day or 0.0), one[0], one[1].proposal))
            return self._of_proposal(best)
        return self._without(cost, subjects)

    def _of_proposal(self, proposal: OpenProposal) -> CostRemedy:
        key = proposal.cluster, proposal.proposal
        text = self._texts.get(key, ProposalText(*key, line=None, findings=()))
        found = (self._by_id.get((proposal.cluster, one)) for one in text.findings)
        answered = tuple(one for one in found if one is not None)
        return CostRemedy(proposal.cluster, todo(proposal), _command(proposal, text.line), proposal, answered)

    def _without(self, cost: TopicCost, subjects: tuple[str, ...]) -> CostRemedy:
        """What the findings of the first subject with any name, else the command that says why the cost is there."""
        known = _FINDINGS.get(cost.path, frozenset())
        of_subjects = (self._findings.get((cost.cluster, subject), ()) for subject in subjects)
        found = next(filter(None, ([row for row in rows if _reason(row) in known] for rows in of_subjects)), [])
        said = next((ends_by(reason) for row in found if (reason := _reason(row)) is not None), "")
        explained = f"rackwise explain {shlex.quote(harmless(subjects[0]))}"
        return CostRemedy(cost.cluster, said or _SEE.get(cost.path, _SEE[""]), explained, None, tuple(found))


def _about(subject: str | None) -> str:
    """The subject; empty for a broker or the cluster, which every group reads from."""
    return "" if subject is None or subject.partition("/")[0] in {"cluster", "broker"} else subject


def _reason(finding: OpenFinding) -> FindingReason | None:
    """The reason, which telemetry has by its name; None for one that only a newer agent knows."""
    return FindingReason.__members__.get(finding.reason or "")


def _command(proposal: OpenProposal, line: str | None) -> str:
    """The lines to set, else the command that carries it out or shows it."""
    lines = (line or "").splitlines()
    name = shlex.quote(harmless(proposal.proposal))
    if proposal.kind == ProposalKind.ADVISE:
        return "; ".join(lines) if 0 < len(lines) <= _MOST_LINES else f"rackwise explain {name}"
    return f"rackwise proposals approve {name}"
