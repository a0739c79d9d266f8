"""Which Java and Maven this machine has, and what to do when one is missing or too old.

Invariant: a tool is believed only after it has told its version.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from agent.maven.errors import ToolError

OLDEST_JAVA = 17
OLDEST_MAVEN = (3, 6)
_TIMEOUT_S = 60


def java() -> Path:
    """The Java on the path; ToolError when it is missing or older than 17."""
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
    """The Maven on the path; ToolError when it is missing or older than 3.6."""
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
