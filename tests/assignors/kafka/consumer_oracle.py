"""Kafka's own client-side assignors in one JVM, as a function from a case to its output."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.cluster.jars import kafka_jars

SOURCE = Path(__file__).parents[2] / "java" / "ConsumerOracle.java"
KAFKA = "4.3.1"
NEEDED = ("kafka-clients-", "slf4j-api-", "jackson-core-", "jackson-databind-", "jackson-annotations-")
"""Without a log binding: Kafka logs each assignment in full."""


class ConsumerOracle:
    """Answers one case after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, assignor: str, case: Mapping[str, Any], **options: int) -> dict[str, Any]:
        """The output of ``consumer.NAME``; with ``rounds`` the CPU seconds of the quickest; ``{"error": …}`` where
        Kafka throws or takes longer than ``limit_s``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"assignor": assignor, "input": case, **options}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def consumer_oracle(directory: Path, *options: str) -> Iterator[ConsumerOracle]:
    """Compile the oracle into the directory and run it with these options of Java, as long as the context lasts."""
    jars = kafka_jars(KAFKA)
    classpath = ":".join(str(jar) for jar in jars.jars if jar.name.startswith(NEEDED))
    subprocess.run(["javac", "-cp", classpath, "-d", str(directory), str(SOURCE)], check=True)
    command = [str(jars.java), *options, "-cp", f"{classpath}:{directory}", "ConsumerOracle"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield ConsumerOracle(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0, "the oracle did not end well"
