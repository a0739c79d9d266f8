"""Small files and folders next to the tables (this machine, HDFS, an object store), by Arrow's file systems.

No Java is asked, so they are there below every kind of session. A path without a scheme is on this machine, for Spark
as well: `located` gives both the same place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import fs as arrow

from agent.errors import BadInput, RackwiseError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3 = ("s3a", "s3n", "s3")
_S3_OPTIONS = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint": "endpoint_override",
    "endpoint.region": "region",
}
"""Option of Hadoop's S3A -> of Arrow's file system. Without credentials both look at the same places."""
_WITH_FOLDERS = ("file", "hdfs", "viewfs")


def located(path: str) -> str:
    """The path with its file system, as Spark and other processes understand it."""
    return path if ":" in path.partition("/")[0] else f"file:{Path(path).absolute()}"


def renames_folders(path: str) -> bool:
    """Whether a folder is renamed whole there. Object stores have no folders."""
    return _scheme(path) in _WITH_FOLDERS


class StoredFiles:
    """The files that a session reaches. A path is a URI, or is on this machine."""

    def __init__(self, spark: SparkSession) -> None:
        self._setting: Callable[..., str | None] = spark.conf.get
        self._systems: dict[str, arrow.FileSystem] = {}

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        return self._info(path).type is not arrow.FileType.NotFound

    def names(self, folder: str) -> tuple[str, ...]:
        """The entries of the folder, sorted; none when it does not exist. Hadoop's checksums are left out."""
        system, at = self._at(folder)
        found = _done(folder, system.get_file_info, arrow.FileSelector(at, allow_not_found=True))
        return tuple(sorted(one.base_name for one in found if not one.base_name.endswith(".crc")))

    def read(self, path: str) -> str | None:
        """A small text file; None when it is not there."""
        if self._info(path).type is not arrow.FileType.File:
            return None
        text: str = _done(path, _get, *self._at(path))
        return text

    def write(self, path: str, text: str) -> None:
        """A small text file that is not there yet, whole or not at all: under another name first, then renamed."""
        (system, at), (_, beside) = self._at(path), self._at(_beside(path))
        self._make_parent(path)
        _done(path, _put, system, beside, text)
        _done(path, system.move, beside, at)

    def modified_ms(self, path: str) -> int:
        """When a file or folder was last written, epoch milliseconds; now when it is not there any more."""
        written_ns: int | None = self._info(path).mtime_ns
        return (time.time_ns() if written_ns is None else written_ns) // 1_000_000

    def move(self, source: str, target: str) -> bool:
        """Rename a folder; False when the target was there."""
        if self.exists(target):
            return False
        self._make_parent(target)
        (system, old), (_, new) = self._at(source), self._at(target)
        _done(target, system.move, old, new)
        return True

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with everything in it; fine when it is not there."""
        system, at = self._at(path)
        kind = self._info(path).type
        if kind is arrow.FileType.Directory:
            _done(path, system.delete_dir, at)
        elif kind is arrow.FileType.File:
            _done(path, system.delete_file, at)

    def _info(self, path: str) -> arrow.FileInfo:
        system, at = self._at(path)
        return _done(path, system.get_file_info, at)

    def _make_parent(self, path: str) -> None:
        system, at = self._at(path)
        if renames_folders(path):
            _done(path, system.create_dir, at.rpartition("/")[0], recursive=True)

    def _at(self, path: str) -> tuple[arrow.FileSystem, str]:
        """The file system, made once for each host or bucket, and the path within it."""
        scheme, rest = _scheme(path), located(path).partition(":")[2]
        host, _, below = rest.removeprefix("//").partition("/") if rest.startswith("//") else ("", "", rest[1:])
        system = self._systems.get(f"{scheme}://{host}")
        if system is None:
            system = self._systems[f"{scheme}://{host}"] = self._system(scheme, host)
        container = "" if scheme in _WITH_FOLDERS else host.partition("@")[0]
        return system, f"{container}/{below}".rstrip("/") or "/"

    def _system(self, scheme: str, host: str) -> arrow.FileSystem:
        if scheme == "file":
            return arrow.LocalFileSystem()
        if scheme in _S3:
            return _done(f"{scheme}://{host}", self._s3, host)
        try:
            return _done(f"{scheme}://{host}", arrow.FileSystem.from_uri, f"{scheme}://{host}/")[0]
        except ValueError as error:
            raise BadInput(
                f"{scheme}://{host} cannot be used for tables",
                why=str(error).splitlines()[0],
                todo="Name a folder, or a URI of hdfs, s3a, gs or abfss.",
            ) from error

    def _s3(self, bucket: str) -> arrow.S3FileSystem:
        """As the session sets S3A; the bucket's region is asked for where neither it nor an endpoint is set."""
        given = {name: self._setting(f"spark.hadoop.fs.s3a.{of}", None) for of, name in _S3_OPTIONS.items()}
        options: dict[str, Any] = {name: value for name, value in given.items() if value}
        if options and self._setting("spark.hadoop.fs.s3a.connection.ssl.enabled", "true") == "false":
            options["scheme"] = "http"
        scheme, both, host = options.get("endpoint_override", "").partition("://")
        options |= {"scheme": scheme, "endpoint_override": host} if both else {}
        if not options.keys() & {"endpoint_override", "region"}:
            options["region"] = arrow.resolve_s3_region(bucket)
        return arrow.S3FileSystem(**options)


def _scheme(path: str) -> str:
    return located(path).partition(":")[0]


def _done(path: str, action: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What the action returns. Raises RackwiseError where the file system refuses it or does not answer."""
    try:
        return action(*arguments, **named)
    except OSError as error:
        raise RackwiseError(
            f"{path} cannot be read or written",
            why=str(error).splitlines()[0],
            todo="Check that the file system answers, and the rights of this user there.",
        ) from error


def _get(system: arrow.FileSystem, at: str) -> str:
    with system.open_input_stream(at) as stream:
        return bytes(stream.read()).decode("utf-8", "replace")


def _put(system: arrow.FileSystem, at: str, text: str) -> None:
    with system.open_output_stream(at) as stream:
        stream.write(text.encode())


def _beside(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/_{name}.new" if folder else f"_{name}.new"
