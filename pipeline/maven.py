"""Jars by Maven: Java and Maven of this machine, the cache of jars, and the connectors that Spark needs.

Maven resolves each set once, out of the project's one pom. Invariants: a tool is used only after it has printed its
version; a directory of the cache is whole or absent. Maven fills a temporary neighbour, which is renamed at the end.
Its name holds the request and a digest of the pom, so a changed pom never finds older jars. A connector of Spark is
used only when its SHA-256 is the one of ``jars.lock``; the jars of pyspark itself are not part of that set.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

from agent.errors import BadInput, GaveUp

Progress = Callable[[str], None]
"""Called with one short line per step."""

AGENT_PREFIX = "jmx_prometheus_javaagent-"
"""A jar of this name is an agent: it is apart, in ``agents``, so that no classpath has it."""
OLDEST_JAVA = 17
OLDEST_MAVEN = (3, 6)
_TIMEOUT_S = 60
_ERROR_PREFIX = "[ERROR] "
_DOWNLOADED = re.compile(r"Downloaded from \S+: \S*/(\S+\.jar) ")


class ToolError(GaveUp):
    """Java, Maven or a jar is missing on this machine, or Maven failed (exit code 1)."""


def resolved(
    name: str, stem: str, profile: str, properties: tuple[str, ...] = (), on_progress: Progress | None = None
) -> Path:
    """The directory with the jars of a profile of the pom; from the cache, else by Maven. Raises ToolError."""
    pom = pom_file()
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:8]
    directory = cache_home() / "jars" / f"{stem}-{digest}"
    if not directory.is_dir():
        _fill(directory, name, (str(maven()), "-B", "-f", str(pom), f"-P{profile}", *properties), on_progress)
    return directory


def pom_file() -> Path:
    """The pom: of a checkout (the package links to it) or in a wheel's package. Raises ToolError when it is missing."""
    pom = Path(__file__).with_name("pom.xml").resolve()
    if not pom.is_file():
        raise ToolError("The list of jars is missing", why=f"there is no {pom}", todo="Install rackwise again.")
    return pom


def cache_home() -> Path:
    """`$RACKWISE_CACHE`, else `rackwise` in the XDG cache directory; nothing is made there."""
    return home("RACKWISE_CACHE", "XDG_CACHE_HOME", Path(".cache"))


def home(own: str, xdg: str, below_home: Path) -> Path:
    """The directory that variable ``own`` names, else `rackwise` in that of the XDG base directory rules."""
    if directory := os.environ.get(own):
        return Path(directory).expanduser().absolute()
    base = os.environ.get(xdg, "")
    # A relative path there is ignored (XDG).
    return (Path(base) if Path(base).is_absolute() else Path.home() / below_home) / "rackwise"


def java() -> Path:
    """The Java on the path. Raises ToolError when it is missing, of unknown version or older than 17."""
    found = _tool("java", f"brokers need JDK {OLDEST_JAVA}", "openjdk-17-jdk-headless")
    numbers = re.search(r'version "(?:1\.)?(\d+)', answer := _output(found, "-version"))
    if numbers is None:
        raise ToolError(f"the version of {found} is unknown", why=_first_line(answer), todo="Install JDK 17 again.")
    if int(numbers.group(1)) < OLDEST_JAVA:
        raise ToolError(
            f"Java {numbers.group(1)} at {found} is too old",
            why=f"brokers need {OLDEST_JAVA} or newer",
            todo="Put a newer JDK first on PATH, for example with `apt install openjdk-17-jdk-headless`.",
        )
    return found


def maven() -> Path:
    """The Maven on the path. Raises ToolError when it is missing, of unknown version or older than 3.6."""
    found = _tool("mvn", "the jars of Kafka are downloaded with Maven", "maven")
    numbers = re.search(r"Apache Maven (\d+)\.(\d+)", answer := _output(found, "-v"))
    if numbers is None:
        raise ToolError(f"the version of {found} is unknown", why=_first_line(answer), todo="Install Maven again.")
    if (int(numbers.group(1)), int(numbers.group(2))) < OLDEST_MAVEN:
        least = ".".join(map(str, OLDEST_MAVEN))
        raise ToolError(
            f"{numbers.group(0)} at {found} is too old",
            why=f"{least} or newer is needed",
            todo="Put a newer one first on PATH.",
        )
    return found


def _fill(directory: Path, name: str, command: tuple[str, ...], on_progress: Progress | None) -> None:
    say = on_progress or (lambda _line: None)
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        say(f"downloading the jars of {name} with Maven (once)")
        _run_maven(name, (*command, "dependency:copy-dependencies", f"-DoutputDirectory={temporary}"), say)
        count = _put_agents_aside(temporary)
        if count == 0:
            raise ToolError(f"Maven ended without an error but copied no jar of {name}", todo=f"Check {pom_file()}.")
        temporary.chmod(0o755)
        _publish(temporary, directory)
        say(f"{count} jars of {name} are in {directory}")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _run_maven(name: str, command: tuple[str, ...], say: Progress) -> None:
    tail: deque[str] = deque(maxlen=40)
    count = 0
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        for line in process.stdout or ():
            tail.append(line.strip())
            if downloaded := _DOWNLOADED.search(line):
                count += 1
                say(f"jar {count}: {downloaded[1]}")
    if process.returncode:
        errors = [line.removeprefix(_ERROR_PREFIX) for line in tail if line.startswith(_ERROR_PREFIX)]
        raise ToolError(
            f"Maven could not download the jars of {name}",
            why=errors[0] if errors else " ".join(tail)[-500:],
            todo="Check the version and the network, then try again.",
        )


def _put_agents_aside(directory: Path) -> int:
    """Move agents out of the classpath's directory; how many jars there are in all."""
    jars = tuple(directory.glob("*.jar"))
    (directory / "agents").mkdir()
    for jar in jars:
        if jar.name.startswith(AGENT_PREFIX):
            jar.rename(directory / "agents" / jar.name)
    return len(jars)


def _publish(temporary: Path, directory: Path) -> None:
    try:
        temporary.rename(directory)
    except OSError:
        # Another process was quicker; the name holds the digest, so theirs is as good.
        if not directory.is_dir():
            raise


def _tool(name: str, why: str, package: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise ToolError(
            f"{name} is not on PATH", why=why, todo=f"Install it, for example with `apt install {package}`."
        )
    return Path(found)


def _output(tool: Path, argument: str) -> str:
    try:
        done = subprocess.run(
            (str(tool), argument),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{tool} {argument} could not be run", why=str(error), todo="Install it again.") from error
    return done.stdout


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "it printed nothing")[:200]


# --- connectors of Spark --------------------------------------------------------------------------------------------

_LOCK = Path(__file__).with_name("jars.lock")
TABLES_JAR = Path(__file__).with_name("jars") / "rackwise-tables.jar"
"""The log of tables in S3; `make jar` builds it, and the wheel has it."""


def spark_jars(on_progress: Callable[[str], None] | None = None, connectors: tuple[str, ...] = ()) -> tuple[Path, ...]:
    """The connectors' jars, by name; from the cache, else by Maven, once. Raises ToolError, BadInput.

    ``connectors`` are the sets of object stores that are needed as well: ``s3a``, ``gs``, ``abfs``.
    """
    if "s3a" in connectors and not TABLES_JAR.is_file():
        raise ToolError(
            "This installation of rackwise has no jar for tables in S3",
            why=f"there is no {TABLES_JAR}",
            todo="Run `make jar` in the clone and install rackwise again, or install the wheel of a release.",
        )
    own = (TABLES_JAR,) if "s3a" in connectors else ()
    return (*(jar for profile in ("spark", *connectors) for jar in _set_of_jars(profile, on_progress)), *own)


def _set_of_jars(profile: str, on_progress: Callable[[str], None] | None) -> tuple[Path, ...]:
    name = "the Spark connectors" if profile == "spark" else f"the connector of {profile}://"
    directory = resolved(name, profile, profile, (), on_progress)
    jars = tuple(sorted(directory.glob("*.jar")))
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars}
    locked = locked_jars(profile)
    if found != locked:
        odd = sorted(name for name in found.keys() | locked.keys() if found.get(name) != locked.get(name))
        raise BadInput(
            "The Spark connectors differ from those that rackwise was built with",
            why=f"{', '.join(odd)} in {directory}: the checksum is not the one in {_LOCK.name}",
            todo=f"Delete {directory} and try again; if it happens again, do not trust the source of the jars.",
        )
    return jars


def locked_jars(profile: str = "spark") -> dict[str, str]:
    """File name -> SHA-256, of the profile's part of ``jars.lock``."""
    _, _, part = _LOCK.read_text("ascii").partition(f"# {profile}\n")
    lines = (line.split() for line in part.partition("\n#")[0].splitlines() if line)
    return {name: digest for digest, name in lines}
