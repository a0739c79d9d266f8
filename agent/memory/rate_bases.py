"""Keeps the looks from which byte rates are taken, and learns how large a record is.

End offsets of two looks give records per second; sizes on disk of the same looks give bytes per record. Two bases are
kept, so that there is always one that is old enough to be smooth and young enough to be true.

Above `MAX_PARTITIONS` nothing is kept: the memory travels with every cycle, and there rates come from the pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.memory.values import Memory, RateBase
from agent.model.snapshot import Snapshot

MAX_PARTITIONS = 10_000
WINDOW_MS = 60_000
"""A base is replaced when it is twice as old."""


def next_rate_bases(memory: Memory, snapshot: Snapshot) -> tuple[RateBase, ...]:
    """The bases for the next look: this look joins them when the youngest is a window old."""
    if not snapshot.end_offsets or len(snapshot.end_offsets) > MAX_PARTITIONS:
        return memory.rate_bases if not snapshot.end_offsets else ()
    if memory.rate_bases and snapshot.monotonic_ms - memory.rate_bases[-1].monotonic_ms < WINDOW_MS:
        return memory.rate_bases
    sizes = {
        partition: snapshot.size_bytes[partition] for partition in snapshot.end_offsets.keys() & snapshot.size_bytes
    }
    base = RateBase(snapshot.monotonic_ms, snapshot.end_offsets, sizes)
    return (*memory.rate_bases, base)[-2:]


def learned_bytes_per_record(memory: Memory, snapshot: Snapshot) -> Mapping[str, float]:
    """Bytes per record of each topic: what grew on disk over what was appended, since the oldest base.

    A partition that did not grow teaches nothing: its log dirs may not have been asked again, or segments went away.
    """
    known = {topic: size for topic, size in memory.bytes_per_record.items() if topic in snapshot.topics}
    if not memory.rate_bases or len(snapshot.end_offsets) > MAX_PARTITIONS:
        return known
    base = memory.rate_bases[0]
    grown: dict[str, tuple[int, int]] = {}
    for partition, size in snapshot.size_bytes.items():
        records = snapshot.end_offsets.get(partition, 0) - base.end_offsets.get(partition, 0)
        size_bytes = size - base.size_bytes.get(partition, size)
        if records > 0 and size_bytes > 0 and partition in base.end_offsets:
            so_far = grown.get(partition.topic, (0, 0))
            grown[partition.topic] = so_far[0] + size_bytes, so_far[1] + records
    known |= {topic: size_bytes / records for topic, (size_bytes, records) in grown.items()}
    return dict(sorted(known.items()))
