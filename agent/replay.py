"""Lives through a recorded look again: the same events give the same proposals, byte for byte.

The recorded observation, memory and limits go through the very stages of the loop, with empty memos. No broker is
asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent.decode import decode_members
from agent.detect import detect
from agent.detect.assessment import Detection
from agent.model import take_snapshot
from agent.model.snapshot import Snapshot
from agent.plan import make_plan
from agent.plan.plan import Plan
from agent.propose import propose
from agent.propose.proposal import Proposal
from agent.telemetry.events import Event
from agent.telemetry.looks import IncompleteLookError, Recorded, looks_in, observation_from_events


class Replayed(NamedTuple):
    """One look, lived through again."""

    recorded: Recorded
    snapshot: Snapshot
    detection: Detection
    plan: Plan
    proposals: tuple[Proposal, ...]


def replay(events: Iterable[Event]) -> tuple[Proposal, ...]:
    """The proposals of the look that the events tell. Raises IncompleteLookError and UnreadableError."""
    return replay_look(observation_from_events(events)).proposals


def replay_look(recorded: Recorded) -> Replayed:
    """Every stage's answer for a recorded look."""
    observation, memory, limits = recorded.observation, recorded.memory, recorded.limits
    snapshot = take_snapshot(observation, decode_members(observation, None), memory, limits, None)
    detection = detect(snapshot, memory, limits, None)
    plan = make_plan(snapshot, detection, limits, None)
    return Replayed(recorded, snapshot, detection, plan, propose(snapshot, plan, detection, limits, None))


def recorded_looks(events: Iterable[Event]) -> Iterator[Recorded]:
    """Every look that the events tell in full, in their order; looks that are not whole are left out."""
    for look in looks_in(events):
        try:
            yield observation_from_events(look)
        except IncompleteLookError:
            continue
