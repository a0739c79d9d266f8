"""Kafka's own task assignors in one JVM, as a function from a case to its output."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.cluster.jars import kafka_jars
from tests.assignors.kafka.consumer_oracle import ConsumerOracle

SOURCE = Path(__file__).parents[2] / "java" / "StreamsOracle.java"
KAFKA = "4.3.1"
NEEDED = (
    "kafka-clients-",
    "kafka-streams-",
    "slf4j-api-",
    "jackson-core-",
    "jackson-databind-",
    "jackson-annotations-",
)
"""Without a log binding: Kafka logs each assignment in full."""


class StreamsOracle(ConsumerOracle):
    """Answers one case after the other: ``streams.ha``, ``streams.rack_optimize``, ``streams.sticky_legacy``."""


@contextmanager
def streams_oracle(directory: Path, *options: str) -> Iterator[StreamsOracle]:
    """Compile the oracle into the directory and run it, with these options of Java, as long as the context lasts."""
    jars = kafka_jars(KAFKA)
    classpath = ":".join(str(jar) for jar in jars.jars if jar.name.startswith(NEEDED))
    subprocess.run(["javac", "-cp", classpath, "-d", str(directory), str(SOURCE)], check=True)
    command = [str(jars.java), *options, "-cp", f"{classpath}:{directory}", "StreamsOracle"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield StreamsOracle(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0, "the oracle did not end well"
