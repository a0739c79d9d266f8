"""What systemd hears from the agent, on a real datagram socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.daemon.daemon import AgentDaemon, LoopPace
from agent.daemon.schedule import ServiceManager
from agent.daemon.start import agent_of
from agent.loop import CycleStages
from agent.record.recorder import CycleRecorder, RecordPlan
from agent.values.clock import ClockReading
from agent.values.limits import Limits
from agent.values.observation import Observation
from agent.web.agent_view import CycleFailure, LoopState, live
from config.load import load_settings
from tests.synthetic_cluster import synthetic_cluster

STALL_MS = 120_000


class Listener:
    """The manager's end of the socket."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)

    def taken(self) -> list[str]:
        """Lines of all messages that have come."""
        lines: list[str] = []
        self.socket.setblocking(False)
        while True:
            try:
                lines += self.socket.recv(65_536).decode().split("\n")
            except BlockingIOError:
                return lines

    def until(self, line: str, within_s: float = 30.0) -> list[str]:
        """All lines until one that begins so."""
        end, lines = time.monotonic() + within_s, list[str]()
        while time.monotonic() < end:
            lines += self.taken()
            if any(one.startswith(line) for one in lines):
                return lines
            time.sleep(0.02)
        raise AssertionError(f"{line} did not come; these did: {lines}")


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    one = Listener(str(tmp_path / "notify"))
    yield one
    one.socket.close()


def at(ms: int) -> ClockReading:
    return ClockReading(wall_ms=ms, monotonic_ms=ms)


def told(manager: ServiceManager, listener: Listener, state: LoopState, ms: int) -> list[str]:
    """What the manager hears at that time."""
    manager.report(state, live(state, at(ms), STALL_MS), at(ms))
    return listener.taken()


STARTED = LoopState(started=at(0))
ENDED = replace(STARTED, last_end=at(1_000), failure=CycleFailure(1, "no broker answered", 1_000))


def test_it_is_ready_once_the_first_cycle_has_ended_and_says_so_once(listener: Listener) -> None:
    manager = ServiceManager(listener.address)
    assert told(manager, listener, STARTED, 500) == ["STATUS=starting"]
    assert told(manager, listener, STARTED, 900) == []
    assert told(manager, listener, ENDED, 1_001) == ["READY=1", "STATUS=not ready: no broker answered"]
    assert told(manager, listener, ENDED, 1_500) == []


def test_the_watchdog_hears_three_pings_in_its_time_and_none_once_the_loop_is_not_live(listener: Listener) -> None:
    manager = ServiceManager(listener.address, watchdog_ms=3_000)
    pings = [
        ms
        for ms in range(1_000, 130_000, 500)
        if "WATCHDOG=1" in told(manager, listener, replace(ENDED, last_end=at(1_000)), ms)
    ]
    assert pings == list(range(1_000, 1_000 + STALL_MS + 1, 1_000))


def test_why_it_is_not_answered_is_logged_once(listener: Listener) -> None:
    manager = ServiceManager(listener.address, watchdog_ms=3_000)
    with capture_logs() as events:
        lines = told(manager, listener, ENDED, 1_000 + STALL_MS + 1)
        told(manager, listener, ENDED, 1_000 + STALL_MS + 2_000)
    assert lines == ["READY=1", "STATUS=not live: no cycle has ended for 120 s"]
    assert [event["sentence"] for event in events] == [
        "the watchdog of the service manager is not answered: no cycle has ended for 120 s"
    ]


def test_without_a_watchdog_there_are_no_pings(listener: Listener) -> None:
    assert "WATCHDOG=1" not in told(ServiceManager(listener.address), listener, ENDED, 2_000)


@pytest.mark.parametrize("name", ["a\nREADY=1", "a\rMAINPID=1", "a\0b", "a\u2028WATCHDOG=1", "\x1b[2J", "é" * 10_000])
def test_a_name_in_the_status_is_one_line_of_bounded_length(listener: Listener, name: str) -> None:
    manager = ServiceManager(listener.address)
    state = replace(STARTED, failure=CycleFailure(1, f"topic {name} is away", 1_000))
    (line,) = told(manager, listener, state, 500)
    assert line.startswith("STATUS=not ready: topic ")
    assert line.isprintable()
    assert len(line.encode()) < 450


def test_a_message_that_was_not_taken_is_sent_again_and_never_waited_for(listener: Listener) -> None:
    manager = ServiceManager(listener.address)
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            filler.sendto(b"X", listener.address)
    began = time.monotonic()
    with capture_logs() as events:
        for ms in (1_001, 1_501):
            manager.report(ENDED, live(ENDED, at(ms), STALL_MS), at(ms))
    assert time.monotonic() - began < 1
    assert [event["event"] for event in events] == ["service_manager_unreachable"]
    assert set(listener.taken()) == {"X"}
    assert told(manager, listener, ENDED, 2_001)[0] == "READY=1"
    filler.close()


def test_an_abstract_address_is_one_too() -> None:
    listener = Listener(f"@rackwise-test-{os.getpid()}")
    manager = ServiceManager(listener.address)
    manager.stopping()
    assert listener.taken() == ["STOPPING=1", "STATUS=stopping"]
    listener.socket.close()


def test_the_variables_are_taken_out_of_the_environment_and_those_of_another_process_are_left_aside(
    listener: Listener,
) -> None:
    for process, pings in (("", True), (str(os.getpid()), True), ("1", False)):
        environ = {"NOTIFY_SOCKET": listener.address, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": process, "HOME": "/"}
        manager = ServiceManager.of(environ)
        assert environ == {"HOME": "/"}
        assert ("WATCHDOG=1" in told(manager, listener, ENDED, 2_000)) is pings
    for timeout in ("", "0", "-1", "soon", "999"):
        manager = ServiceManager.of({"NOTIFY_SOCKET": listener.address, "WATCHDOG_USEC": timeout})
        assert "WATCHDOG=1" not in told(manager, listener, ENDED, 2_000)


def test_without_an_address_nothing_is_sent() -> None:
    manager = ServiceManager.of({})
    with capture_logs() as events:
        manager.report(ENDED, live(ENDED, at(2_000), STALL_MS), at(2_000))
        manager.stopping()
    assert events == []


def test_a_loop_that_hangs_is_no_longer_vouched_for(listener: Listener) -> None:
    hangs = threading.Event()
    world = synthetic_cluster(3)

    def look() -> Observation:
        if agent.watch.state.succeeded:
            hangs.wait(20)
        return world

    agent = AgentDaemon(
        look=look,
        stages=CycleStages(Limits()),
        recorder=CycleRecorder(RecordPlan(), {}),
        pace=LoopPace(poll_ms=1_000, stall_ms=2_000),
        manager=ServiceManager(listener.address, watchdog_ms=300),
    )
    heard: list[str] = []

    def watch() -> None:
        heard.extend(listener.until("READY=1"))
        heard.extend(listener.until("STATUS=not live: no cycle has ended for "))
        heard.append("then")
        time.sleep(1.2)
        heard.extend(listener.taken())
        hangs.set()
        agent.stop()

    thread = threading.Thread(target=watch)
    thread.start()
    assert agent.run() == 0
    thread.join()
    before, after = heard[: heard.index("then")], heard[heard.index("then") + 1 :]
    assert before.count("READY=1") == 1
    assert "WATCHDOG=1" in before
    assert any(line.startswith("STATUS=saw 12 brokers in 3 racks") for line in before)
    assert [line for line in after if line in {"WATCHDOG=1", "READY=1"}] == []
    assert "STOPPING=1" in listener.taken()


def test_without_its_http_server_it_is_not_vouched_for_either(listener: Listener) -> None:
    world = synthetic_cluster(3)
    agent = AgentDaemon(
        look=lambda: world,
        stages=CycleStages(Limits()),
        recorder=CycleRecorder(RecordPlan(), {}),
        pace=LoopPace(poll_ms=1_000),
        manager=ServiceManager(listener.address, watchdog_ms=300),
    )
    heard: list[str] = []

    def watch() -> None:
        heard.extend(listener.until("STATUS=not live: the HTTP server has ended"))
        agent.stop()

    thread = threading.Thread(target=watch)
    thread.start()
    agent.run(lambda: False)
    thread.join()
    assert "WATCHDOG=1" not in heard


def test_commands_that_the_agent_starts_have_none_of_the_variables(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", listener.address)
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    flags = {"kafka.bootstrap.servers": "127.0.0.1:1", "mode": "observe"}
    with agent_of(load_settings(flags=flags, environ={}).settings):
        assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & set(os.environ)


def test_a_process_is_ready_alive_and_stopping_though_no_broker_answers(listener: Listener) -> None:
    agent = subprocess.Popen(
        [
            *(sys.executable, "-m", "agent", "run", "-b", "127.0.0.1:1", "--mode", "observe"),
            *("--set", "http.port=0", "--set", "poll.interval=1s"),
        ],
        env={**os.environ, "NOTIFY_SOCKET": listener.address, "WATCHDOG_USEC": "900000"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = listener.until("READY=1", 60)
        assert any(line.startswith("STATUS=not ready: ") for line in lines)
        listener.until("WATCHDOG=1")
        listener.until("WATCHDOG=1")
        agent.send_signal(signal.SIGTERM)
        listener.until("STOPPING=1", 5)
        _, log = agent.communicate(timeout=10)
    finally:
        agent.kill()
        agent.wait()
    assert agent.returncode == 0, log
