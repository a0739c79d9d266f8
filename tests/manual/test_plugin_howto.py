"""The how-to of the plug-in is run as it is written, on three brokers whose groups read throughout.

Its `ssh` and `scp` reach the brokers of this machine: a broker's own libs, its own settings, its log, and its restart.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from testbed.cluster import DEFAULT_VERSION, ClusterSpec, EmbeddedCluster, kafka_tools
from testbed.cluster.errors import ClusterError
from tests.jvm.building import packaged_jar
from tests.jvm.live_readers import TOPIC, ReadingGroup
from tests.manual.howto_blocks import HowToBlock, blocks
from tests.manual.howto_shell import HowToShell, make_command

PAGE = "howto/plugin.md"
PARTITIONS = 24
REPLICAS = [[1 + n % 3, 1 + (n + 1 + n // 3 % 2) % 3] for n in range(PARTITIONS)]
"""Two of the three racks each, every pair of racks as often as the others."""
RACK_OF = {1: "a", 2: "b", 3: "c"}
QUICK = {"group.consumer.min.heartbeat.interval.ms": "500", "group.consumer.heartbeat.interval.ms": "500"}
"""Members learn of a new assignment with a heartbeat, every five seconds by default."""
LINE = "group.consumer.assignors=rackwise.assignor.RackwiseAssignor,uniform,range\n"

SSH = """#!/bin/sh
home={directory}/$1 id=${{1#broker-}}
shift
exec sh -c "$(printf %s "$*" | sed -e "s#/opt/kafka/config/server.properties#$home/own.properties#g" \\
  -e "s#/opt/kafka/libs#$home/libs#g" -e "s#/opt/kafka/logs#$home#g" \\
  -e "s#sudo systemctl restart kafka#rackwise cluster broker $id restart --name {name}#")"
"""
SCP = """#!/bin/sh
mkdir -p {directory}/${{2%%:*}}/libs && cp "$1" {directory}/${{2%%:*}}/libs/
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedCluster]:
    """Three brokers that commands of other processes restart."""
    monkeypatch.setenv("RACKWISE_STATE", str(tmp_path / "state"))
    spec = ClusterSpec(broker_properties=QUICK)
    with EmbeddedCluster.start(spec, name="trial", detached=True, on_progress=print) as started:
        yield started


@pytest.fixture
def path(cluster: EmbeddedCluster, tmp_path: Path) -> list[Path]:
    """What a reader has in ``PATH``: rackwise, Kafka's own tools, and a way to the brokers."""
    command = make_command(tmp_path / "bin")
    for name, text in (("ssh", SSH), ("scp", SCP)):
        script = command / name
        script.write_text(text.format(directory=cluster.directory, name=cluster.name))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return [command, kafka_tools(DEFAULT_VERSION)]


def make_topic(cluster: EmbeddedCluster) -> None:
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=REPLICAS, config={"min.insync.replicas": "1"})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([topic])[TOPIC].result(30)


def local(group: ReadingGroup) -> int:
    return sum(
        group.rack(name) in {RACK_OF[each] for each in REPLICAS[number]}
        for name, held in group.settled().items()
        for number in held
    )


@pytest.mark.drill
@pytest.mark.timeout(1_800)
def test_the_how_to_runs_as_it_is_written_and_no_reader_notices(
    cluster: EmbeddedCluster, path: list[Path], tmp_path: Path
) -> None:
    packaged_jar()
    make_topic(cluster)
    address = {"RACKWISE_KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrap_servers, "RACKWISE_STATE": str(tmp_path / "state")}
    shell = HowToShell(tmp_path / "at", path, address)
    figures: list[tuple[str, int]] = []
    with ReadingGroup(cluster.bootstrap_servers, DEFAULT_VERSION, "abc", PARTITIONS) as group:

        def run(block: HowToBlock) -> None:
            """A block; whatever it does to brokers, no reader is given or loses a partition."""
            if "; joins" in block.mark:
                group.join("a")
            if "; leaves" in block.mark:
                group.leave()
            if "; joins" in block.mark or "; leaves" in block.mark:
                figures.append((block.mark.partition("until: ")[2].strip('"'), local(group)))
            held, moves = group.settled(), group.moves()
            shell.run(block)
            assert (group.settled(), group.moves()) == (held, moves), block.place
            assert group.errors() == [], block.place

        try:
            figures.append(("before", local(group)))
            every = [block for block in blocks(PAGE) if block.run]
            for block in every:
                run(block)
            for block in every[:4]:  # and back again
                run(block)
            assert group.unread() == {}
            assert group.errors() == []
        finally:
            shell.close()
    print(figures)
    assert [name for name, _ in figures] == ["before", "rackwise", "uniform", "rackwise"]
    assert [count for name, count in figures if name == "rackwise"] == [PARTITIONS, PARTITIONS]
    assert dict(figures)["before"] < PARTITIONS


@pytest.mark.integration
def test_a_broker_loads_the_jar_that_the_command_wrote_and_does_not_start_without_it(
    cluster: EmbeddedCluster, path: list[Path], tmp_path: Path
) -> None:
    packaged_jar()
    shell = HowToShell(tmp_path / "at", path, {"RACKWISE_STATE": str(tmp_path / "state")})
    try:
        for block in [block for block in blocks(PAGE) if block.run][:2]:
            shell.run(block)
    finally:
        shell.close()
    broker = cluster.broker(3)
    broker.files.own_settings.write_text(LINE)
    broker.restart()
    loaded = "group.consumer.assignors = [rackwise.assignor.RackwiseAssignor, uniform, range]"
    assert loaded in broker.log_path.read_text()
    (broker.files.libs / "rackwise-kafka.jar").unlink()
    with pytest.raises(ClusterError, match=r"Class rackwise\.assignor\.RackwiseAssignor cannot be found"):
        broker.restart()
