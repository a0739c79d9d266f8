"""Who may lead what: preferred leaders counted by broker and by rack, with room for a few more.

A rack's even share of leaders is its share of replicas, as leaders can only be where replicas are.

Invariant: a change is allowed when it stays within the limit on both levels or makes both more even than they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent.limits import Limits
from agent.model.snapshot import PartitionState, RackState, Snapshot
from agent.propose.proposal import PlacementChange


class Seats:
    """Preferred leaders of the whole cluster while a plan is being made; changed by ``give`` alone."""

    def __init__(self, snapshot: Snapshot, held: frozenset[int], limits: Limits) -> None:
        self.rack_of = {
            broker.id: broker.rack.name
            for broker in snapshot.brokers
            if broker.rack.state is RackState.KNOWN and broker.rack.name is not None
        }
        """Broker -> rack, for every broker whose rack is known."""
        self.may_lead = frozenset(
            broker.id
            for broker in snapshot.brokers
            if broker.alive and not broker.fenced and broker.id in self.rack_of and broker.id not in held
        )
        states = [state for topic in snapshot.topics.values() for state in topic.partitions if state.replicas]
        self.of_broker = Counter(state.replicas[0] for state in states)
        self.of_rack = self._by_rack(self.of_broker)
        held_by_broker = Counter(broker for state in states for broker in state.replicas)
        led, replicas = sum(self.of_rack.values()), sum(held_by_broker.values()) or 1
        self._most_of_broker = {
            broker: -int(-(1 + limits.leader_skew_share) * led * count // replicas)
            for broker, count in held_by_broker.items()
        }
        self._most_of_rack = {
            rack: int((count / replicas + limits.leader_skew_share) * led)
            for rack, count in self._by_rack(held_by_broker).items()
        }

    def _by_rack(self, of_broker: Counter[int]) -> Counter[str]:
        of_rack: Counter[str] = Counter()
        for broker, count in of_broker.items():
            if broker in self.rack_of:
                of_rack[self.rack_of[broker]] += count
        return of_rack

    def candidates(self, state: PartitionState) -> list[int]:
        """The in-sync replicas of a partition that may lead it, in assignment order."""
        return [broker for broker in state.replicas if broker in self.may_lead and broker in state.isr]

    def least_busy(self, brokers: Iterable[int]) -> int:
        """The one with the fewest preferred leaders; the lowest id among equals."""
        return min(brokers, key=lambda broker: (self.of_broker[broker], broker))

    def allows(self, giver: int, taker: int) -> bool:
        """Whether one partition may change its preferred leader from one broker to another."""
        if self.of_broker[taker] + 1 > max(self._most_of_broker.get(taker, 0), self.of_broker[giver]):
            return False
        giving, taking = self.rack_of.get(giver), self.rack_of[taker]
        if giving == taking:
            return True
        given = self.of_rack[giving] if giving is not None else 0
        return self.of_rack[taking] + 1 <= max(self._most_of_rack.get(taking, 0), given)

    def give(self, giver: int, taker: int) -> None:
        """Count one change."""
        self.of_broker[giver] -= 1
        self.of_broker[taker] += 1
        if giver in self.rack_of:
            self.of_rack[self.rack_of[giver]] -= 1
        self.of_rack[self.rack_of[taker]] += 1


def led_by(state: PartitionState, leader: int) -> PlacementChange:
    """The same replicas with another preferred leader; the others keep their order."""
    rest = tuple(broker for broker in state.replicas if broker != leader)
    return PlacementChange(state.id, state.replicas, (leader, *rest))
