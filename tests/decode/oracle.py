"""Kafka's own readers in one JVM, as a function from bytes to what Kafka reads."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from testbed.cluster.jars import kafka_jars

SOURCE = Path(__file__).parents[1] / "java" / "DecodeOracle.java"
KAFKA = "4.3.1"
NEEDED = ("kafka-clients-", "kafka-streams-", "slf4j-api-")
"""Without a log binding, so that Kafka's complaints about broken bytes go nowhere."""


class Oracle:
    """Answers lines of ``layout hex`` with lines of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def read(self, inputs: Iterable[tuple[str, bytes]]) -> list[dict[str, Any]]:
        """What Kafka reads from each input; ``{"error": …}`` where it throws."""
        lines = [f"{layout} {data.hex()}\n" for layout, data in inputs]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Both pipes are small: one thread writes while this one reads.
        writer = Thread(target=self._write, args=(lines,))
        writer.start()
        answers = [json.loads(self._process.stdout.readline()) for _ in lines]
        writer.join()
        return answers

    def _write(self, lines: list[str]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.writelines(lines)
        self._process.stdin.flush()


@contextmanager
def kafka_oracle(directory: Path) -> Iterator[Oracle]:
    """Compile the oracle into the directory and run it for as long as the context lasts."""
    jars = kafka_jars(KAFKA)
    classpath = ":".join(str(jar) for jar in jars.jars if jar.name.startswith(NEEDED))
    subprocess.run(["javac", "-cp", classpath, "-d", str(directory), str(SOURCE)], check=True)
    command = [str(jars.java), "-XX:TieredStopAtLevel=1", "-cp", f"{classpath}:{directory}", "DecodeOracle"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield Oracle(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0, "the oracle did not end well"
