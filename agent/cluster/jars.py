"""Where are the jars of one Kafka version, and how do they get there?

Invariant: a directory of the cache is whole or absent. Maven fills a temporary neighbour, which is renamed at the end;
the name holds the version and a digest of the pom, so a changed pom never finds older jars.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from agent.cluster.errors import ClusterError
from agent.cluster.places import cache_home
from agent.cluster.spec import Version

Progress = Callable[[str], None]
"""Is told one short line per step."""

OLDEST_JAVA = 17
OLDEST_MAVEN = (3, 6)
_AGENT_PREFIX = "jmx_prometheus_javaagent-"
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
    def jmx_agent(self) -> Path:
        """Jar of the JMX exporter; ClusterError when this set has none."""
        found = sorted((self.directory / "agents").glob(f"{_AGENT_PREFIX}*.jar"))
        if not found:
            msg = f"{self.directory} has no JMX exporter: delete the directory, so that it is resolved again."
            raise ClusterError(msg)
        return found[-1]


def kafka_jars(version: str, on_progress: Progress | None = None) -> JarSet:
    """Broker, clients, Streams, tools and JMX agent of one Kafka version; from the cache, else by Maven.

    ClusterError when Java or Maven is missing or too old, or Maven cannot get a jar.
    """
    major = Version.parse(version).major
    profile = "kafka-3" if major == Version.parse("3.5.0").major else "kafka-4"
    return _resolved(f"kafka {version}", version, profile, (f"-Dkafka.version={version}",), on_progress)


def spark_jars(on_progress: Progress | None = None) -> JarSet:
    """The Spark connectors for Kafka and Delta, with all they stand on; from the cache, else by Maven."""
    return _resolved("the Spark connectors", "spark", "spark", (), on_progress)


def pom_file() -> Path:
    """The one pom: beside the package in a wheel, at the top of a checkout."""
    packaged = Path(str(files("agent.cluster"))) / "pom.xml"
    checkout = Path(__file__).resolve().parents[2] / "pom.xml"
    for candidate in (packaged, checkout):
        if candidate.is_file():
            return candidate
    msg = f"pom.xml is neither at {packaged} nor at {checkout}: install rackwise again, or work from a whole checkout."
    raise ClusterError(msg)


def java() -> Path:
    """The Java on the path; ClusterError when it is missing or older than 17."""
    found = _tool("java", f"a JDK {OLDEST_JAVA}", "apt install openjdk-17-jdk-headless")
    answer = _output(found, "-version")
    numbers = re.search(r'version "(?:1\.)?(\d+)', answer)
    if numbers is None or int(numbers.group(1)) < OLDEST_JAVA:
        said = numbers.group(1) if numbers else answer.strip()[:80]
        msg = (
            f"Java at {found} is version {said}, but Kafka's brokers need {OLDEST_JAVA}: put a newer JDK first on PATH."
        )
        raise ClusterError(msg)
    return found


def maven() -> Path:
    """The Maven on the path; ClusterError when it is missing or older than 3.6."""
    found = _tool("mvn", "Maven", "apt install maven")
    answer = _output(found, "-v")
    numbers = re.search(r"Apache Maven (\d+)\.(\d+)", answer)
    if numbers is None or (int(numbers.group(1)), int(numbers.group(2))) < OLDEST_MAVEN:
        said = numbers.group(0) if numbers else answer.strip()[:80]
        least = ".".join(map(str, OLDEST_MAVEN))
        msg = f"Maven at {found} says {said!r}, but {least} or newer is needed: put a newer Maven first on PATH."
        raise ClusterError(msg)
    return found


def _resolved(name: str, stem: str, profile: str, arguments: tuple[str, ...], on_progress: Progress | None) -> JarSet:
    pom = pom_file()
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:8]
    directory = cache_home() / "jars" / f"{stem}-{digest}"
    runner = java()
    if not directory.is_dir():
        _fill(directory, name, (str(maven()), "-B", "-f", str(pom), f"-P{profile}", *arguments), on_progress)
    return JarSet(directory=directory, java=runner)


def _fill(directory: Path, name: str, command: tuple[str, ...], on_progress: Progress | None) -> None:
    say = on_progress or _silent
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        say(f"resolving the jars of {name} with Maven (once; about 130 MB)")
        _run_maven(name, (*command, "dependency:copy-dependencies", f"-DoutputDirectory={temporary}"), say)
        jars = _sorted_out(temporary)
        if jars == 0:
            msg = f"Maven ended well but copied no jar of {name}: look at the profiles of {command[3]}."
            raise ClusterError(msg)
        temporary.chmod(0o755)
        _publish(temporary, directory)
        say(f"{jars} jars of {name} are in {directory}")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _run_maven(name: str, command: tuple[str, ...], say: Progress) -> None:
    tail: deque[str] = deque(maxlen=40)
    fetched = 0
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as maven_process:  # fmt: skip
        for line in maven_process.stdout or ():
            tail.append(line.rstrip())
            if downloaded := _DOWNLOADED.search(line):
                fetched += 1
                say(f"jar {fetched}: {downloaded.group(1)}")
    if maven_process.returncode:
        errors = [
            line.removeprefix("[ERROR] ")
            for line in tail
            if line.startswith("[ERROR] ") and len(line) > len("[ERROR] ")
        ]
        why = errors[0] if errors else "\n".join(tail)
        msg = f"Maven could not get the jars of {name}: {why} Check the version and the network, then try again."
        raise ClusterError(msg)


def _sorted_out(directory: Path) -> int:
    """Move agents out of the classpath's directory; how many jars there are."""
    jars = sorted(directory.glob("*.jar"))
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


def _tool(name: str, what: str, how: str) -> Path:
    found = shutil.which(name)
    if found is None:
        msg = f"{name} is not on PATH, and the embedded cluster needs {what}: install it, for example with `{how}`."
        raise ClusterError(msg)
    return Path(found)


def _output(tool: Path, argument: str) -> str:
    try:
        done = subprocess.run(  # noqa: PLW1510 - a failure is read from the text below
            (str(tool), argument), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"{tool} {argument} could not be run ({error}): install it again."
        raise ClusterError(msg) from error
    return done.stdout


def _silent(_line: str) -> None:
    return
