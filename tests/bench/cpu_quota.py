"""So much CPU for a process and all that it starts, by a Linux control group: one machine does for several."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Self

_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000


class CpuQuota:
    """A control group with ``cores`` of CPU; its processes must have ended before the context does."""

    def __init__(self, name: str, cores: float) -> None:
        self._quota_us = round(cores * _PERIOD_US)
        first = _GROUPS / "cpu"  # version 1 has a tree for each resource
        self._is_first_version = first.is_dir()
        self._folder = (first if self._is_first_version else _GROUPS) / name

    def __enter__(self) -> Self:
        try:
            self._folder.mkdir()
            if self._is_first_version:
                (self._folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
                (self._folder / "cpu.cfs_quota_us").write_text(str(self._quota_us))
            else:
                (self._folder / "cpu.max").write_text(f"{self._quota_us} {_PERIOD_US}")
        except OSError as error:
            with suppress(OSError):
                self._folder.rmdir()
            raise SystemExit(f"no control group limits CPU here; root may make one: {error}") from error
        return self

    def __exit__(self, *_error: object) -> None:
        until = time.monotonic() + 10
        while True:  # what was killed a moment ago is in it until it is gone
            try:
                self._folder.rmdir()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
            else:
                return

    def take(self, pid: int) -> None:
        """The process, and what it starts from now on."""
        (self._folder / "cgroup.procs").write_text(str(pid))
