"""Regular files that an operator names, opened without waiting and read up to a limit.

A pipe or device could block or never end, and a sparse file may be huge: each is an `OSError` with such a ``strerror``.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


def open_plain(path: str | Path) -> BinaryIO:
    """The file, open for reading; a symbolic link is followed. Raises OSError, also for what is no regular file."""
    name = os.fspath(path)
    if "\0" in name:
        raise OSError(errno.EINVAL, "its name holds a null character", name)
    _check(os.stat(name).st_mode, name)  # noqa: PTH116 before it is opened: opening a device may do something
    descriptor = os.open(name, _FLAGS)
    try:
        _check(os.fstat(descriptor).st_mode, name)  # it may have been replaced in between
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_plain(path: str | Path, most_bytes: int) -> bytes:
    """All bytes of the file. Raises OSError, also for what is no regular file or larger."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(most_bytes + 1) if size <= most_bytes else b""
    if max(size, len(content)) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {_shown(most_bytes)}", os.fspath(path))
    return content


def why_not_plain(path: str) -> str | None:
    """Why a library that opens this file by itself must not be let; None also where there is no such file."""
    try:
        _check(os.stat(path).st_mode, path)  # noqa: PTH116 as above
    except (OSError, ValueError) as error:
        return error.strerror if isinstance(error, OSError) and error.errno == errno.EINVAL else None
    return None


def why_not_appended(path: str) -> str | None:
    """Why lines cannot be appended to it, as a pipe waits for a reader; None for a device and where nothing is."""
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)  # noqa: PTH116 as above
    except (OSError, ValueError):
        return None
    return _not_regular(kind) if kind in {stat.S_IFDIR, stat.S_IFIFO, stat.S_IFSOCK} else None


def _check(mode: int, name: str) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, _not_regular(stat.S_IFMT(mode)), name)


def _not_regular(kind: int) -> str:
    return f"it is {_KINDS.get(kind, 'no file')}, and a regular file is expected"


def _shown(size: int) -> str:
    return f"{size // 2**20} MiB" if size >= 2**20 else f"{size:,} bytes"
