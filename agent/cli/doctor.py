"""``doctor``: faults that cause traffic across racks, each with its cost and its fix; and risks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from agent.cli import options, session
from agent.cli.output import NAMES_SHOWN, CellMark, OutputFormat, chosen, emit, emit_command, emit_text

if TYPE_CHECKING:
    from agent.documents.cluster import CheckDocument, FixDocument
    from agent.simulate.evaluation import StageEvaluation

V = TypeVar("V")
_INDENT = 10
PARTS_SHOWN = 20


def doctor(source: options.SettingsOptions, given: options.LookOptions) -> None:
    """Faults that cause traffic across racks, each with its cost a day and the line to change; and risks."""
    rows, look = session.shown(source, given, "/doctor", _document)
    from agent.cli import tables

    if chosen(given.output) is not OutputFormat.TABLE:
        columns = ("state", "check", "who", "sentence", "line", "cross_rack_bytes_per_s", "usd_per_day")
        emit(rows, columns, given.output, absent={"line": CellMark.NONE})
        session.leave_look(look)
    _show_checks(rows, every=given.every)
    tables.basis(look)
    session.leave_look(look)


def _document(look: StageEvaluation) -> object:
    from agent.documents.doctor import doctor_checks, doctor_rows

    return doctor_rows(doctor_checks(look), look)


def _show_checks(rows: list[CheckDocument], *, every: bool) -> None:
    """Each check in lines that fit the terminal."""
    from agent.cli.tables import fault_words

    for row in rows:
        emit_text(row["check"], indent=_INDENT, mark=f"{row['state']:>8}")
        is_shown = row["state"] != "ok" or row["always_shown"]
        _emit_parts(row["sentences"] if is_shown else [], lambda part: emit_text(part, indent=_INDENT), every=every)
        costs = fault_words(row)
        if costs:
            emit_text(costs, indent=_INDENT)
        _emit_parts(row["fixes"], partial(_show_fix, every=every), every=every)


def _show_fix(fix: FixDocument, *, every: bool) -> None:
    """Whose the lines are, then each as one line, to be copied."""
    emit_text(f"fix for {_named(fix['who'], len(fix['who']) if every else NAMES_SHOWN)}:", indent=_INDENT)
    for line in fix["lines"]:
        emit_command(line)


def _named(who: list[str], most: int) -> str:
    """``groups exports and mailer``, ``brokers 1, 2 and 7 more``."""
    from agent.values.number_format import in_full

    kinds: dict[str, list[str]] = {}
    for kind, _, name in (one.partition(" ") for one in who):
        kinds.setdefault(kind, []).append(name)
    named: list[str] = []
    for kind, names in kinds.items():
        shown = names[:most] + ([f"{len(names) - most:,} more"] if len(names) > most else [])
        named.append(f"{kind}{'' if len(names) == 1 else 's'} {in_full(shown)}")
    return ", ".join(named)


def _emit_parts(parts: Sequence[V], write: Callable[[V], None], *, every: bool) -> None:
    """Each part of an answer by itself; of very many the first ones."""
    for part in parts if every else parts[:PARTS_SHOWN]:
        write(part)
    if len(parts) > PARTS_SHOWN and not every:
        emit_text(f"and {len(parts) - PARTS_SHOWN:,} more: --all or -o json", indent=_INDENT)
