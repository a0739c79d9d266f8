"""Where a session keeps the rows that it holds: in files, so that no executor that ends takes them with it.

On this machine that is a temporary folder; on a cluster one below the tables, which every executor reaches.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
import uuid
from typing import TYPE_CHECKING

from pipeline.files import DAY_MS, located

if TYPE_CHECKING:
    from pipeline.files import StoredFiles

SETTING = "spark.checkpoint.dir"
_BELOW_TABLES = "_held"
_LEFT_MS = 2 * DAY_MS
"""A folder in which nothing was written for this time is of a process that was killed."""


def temporary_folder() -> str:
    """A new folder of this process, which goes with it."""
    folder = tempfile.mkdtemp(prefix="rackwise-held-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def shared_folder(tables: str) -> str:
    """The name of a folder below the root of the tables, for one session; it begins with the time."""
    return located(f"{tables.rstrip('/')}/{_BELOW_TABLES}/{_now_ms()}-{uuid.uuid4().hex}")


def clear(files: StoredFiles, tables: str, own: str) -> None:
    """Delete the session's own folder, and those that killed processes left."""
    files.delete(own)
    root = f"{tables.rstrip('/')}/{_BELOW_TABLES}"
    old_ms = _now_ms() - _LEFT_MS
    for name in files.names(root):
        # Object stores know no time of a folder, and that of a folder on a disk is not that of what lies deep in it.
        if max(_begun_ms(name), files.newest_ms(f"{root}/{name}")) < old_ms:
            files.delete(f"{root}/{name}")


def _begun_ms(name: str) -> int:
    """When the folder's session began; 0 for a name without a time."""
    begun = name.partition("-")[0]
    return int(begun) if begun.isdecimal() else 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
