"""What does an operator's command make of a plan that has not ended, and what is the answer? One table for both.

The machine takes the plan, the answer to the operator the sentence: none is worked out beside the other.

==============  ============  ==============  =============
state           cancel        rollback        pause, resume
==============  ============  ==============  =============
open, electing  cancelling    rolling back    yes
cancelling      is so         rolling back    refused
rolling back    cancelling    is so           yes
==============  ============  ==============  =============

A rollback that is cancelled moves nothing more back; what is back stays so. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.execute.reassign.messages import Said, Word
from agent.values.reassignment import Plan, PlanState, limits_words

RUNNING = (PlanState.OPEN, PlanState.ELECTING, PlanState.ROLLING_BACK)
"""States in which a plan can be paused, and new batches of it may begin."""
TURNED_BACK = (PlanState.OPEN, PlanState.ELECTING, PlanState.CANCELLING)
"""States from which a plan goes back."""

_CANCELLED: Mapping[PlanState, str] = {
    PlanState.OPEN: "no new batch begins, and moves in progress are taken back",
    PlanState.ELECTING: "all its moves have ended, and no more leaders are elected",
    PlanState.ROLLING_BACK: "its rollback stops, no new batch begins, and moves in progress are taken back; "
    "partitions that were moved back stay so",
}
_PAUSED: Mapping[Word, str] = {
    Word.PAUSE: "no new batch of it begins; moves in progress continue",
    Word.RESUME: "new batches of it may begin",
}
_IS: Mapping[Word, str] = {Word.PAUSE: "paused already", Word.RESUME: "not paused"}


class Turn(NamedTuple):
    """What a command comes to."""

    plan: Plan
    """As the command leaves it; the very same where nothing changes."""
    done: bool
    """False: refused."""
    sentence: str
    """The answer."""


def turned(plan: Plan, said: Said, batches: int = 0) -> Turn:
    """The plan, which has not ended, after the command; ``batches`` is the number of its latest batch, 0 without one.

    A command that the plan has had already (`Plan.heard`) changes nothing.
    """
    match said.word:
        case Word.CANCEL:
            turn = _cancelled(plan, said)
        case Word.ROLLBACK:
            turn = _rolled_back(plan, said, batches)
        case Word.PAUSE | Word.RESUME:
            turn = _paused(plan, said)
    again = turn.plan != plan and said.id and said.id == plan.heard
    return turn._replace(plan=plan if again or turn.plan == plan else turn.plan._replace(heard=said.id))


def _cancelled(plan: Plan, said: Said) -> Turn:
    if plan.state is PlanState.CANCELLING:
        return Turn(plan, done=True, sentence=f"{plan.proposal_id} is cancelling already")
    sentence = f"{plan.proposal_id} is cancelling: {_CANCELLED[plan.state]}"
    return Turn(_ending(plan, PlanState.CANCELLING, said), done=True, sentence=sentence)


def _rolled_back(plan: Plan, said: Said, batches: int) -> Turn:
    if plan.state not in TURNED_BACK:
        return Turn(plan, done=True, sentence=f"{plan.proposal_id} is {plan.state.value} already")
    back_at = limits_words(plan.throttle_bytes_per_s, plan.max_moves)
    sentence = f"{plan.proposal_id} is rolling back: its moves, finished and in progress, are taken back{back_at}"
    after = _ending(plan, PlanState.ROLLING_BACK, said)._replace(turned=batches)
    return Turn(after, done=True, sentence=sentence)


def _paused(plan: Plan, said: Said) -> Turn:
    name, pausing = plan.proposal_id, said.word is Word.PAUSE
    if plan.state not in RUNNING:
        return Turn(plan, done=False, sentence=f"{name} is {plan.state.value}, which is not paused")
    if plan.paused is pausing:
        return Turn(plan, done=True, sentence=f"{name} is {_IS[said.word]}")
    return Turn(plan._replace(paused=pausing), done=True, sentence=f"{name}: {_PAUSED[said.word]}")


def _ending(plan: Plan, state: PlanState, said: Said) -> Plan:
    by = f" by {said.who}" if said.who else ""
    sentence = f"{said.word.value} requested{by}"
    return plan._replace(state=state, paused=False, elections=0, sentence=sentence)
