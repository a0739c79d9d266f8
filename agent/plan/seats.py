"""Who may lead what: preferred leaders counted by broker and by rack, with room for a few more.

A rack's even share of leaders is its share of replicas, as leaders can only be where replicas are. Brokers that are
gone have no share, and lead nothing: in their place counts the first in-sync replica of the list that may lead.

Invariant: a change is allowed when it stays within the limit on both levels or makes both more even than they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent.plan.reading import Readers
from agent.values.limits import Limits
from agent.values.proposal import PlacementChange
from agent.values.snapshot import PartitionState, RackState, Snapshot
from assignors.problem import LeaderRoom


class Seats:
    """Preferred leaders of the whole cluster while a plan is being made; changed by ``give`` alone."""

    def __init__(
        self, snapshot: Snapshot, held: frozenset[int], limits: Limits, gone: frozenset[int] = frozenset()
    ) -> None:
        self.gone = gone
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
        self.selector_is_rack_aware = snapshot.selector_is_rack_aware
        preferred = (self.preferred(state) for state in states)
        self.of_broker = Counter(broker for broker in preferred if broker is not None)
        self.of_rack = self._by_rack(self.of_broker)
        self._led_before, self._led_before_in = self.of_broker.copy(), self.of_rack.copy()
        held_by_broker = Counter(broker for state in states for broker in state.replicas if broker not in gone)
        led, replicas = sum(self.of_rack.values()), sum(held_by_broker.values()) or 1
        self._most_of_broker = {
            broker: -int(-(1 + limits.leader_skew_share) * led * count // replicas)
            for broker, count in held_by_broker.items()
        }
        self._most_of_rack = {
            rack: int((count / replicas + limits.leader_skew_share) * led)
            for rack, count in self._by_rack(held_by_broker).items()
        }

    def most_even(self) -> tuple[dict[int, int], dict[str, int]]:
        """How many each broker and each rack may lead and be no worse than before the plan, or than an even share."""
        led, racks = sum(self.of_broker.values()), Counter(self.rack_of[broker] for broker in self.may_lead)
        brokers = racks.total() or 1
        return (
            {broker: max(self._led_before[broker], -(-led // brokers)) for broker in self.may_lead},
            {rack: max(self._led_before_in[rack], -(-led * count // brokers)) for rack, count in racks.items()},
        )

    def room(self, open_ones: Counter[int], *, hard: bool) -> LeaderRoom:
        """How many leaders more each may get when those are to be chosen anew; ``open_ones`` are led by whom now."""
        of_broker, of_rack = self.most_even()
        open_racks = self._by_rack(open_ones)
        return LeaderRoom(
            {broker: most - self.of_broker[broker] + open_ones[broker] for broker, most in of_broker.items()},
            {rack: most - self.of_rack[rack] + open_racks[rack] for rack, most in of_rack.items()},
            self.rack_of,
            hard,
        )

    def fetched_across(self, replicas: tuple[int, ...], leader: int, readers: Readers | None) -> int:
        """Followers, and readers where they read from the leader, in another known rack than that leader."""
        rack = self.rack_of.get(leader)
        far = sum(self.rack_of.get(broker) != rack for broker in replicas)
        if readers is not None and self.selector_is_rack_aware is False:
            far += readers.total - readers.near(rack)
        return far

    def _by_rack(self, of_broker: Counter[int]) -> Counter[str]:
        of_rack: Counter[str] = Counter()
        for broker, count in of_broker.items():
            if broker in self.rack_of:
                of_rack[self.rack_of[broker]] += count
        return of_rack

    def candidates(self, state: PartitionState) -> list[int]:
        """The in-sync replicas of a partition that may lead it, in assignment order."""
        return [broker for broker in state.replicas if broker in self.may_lead and broker in state.isr]

    def preferred(self, state: PartitionState) -> int | None:
        """The preferred leader, or what leads in place of one that is gone; None where no replica can."""
        if state.replicas[0] not in self.gone:
            return state.replicas[0]
        return next(iter(self.candidates(state)), None)

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
