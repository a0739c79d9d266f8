"""The jar holds the assignor alone, and two builds of the same sources are the same bytes."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from pipeline.maven import java
from tests.jvm.building import POM, build_jar

ALLOWED = re.compile(
    r"(java|javax|rackwise|org/slf4j|org/apache/kafka/coordinator/group/api/assignor)/.*"
    r"|org/apache/kafka/common/(Uuid|Configurable|config/ConfigException)"
)
"""What Kafka publishes; its other classes move from release to release, as those of `common.utils` did in 4.4."""


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    home = tmp_path_factory.mktemp("jars")
    return build_jar(home / "one"), build_jar(home / "two")


def classes(jar: Path) -> list[str]:
    with zipfile.ZipFile(jar) as file:
        return [name.removesuffix(".class") for name in file.namelist() if name.endswith(".class")]


def test_two_builds_are_equal_and_hold_classes_of_the_assignor_alone(jars: tuple[Path, Path]) -> None:
    first, second = jars
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as file:
        names = [name for name in file.namelist() if not name.endswith("/")]
    sources = {path.stem for path in (POM.parent / "src" / "main" / "java").rglob("*.java")}
    assert {Path(name).name.split("$")[0] for name in classes(first)} == sources
    assert [name for name in names if not name.startswith("rackwise/assignor/")] == ["META-INF/MANIFEST.MF"]
    assert first.stat().st_size < 100_000


def test_the_classes_need_public_packages_of_java_and_kafka_only(jars: tuple[Path, Path]) -> None:
    jar, _ = jars
    command = (
        str(java().with_name("javap")),
        "-v",
        "-p",
        "-cp",
        str(jar),
        *(n.replace("/", ".") for n in classes(jar)),
    )
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"major version: (\d+)", shown)) == {"61"}, "Java 17, as brokers of Kafka 4 need it"
    used = set(re.findall(r"= Class +#\d+ +// \"?\[*L?([\w/$]+)", shown))
    assert "org/apache/kafka/common/Uuid" in used
    assert [name for name in sorted(used) if "/" in name and not ALLOWED.fullmatch(name)] == []
