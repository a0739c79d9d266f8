"""The demo with the plug-in: the group comes to use it, and the agent's looks have what that brings."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli import plugin
from agent.errors import BadInput, GaveUp
from agent.loop import CycleStages, run_cycle
from agent.simulate.evaluation import first_memory, second_look
from agent.values.cycle import Cycle
from agent.values.limits import Limits
from agent.wire.client import WireClient
from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.demo.plugin_scene import GROUP, CrossingReads, PluginFigures, crossing_reads, plan_with_plugin, with_plugin
from testbed.demo.workload import ClusterFacts
from testbed.demo.workload.consumers import LibrdkafkaGroup
from testbed.demo.workload.topics import create_topics
from tests.builders import Answers, an_observation, consumer
from tests.command import rackwise
from tests.jvm.building import packaged_jar

FACTS = ClusterFacts(
    cluster_id="c", racks={1: "a", 2: "b", 3: "c"}, features={"group.version": 1}, client_version="4.3.1"
)


def cycle_of(answers: Answers, number: int = 1) -> Cycle:
    limits, look = Limits(), answers.at(10)
    before = second_look(look, first_memory(answers.at(0), limits), limits).before
    return run_cycle(CycleStages(limits), lambda: look, look, before, number=number, name="l-1", planning=True)


def of_two_partitions(*members: tuple[str | None, str]) -> Answers:
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("clicks", (1, 2), (2, 3))
    racks = (consumer(f"m-{number}", *one) for number, one in enumerate(members))
    return answers.kip848(GROUP, *racks)


def test_reads_across_racks_are_those_of_the_group_in_one_look() -> None:
    crossing = crossing_reads(cycle_of(of_two_partitions(("c", "clicks-0"), ("b", "clicks-1"))))
    assert crossing is not None
    assert crossing[:2] == (1, 2)
    assert crossing_reads(None) is None
    assert crossing_reads(cycle_of(of_two_partitions((None, "clicks-0"), ("b", "clicks-1")))) is None
    assert crossing_reads(cycle_of(of_two_partitions()), "another") is None


def test_figures_have_a_rate_where_it_is_known() -> None:
    assert str(CrossingReads(3, 6, 12_100.0)) == "3 of 6 partitions, 12.1 kB/s"
    assert str(CrossingReads(0, 6, None)) == "0 of 6 partitions"


def test_a_demo_in_which_reads_did_not_fall_says_so() -> None:
    some = CrossingReads(3, 6, None)
    assert "were not seen both before and with the plug-in" in PluginFigures(some).lacking()[0]
    assert "did not fall" in PluginFigures(some, some).lacking()[0]
    fell = PluginFigures(some, CrossingReads(0, 6, None))
    assert fell.lacking() == ()
    assert fell.summary()[-1] == "  3 of 6 partitions -> 0 of 6 partitions"


def test_a_kafka_without_the_interface_and_an_installation_without_the_jar_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match=r"Kafka 4\.0\.1 has no plug-in"):
        with_plugin(ClusterSpec(version="4.0.1"))
    monkeypatch.setattr(plugin, "_PACKAGED", tmp_path / "none.jar")
    with pytest.raises(GaveUp, match="no jar of the plug-in"):
        with_plugin(ClusterSpec())


@pytest.mark.integration
def test_members_that_are_restarted_without_a_name_are_assigned_by_the_plug_in() -> None:
    packaged_jar()
    plan = plan_with_plugin(FACTS)
    (search,) = (one for one in plan.librdkafka_groups if one.group == GROUP)
    topics = tuple(replace(one, configs={}) for one in plan.topics if one.name == search.topic)
    spec = with_plugin(ClusterSpec())
    with EmbeddedCluster.start(spec, on_progress=print) as cluster:
        create_topics(cluster.bootstrap_servers, topics)
        group = LibrdkafkaGroup(cluster.bootstrap_servers, search)
        try:
            assert assignor(cluster, group) == "uniform"
            group.restart(replace(search, remote_assignor=None))
            assert assignor(cluster, group) == "rackwise"
            assert [member.failure for member in group.members] == [None, None, None]
        finally:
            group.close()


def assignor(cluster: EmbeddedCluster, group: LibrdkafkaGroup) -> str | None:
    """The assignor of the group once its members hold all partitions."""
    until = time.monotonic() + 60
    while True:
        with WireClient({"bootstrap_servers": cluster.bootstrap_servers.split(",")}) as wire:
            wire.describe_brokers(10_000)
            found = wire.describe_groups([GROUP], 10_000, group_type="consumer").groups
        held = [len(member.partitions) for member in group.members]
        if [(one.state, len(one.members)) for one in found] == [("Stable", 3)] and held == [6, 6, 6]:
            return found[0].assignor
        assert time.monotonic() < until, (found, held)
        time.sleep(0.3)


@pytest.mark.drill
def test_the_demo_with_the_plug_in_ends_by_itself_with_both_figures() -> None:
    packaged_jar()
    done = rackwise("demo", "--seconds", "90", within_s=800, DEMO_PLUGIN="1")
    assert done.exit_code == 0, done
    assert "get the broker's first, rackwise" in done.stdout
    figures = re.search(r"^  (\d+) of 18 partitions.* -> (\d+) of 18 partitions", done.stdout, re.MULTILINE)
    assert figures is not None, done.stdout
    assert int(figures[2]) < int(figures[1])
