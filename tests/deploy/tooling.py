"""Tools that check packages: helm, kubeconform, kustomize and compose-spec by Go, systemd-analyze, Kubernetes' schemas.

They are built once into the user's cache, from the versions and hashes of the ``go.sum`` beside this file; a test that
needs one waits for a build that is under way. ``python -m tests.deploy.tooling`` builds them beforehand.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.maven import cache_home

TOP = Path(__file__).resolve().parents[2]
MODULE = Path(__file__).with_name("tools")
COMPOSE_MODULE = Path(__file__).with_name("compose_tool")
TOOLS = {
    "helm": "helm.sh/helm/v3/cmd/helm",
    "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform",
    "kustomize": "sigs.k8s.io/kustomize/kustomize/v5",
}
KUBERNETES = ("1.27", "1.37")
"""The oldest that the chart takes, and the newest whose schemas there are."""
_OPERATOR = ("github.com/prometheus-operator/prometheus-operator", "v0.93.1")
_OPERATOR_SUM = "h1:4Juk8v93RdG1DSGD/mGp+SeQKPmnlLIj2iq3blLZgFY="
_CRD = "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"
_HELM = "helm.sh/helm/v3/pkg"
_MINOR = KUBERNETES[-1].partition(".")[2]
_LINKING = (
    "-s", "-w",
    "-X", f"{_HELM}/chartutil.k8sVersionMajor=1", "-X", f"{_HELM}/chartutil.k8sVersionMinor={_MINOR}",
    "-X", f"{_HELM}/lint/rules.k8sVersionMajor=1", "-X", f"{_HELM}/lint/rules.k8sVersionMinor={_MINOR}",
)  # fmt: skip
# Without optimisation they compile in half the time, and they run for moments only.
_BUILD = ("go", "build", "-mod=readonly", "-trimpath", "-gcflags=all=-N -l", f"-ldflags={' '.join(_LINKING)}")
_SHORT_OF = "this machine has no {}; CI has it"


def tool(name: str) -> Path:
    """The program; built when it is not there. Without Go the test is skipped, and fails in CI."""
    return _tools() / name


def needed(program: str, package: str = "") -> str:
    """The path of a program of this machine; root in CI installs Debian's package of it where it is missing."""
    found = shutil.which(program)
    if found is None and package and os.environ.get("CI") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        subprocess.run(["apt-get", "install", "-q", "-y", "--no-install-recommends", package], check=True)
        found = shutil.which(program)
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(_SHORT_OF.format(program))
    return found


@cache
def _tools() -> Path:
    needed("go")
    version = subprocess.run(["go", "version"], capture_output=True, check=True).stdout
    stamp = hashlib.sha256(version + (MODULE / "go.sum").read_bytes() + repr((_BUILD, TOOLS)).encode()).hexdigest()[:12]
    directory = cache_home() / "tools" / stamp
    with _whole(directory) as unfinished:
        if unfinished is not None:
            _build(MODULE, f"{unfinished}/", *TOOLS.values())
    return directory


def compose_spec() -> Path:
    """The program that reads compose files as ``docker compose config`` does, without an engine."""
    return program(COMPOSE_MODULE, "compose-spec", ".")


@cache
def program(module: Path, name: str, package: str) -> Path:
    """A program of one Go module of the tests, built when it is not there."""
    needed("go")
    sources = b"".join(file.read_bytes() for file in sorted(module.iterdir()) if file.suffix in {".go", ".mod", ".sum"})
    stamp = hashlib.sha256(sources + repr(_BUILD).encode()).hexdigest()[:12]
    directory = cache_home() / "tools" / f"{name}-{stamp}"
    with _whole(directory) as unfinished:
        if unfinished is not None:
            _build(module, unfinished / name, package)
    return directory / name


def _build(module: Path, target: str | Path, *packages: str) -> None:
    subprocess.run(
        [*_BUILD, "-o", str(target), *packages],
        cwd=module,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"},
        check=True,
    )


@cache
def schemas() -> Path:
    """A directory of JSON Schemas as kubeconform takes them, strict: KIND-GROUP-VERSION.json below vVERSION."""
    import kubernetes_validate  # noqa: PLC0415 a large package that only this needs

    stamp = hashlib.sha256(f"{kubernetes_validate.__version__} {_OPERATOR_SUM} {Path(__file__).read_text()}".encode())
    directory = cache_home() / "kubernetes-schemas" / stamp.hexdigest()[:12]
    shipped = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    with _whole(directory) as unfinished:
        if unfinished is not None:
            monitor = json.dumps(_service_monitor())
            for version in KUBERNETES:
                target = unfinished / f"v{version}"
                target.mkdir()
                (target / "servicemonitor-monitoring-v1.json").write_text(monitor)
                for kind, document in _kinds(shipped / f"v{version}.0-local-strict"):
                    (target / f"{kind}.json").write_text(json.dumps(document))
    return directory


_KINDS = (
    "configmap-v1", "deployment-apps-v1", "networkpolicy-networking-v1", "poddisruptionbudget-policy-v1", "service-v1",
    "serviceaccount-v1",
)  # fmt: skip


def _kinds(shipped: Path) -> Iterator[tuple[str, Any]]:
    """The schemas of a version of Kubernetes, each with the definitions that it refers to."""
    text = (shipped / "_definitions.json").read_text().replace("/api/_definitions.json#", "#")
    definitions = json.loads(text)["$defs"]
    for kind in _KINDS:
        document = json.loads((shipped / f"{kind}.json").read_text().replace("/api/_definitions.json#", "#"))
        yield kind, {**document, "$defs": definitions}


def _service_monitor() -> Any:
    """The schema of the operator's own resource, closed as the others are."""
    module, version = _OPERATOR
    needed("go")
    told = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"], capture_output=True, check=True)
    downloaded = json.loads(told.stdout)
    assert downloaded["Sum"] == _OPERATOR_SUM, downloaded
    definition = yaml.safe_load((Path(downloaded["Dir"]) / _CRD).read_text())
    (v1,) = (one for one in definition["spec"]["versions"] if one["name"] == "v1")
    document = _closed(v1["schema"]["openAPIV3Schema"])
    document["properties"]["metadata"] = {"type": "object"}
    return document


def _closed(schema: Any) -> Any:
    """The schema with no properties but those that it names."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {name: _closed(below) for name, below in schema.items()}
    if isinstance(closed.get("properties"), dict) and closed.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


@contextmanager
def _whole(directory: Path) -> Iterator[Path | None]:
    """A neighbour to fill, which becomes the directory at the end; None where it is there. One process at a time."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with directory.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if directory.is_dir():
            yield None
            return
        unfinished = directory.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        yield unfinished
        unfinished.rename(directory)


def run(*command: str | Path, cwd: Path = TOP) -> subprocess.CompletedProcess[str]:
    """The command's end, whatever it is."""
    environ = {name: value for name, value in os.environ.items() if not re.match("RACKWISE_|HELM_|KUBE", name)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environ)


if __name__ == "__main__":
    if shutil.which("go"):
        _tools()
        compose_spec()
        schemas()
