"""Object stores that tables may be in: the connector that a scheme asks for, its settings, and roots that do not fit.

Two writers of one table never take the same version of its log, which Delta leaves to the store. Delta's own log for
S3 looks first and writes then, which loses commits of several drivers; in its place is one that puts a version's file
on condition that there is none (``jvm/tables``). Google's store and Azure's have such a PUT, and Delta
uses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from agent.errors import ConfigError

CONNECTORS = {"s3a": "s3a", "gs": "gs", "abfs": "abfs", "abfss": "abfs"}
"""Scheme -> the set of jars that has its connector."""
WITH_FOLDERS = ("file", "hdfs", "viewfs")
"""Schemes of file systems that rename folders."""
_ALIASES = {"s3": "s3a", "s3n": "s3a", "wasb": "abfs", "wasbs": "abfss", "gcs": "gs", "az": "abfss"}
LOG_STORE = "spark.delta.logStore.s3a.impl"
_SETTINGS = {
    "s3a": {
        LOG_STORE: "rackwise.tables.ConditionalLogStore",
        # Hadoop's own time-outs add up to hours; a store that is gone is to end a command with its sentence.
        "spark.hadoop.fs.s3a.connection.timeout": "60s",
        "spark.hadoop.fs.s3a.connection.establish.timeout": "10s",
    },
    "gs": {"spark.hadoop.fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"},
    "abfs": {},
}
_AZURE_HOST = re.compile(r"[^@/:]+@[^@/:]+\.dfs\.[^@/]+")


def scheme_of(root: str) -> str:
    """The scheme of a URI in lower case; ``file`` for a path."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", root)
    return found[1].lower() if found else "file"


def connectors(roots: Iterable[str]) -> tuple[str, ...]:
    """The sets of jars that these roots need beyond Spark's own, sorted."""
    return tuple(sorted({CONNECTORS[scheme] for scheme in map(scheme_of, roots) if scheme in CONNECTORS}))


def store_settings(roots: Iterable[str]) -> dict[str, str]:
    """Spark's settings for these stores, beside those of the user."""
    return {name: value for connector in connectors(roots) for name, value in _SETTINGS[connector].items()}


def check_root(root: str, conf: Mapping[str, str], name: str = "spark.tables") -> None:
    """Raise ConfigError, with what to write instead, for a root that no file system can have."""
    scheme = scheme_of(root)
    if scheme in _ALIASES:
        raise ConfigError(f"{name} begins with {scheme}:", why=f"the connector's scheme is {_ALIASES[scheme]}:")
    if scheme in WITH_FOLDERS:
        return
    if scheme not in CONNECTORS:
        raise ConfigError(
            f"{name} has the scheme {scheme}, which rackwise does not know",
            why=f"a folder is expected, or a URI of {', '.join((*WITH_FOLDERS, *CONNECTORS))}",
        )
    host = re.match(r"[^:]+://([^/]*)", root)
    if host is None or not host[1]:
        raise ConfigError(
            f"There is no bucket in {name}", why=f"it begins with {scheme}: but not with {scheme}://BUCKET/"
        )
    _check_host(scheme, host[1], name)
    if scheme == "s3a":
        _check_s3(host[1], conf)


def _check_host(scheme: str, host: str, name: str) -> None:
    if CONNECTORS[scheme] == "abfs":
        if not _AZURE_HOST.fullmatch(host):
            raise ConfigError(
                f"There is no container of an account in {name}",
                why=f"{scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH is expected",
            )
    elif "@" in host:
        raise ConfigError(
            f"{name} has credentials in it",
            why="a URI turns up in logs and process lists",
            todo="Set fs.s3a.access.key and fs.s3a.secret.key of spark.conf, or use the environment.",
        )


def _check_s3(bucket: str, conf: Mapping[str, str]) -> None:
    given = {short: s3_setting(conf.get, bucket, short) for short in ("access.key", "secret.key")}
    missing = [short for short, value in given.items() if not value]
    if len(missing) == 1:
        (there,) = given.keys() - set(missing)
        raise ConfigError(
            f"spark.hadoop.fs.s3a.{missing[0]} is not set",
            why=f"fs.s3a.{there} is, and each is of no use without the other",
            todo="Set both, for example as ${env:NAME}, or none: then the environment and the instance are asked.",
        )
    if (s3_setting(conf.get, bucket, "create.conditional.enabled") or "true").lower() == "false":
        raise ConfigError(
            "fs.s3a.create.conditional.enabled is false",
            why="two writers at once would overwrite each other's commits",
            todo="Leave it out. The store must support If-None-Match on PUT.",
        )


def s3_setting(setting: Callable[[str], str | None], bucket: str, name: str) -> str | None:
    """A setting of S3A by its short name, of this bucket or of all; None when it is not set."""
    for full in (f"spark.hadoop.fs.s3a.bucket.{bucket}.{name}", f"spark.hadoop.fs.s3a.{name}"):
        value = setting(full)
        if value:
            return str(value)
    return None
