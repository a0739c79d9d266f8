"""What reads the answer (``| head``) may go away: the exit code is the one that the command has without it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli import command_exit
from agent.telemetry.events import to_lines
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from tests.builders import an_observation
from tests.command import RACKWISE, ROOT, environment
from tests.recorded_looks import observation_to_events

VERIFY = """
import sys
import agent.cli.follow as following, agent.cli.reassign as reassigning
from agent.documents.journal import PlannedReplicas
from assignors.problem import TopicPartition
from tests.builders import an_observation
class Watcher:
    def __init__(self, loaded): pass
    def open(self): return self
    def __enter__(self): return self
    def __exit__(self, *_error): pass
    def look(self, topics): return an_observation(a=(1, 2), b=(3,)).topic("t", (1, 2)).at()
following.ReassignmentWatcher = Watcher
reassigning.running_agents.plan_of = reassigning.running_agents.journal = lambda _asked: {}
reassigning._of_plan = lambda _rows, _what: PlannedReplicas({TopicPartition("t", 0): (3, 2)}, before={})
reassigning._throttles = lambda _rows: ["the rate of broker 1"]
sys.argv = ["rackwise", "reassign", "verify", "p-1", "-b", "127.0.0.1:1"]
import agent.__main__
agent.__main__.main()
"""


def recorded(observation: Observation, path: Path) -> str:
    events = observation_to_events(observation, Memory(), Limits(), look="l-1")
    path.write_text("".join(f"{line}\n" for event in events for line in to_lines(event)))
    return str(path)


@pytest.fixture
def looks(tmp_path: Path) -> dict[str, str]:
    """Files of a whole look, of one with a gap, and of one without a topic."""
    whole = an_observation(a=(1, 2), b=(3, 4))
    for number in range(4):
        whole = whole.topic(f"t{number}", (1, 2), (2, 1))
    gap = Gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, "", "no answer in 5 s")
    return {
        "whole": recorded(whole.at(), tmp_path / "whole.jsonl"),
        "partial": recorded(replace(whole.at(), gaps=(gap,)), tmp_path / "partial.jsonl"),
        "empty": recorded(an_observation(a=(1,), b=(2,)).at(), tmp_path / "empty.jsonl"),
    }


Ended = Callable[..., tuple[int, str]]


@pytest.fixture(params=["", "1"], ids=["at the end", "at the first line"])
def ended(request: pytest.FixtureRequest) -> Ended:
    """Runs a command whose standard output nothing reads; its exit code and standard error."""

    def run(*command: str) -> tuple[int, str]:
        read, write = os.pipe()
        os.close(read)
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE, text=True, check=False,
                timeout=90, cwd=ROOT, env=environment(PYTHONUNBUFFERED=request.param),
            )  # fmt: skip
        finally:
            os.close(write)
        return done.returncode, done.stderr

    return run


@pytest.mark.parametrize(
    ("command", "look", "exit_code"),
    [
        (("plan", "--detailed-exitcode"), "whole", 3),
        (("plan", "--detailed-exitcode", "-o", "csv"), "whole", 3),
        (("plan", "--detailed-exitcode"), "empty", 0),
        (("plan",), "whole", 0),
        (("status", "-o", "table"), "partial", 5),
        (("doctor", "-o", "table"), "partial", 5),
        (("groups", "-o", "yaml"), "partial", 5),
        (("top", "--count", "1"), "whole", 0),
    ],
)
def test_a_reader_that_goes_away_changes_no_exit_code(
    ended: Ended, looks: dict[str, str], command: tuple[str, ...], look: str, exit_code: int
) -> None:
    code, stderr = ended(*RACKWISE, *command, "--replay", looks[look])
    assert (code, "rackwise: " in stderr) == (exit_code, False)


def test_replicas_that_are_not_in_place_are_no_success_and_the_rest_is_said(ended: Ended) -> None:
    code, stderr = ended(sys.executable, "-c", VERIFY)
    assert (code, stderr) == (1, "still throttled by rackwise: the rate of broker 1\n")


def test_a_refusal_is_one_too(ended: Ended) -> None:
    code, _ = ended(*RACKWISE, "config", "show", "--set", "poll.interval=never")
    assert code == 2


def test_help_that_was_cut_off_ends_as_if_by_sigpipe(ended: Ended) -> None:
    assert ended(*RACKWISE, "--help") == (141, "")


def test_another_pipe_that_breaks_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A connection breaks with the same error."""

    def run(_arguments: list[str], *, interruptible: bool) -> int:
        raise BrokenPipeError(32, "Broken pipe", str(interruptible))

    monkeypatch.setattr(command_exit, "_run", run)
    assert command_exit.run(["status"], debug=False, interruptible=False) == 1
    assert "Broken pipe" in capsys.readouterr().err
