"""What goes wrong with an object store, as sentences; and the first look at one, before anything is read or written.

Only texts are looked at: Spark, Hadoop and the SDKs of the stores give no more. The message of a store is foreign text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent.errors import BadInput, ConfigError, NotAllowed, RackwiseError
from pipeline.object_stores import CONNECTORS, scheme_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_STORE = re.compile(
    r"fs\.s3a|S3AFile|awssdk|AWS Error|AWS\w*Exception|fs\.azure|hadoop\.fs\.gcs|s3a://|gs://|abfss?://"
)
_CAUSE = re.compile(r"(?:Caused by: )?(?:[a-z]\w*\.)+(\w*(?:Exception|Error)): ([^\n]{1,300})")
_MOST = 20_000
_MEANINGS: tuple[tuple[str, type[RackwiseError], str, str], ...] = (
    (
        r"ClassNotFoundException: (?:Class )?\S*\.fs\.|No FileSystem for scheme|UnsupportedFileSystemException",
        ConfigError,
        "Spark has no connector for the object store",
        "Leave spark.jars to rackwise, or add the connector's packages; docs/howto/object-store.md names them.",
    ),
    (
        r"UnknownStoreException|NoSuchBucket|bucket does not exist",
        BadInput,
        "The bucket does not exist",
        "Make it, or name another in spark.tables; rackwise makes none.",
    ),
    (
        r"NoAuthWithAWS|NoAwsCredentials|CredentialInitialization|Unable to load (?:AWS )?credentials",
        ConfigError,
        "There are no credentials for the object store",
        "Set them as spark.conf (fs.s3a.access.key, fs.s3a.secret.key), or in the environment.",
    ),
    (
        r"Access_?Denied|Invalid_?Access_?Key|Signature_?Does_?Not_?Match|Status Code: 403|HTTP status 403",
        NotAllowed,
        "The object store refuses access",
        "Check the credentials, and that they may list, read, write and delete objects of the bucket.",
    ),
)


def store_error(text: str) -> RackwiseError | None:
    """What the text of an error means, None where it tells of no object store."""
    head = text[:_MOST]
    if not _OF_STORE.search(head):
        return None
    why = innermost_cause(head, "it gave no reason")
    for words, kind, what, todo in _MEANINGS:
        if re.search(words, head, re.IGNORECASE):
            return kind(what, why=why, todo=todo)
    return RackwiseError(
        "The object store failed or did not answer",
        why=why,
        todo="Check its endpoint and the network, then start the command again: what was written is kept.",
    )


@contextmanager
def told(roots: Iterable[str]) -> Iterator[None]:
    """Errors of the block that tell of an object store are raised as sentences, where one of the roots is in one."""
    try:
        yield
    except RackwiseError:
        raise
    except Exception as error:
        found = store_error(f"{type(error).__name__}: {error}") if any(in_store(root) for root in roots) else None
        if found is None:
            raise
        raise found from error


def in_store(root: str) -> bool:
    """Whether the root is in an object store."""
    return scheme_of(root) in CONNECTORS


def reach(spark: SparkSession, root: str) -> None:
    """Raise RackwiseError unless both ways to the root lead there: that of Python, and Spark's connector."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 an optional extra

    from pipeline.files import StoredFiles  # noqa: PLC0415 as above

    if not in_store(root):
        return
    if not StoredFiles(spark).has_bucket(root):
        raise BadInput(
            f"{root} is in a bucket that does not exist",
            why="the object store does not know it",
            todo="Make it, or name another in spark.tables; rackwise makes none.",
        )
    try:
        spark.read.text(f"{root.rstrip('/')}/_rackwise-was-here")
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise


def innermost_cause(text: str, otherwise: str) -> str:
    """The innermost cause that a text of Java names, in one line; ``otherwise`` where the text is empty."""
    causes = _CAUSE.findall(text)
    if causes:
        name, message = causes[-1]
        return f"{name}: {message.strip()}"
    return next((line.strip() for line in text.splitlines() if line.strip()), otherwise)[:300]
