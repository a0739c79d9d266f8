"""Preconditions of proposals: a digest of the facts that a proposal depends on, and the proposal's id.

A proposal is void when a fresh snapshot gives another digest. Offsets, sizes and rates always change and are no part
of it, nor is the ISR, which the guard checks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property

from agent.plan.gain_thresholds import assessed_locality
from agent.plan.leader_balance import groups_by_topic, readers_of
from agent.values.assessment import Assessment, GroupLocality
from agent.values.finding import SubjectId
from agent.values.kafka import REPLICA_SELECTOR
from agent.values.memo import Memo
from agent.values.proposal import Proposal, ProposalKind, ProposalReason, ProposalRow
from agent.values.snapshot import (
    ConsumerGroup,
    Member,
    Rack,
    RackState,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    TaskRole,
)

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
