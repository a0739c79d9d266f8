"""Shares of local reads of a group by the racks of its readers, as bytes really go (leader or nearest replica)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.detect.assess import bits_of
from agent.money.costs import reads_of
from agent.money.traffic import read_route
from agent.values.memo import Memo
from agent.values.snapshot import PartitionState, Rack, RackState, Snapshot
from assignors.problem import TopicPartition

LEVELS = (0.2, 0.4, 0.6, 0.8, 0.95, 0.995)
"""Shares from which a cell has the next colour."""


class RackShare(NamedTuple):
    """Reads of a group's readers in one rack."""

    local: int
    crossing: int
    unknown: int
    """Reads of which it is unknown whether they leave the rack."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.local + self.crossing + self.unknown

    @property
    def share(self) -> float | None:
        """The local part, at least; None where nothing is known."""
        return None if self.unknown == self.total else self.local / self.total

    @property
    def most(self) -> float:
        """The local part, at most."""
        return (self.local + self.unknown) / self.total if self.total else 0.0


def level(share: float) -> int:
    """The colour of a share, 0 (all reads leave the rack) to 6 (none does)."""
    return sum(share >= bound for bound in LEVELS)


class ShareLedger:
    """Shares of one look, group by group; what they rest on is worked out once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
        self._bits = bits_of(snapshot, Memo())
        self._states: dict[str, Mapping[TopicPartition, PartitionState]] = {}
        self._shares: dict[str, Mapping[str | None, RackShare]] = {}

    def shares(self, group_id: str) -> Mapping[str | None, RackShare]:
        """Rack of the readers (None: not known) -> their reads; empty for a group that shows none."""
        if group_id not in self._shares:
            self._shares[group_id] = self._counted(group_id)
        return self._shares[group_id]

    def _counted(self, group_id: str) -> Mapping[str | None, RackShare]:
        counts: dict[str | None, list[int]] = {}
        group = self._snapshot.groups.get(group_id)
        for rack, partition in reads_of(group) if group is not None else ():
            name = rack.name if rack.state is RackState.KNOWN else None
            counts.setdefault(name, [0, 0, 0])[self._kind(rack, name, partition)] += 1
        return {name: RackShare(*of) for name, of in counts.items()}

    def _kind(self, rack: Rack, name: str | None, partition: TopicPartition | None) -> int:
        """0 local, 1 crossing, 2 unknown."""
        state = None if partition is None else self._topic(partition.topic).get(partition)
        serves = self._bits.serves((rack,)) if self._snapshot.rack_locators else self._bits.selector_is_rack_aware
        route = read_route(state, name, self._racks, serves=serves)
        return 2 if route is None else int(route.source != route.target)

    def _topic(self, name: str) -> Mapping[TopicPartition, PartitionState]:
        if name not in self._states:
            topic = self._snapshot.topics.get(name)
            self._states[name] = {} if topic is None else {state.id: state for state in topic.partitions}
        return self._states[name]
