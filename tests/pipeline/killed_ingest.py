"""The command line, killed at a point of ingest: python -m tests.pipeline.killed_ingest POINT NTH DELAY_MS ARGUMENTS

The process sends itself SIGKILL the NTH time that it comes to the point, DELAY_MS later. Nothing of it runs on; its
Java notices a moment later, or is killed with it, as when a machine loses power.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from agent.__main__ import main as rackwise
from pipeline.jobs import refresh
from pipeline.parquet_tables import ParquetFiles
from pipeline.schemas.bronze import QUARANTINE, TELEMETRY
from pipeline.stream.topic import TopicStream
from pipeline.tables import TableStore


def _has_decided(layout: ParquetFiles, path: str) -> bool:
    return any(name.startswith("_decided-") for name in layout._files.names(path))


class Point(NamedTuple):
    """A moment of ingest: right before or right after a call."""

    owner: Any
    name: str
    when: str
    of: Callable[..., bool] = lambda *_: True
    """Whether a call with these arguments is meant."""
    lasts: bool = False
    """Whether what begins there takes time, so that a delay ends up in the middle of it."""


POINTS = {
    "while bronze is appended to": Point(
        TableStore, "append", "before", lambda _, table, *__: table is TELEMETRY, True
    ),
    "after bronze, before quarantine": Point(TableStore, "append", "after", lambda _, table, *__: table is TELEMETRY),
    "while quarantine is appended to": Point(
        TableStore, "append", "before", lambda _, table, *__: table is QUARANTINE, True
    ),
    "after silver, before gold": Point(refresh, "_gold", "before"),
    "in the middle of gold": Point(
        TableStore, "replace_where", "before", lambda _, table, *__: table.name.startswith("gold."), True
    ),
    "after gold, while Spark commits the batch": Point(
        TopicStream, "_take", "after", lambda stream, *_: stream.plan.table is TELEMETRY, True
    ),
    "after gold was decided, before it is in place": Point(
        ParquetFiles, "_finish", "before", lambda layout, path, *_: "/gold/" in path and _has_decided(layout, path)
    ),
}
WITH_JAVA = "RACKWISE_TEST_KILL_JAVA"


def main() -> None:
    name, nth, delay_ms, *arguments = sys.argv[1:]
    point = POINTS[name]
    real: Callable[..., Any] = getattr(point.owner, point.name)
    times = iter(range(1, 1_000_000))

    def watched(*given: Any, **named: Any) -> Any:
        due = point.of(*given) and next(times) == int(nth)
        if due and point.when == "before":
            _kill_in(int(delay_ms))
        result = real(*given, **named)
        if due and point.when == "after":
            _kill_in(int(delay_ms))
        return result

    setattr(point.owner, point.name, watched)
    sys.argv = ["rackwise", *arguments]
    rackwise()


def _kill_in(delay_ms: int) -> None:
    if delay_ms:
        threading.Thread(target=_kill, args=(delay_ms,), daemon=True).start()
    else:
        _kill(0)


def _kill(delay_ms: int) -> None:
    time.sleep(delay_ms / 1_000)
    if os.environ.get(WITH_JAVA):
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
