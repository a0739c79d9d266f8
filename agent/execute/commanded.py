"""What one command is judged by, and what it comes to. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent.execute.attempts import attempt, latest
from agent.execute.messages import Accepted, Said
from agent.execute.values import Plan
from agent.journal.commands import Command
from agent.journal.entry import View, Write
from agent.limits_execute import ExecuteLimits
from agent.propose.proposal import Proposal

Spoken = Said | Accepted


class Foreseen(NamedTuple):
    """What the guard would say of a proposal once its approval is in the journal."""

    allowed: bool
    sentence: str
    """What holds it; empty when nothing does."""
    comes: bool = True
    """False when it is held for good: neither time nor the cluster changes that, only settings do."""
    until_ms: int | None = None
    """Epoch milliseconds until when it is held at least; None when unknown."""


Foresee = Callable[[Proposal, View], Foreseen | None]
"""None when the agent has not yet looked at the cluster."""


class Room(NamedTuple):
    """What a command is judged by."""

    view: View
    standing: Mapping[str, Proposal]
    plans: tuple[Plan, ...]
    limits: ExecuteLimits
    now_ms: int
    foresee: Foresee

    def plan(self, name: str | None) -> Plan | None:
        """The plan that an operator means: one named in full, or the newest attempt at a proposal."""
        if name is None:
            return None
        if attempt(name).number > 1:
            return next((plan for plan in self.plans if plan.proposal_id == name), None)
        return latest(self.plans, name)


class Result(NamedTuple):
    """What one command comes to."""

    done: bool
    sentence: str
    writes: tuple[Write, ...] = ()
    words: tuple[Spoken, ...] = ()
    look_now: bool = False
    plan: str | None = None
    """Name of the plan that it is about."""


def refused(sentence: str) -> Result:
    """Nothing changes, for this reason."""
    return Result(done=False, sentence=f"refused: {sentence}")


def because(command: Command) -> str:
    """What the operator wrote, in brackets."""
    return why(command.reason)


def why(reason: str) -> str:
    """A reason in brackets; nothing without one."""
    return f" ({reason})" if reason else ""
