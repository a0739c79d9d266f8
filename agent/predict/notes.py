"""Notes of a prediction for a person: a note that many tasks share names one, with the number of the others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent.values.words import counted

_TASK = re.compile(r"\btask \d+_\d+(, active on [0-9a-f-]+)?")


def told_once(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes in their order; those that differ only in their tasks are one."""
    alike: dict[str, list[str]] = {}
    for note in notes:
        alike.setdefault(_TASK.sub("task", note), []).append(note)
    return tuple(
        first if not others else f"{first} (the same of {counted(len(others), 'more task')})"
        for first, *others in alike.values()
    )
