"""What ``topics`` and ``top`` print: one row per topic, one topic with its partitions and readers, or all of it."""

from __future__ import annotations

from typing import TypedDict

from agent.cli.documents.groups import GroupDocument
from agent.cli.documents.money import MoneyDocument, PricedDocument, RatesSource


class TopicReaderDocument(PricedDocument):
    """What the readers of one group in one rack read of the topic."""

    group: str
    rack: str | None
    """Null for readers whose rack is not known."""
    partitions: int
    unknown_reads: int


class LedHere(TypedDict):
    """Partitions whose leaders are in one rack."""

    rack: str | None
    """Null for partitions without a leader, and for leaders of unknown rack."""
    partitions: int


class TopicDocument(PricedDocument):
    """One topic: where it is led, what is written into it, who reads it from where; copies and reads across racks."""

    topic: str
    partitions: int
    leaders: list[LedHere]
    """By rack."""
    in_bytes_per_s: float | None
    """Bytes per second that producers write into it: at least, where ``in_unknown_partitions`` is above 0. Where
    producers stand is not visible, so this is in none of the figures about racks."""
    in_unknown_partitions: int
    replicate_bytes_per_s: float | None
    """Bytes per second that followers copy from leaders in other racks; at least, where some are unknown."""
    replicate_usd_per_day: float | None
    at_most_replicate_bytes_per_s: float | None
    """Those bytes per second at most; null: no bound is known."""
    replicate_unknown: int
    """Copies of which it is not known how many bytes cross."""
    read_bytes_per_s: float | None
    """Bytes per second that groups read from other racks; at least, where some are unknown."""
    read_usd_per_day: float | None
    at_most_read_bytes_per_s: float | None
    """Those bytes per second at most; null: no bound is known."""
    read_unknown: int
    """Reads of which it is not known how many bytes cross."""
    rates: RatesSource
    """Where bytes per second come from."""
    readers: list[TopicReaderDocument] | None
    """Null where none was seen and some may be hidden."""
    """Costliest first."""


class PartitionReaderDocument(TypedDict):
    """Who reads a partition."""

    group: str
    rack: str | None
    """Null where it is not known."""


class PartitionDocument(TypedDict):
    """One partition of the topic."""

    partition: int
    leader: int | None
    leader_rack: str | None
    replicas: list[int]
    """In assignment order: the first is the preferred leader."""
    replica_racks: list[str | None]
    """The rack of each of them; null where it is not known."""
    in_bytes_per_s: float | None
    readers: list[PartitionReaderDocument] | None
    """In the same way."""


class TopicDetailsDocument(TopicDocument):
    """One topic with its partitions."""

    partition_list: list[PartitionDocument]


class TopDocument(TypedDict):
    """One look of ``top``."""

    taken_ms: int
    """Epoch milliseconds of the look."""
    cluster: str
    not_seen: int
    """Parts of the cluster that did not answer; ``status`` names them."""
    money: MoneyDocument
    groups: list[GroupDocument]
    """The dearest first; groups without members are left out."""
    topics: list[TopicDocument]
    """Costliest first."""
