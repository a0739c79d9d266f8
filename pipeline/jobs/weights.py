"""Weights for the agents: rates of traffic and restores from the gold tables, published as records of a topic.

Only the weights of the cluster whose brokers are connected are written, as its agent reads them there. Invariants: only
records that differ from the topic's are written, so that a second run over the same tables
writes nothing; a key of this cluster that is not computed any more is deleted; records of other clusters are left
alone; where the tables have no row of the cluster nothing is deleted either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pyspark.sql import functions as F

from agent.errors import BadInput
from agent.telemetry.topic_records import to_records
from agent.values.number_format import counted
from agent.values.weights import GroupWeights, PartitionWeight, ReadWeight, RestoreWeight, TopicWeights, Weights
from config.foreign_text import harmless
from config.settings import Settings
from pipeline.kafka import TopicClient
from pipeline.schemas import gold, silver
from pipeline.tables import TableStore
from pipeline.topic_writer import KeyedRecord, write
from pipeline.transforms.weights import group_weights, topic_weights
from pipeline.weights_topic import make_topic, standing

_DIGITS = 4
"""Significant digits of a rate: it was measured no better, and few different weights are solved faster."""
_SAY_EVERY = 1_000
AHEAD_MS = 300_000
"""So far an agent's clock may run ahead of ours."""


class WeightRecords(NamedTuple):
    """What is to be published."""

    topics: int
    groups: int
    partitions: int
    records: Mapping[str, bytes]
    others: tuple[str, ...]
    """Other clusters that the tables know, sorted."""


def make_weights(tables: TableStore, cluster: str, *, window_ms: int, now_ms: int) -> WeightRecords:
    """The records of one cluster. Raises BadInput when the tables know nothing of it."""
    looks = tables.read(silver.LOOKS)
    # A clock that ran ahead for one look would put every hour since then out of the window.
    whole = looks.where((looks["taken_ms"] <= now_ms + AHEAD_MS) & looks["complete"])
    last_ms = {
        row["cluster"]: row["ms"] for row in whole.groupBy("cluster").agg(F.max("taken_ms").alias("ms")).collect()
    }
    others = tuple(sorted(last_ms.keys() - {cluster}))
    if cluster not in last_ms:
        raise BadInput(
            f"The tables have no complete look of cluster {cluster}",
            why=f"the tables hold {', '.join(others) or 'no cluster'}",
            todo="Check --tables and --bootstrap-servers, or run rackwise spark ingest first.",
        )
    traffic, reads, restores = (
        tables.read(table).where(F.col("cluster") == cluster)
        for table in (gold.PARTITION_TRAFFIC, gold.READ_TRAFFIC, gold.RESTORE_RATES)
    )
    topics = topic_weights(traffic, last_ms[cluster], window_ms)
    groups = group_weights(reads, restores, last_ms[cluster], window_ms)
    records: dict[str, bytes] = {}
    partitions = 0
    counts = {"topic": 0, "group": 0}
    for weights in (
        *_topics(cluster, topics.toLocalIterator(), now_ms),
        *_groups(cluster, groups.toLocalIterator(), now_ms),
    ):
        counts["topic" if isinstance(weights, TopicWeights) else "group"] += 1
        partitions += len(weights.partitions) if isinstance(weights, TopicWeights) else 0
        records.update(to_records(weights))
    return WeightRecords(counts["topic"], counts["group"], partitions, records, others)


def publish_weights(
    tables: TableStore,
    settings: Settings,
    *,
    now_ms: int,
    everything: bool = False,
    dry_run: bool = False,
    say: Callable[[str], None] = lambda _: None,
    show: Callable[[str], None] = lambda _: None,
) -> str:
    """Write what changed, or show it; the sentence about it.

    Raises BadInput, ClusterUnreachable and what `refusal` returns.
    """
    name = settings.weights_topic
    brokers = TopicClient(settings.kafka)
    topic = brokers.topic(name, settings.cluster.id)
    cluster = topic.cluster if topic is not None else brokers.cluster()
    made = make_weights(tables, cluster, window_ms=settings.weights.window_ms, now_ms=now_ms)
    where = f"{counted(made.partitions, 'partition')} in {counted(made.topics, 'topic')}"
    say(f"weights of {where}, and of {counted(made.groups, 'group')}")
    if made.others:
        say(f"not published, because they belong to other clusters: weights of {', '.join(made.others)}")
    reader = f"{settings.topics.prefix}-reader"
    present = {} if topic is None else standing(settings.kafka, topic.name, topic.partitions, group=reader)
    changes = changes_between(present, made.records, cluster, everything=everything)
    deleted = sum(change.value is None for change in changes)
    changed = counted(len(changes) - deleted, "record")
    if dry_run:
        for change in changes:
            # The key holds a name of any characters, a line feed among them; the value is JSON in ASCII.
            show(f"{harmless(change.key)} {'deleted' if change.value is None else change.value.decode()}")
        return f"to be written: {changed}, {deleted} to be deleted"
    if topic is None:
        topics = settings.topics
        make_topic(settings.kafka, name, replicas=topics.replication_factor, min_insync=topics.min_insync_replicas)
        say(f"created {name}")
    write(
        settings.kafka, name, changes, lambda number: None if number % _SAY_EVERY else say(f"{number} records written")
    )
    unchanged = len(made.records) - (len(changes) - deleted)
    return f"{changed} written to {name}, {deleted} deleted, {unchanged} unchanged"


def changes_between(
    present: Mapping[str, bytes], made: Mapping[str, bytes], cluster: str, *, everything: bool = False
) -> tuple[KeyedRecord, ...]:
    """The records that lead from the topic's state to the computed records, by key; other clusters' are left alone."""
    changed = [
        KeyedRecord(key, value)
        for key, value in sorted(made.items())
        if everything or not _same_weights(present.get(key), value)
    ]
    gone = [KeyedRecord(key, None) for key in sorted(present) if key.startswith(f"{cluster}/") and key not in made]
    return (*changed, *gone)


def _same_weights(before: bytes | None, after: bytes) -> bool:
    """Whether they differ at most in the time of computation."""
    if before is None:
        return False
    try:
        old, new = json.loads(before), json.loads(after)
    except (ValueError, RecursionError):
        return False
    return isinstance(old, dict) and {**old, "computed_ms": 0} == {**new, "computed_ms": 0}


def _topics(cluster: str, rows: Iterable[Any], now_ms: int) -> Iterator[Weights]:
    for row in rows:
        partitions = tuple(
            PartitionWeight(
                one["partition"],
                _rounded(one["bytes_per_s"]),
                _rounded(one["records_per_s"]),
                _rounded(one["bytes_per_record"]),
                one["confidence"],
            )
            for one in row["partitions"]
        )
        yield TopicWeights(cluster, row["topic"], now_ms, row["from_ms"], row["to_ms"], partitions)


def _groups(cluster: str, rows: Iterable[Any], now_ms: int) -> Iterator[Weights]:
    for row in rows:
        reads = tuple(
            ReadWeight(one["topic"], one["partition"], _rounded(one["bytes_per_s"]) or 0.0) for one in row["reads"]
        )
        restores = tuple(_restore(one) for one in row["restores"] or ())
        yield GroupWeights(cluster, row["group"], now_ms, row["from_ms"], row["to_ms"], reads, restores)


def _restore(row: Any) -> RestoreWeight:
    low, median, high = sorted(_rounded(row[name]) or 0.0 for name in ("low", "median", "high"))
    return RestoreWeight(row["subtopology"], low, median, high, row["samples"], _rounded(row["stalled_share"]))


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else max(0.0, float(f"{rate:.{_DIGITS}g}"))
