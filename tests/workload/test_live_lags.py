"""On real brokers: what the Streams application says of its lags is true, through a scale-out and back."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from agent.values.finding import FindingReason
from agent.values.snapshot import StreamsGroup, TaskStatefulness
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import ClusterWorkload, WorkloadError, parts_plan
from tests.watching_agent import WatchingAgent, findings_of, settings_for
from tests.workload import brokers

pytestmark = pytest.mark.integration

ACCEPTABLE = 1_000
DOCS = Path(__file__).parents[2] / "docs"


def test_end_offsets_agree_with_the_brokers(work: ClusterWorkload, demo_cluster: EmbeddedCluster) -> None:
    client = brokers.admin(demo_cluster)
    before = end_offsets(client, "shop")
    told = {
        (store, row["partition"]): row["end"]
        for one in work.lags("shop")["instances"]
        for task in one["tasks"]
        if task["role"] == "standby"
        for store, row in task["stores"].items()
    }
    after = end_offsets(client, "shop")
    assert len(told) == 9
    for place, end in told.items():
        assert before[place] <= end <= after[place]


def test_answer_keeps_to_the_published_schema_and_so_does_the_documented_example(work: ClusterWorkload) -> None:
    text = (DOCS / "application-lags.md").read_text()
    example = text.split("```json\n")[1].split("```")[0]
    check = jsonschema.Draft202012Validator(json.loads((DOCS / "application-lags.schema.json").read_text()))
    for answer in (json.loads(example), work.lags("shop"), work.lags("shop-next")):
        assert [error.message for error in check.iter_errors(answer)] == []


def test_lag_of_a_task_is_the_sum_over_its_stores(work: ClusterWorkload) -> None:
    for task in tasks(work.lags("shop")):
        assert task["lag"] == sum(row["end"] - row["current"] for row in task["stores"].values())


@pytest.mark.drill
def test_newcomer_warms_up_slowly_and_is_told_until_it_has_caught_up(work: ClusterWorkload) -> None:
    held_before = {task["task"] for task in tasks(work.lags("shop")) if task["role"] == "active"}
    name = work.scale_out("shop", "c", restore_records_per_s=2_000)
    began = time.monotonic()
    seen: dict[str, list[int]] = {}

    def caught_up() -> bool:
        answer = next(one for one in work.lags("shop")["instances"] if one["id"] == name)
        # Standbys of the same store may be given to it as well; what it is far behind with is what it warms up.
        for task in answer["tasks"]:
            if task["role"] == "standby" and task["lag"] is not None:
                seen.setdefault(task["task"], []).append(task["lag"])
        slow = [lags for lags in seen.values() if lags[0] > ACCEPTABLE]
        return bool(slow) and all(lags[-1] <= ACCEPTABLE for lags in slow)

    brokers.eventually(caught_up, "the newcomer did not catch up", within_s=60)
    took_s = time.monotonic() - began
    slow = {task: lags for task, lags in seen.items() if lags[0] > ACCEPTABLE and task.startswith("0_")}
    assert slow, "no task of the slow store was warmed up"
    restored = sum(lags[0] - lags[-1] for lags in slow.values())
    assert restored / 2_000 <= took_s + 1, "it restored faster than it was allowed to"
    running = {task["task"] for task in tasks(work.lags("shop")) if task["role"] == "active"}
    assert running == held_before, "nothing stops running while it is warmed up elsewhere"

    work.scale_in(name)
    brokers.eventually(lambda: not work.unready(), "the tasks did not come back", within_s=60)
    assert name not in work.instances("shop")


def test_tasks_of_an_instance_are_logged_when_they_change(work: ClusterWorkload) -> None:
    logged = [one for one in work.java.rebalances() if one["group"] == "shop" and one["kind"] == "tasks"]
    instances = work.java.assignment()["instances"]
    for name in work.instances("shop"):
        last = [one for one in logged if one["who"] == name][-1]
        holds = next(one for one in instances if one["id"] == name)
        assert (last["active"], last["standby"]) == (holds["active"], holds["standby"])


@pytest.fixture(scope="module")
def parts(demo_cluster: EmbeddedCluster) -> Iterator[ClusterWorkload]:
    """The application with every part that a topology can have, running beside the others."""
    with ClusterWorkload.start(demo_cluster.bootstrap_servers, plan=parts_plan) as started:
        started.wait_ready()
        brokers.eventually(lambda: len(tasks(started.lags("parts"))) == 6 * 4 + 3, "not every task runs")
        yield started


def test_tasks_without_a_changelog_have_no_lag_instead_of_none_to_catch_up(
    demo_cluster: EmbeddedCluster, parts: ClusterWorkload
) -> None:
    told = {task["task"]: task for task in tasks(parts.lags("parts"))}
    changelogs = {name for name in brokers.admin(demo_cluster).list_topics(timeout=10).topics if "parts-" in name}
    assert (told["2_0"]["lag"], told["2_0"]["stores"]) == (None, {})
    assert told["3_0"]["lag"] is not None
    assert told["4_0"]["lag"] is None
    assert told["4_0"]["stores"] == {"sightings": {"partition": 0, "current": None, "end": None}}
    assert changelogs == {"parts-customers-changelog", "parts-regions-changelog", "parts-regions-repartition"}, (
        "the table's changelog is its own source topic, and the unlogged store has none"
    )


HINT = {
    "groups.parts.topology.changelogs.0": "parts-customers-changelog",
    "groups.parts.topology.source_changelogs": "products",
}


@pytest.mark.parametrize(
    ("hint", "known", "sentence"),
    [
        pytest.param(
            {},
            {1: TaskStatefulness.CHANGELOG},
            "it is unknown whether 24 tasks of parts are stateful, 4 subtopologies (0, 2, 3 and 1 more): "
            "several subtopologies could own parts-customers-changelog; a topology hint",
            id="a changelog that may be of several subtopologies is given to none",
        ),
        pytest.param(
            HINT,
            {0: TaskStatefulness.CHANGELOG, 1: TaskStatefulness.CHANGELOG, 3: TaskStatefulness.SOURCE_CHANGELOG},
            "it is unknown whether 12 tasks of parts are stateful, 2 subtopologies (2 and 4): "
            "it keeps no changelog topic",
            id="the hints of the owner settle what can be settled",
        ),
    ],
)
def test_the_agent_says_what_it_cannot_know_of_the_state_of_tasks(
    demo_cluster: EmbeddedCluster,
    parts: ClusterWorkload,
    hint: dict[str, str],
    known: dict[int, TaskStatefulness],
    sentence: str,
) -> None:
    """From outside a store that is not logged looks like no store at all; nothing unknown counts as caught up."""
    with WatchingAgent(settings_for(demo_cluster.bootstrap_servers, **hint)) as eye:
        cycle = eye.until(lambda cycle: "parts" in cycle.snapshot.copies, "copies of the application's tasks")
    group = cycle.snapshot.groups["parts"]
    assert isinstance(group, StreamsGroup)
    assert group.topology is not None
    found_out = {int(task.id.subtopology): task.statefulness for task in group.topology.tasks}
    assert found_out == {number: known.get(number, TaskStatefulness.UNKNOWN) for number in range(5)}
    (unknown,) = findings_of(cycle, FindingReason.STATE_UNKNOWN, "group/parts")
    assert unknown.sentence.startswith(sentence), unknown.sentence
    told = {int(copy.task.subtopology) for copy in cycle.snapshot.copies["parts"] if copy.lag is not None}
    assert told <= set(known), "no lag is reported of an unknown store"


REFUSALS = [
    pytest.param("GET", "/lags", 400, "say which application", id="lags of one application among two"),
    pytest.param("GET", "/nothing", 404, "nothing is served", id="a path that is not there"),
    pytest.param("PUT", "/lags", 405, "only GET", id="a method that is not there"),
    pytest.param("DELETE", "/instances/nobody", 404, "nobody", id="stopping what does not run"),
    pytest.param("POST", "/instances", 400, "wrong", id="an unknown field"),
]


@pytest.mark.parametrize(("method", "path", "status", "word"), REFUSALS)
def test_wrong_requests_are_refused_with_a_sentence(
    work: ClusterWorkload, method: str, path: str, status: int, word: str
) -> None:
    connection = http.client.HTTPConnection(urlsplit(work.lags_url("shop")).netloc, timeout=10)
    connection.request(method, path, '{"wrong": 1}' if method == "POST" else None)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == status
    assert word in text


def test_refusal_reaches_python_as_a_sentence(work: ClusterWorkload) -> None:
    with pytest.raises(WorkloadError, match=r"DELETE /consumers/nobody: nothing with the id nobody is running"):
        work.java.stop_consumer("nobody")


def tasks(lags: dict[str, Any]) -> list[dict[str, Any]]:
    assert lags["v"] == 1
    assert [one["error"] for one in lags["instances"] if one["error"]] == []
    return [task for one in lags["instances"] for task in one["tasks"]]


def end_offsets(client: Any, application: str) -> dict[tuple[str, int], int]:
    places = [("customers", partition) for partition in range(6)] + [("regions", partition) for partition in range(3)]
    asked = {
        TopicPartition(f"{application}-{store}-changelog", partition): OffsetSpec.latest()
        for store, partition in places
    }
    answered = client.list_offsets(asked, request_timeout=10)
    return {
        (one.topic.removeprefix(f"{application}-").removesuffix("-changelog"), one.partition): future.result().offset
        for one, future in answered.items()
    }
