"""A desk whose commands go through a directory to the leader of a file journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.act.lease import LeadershipPlan
from agent.execute.commands.command_context import CommandWitness
from agent.journal.entries import JournalKey, JournalState
from agent.web.commands import CommandDesk
from tests.cli.execute.file_agent import MOVE

KEY = JournalKey(b"the key of this very process")


def desk_of(path: Path, view: Callable[[], JournalState], key: JournalKey = KEY, **more: Any) -> CommandDesk:
    plan = LeadershipPlan(config={}, agent="rw-1", file=path)
    witness = CommandWitness("rw-1", (key,))
    return CommandDesk(plan=plan, witness=witness, journal=view, **{"proposals": lambda: (MOVE,), "wait_s": 5, **more})
