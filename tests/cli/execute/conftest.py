"""An agent with a file journal, for commands in this process; the proposals topic, which needs brokers, is given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

from agent.cli import follow, running_agents
from agent.execute.commands.command_context import OperatorKeys
from agent.values.limits import Limits
from tests.cli.execute.file_agent import MOVE, FileAgent, Start


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the journal is; the proposals topic has one proposal."""
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda _loaded, _tell: (MOVE,))
    monkeypatch.setattr(running_agents, "POLL_S", 0.02)
    monkeypatch.setattr(follow, "POLL_S", 0.02)
    return tmp_path / "journal"


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts an agent, once at a time."""
    running: list[FileAgent] = []

    def begin(limits: Limits | None = None, people: OperatorKeys = MappingProxyType({})) -> FileAgent:
        running.append(FileAgent(path, limits or Limits(), people))
        return running[-1]

    yield begin
    for agent in running:
        agent.close()
