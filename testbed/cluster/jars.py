"""The jars of one Kafka version, resolved by `pipeline.maven`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.maven import AGENT_PREFIX, Progress, java, resolved
from testbed.cluster.errors import ClusterError
from testbed.cluster.spec import KafkaVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """Jars of one resolved set, in one directory."""

    directory: Path
    java: Path
    """The Java that runs them."""
    plugins: tuple[str, ...] = ()
    """Jars behind Kafka's own on the classpath; an archive of classes fits with and without them."""

    @property
    def classpath(self) -> str:
        """For `java -cp`; every jar but the agent."""
        return ":".join((str(self.directory / "*"), *self.plugins))

    @property
    def jars(self) -> tuple[Path, ...]:
        """The jars on the classpath, by name."""
        return tuple(sorted(self.directory.glob("*.jar")))

    @property
    def class_archive(self) -> Path:
        """Where a broker's classes are kept ready for Java to map; `testbed.cluster.archive` makes it."""
        return self.directory / "broker.jsa"

    @property
    def jmx_agent(self) -> Path:
        """Jar of the JMX exporter. Raises ClusterError when this set has none."""
        found = sorted((self.directory / "agents").glob(f"{AGENT_PREFIX}*.jar"))
        if not found:
            raise ClusterError(f"{self.directory} has no JMX exporter", todo="Delete it, so that it is resolved again.")
        return found[-1]


def kafka_jars(version: str, on_progress: Progress | None = None) -> JarSet:
    """Broker, clients, Streams, tools and JMX agent of one Kafka version; from the cache, else by Maven.

    Raises ToolError when Java or Maven is missing or too old, or a jar cannot be downloaded.
    """
    profile = f"kafka-{KafkaVersion.parse(version).major}"
    runner = java()
    directory = resolved(f"Kafka {version}", version, profile, (f"-Dkafka.version={version}",), on_progress)
    return JarSet(directory=directory, java=runner)
