"""Values that name nothing, or another kind of thing, and mistakes beside unknown names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from config.catalogue import catalogue
from config.sources import environment_name
from tests.config.test_settings import loaded, mistakes


def test_an_unknown_name_hides_no_mistake_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("http: {prt: 1, port: 70000}\ngroups: {a: {nope: 1, num.standby.replicas: -1}}\n")
    assert mistakes(files=[file]) == [
        f"http.prt: no such setting; did you mean http.port? (file {file})",
        f"groups.a.nope: no such setting (file {file})",
        f"groups.a.num.standby.replicas: -1 is out of range; Kafka accepts at least 0 (file {file})",
        f"http.port: 70000 is out of range; rackwise accepts at most 65535 (file {file})",
    ]


NUMBERS = [entry.name for entry in catalogue() if re.fullmatch(r"-?\d+(\.\d+)?", entry.default)]
"""Settings that are numbers by default; a number of bytes has no unit where it is small."""


@pytest.mark.parametrize("name", [name for name in NUMBERS if "<" not in name])
def test_true_is_no_number(tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"{name}: true\n")
    assert mistakes(files=[file])[0].startswith(f"{name}: a number ")


@pytest.mark.parametrize(
    "name",
    ["price.usd_per_gb", "execute.max_bytes_in_flight", "execute.payback_days", "process.memory_ceiling"],
)
def test_an_empty_variable_lifts_no_bound(name: str) -> None:
    """Compose files and charts pass one for a value that they do not have."""
    variable = environment_name(name)
    assert mistakes(environ={variable: ""}) == [
        f"{name}: it is empty; write none where that is meant (environment {variable})"
    ]
    assert loaded(environ={variable: "none"}).origin(name).where == variable


@pytest.mark.parametrize(
    "name", ["spark.tables", "spark.metrics_bind", "http.auth.oidc.name_claim", "http.auth.oidc.role_claim"]
)
def test_an_empty_text_names_nothing(name: str) -> None:
    assert mistakes(f"{name}= ") == [f"{name}: a text is expected, and it is empty (flag --set)"]
