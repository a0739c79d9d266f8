"""What a proposal says of absent brokers: it moves replicas or leaders, or work towards them, as they are without one.

A restart takes a broker away for a while. A proposal that rests on the absence says how long it has lasted; made from
one look it also says until when an agent holds it.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.detect.words import named
from agent.propose.rests import Rests
from agent.propose.scene import Scene
from agent.values.finding import Finding, FindingReason
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from agent.values.words import lasted

_OF_REPLICAS = (ProposalKind.REASSIGN, ProposalKind.LEADERS)


def telling_absences(proposals: tuple[Proposal, ...], scene: Scene) -> tuple[Proposal, ...]:
    """The same proposals; those that touch an absent broker name it at the end of their sentence."""
    found = {
        int(finding.subject.name): finding
        for finding in scene.detection.findings
        if finding.reason is FindingReason.BROKER_ABSENT
    }
    if not found:
        return proposals
    return tuple([_telling(proposal, found, scene) for proposal in proposals])


def rests_on_brokers(proposal: Proposal) -> bool:
    """Whether another broker might make it another proposal. A warm-up that has caught up is promoted all the same."""
    return proposal.kind in _OF_REPLICAS or proposal.reason is ProposalReason.REBALANCE_IMPROVES


def touched_brokers(proposal: Proposal, rests: Rests) -> frozenset[int]:
    """The brokers that it names, or that hold what its group reads."""
    if proposal.kind in _OF_REPLICAS:
        return frozenset(
            broker for row in (*proposal.before, *proposal.after) for broker in row.value if isinstance(broker, int)
        )
    if proposal.kind is not ProposalKind.TRIGGER:
        return frozenset()
    topics = [rests.snapshot.topics[name] for name in rests.topics(proposal.subject.name)]
    return frozenset(broker for topic in topics for state in topic.partitions for broker in state.replicas)


def _telling(proposal: Proposal, found: Mapping[int, Finding], scene: Scene) -> Proposal:
    away = sorted(found.keys() & touched_brokers(proposal, scene.rests)) if rests_on_brokers(proposal) else []
    if not away:
        return proposal
    evidence = [dict(found[broker].evidence) for broker in away]
    ages = [told["absent_s"] for told in evidence]
    known = [age for age in ages if isinstance(age, int)]
    many = len(away) > 1
    if all(told.get("removed in this simulation") for told in evidence):
        words = f"{'are' if many else 'is'} removed in this simulation"
    elif len(known) == len(ages):
        words = f"{'have' if many else 'has'} been absent for {lasted(min(known) * 1_000)}{' or more' if many else ''}"
    else:
        until = lasted(scene.limits.racks.broker_absent_for_ms)
        words = f"{'are' if many else 'is'} absent now: an agent holds this until that has lasted {until}"
    return proposal._replace(
        sentence=f"{proposal.sentence}; {named('broker', away)} {words}",
        evidence=(*proposal.evidence, ("absent_brokers", tuple(away))),
    )
