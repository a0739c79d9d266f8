"""One look of history, as the stages after the model take it: a whole one, or some of its groups with their topics.

Two fidelities, one value. A whole look was rebuilt from its events and holds everything that the agent saw. A look by
group holds groups with the topics that they read and the brokers, and says nothing about the replicas of topics: who
else reads them stands in another part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent.decode.members import decode_members
from agent.model.take import take_snapshot
from agent.telemetry.looks import Recorded
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.snapshot import Snapshot

Rates = NDArray[np.float64]
"""Bytes per second of every partition of a group's topics, by topic and number; NaN is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistoryLook:
    """What was seen, and what was known of the time before."""

    name: str
    snapshot: Snapshot
    memory: Memory
    """As recorded: made of what came before this look."""
    limits: Limits
    """Those in force."""
    whole: bool
    recorded: Recorded | None = None
    """The look as it was written, for strategies under which it shows something else; None for one by group."""
    rates: Mapping[str, Rates] | None = None
    """By group; None where the snapshot has them all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnusableLook:
    """A look that cannot be lived through again."""

    name: str
    taken_ms: int
    why: str


def whole_look(recorded: Recorded, decode: Memo, model: Memo) -> HistoryLook:
    """The look as the agent's own stages made it out then."""
    return HistoryLook(
        name=recorded.look,
        snapshot=seen_under(recorded, recorded.limits, decode, model),
        memory=recorded.memory,
        limits=recorded.limits,
        whole=True,
        recorded=recorded,
    )


def seen_under(recorded: Recorded, limits: Limits, decode: Memo, model: Memo) -> Snapshot:
    """What the look shows under those limits."""
    decoded = decode_members(recorded.observation, decode)
    return take_snapshot(recorded.observation, decoded, recorded.memory, limits, model)
