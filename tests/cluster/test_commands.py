"""`rackwise cluster …` on a cluster of one broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from agent.errors import RackwiseError
from testbed.cluster.commands import cluster_app
from testbed.cluster.leftovers import clear_cluster, find_clusters
from testbed.cluster.proxy_process import read_faults
from tests.cluster.live import admin, create_topic, described, eventually, known_broker_count


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state directory of these tests alone; whatever is in it at the end is ended."""
    directory = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RACKWISE_STATE", str(directory))
        yield directory
        for found in find_clusters():
            clear_cluster(found.directory)


@pytest.fixture(scope="module")
def running(state: Path) -> Any:
    """The row that `up` prints for a cluster with one broker and a proxy."""
    done = run("up", "--racks", "a", "--proxied")
    assert "ready after" in done.stderr
    return json.loads(done.stdout)[0]


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(cluster_app, list(arguments))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKWISE_STATE", str(tmp_path))


@pytest.mark.usefixtures("empty")
def test_without_a_cluster_status_is_empty_and_down_has_nothing_to_do() -> None:
    assert json.loads(run("status").stdout) == []
    assert "there is no cluster named default" in run("down").stderr
    assert "there is no cluster" in run("down", "--all").stderr


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        pytest.param(("up", "--version", "4"), "'4' is no Kafka version", 2, id="a version that is none"),
        pytest.param(("up", "--racks", "a,,b"), "'' is no rack name", 2, id="an empty rack"),
        pytest.param(("up", "--name", "../x"), "'../x' is not a cluster name", 2, id="a name that leads elsewhere"),
        pytest.param(("down", "--name", "../x"), "'../x' is not a cluster name", 2, id="down with a path"),
        pytest.param(("status", "--name", "/"), "'/' is not a cluster name", 2, id="status of a path"),
        pytest.param(("logs", "--name", ".."), "'..' is not a cluster name", 2, id="logs of a path"),
        pytest.param(("logs", "--name", "gone"), "There is no cluster named gone", 2, id="logs of no cluster"),
        pytest.param(("broker", "1", "kill"), "There is no cluster named default", 2, id="a broker of no cluster"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_an_exit_code(
    arguments: tuple[str, ...], sentence: str, code: int
) -> None:
    with pytest.raises(RackwiseError) as refused:
        run(*arguments)
    assert sentence in str(refused.value)
    assert refused.value.exit_code == code


@pytest.mark.usefixtures("empty")
def test_a_rack_is_for_start_and_restart_only() -> None:
    refused = run("broker", "1", "kill", "--rack", "b")
    assert "only start and restart can change a broker's rack" in refused.stderr
    assert refused.exit_code == 2


@pytest.mark.integration
def test_a_started_cluster_stays_after_the_command_and_serves(running: Any) -> None:
    assert (running["state"], running["brokers_running"]) == ("running", 1)
    assert [(one["id"], one["rack"]) for one in running["brokers"]] == [(1, "a")]
    assert described(running["bootstrap_servers"]) == {1: "a"}


@pytest.mark.integration
def test_status_tells_the_same_as_up(running: Any) -> None:
    (row,) = json.loads(run("status").stdout)
    assert {**row, "memory_mib": None} == {**running, "memory_mib": None}
    assert row["memory_mib"] > 50


@pytest.mark.integration
def test_up_again_changes_nothing(running: Any) -> None:
    done = run("up", "--racks", "a", "--proxied")
    assert "cluster default runs already" in done.stderr
    pids = [[broker["pid"] for broker in row["brokers"]] for row in (json.loads(done.stdout)[0], running)]
    assert pids[0] == pids[1]


@pytest.mark.integration
def test_a_broker_can_be_restarted_in_another_rack(running: Any) -> None:
    assert "broker 1 runs in rack q" in run("broker", "1", "restart", "--rack", "q").stderr
    assert described(running["bootstrap_servers"]) == {1: "q"}
    assert "broker 1 is down" in run("broker", "1", "kill").stderr
    assert "broker 1 runs in rack none" in run("broker", "1", "start", "--rack", "-").stderr
    assert described(running["bootstrap_servers"]) == {1: None}


@pytest.mark.integration
def test_logs_are_printed_with_the_brokers_number(running: Any) -> None:
    lines = run("logs", "--lines", "3").stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("1 | ") for line in lines)


@pytest.mark.integration
def test_the_proxy_of_a_detached_cluster_records_and_can_be_harmed(running: Any, state: Path) -> None:
    directory = state / "clusters" / "default"
    client = admin(running["proxied_bootstrap_servers"], **{"client.id": "detached"})
    # librdkafka takes an answer without brokers and without topics for half an answer.
    create_topic(client, "there", partitions=1)
    records = directory / "proxy.jsonl"
    assert eventually(lambda: records.exists() and '"Metadata"' in records.read_text())
    recorded = [json.loads(line) for line in records.read_text().splitlines()]
    assert "Metadata" in {one["api"] for one in recorded if one["client_id"] == "detached"}

    assert "all brokers: no-brokers" in run("fault", "no-brokers").stderr
    assert eventually(lambda: known_broker_count(client) == 0)
    assert "broker 1: pass" in run("fault", "pass", "1").stderr
    # A client whose metadata named no broker may give up its only one for minutes: a new one is asked.
    assert eventually(lambda: known_broker_count(admin(running["proxied_bootstrap_servers"])) == 1)


@pytest.mark.integration
def test_a_file_of_faults_that_cannot_be_read_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    assert read_faults(tmp_path) == {}
    (tmp_path / "faults.json").write_text("{")
    assert read_faults(tmp_path) is None
    (tmp_path / "faults.json").write_text('{"1": {"kind": "gremlins", "delay_ms": 0}}')
    assert read_faults(tmp_path) is None


@pytest.mark.integration
def test_down_ends_it_and_removes_its_data(running: Any, state: Path) -> None:
    assert "cluster default is removed" in run("down").stderr
    assert list((state / "clusters").iterdir()) == []
    assert json.loads(run("status").stdout) == []
