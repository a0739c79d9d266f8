"""Prometheus' promtool: the one on PATH, else that of Debian's package, unpacked beside the other cached tools.

Nothing is installed on the machine, no service is started, and no right of root is needed: the package is downloaded
with apt's own check of its signature and unpacked. Without the tool a test fails; it is never skipped.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.maven import cache_home

PACKAGE = "prometheus"


def prometheus_tool(name: str) -> Path:
    """`promtool` or `prometheus`."""
    if found := shutil.which(name):
        return Path(found)
    place = cache_home() / "debian" / PACKAGE
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f"{PACKAGE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of the workers of one test run the first one downloads
        if not place.exists():
            _unpack_package(place)
    return place / "usr" / "bin" / name


def _unpack_package(place: Path) -> None:
    """The package's files below `place`, all or none."""
    with TemporaryDirectory(dir=place.parent) as folder:
        # lists of packages of our own: those of the machine may be missing, old, or locked by another apt
        (state := Path(folder) / "state" / "lists" / "partial").mkdir(parents=True)
        own = [f"--option=Dir::State={state.parents[1]}", "--option=Dir::State::status=/var/lib/dpkg/status",
               f"--option=Dir::Cache={folder}/cache", "--option=APT::Sandbox::User=",
               "--option=Acquire::Languages=none", "--option=Acquire::Retries=3"]  # fmt: skip
        if not _ran(["apt-get", "-q", "download", PACKAGE], folder):
            _run(["apt-get", "-q", *own, "update"], folder)
            _run(["apt-get", "-q", *own, "download", PACKAGE], folder)
        (package,) = Path(folder).glob(f"{PACKAGE}_*.deb")
        unpacked = Path(folder) / "unpacked"
        _run(["dpkg-deb", "--extract", str(package), str(unpacked)], folder)
        unpacked.rename(place)


def _ran(command: list[str], folder: str) -> bool:
    return shutil.which(command[0]) is not None and (
        subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=120).returncode == 0
    )


def _run(command: list[str], folder: str) -> None:
    assert shutil.which(command[0]), f"no promtool on PATH, and no {command[0]}: install Prometheus and its promtool"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (
        f"no promtool on PATH, and Debian's package could not be had (install it: apt-get install {PACKAGE}): "
        f"{' '.join(command[:2])} ended with {done.returncode}: {done.stderr.strip()}"
    )
