"""The agent as a process beside the demo's scene: what it asks of the brokers, what it writes, and how it ends.

One process in mode propose and one in mode observe run through the recording proxy, which nothing else uses here; the
tests look at what is left of them. Every request that is not known to only read counts as mutating.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest

from agent.daemon.start import agent_of
from agent.propose.codec import proposal_to_bytes
from agent.record.files import read_events
from agent.simulate.evaluation import recorded_looks, replay_look
from config.load import load_settings
from testbed.cluster import EmbeddedCluster
from testbed.cluster.requests import RecordedRequest
from testbed.demo.workload import ClusterWorkload
from tests.command import RACKWISE, ROOT, environment, rackwise
from tests.workload.brokers import admin

OWN_WRITES = {
    "CreateTopics": 19,
    "Produce": 0,
    "InitProducerId": 22,
    "AddPartitionsToTxn": 24,
    "EndTxn": 26,
    # librdkafka's producers ask for a topic's leaders and would have it created; these are created long before.
    "Metadata": 3,
}
"""Every API by which mode propose may change something, and that only for topics of rackwise's own."""
CYCLES = 4


class Ran(NamedTuple):
    """An agent's life."""

    cycles: list[dict[str, Any]]
    """Its events of that name."""
    requests: tuple[RecordedRequest, ...]
    lost: int
    """Requests that the proxy did not keep."""
    answers: dict[str, tuple[int, str]]
    """Path -> status and body, asked while it ran."""
    exit_code: int
    ended_after_s: float
    """From the signal on."""
    log: list[dict[str, Any]]
    topics_before: frozenset[str]
    topics_after: frozenset[str]


def run_agent(cluster: EmbeddedCluster, prefix: str, *options: str, paths: tuple[str, ...] = ()) -> Ran:
    """Run the agent through the proxy for a few cycles, then end it by SIGTERM."""
    mark, before = cluster.proxy.count, topics_of(cluster)
    settings = {
        "topics.prefix": prefix, "poll.interval": "1s", "plan.interval": "2s", "http.port": "0", "log.format": "json",
    }  # fmt: skip
    assigned = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    command = [*RACKWISE, "run", "-b", cluster.proxied_bootstrap_servers, *assigned, *options]
    log: list[dict[str, Any]] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        cwd=ROOT, env=environment(),
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            for line in process.stderr:
                log.append(json.loads(line))
                if len([event for event in log if event["event"] == "cycle"]) == CYCLES:
                    break
            address = next((event["address"] for event in log if event["event"] == "listening"), None)
            answers = {path: get(f"http://{address}{path}") for path in paths}
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            log += [json.loads(line) for line in process.stderr]
            exit_code = process.wait(30)
            took_s = time.monotonic() - began
        finally:
            process.kill()
    return Ran(
        cycles=[event for event in log if event["event"] == "cycle"],
        requests=cluster.proxy.records(since=mark),
        lost=cluster.proxy.lost,
        answers=answers,
        exit_code=exit_code,
        ended_after_s=took_s,
        log=log,
        topics_before=before,
        topics_after=topics_of(cluster),
    )


@pytest.fixture(scope="module")
def proposing(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> Ran:
    """Mode propose, the default; the topics are new, so that they are created too."""
    return run_agent(demo_cluster, "rackwise-it", paths=("/livez", "/readyz", "/metrics"))


@pytest.fixture(scope="module")
def observing(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ran]:
    """Mode observe, with a file to write to."""
    file = tmp_path_factory.mktemp("telemetry") / "looks.jsonl"
    yield run_agent(demo_cluster, "rackwise-no", "--mode", "observe", "--set", f"record.file={file}")
    assert file.stat().st_size > 0


def test_mode_observe_sends_no_mutating_request_at_all(observing: Ran) -> None:
    assert observing.lost == 0
    assert {one.api for one in observing.requests} >= {"Metadata", "DescribeGroups", "ListOffsets"}
    assert [one for one in observing.requests if one.mutating] == []
    assert observing.topics_after == observing.topics_before


def test_mode_propose_changes_nothing_but_its_own_topics(proposing: Ran) -> None:
    mutating = [one for one in proposing.requests if one.mutating]
    assert proposing.lost == 0
    assert {one.api: one.api_key for one in mutating}.items() <= OWN_WRITES.items()
    assert {one.api for one in mutating} >= {"CreateTopics", "Produce"}
    for one in mutating:
        assert one.subjects is not None, f"{one.api} could not be read"
        assert all(subject.name.startswith("rackwise-it.") for subject in one.subjects), one
    assert proposing.topics_after - proposing.topics_before == {"rackwise-it.proposals", "rackwise-it.telemetry"}


@pytest.mark.parametrize("mode", ["proposing", "observing"])
@pytest.mark.usefixtures("demo_cluster", "work")  # said aloud, so that these run with the others of this module
def test_sigterm_ends_it_within_five_seconds_and_loses_nothing(mode: str, request: pytest.FixtureRequest) -> None:
    ran: Ran = request.getfixturevalue(mode)
    assert (ran.exit_code, ran.log[-1]["event"]) == (0, "stopped")
    assert ran.ended_after_s < 5
    assert [event for event in ran.log if event["event"] in ("records_lost", "cycle_failed", "cycle_abandoned")] == []
    last = ran.cycles[-1]
    assert (last["records_failed"], last["records_dropped"], last["problems"]) == (0, 0, [])


def test_each_cycle_is_one_event_with_the_sentence_that_says_what_happened(proposing: Ran) -> None:
    first = proposing.cycles[0]
    assert first["sentence"].startswith("saw 4 brokers in 3 racks, ")
    assert re.search(
        r"; \d findings \(\d new, \d info\); proposed \d advise, 1 leaders, 1 reassign: ", first["sentence"]
    )
    assert (first["mode"], first["planned"], first["gaps"]) == ("propose", True, [])
    assert [event["cycle"] for event in proposing.cycles] == list(range(1, len(proposing.cycles) + 1))


def test_it_tells_its_health_and_its_figures_while_it_runs(proposing: Ran) -> None:
    assert {path: answer[0] for path, answer in proposing.answers.items()} == {
        "/livez": 200, "/readyz": 200, "/metrics": 200,
    }  # fmt: skip
    metrics = proposing.answers["/metrics"][1]
    assert 'reason="replicas share a rack"' in metrics
    assert 'group="shop"' in metrics


def test_proposals_are_read_back_from_the_topic_by_command(demo_cluster: EmbeddedCluster, proposing: Ran) -> None:
    done = rackwise(
        "proposals", "-b", demo_cluster.bootstrap_servers, "--set", "topics.prefix=rackwise-it", "-o", "json"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    planned = [event for event in proposing.cycles if event["planned"]]
    assert {row["id"] for row in done.json} == set(planned[-1]["proposals"])


def test_one_cycle_on_request(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> None:
    done = rackwise(
        "run", "--once", "-b", demo_cluster.bootstrap_servers,
        "--set", "topics.prefix=rackwise-once", "--set", "log.format=json",
    )  # fmt: skip
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.exit_code == 0
    assert [event["event"] for event in events if event["event"] in ("cycle", "stopped")] == ["cycle", "stopped"]
    assert topics_of(demo_cluster) >= {"rackwise-once.proposals", "rackwise-once.telemetry"}


def test_a_recorded_file_gives_the_byte_same_proposals_as_the_live_run(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload, tmp_path: Path
) -> None:
    file = tmp_path / "looks.jsonl"
    flags: dict[str, object] = {
        "kafka.bootstrap.servers": demo_cluster.bootstrap_servers,
        "topics.prefix": "rackwise-file",
        "record.file": str(file),
        "groups.shop.application.endpoints": work.lags_url("shop"),
        "groups.shop.acceptable.recovery.lag": "1000",
    }
    with agent_of(load_settings(flags=flags, environ={}).settings) as agent:
        cycles = [agent.once() for _ in range(3)]
        agent.close()
    live = [[proposal_to_bytes(one) for one in cycle.proposals] for cycle in cycles]
    again = [replay_look(one) for one in recorded_looks(read_events(file))]
    assert all(live)
    assert [[proposal_to_bytes(one) for one in replayed.proposals] for replayed in again] == live
    assert [replayed.snapshot for replayed in again] == [cycle.snapshot for cycle in cycles]
    done = rackwise("plan", "--replay", str(file), "-o", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [json.dumps(row) for row in done.json] == [json.dumps(json.loads(one)) for one in live[-1]]


def topics_of(cluster: EmbeddedCluster) -> frozenset[str]:
    return frozenset(name for name in admin(cluster).list_topics(timeout=10).topics if not name.startswith("__"))


def get(url: str) -> tuple[int, str]:
    with urlopen(url, timeout=10) as answer:  # noqa: S310 the agent's own address
        return answer.status, answer.read().decode()
