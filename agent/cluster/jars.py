"""Where the jars of one Kafka version are, and how they get there.

Invariant: a directory of the cache is whole or absent. Maven fills a temporary neighbour, which is renamed at the
end; the name holds the version and a digest of the pom, so a changed pom never finds older jars.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from agent.cluster.errors import ClusterError
from agent.cluster.places import cache_home
from agent.cluster.spec import Version
from agent.cluster.toolchain import java, maven

Progress = Callable[[str], None]
"""Is told one short line per step."""

_AGENT_PREFIX = "jmx_prometheus_javaagent-"
_ERROR_PREFIX = "[ERROR] "
_DOWNLOADED = re.compile(r"Downloaded from \S+: \S*/(\S+\.jar) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """Jars of one resolved set, in one directory."""

    directory: Path
    java: Path
    """The Java that runs them."""

    @property
    def classpath(self) -> str:
        """For `java -cp`; every jar but the agent."""
        return str(self.directory / "*")

    @property
    def jars(self) -> tuple[Path, ...]:
        """The jars on the classpath, by name."""
        return tuple(sorted(self.directory.glob("*.jar")))

    @property
    def class_archive(self) -> Path:
        """Where a broker's classes are kept ready for Java to map; `agent.cluster.archive` makes it."""
        return self.directory / "broker.jsa"

    @property
    def jmx_agent(self) -> Path:
        """Jar of the JMX exporter; ClusterError when this set has none."""
        found = sorted((self.directory / "agents").glob(f"{_AGENT_PREFIX}*.jar"))
        if not found:
            raise ClusterError(f"{self.directory} has no JMX exporter", todo="Delete it, so that it is resolved again.")
        return found[-1]


def kafka_jars(version: str, on_progress: Progress | None = None) -> JarSet:
    """Broker, clients, Streams, tools and JMX agent of one Kafka version; from the cache, else by Maven.

    ClusterError when Java or Maven is missing or too old, or Maven cannot get a jar.
    """
    profile = f"kafka-{Version.parse(version).major}"
    return _resolved(f"Kafka {version}", version, profile, (f"-Dkafka.version={version}",), on_progress)


def spark_jars(on_progress: Progress | None = None) -> JarSet:
    """The Spark connectors for Kafka and Delta, without what pyspark brings itself; from the cache, else by Maven."""
    return _resolved("the Spark connectors", "spark", "spark", (), on_progress)


def pom_file() -> Path:
    """The one pom: at the top of a checkout, where this package has a link to it, and in the package in a wheel."""
    pom = Path(__file__).with_name("pom.xml").resolve()
    if not pom.is_file():
        raise ClusterError("The list of jars is missing", why=f"there is no {pom}", todo="Install rackwise again.")
    return pom


def _resolved(name: str, stem: str, profile: str, properties: tuple[str, ...], on_progress: Progress | None) -> JarSet:
    pom = pom_file()
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:8]
    directory = cache_home() / "jars" / f"{stem}-{digest}"
    runner = java()
    if not directory.is_dir():
        _fill(directory, name, (str(maven()), "-B", "-f", str(pom), f"-P{profile}", *properties), on_progress)
    return JarSet(directory=directory, java=runner)


def _fill(directory: Path, name: str, command: tuple[str, ...], on_progress: Progress | None) -> None:
    say = on_progress or _silent
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        say(f"getting the jars of {name} with Maven; this happens once")
        _run_maven(name, (*command, "dependency:copy-dependencies", f"-DoutputDirectory={temporary}"), say)
        count = _put_agents_aside(temporary)
        if count == 0:
            raise ClusterError(f"Maven ended well but copied no jar of {name}", todo=f"Look at {pom_file()}.")
        temporary.chmod(0o755)
        _publish(temporary, directory)
        say(f"{count} jars of {name} are in {directory}")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _run_maven(name: str, command: tuple[str, ...], say: Progress) -> None:
    tail: deque[str] = deque(maxlen=40)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        _tell_downloads(_kept(process.stdout or (), tail), say)
    if process.returncode:
        errors = [line.removeprefix(_ERROR_PREFIX) for line in tail if line.startswith(_ERROR_PREFIX)]
        raise ClusterError(
            f"Maven could not get the jars of {name}",
            why=errors[0] if errors else " ".join(tail)[-500:],
            todo="Check the version and the network, then try again.",
        )


def _kept(lines: Iterable[str], tail: deque[str]) -> Iterable[str]:
    for line in lines:
        tail.append(line.strip())
        yield line


def _tell_downloads(lines: Iterable[str], say: Progress) -> None:
    count = 0
    for line in lines:
        if downloaded := _DOWNLOADED.search(line):
            count += 1
            say(f"jar {count}: {downloaded.group(1)}")


def _put_agents_aside(directory: Path) -> int:
    """Move agents out of the classpath's directory; how many jars there are in all."""
    jars = tuple(directory.glob("*.jar"))
    (directory / "agents").mkdir()
    for jar in jars:
        if jar.name.startswith(_AGENT_PREFIX):
            jar.rename(directory / "agents" / jar.name)
    return len(jars)


def _publish(temporary: Path, directory: Path) -> None:
    try:
        temporary.rename(directory)
    except OSError:
        # Somebody else was quicker; the name holds the digest, so theirs is as good.
        if not directory.is_dir():
            raise


def _silent(_line: str) -> None:
    return
