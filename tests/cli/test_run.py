"""``rackwise run`` says at its start which topics it creates."""

from __future__ import annotations

import json

import pytest

from tests.builders import an_observation
from tests.cli.conftest import Run

EMPTY_JOURNAL = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("mode", "creates", "says"),
    [
        pytest.param("observe", [], "creates no topic: mode is observe", id="observe"),
        pytest.param(
            "propose", ["rackwise.telemetry"], "rackwise.proposals exists and stays as it is", id="one of the two"
        ),
        pytest.param(
            "execute",
            ["rackwise.telemetry", "rackwise.journal", "rackwise.leader", "rackwise.commands"],
            "rackwise.journal (1 partition, replication factor 3, min.insync.replicas 2, cleanup.policy compact,",
            id="those of leadership too",
        ),
    ],
)
def test_the_log_begins_with_the_topics_that_are_created(
    here: Run, monkeypatch: pytest.MonkeyPatch, mode: str, creates: list[str], says: str
) -> None:
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("rackwise.proposals", (1, 2, 3))
    asked: list[str] = []
    monkeypatch.setattr("agent.daemon.start.observe", lambda *_: answers.at())
    monkeypatch.setattr("agent.daemon.daemon.LEAD_WITHIN_S", 0.1)
    monkeypatch.setattr("agent.record.recorder.RESTORE_MS", 100)
    monkeypatch.setattr(
        "agent.record.own_topics.OwnTopics._create",
        lambda _self, missing, _observation: asked.extend(topic.name for topic in missing),
    )
    done = here(
        "run",
        "--once",
        "--mode",
        mode,
        "-b",
        EMPTY_JOURNAL,
        "--set",
        "log.format=json",
        "--set",
        "weights.enabled=false",
    )
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    (told,) = [event for event in events if event["event"] == "own_topics"]
    others = [event for event in events if event["event"] != "acting"]  # leadership speaks from a thread of its own
    assert others[0] == told
    assert told["creates"] == creates
    assert says in told["sentence"]
    assert sorted(asked) == sorted(creates), "what was said is what was asked for"
