"""Classes of the Java part, compiled against one Kafka version and cached.

Invariant: a directory of the cache is whole or absent; its name holds the Kafka version and a digest of the sources, so
a changed source never runs as older classes.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from pipeline.maven import Progress, cache_home
from testbed.cluster.jars import JarSet, kafka_jars
from testbed.demo.workload.errors import WorkloadError

_SOURCES = Path(__file__).parent / "java"
_RELEASE = "17"
_WITHIN_S = 180


def compiled(version: str, on_progress: Progress) -> tuple[JarSet, Path]:
    """Jars of this Kafka version and the directory of classes compiled against them; both from the cache when there.

    Raises ToolError when jars cannot be downloaded, WorkloadError when javac is missing or fails.
    """
    jars = kafka_jars(version, on_progress)
    sources = sorted(_SOURCES.rglob("*.java"))
    directory = cache_home() / "workload" / f"{version}-{_digest(sources)}"
    if not directory.is_dir():
        on_progress(f"compiling the Streams application against Kafka {version}")
        _compile(sources, jars, directory)
    return jars, directory


def _digest(sources: list[Path]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _compile(sources: list[Path], jars: JarSet, directory: Path) -> None:
    compiler = shutil.which("javac")
    if compiler is None:
        raise WorkloadError(
            "The Streams application cannot be compiled",
            why="javac is not on PATH",
            todo=f"Install a JDK {_RELEASE}, for example with `apt install openjdk-{_RELEASE}-jdk-headless`.",
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".compiling-", dir=directory.parent))
    try:
        command = [
            compiler,
            "--release",
            _RELEASE,
            "-nowarn",
            "-proc:none",
            "-d",
            str(temporary),
            "-cp",
            jars.classpath,
        ]
        done = subprocess.run(
            [*command, *map(str, sources)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_WITHIN_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise WorkloadError("The Streams application could not be compiled", why=done.stderr.strip()[-2_000:])
        _publish(temporary, directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _publish(temporary: Path, directory: Path) -> None:
    temporary.chmod(0o755)
    try:
        temporary.rename(directory)
    except OSError:
        # Another process was quicker; the name holds the digest, so theirs is as good.
        if not directory.is_dir():
            raise
