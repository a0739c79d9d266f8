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

from agent.errors import BadInput, FatalFailure, GaveUp, RackwiseError
from pipeline.object_stores import WITH_FOLDERS, s3_setting
from pipeline.store_errors import store_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3_OPTIONS = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint": "endpoint_override",
    "endpoint.region": "region",
    "assumed.role.arn": "role_arn",
}
"""Option of Hadoop's S3A -> of Arrow's file system. Without credentials both look at the same places."""
_AZURE_KEY = "spark.hadoop.fs.azure.account.key."
_TRIES = 6
"""How often a request to S3 is sent at most, at growing distances: a quarter of a minute in all."""
_TURNS, _PAUSE_S = 3, 1.0
"""How often what failed in a store all the same is done once more."""
DAY_MS = 86_400_000


def located(path: str) -> str:
    """The path with its file system, as Spark and other processes understand it."""
    return path if ":" in path.partition("/")[0] else f"file:{Path(path).absolute()}"


def renames_folders(path: str) -> bool:
    """Whether a folder is renamed whole there. Object stores have no folders."""
    return _scheme(path) in WITH_FOLDERS


class StoredFiles:
    """The files that a session reaches. A path is a URI, or is on this machine."""

    def __init__(self, spark: SparkSession) -> None:
        self._setting: Callable[[str], str | None] = lambda name: spark.conf.get(name, None)
        self._systems: dict[str, arrow.FileSystem] = {}

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        return self._info(path).type is not arrow.FileType.NotFound

    def has_bucket(self, path: str) -> bool:
        """Whether the bucket or container of an object is there."""
        system, at = self._at(path)
        found = _done(path, system.get_file_info, at.partition("/")[0])
        return found.type is not arrow.FileType.NotFound

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
        """A small text file that is not there yet, whole or not at all.

        Where files have folders it has another name first, and is then renamed; an object is there once all of it is.
        """
        (system, at), (_, beside) = self._at(path), self._at(_beside(path))
        if not renames_folders(path):
            _done(path, _put, system, at, text)
            return
        self._make_parent(path)
        _done(path, _put, system, beside, text)
        _done(path, system.move, beside, at)

    def modified_ms(self, path: str) -> int:
        """When a file or folder was last written, epoch milliseconds; now when it is not there any more."""
        written_ns: int | None = self._info(path).mtime_ns
        return (time.time_ns() if written_ns is None else written_ns) // 1_000_000

    def newest_ms(self, folder: str) -> int:
        """When the newest of the files in the folder and below was written, epoch milliseconds; 0 without any."""
        system, at = self._at(folder)
        below = arrow.FileSelector(at, allow_not_found=True, recursive=True)
        found = _done(folder, system.get_file_info, below)
        return max((one.mtime_ns or 0 for one in found if one.type is arrow.FileType.File), default=0) // 1_000_000

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
        container = "" if scheme in WITH_FOLDERS else host.partition("@")[0]
        return system, f"{container}/{below}".rstrip("/") or "/"

    def _system(self, scheme: str, host: str) -> arrow.FileSystem:
        if scheme == "file":
            return arrow.LocalFileSystem()
        made = {"s3a": self._s3, "abfs": self._azure, "abfss": self._azure}.get(scheme, _by_uri(scheme))
        try:
            return _done(f"{scheme}://{host}", made, host)
        except ValueError as error:
            raise BadInput(
                f"{scheme}://{host} cannot be used for tables",
                why=str(error).splitlines()[0],
                todo="Name a folder, or a URI of hdfs, s3a, gs or abfss.",
            ) from error

    def _s3(self, bucket: str) -> arrow.S3FileSystem:
        """As the session sets S3A; the bucket's region is asked for where neither it nor an endpoint is set."""
        given = {name: s3_setting(self._setting, bucket, of) for of, name in _S3_OPTIONS.items()}
        options: dict[str, Any] = {name: value for name, value in given.items() if value}
        scheme, both, host = options.get("endpoint_override", "").partition("://")
        if s3_setting(self._setting, bucket, "connection.ssl.enabled") == "false":
            options["scheme"] = "http"
        options |= {"scheme": scheme, "endpoint_override": host} if both else {}
        if not options.keys() & {"endpoint_override", "region"}:
            options["region"] = arrow.resolve_s3_region(bucket)
        options.setdefault("region", "us-east-1")
        again = arrow.AwsStandardS3RetryStrategy(max_attempts=_TRIES)
        # Delayed: what is small is sent in one request, not as an upload of several parts.
        options |= {"request_timeout": 60, "connect_timeout": 10, "allow_delayed_open": True}
        return arrow.S3FileSystem(**options, retry_strategy=again)

    def _azure(self, host: str) -> arrow.FileSystem:
        """With the account's key where the session sets it; else Azure's own places are asked for credentials."""
        account = host.partition("@")[2]
        key = self._setting(f"{_AZURE_KEY}{account}") or self._setting(f"{_AZURE_KEY}{account.partition('.')[0]}")
        return arrow.AzureFileSystem(account_name=account.partition(".")[0], account_key=key)


def _by_uri(scheme: str) -> Callable[[str], arrow.FileSystem]:
    return lambda host: arrow.FileSystem.from_uri(f"{scheme}://{host}/")[0]


def _scheme(path: str) -> str:
    return located(path).partition(":")[0]


def _done(path: str, action: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What the action returns. Raises RackwiseError where the file system refuses it or does not answer.

    A store is asked again, as its SDK does not send all that fails again: what is done here may be done twice.
    """
    tries = 1 if renames_folders(path) else _TURNS
    for number in range(1, tries + 1):
        try:
            return action(*arguments, **named)
        except OSError as error:
            problem = _problem(path, error)
            if number == tries or isinstance(problem, FatalFailure | GaveUp):
                raise problem from error
            time.sleep(_PAUSE_S)
    raise AssertionError


def _problem(path: str, error: OSError) -> RackwiseError:
    of_store = None if renames_folders(path) else store_error(f"{path}: {error}")
    return of_store or RackwiseError(
        f"{path} cannot be read or written",
        why=str(error).splitlines()[0],
        todo="Check that the file system answers, and the rights of this user there.",
    )


def _get(system: arrow.FileSystem, at: str) -> str:
    with system.open_input_stream(at) as stream:
        return bytes(stream.read()).decode("utf-8", "replace")


def _put(system: arrow.FileSystem, at: str, text: str) -> None:
    with system.open_output_stream(at) as stream:
        stream.write(text.encode())


def _beside(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/_{name}.new" if folder else f"_{name}.new"
