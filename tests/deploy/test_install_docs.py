"""docs/install.md and docs/releasing.md: their commands, files and versions are those of this checkout."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from itertools import takewhile
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from agent.cli.app import full_application
from tests.deploy.test_chart import CHART
from tests.deploy.tooling import TOP, run, tool

INSTALL = (TOP / "docs" / "install.md").read_text()
RELEASING = (TOP / "docs" / "releasing.md").read_text()
CHART_README = (CHART / "README.md").read_text()
VERSION = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]


def section(title: str) -> str:
    _, _, rest = INSTALL.partition(f"\n## {title}\n")
    assert rest, title
    return rest.partition("\n## ")[0]


def blocks(text: str, language: str = "") -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in fenced if name == language]


def commands(text: str) -> list[list[str]]:
    """The commands of all plain blocks, as a shell would split them."""
    lines = "\n".join(blocks(text)).replace("\\\n", " ").splitlines()
    inline = re.findall(r"`((?:helm|kubectl|rackwise|systemctl|docker|pipx) [^`]+)`", text)
    return [shlex.split(line, comments=True) for line in [*lines, *inline]]


def test_every_version_in_them_is_the_present_one() -> None:
    named = re.findall(r"rackwise[-:](\d+\.\d+\.\d+)|newTag: (\d+\.\d+\.\d+)", INSTALL)
    assert len(named) >= 8
    assert {first or second for first, second in named} == {VERSION}
    assert f'org.opencontainers.image.version="{VERSION}"' in (TOP / "Dockerfile").read_text()
    assert f"image: rackwise:{VERSION}" in (TOP / "deploy" / "kustomize" / "base" / "deployment.yaml").read_text()


def test_every_path_of_the_checkout_in_them_exists() -> None:
    named = set(re.findall(r"`((?:deploy|tests|config|docs)/[\w./-]+)`", INSTALL + RELEASING + CHART_README))
    assert len(named) > 5
    later = {"deploy/grafana", "deploy/prometheus"}  # in every checkout that has the dashboards
    assert [name for name in named if not (TOP / name).exists() and name not in later] == []


def test_every_target_of_make_in_them_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", INSTALL + RELEASING)) <= targets


def test_every_command_of_rackwise_in_them_exists_with_its_options() -> None:
    asked = [one for one in commands(INSTALL + RELEASING) if one and one[0].rpartition("/")[2] == "rackwise"]
    assert len(asked) >= 5
    for _, *words in asked:
        names = [*takewhile(re.compile("[a-z]+").fullmatch, words)]
        shown = CliRunner().invoke(full_application(loaded=True), [*names, "--help"])
        assert shown.exit_code == 0, words
        options = [word for word in words if word.startswith("-")]
        assert [one for one in options if not re.search(rf"(^|[\s,]){one}\b", shown.output)] == []


@pytest.mark.parametrize("text", [*blocks(section("Helm"), "yaml"), *blocks(CHART_README, "yaml")[:1]], ids=range(4))
def test_the_chart_takes_the_values_that_they_show(text: str, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(text)
    done = run(tool("helm"), "template", "rackwise", CHART, "--values", values)
    assert done.returncode == 0, done.stderr


def test_the_options_of_helm_in_them_are_taken(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(blocks(section("Helm"), "yaml")[0])
    asked = [one for one in commands(INSTALL + CHART_README) if one[:2] in (["helm", "install"], ["helm", "upgrade"])]
    assert len(asked) == 3
    for command in asked:
        options = [str(values) if word == "values.yaml" else word for word in command[4:]]
        done = run(tool("helm"), "template", "rackwise", CHART, *options)
        assert done.returncode == 0, done.stderr


def test_kustomize_builds_the_overlay_that_they_show(tmp_path: Path) -> None:
    (overlay,) = blocks(section("Kustomize"), "yaml")
    shutil.copytree(TOP / "deploy" / "kustomize" / "base", tmp_path / "base")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(overlay)
    (mine / "rackwise.yaml").write_text("mode: observe\n")
    done = run(tool("kustomize"), "build", mine)
    assert done.returncode == 0, done.stderr
    resources = list(yaml.safe_load_all(done.stdout))
    assert {one["metadata"]["namespace"] for one in resources} == {"kafka"}
    assert f"image: REGISTRY/rackwise:{VERSION}" in done.stdout
    assert "mode: observe" in done.stdout


def test_rackwise_takes_the_settings_of_the_unit(tmp_path: Path) -> None:
    (settings,) = blocks(section("systemd"), "yaml")
    (drop_in,) = blocks(section("systemd"), "ini")
    credentials = dict(re.findall(r"^LoadCredential=([^:]+):(.+)$", drop_in, re.MULTILINE))
    named = set(re.findall(r"/run/credentials/rackwise\.service/([\w.]+)", settings))
    assert named == set(credentials)
    for name in credentials:
        (tmp_path / name).write_text("0123456789abcdef" * 4)
        (tmp_path / name).chmod(0o400)
    path = tmp_path / "rackwise.yaml"
    path.write_text("mode: execute\n" + settings.replace("/run/credentials/rackwise.service", str(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-m", "agent", "config", "check", "-c", str(path)],
        capture_output=True, text=True, check=False, cwd=TOP,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_files_of_a_release_are_those_that_are_listed() -> None:
    listed = {
        name.replace("VERSION", VERSION)
        for row in re.findall(r"^\| (`.*?) \|", RELEASING, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", row)
    }
    assert listed - {"dist/"} == {
        *(f"rackwise-{VERSION}-py3-none-any.whl", f"rackwise-{VERSION}.tar.gz", f"rackwise-{VERSION}.tgz"),
        *(f"rackwise-kustomize-{VERSION}.tar.gz", f"rackwise-dashboards-{VERSION}.tar.gz", "rackwise.service"),
        *(f"rackwise-{VERSION}.cdx.json", "SHA256SUMS"),
    }
