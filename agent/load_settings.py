"""Loads a command's settings; all mistakes in them become one ConfigError."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import ConfigError

if TYPE_CHECKING:
    from config.load import LoadedSettings


_SHOWN = 10
"""Mistakes that are named at once: a file that holds no settings has one in every line."""
_LONGEST = 300


def load_checked_settings(
    config: Sequence[Path],
    properties: Sequence[Path],
    assign: Sequence[str],
    flags: Mapping[str, object],
    say: Callable[[str], None],
    *,
    todo: str = "Correct it and check with: rackwise config check",
) -> LoadedSettings:
    """The settings in force; ``say`` gets their notes. Raises ConfigError with every mistake."""
    # pydantic is the slowest import of the command line: only a command that needs settings pays for it.
    from config.load import SettingsRefusedError, load_settings  # noqa: PLC0415
    from config.secrets import remember  # noqa: PLC0415 as above

    try:
        loaded = load_settings(files=config, properties=properties, assignments=assign, flags=flags)
    except SettingsRefusedError as error:
        mistakes = [_cut(str(mistake)) for mistake in error.mistakes]
        what = mistakes[0] if len(mistakes) == 1 else f"{len(mistakes)} settings cannot be used"
        more = f"; and {len(mistakes) - _SHOWN:,} more" if len(mistakes) > _SHOWN else ""
        raise ConfigError(
            what,
            why="" if len(mistakes) == 1 else "; ".join(mistakes[:_SHOWN]) + more,
            todo=" ".join(dict.fromkeys(mistake.todo or todo for mistake in error.mistakes)),
        ) from None
    remember(loaded.secrets())
    for note in loaded.notes:
        say(f"note: {note}")
    return loaded


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
