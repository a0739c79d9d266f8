"""Which attempts at a proposal does the journal know, and which one is next? Pure.

Invariant: no two plans ever have the same name, also where the journal has dropped the oldest of them: the number of an
attempt is above all that plans and answers to operators name.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.journal.commands import Verb, history
from agent.values.attempts import Attempt, attempt, forth_of, latest, of_plan
from agent.values.journal import View
from agent.values.reassignment import Plan

_APPROVING = (Verb.APPROVE, Verb.APPLY)
"""What these name has not begun."""


def next_attempt(plans: Iterable[Plan], view: View, proposal_id: str) -> Attempt:
    """The attempt that an approval given now is for; that of the newest plan while it has not ended.

    ``plans`` are those of the journal, read already.
    """
    newest = latest(plans, proposal_id)
    if newest is not None and not newest.ended:
        return of_plan(newest)
    named = [answer.plan for command, answer in history(view) if answer.plan and command.verb not in _APPROVING]
    every = (attempt(name) for plan in named for name in (plan, forth_of(plan)) if name is not None)
    began = [one.number for one in every if one.of == proposal_id]
    return Attempt(proposal_id, 1 + max((*began, 0 if newest is None else of_plan(newest).number)))


def said_of(plan: Plan) -> str:
    """An attempt and its state in words: ``attempt 1 rolled back (rollback requested by ann@desk)``."""
    how = f" ({plan.sentence})" if plan.sentence else ""
    return f"attempt {of_plan(plan).number} {plan.state.value}{how}"
