"""A signal handler may tell a run to end whatever its thread is doing: between any two steps of a wait."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import Any

import pytest

from agent import process
from agent.process import StopSignal


@pytest.mark.timeout(20)
def test_it_may_be_told_between_any_two_steps_of_a_wait() -> None:
    step = 0
    while True:
        stop = StopSignal()
        steps, told = interrupted(stop, step)
        assert stop.is_set() is told
        assert stop.wait(0) is told
        if not told:
            break
        step += 1
    assert steps == step > 10, "each step was tried, and there are some"


def interrupted(stop: StopSignal, step: int) -> tuple[int, bool]:
    """Wait, and tell it at that step of the wait, as a handler would: (steps in all, whether there was such a one)."""
    steps, told = 0, False

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal steps, told
        if frame.f_code.co_filename != process.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            if steps == step and not told:
                told = True
                sys.settrace(None)
                stop.set()
            steps += 1
        return trace

    sys.settrace(trace)
    try:
        stop.wait(0.001)
    finally:
        sys.settrace(None)
    return steps, told


@pytest.mark.timeout(20)
def test_all_who_wait_hear_of_it_at_once_and_nobody_waits_any_more() -> None:
    stop = StopSignal()
    heard: list[bool] = []
    waiting = [threading.Thread(target=lambda: heard.append(stop.wait())) for _ in range(5)]
    for one in waiting:
        one.start()
    assert stop.wait(0.01) is False
    stop.set()
    for one in waiting:
        one.join()
    assert heard == [True] * 5
    began = time.monotonic()
    assert stop.wait(15) is True
    assert time.monotonic() - began < 10, "it does not wait for what has come"
