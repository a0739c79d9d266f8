"""Builds of the jar by Maven, each in a directory of its own, so that tests side by side do not meet."""

from __future__ import annotations

import fcntl
import subprocess
import tempfile
from pathlib import Path

from agent.cli import plugin
from pipeline.maven import maven

POM = Path(__file__).parents[2] / "jvm" / "pom.xml"
JAR = "rackwise-kafka.jar"


def run_maven(*arguments: str) -> None:
    """Run Maven on the pom of ``jvm/``; its output is the message of the AssertionError when it fails."""
    command = (str(maven()), "-B", "-q", "-f", str(POM), *arguments)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def build_jar(directory: Path) -> Path:
    """The jar, compiled in ``directory``; its tests are a matter of ``make java``."""
    run_maven("package", "-Dmaven.test.skip=true", f"-Dbuild.home={directory}")
    return directory / JAR


def packaged_jar() -> Path:
    """The jar where `rackwise plugin jar` takes it from; built where `make jar` was not run, or sources are newer."""
    path = plugin._PACKAGED
    path.parent.mkdir(exist_ok=True)
    with path.with_name(".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = [POM, *(POM.parent / "src" / "main").rglob("*.java")]
        if not path.exists() or path.stat().st_mtime < max(source.stat().st_mtime for source in sources):
            with tempfile.TemporaryDirectory(dir=path.parent) as directory:
                build_jar(Path(directory)).replace(path)
    return path
