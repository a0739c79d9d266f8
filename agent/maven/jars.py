"""How a set of jars gets into the cache: resolved once by Maven, out of the project's one pom.

Invariant: a directory of the cache is whole or absent. Maven fills a temporary neighbour, which is renamed at the
end; the name holds what was asked for and a digest of the pom, so a changed pom never finds older jars.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from agent.maven.errors import ToolError
from agent.maven.places import cache_home
from agent.maven.toolchain import maven

Progress = Callable[[str], None]
"""Called with one short line per step."""

AGENT_PREFIX = "jmx_prometheus_javaagent-"
"""A jar of this name is an agent: it lies apart, in ``agents``, so that no classpath has it."""
_ERROR_PREFIX = "[ERROR] "
_DOWNLOADED = re.compile(r"Downloaded from \S+: \S*/(\S+\.jar) ")


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
    """The one pom: at the top of a checkout, where this package has a link to it, and in the package in a wheel."""
    pom = Path(__file__).with_name("pom.xml").resolve()
    if not pom.is_file():
        raise ToolError("The list of jars is missing", why=f"there is no {pom}", todo="Install rackwise again.")
    return pom


def _fill(directory: Path, name: str, command: tuple[str, ...], on_progress: Progress | None) -> None:
    say = on_progress or _silent
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
        raise ToolError(
            f"Maven could not download the jars of {name}",
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


def _silent(_line: str) -> None:
    return
