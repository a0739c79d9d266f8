"""Document of ``notify test``."""

from __future__ import annotations

from typing import TypedDict


class TargetRow(TypedDict):
    """A target of notifications, and what it answered to a test message."""

    target: str
    """Its name in notify.targets."""
    service: str
    """The service behind its address, as Apprise names it; the address itself is a secret."""
    accepted: bool
    answer: str
    """As a sentence."""
    took_ms: int
