"""The jar holds the assignors alone, two builds are the same bytes, and a consumer loads its assignor by itself."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from pipeline.maven import java
from testbed.cluster.jars import kafka_jars
from testbed.cluster.spec import DEFAULT_VERSION
from tests.jvm.building import POM, TABLES_POM, build_jar, packaged_jar, tables_jar

HOSTS = {
    "rackwise.assignor.RackwiseAssignor": r"kafka-group-coordinator-api-.*",
    "rackwise.streams.RackwiseTaskAssignor": r"kafka-streams-\d.*",
}
"""Plug-in -> the jar of its host that it needs beside kafka-clients."""
COMMON = r"(java|javax|org/slf4j)/.*|"
ALLOWED = {
    "rackwise/assignor": COMMON + r"(rackwise/assignor|org/apache/kafka/coordinator/group/api/assignor)/.*"
    r"|org/apache/kafka/common/(Uuid|Configurable|config/ConfigException|Cluster|Node|PartitionInfo|TopicPartition)"
    r"|org/apache/kafka/clients/consumer/(ConsumerPartitionAssignor(\$\w+)?|ConsumerGroupMetadata)",
    "rackwise/streams": COMMON
    + r"rackwise/streams/.*|rackwise/assignor/(FlowNetwork(\$Prices)?|LeastCostFlow|ResidualFlow)"
    r"|org/apache/kafka/streams/processor/(TaskId|assignment/(assignors/)?[\w$]+)"
    r"|org/apache/kafka/clients/consumer/ConsumerPartitionAssignor(\$\w+)?",
    "rackwise/assignor/(FlowNetwork|LeastCostFlow|ResidualFlow)": r"(java|rackwise/assignor)/.*",
}
"""What Kafka publishes; its other classes move from release to release, as those of `common.utils` did in 4.4. A broker
needs no class of Streams, and an application none of the broker: what both share is plain Java."""


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return packaged_jar(), build_jar(tmp_path_factory.mktemp("jars"))


def classes(jar: Path) -> list[str]:
    with zipfile.ZipFile(jar) as file:
        return [name.removesuffix(".class") for name in file.namelist() if name.endswith(".class")]


def classes_used(jar: Path, *names: str) -> set[str]:
    """The classes that these need, of a package; they are for Java 17, the oldest of brokers of Kafka 4 and Spark 4."""
    command = (str(java().with_name("javap")), "-v", "-p", "-cp", str(jar), *names)
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"major version: (\d+)", shown)) == {"61"}
    used = {name for name in re.findall(r"= Class +#\d+ +// \"?\[*L?([\w/$]+)", shown) if "/" in name}
    assert len(used) > 3
    return used


def test_two_builds_are_equal_and_hold_classes_of_the_assignors_alone(jars: tuple[Path, Path]) -> None:
    first, second = jars
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as file:
        names = [name for name in file.namelist() if not name.endswith("/")]
    sources = {path.stem for path in (POM.parent / "src" / "main" / "java").rglob("*.java")}
    assert {Path(name).name.split("$")[0] for name in classes(first)} == sources
    assert [name for name in names if not name.startswith(("rackwise/assignor/", "rackwise/streams/"))] == [
        "META-INF/MANIFEST.MF"
    ]
    assert first.stat().st_size < 60_000 * 3, "of each of three plug-ins"


def test_the_log_of_tables_is_in_a_jar_of_its_own_and_needs_what_spark_brings(tmp_path: Path) -> None:
    first, second = tables_jar(), build_jar(tmp_path, TABLES_POM)
    assert first.read_bytes() == second.read_bytes()
    assert classes(first) == ["rackwise/tables/ConditionalLogStore", "rackwise/tables/package-info"]
    used = classes_used(first, "rackwise.tables.ConditionalLogStore")
    allowed = r"(java|rackwise/tables|org/apache/hadoop/(fs|conf))/.*|io/delta/storage/HadoopFileSystemLogStore"
    assert [name for name in sorted(used) if not re.fullmatch(allowed, name)] == []


@pytest.mark.parametrize("of", ALLOWED)
def test_the_classes_need_public_packages_of_java_and_kafka_only(jars: tuple[Path, Path], of: str) -> None:
    jar, _ = jars
    mine = [name.replace("/", ".") for name in classes(jar) if re.match(of + r"[/$]|" + of + "$", name)]
    used = classes_used(jar, *mine)
    assert [name for name in sorted(used) if not re.fullmatch(ALLOWED[of], name)] == []


MAKE = """
class Make {
    public static void main(String[] names) throws Exception {
        System.out.print(Class.forName(names[0]).getDeclaredConstructor().newInstance().getClass().getName());
    }
}
"""


@pytest.mark.parametrize(("name", "host"), HOSTS.items())
def test_each_plug_in_is_made_without_the_classes_that_the_other_needs(
    jars: tuple[Path, Path], tmp_path: Path, name: str, host: str
) -> None:
    """By reflection, as brokers and Streams make them, on a class path that has what the host has."""
    own = [
        path
        for path in kafka_jars(DEFAULT_VERSION).jars
        if re.fullmatch(rf"(kafka-clients-|slf4j-api-).*|{host}", path.name)
    ]
    assert len(own) == 3, own
    source = tmp_path / "Make.java"
    source.write_text(MAKE)
    command = (str(java()), "-cp", ":".join(map(str, [jars[0], *own])), str(source), name)
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.stdout == name, made.stderr


CONSUMER = """
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

class Joining {
    public static void main(String[] arguments) {
        Map<String, Object> settings = Map.of("bootstrap.servers", "127.0.0.1:1", "group.id", "g",
            "group.protocol", "classic", "partition.assignment.strategy", arguments[0]);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of("t"));
            var assignor = new rackwise.assignor.RackwiseConsumerAssignor();
            var note = assignor.subscriptionUserData(Set.of("t"));
            var one = new ConsumerPartitionAssignor.Subscription(List.of("t"), note);
            var group = new ConsumerPartitionAssignor.GroupSubscription(Map.of("m", one));
            var cluster = org.apache.kafka.common.Cluster.empty().withPartitions(Map.of(
                new org.apache.kafka.common.TopicPartition("t", 0),
                new org.apache.kafka.common.PartitionInfo("t", 0, null, new org.apache.kafka.common.Node[0], null)));
            System.out.println(assignor.assign(cluster, group).groupAssignment().get("m").partitions());
        }
    }
}
"""


def test_a_consumer_loads_its_assignor_without_the_classes_of_a_broker(jars: tuple[Path, Path], tmp_path: Path) -> None:
    kafka = [jar for jar in kafka_jars(DEFAULT_VERSION).jars if re.match(r"(kafka-clients|slf4j-api)-\d", jar.name)]
    assert len(kafka) == 2
    classpath = ":".join(map(str, (jars[0], *kafka)))
    source = tmp_path / "Joining.java"
    source.write_text(CONSUMER, "utf-8")
    command = (str(java()), "-cp", classpath, str(source), "rackwise.assignor.RackwiseConsumerAssignor")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[t-0]\n"), done.stderr
    without = subprocess.run((*command[:-1], "rackwise.assignor.RackwiseAssignor"), capture_output=True, check=False)
    assert b"NoClassDefFoundError" in without.stderr, "the class path has a broker's classes"
