"""How far a batch is: bytes, rate and time left, for each partition and each broker that gets copies.

Invariant: unknown is None. Sizes that log dirs did not tell, and rates of which there are no two readings, give neither
a share nor a time left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agent.execute.messages import Seen
from agent.execute.values import Batch, End, Target
from assignors.problem import TopicPartition

_WEIGHT = 0.3
"""Of the newest reading in the smoothed rate."""


class Copying(NamedTuple):
    """Bytes on their way to one place."""

    copied_bytes: int | None
    total_bytes: int | None
    bytes_per_s: float | None
    """Smoothed; None before the second reading."""
    seconds_left: float | None


class Progress(NamedTuple):
    """A batch on its way."""

    proposal_id: str
    number: int
    partitions: tuple[tuple[TopicPartition, Copying], ...]
    """Those that copy data and have no end yet, sorted."""
    brokers: tuple[tuple[int, Copying], ...]
    """What each of them gets, sorted."""
    done: int
    """Partitions that have their planned replicas."""
    of: int

    @property
    def seconds_left(self) -> float | None:
        """Until the slowest broker has all; None when that is unknown, 0 when nothing is left."""
        times = [copying.seconds_left for _, copying in self.brokers]
        known = [time for time in times if time is not None]
        return None if len(known) < len(times) else max(known, default=0.0)


def progress_of(batch: Batch, seen: Seen, elapsed_ms: int, before: Progress | None = None) -> Progress:
    """How far the batch is at this look, ``elapsed_ms`` after the look of ``before``."""
    same = before is not None and (before.proposal_id, before.number) == (batch.proposal_id, batch.number)
    former = before if same else None
    sizes = {(id_, broker): size for id_, broker, size in seen.bytes}
    ended = {end.id for end in batch.ends}
    copying = [target for target in batch.targets if target.moves_data and target.id not in ended]
    old_partitions = dict(former.partitions) if former else {}
    old_brokers = dict(former.brokers) if former else {}
    partitions = tuple(
        (
            target.id,
            _copying([(target, broker) for broker in target.adding], sizes, elapsed_ms, old_partitions.get(target.id)),
        )
        for target in copying
    )
    brokers = tuple(
        (
            broker,
            _copying(
                [(it, broker) for it in copying if broker in it.adding], sizes, elapsed_ms, old_brokers.get(broker)
            ),
        )
        for broker in sorted({broker for target in copying for broker in target.adding})
    )
    done = sum(end.end is End.DONE for end in batch.ends)
    return Progress(batch.proposal_id, batch.number, partitions, brokers, done, len(batch.targets))


def _copying(
    copies: Iterable[tuple[Target, int]],
    sizes: dict[tuple[TopicPartition, int], int],
    elapsed_ms: int,
    before: Copying | None,
) -> Copying:
    pairs = list(copies)
    found = [sizes.get((target.id, broker)) for target, broker in pairs]
    known = [size for size in found if size is not None]
    copied = sum(known) if len(known) == len(found) else None
    wholes = [target.bytes for target, _ in pairs if target.bytes is not None]
    # A partition grows while it is copied: what is there is never more than the whole.
    total = None if len(wholes) < len(pairs) else max(sum(wholes), copied or 0)
    rate = _rate(copied, elapsed_ms, before)
    left = None
    if total is not None and copied is not None:
        left = 0.0 if copied >= total else (total - copied) / rate if rate else None
    return Copying(copied, total, rate, left)


def _rate(copied: int | None, elapsed_ms: int, before: Copying | None) -> float | None:
    if before is None or before.copied_bytes is None or copied is None or elapsed_ms <= 0:
        return None if before is None else before.bytes_per_s
    # When a partition of a broker has ended its bytes are no longer counted: that is no negative rate.
    now = max(0, copied - before.copied_bytes) * 1000 / elapsed_ms
    return now if before.bytes_per_s is None else _WEIGHT * now + (1 - _WEIGHT) * before.bytes_per_s
