"""What-if changes of a snapshot: members, racks, brokers, replicas, strategies, RF, standbys. Pure.

Removals come first, settings last. Nothing moves by itself: replicas stay, and partitions without reader wait for the
group's assignor. Two changes contradict each other when they touch the same thing, or one touches what the other needs.

Invariants: an unchanged part is the same object as before; contradictory or impossible changes are refused with a
sentence, and nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple

from agent.errors import BadInput, PartialAnswer
from agent.plan.new_partitions import unknown_topic
from agent.simulate.what_if_groups import (
    reader_group,
    resized,
    with_brokers,
    with_group,
    with_member,
    with_replicas,
    with_standbys,
    with_strategy,
    without_brokers,
    without_member,
    without_rack,
)
from agent.values.cycle import gaps_of
from agent.values.limits import Limits
from agent.values.number_format import counted
from agent.values.observation import ObservationPart
from agent.values.snapshot import PartitionState, ReaderGroup, Snapshot
from assignors.problem import TopicPartition

Keys = tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class SimulatedChange:
    """One change of the cluster."""


@dataclass(frozen=True, slots=True)
class RemoveMember(SimulatedChange):
    """A consumer or an instance less, by member id, client id, instance id or process id."""

    group: str
    member: str

    def __str__(self) -> str:
        return f"{self.group} without {self.member}"


@dataclass(frozen=True, slots=True)
class RemoveRack(SimulatedChange):
    """A rack with all its brokers and readers gone."""

    rack: str

    def __str__(self) -> str:
        return f"no rack {self.rack}"


@dataclass(frozen=True, slots=True)
class RemoveBroker(SimulatedChange):
    """A broker is absent; its replicas stay on it."""

    broker: int

    def __str__(self) -> str:
        return f"no broker {self.broker}"


@dataclass(frozen=True, slots=True)
class AddRack(SimulatedChange):
    """A rack with new, empty brokers."""

    rack: str
    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"rack {self.rack} with broker {', '.join(map(str, self.brokers))}"


@dataclass(frozen=True, slots=True)
class AddBroker(SimulatedChange):
    """A new, empty broker, or one that was away and comes back."""

    broker: int
    rack: str

    def __str__(self) -> str:
        return f"broker {self.broker} in rack {self.rack}"


@dataclass(frozen=True, slots=True)
class AddReplica(SimulatedChange):
    """One more replica of a partition, in sync."""

    partition: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"a replica of {self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class RemoveReplica(SimulatedChange):
    """One replica of a partition less."""

    partition: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"no replica of {self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class SetReplicationFactor(SimulatedChange):
    """Another number of replicas for a whole topic."""

    topic: str
    replication_factor: int

    def __str__(self) -> str:
        return f"{self.topic} with {counted(self.replication_factor, 'replica')}"


@dataclass(frozen=True, slots=True)
class AddMember(SimulatedChange):
    """One more consumer, or one more instance of a Streams application."""

    group: str
    rack: str | None
    """None: it sends no rack."""

    def __str__(self) -> str:
        return f"{self.group} with one more in {'no known rack' if self.rack is None else f'rack {self.rack}'}"


@dataclass(frozen=True, slots=True)
class SetStrategy(SimulatedChange):
    """Another assignor of a consumer group, or another rack strategy of an application."""

    group: str
    strategy: str

    def __str__(self) -> str:
        return f"{self.group} with {self.strategy}"


@dataclass(frozen=True, slots=True)
class SetStandbys(SimulatedChange):
    """Another number of standbys of each task."""

    group: str
    standbys: int

    def __str__(self) -> str:
        return f"{self.group} with {counted(self.standbys, 'standby', 'standbys')}"


_TOUCHED: Mapping[type[SimulatedChange], Callable[[Any], Keys]] = {
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


def touched(change: SimulatedChange) -> Keys:
    """Keys that no other change may touch."""
    return _TOUCHED.get(type(change), lambda _: ())(change)


def needed(change: SimulatedChange) -> Keys:
    """Keys that another change may not remove."""
    match change:
        case AddRack() | AddBroker() | AddMember():
            return (("no rack", change.rack),)
        case AddReplica():
            return ("no broker", change.broker), ("replication factor", change.partition.topic)
        case RemoveReplica():
            return (("replication factor", change.partition.topic),)
        case _:
            return ()


def check_changes(changes: Sequence[SimulatedChange]) -> None:
    """Raise ``BadInput`` for no change, and for two that contradict each other."""
    if not changes:
        raise BadInput("there is nothing to simulate", why="no change is named", todo="See: rackwise simulate --help")
    for one, other in permutations(changes, 2):
        if {*touched(one)} & {*touched(other), *needed(other)}:
            raise BadInput(
                f"these changes contradict each other: {one}; {other}",
                why="they change the same, or one takes away what the other needs",
                todo="Leave one of them out.",
            )


class SimulatedCluster(NamedTuple):
    """A snapshot and the settings."""

    snapshot: Snapshot
    limits: Limits


def what_if(cluster: SimulatedCluster, changes: Sequence[SimulatedChange]) -> SimulatedCluster:
    """The cluster after all changes. Raises ``BadInput`` for none, contradictions and unknown names."""
    check_changes(changes)
    kinds = list(_APPLY)
    for change in sorted(changes, key=lambda change: kinds.index(type(change))):
        cluster = _APPLY[type(change)](cluster, change)
    return cluster


def _remove_member(cluster: SimulatedCluster, change: RemoveMember) -> SimulatedCluster:
    group = without_member(reader_group(cluster.snapshot, change.group), change.member)
    return cluster._replace(snapshot=with_group(cluster.snapshot, group))


def _add_member(cluster: SimulatedCluster, change: AddMember) -> SimulatedCluster:
    _check_rack(cluster.snapshot, change.rack)
    group = with_member(reader_group(cluster.snapshot, change.group), change.rack)
    return cluster._replace(snapshot=with_group(cluster.snapshot, group))


def _remove_rack(cluster: SimulatedCluster, change: RemoveRack) -> SimulatedCluster:
    snapshot, rack = cluster.snapshot, change.rack
    gone = frozenset(broker.id for broker in snapshot.brokers if broker.rack.name == rack and broker.alive)
    if not gone:
        raise _no_rack(snapshot, rack)
    snapshot = without_brokers(snapshot, gone)
    for group in snapshot.groups.values():
        if isinstance(group, ReaderGroup):
            left = without_rack(group, rack)
            if left is not group:
                snapshot = with_group(snapshot, left)
    return cluster._replace(snapshot=snapshot)


def _add_rack(cluster: SimulatedCluster, change: AddRack) -> SimulatedCluster:
    snapshot = cluster.snapshot
    if change.rack in _racks(snapshot):
        raise BadInput(
            f"rack {change.rack} is there already",
            why=f"brokers are in {', '.join(_racks(snapshot))}",
            todo=f"Add a broker to it: --add-broker ID={change.rack}",
        )
    _check_new(snapshot, change.brokers)
    return cluster._replace(snapshot=with_brokers(snapshot, dict.fromkeys(change.brokers, change.rack)))


def _remove_broker(cluster: SimulatedCluster, change: RemoveBroker) -> SimulatedCluster:
    _check_broker(cluster.snapshot, change.broker)
    return cluster._replace(snapshot=without_brokers(cluster.snapshot, frozenset({change.broker})))


def _add_broker(cluster: SimulatedCluster, change: AddBroker) -> SimulatedCluster:
    _check_new(cluster.snapshot, (change.broker,))
    _check_rack(cluster.snapshot, change.rack)
    return cluster._replace(snapshot=with_brokers(cluster.snapshot, {change.broker: change.rack}))


def _add_replica(cluster: SimulatedCluster, change: AddReplica) -> SimulatedCluster:
    _check_broker(cluster.snapshot, change.broker)
    state = _partition(cluster.snapshot, change.partition)
    if change.broker in state.replicas:
        what = f"broker {change.broker} has a replica of {change.partition} already"
        why = f"its replicas are on {', '.join(map(str, state.replicas))}"
        raise BadInput(what, why=why, todo="Name another broker.")
    replicas = (*state.replicas, change.broker)
    return cluster._replace(snapshot=with_replicas(cluster.snapshot, {change.partition: replicas}))


def _remove_replica(cluster: SimulatedCluster, change: RemoveReplica) -> SimulatedCluster:
    state = _partition(cluster.snapshot, change.partition)
    rest = tuple(replica for replica in state.replicas if replica != change.broker)
    if len(rest) == len(state.replicas) or not rest:
        what = (
            f"broker {change.broker} has no replica of {change.partition}"
            if rest
            else f"{change.partition} would have no replica left"
        )
        why = f"its replicas are on {', '.join(map(str, state.replicas))}"
        raise BadInput(what, why=why, todo="Name another broker.")
    return cluster._replace(snapshot=with_replicas(cluster.snapshot, {change.partition: rest}))


def _set_replication_factor(cluster: SimulatedCluster, change: SetReplicationFactor) -> SimulatedCluster:
    topic = cluster.snapshot.topics.get(change.topic)
    if topic is None:
        raise unknown_topic(change.topic, cluster.snapshot)
    lists = resized(cluster.snapshot, topic, change.replication_factor)
    return cluster._replace(snapshot=with_replicas(cluster.snapshot, lists))


def _set_strategy(cluster: SimulatedCluster, change: SetStrategy) -> SimulatedCluster:
    group, limits = with_strategy(reader_group(cluster.snapshot, change.group), cluster.limits, change.strategy)
    return SimulatedCluster(with_group(cluster.snapshot, group), limits)


def _set_standbys(cluster: SimulatedCluster, change: SetStandbys) -> SimulatedCluster:
    group = reader_group(cluster.snapshot, change.group)
    return SimulatedCluster(*with_standbys(group, cluster.snapshot, cluster.limits, change.standbys))


_APPLY: Mapping[type[SimulatedChange], Callable[[SimulatedCluster, Any], SimulatedCluster]] = {
    RemoveMember: _remove_member,
    RemoveRack: _remove_rack,
    RemoveBroker: _remove_broker,
    AddRack: _add_rack,
    AddBroker: _add_broker,
    RemoveReplica: _remove_replica,
    AddReplica: _add_replica,
    SetReplicationFactor: _set_replication_factor,
    AddMember: _add_member,
    SetStrategy: _set_strategy,
    SetStandbys: _set_standbys,
}
"""In the order in which they are made."""


def _partition(snapshot: Snapshot, partition: TopicPartition) -> PartitionState:
    topic = snapshot.topics.get(partition.topic)
    if topic is None:
        raise unknown_topic(partition.topic, snapshot, todo="Write the partition as TOPIC-NUMBER.")
    state = next((row for row in topic.partitions if row.id == partition), None)
    if state is None:
        raise BadInput(
            f"there is no partition {partition}",
            why=f"topic {topic.name} has {counted(len(topic.partitions), 'partition')}",
            todo="Name one of them, as TOPIC-NUMBER.",
        )
    return state


def _check_broker(snapshot: Snapshot, broker: int) -> None:
    found = snapshot.broker(broker)
    if found is None:
        _check_all_seen(snapshot, f"broker {broker}")
    if found is None or not found.alive:
        alive = [str(one.id) for one in snapshot.brokers if one.alive]
        raise BadInput(
            f"there is no broker {broker}" if found is None else f"broker {broker} is away",
            why=f"brokers {', '.join(alive)} are there",
            todo="Name one of them.",
        )


def _check_new(snapshot: Snapshot, brokers: Iterable[int]) -> None:
    for broker in brokers:
        if broker < 0:
            raise BadInput(f"{broker} is no id of a broker", why="ids begin at 0", todo="Name another id.")
        found = snapshot.broker(broker)
        if found is not None and found.alive:
            raise BadInput(f"broker {broker} is there already", why="ids are unique", todo="Name another id.")


def _check_rack(snapshot: Snapshot, rack: str | None) -> None:
    if rack is not None and rack not in _racks(snapshot):
        raise _no_rack(snapshot, rack)


def _check_all_seen(snapshot: Snapshot, what: str) -> None:
    """Raises where a broker or a rack that was not found may exist all the same."""
    gap = next(iter(gaps_of(snapshot, (ObservationPart.BROKERS,))), None)
    if gap is not None:
        raise PartialAnswer(
            f"{what} was not found",
            why=f"not all brokers could be read ({gap.cause.value}), so it may exist",
            todo="Try again once all brokers answer.",
        )


def _no_rack(snapshot: Snapshot, rack: str) -> BadInput:
    _check_all_seen(snapshot, f"rack {rack!r}")
    return BadInput(
        f"there is no rack {rack!r}",
        why=f"brokers are in {', '.join(_racks(snapshot)) or 'no known rack'}",
        todo=f"Name one of them, or add it: --add-rack {rack}=ID,ID",
    )


def _racks(snapshot: Snapshot) -> list[str]:
    return sorted({broker.rack.name for broker in snapshot.brokers if broker.alive and broker.rack.name is not None})
