"""Where rackwise keeps jars and running clusters on this machine.

Invariant: nothing is made here; a path is only told. The two roots follow the XDG base directory rules.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """`$RACKWISE_CACHE`, else `rackwise` in the XDG cache directory."""
    return _home("RACKWISE_CACHE", "XDG_CACHE_HOME", Path(".cache"))


def state_home() -> Path:
    """`$RACKWISE_STATE`, else `rackwise` in the XDG state directory."""
    return _home("RACKWISE_STATE", "XDG_STATE_HOME", Path(".local") / "state")


def clusters_home() -> Path:
    """The directory that has one directory per embedded cluster."""
    return state_home() / "clusters"


def _home(own: str, xdg: str, below_home: Path) -> Path:
    if said := os.environ.get(own):
        return Path(said).expanduser().absolute()
    base = os.environ.get(xdg, "")
    # XDG says that a relative path there is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / below_home) / "rackwise"
