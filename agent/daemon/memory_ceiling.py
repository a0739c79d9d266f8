"""How much memory may the agent have where no setting says it? Less than what would get it killed without a word.

In a container nine tenths of the container's limit: the kernel ends a process at the limit, and this one ends itself
before that, with an exit code that names the reason. Elsewhere half of the machine's memory.
"""

from __future__ import annotations

from pathlib import Path

import psutil

_GROUPS = Path("/sys/fs/cgroup")
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""Of version 2 and of version 1; in a container the root of the tree is the container's own group."""


def default_ceiling_bytes(groups: Path = _GROUPS, machine_bytes: int | None = None) -> int:
    """Bytes of resident memory. Reads two small files; what cannot be read counts as no limit."""
    machine = machine_bytes if machine_bytes is not None else psutil.virtual_memory().total
    limits = [limit for name in _LIMITS if (limit := _number(groups / name)) is not None and limit < machine]
    return min(limits) * 9 // 10 if limits else machine // 2


def _number(file: Path) -> int | None:
    """Without a limit there is the word max (version 2) or a number beyond any memory (version 1)."""
    try:
        text = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() and 0 < len(text) < 20 and int(text) > 0 else None
