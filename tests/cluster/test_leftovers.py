"""How a cluster is doing, as its directory and its processes tell. The brokers are stand-ins that sleep."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli.output import OutputFormat
from agent.cli.running_agents import confirm
from agent.errors import GaveUp
from testbed.cluster import commands
from testbed.cluster.errors import BadSpec, ClusterError
from testbed.cluster.launch import TAG
from testbed.cluster.leftovers import ClusterState, clear_cluster, find_cluster, find_clusters
from testbed.cluster.manifest import ClusterManifest, ManifestBroker, read_manifest, write_manifest
from testbed.cluster.processes import ProcessId
from testbed.cluster.settings import BrokerNode
from testbed.cluster.spec import ClusterSecurity, ClusterSpec

Start = Callable[..., ProcessId]
ENDED = ProcessId(pid=os.getpid(), create_time=1.0)
"""A process of long ago whose pid another process has now: this very test."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RACKWISE_STATE", str(tmp_path))
    clusters = tmp_path / "clusters"
    clusters.mkdir()
    return clusters


@pytest.fixture
def sleeper() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*tags: str) -> ProcessId:
        started.append(
            subprocess.Popen((sys.executable, "-c", "import time; time.sleep(60)", *tags), start_new_session=True)
        )
        return ProcessId.of(started[-1].pid)

    yield start
    for process in started:
        process.kill()
        process.wait()


def manifest(*processes: ProcessId | None, owner: ProcessId | None = None, ready: bool = True) -> ClusterManifest:
    members = tuple(
        ManifestBroker(
            node=BrokerNode(
                id=number, rack="a", internal_port=1, controller_port=2, client_port=3, data_directory=f"data-{number}"
            ),
            process=process,
        )
        for number, process in enumerate(processes, 1)
    )
    return ClusterManifest(
        name="one", cluster_id="id", spec=ClusterSpec(), members=members, owner=owner, starter=ENDED, ready=ready
    )


def put(home: Path, value: ClusterManifest) -> Path:
    directory = home / value.name
    directory.mkdir()
    write_manifest(directory, value)
    return directory


def test_a_manifest_comes_back_as_it_was_written(home: Path) -> None:
    spec = ClusterSpec(racks=("a", None), proxied=True, security=ClusterSecurity(), broker_properties={"x": "y"})
    node = BrokerNode(
        id=1,
        rack=None,
        internal_port=1,
        controller_port=2,
        client_port=3,
        proxied_port=4,
        proxy_port=5,
        data_directory="d",
    )
    written = replace(
        manifest(owner=ENDED), spec=spec, members=(ManifestBroker(node=node, process=ENDED),), helpers=(ENDED,)
    )
    assert read_manifest(put(home, written)) == written
    assert written.proxied_bootstrap_servers == "127.0.0.1:5"


def test_a_manifest_is_for_its_owner_alone_because_it_may_hold_passwords(home: Path) -> None:
    assert (put(home, manifest()) / "manifest.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"name": "one"}', "null", '{"members": 3}'], ids=lambda text: f"manifest {text!r}"
)
def test_a_broken_manifest_is_a_sentence_and_can_be_cleared(home: Path, text: str) -> None:
    directory = home / "one"
    directory.mkdir()
    (directory / "manifest.json").write_text(text)
    with pytest.raises(ClusterError, match="cannot be read"):
        read_manifest(directory)
    found = find_cluster("one")
    assert found is not None
    assert found.state is ClusterState.LEFT_BEHIND
    clear_cluster(directory)
    assert find_clusters() == ()


def test_a_cluster_is_running_while_all_its_brokers_run(home: Path, sleeper: Start) -> None:
    put(home, manifest(sleeper(), sleeper()))
    found = find_cluster("one")
    assert found is not None
    assert (found.state, found.alive_brokers) == (ClusterState.RUNNING, (1, 2))


def test_a_cluster_with_a_dead_broker_is_partly_running(home: Path, sleeper: Start) -> None:
    put(home, manifest(sleeper(), ENDED))
    found = find_cluster("one")
    assert found is not None
    assert (found.state, found.alive_brokers) == (ClusterState.PARTLY_RUNNING, (1,))
    assert found.why == "running: 1 of 2 brokers"


@pytest.mark.parametrize(
    ("left", "why"),
    [
        pytest.param(manifest(ENDED, None), "none of its brokers runs", id="the machine was started anew"),
        pytest.param(manifest(ready=False), "its start was interrupted", id="up was killed half-way"),
        pytest.param(manifest(ENDED, owner=ENDED), "its owner, has ended", id="its owner was killed"),
    ],
)
def test_what_nobody_owns_any_more_is_left_behind(home: Path, left: ClusterManifest, why: str) -> None:
    put(home, left)
    found = find_cluster("one")
    assert found is not None
    assert found.state is ClusterState.LEFT_BEHIND
    assert why in found.why
    assert not found.held


def test_a_cluster_is_held_while_its_owner_runs(home: Path, sleeper: Start) -> None:
    put(home, manifest(ENDED, owner=sleeper()))
    found = find_cluster("one")
    assert found is not None
    assert found.held
    assert found.state is ClusterState.PARTLY_RUNNING


def test_a_cluster_that_is_starting_is_not_left_behind(home: Path, sleeper: Start) -> None:
    put(home, replace(manifest(ready=False), starter=sleeper()))
    found = find_cluster("one")
    assert found is not None
    assert found.held
    assert found.state is ClusterState.STARTING


def test_clearing_ends_brokers_and_removes_the_directory(home: Path, sleeper: Start) -> None:
    broker, stranger = sleeper(), sleeper()
    directory = put(home, manifest(broker))
    clear_cluster(directory)
    assert not broker.alive
    assert stranger.alive
    assert not directory.exists()
    clear_cluster(directory)


def test_clearing_finds_a_broker_that_no_manifest_names_by_its_tag(home: Path, sleeper: Start) -> None:
    directory = put(home, manifest())
    ours = sleeper(f"{TAG}{directory}")
    neighbours = sleeper(f"{TAG}{directory}-2")
    clear_cluster(directory)
    assert not ours.alive
    assert neighbours.alive


def test_a_directory_in_the_making_is_not_shown(home: Path) -> None:
    (home / ".one-abc").mkdir()
    assert find_clusters() == ()


class Terminal(io.StringIO):
    """A terminal on which no more is typed."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def two_left(home: Path) -> None:
    for name in ("one", "two"):
        (home / name).mkdir()
        write_manifest(home / name, manifest(ENDED, owner=ENDED))


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """What is said on it."""
    said = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stderr", said)
    return said


@pytest.mark.usefixtures("two_left")
def test_no_command_asks_about_clusters_that_it_was_not_given(
    home: Path, sleeper: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = at_a_terminal(monkeypatch)
    put(home, replace(manifest(sleeper()), name="mine"))
    commands.up(name="mine", output=OutputFormat.JSON)
    commands.down(name="mine")
    commands.status(output=OutputFormat.JSON)
    assert "?" not in said.getvalue()
    assert said.getvalue().splitlines()[-1] == "remove them with: rackwise cluster status --clear"
    assert [found.name for found in find_clusters()] == ["one", "two"]


@pytest.mark.usefixtures("two_left")
def test_why_a_cluster_was_left_behind_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    commands.status(output=OutputFormat.TABLE)
    shown = capsys.readouterr()
    assert shown.out.count("its owner, has ended") == 2
    assert shown.err == "remove them with: rackwise cluster status --clear\n"
    commands.down(name="gone")
    assert capsys.readouterr().err.count("its owner, has ended") == 2


@pytest.mark.usefixtures("two_left")
def test_the_command_that_removes_the_cluster_shown_removes_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    commands.status(name="two", output=OutputFormat.JSON)
    assert capsys.readouterr().err == "remove it with: rackwise cluster status --name two --clear\n"


@pytest.mark.usefixtures("two_left")
def test_status_of_one_name_shows_and_clears_only_that_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    commands.status(name="gone", clear=True, output=OutputFormat.TABLE)
    assert "there is no cluster named gone" in capsys.readouterr().err
    commands.status(name="two", clear=True, output=OutputFormat.JSON)
    done = capsys.readouterr()
    assert [row["name"] for row in json.loads(done.out)] == ["two"]
    assert "cluster one" not in done.err
    assert [found.name for found in find_clusters()] == ["one"]


def test_no_name_leads_out_of_the_directory_of_clusters(home: Path) -> None:
    (home / "not a cluster").mkdir()
    assert find_clusters() == ()
    for name in ("..", "../clusters", str(home), "", ".one", "not a cluster"):
        with pytest.raises(BadSpec, match="is not a cluster name"):
            commands.down(name=name)
    assert (home / "not a cluster").is_dir()


def test_a_question_without_an_answer_names_the_option_of_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_terminal(monkeypatch)
    with pytest.raises(GaveUp) as refused:
        confirm("Cancel p-1?", yes=False)
    assert refused.value.todo == "Answer, or give --yes."
