"""Kafka's own tools by the names of their scripts, for a machine without a Kafka: its jars have their classes alone."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from pipeline.maven import Progress, cache_home
from testbed.cluster.jars import JarSet, kafka_jars

_TOOLS = "org.apache.kafka.tools"
KAFKA_TOOLS = {
    "kafka-acls.sh": f"{_TOOLS}.AclCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-console-consumer.sh": f"{_TOOLS}.consumer.ConsoleConsumer",
    "kafka-console-producer.sh": f"{_TOOLS}.ConsoleProducer",
    "kafka-consumer-groups.sh": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-leader-election.sh": f"{_TOOLS}.LeaderElectionCommand",
    "kafka-producer-perf-test.sh": f"{_TOOLS}.ProducerPerformance",
    "kafka-reassign-partitions.sh": f"{_TOOLS}.reassign.ReassignPartitionsCommand",
    "kafka-topics.sh": f"{_TOOLS}.TopicCommand",
}
"""Name of a script -> the class that it runs."""
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xmx128m"


def kafka_tools(version: str, on_progress: Progress | None = None) -> Path:
    """A folder with these scripts, written anew; to be put into ``PATH``.

    Raises ToolError when Java or Maven is missing or too old, or a jar cannot be downloaded.
    """
    jars = kafka_jars(version, on_progress)
    folder = cache_home() / "kafka-tools" / version
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _scripts(jars):
        unfinished = folder / f".{name}.{os.getpid()}"
        unfinished.write_text(text)
        unfinished.chmod(0o755)
        unfinished.replace(folder / name)  # another call may run it meanwhile
    return folder


def _scripts(jars: JarSet) -> Iterator[tuple[str, str]]:
    java, classpath = shlex.quote(str(jars.java)), shlex.quote(jars.classpath)
    for name, main in KAFKA_TOOLS.items():
        yield name, f'#!/bin/sh\nexec {java} {_QUICK} -cp {classpath} {main} "$@"\n'
