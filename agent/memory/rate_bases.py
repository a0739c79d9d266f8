"""Keeps the looks from which byte rates are taken, and learns how large a record is.

End offsets of two looks give records per second. Two bases are kept, so that there is always one that is old enough to
be smooth and young enough to be true. Sizes on disk are asked less often than offsets, so bytes per record are learned
from looks in which both were asked, and from no other.

Above `MAX_PARTITIONS` nothing is kept: the memory travels with every cycle, and there rates come from the pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.values.memory import Memory, RateBase
from agent.values.snapshot import Snapshot

MAX_PARTITIONS = 10_000
WINDOW_MS = 60_000
"""A base for rates is replaced when it is twice as old, one for sizes when it is this old."""


def next_rate_bases(memory: Memory, snapshot: Snapshot) -> tuple[RateBase, ...]:
    """The bases for the next look: this look joins them when the youngest is a window old."""
    if _unusable(snapshot):
        return memory.rate_bases if not snapshot.end_offsets else ()
    if memory.rate_bases and snapshot.monotonic_ms - memory.rate_bases[-1].monotonic_ms < WINDOW_MS:
        return memory.rate_bases
    return (*memory.rate_bases, rate_base(snapshot))[-2:]


def rate_base(snapshot: Snapshot) -> RateBase:
    """This look as the base for rates."""
    return RateBase(snapshot.monotonic_ms, snapshot.end_offsets)


def next_size_base(memory: Memory, snapshot: Snapshot) -> RateBase | None:
    """The base for the size of records: this look when it asked for sizes and the one before is a window old."""
    base = memory.size_base
    if _unusable(snapshot):
        return base if not snapshot.end_offsets else None
    if not snapshot.sizes_fresh or not snapshot.size_bytes:
        return base
    if base is not None and snapshot.monotonic_ms - base.monotonic_ms < WINDOW_MS:
        return base
    return size_base(snapshot)


def size_base(snapshot: Snapshot) -> RateBase:
    """This look as the base for the size of records."""
    sizes = {partition: size for partition, size in snapshot.size_bytes.items() if partition in snapshot.end_offsets}
    return RateBase(snapshot.monotonic_ms, snapshot.end_offsets, sizes)


def learned_bytes_per_record(memory: Memory, snapshot: Snapshot) -> Mapping[str, float]:
    """Bytes per record of each topic: what grew on disk over what was appended, between two looks that asked for both.

    A partition that did not grow teaches nothing: old segments may have been deleted meanwhile.
    """
    known = {topic: size for topic, size in memory.bytes_per_record.items() if topic in snapshot.topics}
    base = memory.size_base
    if base is None or not snapshot.sizes_fresh or not snapshot.end_offsets:
        return known
    grown: dict[str, tuple[int, int]] = {}
    for partition, was in base.size_bytes.items():
        records = snapshot.end_offsets.get(partition, 0) - base.end_offsets[partition]
        size_bytes = snapshot.size_bytes.get(partition, was) - was
        if records > 0 and size_bytes > 0:
            so_far = grown.get(partition.topic, (0, 0))
            grown[partition.topic] = so_far[0] + size_bytes, so_far[1] + records
    known |= {topic: size_bytes / records for topic, (size_bytes, records) in grown.items()}
    return dict(sorted(known.items()))


def _unusable(snapshot: Snapshot) -> bool:
    return not snapshot.end_offsets or len(snapshot.end_offsets) > MAX_PARTITIONS
