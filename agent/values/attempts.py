"""Which attempt at a proposal is a plan? Plan `p-1` is the first attempt at proposal p-1, plan `p-1.2` the second.

A proposal's id says what is to be changed, so the same change has the same id whenever it is proposed. A plan that
ended (done, cancelled, rolled back, failed) does not begin again; the same change is another attempt, with a plan, an
approval and batches of its own. A plan that takes a finished one back is named ``<plan>-back``, with attempts likewise.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from agent.values.reassignment import Plan, PlanState

_NAME = re.compile(r"(?P<of>.+?)(?:\.(?P<number>[1-9][0-9]{0,8}))?")
_BACK = "-back"


class Attempt(NamedTuple):
    """A plan's name, taken apart."""

    of: str
    """Id of the proposal, or the name of the plan that is taken back with `_BACK` after it."""
    number: int = 1

    def __str__(self) -> str:
        return self.of if self.number == 1 else f"{self.of}.{self.number}"


def attempt(name: str) -> Attempt:
    """The attempt that a plan of that name is."""
    found = _NAME.fullmatch(name)
    if found is None:
        return Attempt(name)
    return Attempt(found["of"], int(found["number"] or 1))


def of_plan(plan: Plan) -> Attempt:
    """The attempt that the plan is."""
    return attempt(plan.proposal_id)


def latest(plans: Iterable[Plan], of: str) -> Plan | None:
    """The newest attempt at a proposal; None when none of these is one."""
    tried = ((of_plan(plan), plan) for plan in plans if plan.proposal_id.startswith(of))
    return max(((one.number, plan) for one, plan in tried if one.of == of), default=(0, None), key=lambda it: it[0])[1]


def way_back(plans: Iterable[Plan], name: str) -> Plan | None:
    """The newest plan that takes that one back; None when none of these does."""
    return latest(plans, back_of(name))


def back_of(name: str) -> str:
    """What the plans are named that take that plan back."""
    return f"{name}{_BACK}"


def forth_of(name: str) -> str | None:
    """The plan that a plan of this name takes back; None for one that takes nothing back."""
    of = attempt(name).of
    return of.removesuffix(_BACK) if of.endswith(_BACK) else None


def in_force(plans: tuple[Plan, ...], plan: Plan) -> bool:
    """Whether it is done, and was not taken back since."""
    back = way_back(plans, plan.proposal_id)
    return plan.state is PlanState.DONE and (back is None or not in_force(plans, back))
