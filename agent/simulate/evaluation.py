"""One look seen through: the stages from decode to propose, once. Nothing is remembered, judged or done.

What a command shows of a live cluster, and what a recorded look gives again: equal input gives equal answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from agent.decode.members import decode_members
from agent.detect.find import detect
from agent.model.take import take_snapshot
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.values.assessment import Detection
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from agent.values.plan import Plan
from agent.values.proposal import Proposal
from agent.values.rates import UNKNOWN_RATES, Rates
from agent.values.snapshot import Snapshot

if TYPE_CHECKING:
    from agent.values.progress import AgentDocument

PARTIAL_EXIT = 5
"""Exit code of a command whose answer is partial."""


class Seen(NamedTuple):
    """Every pure stage's answer for one look. ``plan`` is None when nothing was planned."""

    limits: Limits
    before: Memory
    """The memory that went into it."""
    snapshot: Snapshot
    detection: Detection
    plan: Plan | None
    proposals: tuple[Proposal, ...]
    took_ms: int = 0
    """The look and all stages; 0 for a recorded look."""
    rates: Rates = UNKNOWN_RATES
    """Where its bytes per second come from."""
    agent: AgentDocument | None = None
    """What the running agent reports of itself, where that was asked for."""


def see(observation: Observation, memory: Memory, limits: Limits, *, planning: bool = True) -> Seen:
    """What the observation shows, what is wrong, and what would be proposed."""
    snapshot = take_snapshot(observation, decode_members(observation, None), memory, limits, None)
    detection = detect(snapshot, memory, limits, None)
    plan = make_plan(snapshot, detection, limits, None) if planning else None
    proposals = propose(snapshot, plan, detection, limits, None) if plan is not None else ()
    return Seen(limits, memory, snapshot, detection, plan, proposals)


def keeping_leaders(seen: Seen) -> Seen:
    """The same look, with what would be proposed if no preferred leader may change."""
    limits = replace(seen.limits, plan=replace(seen.limits.plan, keep_leaders=True))
    plan = make_plan(seen.snapshot, seen.detection, limits, None)
    return seen._replace(limits=limits, plan=plan, proposals=propose(seen.snapshot, plan, seen.detection, limits, None))


def is_partial(snapshot: Snapshot) -> bool:
    """Whether something that was asked for, and that these brokers offer, did not answer."""
    return any(gap.is_missed for gap in snapshot.gaps)
