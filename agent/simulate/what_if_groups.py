"""Members that come and go, other strategies and standbys: groups and settings as they would be before a rebalance.

Who leaves takes nothing over: what it read has no reader until the group's assignor is asked. Who comes is like the
members that are there: the same client, subscription and number of threads, with nothing assigned yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

from agent.errors import BadInput
from agent.model.racks import known_rack
from agent.plan.subjects import did_you_mean, unknown_group
from agent.predict.predict import ASSIGNORS
from agent.simulate.what_if_replicas import SIMULATED_HOST
from agent.values.kafka import BALANCE_SUBTOPOLOGY, GROUP_STANDBYS, MIN_TRAFFIC, NO_STRATEGY
from agent.values.limits import Limits
from agent.values.snapshot import (
    COORDINATOR_KINDS,
    ConsumerGroup,
    Member,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    StreamsProcess,
)
from agent.values.words import counted, few

STRATEGIES = (BALANCE_SUBTOPOLOGY, MIN_TRAFFIC, NO_STRATEGY)
MOST_STANDBYS = 1_000


def reader_group(snapshot: Snapshot, name: str) -> ReaderGroup:
    """The group of that name, if something can be asked about it. Raises ``BadInput``."""
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


def with_member(group: ReaderGroup, rack: str | None) -> ReaderGroup:
    """One more consumer, or one more instance of the application, in that rack; None: it sends no rack."""
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
    if isinstance(group, ConsumerGroup):
        _check_strategy(group, strategy, ASSIGNORS[group.kind])
        return group._replace(assignor=strategy), limits
    if group.kind in COORDINATOR_KINDS:
        raise BadInput(
            f"group {group.id} has no strategy to change",
            why="brokers assign its tasks (KIP-1071) and have one way to do it",
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
            why=f"num.standby.replicas begins at 0, and more than {MOST_STANDBYS} are a typing error",
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
    """Tags that name the rack of the process they are taken from name the new one."""
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


def _check_one(group: str, name: str, found: list[str], every: list[str]) -> None:
    if len(found) == 1:
        return
    shown = few(sorted(found or every), 5)
    what = "there are several" if found else "there is no"
    raise BadInput(
        f"{what} {name!r} in group {group}",
        why=f"its members are {shown}" if not found else f"it names {shown}",
        todo=(did_you_mean(name, every) if not found else "") + "Name one by its id: rackwise groups " + group,
    )


def _check_strategy(group: ReaderGroup, strategy: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if strategy not in names:
        raise BadInput(
            f"{strategy!r} is no strategy of group {group.id}",
            why=f"it is a {group.kind.value} group",
            todo=f"Name one of {', '.join(names)}.",
        )
