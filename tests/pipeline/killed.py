"""rackwise's command line, killed at a point of ingest: python -m tests.pipeline.killed POINT NTH DELAY_MS ARGUMENTS

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
from typing import Any

from agent.__main__ import main as rackwise
from pipeline.stream import live
from pipeline.stream.checkpoint import Checkpoint
from pipeline.stream.topic import TopicStream
from pipeline.tables import Tables

POINTS = {
    "before the batch is parsed": (Checkpoint, "span", "before"),
    "while the first table is written": (Tables, "append", "before"),
    "after a table was written": (Tables, "append", "after"),
    "before silver and gold": (live, "refresh", "before"),
    "while silver and gold are written": (Tables, "replace_where", "before"),
    "after the batch, while Spark commits it": (TopicStream, "_take", "after"),
}
WITH_JAVA = "RACKWISE_TEST_KILL_JAVA"


def main() -> None:
    point, nth, delay_ms, *arguments = sys.argv[1:]
    owner, name, when = POINTS[point]
    real: Callable[..., Any] = getattr(owner, name)
    times = iter(range(1, 1_000_000))

    def watched(*given: Any, **named: Any) -> Any:
        due = next(times) == int(nth)
        if due and when == "before":
            threading.Thread(target=_kill, args=(int(delay_ms),), daemon=True).start()
        result = real(*given, **named)
        if due and when == "after":
            threading.Thread(target=_kill, args=(int(delay_ms),), daemon=True).start()
            time.sleep(int(delay_ms) / 2_000)
        return result

    setattr(owner, name, watched)
    sys.argv = ["rackwise", *arguments]
    rackwise()


def _kill(delay_ms: int) -> None:
    time.sleep(delay_ms / 1_000)
    if os.environ.get(WITH_JAVA):
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
