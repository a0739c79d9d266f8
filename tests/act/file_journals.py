"""Contents of a file journal, without the leader's own entry."""

from __future__ import annotations

from typing import Any

from agent.journal.record_trust import LEADER


def plain(view: Any) -> dict[str, tuple[str, Any]]:
    """What is said, without who says it of himself."""
    return {key: (entry.kind, dict(entry.value)) for key, entry in view.items() if key != LEADER}
