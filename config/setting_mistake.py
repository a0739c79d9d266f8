"""The error of this package: a setting that cannot be used, with the reason and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

UNREADABLE = "Name a file that is there and that this user may read."


class SettingMistake(ValueError):  # noqa: N818 a mistake is what the user made; the text is the sentence shown
    """A setting is unknown, contradictory or refused; ``key`` is its dotted name. Never holds a secret value."""

    def __init__(self, key: str, sentence: str, todo: str = "") -> None:
        """``todo``: what to do about it, where no setting is wrong but a file."""
        super().__init__(f"{key}: {sentence}" if key else sentence)
        self.todo = todo
        self.key = key
        self.sentence = sentence


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that the user most likely meant, or None when none is as near as ``cutoff``, a share of 1."""
    found = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=cutoff)
    return found[0] if found else None
