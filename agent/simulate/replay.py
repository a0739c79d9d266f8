"""Lives through a recorded look again: the same events give the same proposals, byte for byte.

The recorded observation, memory and limits go through the very stages of the loop, with empty memos. No broker is
asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.simulate.evaluation import Seen, see
from agent.telemetry.events import Event
from agent.telemetry.looks import IncompleteLookError, Recorded, looks_in, observation_from_events
from agent.values.proposal import Proposal


def replay(events: Iterable[Event]) -> tuple[Proposal, ...]:
    """The proposals of the look that the events tell. Raises IncompleteLookError and UnreadableError."""
    return replay_look(observation_from_events(events)).proposals


def replay_look(recorded: Recorded) -> Seen:
    """Every stage's answer for a recorded look."""
    return see(recorded.observation, recorded.memory, recorded.limits)


def recorded_looks(events: Iterable[Event]) -> Iterator[Recorded]:
    """Every look that the events tell in full, in their order; looks that are not whole are left out."""
    for look in looks_in(events):
        try:
            yield observation_from_events(look)
        except IncompleteLookError:
            continue
