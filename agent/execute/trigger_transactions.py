"""Do a group's members write in transactions? What the transaction coordinators show, read for one group. Pure.

Kafka Streams names its transactional ids after the application (``<application>-<process>-<thread>``, before KIP-447
``<application>-<task>``). Other clients name them as they please; but a transaction that commits a group's offsets
includes the partition of ``__consumer_offsets`` that holds them, which several groups share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from assignors.problem import TopicPartition

_OF_STREAMS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+|\d+_\d+")


def transactions_of(
    group_id: str,
    ids: Iterable[str],
    ongoing: Mapping[str, tuple[TopicPartition, ...]],
    offsets: TopicPartition,
    *,
    streams: bool,
) -> str | None:
    """What shows that the group's members write in transactions, as a clause; None where nothing does.

    ``ongoing`` holds the partitions of each ongoing transaction, ``offsets`` is the partition of the group's offsets.
    """
    if streams:
        own = sorted(name for name in ids if _is_of(group_id, name))
        if own:
            return f"the application writes in transactions, such as {own[0]}"
    touching = sorted(name for name, partitions in ongoing.items() if offsets in partitions)
    if touching:
        return f"the transaction {touching[0]} includes {offsets}, which holds the group's offsets"
    return None


def offsets_partition(group_id: str, partitions: int) -> int:
    """The partition of ``__consumer_offsets`` that holds a group's offsets: Java's hash of the name."""
    value = 0
    units = group_id.encode("utf-16-be", errors="surrogatepass")
    for at in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    # As Kafka: the smallest number has no absolute value, and counts as 0.
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def _is_of(application: str, transactional_id: str) -> bool:
    begin = f"{application}-"
    return transactional_id.startswith(begin) and _OF_STREAMS.fullmatch(transactional_id[len(begin) :]) is not None
