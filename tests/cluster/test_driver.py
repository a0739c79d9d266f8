"""What the compose driver tells Docker. Docker is a stand-in that writes down its arguments: no engine is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.cluster import EmbeddedCluster
from testbed.cluster.errors import BadSpec, ClusterError
from tests.cluster.driver import COMPOSE_PORTS, BrokerDriver, ClusterDriver, ComposeDriver

DOCKER = """#!/usr/bin/env python3
import json, os, pathlib, sys
racks = {name: value for name, value in os.environ.items() if name.startswith("RACK_")}
with pathlib.Path(__file__).with_name("calls").open("a") as calls:
    calls.write(json.dumps([sys.argv[1:], racks]) + "\\n")
if "kill" in sys.argv:
    sys.exit("no such service")
"""
RACKS = {"RACK_1": "a", "RACK_2": "b", "RACK_3": "c"}


class Docker:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "docker").write_text(DOCKER)
        (directory / "docker").chmod(0o755)

    @property
    def calls(self) -> list[tuple[list[str], dict[str, str]]]:
        lines = (self.directory / "calls").read_text().splitlines()
        return [(arguments, racks) for arguments, racks in map(json.loads, lines)]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Docker(tmp_path)


@pytest.mark.parametrize(
    ("act", "arguments"),
    [
        pytest.param(lambda broker: broker.stop(), ["stop", "--timeout", "20", "kafka-2"], id="stop"),
        pytest.param(lambda broker: broker.freeze(), ["pause", "kafka-2"], id="freeze"),
        pytest.param(lambda broker: broker.thaw(), ["unpause", "kafka-2"], id="thaw"),
        pytest.param(
            lambda broker: broker.start(wait=False), ["up", "--detach", "--no-deps", "kafka-2"], id="start as it was"
        ),
    ],
)
def test_each_act_is_one_docker_command(
    docker: Docker, act: Callable[[BrokerDriver], None], arguments: list[str]
) -> None:
    act(ComposeDriver(Path("file.yml")).broker(2))
    assert docker.calls == [(["compose", "-f", "file.yml", *arguments], RACKS)]


def test_a_broker_put_into_another_rack_stays_there_when_another_one_is_moved(docker: Docker) -> None:
    driver = ComposeDriver(Path("file.yml"))
    driver.broker(2).restart("z", wait=False)
    driver.broker(1).start("y", wait=False)
    assert [racks for _, racks in docker.calls] == [
        RACKS,
        RACKS | {"RACK_2": "z"},
        RACKS | {"RACK_1": "y", "RACK_2": "z"},
    ]
    assert [broker.rack for broker in driver.brokers] == ["y", "z", "c"]


def test_dockers_refusal_is_told_in_its_own_words(docker: Docker) -> None:
    with pytest.raises(ClusterError, match=r"docker compose -f file.yml kill .*failed: no such service"):
        ComposeDriver(Path("file.yml")).broker(1).kill()


def test_a_machine_without_docker_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="Install Docker with its compose plugin"):
        ComposeDriver(Path("file.yml")).broker(1).kill()


def test_a_compose_broker_cannot_lose_its_rack(docker: Docker) -> None:
    with pytest.raises(BadSpec, match="cannot be without a rack"):
        ComposeDriver(Path("file.yml")).broker(1).start(None)
    assert not (docker.directory / "calls").exists()


def test_a_broker_that_is_not_there_is_named() -> None:
    with pytest.raises(BadSpec, match=r"no broker 9: its brokers are \[1, 2, 3\]"):
        ComposeDriver(Path("file.yml")).broker(9)


def test_the_driver_tells_where_clients_of_this_machine_begin() -> None:
    servers = ComposeDriver(Path("file.yml")).bootstrap_servers
    assert servers == ",".join(f"127.0.0.1:{port}" for port in COMPOSE_PORTS.values())


@pytest.mark.integration
def test_an_embedded_cluster_is_a_driver_as_it_is(embedded_cluster: EmbeddedCluster) -> None:
    driver: ClusterDriver = embedded_cluster
    assert [broker.id for broker in driver.brokers] == [1, 2, 3]
    assert driver.broker(2).rack == "b"
