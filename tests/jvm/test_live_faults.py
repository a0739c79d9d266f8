"""Members outlive what goes wrong with the plug-in: a solver that fails, and a batch that is too large."""

from __future__ import annotations

import subprocess
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from testbed.cluster import EmbeddedCluster
from testbed.cluster.jars import kafka_jars
from testbed.cluster.spec import DEFAULT_VERSION
from tests.jvm.building import build_jar
from tests.jvm.live import SETTLES_WITHIN_S, PollingMember, beans, brokers, dead, group_of, settled

pytestmark = [pytest.mark.integration, pytest.mark.drill]

FAILING_SOLVER = """
package rackwise.assignor;

import org.apache.kafka.coordinator.group.api.assignor.*;

final class GroupSolver {
    GroupSolver(AssignorSettings settings, AssignorStatus status) {
    }

    GroupAssignment solve(GroupSpec group, SubscribedTopicDescriber topics) {
        throw new StackOverflowError("forced");
    }
}
"""
MANY_MEMBERS = 14
MANY_TOPICS = [f"many-{number:02}" for number in range(56)]
PARTITIONS_EACH = 14
LIMIT_BYTES = 16_900
"""Below the 17.9 kB of records when topics spread over members, above the 15.9 kB that are counted for them in blocks.
Members are in one rack: where each has partitions of its own rack only, blocks are of more topics."""


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_jar(tmp_path_factory.mktemp("jar"))


def failing_jar(jar: Path, directory: Path) -> Path:
    """A jar with a solver that fails; before the plug-in's own on the class path it takes the place of its solver."""
    source = directory / "GroupSolver.java"
    source.write_text(FAILING_SOLVER, "utf-8")
    classpath = f"{jar}:{kafka_jars(DEFAULT_VERSION).classpath}"
    command = ("javac", "-nowarn", "--release", "17", "-cp", classpath, "-d", str(directory), str(source))
    subprocess.run(command, check=True, capture_output=True)
    name = "rackwise/assignor/GroupSolver.class"
    failing = directory / "failing.jar"
    with zipfile.ZipFile(failing, "w") as file:
        file.write(directory / name, name)
    return failing


def test_a_solver_that_fails_ends_no_member_and_each_fallback_is_counted(jar: Path, tmp_path: Path) -> None:
    with brokers(failing_jar(jar, tmp_path), jar) as cluster, group_of(cluster) as join:
        members = [join(rack) for rack in "abc"]
        settled(cluster, members)
        members.append(join("a"))
        settled(cluster, members)
        members.pop(0).close()
        settled(cluster, members)
        assert dead(members) == 0
        figures = beans(cluster, tmp_path)
    print(figures)
    assert sum(each.assignments for each in figures) == 0
    assert sum(each.fallbacks for each in figures) >= 3, "at least one for each event"
    assert {each.cause for each in figures if each.fallbacks} == {"java.lang.StackOverflowError: forced"}


class BatchLimit(NamedTuple):
    """A limit of a batch of ``__consumer_offsets``, and whose it is."""

    kind: ResourceType
    names: tuple[str, ...]
    setting: str


OF_THE_TOPIC = BatchLimit(ResourceType.TOPIC, ("__consumer_offsets",), "max.message.bytes")
OF_ALL_BROKERS = BatchLimit(ResourceType.BROKER, ("1", "2", "3"), "message.max.bytes")


def lower(cluster: EmbeddedCluster, limit: BatchLimit) -> None:
    """Lower a limit while the group is there."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for name in limit.names:
        entry = ConfigEntry(limit.setting, str(LIMIT_BYTES), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(limit.kind, name, incremental_configs=[entry])
        (done,) = admin.incremental_alter_configs([resource]).values()
        done.result(30)


def create_all_at_once(cluster: EmbeddedCluster) -> None:
    """Topics that the members wait for, so that all records are of one assignment."""
    topics = [
        NewTopic(name, PARTITIONS_EACH, replica_assignment=[[1 + n % 3] for n in range(PARTITIONS_EACH)])
        for name in MANY_TOPICS
    ]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for done in admin.create_topics(topics).values():
        done.result(60)


def waiting_group(cluster: EmbeddedCluster, members: list[PollingMember], limit: BatchLimit) -> None:
    settled(cluster, members, partitions=0)
    lower(cluster, limit)
    create_all_at_once(cluster)


@pytest.mark.parametrize(
    ("limit", "settings"),
    [
        pytest.param(OF_ALL_BROKERS, {}, id="of all brokers, which the plug-in hears of"),
        pytest.param(OF_THE_TOPIC, {"max_batch_bytes": str(LIMIT_BYTES)}, id="of the topic, as the setting says"),
    ],
)
def test_a_limit_that_is_lowered_live_ends_no_member(
    jar: Path, tmp_path: Path, limit: BatchLimit, settings: dict[str, str]
) -> None:
    with brokers(jar, **settings) as cluster, group_of(cluster, topics=MANY_TOPICS) as join:
        members = [join("a") for _ in range(MANY_MEMBERS)]
        waiting_group(cluster, members, limit)
        settled(cluster, members, partitions=len(MANY_TOPICS) * PARTITIONS_EACH)
        assert dead(members) == 0
        figures = beans(cluster, tmp_path)
    print(figures)
    assert sum(each.smaller for each in figures) >= 1, "the optimum's records would not fit"
    assert sum(each.fallbacks for each in figures) == 0


def test_a_limit_that_the_plug_in_does_not_know_ends_members(jar: Path) -> None:
    """So the batch of the test above is too large, and docs/plugin.md says where the limit has to be set."""
    with brokers(jar) as cluster, group_of(cluster, topics=MANY_TOPICS) as join:
        members = [join("a") for _ in range(MANY_MEMBERS)]
        waiting_group(cluster, members, OF_THE_TOPIC)
        until = time.monotonic() + SETTLES_WITHIN_S
        while not dead(members):
            assert time.monotonic() < until, "no member has ended"
            time.sleep(0.2)
        print(f"{dead(members)} of {MANY_MEMBERS} members have ended")
        logs = "\n".join(path.read_text() for path in cluster.directory.glob("broker-*/server.log"))
    assert "RecordTooLargeException" in logs
