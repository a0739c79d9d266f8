"""Brokers that come and go, and replica lists that change: a snapshot as it would be once that has settled.

A broker that goes is away with its replicas still on it, as Kafka has it: it leaves every ISR, and the first in-sync
replica that is left leads. A broker that comes is empty, or brings back in sync what it had; a new replica is in sync.

Invariant: topics of which nothing changes are the same objects as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from agent.errors import BadInput
from agent.model.racks import known_rack
from agent.values.snapshot import BrokerState, PartitionState, Snapshot, TopicState
from agent.values.words import counted
from assignors.problem import TopicPartition

SIMULATED_HOST = "(simulated)"


def without_brokers(snapshot: Snapshot, gone: frozenset[int]) -> Snapshot:
    """Those brokers are away."""
    brokers = tuple(b._replace(alive=False, fenced=True) if b.id in gone else b for b in snapshot.brokers)
    controller = None if snapshot.controller in gone else snapshot.controller
    away = frozenset(broker.id for broker in brokers if not broker.alive)
    left = replace(snapshot, brokers=brokers, controller=controller)
    return _each_partition(left, lambda state: _left_by(state, away) if gone & {*state.replicas} else state)


def with_brokers(snapshot: Snapshot, new: Mapping[int, str | None]) -> Snapshot:
    """Brokers with their racks are there, set up as the others are; ids of absent brokers come back."""
    old = {broker.id: broker for broker in snapshot.brokers}
    like = next((broker.id for broker in snapshot.brokers if broker.alive), None)
    made = {
        broker: BrokerState(broker, SIMULATED_HOST, None, known_rack(rack), alive=True, fenced=False, cordoned=False)
        for broker, rack in new.items()
    }
    configs = dict(snapshot.broker_configs)
    if like in configs:
        configs = {**dict.fromkeys(new, configs[like]), **configs}
    back = frozenset(new) & frozenset(old)
    grown = replace(
        snapshot,
        brokers=tuple(sorted({**old, **made}.values(), key=lambda broker: broker.id)),
        broker_configs=dict(sorted(configs.items())),
    )
    return _each_partition(grown, lambda state: _joined_by(state, back) if back & {*state.replicas} else state)


def with_replicas(snapshot: Snapshot, lists: Mapping[TopicPartition, tuple[int, ...]]) -> Snapshot:
    """Those partitions have these replicas, all of live brokers in sync."""
    alive = {broker.id for broker in snapshot.brokers if broker.alive}
    return _each_partition(
        snapshot, lambda state: _placed(state, lists[state.id], alive) if state.id in lists else state
    )


def resized(snapshot: Snapshot, topic: TopicState, replication_factor: int) -> dict[TopicPartition, tuple[int, ...]]:
    """New replica lists with so many replicas: added in the emptiest rack, taken from the fullest; leaders stay.

    Raises ``BadInput`` for a factor below 1 and above the brokers that can take replicas.
    """
    rows = _brokers(snapshot)
    usable = sum(row.takes for row in rows.values())
    if not 1 <= replication_factor <= usable:
        raise BadInput(
            f"topic {topic.name} cannot have {counted(replication_factor, 'replica')}",
            why=f"there is at least one, and only {counted(usable, 'broker')} can take replicas",
            todo="Name another number, or add brokers.",
        )
    load = Counter(b for of in snapshot.topics.values() for state in of.partitions for b in state.replicas)
    lists: dict[TopicPartition, tuple[int, ...]] = {}
    for state in topic.partitions:
        replicas = list(state.replicas)
        while len(replicas) != replication_factor and replicas:
            held = Counter(rows[broker].rack for broker in replicas)
            if len(replicas) < replication_factor:
                broker = min(
                    (b for b, row in rows.items() if row.takes and b not in replicas),
                    key=lambda b: (rows[b].rack is None, held[rows[b].rack], load[b], b),
                )
                replicas.append(broker)
                load[broker] += 1
            else:
                broker = max(replicas[1:], key=lambda b: (not rows[b].takes, held[rows[b].rack], load[b], b))
                replicas.remove(broker)
                load[broker] -= 1
        if tuple(replicas) != state.replicas:
            lists[state.id] = tuple(replicas)
    return lists


class _Row(NamedTuple):
    rack: str | None
    takes: bool


def _brokers(snapshot: Snapshot) -> dict[int, _Row]:
    return {b.id: _Row(b.rack.name, b.alive and not b.fenced and not b.cordoned) for b in snapshot.brokers}


def _each_partition(snapshot: Snapshot, change: Callable[[PartitionState], PartitionState]) -> Snapshot:
    topics: dict[str, TopicState] = {}
    for name, topic in snapshot.topics.items():
        partitions = tuple(map(change, topic.partitions))
        same = all(one is other for one, other in zip(partitions, topic.partitions, strict=True))
        topics[name] = topic if same else topic._replace(partitions=partitions)
    return replace(snapshot, topics=topics)


def _left_by(state: PartitionState, away: frozenset[int]) -> PartitionState:
    in_sync = tuple(broker for broker in state.isr if broker not in away)
    return state._replace(
        leader=_leader(state, state.replicas, in_sync),
        isr=in_sync,
        offline=tuple(sorted({*state.offline, *(away & {*state.replicas})})),
    )


def _joined_by(state: PartitionState, back: frozenset[int]) -> PartitionState:
    in_sync = tuple(broker for broker in state.replicas if broker in state.isr or broker in back)
    return state._replace(
        leader=_leader(state, state.replicas, in_sync),
        isr=in_sync,
        offline=tuple(broker for broker in state.offline if broker not in back),
    )


def _placed(state: PartitionState, replicas: tuple[int, ...], alive: Iterable[int]) -> PartitionState:
    new = {*replicas} - {*state.replicas}
    in_sync = tuple(b for b in replicas if b in state.isr or (b in new and b in alive and state.leader is not None))
    return state._replace(
        leader=_leader(state, replicas, in_sync),
        replicas=replicas,
        isr=in_sync,
        offline=tuple(broker for broker in state.offline if broker in replicas),
    )


def _leader(state: PartitionState, replicas: tuple[int, ...], in_sync: tuple[int, ...]) -> int | None:
    """The leader stays as long as it can; then it is the first in-sync replica in assignment order."""
    if state.leader in in_sync:
        return state.leader
    return next((broker for broker in replicas if broker in in_sync), None)
