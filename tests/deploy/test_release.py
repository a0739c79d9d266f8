"""The files of a release: the same bytes for the same commit, and each of them what it says it is."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.release import dist
from deploy.release.archives import checksums, packed
from deploy.release.sbom import NotInstalledError, bill_of_materials, locked_packages
from tests.deploy.tooling import TOP, run, tool
from tests.jvm.building import packaged_jar, tables_jar

EPOCH = 1_700_000_000
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
LOCK = (TOP / "requirements-notify.lock").read_text()
NEEDED = {one.name for one in locked_packages((TOP / "requirements.lock").read_text())}
VENDORED = json.loads((TOP / "agent/web/page/static/vendor/vendor.lock.json").read_text())
WHEEL = f"rackwise-{VERSION}-py3-none-any.whl"
SDIST = f"rackwise-{VERSION}.tar.gz"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this checkout that are in git, as they are now, and something to watch it with."""
    place = tmp_path_factory.mktemp("release") / "tree"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (TOP / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, place / name, follow_symlinks=False)
    for watched in ("grafana", "prometheus"):
        (place / "deploy" / watched).mkdir(parents=True, exist_ok=True)
        (place / "deploy" / watched / "of-the-test.json").write_text("{}")
    return place


@pytest.fixture(scope="module")
def made(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    dist.make_all(tree, out, EPOCH)
    return out


def test_a_release_has_these_files(made: Path) -> None:
    assert {path.name for path in made.iterdir()} == {
        *(WHEEL, SDIST, f"rackwise-{VERSION}.tgz", "rackwise.service", f"rackwise-dashboards-{VERSION}.tar.gz"),
        *(f"rackwise-kustomize-{VERSION}.tar.gz", f"rackwise-{VERSION}.cdx.json", "SHA256SUMS"),
    }


def test_all_of_it_is_the_same_when_it_is_made_again(tree: Path, made: Path, tmp_path: Path) -> None:
    for path in tree.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    dist.make_all(tree, tmp_path, EPOCH)
    assert (tmp_path / "SHA256SUMS").read_text() == (made / "SHA256SUMS").read_text()


def test_another_time_of_the_commit_gives_other_bytes(made: Path, tree: Path, tmp_path: Path) -> None:
    dist._build(tree, tmp_path, EPOCH + 60, umask=0o022)
    assert (tmp_path / WHEEL).read_bytes() != (made / WHEEL).read_bytes()


def test_builds_that_differ_are_found(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drifting(tree: Path, out: Path, _epoch: int, umask: int) -> None:
        out.mkdir(exist_ok=True)
        (out / WHEEL).write_bytes(f"{tree} {umask}".encode())

    monkeypatch.setattr(dist, "_build", drifting)
    with pytest.raises(dist.ReleaseError, match=f"{WHEEL} is not the same"):
        dist.build_twice(tree, tmp_path, EPOCH)


def test_the_sums_are_those_of_all_other_files(made: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=made, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout
    named = {line.split("  ")[1] for line in (made / "SHA256SUMS").read_text().splitlines()}
    assert named == {path.name for path in made.iterdir()} - {"SHA256SUMS"}


def test_the_wheel_has_the_packages_and_nothing_beside_them(made: Path) -> None:
    with zipfile.ZipFile(made / WHEEL) as wheel:
        names = wheel.namelist()
        times = {entry.date_time for entry in wheel.infolist()}
    assert {name.split("/")[0] for name in names} == {
        *("agent", "assignors", "config", "pipeline", "testbed", f"rackwise-{VERSION}.dist-info")
    }
    assert times == {(2023, 11, 14, 22, 13, 20)}
    assert "agent/daemon/schedule.py" in names


def test_the_sdist_builds_the_same_wheel(made: Path, tmp_path: Path) -> None:
    with tarfile.open(made / SDIST) as archive:
        archive.extractall(tmp_path, filter="data")
    dist._build(tmp_path / SDIST.removesuffix(".tar.gz"), tmp_path / "built", EPOCH, umask=0o022)
    assert (tmp_path / "built" / WHEEL).read_bytes() == (made / WHEEL).read_bytes()


def on_the_wheel(wheel: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of rackwise as this wheel alone has it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")  # noqa: S202 our own wheel
    return subprocess.run(
        [sys.executable, "-m", "agent", *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": str(folder / "site")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_wheel_has_the_jar_for_brokers_and_writes_it_out(made: Path, tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    done = on_the_wheel(made / WHEEL, tmp_path, "plugin", "jar", "-o", "libs", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "libs" / "rackwise-kafka.jar").read_bytes() == packaged_jar().read_bytes()
    assert json.loads(done.stdout)["written"] is True


def test_the_wheel_has_the_jar_for_tables_in_s3_and_nothing_else_of_jvm(made: Path) -> None:
    with zipfile.ZipFile(made / WHEEL) as wheel:
        jars = [name for name in wheel.namelist() if name.endswith(".jar")]
        assert sorted(jars) == ["agent/cli/jars/rackwise-kafka.jar", "pipeline/jars/rackwise-tables.jar"]
        assert wheel.read("pipeline/jars/rackwise-tables.jar") == tables_jar().read_bytes()


def test_a_wheel_that_is_built_without_the_jar_says_what_to_do(tree: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(tree, tmp_path / "tree", symlinks=True, ignore=shutil.ignore_patterns("*.jar"))
    dist._build(bare, tmp_path / "built", EPOCH, umask=0o022)
    done = on_the_wheel(tmp_path / "built" / WHEEL, tmp_path, "plugin", "jar")
    assert (done.returncode, done.stdout) == (1, "")
    assert str(tmp_path / "site" / "agent" / "cli" / "jars") in done.stderr
    assert "Run `make jar` in the clone" in done.stderr


def test_a_jar_that_cannot_be_built_stops_the_release(tree: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(tree, tmp_path / "tree", symlinks=True, ignore=shutil.ignore_patterns("*.jar"))
    (broken / "jvm/src/main/java/rackwise/assignor/Broken.java").write_text("package rackwise.assignor; class {")
    with pytest.raises(dist.ReleaseError, match=r"the jar cannot be built: .*Broken\.java"):
        dist.add_jars(broken)


def test_helm_takes_the_packed_chart_for_the_chart(made: Path) -> None:
    archive = made / f"rackwise-{VERSION}.tgz"
    by_archive = run(tool("helm"), "template", "racks", archive)
    by_directory = run(tool("helm"), "template", "racks", TOP / "deploy" / "helm" / "rackwise")
    assert by_archive.returncode == 0, by_archive.stderr
    assert by_archive.stdout == by_directory.stdout
    shown = run(tool("helm"), "show", "chart", archive).stdout
    assert f"version: {VERSION}\n" in shown


def test_a_chart_of_another_version_is_no_part_of_the_release(tree: Path) -> None:
    with pytest.raises(dist.ReleaseError, match=rf"the chart has version {VERSION} of {VERSION}, and rackwise 9\.9\.9"):
        dist.chart_package(tree, "9.9.9", EPOCH)


def test_archives_have_their_files_without_owner_and_time_of_their_own(made: Path) -> None:
    with tarfile.open(made / f"rackwise-kustomize-{VERSION}.tar.gz") as archive:
        entries = archive.getmembers()
    assert {entry.name for entry in entries} >= {
        f"rackwise-kustomize-{VERSION}/{name}/kustomization.yaml" for name in ("base", "execute")
    }
    assert {(entry.mode, entry.uid, entry.gid, entry.uname, int(entry.mtime)) for entry in entries} == {
        (0o644, 0, 0, "", EPOCH)
    }
    with tarfile.open(made / f"rackwise-dashboards-{VERSION}.tar.gz") as archive:
        names = archive.getnames()
    assert f"rackwise-dashboards-{VERSION}/grafana/of-the-test.json" in names
    assert not [name for name in names if name.endswith(".py")]


def test_without_dashboards_there_is_no_release(tree: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(tree, tmp_path / "tree", symlinks=True)
    shutil.rmtree(bare / "deploy" / "grafana")
    with pytest.raises(dist.ReleaseError, match="deploy/grafana has no files"):
        list(dist._archives(bare, VERSION, EPOCH))


def test_an_archive_depends_on_its_files_alone() -> None:
    first = packed({"b": b"2", "a": b"1"}, EPOCH)
    assert first == packed({"a": b"1", "b": b"2"}, EPOCH)
    assert first != packed({"a": b"1", "b": b"3"}, EPOCH)


def test_a_sum_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    assert checksums(tmp_path) == f"{hashlib.sha256(b'text').hexdigest()}  a\n"


@pytest.fixture(scope="module")
def bill(made: Path) -> Any:
    return json.loads((made / f"rackwise-{VERSION}.cdx.json").read_text())


def test_the_bill_has_each_locked_package_with_all_its_hashes(bill: Any) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/rackwise@{VERSION}"
    assert bill["metadata"]["component"]["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    listed = {one["name"]: one for one in bill["components"] if one["purl"].startswith("pkg:pypi/")}
    pinned = [line.partition("==") for line in LOCK.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    assert {name: one["version"] for name, one in listed.items()} == {
        canonicalize_name(name): rest.split()[0] for name, _, rest in pinned
    }
    assert sum(len(one["hashes"]) for one in listed.values()) == LOCK.count("--hash=sha256:")
    assert {digest["alg"] for one in listed.values() for digest in one["hashes"]} == {"SHA-256"}


def test_what_notifications_alone_need_is_optional(bill: Any) -> None:
    scopes = {one["name"]: one.get("scope") for one in bill["components"] if one["purl"].startswith("pkg:pypi/")}
    assert {name for name, scope in scopes.items() if scope == "optional"} == set(scopes) - NEEDED
    assert scopes["apprise"] == "optional"
    (needs,) = (one["dependsOn"] for one in bill["dependencies"] if one["ref"].startswith("rackwise=="))
    assert any(ref.startswith("apprise==") for ref in needs)


def test_the_bill_has_the_browser_libraries_in_the_wheel(bill: Any) -> None:
    listed = {one["purl"]: one for one in bill["components"] if one["purl"].startswith("pkg:npm/")}
    assert sorted(listed) == sorted(
        f"pkg:npm/{one['package'].replace('@', '%40')}@{one['version']}" for one in VENDORED
    )
    assert {one["licenses"][0]["license"]["id"] for one in listed.values()} == {one["licence"] for one in VENDORED}
    digests = {one["hashes"][0]["content"] for one in listed.values()}
    assert digests == {base64.b64decode(one["integrity"].removeprefix("sha512-")).hex() for one in VENDORED}
    with_files = {one["ref"]: one.get("dependsOn", []) for one in bill["dependencies"]}[f"rackwise=={VERSION}"]
    assert {one for one in with_files if one.startswith("npm:")} == {one["bom-ref"] for one in listed.values()}


def test_each_package_that_is_installed_here_has_a_licence(bill: Any) -> None:
    elsewhere = {one.name for one in locked_packages(LOCK) if not one.is_for_this_system}
    assert {one["name"] for one in bill["components"] if not one.get("licenses")} <= elsewhere


def test_the_bill_knows_what_depends_on_what(bill: Any) -> None:
    needs = {one["ref"].partition("==")[0]: one.get("dependsOn", []) for one in bill["dependencies"]}
    lines = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["notify"]]
    direct = {canonicalize_name(Requirement(line).name) for line in lines}
    assert {ref.partition("==")[0] for ref in needs["rackwise"] if not ref.startswith("npm:")} == direct
    assert {ref.partition("==")[0] for ref in needs["uvicorn"]} == {"click", "h11"}


@pytest.mark.parametrize(
    ("lock", "mistake"),
    [
        ("absent-package==1.0 \\\n    --hash=sha256:" + "0" * 64, "absent-package is not installed"),
        ("rich==0.1", r"rich [\d.]+ is installed, and 0\.1 is locked"),
    ],
)
def test_a_package_that_is_not_the_installed_one_has_no_licence_by_guess(lock: str, mistake: str) -> None:
    with pytest.raises(NotInstalledError, match=mistake):
        bill_of_materials("rackwise", VERSION, "Apache-2.0", lock, EPOCH)


@pytest.mark.parametrize("line", ["rich", "rich>=1", "-e .", "--find-links x"])
def test_a_lock_file_with_a_line_that_locks_nothing_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="no locked package"):
        locked_packages(line)


def test_a_package_of_other_systems_is_listed_without_a_licence() -> None:
    lock = f"colorama==0.4.6 ; sys_platform == 'win32' \\\n    --hash=sha256:{'0' * 64}"
    (component,) = json.loads(bill_of_materials("rackwise", VERSION, "Apache-2.0", lock, EPOCH))["components"]
    assert "licenses" not in component
    assert component["properties"] == [{"name": "rackwise:marker", "value": "sys_platform == 'win32'"}]
