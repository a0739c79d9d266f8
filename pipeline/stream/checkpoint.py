"""Position of a stream: Spark's own checkpoint, and next to it the topic, cluster and tables that it belongs to.

Invariants: a checkpoint belongs to one topic of one cluster and to one set of tables; with anything else it is refused,
because its offsets would mean other records. A table that has rows of a topic of a cluster is never filled with it from
a new checkpoint: every record would be there twice.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from agent.errors import BadInput, RackwiseError, WrongCluster
from pipeline.files import StoredFiles

_MARK = "rackwise.json"
_LOG_VERSION = "v1"


class StreamIdentity(NamedTuple):
    """Whose a checkpoint is."""

    query: str
    topic: str
    topic_id: str
    cluster: str
    tables: str
    """Root of the tables, with its file system."""
    format: str


class OffsetSpan(NamedTuple):
    """What one batch reads."""

    start: dict[int, int]
    """Partition -> first offset; a partition that is new is missing."""
    end: dict[int, int]
    """Partition -> offset after the last."""
    watermark_ms: int | None
    """Event time up to which all events are read; None before the first."""
    time_ms: int
    """When the batch was decided; the same when it is tried again."""

    @property
    def offsets(self) -> int:
        """Number of offsets that it covers."""
        return sum(end - self.start.get(partition, 0) for partition, end in self.end.items())


class LastBatches(NamedTuple):
    """Numbers of a stream's last batches."""

    begun: int | None
    """None before the first."""
    written: int | None
    """None before the first is written."""


class TopicSources:
    """The clusters whose topics filled the tables, a file for each topic of a cluster in the folder ``path``.

    Rows do not tell: events name the cluster that an agent looked at, and what is in quarantine names none.
    """

    def __init__(self, files: StoredFiles, path: str) -> None:
        self._files = files
        self._path = path

    def clusters(self, topic: str) -> frozenset[str]:
        """The clusters whose topic of that name was read. Raises BadInput for a file that cannot be read."""
        found = (self._read(f"{self._path}/{name}") for name in self._files.names(self._path) if name.endswith(".json"))
        return frozenset(cluster for name, cluster in found if name == topic)

    def add(self, topic: str, cluster: str) -> None:
        """That topic of that cluster as well."""
        text = json.dumps({"topic": topic, "cluster": cluster})
        path = f"{self._path}/{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        if not self._files.exists(path):
            self._files.write(path, text)

    def _read(self, path: str) -> tuple[str, str]:
        try:
            of = json.loads(self._files.read(path) or "")
            return str(of["topic"]), str(of["cluster"])
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(
                f"{path} cannot be read",
                why=f"it should name a topic and its cluster: {error!r}",
                todo="Delete it: it is written again once ingest of that topic starts.",
            ) from None


class StreamCheckpoint:
    """The checkpoint of one stream, in the folder ``path``."""

    def __init__(self, files: StoredFiles, path: str) -> None:
        self._files = files
        self.path = path

    def claim(self, identity: StreamIdentity, has_rows: Callable[[], bool]) -> str:
        """The name under which this stream appends to tables, the same as long as the checkpoint exists.

        Raises BadInput and WrongCluster for a checkpoint of something else, BadInput when there is none but the table
        has rows of the topic.
        """
        mark = f"{self.path}/{_MARK}"
        text = self._files.read(mark)
        if text is not None:
            return self._claimed(identity, text)
        if self._files.names(f"{self.path}/offsets"):
            raise BadInput(
                f"{self.path} is the checkpoint of another query", why=f"it has no {_MARK}", todo="Name another folder."
            )
        if has_rows():
            raise BadInput(
                f"The tables have rows of {identity.topic} of this cluster, but there is no checkpoint at {self.path}",
                why="without it the offsets read so far are unknown, and every record could be written twice",
                todo="Restore the checkpoint (spark.checkpoints), or start with another, empty root (--tables).",
            )
        writer = f"{identity.query}-{uuid.uuid4().hex[:12]}"
        self._files.write(mark, json.dumps({"writer": writer, **identity._asdict()}))
        return writer

    def identity(self) -> StreamIdentity | None:
        """Whose it is; None where there is none. Raises BadInput for one that cannot be read."""
        text = self._files.read(f"{self.path}/{_MARK}")
        return None if text is None else self._read_mark(text)[0]

    def last_batches(self) -> LastBatches:
        """The numbers of the last batches, as far as there are any."""
        return LastBatches(self._last("offsets"), self._last("commits"))

    def written_ms(self, number: int) -> int:
        """When that batch was finished, epoch milliseconds."""
        return self._files.modified_ms(f"{self.path}/commits/{number}")

    def span(self, number: int) -> OffsetSpan:
        """What that batch reads, as Spark wrote it down before it began."""
        metadata, end = self._decided(number)
        start = self._decided(number - 1)[1] if number > 0 else {}
        watermark = int(metadata["batchWatermarkMs"])
        return OffsetSpan(start, end, watermark or None, int(metadata["batchTimestampMs"]))

    def position(self) -> dict[int, int]:
        """Partition -> offset of the next record, after the last batch that was finished; empty for none."""
        done = self._last("commits")
        return {} if done is None else self._decided(done)[1]

    def _last(self, folder: str) -> int | None:
        """The highest number in one of Spark's logs."""
        numbers = [int(name) for name in self._files.names(f"{self.path}/{folder}") if name.isdecimal()]
        return max(numbers, default=None)

    def _read_mark(self, text: str) -> tuple[StreamIdentity, str]:
        """Whose it is, and the name of its writer."""
        try:
            mark = json.loads(text)
            return StreamIdentity(*(str(mark[name]) for name in StreamIdentity._fields)), str(mark["writer"])
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(
                f"{self.path}/{_MARK} cannot be read", why=repr(error), todo="Name another folder."
            ) from None

    def _claimed(self, wanted: StreamIdentity, text: str) -> str:
        claimed, writer = self._read_mark(text)
        if claimed == wanted:
            return writer
        if claimed.cluster != wanted.cluster:
            raise WrongCluster(
                f"The brokers belong to cluster {wanted.cluster}",
                why=f"{self.path} belongs to {claimed.topic} of cluster {claimed.cluster}",
                todo="Check bootstrap.servers; the ingest of each cluster has its own spark.checkpoints.",
            )
        if claimed.topic == wanted.topic and claimed.topic_id != wanted.topic_id:
            raise BadInput(
                f"Topic {wanted.topic} is not the one that was read before",
                why="it was deleted and created again, so the offsets read so far belong to other records",
                todo="Start with another, empty root (--tables); the tables of the former topic are kept.",
            )
        odd = [name for name in StreamIdentity._fields if getattr(claimed, name) != getattr(wanted, name)]
        others = ", ".join(f"{name} {getattr(claimed, name)}, not {getattr(wanted, name)}" for name in odd)
        raise BadInput(
            f"{self.path} is the checkpoint of another query", why=f"it is of {others}", todo="Name another folder."
        )

    def _decided(self, number: int) -> tuple[dict[str, Any], dict[int, int]]:
        """Metadata and ends of a batch in Spark's log of offsets."""
        text = self._files.read(f"{self.path}/offsets/{number}") or ""
        version, _, rest = text.partition("\n")
        lines = rest.splitlines()
        if version != _LOG_VERSION or len(lines) != 2:
            raise RackwiseError(
                f"{self.path}/offsets/{number} cannot be read",
                why=f"its layout is {version[:20]!r}, and {_LOG_VERSION!r} is supported",
                todo="Use the Spark that rackwise names in its extra.",
            )
        by_topic = json.loads(lines[1])
        ends = {int(number): int(end) for partitions in by_topic.values() for number, end in partitions.items()}
        return json.loads(lines[0]), ends
