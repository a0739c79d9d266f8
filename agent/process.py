"""One process of rackwise: its settings, loaded once at its start, the signals that stop it, its garbage collector.

All mistakes in the settings become one ConfigError. Invariant: `StopSignal.set` takes no lock of Python code.
`threading.Event.wait` holds one for moments, and a handler that sets the event within them (it runs in the main thread,
between any two steps) would wait for its own thread.

A cycle makes a million small values without reference cycles. With the default threshold the collector walks all of
them again and again: 40 % of the time of decoding 100,000 members. So the pure stages run without it, their values are
frozen, and everything is walked once in `CYCLES_BETWEEN_WALKS` cycles.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

from agent.errors import ConfigError

if TYPE_CHECKING:
    from config.load import LoadedSettings

ENDING = (signal.SIGTERM, signal.SIGINT)
"""Signals that end the process."""

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


@contextmanager
def on_ending(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Install the handler for `ENDING`; the earlier handlers are restored afterwards."""
    before = {number: signal.signal(number, handler) for number in ENDING}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class StopSignal:
    """An event that is never cleared, with the methods of `threading.Event`."""

    __slots__ = ("_is_set", "_wakeups")

    def __init__(self) -> None:
        self._is_set = False
        self._wakeups: SimpleQueue[None] = SimpleQueue()  # the queue whose `put` may interrupt itself and `get`

    def set(self) -> None:
        """Set it; callable from any thread and from a signal handler."""
        self._is_set = True
        self._wakeups.put(None)

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most ``timeout`` seconds; whether it is set."""
        if not self._is_set:
            with suppress(Empty):
                self._wakeups.get(timeout=timeout)
                self._wakeups.put(None)  # for all others that wait
        return self._is_set


YOUNG_OBJECTS = 50_000
MIDDLE_WALKS = 20
OLD_WALKS = 100
CYCLES_BETWEEN_WALKS = 180


def collect_seldom() -> None:
    """Let the collector walk after `YOUNG_OBJECTS` new objects instead of 700; called once, at process start."""
    gc.set_threshold(YOUNG_OBJECTS, MIDDLE_WALKS, OLD_WALKS)


@contextmanager
def no_collection() -> Iterator[None]:
    """No walk inside the block; afterwards all objects are frozen (left out of later walks)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def stop_collecting() -> None:
    """For a process that ends: saves the walk of all modules and values at exit."""
    gc.freeze()


def collect_all() -> None:
    """Walk everything, frozen objects included."""
    gc.unfreeze()
    gc.collect()
