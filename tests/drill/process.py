"""The executor's process of a drill: started, told, killed, and listened to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.observe.live import wait_for

_BEGUN_S = 150.0
"""A process that begins needs a while on a busy machine; nothing is concluded from how long it takes."""


class Process:
    """The executor, as a supervisor runs it."""

    def __init__(self, directory: Path, config: dict[str, object]) -> None:
        self._directory = directory
        self._config = config
        self._running: subprocess.Popen[str] | None = None
        self._output: list[str] = []
        self._starts = 0

    @property
    def client_id(self) -> str:
        """As brokers and the proxy see it."""
        return str(self._config["client_id"])

    def set(self, **more: object) -> None:
        """Settings of it from its next start on."""
        self._config.update(more)

    def start(self, die: str | None = None, times: int = 1, *, holds: bool = False) -> None:
        """Start it; it dies at that step when one is given, or is held there until the test releases it."""
        self._starts += 1
        file = self._directory / f"executor-{self._starts}.json"
        file.write_text(json.dumps({**self._config, "die": die, "times": times, "holds": holds}))
        self._output = output = []
        log = (self._directory / f"executor-{self._starts}.log").open("w")
        self._running = subprocess.Popen(
            [sys.executable, "-m", "tests.drill.executor", str(file)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        log.close()
        threading.Thread(target=_read, args=(self._running, output), daemon=True).start()

    def wait_for_word(self, word: str, within_s: float = _BEGUN_S) -> None:
        """Until it has said that since it was started; AssertionError when it ends before."""
        wait_for(lambda: word in self._output or self._gone(), f"the executor says {word}", within_s)
        assert word in self._output, f"the executor ended: {self.log()}"

    def wait_line(self, start: str, within_s: float = _BEGUN_S) -> str:
        """The rest of the latest line that begins so, once there is one; it may have ended since."""
        wait_for(lambda: self._lines(start) or self._gone(), f"the executor says {start}", within_s)
        time.sleep(0.2 if self._gone() else 0)
        assert self._lines(start), f"the executor ended: {self.log()}"
        return self._lines(start)[-1].removeprefix(start).strip()

    def command(self, line: str) -> str:
        """What it answers to an operator's command."""
        before = len(self._lines("answer"))
        self.tell(line)
        wait_for(lambda: len(self._lines("answer")) > before or self._gone(), f"an answer to {line}", _BEGUN_S)
        return self.wait_line("answer")

    def wait_logged(self, words: str, within_s: float = _BEGUN_S) -> None:
        """Until its log of this start has these words."""
        wait_for(lambda: words in self._log() or self._gone(), f"the log says {words}: {self.log()}", within_s)
        assert words in self._log(), f"the executor ended: {self.log()}"

    def idle(self) -> bool:
        """True when its latest word is that nothing is left to do."""
        assert not self._gone(), f"the executor ended: {self.log()}"
        states = [word for word in self._output if word in ("idle", "busy", "leads")]
        return states[-1:] == ["idle"]

    def wait_dead(self, within_s: float = _BEGUN_S) -> None:
        """Until it died."""
        assert self._running is not None
        assert self._running.wait(within_s) == -9, self.log()

    def signal(self, number: signal.Signals) -> None:
        """Send it that."""
        assert self._running is not None
        self._running.send_signal(number)

    def wait_ended(self, within_s: float) -> int:
        """Its exit code, once it has ended by itself."""
        assert self._running is not None
        return self._running.wait(within_s)

    def tell(self, line: str) -> None:
        """Say something to it."""
        assert self._running is not None
        assert self._running.stdin is not None
        self._running.stdin.write(f"{line}\n")
        self._running.stdin.flush()

    def terminate(self) -> None:
        """SIGTERM, and the end that it asks for."""
        assert self._running is not None
        self._running.terminate()
        try:
            code = self._running.wait(40)
        except subprocess.TimeoutExpired:
            self._running.send_signal(signal.SIGABRT)  # its last words tell where every thread of it is
            code = self._running.wait(10)
        assert code == 0, self.log()

    def log(self) -> str:
        """The end of what it logged."""
        return self._log()[-3_000:]

    def close(self) -> None:
        """Whatever is left of it."""
        if self._running is not None and self._running.poll() is None:
            self._running.kill()
            self._running.send_signal(signal.SIGCONT)
            self._running.wait(10)

    def _log(self) -> str:
        return (self._directory / f"executor-{self._starts}.log").read_text(errors="replace")

    def _lines(self, start: str) -> list[str]:
        return [line for line in self._output if line.startswith(start)]

    def _gone(self) -> bool:
        return self._running is None or self._running.poll() is not None


def _read(process: subprocess.Popen[str], output: list[str]) -> None:
    assert process.stdout is not None
    while line := process.stdout.readline():
        output.append(line.strip())
