"""Findings about assignors that ignore racks: by their kind, by a setting, or for a missing condition.

KIP-881: some member has a rack, some replica has one of these racks, not every partition has a replica in every rack.
KIP-925: a strategy, one rack per process, source topics (with standbys changelogs too) with racks of all replicas.
Replicas of an absent broker have no rack here, as in the clients. One finding per group with every visible cause; none
where all racks have all partitions and brokers serve the nearest replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter, itemgetter
from typing import NamedTuple

from agent.detect.assess import topics_by_group
from agent.detect.detect_context import BrokerRacks, DetectContext, named
from agent.values import kafka
from agent.values.assessment import Assessment
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.kafka import NO_STRATEGY, RACK_AWARE_ASSIGNORS, RACK_BLIND_ASSIGNORS, RANGE
from agent.values.limits import GroupLimits
from agent.values.memo import Memo, each
from agent.values.number_format import listed
from agent.values.snapshot import (
    COORDINATOR_KINDS,
    ConsumerGroup,
    Group,
    Rack,
    RackState,
    ReaderGroup,
    StreamsGroup,
    TopicState,
    is_assigned_blindly,
    runs_plugin,
)

_ID = itemgetter(0)
_REPLICAS = attrgetter("replicas")


class TopicFacts(NamedTuple):
    """A topic's replica racks as clients see them: absent brokers have none."""

    racks: frozenset[str]
    """All racks that hold a replica."""
    everywhere: bool
    """True when every partition has a replica in each of these racks."""
    rackless: tuple[int, ...]
    """Brokers that hold replicas and show clients no rack, sorted."""
    unsteady: bool
    """True when a replica is on a broker whose rack is not steady."""
    size: int = 0
    """Partitions it has, counted to the highest number."""


class GroupTopicFacts(NamedTuple):
    """The topics of a group with their facts."""

    topics: tuple[str, ...]
    facts: tuple[TopicFacts | None, ...]
    """One per topic; None for a topic that is not shown."""
    changelogs: tuple[str, ...] = ()
    changelog_facts: tuple[TopicFacts | None, ...] = ()

    @property
    def shown(self) -> list[TopicFacts]:
        """The facts of the source topics that are shown."""
        return [facts for facts in self.facts if facts is not None]

    @property
    def unsteady(self) -> bool:
        """True when something that the group reads rests on a rack that does not hold still."""
        return any(facts.unsteady for facts in self.shown)


def readings(view: DetectContext, memo: Memo) -> list[GroupTopicFacts]:
    """Topics of every group, in the snapshot's order."""
    snapshot, brokers = view.snapshot, view.broker_racks
    known = memo.of(("facts",), (snapshot.topics, brokers), lambda: _facts(snapshot.topics, brokers, memo))

    names = topics_by_group(snapshot, memo)

    def read(group: Group) -> GroupTopicFacts:
        topics, logs = names[group.id], _changelogs(group)
        return GroupTopicFacts(topics, tuple(map(known.get, topics)), logs, tuple(map(known.get, logs)))

    return each(memo, "readings", snapshot.groups.values(), _ID, read, context=(known,))


def _facts(topics: Mapping[str, TopicState], brokers: BrokerRacks, memo: Memo) -> dict[str, TopicFacts]:
    facts = each(memo, "topic facts", topics.values(), _ID, _facts_on(brokers), context=(brokers,))
    return dict(zip(topics, facts, strict=True))


def _changelogs(group: Group) -> tuple[str, ...]:
    if not isinstance(group, StreamsGroup) or group.topology is None:
        return ()
    return tuple(sorted({changelog.topic for task in group.topology.tasks for changelog in task.changelogs}))


class _Seen(NamedTuple):
    racks: frozenset[str]
    rackless: tuple[int, ...]
    unsteady: bool


class _RackNumbers(dict[tuple[int, ...], int]):
    """Replica list -> number of its racks: many lists have the same few racks."""

    __slots__ = ("_brokers", "_numbers")

    def __init__(self, brokers: BrokerRacks) -> None:
        super().__init__()
        self._brokers = brokers
        self._numbers: dict[_Seen, int] = {}

    def __missing__(self, replicas: tuple[int, ...]) -> int:
        shown, unsteady = self._brokers.metadata_racks, self._brokers.unsteady
        seen = _Seen(
            frozenset([shown[replica] for replica in replicas if replica in shown]),
            tuple([replica for replica in replicas if replica not in shown]),
            not unsteady.isdisjoint(replicas),
        )
        number = self[replicas] = self._numbers.setdefault(seen, len(self._numbers))
        return number

    def together(self, numbers: frozenset[int], size: int) -> TopicFacts:
        """The facts of a topic whose partitions have these rack numbers."""
        all_seen = list(self._numbers)
        seen = [all_seen[number] for number in numbers]
        union = frozenset().union(*[one.racks for one in seen])
        return TopicFacts(
            union,
            bool(union) and all(one.racks == union for one in seen),
            tuple(sorted({broker for one in seen for broker in one.rackless})),
            any(one.unsteady for one in seen),
            size,
        )


def _facts_on(brokers: BrokerRacks) -> Callable[[TopicState], TopicFacts]:
    rack_numbers = _RackNumbers(brokers)
    by_numbers: dict[tuple[frozenset[int], int], TopicFacts] = {}
    same: dict[TopicFacts, TopicFacts] = {}  # thousands of topics have equal facts

    def facts(topic: TopicState) -> TopicFacts:
        numbers = frozenset(map(rack_numbers.__getitem__, map(_REPLICAS, topic.partitions)))
        key = numbers, topic.partitions[-1].id.partition + 1 if topic.partitions else 0
        found = by_numbers.get(key)
        if found is None:
            found = rack_numbers.together(*key)
            found = by_numbers[key] = same.setdefault(found, found)
        return found

    return facts


ALL_EQUAL = (
    "every partition has a replica in the same racks, so all choices cost the same, although reads go to leaders"
)


class RackBlindCause(StrEnum):
    """Why racks play no part in an assignment, as the evidence of a finding names it."""

    ASSIGNOR = "assignor"
    """The assignor, the strategy or the kind of the group does not look at racks."""
    CLIENT_RACK = kafka.CLIENT_RACK
    BROKER_RACK = kafka.BROKER_RACK
    BROKER_ABSENT = "broker absent"
    REPLICAS_ELSEWHERE = "no replica in the racks of the members"
    THREADS_DIFFER = "racks differ within a process"
    MIXED_VERSIONS = "metadata of mixed versions"
    TOPIC_HIDDEN = "topic not described"
    SELECTOR = "reads go to leaders"


class _Cause(NamedTuple):
    kind: RackBlindCause
    sentence: str


def awareness_findings(
    group: ReaderGroup, racks: Iterable[Rack], reading: GroupTopicFacts, assessment: Assessment, view: DetectContext
) -> list[Finding]:
    """Why the group's assignor does not look at racks; empty when it does, or when that is unknown.

    ``racks`` are those of the group's members.
    """
    if not view.broker_racks.racks_matter or group.hidden or not group.members:
        return []
    if is_assigned_blindly(group):
        return [_kind_ignores(group, assessment, view)]
    if runs_plugin(group) or _nothing_to_gain(group, reading, view):
        return []
    if isinstance(group, StreamsGroup):
        causes = list(_streams_causes(group, reading, view.limits.group(group.id), view))
    else:
        causes = list(_consumer_causes(group, racks, reading, view))
    if not causes and view.broker_racks.selector is False and _all_equal(group, reading):
        causes = [_Cause(RackBlindCause.SELECTOR, ALL_EQUAL)]
    return [_off(group, causes, assessment, view)] if causes else []


def is_rack_blind(group: ReaderGroup, findings: Iterable[Finding]) -> bool:
    """True when it is certain that the group's next assignment will not look at racks."""
    off = any(finding.reason is FindingReason.RACK_AWARENESS_OFF for finding in findings)
    return off or is_assigned_blindly(group)


def _kind_ignores(group: ReaderGroup, assessment: Assessment, view: DetectContext) -> Finding:
    what = COORDINATOR_KINDS[group.kind]
    return Finding(
        reason=FindingReason.GROUP_KIND_IGNORES_RACKS,
        subject=SubjectId("group", group.id),
        sentence=f"group {group.id} is assigned by the broker, whose assignors for {what} do not look at racks",
        evidence=(
            ("kind", str(group.kind)),
            ("causes", (RackBlindCause.ASSIGNOR.value,)),
            ("assignor", group.assignor),
            ("members with a rack", sum(member.rack.rack_id is not None for member in group.members)),
            ("gap", assessment.gap),
        ),
        severity=FindingSeverity.WARNING if assessment.improvable else FindingSeverity.INFO,
        since_ms=view.snapshot.taken_ms,
    )


def _nothing_to_gain(group: ReaderGroup, reading: GroupTopicFacts, view: DetectContext) -> bool:
    return view.broker_racks.selector is True and None not in reading.facts and _all_equal(group, reading)


def _all_equal(group: ReaderGroup, reading: GroupTopicFacts) -> bool:
    """True when no choice of the assignor changes its costs; range weighs each topic alone."""
    shown = reading.shown
    if not shown or not all(facts.everywhere for facts in shown):
        return False
    return group.assignor == RANGE or len({facts.racks for facts in shown}) == 1


def _consumer_causes(
    group: ConsumerGroup, readers: Iterable[Rack], reading: GroupTopicFacts, view: DetectContext
) -> Iterable[_Cause]:
    if group.assignor in RACK_BLIND_ASSIGNORS:
        yield _Cause(RackBlindCause.ASSIGNOR, f"its assignor {group.assignor} does not look at racks")
    if group.assignor not in RACK_AWARE_ASSIGNORS:  # the behaviour of a custom assignor is unknown
        return
    racks = {sent for rack in readers if (sent := rack.rack_id) is not None}
    if not racks:
        yield _Cause(RackBlindCause.CLIENT_RACK, "no member sends a rack")
    if None in reading.facts or not reading.facts:
        return
    shown = reading.shown
    if not any(facts.racks for facts in shown):
        sentence = f"no replica of {listed(reading.topics)} shows a rack{_but_absent(shown, view)}"
        yield _Cause(RackBlindCause.BROKER_RACK, sentence)
    elif racks and all(racks.isdisjoint(facts.racks) for facts in shown):
        replicas = sorted(frozenset().union(*[facts.racks for facts in shown]))
        where = f"members in {listed(sorted(racks))}, replicas in {listed(replicas)}{_but_absent(shown, view)}"
        yield _Cause(RackBlindCause.REPLICAS_ELSEWHERE, f"no member is in a rack that holds a replica ({where})")


def _but_absent(shown: Iterable[TopicFacts], view: DetectContext) -> str:
    """Clients know no rack of a broker that is absent, wherever its replicas are."""
    absent = {b.id for b in view.broker_racks.brokers if not b.alive} if view.broker_racks.complete else set()
    away = sorted(absent & {broker for facts in shown for broker in facts.rackless})
    return f", while {named('broker', away)} {'is' if len(away) == 1 else 'are'} absent" if away else ""


def _streams_causes(
    group: StreamsGroup, reading: GroupTopicFacts, settings: GroupLimits, view: DetectContext
) -> Iterable[_Cause]:
    if settings.rack_aware_assignment_strategy == NO_STRATEGY:
        assumed = "" if settings.known else " (Kafka's default, assumed: rackwise's settings give no other value)"
        yield _Cause(RackBlindCause.ASSIGNOR, f"rack.aware.assignment.strategy is none{assumed}")
    silent = [member.client_id for member in group.members if member.rack.silent]
    if silent:
        yield _Cause(RackBlindCause.CLIENT_RACK, f"a member sends no rack ({listed(sorted(silent))})")
    for process in group.processes:
        if process.rack.state is RackState.CONFLICTING and process.rack.source is None:
            sentence = f"the threads of process {process.id} send different racks ({listed(process.rack.claims)})"
            yield _Cause(RackBlindCause.THREADS_DIFFER, sentence)
    if len(group.metadata_versions) > 1:
        versions = f"its members' metadata has versions {listed(group.metadata_versions)}"
        yield _Cause(RackBlindCause.MIXED_VERSIONS, versions)
    topics, facts = reading.topics, reading.facts
    if settings.num_standby_replicas:
        topics, facts = (*topics, *reading.changelogs), (*facts, *reading.changelog_facts)
    yield from _topic_causes(topics, facts, view)


def _topic_causes(topics: Sequence[str], facts: Sequence[TopicFacts | None], view: DetectContext) -> Iterable[_Cause]:
    hidden = [name for name, known in zip(topics, facts, strict=True) if known is None]
    if hidden:
        yield _Cause(RackBlindCause.TOPIC_HIDDEN, f"{listed(hidden)} cannot be described")
    rackless = {broker: name for name, known in zip(topics, facts, strict=True) if known for broker in known.rackless}
    alive = {broker.id for broker in view.broker_racks.brokers if broker.alive}
    for broker in sorted(rackless.keys() & alive):
        sentence = f"broker {broker}, with replicas of {rackless[broker]}, has no broker.rack"
        yield _Cause(RackBlindCause.BROKER_RACK, sentence)
    away = sorted(rackless.keys() - alive) if view.broker_racks.complete else []
    if away:
        verb, racks = ("is", "its rack") if len(away) == 1 else ("are", "their racks")
        of = listed(sorted({rackless[broker] for broker in away}))
        sentence = f"{named('broker', away)}, with replicas of {of}, {verb} absent, and clients do not know {racks}"
        yield _Cause(RackBlindCause.BROKER_ABSENT, sentence)


def _off(group: ReaderGroup, causes: Sequence[_Cause], assessment: Assessment, view: DetectContext) -> Finding:
    sentences = tuple([cause.sentence for cause in causes])
    kinds = tuple(dict.fromkeys(cause.kind.value for cause in causes))
    return Finding(
        reason=FindingReason.RACK_AWARENESS_OFF,
        subject=SubjectId("group", group.id),
        sentence=f"rack-aware assignment of group {group.id} is off, because {'; '.join(sentences)}",
        evidence=(("because", sentences), ("causes", kinds), ("assignor", group.assignor), ("gap", assessment.gap)),
        severity=FindingSeverity.WARNING if assessment.improvable else FindingSeverity.INFO,
        since_ms=view.snapshot.taken_ms,
    )
