"""Findings about brokers: changed, missing and flapping racks, spellings, absences; moved replicas, throttles.

A changed rack is shown at once and held until it is steady; one that changes too often is held as flapping. A missing
rack never differs from another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.detect.detect_context import (
    BrokerRacks,
    DetectContext,
    broker_disagreement,
    first,
    known_by,
    numbered,
    placed,
)
from agent.detect.members import folded_rack
from agent.memory.rack_history import RackSteadiness, rack_changes, steadiness
from agent.values.cycle import gaps_of
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.kafka import BROKER_RACK, RACK_AWARE_SELECTOR, REPLICA_SELECTOR
from agent.values.memo import Memo
from agent.values.memory import BrokerAbsence, ChangeCause, PartitionChange, RackChange, RackSighting, absence_words
from agent.values.number_format import counted, lasted, listed
from agent.values.observation import ObservationPart
from agent.values.snapshot import BrokerState, RackState, Reassignment, Snapshot
from agent.values.throttles import broker_rates, crowding, idle_throttles, target_replicas, topic_throttles


def broker_findings(view: DetectContext, client_racks: Iterable[tuple[str, str]]) -> list[Finding]:
    """Findings about each broker and about the racks of the cluster."""
    findings: list[Finding] = []
    for broker in view.snapshot.brokers:
        findings += _rack_missing(broker, view)
        findings += broker_disagreement(broker, view)
    for broker_id, sighting in view.sightings.items():
        findings += _rack_changed(broker_id, sighting, view)
    findings += _spellings(view, client_racks)
    findings += _selector(view)
    return findings


def _rack_missing(broker: BrokerState, view: DetectContext) -> Iterable[Finding]:
    absent = not broker.alive and broker.host is None  # its broker.rack is unknown, which a finding reports
    believed = broker.rack.state is RackState.KNOWN and (absent or not broker.rack.silent)
    if believed or ObservationPart.BROKERS in view.missing or (absent and broker.rack.state is RackState.UNKNOWN):
        return
    sighting = view.sightings.get(broker.id)
    if broker.rack.state is RackState.CONFLICTING:
        sentence = f"broker {broker.id} has contradicting racks, {listed(broker.rack.claims)}, so none of them is used"
    elif broker.rack.state is RackState.KNOWN:
        sentence = f"broker {broker.id} has no {BROKER_RACK}, so Kafka treats it as a broker without a rack, "
        sentence += f"while {known_by(broker.rack)}: set {BROKER_RACK}={broker.rack.name} and restart it"
    elif broker.rack.sent is not None:
        sentence = f"broker {broker.id} has {BROKER_RACK}={broker.rack.sent}, which is not used, as rack.locator.class "
        sentence += "leaves out wire, and no locator knows another"
    elif sighting is not None and sighting.known is not None:
        sentence = f"broker {broker.id} has no {BROKER_RACK} now and was in rack {sighting.known} before: "
        sentence += f"set {BROKER_RACK}={sighting.known} again and restart it, or another rack if it was moved"
    elif not view.broker_racks.racks:
        sentence = f"broker {broker.id} has no {BROKER_RACK}, and no other broker has one: set {BROKER_RACK}"
    else:
        others = listed(view.broker_racks.racks)
        sentence = (
            f"broker {broker.id} has no {BROKER_RACK}, while others are in {others}: set {BROKER_RACK} and restart it"
        )
    yield Finding(
        reason=FindingReason.BROKER_RACK_MISSING,
        subject=SubjectId("broker", str(broker.id)),
        broker=broker.id,
        sentence=sentence,
        evidence=(
            ("alive", broker.alive),
            ("claims", broker.rack.claims),
            ("last known rack", sighting.known if sighting else None),
            ("locator", broker.rack.source or None),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _rack_changed(broker_id: int, sighting: RackSighting, view: DetectContext) -> Iterable[Finding]:
    now_ms, limits = view.snapshot.monotonic_ms, view.limits
    recent = [at for at in sighting.changes if now_ms - at <= limits.racks.flap_window_ms]
    if not recent:
        return
    state = steadiness(sighting, now_ms, limits)
    if state is RackSteadiness.FLAPPING:
        window = lasted(limits.racks.flap_window_ms)
        yield Finding(
            reason=FindingReason.RACK_FLAPPING,
            subject=SubjectId("broker", str(broker_id)),
            broker=broker_id,
            sentence=f"the rack of broker {broker_id} keeps changing, {counted(len(recent), 'time')} within {window}; "
            "nothing is planned from it until it is stable",
            evidence=(("changes", len(recent)), ("rack now", sighting.rack), ("rack before", sighting.previous)),
            severity=FindingSeverity.WARNING,
            since_ms=view.snapshot.taken_ms,
            held=True,
        )
    if sighting.rack is None or sighting.previous is None or now_ms - sighting.since_ms > limits.racks.flap_window_ms:
        return
    wait = ""
    if state is RackSteadiness.NEW:
        wait = f"; nothing is planned from it until it has been stable for {limits.racks.stable_for_ms // 1000} s"
        wait += f" and {counted(limits.racks.stable_polls, 'look')}"
    yield Finding(
        reason=FindingReason.BROKER_RACK_CHANGED,
        subject=SubjectId("broker", str(broker_id)),
        broker=broker_id,
        sentence=f"broker {broker_id} is in rack {sighting.rack} now and was in rack {sighting.previous} before{wait}",
        evidence=(("rack now", sighting.rack), ("rack before", sighting.previous), ("changes", len(recent))),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
        held=state is not RackSteadiness.STEADY,
    )


def _spellings(view: DetectContext, client_racks: Iterable[tuple[str, str]]) -> Iterable[Finding]:
    """Racks that differ in case, spaces or separators only, or by an alias: for Kafka they are different racks.

    ``client_racks`` has (rack after aliases, ``client.rack`` as sent).
    """
    users: dict[str, dict[str, set[str]]] = {}
    for broker in view.broker_racks.brokers:
        spelling = broker.rack.rack_id
        if spelling is not None:
            users.setdefault(folded_rack(broker.rack.name or spelling), {}).setdefault(spelling, set()).add("brokers")
    for name, spelling in client_racks:
        users.setdefault(folded_rack(name), {}).setdefault(spelling, set()).add("clients")
    for spellings in users.values():
        if len(spellings) > 1:
            yield _spelling(spellings, view)


def _spelling(spellings: Mapping[str, set[str]], view: DetectContext) -> Finding:
    names = sorted(spellings)
    spelled = [f"{name!r} ({' and '.join(sorted(spellings[name]))})" for name in names]
    return Finding(
        reason=FindingReason.RACK_SPELLING,
        subject=SubjectId("rack", names[0]),
        sentence=f"one rack seems to be written in {len(names)} ways: {listed(spelled)}; "
        "Kafka compares racks letter by letter, so Kafka takes these for different racks",
        evidence=(("spellings", tuple(names)),),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


def _selector(view: DetectContext) -> Iterable[Finding]:
    racks: BrokerRacks = view.broker_racks
    if racks.selector is not False or not racks.racks_matter:
        return
    configs = view.snapshot.broker_configs
    lacking = [
        broker.id
        for broker in racks.brokers
        if broker.alive and broker.id in configs and not configs[broker.id].get(REPLICA_SELECTOR)
    ]
    yield Finding(
        reason=FindingReason.SELECTOR_NOT_RACK_AWARE,
        subject=SubjectId("cluster", view.snapshot.cluster_id),
        sentence=f"{counted(len(lacking), 'broker')} ({numbered(lacking)}) let consumers read from leaders only, "
        f"whatever their racks: set {REPLICA_SELECTOR}={RACK_AWARE_SELECTOR}",
        evidence=(("brokers", first(lacking)), ("count", len(lacking))),
        severity=FindingSeverity.WARNING,
        since_ms=view.snapshot.taken_ms,
    )


# Absent brokers: a partition under min ISR or without a leader has findings of its own; a preferred leader on an absent
# broker is no fault.


class _Load(NamedTuple):
    replicas: Counter[int]
    preferred: Counter[int]
    """Partitions of which it is the preferred leader..."""
    leaderless: Counter[int]
    """...and those of them that have no leader now."""


def absent_findings(view: DetectContext, memo: Memo) -> list[Finding]:
    """One finding per absent broker; of one that holds no replica only while it may be restarting."""
    if not view.absences:
        return []
    least_ms = view.limits.racks.broker_absent_for_ms
    load = memo.of(("load",), (view.snapshot.topics,), lambda: _load(view.snapshot))
    return [
        _absent(broker, absence, load, view)
        for broker, absence in view.absences.items()
        if absence.has_replicas or (absence.for_ms is not None and absence.for_ms < least_ms)
    ]


def _load(snapshot: Snapshot) -> _Load:
    rows = Counter(
        (state.replicas, state.leader is None) for topic in snapshot.topics.values() for state in topic.partitions
    )
    load = _Load(Counter(), Counter(), Counter())
    for (replicas, leaderless), times in rows.items():
        for broker in replicas:
            load.replicas[broker] += times
        for broker in replicas[:1]:
            load.preferred[broker] += times
            load.leaderless[broker] += times if leaderless else 0
    return load


def _absent(broker: int, absence: BrokerAbsence, load: _Load, view: DetectContext) -> Finding:
    state = next((one for one in view.broker_racks.brokers if one.id == broker), None)
    rack = state.rack.name if state is not None else None
    last = rack is not None and not any(one.alive and one.rack.name == rack for one in view.broker_racks.brokers)
    parts = [absence_words(broker, absence), _holds(broker, load, absence)]
    parts += [f"no live broker of rack {rack} is left"] if last else []
    parts += ["its rack was never seen"] if state is not None and rack is None and not state.rack.claims else []
    parts += _wait(absence, view.limits.racks.broker_absent_for_ms)
    return Finding(
        reason=FindingReason.BROKER_ABSENT,
        subject=SubjectId("broker", str(broker)),
        broker=broker,
        sentence="; ".join(parts),
        evidence=(
            ("absent_s", None if absence.for_ms is None else absence.for_ms // 1_000),
            ("absent before the first look", absence.for_ms is not None and not absence.seen_before),
            ("fenced", absence.fenced),
            ("rack", rack),
            ("replicas", load.replicas[broker]),
            ("preferred leader of", load.preferred[broker]),
            ("last live broker of its rack", last),
            *((("removed in this simulation", True),) if absence.removed else ()),
        ),
        severity=FindingSeverity.WARNING if absence.has_replicas else FindingSeverity.INFO,
        since_ms=view.snapshot.taken_ms - (absence.for_ms or 0),
        held=absence.awaited(view.limits.racks.broker_absent_for_ms),
    )


def _holds(broker: int, load: _Load, absence: BrokerAbsence) -> str:
    replicas, preferred, leaderless = (of[broker] for of in load)
    if not absence.has_replicas:
        return "it holds no replica"
    if not replicas:
        return "the replicas that it held are not shown"
    held = f"it holds {counted(replicas, 'replica')}"
    if not preferred:
        return held
    held += f" and is the preferred leader of {counted(preferred, 'partition')}"
    if leaderless:
        return f"{held}, of which {counted(leaderless, 'partition')} {'has' if leaderless == 1 else 'have'} no leader"
    return f"{held}, which {'another replica leads' if preferred == 1 else 'other replicas lead'} now"


def _wait(absence: BrokerAbsence, absent_for_ms: int) -> list[str]:
    if not absence.has_replicas:
        return []
    until = f"until it has been absent for {lasted(absent_for_ms)}"
    if absence.for_ms is None and absent_for_ms:
        return [f"one look cannot tell a restart from a loss, and an agent moves nothing because of it {until}"]
    if absence.awaited(absent_for_ms):
        return [f"nothing is moved because of it {until}"]
    return []


_ADDED = frozenset((ChangeCause.NEW_PARTITIONS, ChangeCause.CREATED_BLIND))
"""Causes of which no replica was anywhere before; replicas that share a rack are a finding of their own."""


def move_findings(view: DetectContext) -> list[Finding]:
    """Findings about rack changes, running reassignments and leftover throttles."""
    findings = [
        _relabelled(change.subject, change, view)
        if isinstance(change.subject, int)
        else _changed(change.subject, change, view)
        for change in rack_changes(view.memory, view.snapshot)
        if isinstance(change.subject, int)
        or not (view.limits.excludes_topic(change.subject) or _is_gone(change.subject, view))
    ]
    findings += _foreign(view)
    findings += _throttles(view)
    return findings


def _is_gone(topic: str, view: DetectContext) -> bool:
    """Whether this look certainly has no such topic, so that nothing of it is left to mend."""
    snapshot = view.snapshot
    is_whole = not gaps_of(snapshot, (ObservationPart.TOPICS,)) and snapshot.rights.topics_hidden == 0
    return topic not in snapshot.topics and is_whole


def _relabelled(broker: int, change: RackChange, view: DetectContext) -> Finding:
    sighting = view.sightings.get(broker)
    previous, now = (sighting.previous, sighting.known) if sighting is not None else (None, None)
    affected = f"{counted(change.partitions, 'partition')} in {counted(change.topics, 'topic')}"
    example = change.examples[0].id
    return Finding(
        reason=FindingReason.REPLICA_RACKS_CHANGED,
        subject=SubjectId("broker", str(broker)),
        broker=broker,
        sentence=f"the replica racks of {affected} changed, {example} among them, "
        f"because broker {broker} came back in rack {now} instead of {previous}",
        evidence=(
            ("cause", str(change.cause)),
            ("partitions", change.partitions),
            ("topics", change.topics),
            ("first", first([str(row.id) for row in change.examples])),
            ("rack now", now),
            ("rack before", previous),
        ),
        severity=FindingSeverity.WARNING,
        since_ms=change.at_ms,
        held=broker in view.broker_racks.unsteady,
        detail=change.cause.name.lower(),
    )


def _changed(topic: str, change: RackChange, view: DetectContext) -> Finding:
    rack_of: Mapping[int, str] = view.broker_racks.room.rack_of
    example = change.examples[0]
    shares_rack = _shares_rack(topic, change, view)
    shares = ", and replicas share a rack now while another is free" if shares_rack else ""
    since = (("running since", change.running_since_ms),) if change.running_since_ms is not None else ()
    return Finding(
        reason=FindingReason.REPLICA_RACKS_CHANGED,
        subject=SubjectId("topic", topic),
        sentence=f"{_what_changed(topic, change)}: {_went(example, rack_of)}{shares}",
        evidence=(
            ("cause", str(change.cause)),
            ("partitions", change.partitions),
            ("first", first([_went(row, rack_of) for row in change.examples])),
            ("shares a rack", shares_rack),
            *since,
        ),
        severity=FindingSeverity.WARNING if shares_rack and change.cause not in _ADDED else FindingSeverity.INFO,
        since_ms=change.at_ms,
        detail=change.cause.name.lower(),
    )


def _what_changed(topic: str, change: RackChange) -> str:
    partitions = counted(change.partitions, "partition")
    match change.cause:
        case ChangeCause.NEW_PARTITIONS:
            return f"{counted(change.partitions, 'partition was', 'partitions were')} added to {topic}"
        case ChangeCause.CREATED_BLIND:
            return f"{topic} was created without regard to racks in {partitions}"
        case ChangeCause.RECREATED:
            return f"{topic} was deleted and created again, with {partitions} in other racks than before"
        case _:
            by = "because they were reassigned by another tool than rackwise"
            return f"the replica racks of {partitions} of {topic} changed, {by}"


def _shares_rack(topic: str, change: RackChange, view: DetectContext) -> bool:
    """Whether replicas share a rack in this look: the change is kept for longer than it takes to mend the topic.

    Of a topic that this look does not show, it is as it was at the change.
    """
    state = view.snapshot.topics.get(topic)
    if state is None or not change.shares_rack:
        return change.shares_rack
    running, room = view.snapshot.reassignments, view.broker_racks.room
    return any(crowding(target_replicas(row, running.get(row.id)), room) is not None for row in state.partitions)


def _went(change: PartitionChange, rack_of: Mapping[int, str]) -> str:
    """``orders-0 went from 1 (a), 2 (b) to 1 (a), 4 (a)``."""
    after = placed(change.after, rack_of)
    return (
        f"{change.id} went from {placed(change.before, rack_of)} to {after}"
        if change.before
        else f"{change.id} is on {after}"
    )


def _foreign(view: DetectContext) -> Iterable[Finding]:
    by_topic: dict[str, list[Reassignment]] = {}
    for move in view.snapshot.reassignments.values():
        if not move.own and not view.limits.excludes_topic(move.id.topic):
            by_topic.setdefault(move.id.topic, []).append(move)
    for topic, moves in by_topic.items():
        move = moves[0]
        target = tuple([replica for replica in move.replicas if replica not in move.removing])
        yield Finding(
            reason=FindingReason.FOREIGN_REASSIGNMENT,
            subject=SubjectId("topic", topic),
            sentence=f"a reassignment of {counted(len(moves), 'partition')} of {topic} is running that rackwise did "
            f"not start: {move.id} goes to {placed(target, view.broker_racks.room.rack_of)}; rackwise leaves it alone",
            evidence=(
                ("partitions", len(moves)),
                ("first", first([str(move.id) for move in moves])),
                ("adding", move.adding),
                ("removing", move.removing),
            ),
            severity=FindingSeverity.INFO,
            since_ms=view.snapshot.taken_ms,
        )


def _throttles(view: DetectContext) -> Iterable[Finding]:
    now_ms = view.snapshot.monotonic_ms
    for resource in idle_throttles(view.snapshot):
        kind, name = resource.subject
        since_ms = view.memory.throttles.get(str(resource.subject), now_ms)
        if now_ms - since_ms < view.limits.detect.throttle_grace_ms:
            continue
        if resource.broker is not None:
            what = "; ".join(f"{config}={rate}" for config, rate in broker_rates(view.snapshot, resource.broker))
        elif view.limits.excludes_topic(name):
            continue
        else:
            what = topic_throttles(view.snapshot.topics[name]) or ""
        standing = " (* throttles every replica and may be meant to stay)" if "*" in what else ""
        yield Finding(
            reason=FindingReason.THROTTLE_LEFT_BEHIND,
            subject=resource.subject,
            broker=resource.broker,
            sentence=f"{kind} {name} is throttled although no reassignment needs it: {_short(what)}{standing}",
            evidence=(("throttle", _short(what)),),
            severity=FindingSeverity.INFO if kind == "broker" or "*" in what else FindingSeverity.WARNING,
            since_ms=view.snapshot.taken_ms,
        )


def _short(text: str) -> str:
    """A throttle may list every replica of a large topic."""
    return text if len(text) <= 120 else f"{text[:117]}..."
