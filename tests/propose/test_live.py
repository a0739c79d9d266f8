"""Kafka's own tool takes our files: ``kafka-reassign-partitions`` carries out what is proposed, and rolls it back."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from agent.plan.make import make_plan
from agent.propose.codec import read_reassignment_json, reassignment_json, rollback_json
from agent.values.assessment import DetectionResult
from agent.values.cycle import Cycle
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.limits import Limits
from agent.values.proposal import Proposal, ProposalReason
from agent.values.snapshot import Snapshot
from assignors.problem import TopicPartition
from testbed.cluster import EmbeddedCluster
from tests.observe.live import wait_for
from tests.watching_agent import WatchingAgent, settings_for

SET = AlterConfigOpType.SET
CONFIGS = "kafka.admin.ConfigCommand"
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
CROWDED = "tool-crowded"
"""Brokers 1 and 4 share rack a."""
UNEVEN = "tool-uneven"
"""Broker 1 is preferred to lead everything."""
PLACED = {CROWDED: [[1, 4], [2, 3], [4, 1]], UNEVEN: [[1, 2, 3]] * 12}

Placement = dict[TopicPartition, tuple[int, ...]]


@pytest.fixture
def servers(demo_cluster: EmbeddedCluster) -> Iterator[str]:
    """A cluster with brokers 1 and 4 in rack a, 2 in b, 3 in c, and the two badly placed topics."""
    admin = AdminClient({"bootstrap.servers": demo_cluster.bootstrap_servers})
    made = [
        NewTopic(name, len(rows), replica_assignment=rows, config={"min.insync.replicas": "1"})
        for name, rows in PLACED.items()
    ]
    for future in admin.create_topics(made).values():
        future.result(60)
    try:
        yield demo_cluster.bootstrap_servers
    finally:
        for future in admin.delete_topics(list(PLACED)).values():
            future.result(60)


def test_what_is_proposed_is_carried_out_and_rolled_back_by_kafkas_own_tool(
    demo_cluster: EmbeddedCluster, servers: str, tmp_path: Path
) -> None:
    def run(file: Path, action: str) -> subprocess.CompletedProcess[str]:
        command = ["--bootstrap-server", servers, "--reassignment-json-file", str(file), action]
        java = [str(demo_cluster.jars.java), "-XX:TieredStopAtLevel=1", "-cp", demo_cluster.jars.classpath, TOOL]
        return subprocess.run([*java, *command], capture_output=True, text=True, timeout=120, check=False)

    with WatchingAgent(settings_for(servers)) as eye:
        cycle = eye.until(lambda seen: len(_ours(seen)) == 2, "both proposals", within_s=120, planning=True)
    proposals = _ours(cycle)
    assert [p.reason for p in proposals] == [ProposalReason.LEADERS_EVEN, ProposalReason.MEND_RACK_SPREAD]
    forward, back = tmp_path / "forward.json", tmp_path / "back.json"
    forward.write_text(reassignment_json(proposals))
    back.write_text(rollback_json(proposals))
    wanted, before = (read_reassignment_json(file.read_text()) for file in (forward, back))
    assert {p: _placed(servers)[p] for p in before} == before

    _accepted(run(forward, "--execute"), wanted)
    wait_for(lambda: _is(servers, wanted), "the brokers have what was proposed", 120)
    _completed(lambda: run(forward, "--verify"), wanted)
    with WatchingAgent(settings_for(servers)) as eye:
        mended = eye.until(lambda seen: not _ours(seen), "nothing more to propose", within_s=120, planning=True)
    assert not [f for f in mended.detection.findings if f.id in {name for p in proposals for name in p.findings}]

    _accepted(run(back, "--execute"), before)
    wait_for(lambda: _is(servers, before), "the brokers are back to what was", 120)


def test_the_command_that_removes_a_throttle_is_taken_by_kafkas_own_tool(
    demo_cluster: EmbeddedCluster, servers: str
) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    topic = ConfigResource(ConfigResource.Type.TOPIC, CROWDED)
    for name, value in (("leader", "0:1"), ("follower", "0:4")):
        topic.add_incremental_config(
            ConfigEntry(f"{name}.replication.throttled.replicas", value, incremental_operation=SET)
        )
    for future in admin.incremental_alter_configs([topic]).values():
        future.result(60)
    left = Finding(
        reason=FindingReason.THROTTLE_LEFT_BEHIND, subject=SubjectId("topic", CROWDED), sentence="left behind",
        evidence=(), severity=FindingSeverity.WARNING, since_ms=0,
    )  # fmt: skip
    with WatchingAgent(settings_for(servers, **{"observe.refresh_configs": "0s"})) as eye:
        throttled = eye.until(lambda seen: _throttled(seen.snapshot), "the throttle is seen", within_s=60)
        (advice,) = make_plan(throttled.snapshot, DetectionResult(findings=(left,)), Limits(), None).advice
        command = [*shlex.split(advice.line)[1:]]
        java = [str(demo_cluster.jars.java), "-XX:TieredStopAtLevel=1", "-cp", demo_cluster.jars.classpath, CONFIGS]
        done = subprocess.run([*java, *command], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        assert f"Completed updating config for topic {CROWDED}." in done.stdout, done.stdout
        eye.until(lambda seen: _throttled(seen.snapshot) is False, "the throttle is gone", within_s=60)


def _throttled(snapshot: Snapshot) -> bool | None:
    """None while a broker does not know the new topic yet."""
    topic = snapshot.topics.get(CROWDED)
    return None if topic is None else bool(topic.leader_throttle or topic.follower_throttle)


def _ours(cycle: Cycle) -> list[Proposal]:
    wanted = (ProposalReason.MEND_RACK_SPREAD, ProposalReason.LEADERS_EVEN)
    return sorted(
        (p for p in cycle.proposals if p.subject.name in PLACED and p.reason in wanted), key=lambda p: p.reason.name
    )


def _accepted(done: subprocess.CompletedProcess[str], partitions: Placement) -> None:
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    names = ",".join(str(partition) for partition in partitions)
    assert f"Successfully started partition reassignments for {names}" in done.stdout, done.stdout


def _completed(
    verify: Callable[[], subprocess.CompletedProcess[str]], partitions: Sequence[TopicPartition] | Placement
) -> None:
    done = verify()
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    for partition in partitions:
        assert f"Reassignment of partition {partition} is completed." in done.stdout, done.stdout


def _placed(servers: str) -> Placement:
    topics = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30).topics
    return {
        TopicPartition(name, number): tuple(partition.replicas)
        for name in PLACED
        for number, partition in topics[name].partitions.items()
    }


def _is(servers: str, wanted: Placement) -> bool:
    placed = _placed(servers)
    return all(placed[partition] == replicas for partition, replicas in wanted.items())
