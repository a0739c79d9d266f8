"""New findings, proposals and warm-up progress of a cycle, as lines. Pure but for its memory.

A finding that ends and comes back is shown again. A proposal is shown again only when what it would change has changed:
its figures move with every look.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.values.cycle import Cycle
from agent.values.finding import Finding, FindingSeverity
from agent.values.number_format import counted, few
from agent.values.proposal import Proposal, ProposalRow
from agent.values.snapshot import RackState, Range, Snapshot, StreamsGroup, TaskCopy, TaskRole
from testbed.demo.console import ConsoleLine

_MOST_LINES = 12
_ONE_BY_ONE = 3
_NAMED = 8
_WARMUPS_EVERY_MS = 4_000
_ORDER = {FindingSeverity.CRITICAL: 0, FindingSeverity.WARNING: 1, FindingSeverity.INFO: 2}
_Slot = tuple[str, str, str]


class CycleEvents:
    """Tells of every cycle what the cycles before did not."""

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}
        self._proposed: dict[_Slot, tuple[ProposalRow, ...]] = {}
        self._warmups_shown_ms: int | None = None
        self._caught_up: set[tuple[str, str, str]] = set()

    def of(self, cycle: Cycle) -> list[ConsoleLine]:
        """The lines of this cycle."""
        return [*self._findings(cycle), *self._warmups(cycle.snapshot), *self._proposals(cycle)]

    def _findings(self, cycle: Cycle) -> list[ConsoleLine]:
        # One finding is held under an id of its own until its rack has been stable: that is no news.
        now = {finding.id.removesuffix(":held"): finding for finding in cycle.detection.findings}
        new = [finding for name, finding in now.items() if name not in self._found]
        new.sort(key=lambda finding: (_ORDER[finding.severity], finding.id))
        # What a gap hides has not ended, and is no news when it is seen again.
        known = set() if cycle.known is None else {name.removesuffix(":held") for name in cycle.known.findings}
        ended = [finding for name, finding in self._found.items() if name not in now and name not in known]
        self._found = {**{name: one for name, one in self._found.items() if name in known}, **now}
        return [
            *(_first_of(found) for found in _by_reason(new)),
            *(
                ConsoleLine("ended", f"{found[0].reason.value}: {_some(str(finding.subject) for finding in found)}")
                for found in _by_reason(ended)
            ),
        ]

    def _proposals(self, cycle: Cycle) -> list[ConsoleLine]:
        if not cycle.planned:
            return []
        now = {_slot(proposal): proposal for proposal in cycle.proposals}
        new = [proposal for slot, proposal in now.items() if self._proposed.get(slot) != proposal.after]
        gone = [slot for slot in self._proposed if slot not in now]
        self._proposed = {slot: proposal.after for slot, proposal in now.items()}
        lines = [ConsoleLine(proposal.kind.value, with_line(proposal)) for proposal in new]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [ConsoleLine("look", f"... and {counted(len(lines) - _MOST_LINES, 'more proposal')}")]
        if gone:
            lines.append(
                ConsoleLine("ended", f"no longer proposed: {_some(f'{kind} {subject}' for kind, subject, _ in gone)}")
            )
        return lines

    def _warmups(self, snapshot: Snapshot) -> list[ConsoleLine]:
        """Every few seconds, and at once when one has caught up."""
        copies = [copy for of in snapshot.copies.values() for copy in of if copy.role is TaskRole.WARMUP]
        ready = {(copy.group_id, str(copy.task), copy.process_id) for copy in copies if copy.caught_up}
        last, now = self._warmups_shown_ms, snapshot.monotonic_ms
        due = last is None or now - last >= _WARMUPS_EVERY_MS
        waiting = any(not copy.caught_up for copy in copies)
        news = bool(ready - self._caught_up)
        self._caught_up = ready
        if not copies or not (news or (due and waiting)):
            return []
        self._warmups_shown_ms = now
        return [ConsoleLine("warm-up", warmup_sentence(copy, snapshot)) for copy in copies]


def _behind(records: str) -> str:
    return f"{records} {'record' if records == '1' else 'records'} behind"


def warmup_sentence(copy: TaskCopy, snapshot: Snapshot) -> str:
    """Task, place, lag, rate, time left and its source."""
    parts = [f"{copy.group_id} {copy.task}{_where(copy, snapshot)}"]
    parts.append("lag unknown" if copy.lag is None else _behind(_range(copy.lag)))
    if copy.rate_per_s is not None and not copy.caught_up:
        parts.append(_pace(copy.rate_per_s))
    if copy.caught_up:
        parts.append("caught up: promotable now")
    elif copy.eta_s is not None:
        parts.append(f"expected to catch up {_within(copy.eta_s)}")
    if copy.lag_source is not None:
        parts.append(f"source: {copy.lag_source.value}")
    return ", ".join(parts)


def _finding_text(finding: Finding) -> str:
    held = " (held for now)" if finding.held else ""
    return f"{finding.reason.value}: {finding.sentence}{held}"


def _by_reason(findings: Iterable[Finding]) -> list[list[Finding]]:
    """In their order: what happens to many subjects at once is one line, or it would scroll everything else away."""
    groups: dict[tuple[str, bool], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.reason.value, finding.held), []).append(finding)
    few = [[finding] for found in groups.values() if len(found) <= _ONE_BY_ONE for finding in found]
    many = [found for found in groups.values() if len(found) > _ONE_BY_ONE]
    return sorted([*few, *many], key=lambda found: _ORDER[found[0].severity])


def _first_of(findings: list[Finding]) -> ConsoleLine:
    others = [str(finding.subject) for finding in findings[1:]]
    more = f" ... and {len(others):,} more of these: {_some(others)}" if others else ""
    return ConsoleLine(findings[0].severity.value, _finding_text(findings[0]) + more)


def _some(names: Iterable[str]) -> str:
    return few(list(dict.fromkeys(names)), _NAMED)


def with_line(proposal: Proposal) -> str:
    """Its sentence, and the lines to set where there are some."""
    return "  > ".join([proposal.sentence, *(proposal.line.splitlines() if proposal.line else ())])


def _slot(proposal: Proposal) -> _Slot:
    return proposal.kind.value, str(proposal.subject), proposal.reason.name


def _where(copy: TaskCopy, snapshot: Snapshot) -> str:
    group = snapshot.groups.get(copy.group_id)
    for process in group.processes if isinstance(group, StreamsGroup) else ():
        if process.id == copy.process_id and process.rack.state is RackState.KNOWN:
            return f" in rack {process.rack.name}"
    return ""


def _pace(rate: Range) -> str:
    """More may be written than a warm-up restores."""
    if round(rate.likely) == 0:
        return "neither catching up nor falling behind"
    if rate.likely < 0:
        return f"falling behind by {_range(Range(-rate.high, -rate.likely, -rate.low))} records/s"
    return f"catching up by {_range(rate)} records/s"


def _within(eta_s: Range) -> str:
    return f"in {_range(eta_s)} s" if eta_s.high > 1 else "within a second"


def _range(value: Range) -> str:
    likely, low, high = (f"{round(one):,}" for one in (value.likely, value.low, value.high))  # no -0
    return likely if low == high else f"{likely} ({low} to {high})"
