"""End a cluster when the process that started it is gone, however it went.

Runs as a process of its own, by path: standard input is a pipe from the owner, and its end is the sign. SIGKILL of the
owner closes the pipe too, which no handler in the owner could have told. A death signal by the kernel would not do:
it comes when the *thread* that started the broker ends.
Invariant: only two kinds of processes are ended: those of the manifest, known by pid and start time, and those that
carry the tag with this very directory, because one may have been started just before the manifest could name it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import psutil

_TICK_S = 0.02


def main(directory: Path) -> None:
    """Wait until the owner is gone, then end what the manifest names and remove the directory."""
    while sys.stdin.buffer.read(1):
        pass
    for pid, create_time in (*_named(directory / "manifest.json"), *_tagged(directory)):
        _kill(pid, create_time)
    shutil.rmtree(directory, ignore_errors=True)


def _named(path: Path) -> list[tuple[int, float]]:
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return []
    return [
        (member["process"]["pid"], member["process"]["create_time"])
        for member in manifest["members"]
        if member["process"] is not None
    ]


def _tagged(directory: Path) -> list[tuple[int, float]]:
    tag = f"-Drackwise.cluster={directory}"
    return [
        (process.pid, process.info["create_time"])
        for process in psutil.process_iter(("cmdline", "create_time"))
        if tag in (process.info["cmdline"] or ())
    ]


def _kill(pid: int, create_time: float) -> None:
    try:
        process = psutil.Process(pid)
        if abs(process.create_time() - create_time) <= _TICK_S:
            process.kill()
            process.wait(10)
    except (psutil.NoSuchProcess, psutil.TimeoutExpired):
        return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
