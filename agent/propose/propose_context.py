"""The context of proposing: drafts with ids and dates, their preconditions, and forecasts of reads.

The preconditions are a digest of the facts that a proposal depends on: it is void when a fresh snapshot gives another
digest. Offsets, sizes and rates always change and are no part of it, nor is the ISR, which the guard checks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from agent.detect.assess_consumers import Reads
from agent.detect.detect_context import named
from agent.detect.traffic import current_reads, measured
from agent.plan.gain_thresholds import assessed_locality, group_rates
from agent.plan.leader_balance import groups_by_topic, readers_of
from agent.values.assessment import Assessment, DetectionResult, GroupLocality, Locality
from agent.values.cycle import basis_evidence
from agent.values.finding import Evidence, Finding, FindingReason, SubjectId
from agent.values.kafka import REPLICA_SELECTOR
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.number_format import lasted
from agent.values.proposal import (
    PlacementChange,
    PredictedEffect,
    Proposal,
    ProposalKind,
    ProposalMove,
    ProposalReason,
    ProposalRow,
)
from agent.values.rates import Flows, RackReads, bytes_per_s, read_flows, usd_per_day
from agent.values.snapshot import (
    ConsumerGroup,
    Member,
    Rack,
    RackState,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    TaskRole,
    TopicState,
    states_of,
)
from agent.values.weights import FigureBasis
from assignors.problem import TopicPartition

GONE = "gone"


def digest(facts: object) -> str:
    """16 hex digits of nested tuples of plain values; their order counts."""
    return hashlib.blake2b(repr(facts).encode(), digest_size=8).hexdigest()


def proposal_id(kind: str, subject: SubjectId, after: Iterable[ProposalRow], rests_on: str) -> str:
    """``p-`` and 12 hex digits, equal for agents with the same snapshot."""
    return "p-" + digest((kind, str(subject), [(row.key, tuple(row.value)) for row in after], rests_on))[:12]


class ProposalPreconditions:
    """The facts of one snapshot that its proposals depend on."""

    def __init__(self, snapshot: Snapshot, memo: Memo, assessments: Mapping[str, Assessment] | None = None) -> None:
        self.snapshot = snapshot
        self.memo = memo
        self.assessments = assessments or {}

    @cached_property
    def readers(self) -> Mapping[str, list[ReaderGroup]]:
        """Topic -> the groups that read it."""
        return groups_by_topic(self.snapshot, self.memo)

    def topics(self, group_id: str) -> tuple[str, ...]:
        """The topics of a group that the snapshot has."""
        group = self.snapshot.groups.get(group_id)
        if not isinstance(group, ReaderGroup):
            return ()
        return tuple(self._ground(group).masks)

    def hash(
        self, reason: ProposalReason, subject: SubjectId, before: Iterable[ProposalRow], after: Iterable[ProposalRow]
    ) -> str:
        """Digest of what a proposal of that reason about that subject rests on."""
        before, after = tuple(before), tuple(after)
        match reason:
            case ProposalReason.MEND_RACK_SPREAD | ProposalReason.LEADERS_EVEN:
                facts = self._replicas(subject.name, before, after)
            case ProposalReason.LEADERS_TO_READERS:
                facts = (
                    self.snapshot.selector_is_rack_aware,
                    self._replicas(subject.name, before, after),
                    self._readers(subject.name, {row.key for row in before}),
                )
            case ProposalReason.REBALANCE_IMPROVES:
                facts = self._assignment(subject.name)
            case ProposalReason.WARMUP_PROMOTABLE:
                facts = self._warmups(subject.name)
            case _:
                facts = self._settings(reason, subject)
        return digest((self.snapshot.cluster_id, reason.name, str(subject), facts))

    def _replicas(self, topic_name: str, before: tuple[ProposalRow, ...], after: tuple[ProposalRow, ...]) -> object:
        """The topic's identity, the replica lists concerned, and every broker that is named before or after."""
        topic = self.snapshot.topics.get(topic_name)
        if topic is None:
            return GONE
        keys = {row.key for row in before}
        lists = {str(state.id): state.replicas for state in topic.partitions}
        named = {broker for row in (*before, *after) for broker in row.value}
        moving = sorted(str(tp) for tp in self.snapshot.reassignments if tp.topic == topic_name and str(tp) in keys)
        return (
            topic.topic_id,
            [(key, lists.get(key, GONE)) for key in sorted(keys)],
            [(b.id, _rack(b.rack), b.alive, b.fenced, b.cordoned) for b in self.snapshot.brokers if b.id in named],
            moving,
        )

    def _readers(self, topic_name: str, keys: set[str]) -> object:
        topic = self.snapshot.topics.get(topic_name)
        if topic is None:
            return GONE
        readers = readers_of(topic, self.readers.get(topic_name, ()))
        return [(str(tp), of.by_rack, of.unknown) for tp, of in readers.items() if str(tp) in keys]

    def _assignment(self, group_id: str) -> object:
        """Members with racks and assignment, and the racks of the replicas that they read."""
        group = self.snapshot.groups.get(group_id)
        if not isinstance(group, ReaderGroup):
            return GONE
        members = (
            [(member.id, _rack(member.rack), _names(member)) for member in group.members]
            if isinstance(group, ConsumerGroup)
            else [(process.id, _rack(process.rack), process.capacity, process.active) for process in group.processes]
        )
        return (group.kind.value, group.assignor, members, _places(self._ground(group)))

    def _ground(self, group: ReaderGroup) -> GroupLocality:
        return assessed_locality(group, self.assessments.get(group.id), self.snapshot, self.memo)

    def _warmups(self, group_id: str) -> object:
        """Active tasks by process, and warm-ups that have caught up."""
        group = self.snapshot.groups.get(group_id)
        if not isinstance(group, StreamsGroup):
            return GONE
        ready = sorted(
            (copy.process_id, str(copy.task))
            for copy in self.snapshot.copies.get(group_id, ())
            if copy.role is TaskRole.WARMUP and copy.caught_up
        )
        runs = [(process.id, [str(task) for task in process.active]) for process in group.processes]
        return (group.kind.value, runs, ready)

    def _settings(self, reason: ProposalReason, subject: SubjectId) -> object:
        """The present value of the advised setting, and the racks to choose from."""
        racks = sorted({str(_rack(broker.rack)) for broker in self.snapshot.brokers})
        match reason:
            case ProposalReason.SET_BROKER_RACK:
                return [(broker.id, _rack(broker.rack)) for broker in self.snapshot.brokers]
            case ProposalReason.SET_SELECTOR:
                configs = self.snapshot.broker_configs
                return [(broker, of.get(REPLICA_SELECTOR)) for broker, of in sorted(configs.items())]
            case ProposalReason.REMOVE_THROTTLE:
                every = self._throttles
                return list(every.items()) if subject.kind == "cluster" else every.get(str(subject), GONE)
            case _:
                return (racks, self._clients(reason, subject))

    @cached_property
    def _throttles(self) -> Mapping[str, object]:
        """``topic/name`` or ``broker/id`` -> its throttles."""
        topics = {
            f"topic/{name}": (of.topic_id, of.leader_throttle, of.follower_throttle)
            for name, of in self.snapshot.topics.items()
        }
        return topics | {
            f"broker/{broker}": sorted(one for one in of.items() if "throttled" in one[0] or "alter.log" in one[0])
            for broker, of in sorted(self.snapshot.broker_configs.items())
        }

    def _clients(self, reason: ProposalReason, subject: SubjectId) -> object:
        group = self.snapshot.groups.get(subject.name)
        if not isinstance(group, ReaderGroup):
            return GONE
        match reason:
            case ProposalReason.SET_CLIENT_RACK | ProposalReason.UPGRADE_CLIENT | ProposalReason.USE_DROP_IN_ASSIGNOR:
                return sorted({(m.client_id, _rack(m.rack), m.subscription_version) for m in group.members}, key=repr)
            case ProposalReason.SET_STANDBYS if isinstance(group, StreamsGroup):
                return sorted({(process.tags, _rack(process.rack)) for process in group.processes}, key=repr)
            case _:
                return (group.kind.value, group.assignor)


_OF_REPLICAS = (ProposalKind.REASSIGN, ProposalKind.LEADERS)


def rests_on_brokers(proposal: Proposal) -> bool:
    """Whether it depends on live brokers. A warm-up that has caught up is promoted all the same."""
    return proposal.kind in _OF_REPLICAS or proposal.reason is ProposalReason.REBALANCE_IMPROVES


def touched_brokers(proposal: Proposal, preconditions: ProposalPreconditions) -> frozenset[int]:
    """The brokers in its rows, or those with replicas of its group's topics."""
    if proposal.kind in _OF_REPLICAS:
        return frozenset(
            broker for row in (*proposal.before, *proposal.after) for broker in row.value if isinstance(broker, int)
        )
    if proposal.kind is not ProposalKind.TRIGGER:
        return frozenset()
    topics = [preconditions.snapshot.topics[name] for name in preconditions.topics(proposal.subject.name)]
    return frozenset(broker for topic in topics for state in topic.partitions for broker in state.replicas)


def _rack(rack: Rack) -> str | None:
    """A known rack's name; None for an unknown one; the claims of a conflicting one."""
    return rack.name if rack.state is not RackState.CONFLICTING else "|".join(rack.claims)


def _names(member: Member) -> list[str] | None:
    return None if member.assigned is None else [f"{topic}-{number}" for topic, number in member.assigned]


def _places(locality: GroupLocality) -> object:
    """Replica racks of every partition; where no selector is rack-aware, the leaders' racks too."""
    by_leader = locality.bits.selector_is_rack_aware is False
    return (
        locality.bits.selector_is_rack_aware,
        sorted(locality.bits.bit_of.items()),
        [(topic, of.kafka, of.read if by_leader else ()) for topic, of in locality.masks.items()],
    )


class ProposeContext(NamedTuple):
    """The snapshot, its findings, and caches of the cycle."""

    snapshot: Snapshot
    detection: DetectionResult
    limits: Limits
    memo: Memo
    preconditions: ProposalPreconditions
    racks: Mapping[int, str]
    """Broker -> rack, brokers of known rack only."""


class ProposalDraft(NamedTuple):
    """A proposal before it has an id, a digest and a date: all that depends on its subject alone."""

    kind: ProposalKind
    reason: ProposalReason
    subject: SubjectId
    sentence: str
    before: tuple[ProposalRow, ...]
    after: tuple[ProposalRow, ...]
    moves: tuple[ProposalMove, ...]
    predicted: PredictedEffect
    evidence: Evidence
    findings: tuple[str, ...]
    lower_bound: float | None = None
    optimal: bool | None = None
    line: str | None = None
    placements: tuple[PlacementChange, ...] = ()
    basis: FigureBasis | None = None
    """Basis of its figures; None where nothing is claimed in reads or bytes."""


def propose_context(
    snapshot: Snapshot, detection: DetectionResult, limits: Limits, memo: Memo | None
) -> ProposeContext:
    """The context of one cycle."""
    memo = memo or Memo()
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None}
    return ProposeContext(
        snapshot, detection, limits, memo, ProposalPreconditions(snapshot, memo, detection.assessments), racks
    )


class UndatedProposal(NamedTuple):
    """A proposal with id and digest, but without dates; unchanged for as long as its subject is."""

    proposal: Proposal
    basis: FigureBasis | None


def undated(draft: ProposalDraft, rests_on: str) -> UndatedProposal:
    """The draft with its id and the digest of what it rests on."""
    proposal = Proposal(
        id=proposal_id(draft.kind.value, draft.subject, draft.after, rests_on),
        kind=draft.kind,
        reason=draft.reason,
        subject=draft.subject,
        sentence=draft.sentence,
        before=draft.before,
        after=draft.after,
        moves=draft.moves,
        predicted=draft.predicted,
        lower_bound=draft.lower_bound,
        optimal=draft.optimal,
        evidence=draft.evidence,
        findings=draft.findings,
        snapshot_hash=rests_on,
        created_ms=0,
        expires_ms=0,
        line=draft.line,
        placements=draft.placements,
    )
    return UndatedProposal(proposal, draft.basis)


def basis_ages(snapshot: Snapshot) -> Mapping[FigureBasis | None, Evidence]:
    """Basis of figures -> its rows of evidence in this cycle."""
    return {None: (), **{basis: basis_evidence(basis, snapshot) for basis in FigureBasis}}


def proposal_at(made: UndatedProposal, created_ms: int, ttl_ms: int, evidence: Evidence = ()) -> Proposal:
    """The proposal, made at ``created_ms`` (epoch milliseconds) and good for ``ttl_ms`` milliseconds."""
    one = made.proposal
    return one._replace(evidence=(*one.evidence, *evidence), created_ms=created_ms, expires_ms=created_ms + ttl_ms)


def finished(draft: ProposalDraft, rests_on: str, snapshot: Snapshot, limits: Limits) -> Proposal:
    """The draft with its id, digest and dates."""
    made = undated(draft, rests_on)
    evidence = () if made.basis is None else basis_evidence(made.basis, snapshot)
    return proposal_at(made, snapshot.taken_ms, limits.proposals.ttl_ms, evidence)


class ForecastInput(NamedTuple):
    """A group with the racks of its replicas, its present reads and the rates of its partitions."""

    group: ReaderGroup
    ground: GroupLocality
    topics: tuple[TopicState, ...]
    rates: Mapping[TopicPartition, float] | None
    """Read rates of the group's partitions; None when one of them is unknown."""
    now: Reads
    """Present reads."""


def work_of(group: ReaderGroup, context: ProposeContext) -> ForecastInput:
    """The forecast's input for a group."""
    locality = assessed_locality(group, context.detection.assessments.get(group.id), context.snapshot, context.memo)
    topics = tuple([context.snapshot.topics[name] for name in locality.masks])
    rates = group_rates(context.detection.assessments.get(group.id), topics, context.snapshot)
    return ForecastInput(group, locality, topics, rates, current_reads(group, locality))


def forecast(
    work: ForecastInput, then: Reads, *, moves: int, bytes_to_move: int | None, context: ProposeContext
) -> PredictedEffect:
    """Shares, cross-rack bytes and money of the group's reads, now and then."""
    before, after = _state(work, work.now, context), _state(work, then, context)
    return PredictedEffect(
        before=before[0],
        after=after[0],
        cross_rack_bytes_per_s_before=bytes_per_s(before[1]),
        cross_rack_bytes_per_s_after=bytes_per_s(after[1]),
        usd_per_day_before=usd_per_day(before[1], context.limits),
        usd_per_day_after=usd_per_day(after[1], context.limits),
        moves=moves,
        bytes_to_move=bytes_to_move,
    )


def _state(work: ForecastInput, reads: Reads, context: ProposeContext) -> tuple[tuple[Locality, ...], Flows | None]:
    rates = work.rates or {}
    covered = all(p.topic in work.ground.masks for _, partitions in reads for p in partitions)
    shares = measured(reads, work.ground.masks, rates) if covered else ()
    if work.rates is None:
        return shares, None
    names = {bit: name for name, bit in work.ground.bits.bit_of.items()}
    rows = [
        # A rack without brokers has no name here, but it is known, and known to be none of theirs.
        RackReads(partition, names.get(bit, "elsewhere") if bit else None)
        for bit, partitions in reads
        for partition in partitions
    ]
    states = states_of(work.topics)
    selector = work.ground.bits.selector_is_rack_aware
    return shares, read_flows(rows, states, context.racks, rates, selector=selector)


# Proposals that touch an absent broker: a restart takes it away for a while, so the sentence has the absence's age.


def with_absences(proposals: tuple[Proposal, ...], context: ProposeContext) -> tuple[Proposal, ...]:
    """The same proposals; those that touch an absent broker name it at the end of their sentence."""
    absent = (finding for finding in context.detection.findings if finding.reason is FindingReason.BROKER_ABSENT)
    found = {finding.broker: finding for finding in absent if finding.broker is not None}
    if not found:
        return proposals
    return tuple([_with_absence(proposal, found, context) for proposal in proposals])


def _with_absence(proposal: Proposal, found: Mapping[int, Finding], context: ProposeContext) -> Proposal:
    away = sorted(found.keys() & touched_brokers(proposal, context.preconditions)) if rests_on_brokers(proposal) else []
    if not away:
        return proposal
    evidence = [dict(found[broker].evidence) for broker in away]
    ages = [facts["absent_s"] for facts in evidence]
    known = [age for age in ages if isinstance(age, int)]
    many = len(away) > 1
    if all(facts.get("removed in this simulation") for facts in evidence):
        words = f"{'are' if many else 'is'} removed in this simulation"
    elif len(known) == len(ages):
        words = f"{'have' if many else 'has'} been absent for {lasted(min(known) * 1_000)}{' or more' if many else ''}"
    else:
        until = lasted(context.limits.racks.broker_absent_for_ms)
        words = f"{'are' if many else 'is'} absent now: an agent holds this until that has lasted {until}"
    return proposal._replace(
        sentence=f"{proposal.sentence}; {named('broker', away)} {words}",
        evidence=(*proposal.evidence, ("absent_brokers", tuple(away))),
    )
