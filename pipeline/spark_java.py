"""The Java process of a session on this machine: started with no secret among its arguments, and quiet.

Output of Java is not rackwise's: on stdout, where answers go, it has no place (Delta's vacuum prints there), and on
stderr only what is no banner, made harmless as foreign text is everywhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from config.foreign_text import harmless
from config.secrets import hidden, secrets_in

_BANNERS = (
    "WARNING: Using incubator modules",
    "Picked up ",
    "Setting default log level to",
    "To adjust logging level use",
    "Setting Spark log level to",
)
_LAST_WORDS_S = 2.0


def start_java(settings: Mapping[str, str]) -> None:
    """Start Java with what is no secret, unless it runs: what pyspark starts it with shows in process lists.

    The rest comes with the session, over a connection of this process's own. Raises PySparkRuntimeError when Java ends
    at once.
    """
    from pyspark import SparkConf, SparkContext, java_gateway  # noqa: PLC0415 an optional extra

    if SparkContext._gateway is not None:  # noqa: SLF001 pyspark has no other door
        return
    # Java's compilers and buffers leave holes in each arena of glibc, of which it would make eight for each core.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    public = [(name, value) for name, value in settings.items() if next(secrets_in(name, value), None) is None]
    launch: Callable[..., Any] = java_gateway.launch_gateway
    with _errors_passed_on() as errors:
        streams = {"stdout": subprocess.DEVNULL, "stderr": errors}
        gateway = launch(SparkConf(loadDefaults=False).setAll(public), streams)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 as above


@contextmanager
def _errors_passed_on() -> Iterator[int]:
    """A file descriptor for the stderr of a process, whose lines are passed on as long as it has it open."""
    end, begin = os.pipe()
    reader = threading.Thread(target=_pass_on, args=(end,), name="rackwise-java-errors", daemon=True)
    reader.start()
    try:
        yield begin
    except BaseException:
        os.close(begin)
        reader.join(_LAST_WORDS_S)  # why Java ended is in its last lines
        raise
    os.close(begin)


def _pass_on(end: int) -> None:
    with os.fdopen(end, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip() and not line.startswith(_BANNERS):
                print(harmless(hidden(line.rstrip("\r\n"))), file=sys.stderr, flush=True)  # noqa: T201 Java's own stderr
