"""Warm-ups: how far each task's copy is, when it will have caught up, and when the application asks next (KIP-441)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from agent.execute.probing_decision import ProbingContext, decide
from agent.execute.probing_values import NO_ANCHORS, past_triggers
from agent.explain.explain import LABELS as EVIDENCE_LABELS
from agent.journal.entries import JournalState
from agent.journal.triggers import TriggerEntry, TriggerVerdict, triggers
from agent.values.number_format import counted, lasted, records
from agent.values.proposal import ProposalReason
from agent.values.snapshot import RackState, Range, StreamsGroup, StreamsProcess, TaskCopy, TaskRole
from agent.web.page.environment import group_link, rack_link, utc_words
from agent.web.page.look_documents import DocumentMaker
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.svg import warmup_bars
from agent.web.page.tables import TableCell, TableColumn, TableRow, TableSource, fields_of, page_rows

if TYPE_CHECKING:
    from agent.simulate.evaluation import StageEvaluation

_PROMOTED = (TriggerVerdict.AS_PREDICTED, TriggerVerdict.PARTLY, TriggerVerdict.OTHERWISE)


class JournalSeen(NamedTuple):
    """The journal, where this agent reads one."""

    view: JournalState | None
    why_not: str
    """Why there is none; empty where there is."""


def warmups_view(asked: PageRequest) -> Response:
    """The view."""
    rows = shared_warmups(asked)
    journal = _journal(asked)
    applications = application_rows(asked.look, rows, journal)
    warming = _warmups_table(rows)
    rounds = _rounds_table(_round_rows(journal.view))
    caught_up = sum(row["caught_up"] is True for row in rows)
    unknown = sum(row["caught_up"] is None for row in rows)
    return asked.page(
        "warmups.html",
        "Warm-ups",
        tables=(warming, _applications_table(applications), rounds),
        picture=warmup_bars(page_rows(warming, asked.query)),
        total=len(rows),
        lead=lead(len(rows), caught_up, unknown, len(applications)),
        why_no_rounds=journal.why_not,
        gaps=bool(asked.look.snapshot.gaps),
    )


def shared_warmups(of: DocumentMaker) -> list[dict[str, Any]]:
    """The warm-ups of the look."""
    return of.made("warm-ups", warmup_rows)


def _journal(asked: PageRequest) -> JournalSeen:
    """What the journal says of earlier rounds, also of those of another agent; without a journal there were none."""
    records_read = asked.agent.journal()
    return JournalSeen(records_read.view, "") if records_read.known else JournalSeen(None, records_read.why)


def warmup_rows(look: StageEvaluation) -> list[dict[str, Any]]:
    """One row for each copy that warms up, those with the most left first; unknown lags before all others."""
    rows = [
        _row(copy, group, look)
        for name, copies in look.snapshot.copies.items()
        if isinstance(group := look.snapshot.groups.get(name), StreamsGroup)
        for copy in copies
        if copy.role is TaskRole.WARMUP
    ]
    rows.sort(key=lambda row: (row["lag_records"] is not None, -_likely(row["lag_records"]), row["group"], row["task"]))
    return rows


def _likely(value: Mapping[str, float] | None) -> float:
    return 0.0 if value is None else value["likely"]


def _row(copy: TaskCopy, group: StreamsGroup, look: StageEvaluation) -> dict[str, Any]:
    process = next((one for one in group.processes if one.id == copy.process_id), None)
    threshold = look.limits.group(group.id).acceptable_recovery_lag
    row = {
        "group": group.id,
        "task": str(copy.task),
        "process": copy.process_id,
        "client": _client(process, copy),
        "rack": process.rack.name if process is not None and process.rack.state is RackState.KNOWN else None,
        "role_certain": copy.role_certain,
        "lag_records": _range(copy.lag),
        "acceptable_recovery_lag": threshold,
        "rate_records_per_s": _range(copy.rate_per_s),
        "eta_s": _range(copy.eta_s),
        "caught_up": copy.caught_up,
        "source": copy.lag_source.value if copy.lag_source is not None else None,
        "lag_age_ms": copy.lag_age_ms,
    }
    lag = "its lag is unknown" if copy.lag is None else f"its lag is {records(copy.lag)}"
    accepted = f"{threshold:,} {'is' if threshold == 1 else 'are'} acceptable"
    sentence = f"task {copy.task} of {group.id} on {row['client']}: {lag}, of which {accepted}"
    return {**row, "outlook": outlook(copy), "sentence": f"{sentence}; {outlook(copy)}"}


def _client(process: StreamsProcess | None, copy: TaskCopy) -> str:
    return next(iter(process.client_ids), copy.process_id) if process is not None else copy.process_id


def _range(value: Range | None) -> dict[str, float] | None:
    return None if value is None else {"low": value.low, "likely": value.likely, "high": value.high}


def outlook(copy: TaskCopy) -> str:
    """When it will have caught up: ``caught up``, ``in 23 s to 93 s``, ``falls behind``, ``unknown``."""
    if copy.caught_up:
        return "✓ caught up"
    if copy.rate_per_s is not None and copy.rate_per_s.high <= 0:
        return "✕ falls behind: never at this rate"
    if copy.eta_s is None:
        return "? unknown when"
    low, high = lasted(1_000 * copy.eta_s.low), lasted(1_000 * copy.eta_s.high)
    return f"in {low}" if low == high else f"in {low} to {high}"


def application_rows(
    look: StageEvaluation, rows: Sequence[Mapping[str, Any]], journal: JournalSeen
) -> list[dict[str, Any]]:
    """One row for each application with a warm-up: its settings, its next probing rebalance, and its rounds."""
    context = ProbingContext(look.snapshot, look.before, look.limits)
    view, now_ms = journal.view or {}, look.snapshot.monotonic_ms
    past, _ = past_triggers(view, NO_ANCHORS, taken_ms=look.snapshot.taken_ms, monotonic_ms=now_ms)
    counts: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        counts.setdefault(row["group"], []).append(row)
    found = []
    for name, copies in sorted(counts.items()):
        group, settings = look.snapshot.groups[name], look.limits.group(name)
        next_ms = group.next_rebalance_ms if isinstance(group, StreamsGroup) else None
        entries = [one for one in _rounds(view) if one.group_id == name]
        promoted = sum(_promoted(one) for one in entries)
        found.append(
            {
                "group": name,
                "warmups": len(copies),
                "caught_up": sum(one["caught_up"] is True for one in copies),
                "acceptable_recovery_lag": settings.acceptable_recovery_lag,
                "probing_rebalance_interval_ms": settings.probing_rebalance_interval_ms,
                "settings_known": settings.known,
                "next_rebalance_ms": next_ms,
                "next_in_ms": None if next_ms is None else next_ms - look.snapshot.taken_ms,
                "rounds": None if journal.view is None else len(entries),
                "promoted": None if journal.view is None else promoted,
                "saved_at_most_ms": None if journal.view is None else promoted * settings.probing_rebalance_interval_ms,
                "decision": decide(name, context, past.get(name, ())).sentence,
            }
        )
    return found


def _rounds(view: JournalState) -> list[TriggerEntry]:
    """Rebalances that were asked for because of warm-ups, the newest last."""
    return [one for one in triggers(view) if one.reason == ProposalReason.WARMUP_PROMOTABLE.name]


def _promoted(entry: TriggerEntry) -> bool:
    return entry.judgement is not None and entry.judgement.verdict in _PROMOTED


def _round_rows(view: JournalState | None) -> list[dict[str, Any]]:
    return [
        {
            "group": one.group_id,
            "at_ms": one.intended_ms,
            "verdict": None if one.judgement is None else one.judgement.verdict.value,
            "sentence": one.sentence if one.judgement is None else one.judgement.sentence,
            "expected": one.expected.gain,
            "proposal": one.proposal_id,
        }
        for one in reversed(_rounds(view or {}))
    ]


def _of(name: str) -> Any:
    return lambda row: row[name]


def _group_cell(row: TableRow) -> TableCell:
    return TableCell(row["group"], group_link(row["group"]), tone="name")


def _between(value: Mapping[str, float] | None, digits: int = 0) -> str | None:
    """``1,200`` or ``1,000 to 1,500``."""
    if value is None:
        return None
    low, high = f"{value['low']:,.{digits}f}", f"{value['high']:,.{digits}f}"
    return low if low == high else f"{low} to {high}"


def _likely_of(name: str) -> Any:
    return lambda row: None if row[name] is None else row[name]["likely"]


def _bounds_of(name: str) -> dict[str, Any]:
    def bound(which: str) -> Any:
        return lambda row: None if row[name] is None else row[name][which]

    return {f"{name}_{which}": bound(which) for which in ("low", "high")}


def _warmups_table(rows: Sequence[Any]) -> TableSource:
    def outlook_cell(row: TableRow) -> TableCell:
        tone = {True: "good", False: "bad" if "never" in row["outlook"] else "", None: "quiet"}[row["caught_up"]]
        return TableCell(row["outlook"], tone=tone)

    return TableSource(
        title="Warm-ups",
        unit="warm-up",
        rows=rows,
        columns=(
            TableColumn("group", "Application", _group_cell, _of("group")),
            TableColumn("task", "Task", lambda row: TableCell(row["task"], tone="code"), _of("task")),
            TableColumn("client", "On", lambda row: TableCell(row["client"], tone="code"), _of("client")),
            TableColumn(
                "rack",
                "Rack",
                lambda row: TableCell(row["rack"], None if row["rack"] is None else rack_link(row["rack"])),
                _of("rack"),
            ),
            TableColumn(
                "lag_records",
                "Lag",
                lambda row: TableCell(_between(row["lag_records"])),
                _likely_of("lag_records"),
                is_number=True,
                falls=True,
                hint="records behind",
                beside=_bounds_of("lag_records"),
            ),
            TableColumn(
                "acceptable_recovery_lag",
                "Acceptable",
                lambda row: TableCell(f"{row['acceptable_recovery_lag']:,}"),
                _of("acceptable_recovery_lag"),
                is_number=True,
                hint=EVIDENCE_LABELS["acceptable_recovery_lag"],
            ),
            TableColumn(
                "rate_records_per_s",
                "Closing, records/s",
                lambda row: TableCell(_between(row["rate_records_per_s"])),
                _likely_of("rate_records_per_s"),
                is_number=True,
                hint="records restored minus records appended; below zero it falls behind",
                beside=_bounds_of("rate_records_per_s"),
            ),
            TableColumn(
                "eta_s",
                "Caught up",
                outlook_cell,
                _likely_of("eta_s"),
                beside={**_bounds_of("eta_s"), **fields_of("caught_up", "outlook")},
            ),
            TableColumn(
                "source",
                "Known from",
                lambda row: TableCell(
                    row["source"],
                    tone="quiet",
                    hint="" if row["lag_age_ms"] is None else f"read {lasted(row['lag_age_ms'])} before the look",
                ),
                _of("source"),
                beside=fields_of("lag_age_ms"),
            ),
        ),
        text=lambda row: f"{row['group']} {row['task']} {row['client']} {row['rack'] or ''}",
        empty="No task warms up.",
        stacks=True,
        page_rows=25,
    )


def _applications_table(rows: Sequence[Any]) -> TableSource:
    return TableSource(
        key="applications",
        title="Applications that warm up",
        unit="application",
        rows=rows,
        columns=(
            TableColumn("group", "Application", _group_cell, _of("group")),
            TableColumn(
                "caught_up",
                "Caught up",
                lambda row: TableCell(f"{row['caught_up']:,} of {row['warmups']:,}"),
                _of("caught_up"),
                is_number=True,
                beside=fields_of("warmups"),
            ),
            TableColumn("next_in_ms", "Its next probing rebalance", _next, _of("next_in_ms")),
            TableColumn(
                "probing_rebalance_interval_ms",
                "Interval",
                lambda row: TableCell(
                    lasted(row["probing_rebalance_interval_ms"]) + ("" if row["settings_known"] else " (assumed)"),
                    hint="probing.rebalance.interval.ms",
                ),
                _of("probing_rebalance_interval_ms"),
                is_number=True,
                beside=fields_of("settings_known"),
            ),
            TableColumn(
                "rounds", "Rounds so far", _rounds_cell, _of("rounds"), is_number=True, beside=fields_of("promoted")
            ),
            TableColumn(
                "saved_at_most_ms",
                "Time saved",
                _saved,
                _of("saved_at_most_ms"),
                is_number=True,
                hint="of each round that promoted, one interval at most",
            ),
            TableColumn("decision", "Now", lambda row: TableCell(row["decision"], tone="wide"), _of("decision")),
        ),
        text=_of("group"),
        empty="No application warms up.",
        page_rows=20,
        stacks=True,
    )


def _next(row: TableRow) -> TableCell:
    """When the application asks by itself; what a trigger now would save is the same time."""
    if row["next_in_ms"] is None:
        return TableCell(None, hint="its leader has scheduled none, or the members' bytes do not say")
    if row["next_in_ms"] <= 0:
        return TableCell(f"{lasted(-row['next_in_ms'])} overdue", tone="warn")
    words = f"in {lasted(row['next_in_ms'])}"
    if row["caught_up"]:
        words += f"; a rebalance now saves {lasted(row['next_in_ms'])}"
    return TableCell(words, hint=utc_words(row["next_rebalance_ms"]))


def _rounds_cell(row: TableRow) -> TableCell:
    if row["rounds"] is None:
        return TableCell(None)
    return TableCell(f"{row['rounds']:,}, of which {row['promoted']:,} promoted" if row["rounds"] else "0")


def _saved(row: TableRow) -> TableCell:
    saved = row["saved_at_most_ms"]
    return TableCell(None if saved is None else f"≤ {lasted(saved)}" if saved else "0 s")


def _rounds_table(rows: Sequence[Any]) -> TableSource:
    return TableSource(
        key="rounds",
        title="Rounds",
        unit="round",
        rows=rows,
        columns=(
            TableColumn("at_ms", "When", lambda row: TableCell(utc_words(row["at_ms"])), _of("at_ms"), falls=True),
            TableColumn("group", "Application", _group_cell, _of("group")),
            TableColumn(
                "verdict",
                "Outcome",
                lambda row: TableCell(row["verdict"] or "not judged yet"),
                _of("verdict"),
            ),
            TableColumn(
                "sentence", "What happened", lambda row: TableCell(row["sentence"], tone="wide"), _of("sentence")
            ),
            TableColumn(
                "expected", "Expected", lambda row: TableCell(row["expected"] or "·", tone="wide"), _of("expected")
            ),
        ),
        text=lambda row: f"{row['group']} {row['sentence']}",
        empty="No rebalance was asked for because of warm-ups.",
        page_rows=15,
        stacks=True,
    )


def lead(total: int, caught_up: int, unknown: int, applications: int) -> str:
    """How far the warm-ups are, in one sentence."""
    if not total:
        return "No task warms up now."
    words = f"{counted(total, 'task warms up', 'tasks warm up')} in {counted(applications, 'application')}"
    words += f"; {counted(caught_up, 'has', 'have')} caught up"
    return words + (f", and of {unknown:,} it is unknown." if unknown else ".")


VIEWS = (PageView("/warmups", warmups_view),)
