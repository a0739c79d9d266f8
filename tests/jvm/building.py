"""Builds of the jars by Maven, each in a directory of its own, so that tests side by side do not meet."""

from __future__ import annotations

import fcntl
import subprocess
import tempfile
from pathlib import Path

from agent.cli import plugin
from pipeline.maven import TABLES_JAR, maven

POM = Path(__file__).parents[2] / "jvm" / "pom.xml"
TABLES_POM = POM.parent / "tables" / "pom.xml"
JAR = "rackwise-kafka.jar"


def run_maven(*arguments: str, pom: Path = POM) -> None:
    """Run Maven on a pom, by default the plug-in's; its output is the message of the AssertionError when it fails."""
    command = (str(maven()), "-B", "-q", "-f", str(pom), *arguments)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def build_jar(directory: Path, pom: Path = POM) -> Path:
    """The jar, compiled in ``directory``; its tests are a matter of ``make java``."""
    run_maven("package", "-Dmaven.test.skip=true", f"-Dbuild.home={directory}", pom=pom)
    (jar,) = directory.glob("*.jar")
    return jar


def packaged_jar() -> Path:
    """The plug-in's jar, where `rackwise plugin jar` takes it from."""
    return _packaged(plugin._PACKAGED, POM)


def tables_jar() -> Path:
    """The jar for tables in S3, where the pipeline takes it from."""
    return _packaged(TABLES_JAR, TABLES_POM)


def _packaged(path: Path, pom: Path) -> Path:
    """Built where `make jar` was not run, or sources are newer."""
    path.parent.mkdir(exist_ok=True)
    with path.with_name(".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = [pom, *(pom.parent / "src" / "main").rglob("*.java")]
        if not path.exists() or path.stat().st_mtime < max(source.stat().st_mtime for source in sources):
            with tempfile.TemporaryDirectory(dir=path.parent) as directory:
                build_jar(Path(directory), pom).replace(path)
    return path
