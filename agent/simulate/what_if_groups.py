"""What-if groups and brokers: members, strategies, standbys, brokers and replica lists after a change.

A leaving member's partitions have no reader until the assignor runs. A new member is like the present ones (client,
subscription, threads), with no assignment.

A removed broker keeps its replicas, leaves every ISR, and the first remaining in-sync replica leads. An added broker is
empty, or brings back its replicas in sync; a new replica is in sync. Unchanged topics are the same objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple
from uuid import NAMESPACE_OID, uuid5

from agent.errors import BadInput
from agent.plan.new_partitions import did_you_mean, unknown_group
from agent.predict.predict import PREDICTED_ASSIGNORS
from agent.values.kafka import BALANCE_SUBTOPOLOGY, GROUP_STANDBYS, MIN_TRAFFIC, NO_STRATEGY, NUM_STANDBYS
from agent.values.limits import Limits
from agent.values.number_format import counted, few
from agent.values.plan import PredictedAssignment
from agent.values.snapshot import (
    COORDINATOR_KINDS,
    BrokerState,
    ConsumerGroup,
    Member,
    MemberTasks,
    PartitionState,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    StreamsProcess,
    TaskRole,
    TopicState,
    known_rack,
)
from assignors.problem import TopicPartition

SIMULATED_HOST = "(simulated)"


def without_brokers(snapshot: Snapshot, gone: frozenset[int]) -> Snapshot:
    """The snapshot without those brokers, which keep their replicas."""
    brokers = tuple(b._replace(alive=False, fenced=True) if b.id in gone else b for b in snapshot.brokers)
    controller = None if snapshot.controller in gone else snapshot.controller
    away = frozenset(broker.id for broker in brokers if not broker.alive)
    left = replace(snapshot, brokers=brokers, controller=controller)
    return _each_partition(left, lambda state: _left_by(state, away) if gone & {*state.replicas} else state)


def with_brokers(snapshot: Snapshot, new: Mapping[int, str | None]) -> Snapshot:
    """The snapshot with those brokers (id -> rack), configured like the others; absent ids come back."""
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
    """The snapshot with these replica lists, new replicas on live brokers in sync."""
    alive = {broker.id for broker in snapshot.brokers if broker.alive}
    return _each_partition(
        snapshot, lambda state: _placed(state, lists[state.id], alive) if state.id in lists else state
    )


def resized(snapshot: Snapshot, topic: TopicState, replication_factor: int) -> dict[TopicPartition, tuple[int, ...]]:
    """New replica lists with so many replicas: added in the emptiest rack, taken from the fullest; leaders stay.

    Raises ``BadInput`` for a factor below 1 and above the brokers that can take replicas.
    """
    rows = {b.id: _Row(b.rack.name, b.alive and not b.fenced and not b.cordoned) for b in snapshot.brokers}
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


STRATEGIES = (BALANCE_SUBTOPOLOGY, MIN_TRAFFIC, NO_STRATEGY)
MOST_STANDBYS = 1_000


def reader_group(snapshot: Snapshot, name: str) -> ReaderGroup:
    """The group of that name, if it can be simulated. Raises ``BadInput``."""
    group = snapshot.groups.get(name)
    if group is None:
        raise unknown_group(name, snapshot)
    if not isinstance(group, ReaderGroup):
        raise BadInput(
            f"group {name} cannot be simulated",
            why="it assigns no partitions to readers",
            todo="Name a group of consumers or of a Streams application.",
        )
    if group.hidden or not group.members:
        raise BadInput(
            f"group {name} cannot be simulated now",
            why="a rebalance hides its members" if group.hidden else "it has no members",
            todo="Try again when it is Stable.",
        )
    return group


def with_group(snapshot: Snapshot, group: ReaderGroup) -> Snapshot:
    """The snapshot with that group instead of its namesake; copies of tasks on processes that left are gone."""
    copies = snapshot.copies
    if isinstance(group, StreamsGroup) and group.id in copies:
        left = {process.id for process in group.processes}
        copies = {**copies, group.id: tuple(copy for copy in copies[group.id] if copy.process_id in left)}
    return replace(snapshot, groups={**snapshot.groups, group.id: group}, copies=copies)


def with_assignment(snapshot: Snapshot, group: ReaderGroup, given: PredictedAssignment) -> Snapshot:
    """The snapshot in which the group has this assignment, and nothing warms up; copies that are not in it are gone.

    Of a Streams process its first thread has all partitions: which one has which changes no read.
    """
    if isinstance(group, ConsumerGroup):
        return with_group(snapshot, group._replace(members=tuple(_given(m, given.reads) for m in group.members)))
    reads = {p.member_ids[0]: given.reads.get(p.id, ()) for p in group.processes if p.member_ids}
    processes = tuple(
        p._replace(active=given.active.get(p.id, ()), standby=given.standby.get(p.id, ()), warmup=())
        for p in group.processes
    )
    targets = tuple(MemberTasks(p.member_ids[0], p.active, p.standby) for p in processes if p.member_ids)
    members = tuple(_given(member, reads) for member in group.members)
    group = group._replace(members=members, processes=processes, targets=targets if group.targets else ())
    standbys = {(p.id, task) for p in processes for task in p.standby}
    copies = tuple(
        copy._replace(role=TaskRole.STANDBY)
        for copy in snapshot.copies.get(group.id, ())
        if (copy.process_id, copy.task) in standbys
    )
    return with_group(replace(snapshot, copies={**snapshot.copies, group.id: copies}), group)


def _given(member: Member, reads: Mapping[str, tuple[TopicPartition, ...]]) -> Member:
    held = reads.get(member.id, ())
    return member._replace(owned=held, assigned=held, target=None if member.target is None else held)


def with_member(group: ReaderGroup, rack: str | None) -> ReaderGroup:
    """One more consumer or Streams process in that rack, or without one. Raises BadInput when processes are unknown."""
    number = 1
    while any(member.id.startswith(f"simulated-{number}") for member in group.members):
        number += 1
    if isinstance(group, ConsumerGroup):
        return group._replace(members=_sorted((*group.members, _member(f"simulated-{number}", group.members[0], rack))))
    like = next((process for process in group.processes if process.rack.name == rack), None)
    if like is None and not group.processes:
        raise BadInput(f"group {group.id} cannot grow", why="its processes are unknown", todo="Try again later.")
    process = _process(str(uuid5(NAMESPACE_OID, f"{group.id} {number}")), like or group.processes[0], rack, number)
    template = next(member for member in group.members if member.id in (like or group.processes[0]).member_ids)
    threads = tuple(_member(member_id, template, rack) for member_id in process.member_ids)
    return group._replace(
        members=_sorted((*group.members, *threads)),
        processes=tuple(sorted((*group.processes, process), key=lambda one: one.id)),
    )


def without_member(group: ReaderGroup, name: str) -> ReaderGroup:
    """The group after a member left, named by member id, client id, instance id, or process id.

    Of a Streams application the whole process goes. Raises ``BadInput`` when the name fits no member, or more than one.
    """
    named = [m for m in group.members if m.id == name]
    named = named or [m for m in group.members if name in (m.client_id, m.instance_id)]
    if isinstance(group, StreamsGroup):
        ids = {member.id for member in named}
        gone = [p for p in group.processes if p.id == name or ids & {*p.member_ids}]
        _check_one(group.id, name, [p.id for p in gone], [p.id for p in group.processes])
        return _without(group, gone)
    _check_one(group.id, name, [member.id for member in named], [member.id for member in group.members])
    return group._replace(members=tuple(member for member in group.members if member.id != named[0].id))


def without_rack(group: ReaderGroup, rack: str) -> ReaderGroup:
    """The group without the members in that rack; the same object when none is there."""
    if isinstance(group, StreamsGroup):
        gone = [process for process in group.processes if process.rack.name == rack]
        return _without(group, gone) if gone else group
    stay = tuple(member for member in group.members if member.rack.name != rack)
    return group if len(stay) == len(group.members) else group._replace(members=stay)


def with_strategy(group: ReaderGroup, limits: Limits, strategy: str) -> tuple[ReaderGroup, Limits]:
    """The group with another assignor, or the application with another rack strategy. Raises ``BadInput``."""
    if isinstance(group, ConsumerGroup) and (assignors := PREDICTED_ASSIGNORS.get(group.kind)):
        _check_strategy(group, strategy, assignors)
        return group._replace(assignor=strategy), limits
    if group.kind in COORDINATOR_KINDS:
        raise BadInput(
            f"group {group.id} has no strategy to change",
            why="its coordinator has one way to assign",
            todo="Leave it out.",
        )
    _check_strategy(group, strategy, STRATEGIES)
    settings = replace(limits.group(group.id), rack_aware_assignment_strategy=strategy, known=True)
    return group, replace(limits, groups={**limits.groups, group.id: settings})


def with_standbys(group: ReaderGroup, snapshot: Snapshot, limits: Limits, standbys: int) -> tuple[Snapshot, Limits]:
    """The application with so many standbys of each task. Raises ``BadInput``."""
    if not isinstance(group, StreamsGroup):
        raise BadInput(
            f"group {group.id} has no standbys", why="it is no Streams application", todo="Leave --standbys out."
        )
    if not 0 <= standbys <= MOST_STANDBYS:
        raise BadInput(
            f"group {group.id} cannot have {counted(standbys, 'standby', 'standbys')} of a task",
            why=f"{NUM_STANDBYS} begins at 0, and more than {MOST_STANDBYS} are a typing error",
            todo="Name another number.",
        )
    if group.kind in COORDINATOR_KINDS:
        configs = {**snapshot.group_configs.get(group.id, {}), GROUP_STANDBYS: str(standbys)}
        snapshot = replace(snapshot, group_configs={**snapshot.group_configs, group.id: configs})
    settings = replace(limits.group(group.id), num_standby_replicas=standbys, known=True)
    return snapshot, replace(limits, groups={**limits.groups, group.id: settings})


def _member(member_id: str, like: Member, rack: str | None) -> Member:
    return like._replace(
        id=member_id,
        instance_id=None,
        client_host=SIMULATED_HOST,
        rack=known_rack(rack),
        owned=(),
        assigned=(),
        target=None if like.target is None else (),
        generation=None,
        defects=(),
    )


def _process(process_id: str, like: StreamsProcess, rack: str | None, number: int) -> StreamsProcess:
    """A new process like another one; tags with the other's rack get the new rack."""
    old = like.rack.name
    tags = tuple((key, rack if value == old and rack is not None else value) for key, value in like.tags)
    return StreamsProcess(
        id=process_id,
        rack=known_rack(rack),
        tags=tags,
        capacity=like.capacity,
        member_ids=tuple(f"simulated-{number}-{thread}" for thread in range(1, like.capacity + 1)),
        client_ids=like.client_ids,
        active=(),
        standby=(),
        warmup=(),
    )


def _without(group: StreamsGroup, gone: Iterable[StreamsProcess]) -> StreamsGroup:
    left = {process.id for process in gone}
    members = {member_id for process in gone for member_id in process.member_ids}
    return group._replace(
        members=tuple(member for member in group.members if member.id not in members),
        processes=tuple(process for process in group.processes if process.id not in left),
        targets=tuple(target for target in group.targets if target.member_id not in members),
    )


def _sorted(members: tuple[Member, ...]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda member: member.id))


def _check_one(group: str, name: str, matching: list[str], every: list[str]) -> None:
    if len(matching) == 1:
        return
    shown = few(sorted(matching or every), 5)
    what = "there are several" if matching else "there is no"
    raise BadInput(
        f"{what} {name!r} in group {group}",
        why=f"its members are {shown}" if not matching else f"it names {shown}",
        todo=(did_you_mean(name, every) if not matching else "") + "Name one by its id: rackwise groups " + group,
    )


def _check_strategy(group: ReaderGroup, strategy: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if strategy not in names:
        raise BadInput(
            f"{strategy!r} is no strategy of group {group.id}",
            why=f"it is a {group.kind.value} group",
            todo=f"Name one of {', '.join(names)}.",
        )
