"""Console lines of the demo: time, kind and one sentence; coloured only on a terminal.

Sentences hold foreign names: they are made harmless here.

Safe to use from several threads; when its reader has ended (`| head`) it prints nothing more, and the rest goes on.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import NamedTuple, TextIO

from rich.console import Console
from rich.text import Text

from config.foreign_text import shortened

_STYLES = {
    "critical": "bold red",
    "warning": "yellow",
    "info": "dim",
    "ended": "dim green",
    "reassign": "bold cyan",
    "leaders": "bold cyan",
    "trigger": "bold magenta",
    "advise": "bold blue",
    "warm-up": "green",
    "spark": "magenta",
    "weights": "bold magenta",
    "scene": "bold",
    "problem": "bold red",
}
_LONGEST_MARK = 9


class ConsoleLine(NamedTuple):
    """One line of the console."""

    mark: str
    """What kind of thing: a severity, a kind of proposal, ``scene``, ``warm-up``, ..."""
    sentence: str


class DemoConsole:
    """Where the lines go; the clock begins anew with `begin`."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._console = Console(file=stream or sys.stdout, highlight=False, soft_wrap=True, emoji=False)
        self._lock = threading.Lock()
        self._zero = time.monotonic()
        self._sign = " "
        self._gone = False

    def begin(self) -> None:
        """Count from now on."""
        self._zero, self._sign = time.monotonic(), "+"

    def tell(self, *lines: ConsoleLine) -> None:
        """Print the lines, each with the time."""
        when = f"{self._sign}{time.monotonic() - self._zero:.1f} s"
        for mark, sentence in lines:
            style = _STYLES.get(mark, "")
            self._print(
                Text.assemble((f"{when:>8}  ", "dim"), (f"{mark:<{_LONGEST_MARK}} ", style), (shortened(sentence), ""))
            )

    def setup(self, sentence: str) -> None:
        """Tell one step of what comes before the play."""
        self.tell(ConsoleLine("setup", sentence))

    def plain(self, *texts: str) -> None:
        """Print texts without time and mark."""
        for text in texts:
            self._print(Text(shortened(text)))

    def _print(self, text: Text) -> None:
        with self._lock:
            if self._gone:
                return
            try:
                self._console.print(text)
            except BrokenPipeError:
                self._gone = True
