"""Commands in this process, with everything that reaches its file descriptors: also what a library writes there."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command import Done

Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Run]:
    """The command with these arguments; what the environment sets for rackwise is left out."""
    threshold, interrupted = gc.get_threshold(), signal.getsignal(signal.SIGINT)
    from agent.__main__ import main  # noqa: PLC0415 it heeds Ctrl-C from here on, as a process of its own

    for name in [one for one in os.environ if one.startswith("RACKWISE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RACKWISE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("os._exit", sys.exit)  # a command that is interrupted leaves its process at once
    monkeypatch.setattr("sys.unraisablehook", sys.unraisablehook)

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        monkeypatch.setattr("sys.argv", ["rackwise", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capfd.readouterr()
        return Done(left.value.code if isinstance(left.value.code, int) else 0, printed.out, printed.err)

    yield run
    gc.set_threshold(*threshold)
    signal.signal(signal.SIGINT, interrupted)


@pytest.fixture
def closed_port() -> str:
    """Where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"
