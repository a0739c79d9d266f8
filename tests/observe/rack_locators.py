"""Questions to rack locators outside of the process for tests, and how they fail."""

from __future__ import annotations

import psutil
import pytest

from agent.observe.ask_locators import ask_locator
from agent.observe.context import CommandQuestion, EntryPointQuestion, FileQuestion, ObserverState
from agent.values.observation import RawRackRow
from agent.wire.failure import CallFailed

ROWS = (RawRackRow("broker", "1", "a"), RawRackRow("broker", "2", "b"))
SECRET = "canary-31c0"


def an_entry_point(name: str = "inventory", **more: object) -> EntryPointQuestion:
    settings: dict[str, object] = {"timeout_ms": 10_000, "max_bytes": 10_000, "properties": {}}
    return EntryPointQuestion(name=name, entry_point=name, **{**settings, **more})  # type: ignore[arg-type] # a table's row


def failure(question: FileQuestion | CommandQuestion | EntryPointQuestion, timeout_ms: int = 10_000) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        ask_locator(question, ObserverState(), timeout_ms)
    return failed.value


def alive_children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
