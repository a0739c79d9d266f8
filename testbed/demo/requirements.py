"""Requirements of the demo on this machine, a JDK and Maven; all missing ones are reported at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from agent.errors import ConfigError
from pipeline import maven
from pipeline.maven import ToolError


class DemoRequirementError(ConfigError):
    """Something that the demo needs is not on this machine."""


def check_needs() -> str:
    """One sentence with the tools found. Raises DemoRequirementError, which names everything that is missing."""
    tools: tuple[Callable[[], Path], ...] = (maven.java, _compiler, maven.maven)
    found: list[Path] = []
    missing: list[ToolError] = []
    for tool in tools:
        try:
            found.append(tool())
        except ToolError as error:
            missing.append(error)
    if missing:
        raise DemoRequirementError(
            f"This machine lacks {len(missing)} of the {len(tools)} tools that the demo needs",
            why="; ".join(f"{error.what}: {error.why}" for error in missing),
            todo=" ".join(dict.fromkeys(error.todo for error in missing)),
        )
    return "found what is needed: " + ", ".join(map(str, found))


def _compiler() -> Path:
    found = shutil.which("javac")
    if found is None:
        raise ToolError(
            "javac is not on PATH",
            why="the Streams application is compiled here, so a JRE is not enough",
            todo=f"Install a JDK, for example with `apt install openjdk-{maven.OLDEST_JAVA}-jdk-headless`.",
        )
    return Path(found)
