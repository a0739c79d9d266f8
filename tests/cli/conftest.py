"""The command line in this process, and telemetry files of looks that a test makes up."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.cli import command_exit
from agent.telemetry.events import to_lines
from agent.values.limits import Limits
from agent.values.memory import Memory
from tests.builders import Answers
from tests.command import Done
from tests.recorded_looks import observation_to_events

Run = Callable[..., Done]
Record = Callable[..., Path]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The command in this process: the same way in and out, without the start of a new Python each time."""
    threshold, interrupted = gc.get_threshold(), signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("os._exit", sys.exit)  # a command that is interrupted leaves its process at once
    monkeypatch.setattr("sys.unraisablehook", sys.unraisablehook)

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = command_exit.run(list(arguments), debug=False, interruptible=False)
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    yield run
    for thread in threading.enumerate():
        if thread.name.startswith("agent."):  # a command's question about telemetry, which waits for a broker
            thread.join(20)
    gc.set_threshold(*threshold)
    signal.signal(signal.SIGINT, interrupted)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Writes the telemetry file of one look."""

    def write(answers: Answers, limits: Limits | None = None) -> Path:
        path = tmp_path / "telemetry.jsonl"
        events = observation_to_events(answers.at(), Memory(), limits or Limits(), look="l-1")
        path.write_text("".join(f"{line}\n" for event in events for line in to_lines(event)))
        return path

    return write
