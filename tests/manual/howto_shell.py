"""A shell in which the blocks of a document are run one after the other, as a reader would type them."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.command import ROOT, environment
from tests.manual.howto_blocks import HowToBlock

WITHIN_S, DRILLED_S = 90.0, 400.0
"""Of a block, and of one that is drilled."""
_PAUSE_S = 2.0
HURRY = {
    "RACKWISE_POLL_INTERVAL": "1s",
    "RACKWISE_PLAN_INTERVAL": "2s",
    "RACKWISE_RACKS_STABLE_FOR": "1s",
    "RACKWISE_RACKS_STABLE_POLLS": "1",
    "RACKWISE_HTTP_PORT": "0",
}
"""The test waits for seconds where a reader waits for minutes, and takes a free port."""


class HowToShell:
    """A bash of its own, with these folders in its path, in a folder of its own."""

    def __init__(self, folder: Path, path: Sequence[Path], variables: Mapping[str, str]) -> None:
        self._folder, self._steps, self._last = folder, 0, ""
        folder.mkdir(parents=True, exist_ok=True)
        places = os.pathsep.join([*map(str, path), os.environ["PATH"]])
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, cwd=folder,
            env=environment(**HURRY, **variables, PATH=places, PYTHONPATH=str(ROOT)), start_new_session=True,
        )  # fmt: skip

    def run(self, block: HowToBlock) -> None:
        """Run a block; fails with its output where it does not come to what its mark says."""
        until = time.monotonic() + (DRILLED_S if block.drilled else WITHIN_S)
        while True:
            output, failed = self._once(f"cd {ROOT}\n{block.text}cd - > /dev/null" if block.in_clone else block.text,
                                        until + WITHIN_S)  # fmt: skip
            wanted = [text for text in block.texts("until") if text not in output]
            if not wanted and not (failed and block.texts("until") and not block.may_fail):
                break
            assert time.monotonic() < until, f"{block.place} does not come to {wanted}: {failed}\n{output}"
            time.sleep(_PAUSE_S)
        told = f"{block.place}\n{block.text}{output}"
        assert block.may_fail or not failed, f"{failed}: {told}"
        assert [text for text in block.texts("shows") if text not in output] == [], told
        assert [text for text in block.texts("never") if text in output] == [], told

    def variable(self, name: str) -> str:
        """The value of a variable that a block has set."""
        output, _ = self._once(f'printf %s "${name}"', time.monotonic() + WITHIN_S)
        return output

    def close(self) -> None:
        """End it with all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _once(self, text: str, until: float) -> tuple[str, str]:
        """The output of a block, and the commands of it that failed."""
        self._steps += 1
        step, out, failed, done = (self._folder / f".{self._steps}.{kind}" for kind in ("sh", "out", "failed", "done"))
        # What fails is noted and the rest goes on, as at a reader's prompt.
        step.write_text(f"trap 'echo \"$? $BASH_COMMAND\" >> {failed}' ERR\n{text}\ntrap - ERR\n")
        assert self._process.stdin is not None
        self._process.stdin.write(f"source {step} > {out} 2>&1 < /dev/null; touch {done}\n")
        self._process.stdin.flush()
        while not done.exists():
            assert self._process.poll() is None, f"the shell ended: {text}\n{_text(out)}"
            assert time.monotonic() < until, f"it does not end: {text}\n{_text(out)}\nbefore: {self._last}"
            time.sleep(0.05)
        self._last = _text(out)
        return self._last, _text(failed)


def _text(file: Path) -> str:
    """What is in it; nothing where it is not there yet."""
    return file.read_text() if file.exists() else ""


def make_command(folder: Path) -> Path:
    """A folder with ``rackwise`` of this checkout."""
    folder.mkdir()
    script = folder / "rackwise"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m agent "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder
