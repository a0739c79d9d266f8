"""Small files and folders next to the tables (this machine, HDFS, an object store), by Hadoop's file system."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopFiles:
    """The file systems that the session reaches. A path is a URI, or is in the session's default file system."""

    def __init__(self, spark: SparkSession) -> None:
        # The only way to Hadoop's file systems from Python, and so to wherever Spark itself writes.
        self._jvm: Any = spark._jvm  # noqa: SLF001
        self._conf: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        at = self._path(path)
        return bool(self._system(at).exists(at))

    def names(self, folder: str) -> tuple[str, ...]:
        """The entries of the folder, sorted; none when it does not exist."""
        at = self._path(folder)
        system = self._system(at)
        if not system.exists(at):
            return ()
        return tuple(sorted(str(status.getPath().getName()) for status in system.listStatus(at)))

    def read(self, path: str) -> str | None:
        """A small text file; None when it is not there."""
        at = self._path(path)
        system = self._system(at)
        if not system.exists(at):
            return None
        stream = system.open(at)
        try:
            data = self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)
        finally:
            stream.close()
        return bytes(data).decode("utf-8", "replace")

    def write(self, path: str, text: str) -> None:
        """A small text file that is not there yet, whole or not at all: under another name first, then renamed."""
        at, beside = self._path(path), self._path(_beside(path))
        system = self._system(at)
        stream = system.create(beside, True)  # noqa: FBT003 a Java call has no keywords
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        system.rename(beside, at)

    def modified_ms(self, path: str) -> int:
        """When a file or folder was last written, epoch milliseconds; now when it is not there any more."""
        at = self._path(path)
        system = self._system(at)
        if not system.exists(at):
            return time.time_ns() // 1_000_000
        return int(system.getFileStatus(at).getModificationTime())

    def move(self, source: str, target: str) -> bool:
        """Rename a folder; False when the target was there."""
        old, new = self._path(source), self._path(target)
        system = self._system(old)
        if system.exists(new):
            return False
        system.mkdirs(new.getParent())
        return bool(system.rename(old, new))

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with everything in it; fine when it is not there."""
        at = self._path(path)
        self._system(at).delete(at, True)  # noqa: FBT003 as above

    def absolute(self, path: str) -> str:
        """The path with its file system, for other processes."""
        at = self._path(path)
        return str(self._system(at).makeQualified(at).toString())

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, at: Any) -> Any:
        return at.getFileSystem(self._conf)


def _beside(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/_{name}.new" if folder else f"_{name}.new"
