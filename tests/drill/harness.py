"""What every drill shares: rows of faults, seeds, outcomes, and the table of them.

A drill is a function of an arena and a seed that raises when something did not survive, and else tells how long it took
to recover. `RACKWISE_DRILL_SEEDS` is the number of seeds of each fault (2), `RACKWISE_DRILL_OUT` a file to which
each outcome is appended as a line of JSON.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SEEDS = range(1, 1 + int(os.environ.get("RACKWISE_DRILL_SEEDS", "2")))


class Outcome(NamedTuple):
    """One fault with one seed."""

    fault: str
    seed: int
    survived: bool
    recovery_s: float | None
    """From the end of the harm until what was begun goes on; None where nothing had to."""
    done_s: float | None
    """From the end of the harm until all of it was over and nothing was left behind."""
    notes: str = ""


OUTCOMES: list[Outcome] = []
REPEATED: list[str] = []
"""Drills that were done again, because the controller of their first cluster met a fault of its own, which is told."""


class Clocks:
    """What a drill measures."""

    def __init__(self) -> None:
        self.harmed_at: float | None = None
        self.recovery_s: float | None = None
        self.done_s: float | None = None
        self.notes: list[str] = []

    def harm_over(self) -> None:
        """From now on it has to recover."""
        self.harmed_at = time.monotonic()

    def goes_on(self) -> None:
        """It works again."""
        if self.harmed_at is not None and self.recovery_s is None:
            self.recovery_s = time.monotonic() - self.harmed_at

    def done(self) -> None:
        """All is over."""
        if self.harmed_at is not None:
            self.done_s = time.monotonic() - self.harmed_at


@contextmanager
def drilled(fault: str, seed: int) -> Iterator[Clocks]:
    """Count what happens in here as one outcome."""
    clocks = Clocks()
    survived = False
    try:
        yield clocks
        survived = True
    except BaseException as error:
        clocks.notes.append(f"{type(error).__name__}: {error}"[:1_000])
        raise
    finally:
        outcome = Outcome(fault, seed, survived, clocks.recovery_s, clocks.done_s, "; ".join(clocks.notes))
        OUTCOMES.append(outcome)
        if (out := os.environ.get("RACKWISE_DRILL_OUT")) is not None:
            with Path(out).open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome._asdict()) + "\n")


def table(outcomes: Iterable[Outcome]) -> list[str]:
    """One line for each fault: seeds, survived, and how long it took, half of the time and nearly always."""
    by_fault: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_fault.setdefault(outcome.fault, []).append(outcome)
    if not by_fault:
        return []
    width = max(map(len, by_fault))
    lines = [f"{'fault':<{width}}  seeds  survived  recovery p50   p95    over p50   p95  (s)"]
    for fault, rows in by_fault.items():
        recovery = [row.recovery_s for row in rows if row.recovery_s is not None]
        over = [row.done_s for row in rows if row.done_s is not None]
        survived = sum(row.survived for row in rows)
        lines.append(
            f"{fault:<{width}}  {len(rows):>5}  {survived:>8}  "
            f"{_shown(recovery, 0.5):>12} {_shown(recovery, 0.95):>5}  {_shown(over, 0.5):>10} {_shown(over, 0.95):>5}"
        )
    return lines


def _shown(values: list[float], share: float) -> str:
    """The smallest value that so large a share does not exceed."""
    if not values:
        return "-"
    ordered = sorted(values)
    return f"{ordered[math.ceil(share * len(ordered)) - 1]:.1f}"
