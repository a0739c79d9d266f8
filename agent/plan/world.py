"""All that the pure stages look at, but for what they remember."""

from __future__ import annotations

from typing import NamedTuple

from agent.values.limits import Limits
from agent.values.snapshot import Snapshot


class World(NamedTuple):
    """A snapshot and the settings."""

    snapshot: Snapshot
    limits: Limits
