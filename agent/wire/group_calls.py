"""Calls about groups: ListGroups, and DescribeGroups with the untouched bytes of classic members."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agent.values.kafka import CLASSIC_GROUP, DEAD
from agent.values.observation import (
    Gap,
    GapCause,
    ObservationPart,
    RawClassicGroup,
    RawGroup,
    RawListedGroup,
    RawMember,
)
from agent.wire.batches import PAUSE_S, ask_groups
from agent.wire.connection import BrokerConnection
from agent.wire.epoch_group_calls import EPOCH_GROUP_CALLS, DescribeCall
from agent.wire.failure import COORDINATOR_MOVING, CallFailed, Deadline, from_error_name
from agent.wire.pool import ConnectionPool
from agent.wire.protocol import DESCRIBE_GROUPS, LIST_GROUPS, error_name, raise_on_error

_TYPES_SINCE = 5
_STATES_SINCE = 4
_NEWER_KINDS = frozenset((68, 76, 88, *(call.api.key for call in EPOCH_GROUP_CALLS.values())))
"""Calls of KIP-848, KIP-932 and KIP-1071; a broker without any of them (before Kafka 3.7) has classic groups alone."""
_LOADING_SHARE = 0.5
"""Of the time for a list: how long a broker that loads its groups is asked again; then its groups are a gap."""
_GONE = "Dead: the coordinator does not know the group any more"


class ListedGroups(NamedTuple):
    """All visible groups, with the broker that listed each (its coordinator)."""

    groups: tuple[RawListedGroup, ...]
    """Sorted by id."""
    coordinators: Mapping[str, int]
    silent: tuple[int, ...]
    """Brokers that did not answer: their groups are missing."""
    gaps: tuple[Gap, ...]


class DescribedGroups(NamedTuple):
    """Groups of one type as their coordinators describe them."""

    groups: tuple[RawGroup, ...]
    """Sorted by id."""
    gaps: tuple[Gap, ...]


def list_groups(pool: ConnectionPool, deadline: Deadline) -> ListedGroups:
    """Groups of every broker that serves; each lists those it coordinates, so a silent broker is a gap."""
    answers = pool.ask_each(dict.fromkeys(pool.broker_ids, _ask_list), deadline, name="list groups")
    rows: dict[str, RawListedGroup] = {}
    coordinators: dict[str, int] = {}
    gaps: list[Gap] = []
    silent: list[int] = []
    older: set[int] = set()
    for broker, answer in sorted(answers.items()):
        if isinstance(answer, CallFailed):
            gaps.append(Gap(ObservationPart.GROUPS, answer.cause, f"broker {broker}", answer.detail))
            silent.append(broker)
            continue
        version, listed = answer
        if any(row.group_type is None for row in listed):
            older.add(version)
        for row in listed:
            rows[row.group_id] = row
            coordinators[row.group_id] = broker
    if older:
        detail = (
            f"ListGroups v{min(older)} reports no group types, so the types of groups that are not classic are unknown"
        )
        gaps.append(Gap(ObservationPart.GROUPS, GapCause.UNSUPPORTED, "group types", detail))
    return ListedGroups(tuple(rows[name] for name in sorted(rows)), coordinators, tuple(silent), tuple(gaps))


def describe_groups(
    pool: ConnectionPool, group_type: str, groups: Iterable[str], coordinators: Mapping[str, int], deadline: Deadline
) -> DescribedGroups:
    """Groups of a type of `DESCRIBE_CALLS`; one that failed or is gone is a gap, alone.

    Classic groups have their members' bytes untouched; others have racks, epochs, current and target assignments, and
    streams groups also topology and tags.
    """
    call = DESCRIBE_CALLS[group_type]
    answers = ask_groups(pool, groups, coordinators, call.ask, deadline, name=call.title)
    found: list[RawGroup] = []
    gaps = [
        Gap(ObservationPart.GROUPS, failure.cause, group, failure.detail) for group, failure in answers.failures.items()
    ]
    for group, (broker, row) in answers.values.items():
        if isinstance(row, RawClassicGroup) and row.state == DEAD:
            # Before v6 this means "no such group" (KIP-1043).
            gaps.append(Gap(ObservationPart.GROUPS, GapCause.VANISHED, group, _GONE))
        else:
            found.append(row._replace(coordinator=broker))
    return DescribedGroups(tuple(sorted(found, key=lambda row: row.group_id)), tuple(sorted(gaps)))


def describe_group(connection: BrokerConnection, group: str, deadline: Deadline) -> RawClassicGroup:
    """One classic group, asked on this very connection. Raises CallFailed, of cause VANISHED when there is none."""
    rows = _DESCRIBE_CLASSIC.ask(connection, [group], deadline)
    row = next((one for one in rows if one.group_id == group), None)
    if row is None or not isinstance(row.value, RawClassicGroup):
        raise CallFailed(GapCause.ERROR, "the coordinator's answer does not contain this group")
    if row.error is not None:
        raise from_error_name(row.error, row.message)
    if row.value.state == DEAD:
        raise CallFailed(GapCause.VANISHED, _GONE)
    return row.value


def _ask_list(connection: BrokerConnection, until: Deadline) -> tuple[int, list[RawListedGroup]]:
    version = connection.version(LIST_GROUPS)
    classic_alone = _NEWER_KINDS.isdisjoint(connection.versions)
    # A broker that has just become a coordinator loads its groups; Kafka's AdminClient asks again too.
    loaded_by = until.part(_LOADING_SHARE)
    while True:
        answer = connection.call(LIST_GROUPS, LIST_GROUPS.request(), until, version=version)
        if error_name(answer.error_code) not in COORDINATOR_MOVING or loaded_by.left_s <= PAUSE_S:
            break
        time.sleep(PAUSE_S)
    raise_on_error(answer.error_code)
    return version, [
        RawListedGroup(
            row.group_id,
            row.protocol_type,
            row.group_state if version >= _STATES_SINCE else None,
            row.group_type.lower() if version >= _TYPES_SINCE else CLASSIC_GROUP if classic_alone else None,
        )
        for row in answer.groups
    ]


def _classic_group(row: Any, _version: int) -> RawClassicGroup:
    return RawClassicGroup(
        row.group_id,
        row.group_state,
        row.protocol_type,
        row.protocol_data,
        tuple(sorted(_member(member) for member in row.members)),
        None,
    )


def _member(row: Any) -> RawMember:
    return RawMember(
        row.member_id,
        row.group_instance_id,
        row.client_id,
        row.client_host,
        bytes(row.member_metadata or b""),
        bytes(row.member_assignment or b""),
    )


_DESCRIBE_CLASSIC = DescribeCall("classic groups", DESCRIBE_GROUPS, "groups", _classic_group)
DESCRIBE_CALLS: Mapping[str, DescribeCall] = {CLASSIC_GROUP: _DESCRIBE_CLASSIC, **EPOCH_GROUP_CALLS}
"""Group type -> the call that describes its groups; groups of other types are only listed."""
