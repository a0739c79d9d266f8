"""How many records is a group behind? End offsets minus committed offsets, over the topics that it reads.

Invariant: a partition that is held but has no commit, or no end offset, is unknown and never counted as caught up.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.detect.assess import topics_of
from agent.values.observation import Part
from agent.values.snapshot import ConsumerGroup, OtherGroup, Snapshot
from agent.values.unseen import gaps_of
from assignors.problem import TopicPartition


class Lag(NamedTuple):
    """How far behind a group is."""

    records: int | None
    """Over all partitions, at least; None where nothing is known."""
    worst: TopicPartition | None
    """The partition with the most records to go; None where none is behind."""
    worst_records: int | None
    partitions: int
    unknown: int
    """Partitions of which it is unknown."""

    @property
    def known(self) -> int | None:
        """Records behind, at least; None also where all that is known is that some partitions have none to go."""
        return None if self.unknown and not self.records else self.records


def lag_of(snapshot: Snapshot, group_id: str) -> Lag | None:
    """The lag of a group that commits offsets; None for another, and where its commits did not answer.

    Counted are partitions of the topics that it reads now (of all topics, where it has no members), and those that
    its members hold.
    """
    group = snapshot.groups[group_id]
    committed = snapshot.committed_offsets.get(group_id)
    if isinstance(group, OtherGroup) or committed is None:
        return None
    topics = set(topics_of(group)) if group.members else {partition.topic for partition in committed}
    held = {p for member in group.members for p in member.assigned or ()} if isinstance(group, ConsumerGroup) else set()
    wanted = {p for p in committed if p.topic in topics or (group.members and not topics)} | held
    hidden = bool(gaps_of(snapshot, (Part.TOPICS,)))  # else a topic that is not there was deleted
    there = [partition for partition in wanted if hidden or partition.topic in snapshot.topics]
    lags = {partition: _lag(snapshot.end_offsets.get(partition), committed.get(partition)) for partition in there}
    known = {partition: lag for partition, lag in lags.items() if lag is not None}
    worst = max(sorted(known), key=lambda partition: known[partition], default=None)
    behind = worst is not None and known[worst] > 0
    return Lag(
        records=sum(known.values()) if known or not lags else None,
        worst=worst if behind else None,
        worst_records=known[worst] if worst is not None else None,
        partitions=len(lags),
        unknown=len(lags) - len(known),
    )


def _lag(end: int | None, committed: int | None) -> int | None:
    # A commit may be newer than the end offset that was asked before it; it is caught up then.
    return None if end is None or committed is None else max(0, end - committed)


def worst_task_lag(snapshot: Snapshot, group_id: str) -> float | None:
    """The likely lag of the copy of a task that is farthest behind; None where no lag is known."""
    return max((copy.lag.likely for copy in snapshot.copies.get(group_id, ()) if copy.lag is not None), default=None)
