"""Coverage of doctor's checks of brokers, replicas and configs: all, none, a part, or too early to judge. Pure.

Hidden parts are named with their cause: an ACL, a rebalance, an unknown rack, a missing answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from agent.detect.replicas import LEADERS_PER_RACK
from agent.detect.rights import vanished
from agent.values.assessment import DetectionResult
from agent.values.finding import Finding, FindingReason, FindingSeverity
from agent.values.kafka import REPLICA_SELECTOR
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.number_format import counted, listed
from agent.values.proposal import Proposal
from agent.values.snapshot import BrokerState, RackState, ReaderGroup, Snapshot, TopicState
from agent.values.throttles import idle_throttles


class CheckCoverage(NamedTuple):
    """The seen part of a check's subject."""

    fine: str
    """The sentence where all was seen without a fault."""
    unseen: tuple[str, ...] = ()
    """The unseen parts, one clause each."""
    nothing: str = ""
    """Why there is nothing to check; empty where there is something."""
    once: str = ""
    """The present state that is a fault only if it lasts; empty where there is none."""
    who: tuple[str, ...] = ()
    """The subjects of ``unseen`` or ``once``."""


class DoctorContext(NamedTuple):
    """The input of all checks."""

    snapshot: Snapshot
    detection: DetectionResult
    limits: Limits
    memory: Memory
    proposals: tuple[Proposal, ...] = ()

    @property
    def groups(self) -> list[ReaderGroup]:
        """Groups with members that the settings do not leave out; also those that hide their members now."""
        return [
            group
            for group in self.snapshot.groups.values()
            if isinstance(group, ReaderGroup)
            and (group.members or group.hidden)
            and not self.limits.excludes_group(group.id)
        ]

    @property
    def topics(self) -> list[TopicState]:
        """Topics that the settings do not leave out."""
        return [topic for topic in self.snapshot.topics.values() if not self.limits.excludes_topic(topic.name)]

    @property
    def alive(self) -> list[BrokerState]:
        """Live brokers."""
        return [broker for broker in self.snapshot.brokers if broker.alive]


CoverageOf = Callable[[DoctorContext], CheckCoverage]


def brokers_there(context: DoctorContext) -> CheckCoverage:
    """Whether the brokers with replicas are live; one look cannot distinguish a restart from a loss."""
    alive = context.alive
    if not alive:
        return CheckCoverage("", ("no broker answered",))
    absent = absent_brokers(context.detection.findings)
    return CheckCoverage(
        f"{all_of(len(alive), 'broker')} {'is' if len(alive) == 1 else 'are'} live, and replicas are on no other",
        _hidden_topics(context.snapshot),
        "" if context.snapshot.topics or absent else "no replica was seen",
        once="; ".join(finding.sentence for finding in absent),
        who=each_named("broker", [finding.subject.name for finding in absent]),
    )


def absent_brokers(findings: Iterable[Finding]) -> list[Finding]:
    """Findings about absent brokers with replicas."""
    return [f for f in findings if f.reason is FindingReason.BROKER_ABSENT and f.severity is not FindingSeverity.INFO]


def broker_racks(context: DoctorContext) -> CheckCoverage:
    """Whether brokers have a rack."""
    alive = context.alive
    if not alive:
        return CheckCoverage("", ("no broker answered",))
    lost = [str(b.id) for b in context.snapshot.brokers if not b.alive and b.rack.state is RackState.UNKNOWN]
    absent = f"{brokers_named(lost)} {'is absent, its rack was' if len(lost) == 1 else 'are absent, their racks were'}"
    return CheckCoverage(
        f"{all_of(len(alive), 'broker')} {'has' if len(alive) == 1 else 'have'} a broker.rack",
        (f"{absent} never seen",) if lost else (),
        who=each_named("broker", lost),
    )


def selector(context: DoctorContext) -> CheckCoverage:
    """Whether reads go to the nearest replica."""
    racks = racks_matter(context.snapshot)
    alive = context.alive
    if racks.unseen or racks.nothing:
        return racks
    if context.snapshot.selector_is_rack_aware is None:
        configs = context.snapshot.broker_configs
        silent = [str(broker.id) for broker in alive if broker.id not in configs]
        own = {configs[broker.id].get(REPLICA_SELECTOR) for broker in alive if broker.id in configs}
        why = f"the configs of {brokers_named(silent)} were not read" if silent else ""
        why = why or f"it is unknown whether {REPLICA_SELECTOR}={listed(sorted(filter(None, own)))} looks at racks"
        return CheckCoverage("", (why,), who=tuple(f"broker {name}" for name in silent))
    return CheckCoverage(
        f"{all_of(len(alive), 'broker')} {'has' if len(alive) == 1 else 'have'} a rack-aware {REPLICA_SELECTOR}"
    )


def racks_matter(snapshot: Snapshot) -> CheckCoverage:
    """Nothing to check where all brokers are in one rack."""
    if not any(broker.alive for broker in snapshot.brokers):
        return CheckCoverage("", ("no broker answered",))
    racks = {b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN}
    if len(racks) > 1:
        return CheckCoverage("")
    nothing = f"all brokers are in rack {listed(racks)}, so no replica is nearer than another"
    return _unknown_racks(snapshot) or CheckCoverage("", nothing=nothing)


def blind_brokers(snapshot: Snapshot) -> CheckCoverage:
    """Replicas can be compared only where the rack of every broker that may hold one is known."""
    coverage = racks_matter(snapshot)
    return coverage if coverage.unseen or coverage.nothing else _unknown_racks(snapshot) or coverage


def _unknown_racks(snapshot: Snapshot) -> CheckCoverage | None:
    unknown = [str(b.id) for b in snapshot.brokers if b.rack.state is not RackState.KNOWN]
    sentences = clause("the racks of {} are not known", unknown, brokers_named)
    return CheckCoverage("", tuple(sentences), who=each_named("broker", unknown)) if unknown else None


def replica_spread(context: DoctorContext) -> CheckCoverage:
    """Whether replicas spread over racks."""
    several = sum(len(state.replicas) > 1 for topic in context.topics for state in topic.partitions)
    fine = f"no replicas share a rack while another is free, in {all_of(several, 'partition')} with more than one"
    return _of_replicas(context, fine, "" if several else "no partition with more than one replica was seen")


def in_sync(context: DoctorContext) -> CheckCoverage:
    """Whether partitions are led, and not under their min ISR."""
    topics = context.topics
    partitions = sum(len(topic.partitions) for topic in topics)
    unread = [topic.name for topic in topics if topic.min_isr is None]
    why = [f"min.insync.replicas of {counted(len(unread), 'topic')} ({listed(unread)}) was not read"] if unread else []
    unseen = (*why, *_hidden_topics(context.snapshot))
    return CheckCoverage(
        f"{all_of(partitions, 'partition')} {'has a leader and is' if partitions == 1 else 'have a leader and are'} "
        "not under min ISR",
        unseen,
        "" if partitions or unseen else "no partition was seen",
        who=tuple(unread),
    )


def leader_spread(context: DoctorContext) -> CheckCoverage:
    """Whether preferred leaders spread over racks."""
    partitions = sum(len(topic.partitions) for topic in context.topics)
    racks = len({b.rack.name for b in context.snapshot.brokers if b.rack.state is RackState.KNOWN})
    few = partitions < LEADERS_PER_RACK * racks
    seen = counted(partitions, "partition was", "partitions were")
    nothing = f"{seen} seen, too few to compare {counted(racks, 'rack')}" if few else ""
    return _of_replicas(context, "no rack is preferred to lead much more than its share", nothing)


def _of_replicas(context: DoctorContext, fine: str, nothing: str) -> CheckCoverage:
    coverage = blind_brokers(context.snapshot)
    if coverage.nothing:
        return coverage
    unseen = (*coverage.unseen, *_hidden_topics(context.snapshot))
    return CheckCoverage(fine, unseen, "" if unseen else nothing, who=coverage.who)


def _hidden_topics(snapshot: Snapshot) -> tuple[str, ...]:
    lost = snapshot.rights.topics_hidden
    return (vanished(lost, "topic"),) if lost else ()


def throttles(context: DoctorContext) -> CheckCoverage:
    """Whether throttles are left over; they must outlast a grace, so one look never suffices."""
    snapshot, limits = context.snapshot, context.limits
    unasked = [topic.name for topic in context.topics if topic.min_isr is None]
    silent = [str(b.id) for b in snapshot.brokers if b.alive and b.id not in snapshot.broker_configs]
    unseen = (
        *([f"the configs of {counted(len(unasked), 'topic')} ({listed(unasked)}) were not read"] if unasked else []),
        *clause("the configs of {} were not read", silent, brokers_named),
        *_hidden_topics(snapshot),
    )
    idle = (one for one in idle_throttles(snapshot) if one.topic is None or not limits.excludes_topic(one.topic))
    set_now = [str(one.subject) for one in idle]
    once = ""
    if set_now:
        known = [context.memory.throttles[subject] for subject in set_now if subject in context.memory.throttles]
        for_s = (snapshot.monotonic_ms - min(known)) // 1000 if known else 0
        since = f"seen for {for_s} s" if for_s > 0 else "seen once"
        verb = "throttle is" if len(set_now) == 1 else "throttles are"
        once = (
            f"{len(set_now)} {verb} set and no reassignment runs ({listed(set_now)}), {since}: "
            f"a throttle that is still set after {limits.detect.throttle_grace_ms // 1000} s counts as left over"
        )
    return CheckCoverage(
        "no throttle is set without a reassignment that needs it",
        unseen,
        "" if (context.topics and snapshot.broker_configs) or unseen else "no topic was seen",
        once,
        who=tuple(set_now) or tuple(unasked),
    )


def rights(context: DoctorContext) -> CheckCoverage:
    """Whether rackwise has the rights for all it reads."""
    granted = context.snapshot.rights
    unseen = (
        ()
        if None not in (granted.cluster_describe, granted.cluster_describe_configs)
        else ("brokers do not report rights",)
    )
    return CheckCoverage("rackwise may see everything it asks for", unseen)


def clause(text: str, names: Sequence[str], named: Callable[[Sequence[str]], str]) -> list[str]:
    """``text`` with the names in the place of ``{}``; nothing without names."""
    return [text.format(named(names))] if names else []


def all_of(number: int, noun: str) -> str:
    """``the 1 broker``, ``all 3 brokers``."""
    return f"the {noun}" if number == 1 else f"all {number} {noun}s"


def brokers_named(names: Iterable[str]) -> str:
    """``broker 1``, ``brokers 1, 2 and 3``."""
    of = list(names)
    return f"broker{'' if len(of) == 1 else 's'} {listed(of)}"


def each_named(kind: str, names: Iterable[str]) -> tuple[str, ...]:
    """``broker 1`` and ``broker 2``, one by one."""
    return tuple([f"{kind} {name}" for name in names])
