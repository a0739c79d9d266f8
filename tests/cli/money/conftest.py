"""The telemetry file of the second of two looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.simulate.evaluation import first_memory, second_look
from agent.telemetry.events import to_lines
from agent.values.limits import Limits
from tests.builders import Answers
from tests.cli.money.recorded import priced_cluster, sized
from tests.recorded_looks import observation_to_events
from tests.snapshots import tp


@pytest.fixture
def two_looks(tmp_path: Path) -> Callable[..., str]:
    """The telemetry file of the second of two looks, ten seconds apart."""

    def write(answers: Answers, limits: Limits | None = None) -> str:
        limits = limits or Limits()
        memory = first_memory(answers.at(0), limits)
        for number in range(4):
            answers.ends[tp(f"orders-{number}")] += 10_000
        look = sized(answers).at(10)
        before = second_look(look, memory, limits).before
        path = tmp_path / "two.jsonl"
        events = observation_to_events(look, before, limits, look="l-2")
        path.write_text("".join(f"{line}\n" for event in events for line in to_lines(event)))
        return str(path)

    return write


@pytest.fixture
def file(two_looks: Callable[..., str]) -> str:
    return two_looks(priced_cluster())
