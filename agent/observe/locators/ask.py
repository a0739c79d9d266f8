"""Asks every rack locator outside of the process, in every look; the last good answer stands in for a failed one.

Invariants: a locator whose earlier question has not come back (a file on a dead file server) is not asked again, so
that threads never pile up; a table that did not change is the same object as before; whatever fails is a gap that says
how old the answer is that stands in.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Sequence
from functools import partial

from agent.observe.context import Ask, Context, Recall
from agent.observe.locators.program import ask_entry_point, output_of
from agent.observe.locators.question import CommandQuestion, EntryPointQuestion, FileQuestion, LocatorQuestion
from agent.observe.locators.table import read_table
from agent.values.observation import Gap, GapCause, Part, RawLocated, RawRackTable
from agent.values.words import lasted
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed
from config.plain_file import read_plain

Rows = tuple[RawLocated, ...]
_CAUSES = {errno.EINVAL: GapCause.UNUSABLE, errno.EFBIG: GapCause.TOO_LARGE}
Read = Callable[[bytes], Rows]


def locator_asks(context: Context) -> list[Ask[Rows | None]]:
    """One question per locator; the answer is None where it failed, and its gap has the locator as subject."""
    return [
        Ask(
            Part.RACK_LOCATORS,
            partial(ask_locator, question, context.recall, context.timeout_ms),
            None,
            subject=question.name,
        )
        for question in context.scope.rack_locators
    ]


def told_tables(
    context: Context, asks: Sequence[Ask[Rows | None]], gaps: Sequence[Gap]
) -> tuple[tuple[RawRackTable, ...], tuple[Gap, ...]]:
    """The tables of this look, and the gaps with what replaces each failed answer."""
    kept = _kept(context)
    answered = {ask.subject: RawRackTable(ask.subject, ask.answer, 0) for ask in asks if ask.answer is not None}
    told = [answered.get(ask.subject) or kept.get(ask.subject) for ask in asks]
    tables = tuple(table for table in told if table is not None)
    return tables, tuple(_with_age(gap, kept) if gap.part is Part.RACK_LOCATORS else gap for gap in gaps)


def ask_locator(question: LocatorQuestion, recall: Recall, timeout_ms: int) -> Rows:
    """The rows of its answer. Raises CallFailed."""
    if question.name in recall.asked_locators:
        raise CallFailed(GapCause.TIMED_OUT, "it has not yet answered the request of an earlier look")
    recall.asked_locators.add(question.name)
    read: Read
    try:
        match question:
            case FileQuestion():
                content, read = file_content(question), partial(read_table, form=question.form)
            case CommandQuestion():
                until = Deadline.after_ms(min(question.timeout_ms, timeout_ms))
                content = output_of(question.argv, deadline=until, max_bytes=question.max_bytes)
                read = partial(read_table, form=question.form)
            case EntryPointQuestion():
                content, read = ask_entry_point(question, timeout_ms)
        return _parsed(question.name, content, read, recall)
    finally:
        recall.asked_locators.discard(question.name)


def file_content(question: FileQuestion) -> bytes:
    """The bytes of a regular file that is not too large. Raises CallFailed."""
    try:
        return read_plain(question.path, question.max_bytes)
    except PermissionError:
        raise CallFailed(GapCause.NOT_ALLOWED, f"{question.path} may not be read") from None
    except OSError as error:
        cause = _CAUSES.get(error.errno or 0, GapCause.UNREACHABLE)
        raise CallFailed(cause, f"{question.path} cannot be read ({error.strerror})") from None


def _parsed(name: str, content: bytes, read: Read, recall: Recall) -> Rows:
    """The rows of an answer, those of the last one when not a byte of it changed."""
    digest = hashlib.sha256(content).digest()
    known = recall.rack_tables.get(name)
    if known is not None and known[0] == digest:
        return known[1]
    rows = read(content)
    recall.rack_tables[name] = digest, rows
    return rows


def _kept(context: Context) -> dict[str, RawRackTable]:
    """The last good answers, as old as they are now."""
    last = context.recall.last
    if last is None:
        return {}
    elapsed_ms = context.now_ms - last.monotonic_ms
    return {table.locator: table._replace(age_ms=table.age_ms + elapsed_ms) for table in last.rack_tables}


def _with_age(gap: Gap, kept: dict[str, RawRackTable]) -> Gap:
    if not gap.subject:
        return gap
    table = kept.get(gap.subject)
    if table is None:
        return gap._replace(detail=f"{gap.detail}; it has never answered, so racks that only it knows are unknown")
    return gap._replace(detail=f"{gap.detail}; its answer from {lasted(table.age_ms)} ago is used")
