"""The time line: how much of the reads was local, and everything that happened meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from agent.documents.journal import history_rows
from agent.money.traffic import bytes_words
from agent.values.number_format import counted, lasted
from agent.web.cycle_history import CycleSummary, HistoryEvent, HistoryKind
from agent.web.page.environment import address, percent, rendered, subject_link, subject_words
from agent.web.page.page_documents import ActingRecords
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.svg_timeline import DESK, PHONE, TimelineMark, TimelinePoint, legend, timeline
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableRow, TableSource, instant_cell

HOURS = (1, 6, 24)
HOUR_MS = 3_600_000
REPEATS_MS = 300_000
"""Looks that fail so soon after one another are one event."""
_JOURNAL = ("plan", "trigger", "approve", "apply", "cancel", "rollback", "pause", "resume")
"""Entries of the journal that stand on the time line."""
LANES = ("racks", "rebalances", "triggers", "moves", "findings", "proposals", "looks")
_LANE_OF = {
    "rack change": "racks",
    "rebalance": "rebalances",
    "trigger": "triggers",
    "move began": "moves",
    "move ended": "moves",
    "plan": "moves",
    "finding began": "findings",
    "finding ended": "findings",
    "look failed": "looks",
}


class TimelineSpan(NamedTuple):
    """The part of time that is shown, in epoch milliseconds."""

    from_ms: int
    until_ms: int
    hours: int


def own_hours(started_ms: int, now_ms: int) -> int:
    """Hours that are shown unless asked otherwise: of a young agent few, since what was before its start is unknown."""
    return 1 if now_ms - started_ms <= HOUR_MS else 6


def timeline_view(asked: PageRequest) -> Response:
    """The view; ``hours`` is how far it goes back."""
    state, now_ms = asked.agent.state, asked.clock().wall_ms
    asked_hours = asked.query.get("hours", "")
    known = asked_hours in {str(one) for one in HOURS}
    hours = int(asked_hours) if known else own_hours(state.started.wall_ms, now_ms)
    span = TimelineSpan(now_ms - hours * HOUR_MS, now_ms, hours)
    acting = ActingRecords(asked)
    rows = [one for one in state.past if span.from_ms <= one.at_ms <= span.until_ms]
    events = [one for one in event_rows(rows, acting) if span.from_ms <= one["at_ms"] <= span.until_ms]
    curve = curve_rows(rows)
    return asked.page(
        "timeline.html",
        "Time line",
        tables=(curve_table(curve), event_table(events)),
        lead=lead(rows, events, span, state.started.wall_ms),
        looks=sum(one.findings is not None for one in rows),
        picture=_pictures(curve, events, span, state.started.wall_ms),
        signs=legend(row["kind"] for row in events),
        span=span,
        spans=[(one, address("/timeline", **{**asked.query, "hours": one})) for one in HOURS],
        acting=acting,
        data=address("/timeline", hours=hours, format="json", table="curve"),
        more=sum(one.more_events for one in rows),
    )


def _pictures(curve: Iterable[TableRow], events: Iterable[TableRow], span: TimelineSpan, known_from_ms: int) -> Markup:
    """The picture for a phone and the one for a desk; the style sheet shows one of them."""
    points = [TimelinePoint(*(row[name] for name in TimelinePoint._fields)) for row in curve]
    marks = [
        TimelineMark(row["at_ms"], lane_of(row["kind"]), row["kind"], row["subject"], row["sentence"]) for row in events
    ]
    return Markup().join(
        timeline(
            points,
            marks,
            lanes=LANES,
            from_ms=span.from_ms,
            until_ms=span.until_ms,
            known_from_ms=known_from_ms,
            width=width,
        )
        for width in (PHONE, DESK)
    )


def lane_of(kind: str) -> str:
    """The lane of an event of this kind."""
    return _LANE_OF.get(kind, "proposals")


def curve_rows(past: Sequence[CycleSummary]) -> list[dict[str, Any]]:
    """One row a minute; None is unknown."""
    return [
        {
            "at_ms": one.at_ms,
            "reads": one.reads,
            "local": one.local,
            "unknown": one.unknown,
            "local_share": _share(one.local, one.reads),
            "unknown_share": _share(one.unknown, one.reads),
            "cross_rack_bytes_per_s": one.cross_rack_bytes_per_s,
            "findings": one.findings,
            "gaps": one.gaps,
        }
        for one in past
    ]


def _share(part: int | None, of: int | None) -> float | None:
    return None if part is None or not of else round(part / of, 4)


def event_rows(past: Sequence[CycleSummary], acting: ActingRecords) -> list[dict[str, Any]]:
    """What the looks saw, and what the journal says was done, in the order of time."""
    seen = [_event_row(event) for event in _without_repeats(event for row in past for event in row.events)]
    done = [
        {
            "at_ms": row["at_ms"],
            "kind": row["what"],
            "subject": row["about"] or "everything",
            "sentence": ": ".join(filter(None, (row["state"], row["sentence"]))),
            "severity": None,
            "source": "journal",
        }
        for row in history_rows(acting.view)
        if row["what"] in _JOURNAL
    ]
    return sorted((*seen, *done), key=lambda row: (row["at_ms"], row["kind"], row["subject"]))


def _event_row(event: HistoryEvent) -> dict[str, Any]:
    return {
        "at_ms": event.at_ms,
        "kind": event.kind.value,
        "subject": event.subject,
        "sentence": event.sentence,
        "severity": event.severity or None,
        "source": "look",
    }


def _without_repeats(events: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
    """The events; looks that fail one after the other for the same reason are one."""
    before: HistoryEvent | None = None
    for event in events:
        is_repeat = (
            before is not None
            and event.kind is HistoryKind.LOOK_FAILED
            and event.sentence == before.sentence
            and event.at_ms - before.at_ms <= REPEATS_MS
        )
        if event.kind is HistoryKind.LOOK_FAILED:
            before = event
        if not is_repeat:
            yield event


def lead(past: Sequence[CycleSummary], events: Sequence[Any], span: TimelineSpan, started_ms: int) -> str:
    """How the locality went, in one sentence."""
    known = [one for one in past if one.reads and one.local is not None]
    parts = []
    if known:
        first, last = known[0], known[-1]
        was, now = _percent(first), _percent(last)
        parts.append(
            f"{now} of all reads are local" + (f", {was} were {_ago(last, first)} before" if was != now else "")
        )
    else:
        parts.append("No group reads anything" if past and _reads_nothing(past[-1]) else _UNKNOWN_READS)
    more = sum(one.more_events for one in past)
    seen = counted(len(events) + more, "event") if events else "no event was seen"
    left_out = f", of which {more:,} {'is' if more == 1 else 'are'} not kept" if more else ""
    parts.append(f"{seen} in {counted(span.hours, 'hour')}{left_out}")
    if started_ms > span.from_ms:
        parts.append(f"what was before this agent's start {lasted(span.until_ms - started_ms)} ago is unknown")
    return "; ".join(parts) + "."


_UNKNOWN_READS = "How many reads are local is unknown"


def _reads_nothing(row: CycleSummary) -> bool:
    """Whether a look that saw everything saw no read."""
    return row.findings is not None and row.gaps == 0 and not row.reads


def _percent(row: CycleSummary) -> str:
    local, reads = row.local or 0, row.reads or 1
    return (
        percent(local / reads)
        if not row.unknown
        else f"{percent(local / reads)} to {percent((local + row.unknown) / reads)}"
    )


def _ago(last: CycleSummary, first: CycleSummary) -> str:
    return lasted(last.at_ms - first.at_ms)


def curve_table(rows: Sequence[TableRow]) -> TableSource:
    """The curve, the newest row first."""
    return TableSource(
        key="curve",
        title="Local reads",
        unit="minute",
        rows=rows,
        columns=(
            TableColumn("at_ms", "When", _instant, lambda row: row["at_ms"]),
            TableColumn("local_share", "Local", lambda row: _part(row["local_share"]), lambda row: row["local_share"],
                        is_number=True),
            TableColumn("unknown_share", "Unknown", lambda row: _part(row["unknown_share"]),
                        lambda row: row["unknown_share"], is_number=True),
            TableColumn("reads", "Reads", lambda row: _number(row["reads"]), lambda row: row["reads"], is_number=True),
            TableColumn("cross_rack_bytes_per_s", "Read across racks",
                        lambda row: TableCell(bytes_words(row["cross_rack_bytes_per_s"])),
                        lambda row: row["cross_rack_bytes_per_s"], is_number=True),
            TableColumn("findings", "Findings", lambda row: _number(row["findings"]), lambda row: row["findings"],
                        is_number=True),
            TableColumn("gaps", "Not seen", lambda row: _number(row["gaps"]), lambda row: row["gaps"], is_number=True),
        ),
        sort="-at_ms",
        empty="No look has finished in this time.",
        page_rows=30,
    )  # fmt: skip


def event_table(rows: Sequence[TableRow]) -> TableSource:
    """The events, the newest first."""
    return TableSource(
        key="events",
        title="Events",
        unit="event",
        rows=rows,
        columns=(
            TableColumn("at_ms", "When", _instant, lambda row: row["at_ms"]),
            TableColumn("kind", "What", _kind, lambda row: row["kind"]),
            TableColumn("subject", "About", _subject, lambda row: row["subject"]),
            TableColumn("sentence", "How", lambda row: TableCell(row["sentence"], tone="wide"),
                        lambda row: row["sentence"]),
        ),
        sort="-at_ms",
        text=lambda row: f"{row['kind']} {row['subject']} {row['sentence']}",
        choices=(TableChoice("kind", "What", _kinds(rows), lambda row: row["kind"], is_of_rows=True),),
        empty="Nothing happened in this time, as far as this agent saw.",
        page_rows=25,
        stacks=True,
    )  # fmt: skip


def _kinds(rows: Iterable[TableRow]) -> list[str]:
    return sorted({row["kind"] for row in rows})


def _instant(row: TableRow) -> TableCell:
    return instant_cell(row["at_ms"])


def _kind(row: TableRow) -> TableCell:
    if row["severity"] is None:
        return TableCell(row["kind"])
    return TableCell(rendered("event_kind.html", kind=row["kind"], severity=row["severity"]))


def _subject(row: TableRow) -> TableCell:
    kind, slash, name = row["subject"].partition("/")
    link = subject_link(kind, name) if slash else None
    return TableCell(subject_words(row["subject"]) or "everything", link, tone="name", hint=row["subject"])


def _part(share: float | None) -> TableCell:
    return TableCell(None if share is None else percent(share))


def _number(value: int | None) -> TableCell:
    return TableCell(None if value is None else f"{value:,}")


VIEWS = (PageView("/timeline", timeline_view, needs_look=False, fields={"hours": [str(one) for one in HOURS]}),)
