"""Preferred leaders among the replicas of each partition, as even over brokers as possible.

Evenness is the sum of squares, of the topic first, of all topics second. A chain of partitions from broker to broker
changes only its ends; without an improving chain the answer is optimal (semi-matchings).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush
from itertools import pairwise

Replicas = tuple[int, ...]


def even_leaders(
    replicas: Sequence[Replicas], of_topic: Mapping[int, int], of_all: Mapping[int, int]
) -> list[Replicas]:
    """The same replicas, the chosen leader first; ``of_topic`` and ``of_all`` are what brokers lead already.

    Followers go on round the partition's other replicas, begun one further on in each partition, so that those who
    would lead next are spread as well.
    """
    board = _Board(replicas, of_topic, of_all)
    while board.improve():
        pass
    ordered = []
    for number, (of, leader) in enumerate(zip(replicas, board.leader, strict=True)):
        rest = [broker for broker in of if broker != leader]
        turn = number // max(1, len(of)) % len(rest) if rest else 0
        ordered.append((leader, *rest[turn:], *rest[:turn]))
    return ordered


def fewest_leads(
    counts: Mapping[int, int], partitions: int, of_topic: Mapping[int, int], of_all: Mapping[int, int]
) -> tuple[int, int]:
    """Sums of squares of leaders (of the topic, of all) that no choice goes below: a broker leads what it holds."""
    leads: Counter[int] = Counter()
    waiting = [(of_topic.get(broker, 0), of_all.get(broker, 0), broker) for broker, held in counts.items() if held]
    heapify(waiting)
    for _ in range(partitions):
        topic, every, broker = heappop(waiting)
        leads[broker] += 1
        if leads[broker] < counts[broker]:
            heappush(waiting, (topic + 1, every + 1, broker))
    brokers = [broker for broker, held in counts.items() if held]
    return (
        sum((of_topic.get(broker, 0) + leads[broker]) ** 2 for broker in brokers),
        sum((of_all.get(broker, 0) + leads[broker]) ** 2 for broker in brokers),
    )


class _Board:
    """Who leads what, begun with the idlest replica of each partition."""

    def __init__(self, replicas: Sequence[Replicas], of_topic: Mapping[int, int], of_all: Mapping[int, int]) -> None:
        self._replicas = replicas
        self._brokers = sorted({broker for of in replicas for broker in of})
        self._topic = Counter({broker: of_topic.get(broker, 0) for broker in self._brokers})
        self._all = Counter({broker: of_all.get(broker, 0) for broker in self._brokers})
        self._handed: dict[tuple[int, int], list[int]] = {}
        """(leader, other replica) -> partitions; those that were passed on since are dropped when met."""
        self.leader: list[int] = []
        for number, of in enumerate(replicas):
            self.leader.append(min(of, key=lambda broker: (*self._load(broker), broker)))
            self._count(self.leader[number], 1)
            self._offer(number)

    def improve(self) -> bool:
        """Hand one chain on; False when none makes leaders more even."""
        settled: set[int] = set()
        for start in sorted(self._brokers, key=lambda broker: (*self._load(broker), broker), reverse=True):
            if start in settled:
                continue
            before, end = self._search(start, settled)
            if end is not None:
                self._pass_on(before, end)
                return True
            # A node that is reached from here leads no more, and reaches no other: no chain of it gains.
            settled |= before.keys()
        return False

    def _search(self, start: int, settled: AbstractSet[int]) -> tuple[dict[int, int], int | None]:
        """How every broker is reached, and the best end of a chain that gains."""
        topic, every = self._load(start)
        before = {start: start}
        ring = [start]
        while ring:
            givers, ring = ring, []
            for giver in givers:
                fresh = [to for to in self._brokers if to not in before and to not in settled and self._arc(giver, to)]
                before.update(dict.fromkeys(fresh, giver))
                ring += fresh
            gains = [(topic - self._topic[end] - 1, every - self._all[end] - 1) for end in ring]
            worth = [(gain, -end) for gain, end in zip(gains, ring, strict=True) if gain > (0, 0)]
            if worth:
                return before, -max(worth)[1]
        return before, None

    def _pass_on(self, before: Mapping[int, int], end: int) -> None:
        chain = [end]
        while before[chain[-1]] != chain[-1]:
            chain.append(before[chain[-1]])
        moved = [(self._handed[giver, taker][-1], taker) for taker, giver in pairwise(chain)]
        for partition, taker in moved:
            self.leader[partition] = taker
            self._offer(partition)
        self._count(chain[-1], -1)
        self._count(end, 1)

    def _arc(self, giver: int, taker: int) -> bool:
        waiting = self._handed.get((giver, taker))
        while waiting and self.leader[waiting[-1]] != giver:
            waiting.pop()
        return bool(waiting)

    def _offer(self, partition: int) -> None:
        leader = self.leader[partition]
        for broker in self._replicas[partition]:
            if broker != leader:
                self._handed.setdefault((leader, broker), []).append(partition)

    def _count(self, broker: int, more: int) -> None:
        self._topic[broker] += more
        self._all[broker] += more

    def _load(self, broker: int) -> tuple[int, int]:
        return self._topic[broker], self._all[broker]
