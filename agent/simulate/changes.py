"""What may be asked "what if" about: small values, each with its words, and which of them contradict each other.

Two changes contradict each other when they touch the same thing, or one touches what the other needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from agent.errors import BadInput
from agent.values.words import counted
from assignors.problem import TopicPartition

Keys = tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the world."""

    @property
    def touches(self) -> Keys:
        """What no other change may touch."""
        return ()

    @property
    def needs(self) -> Keys:
        """What no change may touch."""
        return ()


@dataclass(frozen=True, slots=True)
class RemoveMember(Change):
    """A consumer or an instance less, by member id, client id, instance id or process id."""

    group: str
    member: str

    @property
    def touches(self) -> Keys:
        """The member."""
        return (("member", (self.group, self.member)),)

    def __str__(self) -> str:
        return f"{self.group} without {self.member}"


@dataclass(frozen=True, slots=True)
class RemoveRack(Change):
    """A rack with all its brokers and readers gone."""

    rack: str

    @property
    def touches(self) -> Keys:
        """Its being there."""
        return (("no rack", self.rack),)

    def __str__(self) -> str:
        return f"no rack {self.rack}"


@dataclass(frozen=True, slots=True)
class RemoveBroker(Change):
    """A broker is away; its replicas stay on it."""

    broker: int

    @property
    def touches(self) -> Keys:
        """The broker, and its being there."""
        return ("broker", self.broker), ("no broker", self.broker)

    def __str__(self) -> str:
        return f"no broker {self.broker}"


@dataclass(frozen=True, slots=True)
class AddRack(Change):
    """A rack with new, empty brokers."""

    rack: str
    brokers: tuple[int, ...]

    @property
    def touches(self) -> Keys:
        """The rack and its brokers."""
        return ("rack", self.rack), *(("broker", broker) for broker in self.brokers)

    @property
    def needs(self) -> Keys:
        """That no other change takes it away again."""
        return (("no rack", self.rack),)

    def __str__(self) -> str:
        return f"rack {self.rack} with broker {', '.join(map(str, self.brokers))}"


@dataclass(frozen=True, slots=True)
class AddBroker(Change):
    """A new, empty broker, or one that was away and comes back."""

    broker: int
    rack: str

    @property
    def touches(self) -> Keys:
        """The broker."""
        return (("broker", self.broker),)

    @property
    def needs(self) -> Keys:
        """Its rack."""
        return (("no rack", self.rack),)

    def __str__(self) -> str:
        return f"broker {self.broker} in rack {self.rack}"


@dataclass(frozen=True, slots=True)
class AddReplica(Change):
    """One more replica of a partition, in sync."""

    partition: TopicPartition
    broker: int

    @property
    def touches(self) -> Keys:
        """The replica."""
        return (("replica", (self.partition, self.broker)),)

    @property
    def needs(self) -> Keys:
        """The broker, and the other replicas as they are."""
        return ("no broker", self.broker), ("replication factor", self.partition.topic)

    def __str__(self) -> str:
        return f"a replica of {self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class RemoveReplica(Change):
    """One replica of a partition less."""

    partition: TopicPartition
    broker: int

    @property
    def touches(self) -> Keys:
        """The replica."""
        return (("replica", (self.partition, self.broker)),)

    @property
    def needs(self) -> Keys:
        """The other replicas as they are."""
        return (("replication factor", self.partition.topic),)

    def __str__(self) -> str:
        return f"no replica of {self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class SetReplicationFactor(Change):
    """Another number of replicas for a whole topic."""

    topic: str
    replication_factor: int

    @property
    def touches(self) -> Keys:
        """The topic's replication factor."""
        return (("replication factor", self.topic),)

    def __str__(self) -> str:
        return f"{self.topic} with {counted(self.replication_factor, 'replica')}"


@dataclass(frozen=True, slots=True)
class AddMember(Change):
    """One more consumer, or one more instance of a Streams application."""

    group: str
    rack: str | None
    """None: it sends no rack."""

    @property
    def needs(self) -> Keys:
        """Its rack."""
        return (("no rack", self.rack),)

    def __str__(self) -> str:
        return f"{self.group} with one more in {'no known rack' if self.rack is None else f'rack {self.rack}'}"


@dataclass(frozen=True, slots=True)
class SetStrategy(Change):
    """Another assignor of a consumer group, or another rack strategy of an application."""

    group: str
    strategy: str

    @property
    def touches(self) -> Keys:
        """The group's strategy."""
        return (("strategy", self.group),)

    def __str__(self) -> str:
        return f"{self.group} with {self.strategy}"


@dataclass(frozen=True, slots=True)
class SetStandbys(Change):
    """Another number of standbys of each task."""

    group: str
    standbys: int

    @property
    def touches(self) -> Keys:
        """The application's number of standbys."""
        return (("standbys", self.group),)

    def __str__(self) -> str:
        return f"{self.group} with {counted(self.standbys, 'standby', 'standbys')}"


def check_changes(changes: Sequence[Change]) -> None:
    """Raise ``BadInput`` where nothing is asked, and for two changes that cannot both be meant."""
    if not changes:
        raise BadInput("there is nothing to simulate", why="no change is named", todo="See: rackwise simulate --help")
    for one, other in permutations(changes, 2):
        if {*one.touches} & {*other.touches, *other.needs}:
            raise BadInput(
                f"these changes contradict each other: {one}; {other}",
                why="they change the same, or one takes away what the other needs",
                todo="Leave one of them out.",
            )
