"""When the coordinators say that a group left Stable and came back: to the millisecond, by their own logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from testbed.cluster import EmbeddedCluster
from tests.act.triggers import Stretch

_LINE = re.compile(
    r"^(?P<at>\S+[T ]\S+) INFO .*?"
    r"(?:Preparing to rebalance group (?P<begun>\S+) |Assignment received from leader .*? for group (?P<done>\S+) )"
)


def rebalances(cluster: EmbeddedCluster, group: str, since_s: float) -> list[Stretch]:
    """From "Preparing to rebalance" to the leader's assignment, of each that began after that; in epoch seconds.

    Only what follows the assignment, the write to the group's partition, is not in it: some milliseconds.
    """
    marks = []
    for line in _lines(cluster):
        found = _LINE.match(line)
        if found is not None and group in (found["begun"], found["done"]):
            at = datetime.fromisoformat(found["at"].replace(",", "."))
            marks.append((at.timestamp(), found["begun"] is not None))
    stretches, began_s = [], None
    for at_s, begins in sorted(marks):
        if begins:
            began_s = at_s if began_s is None else began_s
        elif began_s is not None:
            stretches.append(Stretch(began_s, at_s - began_s))
            began_s = None
    return [one for one in stretches if one.began_s >= since_s]


def log_lines_about(cluster: EmbeddedCluster, group: str) -> list[str]:
    """Every line of the brokers' logs about that group, in their order."""
    return sorted(line for line in _lines(cluster) if group in line)


def _lines(cluster: EmbeddedCluster) -> Iterator[str]:
    """All that the brokers logged, one broker after the other."""
    for log in sorted(cluster.directory.glob("*/server.log*")):
        yield from log.read_text(encoding="utf-8", errors="replace").splitlines()
