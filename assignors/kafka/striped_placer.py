"""Replica placement of a KRaft controller: ``StripedReplicaPlacer`` (Kafka 3.0 on).

Leaders go over the racks in turn and over the brokers of a rack in turn, followers over the racks from there, fenced
brokers only where a rack has no other left; after as many partitions as unfenced brokers all lists are shuffled.
Brokers without a rack are one rack; existing replicas do not count. The controller's random draws are input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from assignors.kafka.exceptions import InvalidReplicationFactorException
from assignors.kafka.java import hash_order, shuffle, string_hash, utf16_key
from assignors.problem import BadProblem

NextInt = Callable[[int], int]
"""``Random.nextInt``: bound -> a number from 0 to below it."""

_CORDONS = (4, 3)
"""The release from which on a broker may have all its log directories cordoned, and the messages name it."""


class UsableBroker(NamedTuple):
    """A broker that is not shutting down, as the controller's placer sees it."""

    id: int
    rack: str | None
    fenced: bool = False


def place_striped(
    brokers: Sequence[UsableBroker],
    partitions: int,
    replication_factor: int,
    next_int: NextInt,
    release: tuple[int, ...] = _CORDONS,
) -> tuple[tuple[int, ...], ...]:
    """Return the replicas of each partition, preferred leader first, and draw what the controller draws.

    ``brokers`` come in the controller's order. Raises ``InvalidReplicationFactorException`` in the words of that
    release of Kafka (after the first draws, as Kafka does), ``BadProblem`` for a broker id that occurs twice.
    """
    if len({broker.id for broker in brokers}) != len(brokers):
        raise BadProblem("brokers has an id twice; ids are unique")
    racks = _Racks(brokers, next_int)
    cordons = release >= _CORDONS
    if replication_factor <= 0:
        raise InvalidReplicationFactorException(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if not racks.unfenced:
        also = ", or have all their log directories cordoned" if cordons else ""
        raise InvalidReplicationFactorException(f"All brokers are currently fenced{also}.")
    if replication_factor > len(brokers):
        also = " or some brokers have all their log directories cordoned" if cordons else ""
        raise InvalidReplicationFactorException(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered{also}."
        )
    return tuple(racks.place(replication_factor) for _ in range(partitions))


def replay(draws: Iterable[tuple[int, int]]) -> NextInt:
    """A generator that gives recorded draws (bound, value) again; raises ``BadProblem`` where they do not fit."""
    left = iter(draws)

    def next_int(bound: int) -> int:
        recorded = next(left, None)
        if recorded is None:
            raise BadProblem(f"draws ends where a number below {bound} is wanted; give every draw of the controller")
        if recorded[0] != bound or not 0 <= recorded[1] < bound:
            raise BadProblem(f"draws has {list(recorded)} where a number below {bound} is wanted")
        return recorded[1]

    return next_int


class _Racks:
    """The racks, what is left of each in the present round, and from which rack the next leader comes."""

    def __init__(self, brokers: Sequence[UsableBroker], next_int: NextInt) -> None:
        self._next_int = next_int
        racks: dict[str | None, _Rack] = {}
        for broker in brokers:
            rack = racks.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.unfenced).brokers.append(broker.id)
        self._drawing = [racks[name] for name in hash_order(racks, lambda name: string_hash(name or ""))]
        for rack in self._drawing:
            rack.fenced.begin(next_int)
            rack.unfenced.begin(next_int)
        self._order = [
            racks[name] for name in sorted(racks, key=lambda name: (name is not None, utf16_key(name or "")))
        ]
        self._offset = next_int(len(racks)) if racks else 0
        self._round = 0
        self.unfenced = sum(not broker.fenced for broker in brokers)

    def place(self, replication_factor: int) -> tuple[int, ...]:
        if self._round == self.unfenced and self.unfenced > 1:
            self._shuffle()
        self._offset %= len(self._order)
        at = self._offset
        while (leader := self._order[at].unfenced.take(self._round)) is None:
            at = (at + 1) % len(self._order)
        replicas = [leader]
        skip: int | None = at
        """The leader's rack, which the first follower that would come from it leaves out once."""
        at = self._offset
        while len(replicas) < replication_factor:
            if at == skip:
                skip = None
            elif (follower := self._order[at].take(self._round)) is not None:
                replicas.append(follower)
            at = (at + 1) % len(self._order)
        self._round += 1
        self._offset += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        shuffle(self._order, self._next_int)
        for rack in self._drawing:
            shuffle(rack.fenced.brokers, self._next_int)
            shuffle(rack.unfenced.brokers, self._next_int)
        self._round = 0


class _Rack:
    """The brokers of one rack."""

    __slots__ = ("fenced", "unfenced")

    def __init__(self) -> None:
        self.fenced = _Brokers()
        self.unfenced = _Brokers()

    def take(self, number: int) -> int | None:
        """The next broker of this round, fenced ones last; None when all have been taken."""
        broker = self.unfenced.take(number)
        return self.fenced.take(number) if broker is None else broker


class _Brokers:
    """Brokers in a ring: each round begins one further on and gives every broker once."""

    __slots__ = ("_offset", "_round", "_taken", "brokers")

    def __init__(self) -> None:
        self.brokers: list[int] = []
        self._offset = self._round = self._taken = 0

    def begin(self, next_int: NextInt) -> None:
        """Sort the brokers and draw where to begin; an empty ring draws nothing."""
        if self.brokers:
            self.brokers.sort()
            self._offset = next_int(len(self.brokers))

    def take(self, number: int) -> int | None:
        """The next broker of round ``number``."""
        if not self.brokers:
            return None
        if self._round != number:
            self._round, self._taken = number, 0
            self._offset = (self._offset + 1) % len(self.brokers)
        if self._taken == len(self.brokers):
            return None
        self._taken += 1
        return self.brokers[(self._offset + self._taken - 1) % len(self.brokers)]
