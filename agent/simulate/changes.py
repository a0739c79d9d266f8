"""What may be asked "what if" about: small values, each with its words, and which of them contradict each other.

Two changes contradict each other when they touch the same thing, or one touches what the other needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from agent.errors import BadInput
from agent.values.words import counted
from assignors.problem import TopicPartition

Keys = tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the world."""


@dataclass(frozen=True, slots=True)
class RemoveMember(Change):
    """A consumer or an instance less, by member id, client id, instance id or process id."""

    group: str
    member: str

    def __str__(self) -> str:
        return f"{self.group} without {self.member}"


@dataclass(frozen=True, slots=True)
class RemoveRack(Change):
    """A rack with all its brokers and readers gone."""

    rack: str

    def __str__(self) -> str:
        return f"no rack {self.rack}"


@dataclass(frozen=True, slots=True)
class RemoveBroker(Change):
    """A broker is away; its replicas stay on it."""

    broker: int

    def __str__(self) -> str:
        return f"no broker {self.broker}"


@dataclass(frozen=True, slots=True)
class AddRack(Change):
    """A rack with new, empty brokers."""

    rack: str
    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"rack {self.rack} with broker {', '.join(map(str, self.brokers))}"


@dataclass(frozen=True, slots=True)
class AddBroker(Change):
    """A new, empty broker, or one that was away and comes back."""

    broker: int
    rack: str

    def __str__(self) -> str:
        return f"broker {self.broker} in rack {self.rack}"


@dataclass(frozen=True, slots=True)
class AddReplica(Change):
    """One more replica of a partition, in sync."""

    partition: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"a replica of {self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class RemoveReplica(Change):
    """One replica of a partition less."""

    partition: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"no replica of {self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class SetReplicationFactor(Change):
    """Another number of replicas for a whole topic."""

    topic: str
    replication_factor: int

    def __str__(self) -> str:
        return f"{self.topic} with {counted(self.replication_factor, 'replica')}"


@dataclass(frozen=True, slots=True)
class AddMember(Change):
    """One more consumer, or one more instance of a Streams application."""

    group: str
    rack: str | None
    """None: it sends no rack."""

    def __str__(self) -> str:
        return f"{self.group} with one more in {'no known rack' if self.rack is None else f'rack {self.rack}'}"


@dataclass(frozen=True, slots=True)
class SetStrategy(Change):
    """Another assignor of a consumer group, or another rack strategy of an application."""

    group: str
    strategy: str

    def __str__(self) -> str:
        return f"{self.group} with {self.strategy}"


@dataclass(frozen=True, slots=True)
class SetStandbys(Change):
    """Another number of standbys of each task."""

    group: str
    standbys: int

    def __str__(self) -> str:
        return f"{self.group} with {counted(self.standbys, 'standby', 'standbys')}"


_TOUCHED: Mapping[type[Change], Callable[[Any], Keys]] = {
    RemoveMember: lambda it: (("member", (it.group, it.member)),),
    RemoveRack: lambda it: (("no rack", it.rack),),
    RemoveBroker: lambda it: (("broker", it.broker), ("no broker", it.broker)),
    AddRack: lambda it: (("rack", it.rack), *(("broker", broker) for broker in it.brokers)),
    AddBroker: lambda it: (("broker", it.broker),),
    AddReplica: lambda it: (("replica", (it.partition, it.broker)),),
    RemoveReplica: lambda it: (("replica", (it.partition, it.broker)),),
    SetReplicationFactor: lambda it: (("replication factor", it.topic),),
    SetStrategy: lambda it: (("strategy", it.group),),
    SetStandbys: lambda it: (("standbys", it.group),),
}


def touched(change: Change) -> Keys:
    """What no other change may touch."""
    keys_of = _TOUCHED.get(type(change))
    return () if keys_of is None else keys_of(change)


def needed(change: Change) -> Keys:
    """What no change may touch."""
    match change:
        case AddRack() | AddBroker() | AddMember():
            return (("no rack", change.rack),)
        case AddReplica():
            return ("no broker", change.broker), ("replication factor", change.partition.topic)
        case RemoveReplica():
            return (("replication factor", change.partition.topic),)
        case _:
            return ()


def check_changes(changes: Sequence[Change]) -> None:
    """Raise ``BadInput`` where nothing is asked, and for two changes that cannot both be meant."""
    if not changes:
        raise BadInput("there is nothing to simulate", why="no change is named", todo="See: rackwise simulate --help")
    for one, other in permutations(changes, 2):
        if {*touched(one)} & {*touched(other), *needed(other)}:
            raise BadInput(
                f"these changes contradict each other: {one}; {other}",
                why="they change the same, or one takes away what the other needs",
                todo="Leave one of them out.",
            )
