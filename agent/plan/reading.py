"""Which groups read a partition, from which racks? As far as their assignments are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from agent.detect.assess import topics_of
from agent.values.memo import Memo
from agent.values.snapshot import ConsumerGroup, OtherGroup, Rack, RackState, ReaderGroup, Snapshot, TopicState
from assignors.problem import TopicPartition


class Readers(NamedTuple):
    """Who reads a partition: readers by rack, and readers whose rack is not known."""

    by_rack: tuple[tuple[str, int], ...]
    unknown: int

    def near(self, rack: str | None) -> int:
        """Readers in a rack."""
        return sum(count for name, count in self.by_rack if name == rack)

    @property
    def total(self) -> int:
        """Readers of known rack."""
        return sum(count for _, count in self.by_rack)


def readers_of(topic: TopicState, groups: Iterable[ReaderGroup]) -> dict[TopicPartition, Readers]:
    """Partition -> its readers in all groups whose assignment is shown."""
    by_rack: dict[TopicPartition, Counter[str | None]] = {}
    for group in groups:
        for rack, partitions in _reads(group):
            name = rack.name if rack.state is RackState.KNOWN else None
            for partition in partitions:
                if partition.topic == topic.name:
                    by_rack.setdefault(partition, Counter())[name] += 1
    return {
        partition: Readers(
            tuple(sorted((name, count) for name, count in racks.items() if name is not None)), racks[None]
        )
        for partition, racks in sorted(by_rack.items())
    }


def known_readers(topics: Iterable[str], snapshot: Snapshot, memo: Memo) -> dict[TopicPartition, Readers]:
    """The readers of these topics' partitions, as far as they are known."""
    groups = groups_by_topic(snapshot, memo)
    readers: dict[TopicPartition, Readers] = {}
    for name in topics:
        if name in groups:
            topic, of = snapshot.topics[name], groups[name]
            readers.update(memo.of(("readers", name), (topic, *of), partial(readers_of, topic, of)))
    return readers


def groups_by_topic(snapshot: Snapshot, memo: Memo) -> dict[str, list[ReaderGroup]]:
    """Topic -> the groups that read it and show their assignment; both sorted."""
    groups: dict[str, list[ReaderGroup]] = {}
    for group in snapshot.groups.values():
        if isinstance(group, OtherGroup) or group.hidden:
            continue
        for name in memo.of(("group topics", group.id), (group,), partial(topics_of, group)):
            groups.setdefault(name, []).append(group)
    return dict(sorted(groups.items()))


def _reads(group: ReaderGroup) -> Iterable[tuple[Rack, Iterable[TopicPartition]]]:
    if isinstance(group, ConsumerGroup):
        return [(member.rack, member.assigned or ()) for member in group.members]
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology else {}
    return [
        (process.rack, [source for task in process.active for source in sources.get(task, ())])
        for process in group.processes
    ]
