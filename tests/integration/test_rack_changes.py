"""Racks that change under the agent's eyes: a broker comes back elsewhere, Kafka's own tool moves replicas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from agent.propose.codec import read_reassignment_json
from agent.values.finding import FindingReason
from agent.values.proposal import ProposalKind
from assignors.problem import TopicPartition
from testbed.cluster import EmbeddedCluster
from testbed.demo.run import demo_settings
from testbed.demo.workload import ClusterWorkload
from tests.command import rackwise
from tests.integration.test_first_look import held_by_rack
from tests.watching_agent import WatchingAgent, cycle_text, findings_of
from tests.workload.brokers import admin, eventually, kafka_tool

pytestmark = pytest.mark.harm

Placement = Mapping[TopicPartition, tuple[int, ...]]
QUICKLY = ("--throttle", "500000000")


@pytest.fixture
def quick(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> Iterator[WatchingAgent]:
    """An eye that believes a rack after two seconds, and calls a second change flapping."""
    more = {"racks.stable_for": "2s", "racks.flap_changes": "2", "detect.throttle_grace": "1s"}
    settings = demo_settings(demo_cluster, work, **more, **{"observe.refresh_configs": "0s"}).settings
    with WatchingAgent(settings) as opened:
        yield opened


def test_a_broker_that_comes_back_in_another_rack_is_found_by_the_next_look(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload, quick: WatchingAgent
) -> None:
    broker = demo_cluster.broker(4)
    with topic(demo_cluster, "fragile", [[3, 4]], **{"min.insync.replicas": "2"}):
        before = quick.look()
        assert findings_of(before, FindingReason.BROKER_RACK_CHANGED) == (), cycle_text(before)
        broker.stop()
        down = quick.until(
            lambda cycle: findings_of(cycle, FindingReason.UNDER_MIN_ISR), "a partition under its min ISR"
        )
        assert findings_of(down, FindingReason.UNDER_MIN_ISR, "topic/fragile")
        assert findings_of(down, FindingReason.AT_MIN_ISR, "topic/orders")
        assert findings_of(down, FindingReason.RACK_AWARENESS_OFF, "group/exports"), cycle_text(down)
        waiting = quick.look(planning=True)
        (absent,) = findings_of(waiting, FindingReason.BROKER_ABSENT)
        assert (str(absent.subject), absent.held) == ("broker/4", True)
        assert "nothing is moved because of it until it has been absent for 30 min" in absent.sentence
        named = {b for one in waiting.proposals for row in (*one.before, *one.after) for b in row.value}
        assert 4 not in named, cycle_text(waiting)
        try:
            broker.start("b")
            moved = quick.look()
            (changed,) = findings_of(moved, FindingReason.BROKER_RACK_CHANGED)
            assert changed.held
            assert changed.sentence.startswith("broker 4 is in rack b now and was in rack a before; nothing is planned")
            (replicas,) = findings_of(moved, FindingReason.REPLICA_RACKS_CHANGED)
            assert str(replicas.subject) == "broker/4"
            assert ("cause", "a broker came back in another rack") in replicas.evidence
            planned = quick.until(
                lambda cycle: any(str(one.subject) == "topic/orders" for one in cycle.proposals),
                "a proposal for orders, whose replicas share rack b now",
                planning=True,
            )
            assert not findings_of(planned, FindingReason.BROKER_RACK_CHANGED)[0].held
            assert findings_of(planned, FindingReason.REPLICAS_SHARE_RACK, "topic/payments") == (), "a and b by now"
        finally:
            broker.restart("a")
        (flapping,) = findings_of(quick.look(), FindingReason.RACK_FLAPPING)
        assert str(flapping.subject) == "broker/4"
    work.wait_settled()


def test_replicas_that_kafkas_own_tool_moves_are_found_with_their_cause(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload, quick: WatchingAgent, tmp_path: Path
) -> None:
    """And a group whose partitions were moved away from its members has a gap that no assignor of its kind closes."""
    away = placed_away_from_readers(work, "search", "clicks")
    quick.look()
    with moved_by_kafkas_tool(demo_cluster, work, away, tmp_path, slowly=True):
        running = quick.until(
            lambda cycle: findings_of(cycle, FindingReason.FOREIGN_REASSIGNMENT), "a foreign reassignment"
        )
        (foreign,) = findings_of(running, FindingReason.FOREIGN_REASSIGNMENT)
        assert str(foreign.subject) == "topic/clicks"
        through = {example.id: example.after for change in running.after.changes for example in change.examples}
        assert through.keys().isdisjoint(running.snapshot.reassignments), "what moves has not changed yet"
        assert through == {id_: away[id_] for id_ in through}, "brokers let a small partition through at once"
        execute(demo_cluster, away, tmp_path, "--additional", *QUICKLY)
        done = quick.until(
            lambda cycle: not cycle.snapshot.reassignments and findings_of(cycle, FindingReason.THROTTLE_LEFT_BEHIND),
            "the end of the reassignment, with its throttle left behind",
        )
        (changed,) = findings_of(done, FindingReason.REPLICA_RACKS_CHANGED)
        assert str(changed.subject) == "topic/clicks"
        assert ("cause", "a reassignment that rackwise did not make") in changed.evidence
        assert {str(finding.subject) for finding in findings_of(done, FindingReason.THROTTLE_LEFT_BEHIND)} >= {
            "topic/clicks"
        }
        assert done.detection.assessments["search"].gap == 6
        assert findings_of(done, FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM, "group/search")
        assert findings_of(done, FindingReason.ASSIGNOR_WOULD_NOT_FIX, "group/search")


@pytest.mark.drill
def test_kafkas_own_tool_takes_the_files_that_a_plan_writes_and_they_mend_what_was_wrong(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload, quick: WatchingAgent, tmp_path: Path
) -> None:
    there, back = tmp_path / "there.json", tmp_path / "back.json"
    done = rackwise(
        "plan", "-b", demo_cluster.bootstrap_servers,
        "--reassignment-json", str(there), "--rollback-json", str(back), "-o", "json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert {row["kind"] for row in done.json} >= {"reassign", "leaders"}
    with moved_by_kafkas_tool(demo_cluster, work, read_reassignment_json(there.read_text()), tmp_path):
        mended = quick.until(lambda cycle: not cycle.snapshot.reassignments, "the end of the move", planning=True)
        assert findings_of(mended, FindingReason.REPLICAS_SHARE_RACK, "topic/payments") == (), cycle_text(mended)
        assert findings_of(mended, FindingReason.LEADER_SKEW, "topic/views") == (), cycle_text(mended)
        assert [one for one in mended.proposals if one.kind is ProposalKind.REASSIGN] == []
    assert set(read_reassignment_json(back.read_text()).items()) <= set(as_planned(work).items())


@contextmanager
def topic(cluster: EmbeddedCluster, name: str, replicas: list[list[int]], **configs: str) -> Iterator[None]:
    client = admin(cluster)
    new = NewTopic(name, num_partitions=len(replicas), replica_assignment=replicas, config=configs)
    for future in client.create_topics([new]).values():
        future.result(30)
    try:
        yield
    finally:
        for future in client.delete_topics([name]).values():
            future.result(30)


@contextmanager
def moved_by_kafkas_tool(
    cluster: EmbeddedCluster, work: ClusterWorkload, placement: Placement, directory: Path, *, slowly: bool = False
) -> Iterator[None]:
    """Replicas as that placement has them; in the end they are where the workload put them, with no throttle left."""
    execute(cluster, placement, directory, *(("--throttle", "1000") if slowly else ()))
    try:
        yield
    finally:
        before = {partition: replicas for partition, replicas in as_planned(work).items() if partition in placement}
        execute(cluster, before, directory, "--additional", *QUICKLY)  # a throttle that is still there would hold it up
        eventually(lambda: verified(cluster, before, directory), "the replicas do not come back", within_s=60)
        work.wait_settled()


def execute(cluster: EmbeddedCluster, placement: Placement, directory: Path, *options: str) -> None:
    kafka_tool(
        cluster, "reassign.ReassignPartitionsCommand", "--execute",
        "--reassignment-json-file", written(placement, directory), *options,
    )  # fmt: skip


def verified(cluster: EmbeddedCluster, placement: Placement, directory: Path) -> bool:
    """Whether the tool calls it complete; it then takes its throttles away."""
    answer = kafka_tool(
        cluster, "reassign.ReassignPartitionsCommand", "--verify",
        "--reassignment-json-file", written(placement, directory),
    )  # fmt: skip
    return "in progress" not in answer and answer.count("is completed") == len(placement)


def written(placement: Placement, directory: Path) -> str:
    rows = [
        {"topic": partition.topic, "partition": partition.partition, "replicas": list(replicas)}
        for partition, replicas in placement.items()
    ]
    file = directory / "reassignment.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    return str(file)


def as_planned(work: ClusterWorkload) -> dict[TopicPartition, tuple[int, ...]]:
    return {
        TopicPartition(topic.name, partition): replicas
        for topic in work.plan.topics
        for partition, replicas in enumerate(topic.replicas)
    }


def placed_away_from_readers(
    work: ClusterWorkload, group: str, topic_name: str
) -> dict[TopicPartition, tuple[int, ...]]:
    """Each partition on two brokers of the racks in which its reader is not."""
    brokers = {
        rack: min(broker for broker, its in work.facts.racks.items() if its == rack) for rack in work.facts.rack_names
    }
    return {
        TopicPartition(topic_name, partition): tuple(broker for rack, broker in brokers.items() if rack != reader)
        for reader, partitions in held_by_rack(work, group).items()
        for partition in sorted(partitions)
    }
