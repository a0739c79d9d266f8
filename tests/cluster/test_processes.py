"""A process is known by pid and start time together."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.cluster.processes import ProcessId, kill_all, wait_gone


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(("sleep", "60")) as process:
        yield process
        process.kill()


def test_a_running_process_is_alive_and_one_that_ended_is_not(child: subprocess.Popen[bytes]) -> None:
    one = ProcessId.of(child.pid)
    assert one.alive
    assert one.memory_mib >= 0
    child.kill()
    child.wait()
    assert not one.alive
    assert one.memory_mib == 0


def test_a_pid_that_was_given_to_another_process_is_never_signalled(child: subprocess.Popen[bytes]) -> None:
    earlier = replace(ProcessId.of(child.pid), create_time=ProcessId.of(child.pid).create_time - 60)
    assert not earlier.alive
    assert not earlier.send(signal.SIGKILL)
    assert kill_all([earlier]) == ()
    assert child.poll() is None


def test_a_child_that_ended_but_was_not_waited_for_counts_as_gone(child: subprocess.Popen[bytes]) -> None:
    one = ProcessId.of(child.pid)
    one.send(signal.SIGKILL)
    assert wait_gone([one], 5.0) == ()


def test_a_frozen_process_is_alive_and_can_be_killed(child: subprocess.Popen[bytes]) -> None:
    one = ProcessId.of(child.pid)
    one.send(signal.SIGSTOP)
    assert one.alive
    assert kill_all([one]) == ()
    assert not one.alive


def test_a_process_is_stopped_once_all_its_threads_are() -> None:
    threads = "import threading, time; [threading.Thread(target=sum, args=(iter(int, 1),)).start() for _ in range(9)]"
    with subprocess.Popen([sys.executable, "-c", threads]) as busy:
        one = ProcessId.of(busy.pid)
        try:
            assert not one.stopped
            one.send(signal.SIGSTOP)
            until = time.monotonic() + 20
            while not one.stopped:
                assert time.monotonic() < until
                time.sleep(0.001)
            spent = one.process().cpu_times()
            time.sleep(0.2)
            assert one.process().cpu_times() == spent
            one.send(signal.SIGCONT)
            assert not one.stopped
        finally:
            busy.kill()
    assert not one.stopped


def test_waiting_tells_who_would_not_go(child: subprocess.Popen[bytes]) -> None:
    one = ProcessId.of(child.pid)
    assert wait_gone([one], 0.1) == (one,)
