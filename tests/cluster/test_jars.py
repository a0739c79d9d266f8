"""How jars get into the cache. Maven and Java are stand-ins here: a broken or an old one cannot be had otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline.maven import ToolError, java, maven, pom_file, resolved
from testbed.cluster.jars import kafka_jars

JAVA_17 = "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"
JAVA_8 = "echo 'java version \"1.8.0_402\"' >&2"
MAVEN_3_8 = "echo 'Apache Maven 3.8.7'"
MAVEN_3_3 = "echo 'Apache Maven 3.3.9'"
COPYING_MAVEN = f"""
[ "$1" = -v ] && {{ {MAVEN_3_8}; exit; }}
echo "[INFO] Downloaded from central: https://example.test/org/apache/kafka/kafka-clients-4.3.1.jar (9.9 MB at 1 MB/s)"
for argument in "$@"; do case "$argument" in -DoutputDirectory=*) directory="${{argument#*=}}";; esac; done
touch "$directory/kafka-clients-4.3.1.jar" "$directory/jmx_prometheus_javaagent-1.0.1.jar"
echo run >> "$(dirname "$0")/runs"
"""
FAILING_MAVEN = f"""
[ "$1" = -v ] && {{ {MAVEN_3_8}; exit; }}
echo "[INFO] Scanning for projects..."
echo "[ERROR] Failed to execute goal: Could not find artifact org.apache.kafka:kafka_2.13:jar:4.9.9"
echo "[ERROR] "
exit 1
"""
EMPTY_MAVEN = f'[ "$1" = -v ] && {{ {MAVEN_3_8}; exit; }}\nexit 0'


class Machine:
    """A PATH with these tools and nothing else, and a cache of its own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tools = root / "bin"
        self.cache = root / "cache"
        self.tools.mkdir()
        for name in ("touch", "dirname", "sh"):
            (self.tools / name).symlink_to(
                next(path for path in (Path("/bin") / name, Path("/usr/bin") / name) if path.exists())
            )
        monkeypatch.setenv("PATH", str(self.tools))
        monkeypatch.setenv("RACKWISE_CACHE", str(self.cache))

    def has(self, name: str, script: str) -> None:
        tool = self.tools / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        pytest.param(None, "java is not on PATH: brokers need JDK 17. Install it", id="no Java"),
        pytest.param(JAVA_8, "is too old: brokers need 17 or newer. Put a newer JDK first on PATH", id="Java 8"),
        pytest.param("echo what", "is unknown: what. Install", id="something else that is called java"),
        pytest.param("exit 3", "is unknown: it printed nothing. Install", id="a Java that is broken"),
    ],
)
def test_a_java_that_will_not_do_is_named(machine: Machine, script: str | None, sentence: str) -> None:
    if script is not None:
        machine.has("java", script)
    with pytest.raises(ToolError) as refused:
        java()
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        pytest.param(
            None, "mvn is not on PATH: the jars of Kafka are downloaded with Maven. Install it", id="no Maven"
        ),
        pytest.param(MAVEN_3_3, "is too old: 3.6 or newer is needed. Put a newer one first on PATH", id="Maven 3.3"),
    ],
)
def test_a_maven_that_will_not_do_is_named(machine: Machine, script: str | None, sentence: str) -> None:
    if script is not None:
        machine.has("mvn", script)
    with pytest.raises(ToolError) as refused:
        maven()
    assert sentence in str(refused.value)


def test_jars_are_resolved_once_and_then_come_from_the_cache(machine: Machine) -> None:
    machine.has("java", JAVA_17)
    machine.has("mvn", COPYING_MAVEN)
    told: list[str] = []
    first = kafka_jars("4.3.1", told.append)
    second = kafka_jars("4.3.1")
    assert first == second
    assert [jar.name for jar in first.jars] == ["kafka-clients-4.3.1.jar"]
    assert "jar 1: kafka-clients-4.3.1.jar" in told
    assert (machine.tools / "runs").read_text().splitlines() == ["run"]


def test_the_agent_is_kept_out_of_the_classpath(machine: Machine) -> None:
    machine.has("java", JAVA_17)
    machine.has("mvn", COPYING_MAVEN)
    jars = kafka_jars("4.3.1")
    assert jars.jmx_agent.name == "jmx_prometheus_javaagent-1.0.1.jar"
    assert jars.jmx_agent.parent != jars.directory


def test_cached_jars_need_no_maven(machine: Machine) -> None:
    machine.has("java", JAVA_17)
    machine.has("mvn", COPYING_MAVEN)
    before = kafka_jars("4.3.1")
    (machine.tools / "mvn").unlink()
    assert kafka_jars("4.3.1") == before


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        pytest.param(
            FAILING_MAVEN, "Could not find artifact org.apache.kafka:kafka_2.13:jar:4.9.9", id="an unknown version"
        ),
        pytest.param(EMPTY_MAVEN, "Maven ended without an error but copied no jar", id="a pom that names nothing"),
    ],
)
def test_a_resolution_that_fails_leaves_nothing_in_the_cache(machine: Machine, script: str, sentence: str) -> None:
    machine.has("java", JAVA_17)
    machine.has("mvn", script)
    with pytest.raises(ToolError) as refused:
        kafka_jars("4.9.9")
    assert sentence in str(refused.value)
    assert list((machine.cache / "jars").iterdir()) == []


def test_sets_that_disagree_about_a_library_never_share_a_directory(machine: Machine) -> None:
    machine.has("java", JAVA_17)
    machine.has("mvn", COPYING_MAVEN)
    directories = {kafka_jars("4.3.1").directory, kafka_jars("3.6.2").directory, resolved("Spark", "spark", "spark")}
    assert len(directories) == 3


def test_the_pom_is_the_one_at_the_top_and_names_no_repository() -> None:
    pom = pom_file()
    assert pom == Path(__file__).resolve().parents[2] / "pom.xml"
    tags = set(re.findall(r"<(\w+)", pom.read_text()))
    assert "dependency" in tags
    assert not tags & {"repository", "repositories", "pluginRepository", "pluginRepositories"}
