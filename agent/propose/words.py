"""Numbers as people read them, and the few words that all sentences share."""

from __future__ import annotations

from agent.words import counted, sized

__all__ = ["counted", "sized"]
