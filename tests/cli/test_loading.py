"""Modules are loaded beside a look by one thread, which says nothing and is done before anything else is loaded."""

from __future__ import annotations

import threading

import pytest

from agent.cli import loading, measuring, session
from config.load import Loaded, load_settings
from tests.builders import an_observation


@pytest.fixture
def loaded() -> Loaded:
    return load_settings(assignments=["kafka.bootstrap.servers=127.0.0.1:1"], environ={})


def test_a_module_that_cannot_be_loaded_is_not_told_by_the_thread(capfd: pytest.CaptureFixture[str]) -> None:
    loading.load_beside("agent.no_such_module").join()
    assert capfd.readouterr() == ("", "")


def test_a_look_is_over_once_all_is_loaded(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, done = threading.Event(), []

    def load(_name: str) -> None:
        asked.wait(10)
        done.append("loaded")

    def observe(*_: object) -> object:
        asked.set()
        done.append("observed")
        return an_observation().at()

    monkeypatch.setattr("agent.cli.loading.import_module", load)
    monkeypatch.setattr("agent.observe.observe", observe)
    with session.looking(loaded) as take:
        take()
        assert sorted(done) == ["loaded", "observed"]


def test_what_the_thread_that_asks_for_the_agents_look_needs_is_loaded_before_it(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("agent.cli.measuring.import_module", told.append)
    monkeypatch.setattr(measuring.AgentsLook, "_ask", lambda _self: told.append("asked"))
    measuring.AgentsLook(loaded.settings)._thread.join()
    assert told == ["agent.record.newest_look", "asked"]
