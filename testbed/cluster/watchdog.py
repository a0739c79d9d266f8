"""Ends a cluster when the process that started it is gone, also after SIGKILL.

Runs as a process of its own, by path: standard input is a pipe from the owner, and its end is the sign. SIGKILL of the
owner closes the pipe too, where no handler of the owner runs. A death signal by the kernel would not do:
it comes when the *thread* that started the broker ends.
Invariant: only processes are ended that carry the tag with this very directory.
"""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

# A broker whose start was under way shows its tag only now.
_LOOK_AGAIN_AFTER_S = 1.0
_WAIT_S = 10.0


def main(directory: Path) -> None:
    """Wait until the owner is gone, then end the cluster's processes and remove its directory."""
    while sys.stdin.buffer.read(1):
        pass
    if not directory.exists():
        # The owner has cleared it in order.
        return
    _end(_tagged(directory))
    time.sleep(_LOOK_AGAIN_AFTER_S)
    _end(_tagged(directory))
    shutil.rmtree(directory, ignore_errors=True)


def _tagged(directory: Path) -> list[psutil.Process]:
    tag = f"-Drackwise.cluster={directory}"
    return [one for one in psutil.process_iter(("cmdline",)) if tag in (one.info["cmdline"] or ())]


def _end(processes: list[psutil.Process]) -> None:
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(processes, timeout=_WAIT_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
