"""What an agent keeps of its cycles for the time line: one small row a minute for a day, and proposals that ended.

In memory only, and bounded: what was before the agent's start is not known. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from agent.money.costs import reads_of
from agent.values.assessment import Locality, LocalityMeasure, NotAssessed
from agent.values.cycle import Cycle
from agent.values.finding import FindingSeverity
from agent.values.last_known import is_failed
from agent.values.number_format import counted, few
from agent.values.proposal import Proposal, ProposalKind, Refuse
from agent.values.snapshot import ConsumerGroup, Group, OtherGroup, Snapshot, TopicState

ROW_MS = 60_000
"""Cycles within the same minute share a row."""
MOST_ROWS = 1_440
"""A day of minutes."""
MOST_EVENTS = 24
"""Events of one row; more are counted."""
MOST_ENDED = 64
"""Ended proposals that are kept."""
_NAMED = 3
_REBALANCES_NAMED = 8


class HistoryKind(StrEnum):
    """Kind of an event of the history."""

    RACKS = "rack change"
    REBALANCE = "rebalance"
    MOVE_BEGAN = "move began"
    MOVE_ENDED = "move ended"
    FINDING_BEGAN = "finding began"
    FINDING_ENDED = "finding ended"
    PROPOSED = "proposal made"
    PROPOSAL_ENDED = "proposal ended"
    LOOK_FAILED = "look failed"


class HistoryEvent(NamedTuple):
    """One thing that a look saw for the first time."""

    at_ms: int
    """Epoch milliseconds of the look."""
    kind: HistoryKind
    subject: str
    """As kind/name; empty for what concerns everything."""
    sentence: str
    severity: str = ""
    """Severity of a finding; empty for other events."""


class CycleSummary(NamedTuple):
    """The cycles of one minute: the figures of the last one, the events of all. None is unknown, never zero."""

    at_ms: int
    """Epoch milliseconds of its last look."""
    reads: int | None
    """Partitions that groups read; None where the look failed or saw no groups."""
    local: int | None
    """Those that are certainly read in their own rack."""
    unknown: int | None
    """Those of which it is not known."""
    cross_rack_bytes_per_s: float | None
    """Bytes per second read across racks, as far as they are known; None where no group's are."""
    findings: int | None
    gaps: int | None
    events: tuple[HistoryEvent, ...] = ()
    more_events: int = 0
    """Events beyond `MOST_EVENTS`."""


class EndedProposal(NamedTuple):
    """A proposal that the agent makes no more."""

    proposal: Proposal
    ended_ms: int
    """Epoch milliseconds of the planning that did not make it any more."""
    why: str
    racks: Mapping[int, str | None] = MappingProxyType({})
    """Broker -> its rack when the proposal was made last; empty where that is unknown."""
    is_done: bool = False
    """Whether its change was made."""


def newest_ended(ended: Sequence[EndedProposal], proposal_id: str) -> EndedProposal | None:
    """The last end of the proposal with that id; None where it never ended here."""
    return next((one for one in reversed(ended) if one.proposal.id == proposal_id), None)


_UNSEEN = frozenset(NotAssessed) - {NotAssessed.EMPTY, NotAssessed.OTHER_KIND, NotAssessed.EXCLUDED, NotAssessed.OWN}
"""Why it is unknown whether reads are local; the other reasons are of groups without reads, or left out."""
IN_PLACE = "carried out: the planned replicas are in place"


def racks_of(snapshot: Snapshot) -> Mapping[int, str | None]:
    """Broker -> its rack; None where it is unknown."""
    return {broker.id: broker.rack.name for broker in snapshot.brokers}


def summary_of(cycle: Cycle, before: Cycle | None, planned_before: Cycle | None) -> CycleSummary:
    """The row of a finished cycle. ``before``: the last that succeeded; ``planned_before``: the last that planned."""
    reads, crossing = _totals(cycle)
    events = tuple(_events(cycle, before, planned_before))
    return CycleSummary(
        at_ms=cycle.snapshot.taken_ms,
        reads=None if reads is None else round(reads.total),
        local=None if reads is None else round(reads.local),
        unknown=None if reads is None else round(reads.unknown),
        cross_rack_bytes_per_s=crossing,
        findings=len(cycle.detection.findings),
        gaps=len(cycle.snapshot.gaps),
        events=events[:MOST_EVENTS],
        more_events=max(0, len(events) - MOST_EVENTS),
    )


def failed_summary(at_ms: int, sentence: str) -> CycleSummary:
    """The row of a cycle that ended without a result."""
    event = HistoryEvent(at_ms, HistoryKind.LOOK_FAILED, "", sentence)
    return CycleSummary(at_ms, None, None, None, None, None, None, (event,))


def with_summary(past: tuple[CycleSummary, ...], row: CycleSummary) -> tuple[CycleSummary, ...]:
    """The rows with one more; one of the same minute takes the place of the last, with the events of both."""
    if past and past[-1].at_ms // ROW_MS == row.at_ms // ROW_MS:
        last = past[-1]
        events = (*last.events, *row.events)
        more = last.more_events + row.more_events + max(0, len(events) - MOST_EVENTS)
        return (*past[:-1], row._replace(events=events[:MOST_EVENTS], more_events=more))
    return (*past[-(MOST_ROWS - 1) :], row)


def with_ended(
    past: tuple[EndedProposal, ...], cycle: Cycle, planned_before: Cycle | None
) -> tuple[EndedProposal, ...]:
    """The ended proposals after a planning, the newest last; one that is made again is not among them."""
    if not cycle.planned or is_failed(cycle.snapshot):
        return past
    open_ = {one.id for one in cycle.proposals}
    gone = _gone(cycle, planned_before)
    kept = [one for one in past if one.proposal.id not in open_]
    return (*kept, *gone)[-MOST_ENDED:]


def _gone(cycle: Cycle, planned_before: Cycle | None) -> Iterator[EndedProposal]:
    """Proposals of the planning before that this one does not make."""
    if planned_before is None or not cycle.planned or is_failed(cycle.snapshot):
        return
    open_ = {one.id for one in cycle.proposals}
    refused = {one.proposal_id: one.why for one in planned_before.verdicts if isinstance(one, Refuse)}
    same = {(one.kind, one.subject): one.id for one in cycle.proposals}
    racks = racks_of(planned_before.snapshot)
    for one in planned_before.proposals:
        if one.id not in open_:
            other = same.get((one.kind, one.subject))
            why = f"replaced by {other}" if other is not None else refused.get(one.id, "there is no reason for it now")
            done = _done(one, cycle.snapshot, planned_before)
            why = done or why
            yield EndedProposal(one, cycle.snapshot.taken_ms, why, racks, is_done=done is not None)


def _done(proposal: Proposal, now: Snapshot, planned: Cycle) -> str | None:
    """How a proposal was carried out, as the look or this agent shows it; None where neither does."""
    if proposal.kind is ProposalKind.TRIGGER:
        done = any(one.done and one.proposal_id == proposal.id for one in planned.outcomes)
        return "carried out: the rebalance was requested" if done else None
    replicas = {state.id: state.replicas for topic in _topics(proposal, now) for state in topic.partitions}
    wanted = {one.id: one.after for one in proposal.placements}
    in_place = bool(wanted) and all(replicas.get(name) == after for name, after in wanted.items())
    return IN_PLACE if in_place else None


def _topics(proposal: Proposal, now: Snapshot) -> Iterator[TopicState]:
    for name in {one.id.topic for one in proposal.placements}:
        if (topic := now.topics.get(name)) is not None:
            yield topic


def _totals(cycle: Cycle) -> tuple[Locality | None, float | None]:
    """Reads of all groups by where they really go, and the bytes per second of them that cross racks."""
    reads: list[Locality] = []
    crossing: list[float] = []
    for name, one in cycle.detection.assessments.items():
        if one.why_not in _UNSEEN and (parts := sum(1 for _ in reads_of(cycle.snapshot.groups[name]))):
            reads.append(Locality(LocalityMeasure.READ_LOCAL, "partitions", 0.0, float(parts), float(parts)))
        for of in one.current:
            if of.measure is LocalityMeasure.READ_LOCAL and of.unit == "partitions":
                reads.append(of)
            elif of.measure is LocalityMeasure.READ_LOCAL and of.unit == "bytes_per_s":
                crossing.append(of.total - of.local - of.unknown)
    if not reads:
        return None, None
    total = Locality(
        LocalityMeasure.READ_LOCAL,
        "partitions",
        sum(of.local for of in reads),
        sum(of.total for of in reads),
        sum(of.unknown for of in reads),
    )
    return total, round(sum(crossing), 3) if crossing else None


def _events(cycle: Cycle, before: Cycle | None, planned_before: Cycle | None) -> Iterator[HistoryEvent]:
    at_ms = cycle.snapshot.taken_ms
    if before is not None:
        yield from _rack_events(before.snapshot, cycle.snapshot)
        yield from _rebalances(before.snapshot, cycle.snapshot)
        yield from _moves(before.snapshot, cycle.snapshot)
        yield from _findings(cycle, before)
    if cycle.planned and planned_before is not None:
        known = {one.id for one in planned_before.proposals}
        for one in cycle.proposals:
            if one.id not in known:
                yield HistoryEvent(at_ms, HistoryKind.PROPOSED, str(one.subject), f"{one.id}: {one.sentence}")
        for ended in _gone(cycle, planned_before):
            sentence = f"{ended.proposal.id}: {ended.why}"
            yield HistoryEvent(at_ms, HistoryKind.PROPOSAL_ENDED, str(ended.proposal.subject), sentence)


def _findings(cycle: Cycle, before: Cycle) -> Iterator[HistoryEvent]:
    """Findings that began and ended, the gravest first."""
    at_ms = cycle.snapshot.taken_ms
    was = {} if before.known is None else before.known.findings
    ended = [was[name].finding for name in cycle.changes.ended if name in was]
    new = frozenset(cycle.changes.new)
    began = [one for one in cycle.detection.findings if one.id in new] if new else []
    order = tuple(FindingSeverity)
    for kind, found in ((HistoryKind.FINDING_BEGAN, began), (HistoryKind.FINDING_ENDED, ended)):
        for one in sorted(found, key=lambda one: -order.index(one.severity)):
            yield HistoryEvent(at_ms, kind, str(one.subject), one.sentence, one.severity.value)


def _rack_events(before: Snapshot, now: Snapshot) -> Iterator[HistoryEvent]:
    """Brokers that came, went, or are in another rack; nothing where the brokers did not answer."""
    old = {one.id: (one.rack.name, one.alive) for one in before.brokers}
    new = {one.id: (one.rack.name, one.alive) for one in now.brokers}
    if old == new or not new or not old:
        return
    for broker in sorted(old.keys() | new.keys()):
        words = _broker_words(broker, old.get(broker), new.get(broker))
        if words:
            yield HistoryEvent(now.taken_ms, HistoryKind.RACKS, f"broker/{broker}", words)


def _broker_words(broker: int, old: tuple[str | None, bool] | None, new: tuple[str | None, bool] | None) -> str:
    was, lives = old is not None and old[1], new is not None and new[1]
    rack = (new or old or (None, False))[0]
    where = f"rack {rack}" if rack is not None else "an unknown rack"
    if lives and not was:
        return f"broker {broker} is back in {where}" if old is not None else f"broker {broker} is new in {where}"
    if was and not lives:
        return f"broker {broker} of {where} is absent"
    if lives and old is not None and old[0] != rack:
        former = f"rack {old[0]}" if old[0] is not None else "an unknown rack"
        return f"broker {broker} is in {where}, and was in {former}"
    return ""


def _rebalances(before: Snapshot, now: Snapshot) -> Iterator[HistoryEvent]:
    """Groups that have rebalanced since, as far as their generation, epoch or state shows it."""
    names = [
        name for name, group in now.groups.items() if (old := before.groups.get(name)) is not None
        if old is not group and _rebalanced(old, group)
    ]  # fmt: skip
    for name in islice(names, _REBALANCES_NAMED):
        yield HistoryEvent(now.taken_ms, HistoryKind.REBALANCE, f"group/{name}", f"group {name} has rebalanced")
    if len(names) > _REBALANCES_NAMED:
        more = counted(len(names) - _REBALANCES_NAMED, "more group has", "more groups have")
        yield HistoryEvent(now.taken_ms, HistoryKind.REBALANCE, "", f"{more} rebalanced")


def _rebalanced(old: Group, new: Group) -> bool:
    if isinstance(old, OtherGroup) or isinstance(new, OtherGroup) or old.hidden or new.hidden:
        return False
    if isinstance(old, ConsumerGroup) and isinstance(new, ConsumerGroup):
        return old.epoch != new.epoch or _generation(old) != _generation(new) or _holders(old) != _holders(new)
    if isinstance(old, ConsumerGroup) or isinstance(new, ConsumerGroup):
        return False
    return (old.epoch, old.join) != (new.epoch, new.join)


def _generation(group: ConsumerGroup) -> int:
    return max((one.generation or 0 for one in group.members), default=0)


def _holders(group: ConsumerGroup) -> frozenset[tuple[str, object]]:
    return frozenset((one.id, one.assigned) for one in group.members)


def _moves(before: Snapshot, now: Snapshot) -> Iterator[HistoryEvent]:
    """Reassignments that began and ended, one event for each topic."""
    if any(gap.part.value == "reassignments" for gap in (*before.gaps, *now.gaps)):
        return
    old, new = set(before.reassignments), set(now.reassignments)
    for kind, partitions, verb in (
        (HistoryKind.MOVE_BEGAN, new - old, "began to move"),
        (HistoryKind.MOVE_ENDED, old - new, "moves no more"),
    ):
        for topic, some in _by_topic(partitions):
            named = few([f"{topic}-{number}" for number in some], _NAMED)
            yield HistoryEvent(now.taken_ms, kind, f"topic/{topic}", f"{named} {verb}")


def _by_topic(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return sorted(found.items())
