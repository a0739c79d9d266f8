"""The Kustomize base and its overlay: what the chart makes of the same settings, without the chart's own labels."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.test_chart import CHART, conforming, of_kind
from tests.deploy.tooling import KUBERNETES, TOP, run, tool

KUSTOMIZE = TOP / "deploy" / "kustomize"
VARIANTS = ("base", "execute")
CHART_LABELS = {
    *("helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"),
    "checksum/config",
}
# A base knows no namespace, so its Service has the short name alone.
HOSTS = "rackwise,rackwise.kafka,rackwise.kafka.svc,rackwise.kafka.svc.cluster.local"


def built(variant: str) -> str:
    done = run(tool("kustomize"), "build", KUSTOMIZE / variant)
    assert done.returncode == 0, done.stderr
    return done.stdout


def resources_of(text: str) -> list[Any]:
    return [one for one in yaml.safe_load_all(text) if one is not None]


def bare(value: Any) -> Any:
    """The same without the chart's labels, comments in settings, the digest of a ConfigMap's name, and empty parts."""
    match value:
        case dict():
            kept = {name: bare(below) for name, below in value.items() if name not in CHART_LABELS}
            return {name: below for name, below in kept.items() if below not in ({}, [])}
        case list():
            return [bare(one) for one in value]
        case str() if value.startswith("rackwise-") and len(value) == len("rackwise-0123456789"):
            return "rackwise"
        case str() if value == HOSTS:
            return "rackwise"
        case str() if "\n" in value:
            return yaml.safe_load(value)
        case _:
            return value


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_makes_what_the_chart_makes(variant: str, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    mounts = [{"secret": "rackwise-journal", "path": "/etc/rackwise/journal"}] if variant == "execute" else []
    config = yaml.safe_load((KUSTOMIZE / variant / "rackwise.yaml").read_text())
    values.write_text(yaml.safe_dump({"config": config, "mounts": mounts}))
    made = run(tool("helm"), "template", "rackwise", CHART, "--namespace", "kafka", "--values", values)
    assert made.returncode == 0, made.stderr
    by_kind = {one["kind"]: bare(one) for one in resources_of(made.stdout.replace("mount-0", "journal-key"))}
    ours = {one["kind"]: bare(one) for one in resources_of(built(variant))}
    assert set(ours) == set(by_kind)
    for kind, resource in ours.items():
        assert sort_lists(resource) == sort_lists(by_kind[kind]), kind


def sort_lists(value: Any) -> Any:
    """Named things in the order of their names: a patch may add at either end."""
    if isinstance(value, dict):
        return {name: sort_lists(below) for name, below in value.items()}
    if isinstance(value, list):
        return sorted(
            (sort_lists(one) for one in value), key=lambda one: one.get("name", "") if isinstance(one, dict) else ""
        )
    return value


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_kubernetes_takes_it(variant: str, version: str, tmp_path: Path) -> None:
    text = built(variant)
    done = conforming(text, version, tmp_path)
    assert done.returncode == 0, done.stdout
    assert f"Valid: {len(resources_of(text))}, Invalid: 0, Errors: 0, Skipped: 0" in done.stdout


@pytest.mark.parametrize("version", KUBERNETES)
def test_prometheus_finds_the_agents_of_an_overlay_and_may_ask_them(version: str, tmp_path: Path) -> None:
    shutil.copytree(KUSTOMIZE, tmp_path / "kustomize")
    mine = tmp_path / "kustomize" / "mine"
    mine.mkdir()
    written = {"namespace": "kafka", "resources": ["../execute"], "components": ["../monitoring"]}
    (mine / "kustomization.yaml").write_text(yaml.safe_dump(written))
    done = run(tool("kustomize"), "build", mine)
    assert done.returncode == 0, done.stderr
    resources = resources_of(done.stdout)
    monitor, service = of_kind(resources, "ServiceMonitor"), of_kind(resources, "Service")
    assert monitor["metadata"]["namespace"] == "kafka"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert [port["name"] for port in service["spec"]["ports"]] == [endpoint["port"]]
    (rule,) = of_kind(resources, "NetworkPolicy")["spec"]["ingress"]
    assert rule["from"][1] == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    checked = conforming(done.stdout, version, tmp_path)
    assert checked.returncode == 0, checked.stdout
    assert f"Valid: {len(resources)}, Invalid: 0, Errors: 0, Skipped: 0" in checked.stdout


@pytest.mark.parametrize("variant", VARIANTS)
def test_rackwise_accepts_its_settings(variant: str, tmp_path: Path) -> None:
    config = of_kind(resources_of(built(variant)), "ConfigMap")["data"]["rackwise.yaml"]
    key, path = tmp_path / "key", tmp_path / "rackwise.yaml"
    key.write_text("0123456789abcdef" * 4)
    key.chmod(0o440)
    path.write_text(config.replace("/etc/rackwise/journal/key", str(key)))
    checked = subprocess.run(
        [sys.executable, "-m", "agent", "config", "check", "-c", str(path)],
        capture_output=True, text=True, check=False, cwd=TOP,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr
    assert f"mode {'execute' if variant == 'execute' else 'propose'}" in checked.stderr


def test_no_policy_is_for_all_pods_of_the_namespace() -> None:
    """An empty selector is every pod's, and labels of a kustomization do not fill it."""
    policy = of_kind(resources_of(built("base")), "NetworkPolicy")
    assert policy["spec"]["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": "rackwise"}}
