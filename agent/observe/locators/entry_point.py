"""Asks an entry point of an installed package (group ``rackwise.rack_locators``), in a process of its own.

It is foreign code: what it prints, keeps, blocks or breaks is its process's, which is run and ended like any other
program. Its properties, which may hold secrets, go to it through a pipe and stand in no list of processes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from agent.observe.locators.program import output_of
from agent.observe.locators.question import EntryPointQuestion
from agent.observe.locators.table import decoded, rows_of
from agent.values.foreign_json import ForeignJsonError, read_json
from agent.values.observation import GapCause, RawLocated
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed

MODULE = "agent.observe.locators.plugged"


def ask_entry_point(
    question: EntryPointQuestion, timeout_ms: int
) -> tuple[bytes, Callable[[bytes], tuple[RawLocated, ...]]]:
    """What its process printed, and how to read that. Raises CallFailed."""
    content = output_of(
        (sys.executable, "-P", "-m", MODULE, question.entry_point),
        deadline=Deadline.after_ms(min(question.timeout_ms, timeout_ms)),
        max_bytes=question.max_bytes,
        stdin=json.dumps(dict(question.properties)).encode(),
    )
    return content, read_answer


def read_answer(content: bytes) -> tuple[RawLocated, ...]:
    """The rows that `plugged` printed. Raises CallFailed, also with what the process itself says."""
    try:
        answer = read_json(decoded(content), most_bytes=len(content))
    except ForeignJsonError:
        answer = None
    match answer:
        case {"rows": list(rows)}:
            return rows_of(("row " + str(number), *_pair(row)) for number, row in enumerate(rows, start=1))
        case {"failed": str(sentence)}:
            raise CallFailed(GapCause.UNUSABLE, sentence)
        case _:
            raise CallFailed(GapCause.UNUSABLE, "its process gave no answer")


def _pair(row: Any) -> tuple[str, str]:
    match row:
        case [str(key), str(rack)]:
            return key, rack
        case _:
            return "", ""
