"""The command line as a person runs it: a process of its own, with nothing of the environment's settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

RACKWISE = (sys.executable, "-m", "agent")
ROOT = Path(__file__).parents[1]


class Done(NamedTuple):
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Its answer."""
        return json.loads(self.stdout)


def environment(**more: str) -> dict[str, str]:
    """This process's, without settings of rackwise."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RACKWISE_")}
    return {**kept, **more}


def rackwise(*arguments: str, within_s: float = 90, **more: str) -> Done:
    """Run ``rackwise`` with these arguments and environment variables."""
    done = subprocess.run(
        [*RACKWISE, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=within_s, check=False,
        cwd=ROOT, env=environment(**more),
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)
