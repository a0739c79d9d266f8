"""Which ports a cluster gets."""

from __future__ import annotations

import platform
import socket
from pathlib import Path

import pytest

from testbed.cluster import ports
from testbed.cluster.errors import ClusterError


def test_ports_are_distinct_held_and_outside_the_range_of_outgoing_connections() -> None:
    first, last = ports.kernel_range()
    with ports.hold_ports(20) as held:
        assert len(set(held.ports)) == 20
        assert not [port for port in held.ports if first <= port <= last]
        for port in held.ports:
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))


def test_ports_are_free_once_the_block_is_left() -> None:
    with ports.hold_ports(3) as held:
        pass
    for port in held.ports:
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", port))
            assert other.getsockname()[1] == port


def test_two_holders_never_share_a_port() -> None:
    with ports.hold_ports(50) as one, ports.hold_ports(50) as other:
        assert not set(one.ports) & set(other.ports)


@pytest.mark.skipif(platform.system() != "Linux", reason="elsewhere a port can only be closed")
def test_a_lent_port_takes_a_server_again_and_again_but_nobody_who_only_looks_for_a_port() -> None:
    with ports.hold_ports(1) as held:
        held.lend()
        address = ("127.0.0.1", held.ports[0])
        for _ in range(2):
            with socket.create_server(address), socket.create_connection(address):
                pass
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(address)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address)


def test_a_kernel_that_gives_all_ports_away_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    everything = tmp_path / "ip_local_port_range"
    everything.write_text("1024 65535\n")
    monkeypatch.setattr(ports, "_KERNEL_RANGE", everything)
    with pytest.raises(ClusterError, match=r"covers 1024 to 65535.*ip_local_port_range"), ports.hold_ports(1):
        pass


def test_a_machine_without_the_kernel_file_falls_back_to_the_usual_range(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ports, "_KERNEL_RANGE", tmp_path / "missing")
    assert ports.kernel_range() == (32768, 60999)
