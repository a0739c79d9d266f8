"""Makes the files of a release in ``dist/`` (``make dist``).

They are made of the last commit alone, and its time is the time in them: the same commit gives the same bytes, of the
jar by the same JDK. Wheel and sdist, which have the jar, are built twice, in two places, and compared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from deploy.release.archives import checksums, files_below, packed
from deploy.release.sbom import NotInstalledError, bill_of_materials, locked_packages, vendored_libraries
from pipeline.maven import ToolError, maven

TOP = Path(__file__).resolve().parents[2]
SUMS = "SHA256SUMS"
_CHART = Path("deploy", "helm", "rackwise")
_UNIT = Path("deploy", "systemd", "rackwise.service")
_VENDORED = Path("agent", "web", "page", "static", "vendor", "vendor.lock.json")
_JARS = {
    Path("jvm"): Path("agent", "cli", "jars", "rackwise-kafka.jar"),
    Path("jvm", "tables"): Path("pipeline", "jars", "rackwise-tables.jar"),
}
"""Project of Maven -> where the packages have its jar."""
_MOST_ERRORS = 3
_WATCHED = ("grafana", "prometheus")
_SHOWN = frozenset((".json", ".yaml", ".yml", ".md"))

Say = Callable[[str], None]


class ReleaseError(Exception):
    """A file of the release cannot be made; one sentence."""


def main(out: Path = TOP / "dist", say: Say = print) -> None:
    """Write all files of the release. Raises ReleaseError."""
    epoch, commit = _git("log", "-1", "--format=%ct %H").split()
    if _git("status", "--porcelain"):
        say("changes that are not committed are not in these files")
    with tempfile.TemporaryDirectory(prefix="rackwise-dist-") as scratch:
        tree, made = Path(scratch, "tree"), Path(scratch, "made")
        _export(commit, tree)
        made.mkdir()
        make_all(tree, made, int(epoch))
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(made, out)
    for line in (out / SUMS).read_text().splitlines():
        say(line)


def make_all(tree: Path, out: Path, epoch: int) -> None:
    """The files of the release of this tree. Raises ReleaseError."""
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    version = str(project["version"])
    add_jars(tree)
    build_twice(tree, out, epoch)
    (out / f"rackwise-{version}.tgz").write_bytes(chart_package(tree, version, epoch))
    shutil.copyfile(tree / _UNIT, out / _UNIT.name)
    for name, archive in _archives(tree, version, epoch):
        (out / f"{name}-{version}.tar.gz").write_bytes(archive)
    (out / f"rackwise-{version}.cdx.json").write_text(_bill(tree, version, project["license"], epoch))
    (out / SUMS).write_text(checksums(out))


def add_jars(tree: Path) -> None:
    """Build the jars to where the packages of the tree have them. Raises ReleaseError."""
    try:
        tool = str(maven())
    except ToolError as error:
        raise ReleaseError(str(error)) from error
    for project, jar in _JARS.items():
        _add_jar(tool, tree / project / "pom.xml", tree / jar)


def _add_jar(tool: str, pom: Path, jar: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="rackwise-jar-") as scratch:
        command = (tool, "-B", "-q", "-f", str(pom), "package", "-Dmaven.test.skip=true", f"-Dbuild.home={scratch}")
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stdout.splitlines() if "[ERROR] " in line]
            raise ReleaseError(f"the jar cannot be built: {'; '.join(errors[:_MOST_ERRORS]) or done.stderr.strip()}")
        jar.parent.mkdir(exist_ok=True)
        shutil.copyfile(Path(scratch, jar.name), jar)


def build_twice(tree: Path, out: Path, epoch: int) -> None:
    """Wheel and sdist of the tree. Raises ReleaseError when a second build in another place gives other bytes."""
    with tempfile.TemporaryDirectory(prefix="rackwise-again-") as scratch:
        elsewhere = Path(scratch, "another place")
        shutil.copytree(tree, elsewhere, symlinks=True, copy_function=shutil.copy)  # with other times
        again = Path(scratch, "built")
        _build(tree, out, epoch, umask=0o022)
        _build(elsewhere, again, epoch, umask=0o077)
        for second in again.iterdir():
            if (out / second.name).read_bytes() != second.read_bytes():
                raise ReleaseError(f"{second.name} is not the same when it is built twice")


def chart_package(tree: Path, version: str, epoch: int) -> bytes:
    """The chart as ``helm package`` packs it, with the commit's time. Raises ReleaseError for another version."""
    chart: dict[str, Any] = yaml.safe_load((tree / _CHART / "Chart.yaml").read_text())
    if (chart["version"], chart["appVersion"]) != (version, version):
        raise ReleaseError(f"the chart has version {chart['version']} of {chart['appVersion']}, and rackwise {version}")
    return packed(files_below(tree / _CHART, "rackwise"), epoch)


def _bill(tree: Path, version: str, license_name: str, epoch: int) -> str:
    """The bill of materials of the wheel and of the image, which has the extra for notifications."""
    lock = (tree / "requirements-notify.lock").read_text()
    needed = {one.name for one in locked_packages((tree / "requirements.lock").read_text())}
    try:
        return bill_of_materials(
            "rackwise", version, license_name, lock, epoch, extra="notify",
            optional={one.name for one in locked_packages(lock)} - needed,
            vendored=vendored_libraries((tree / _VENDORED).read_text()),
        )  # fmt: skip
    except NotInstalledError as error:
        raise ReleaseError(f"{error}; make the environment anew: make venv") from error


def _archives(tree: Path, version: str, epoch: int) -> Iterator[tuple[str, bytes]]:
    """The archives of dashboards with rules, and of the Kustomize base."""
    watched: dict[str, bytes] = {}
    for place in _WATCHED:
        found = files_below(tree / "deploy" / place, f"rackwise-dashboards-{version}/{place}", _SHOWN)
        if not found:
            raise ReleaseError(f"deploy/{place} has no files")
        watched |= found
    yield "rackwise-dashboards", packed(watched, epoch)
    base = files_below(tree / "deploy" / "kustomize", f"rackwise-kustomize-{version}", _SHOWN)
    yield "rackwise-kustomize", packed(base, epoch)


def _build(tree: Path, out: Path, epoch: int, umask: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(out)],
        cwd=tree,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"the wheel cannot be built: {done.stderr.strip()}")


def _export(commit: str, tree: Path) -> None:
    tree.mkdir()
    with _archive_of(commit) as archive:
        subprocess.run(["tar", "-x", "-C", str(tree)], stdin=archive, check=True)


@contextmanager
def _archive_of(commit: str) -> Iterator[Any]:
    with subprocess.Popen(["git", "archive", commit], cwd=TOP, stdout=subprocess.PIPE) as process:
        yield process.stdout


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=TOP, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"a release is made of a commit: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    try:
        main()
    except ReleaseError as error:
        sys.exit(f"rackwise: {error}")
