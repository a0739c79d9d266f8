"""Mode execute end to end: an agent that leads, a person who approves at the command line, and what the brokers say.

One agent process on one cluster with a topic whose replicas share racks; the tests are the steps of one story, in
their order. A second agent joins for the last steps and takes over.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from confluent_kafka.cimpl import NewTopic

from agent.act.leadership import read_journal
from agent.journal.entries import JournalState
from agent.wire.client import WireClient
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.act.journals import leadership_plan
from tests.agent_process import Running, wait_for
from tests.command import Done, rackwise

TOPIC = "orders"
CROWDED = [[1, 4, 2], [1, 4, 2], [4, 1, 2], [4, 1, 2]]
"""Brokers 1 and 4 stand in rack a, 2 in b and 3 in c."""
RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
SETTINGS = """
mode: execute
poll.interval: 1s
plan.interval: 2s
http.port: 0
log.format: json
racks.stable_for: 1s
racks.stable_polls: 1
execute.cooldown: 0s
"""


class Story:
    """The cluster with its agents."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path) -> None:
        self.cluster = cluster
        self.config = folder / "rackwise.yaml"
        self.config.write_text(SETTINGS)
        self.folder = folder
        self.agents: list[Running] = []
        self.proposal = ""

    def start(self) -> Running:
        self.agents.append(Running(self.cluster, self.config, self.folder / f"agent-{len(self.agents)}.log"))
        return self.agents[-1]

    def command(self, *words: str) -> Done:
        return rackwise(*words, "-b", self.cluster.bootstrap_servers, "--config", str(self.config), "-o", "json")

    def journal(self) -> JournalState:
        return read_journal(leadership_plan(self.cluster.bootstrap_servers, "rackwise"))

    def replicas(self) -> list[tuple[int, ...]]:
        with WireClient({"bootstrap_servers": self.cluster.bootstrap_servers.split(",")}) as wire:
            wire.describe_brokers(5_000)
            (topic,) = wire.describe_topics(5_000, names=[TOPIC]).topics
            return [row.replicas for row in topic.partitions]

    def throttles(self) -> Mapping[str, Mapping[str, str]]:
        """Resource -> throttle settings that are set."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        resources = [ConfigResource("broker", str(one)) for one in RACKS] + [ConfigResource("topic", TOPIC)]
        asked = [answer for one in resources for answer in admin.describe_configs([one]).values()]
        told = {str(one.name): answer.result(10) for one, answer in zip(resources, asked, strict=True)}
        return {
            name: {key: entry.value for key, entry in entries.items() if "throttled" in key and entry.value}
            for name, entries in told.items()
        }


def spread(replicas: list[tuple[int, ...]]) -> list[set[str]]:
    return [{RACKS[broker] for broker in one} for one in replicas]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with EmbeddedCluster.start(ClusterSpec(racks=("a", "b", "c", "a")), on_progress=print) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for made in admin.create_topics(
            [NewTopic(TOPIC, num_partitions=len(CROWDED), replica_assignment=CROWDED)]
        ).values():
            made.result(30)
        told = Story(cluster, tmp_path_factory.mktemp("execute"))
        try:
            yield told
        finally:
            for agent in told.agents:
                agent.process.kill()
                agent.process.wait(10)


def test_an_agent_leads_and_holds_a_reassignment_until_somebody_approves_it(story: Story) -> None:
    agent = story.start()
    wait_for(lambda: agent.events("leading"))
    wait_for(lambda: "it is not approved" in agent.events("cycle")[-1]["sentence"])
    (found,) = [one for one in story.command("proposals").json if one["kind"] == "reassign"]
    story.proposal = found["id"]
    assert found["subject"]["name"] == TOPIC
    assert story.replicas() == [tuple(row) for row in CROWDED]
    explained = story.command("explain", story.proposal)
    assert f"rackwise proposals approve {story.proposal}" in explained.stdout + explained.stderr
    shell = rackwise("explain", story.proposal, "-b", story.cluster.bootstrap_servers, "-o", "json")
    assert "s ago, mode execute" in shell.stderr, "the shell's own mode is propose"
    assert [row["answer"] for row in shell.json if row["rule"] == "approved"] == ["wait"]


def test_while_it_is_paused_an_approved_plan_does_not_begin(story: Story) -> None:
    assert story.command("pause", "--reason", "stocktaking").exit_code == 0
    approved = story.command("proposals", "approve", story.proposal, "--yes", "--throttle", "20MB/s")
    assert approved.exit_code == 0, approved.stderr
    agent = story.agents[0]
    wait_for(lambda: "acting is paused" in agent.events("cycle")[-1]["sentence"])
    assert story.replicas() == [tuple(row) for row in CROWDED]
    status = story.command("reassign", "status").json
    assert status["plans"] == []
    assert "stocktaking" in json.dumps(status["paused"])


def test_resumed_it_mends_the_racks_and_leaves_no_throttle(story: Story) -> None:
    before = story.throttles()
    assert story.command("resume").exit_code == 0
    (plan,) = wait_for(
        lambda: [one for one in story.command("reassign", "status").json["plans"] if one["state"] == "done"]
    )
    assert plan["plan"] == story.proposal
    assert spread(story.replicas()) == [{"a", "b", "c"}] * len(CROWDED)
    assert story.throttles() == before
    assert story.command("reassign", "verify", story.proposal).exit_code == 0
    assert [entry for entry in story.journal() if entry.startswith("throttle/")] == []


def test_its_own_moves_were_never_taken_for_somebody_elses(story: Story) -> None:
    foreign = [
        name for event in story.agents[0].events("cycle") for name in event["new_findings"] if "reassign" in name
    ]
    assert foreign == []


def test_rolled_back_it_has_the_former_replicas(story: Story) -> None:
    assert story.command("reassign", "rollback", story.proposal, "--yes").exit_code == 0
    wait_for(lambda: story.replicas() == [tuple(row) for row in CROWDED])
    back = f"{story.proposal}-back"
    wait_for(
        lambda: (
            back in [one["plan"] for one in story.command("reassign", "status").json["plans"] if one["state"] == "done"]
        )
    )


def test_rolled_back_it_stands_again_and_is_approved_as_another_attempt(story: Story) -> None:
    def proposed() -> bool:
        return story.proposal in {one["id"] for one in story.command("proposals").json}

    wait_for(proposed)
    approved = story.command("proposals", "approve", story.proposal, "--yes")
    assert approved.exit_code == 0, approved.stderr
    assert "this is attempt 2; attempt 1 done" in approved.stderr
    assert approved.json["sentence"].startswith("attempt 2 approved by ")
    second = f"{story.proposal}.2"
    wait_for(
        lambda: (
            second
            in [one["plan"] for one in story.command("reassign", "status").json["plans"] if one["state"] == "done"]
        )
    )
    assert spread(story.replicas()) == [{"a", "b", "c"}] * len(CROWDED)
    told = [(row["what"], row["about"]) for row in story.command("proposals", "history").json]
    assert {("approve", story.proposal), ("approve", second), ("plan", story.proposal), ("plan", second)} <= set(told)


def test_killed_another_agent_takes_over_and_remembers_all_of_it(story: Story) -> None:
    second = story.start()
    wait_for(lambda: second.events("cycle"))
    assert second.events("leading") == []
    story.agents[0].end(signal.SIGKILL)
    (leading,) = wait_for(lambda: second.events("leading"))
    first = story.agents[0].events("leading")[0]["epoch"]
    assert leading["epoch"] == first + 1
    wait_for(lambda: story.journal()["leader"].epoch == leading["epoch"])
    plans = story.command("reassign", "status").json["plans"]
    assert [one["plan"] for one in plans] == [story.proposal, f"{story.proposal}-back", f"{story.proposal}.2"]


def test_told_to_end_it_leaves_at_once(story: Story) -> None:
    began = time.monotonic()
    assert story.agents[1].end(signal.SIGTERM) == 0
    assert time.monotonic() - began < 5
    assert story.agents[1].events("stopped")
