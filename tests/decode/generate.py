"""Values as members send them, and what can go wrong with their bytes; everything follows from the `Random` given."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from struct import pack
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from agent.decode.members import decode_cooperative_sticky, decode_sticky, decode_subscription
from agent.decode.streams_user_data import decode_assignment_info, decode_subscription_info
from agent.decode.values import (
    RUNNING_ACTIVE,
    UNKNOWN_OFFSET_SUM,
    Assignment,
    HostPartitions,
    StickyUserData,
    StreamsAssignment,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Subscription,
)
from agent.execute.probe_bytes import encode_sticky, encode_subscription, encode_subscription_info
from assignors.problem import TaskId, TopicPartition
from tests.decode.assignments import decode_assignment, encode_assignment, encode_assignment_info

T = TypeVar("T")

NAMES = ("in", "orders", "a", "", "payments.eu-1", "caf\u00e9", "\u20ac", "\U0001f600", "nul\0", "x" * 249)
NUMBERS = (0, 1, 2, 3, 7, 255, 256, 65535, 65536, 2**31 - 1, -1, -2, -(2**31))
TOPOLOGIES = (None, None, None, None, None, "x", "top-1", "\u20ac")


def subscription(r: Random) -> Subscription:
    version = r.choice((0, 1, 2, 3, 3, 3, 4, 100))
    return Subscription(
        version=version,
        topics=some(r, name),
        user_data=r.choice((None, b"", r.randbytes(r.randrange(9)))),
        owned=some(r, partition) if version >= 1 else None,
        generation=r.choice((None, 0, 5, 2**31 - 1)) if version >= 2 else None,
        rack=r.choice((None, "r1", "\u00e9u-1a")) if version >= 3 else None,
    )


def assignment(r: Random) -> Assignment:
    return Assignment(r.choice((0, 1, 2, 3, 3, 9)), some(r, partition), r.choice((None, b"", r.randbytes(5))))


def sticky(r: Random) -> StickyUserData:
    return StickyUserData(some(r, partition), r.choice((None, 0, 5, -7)))


def cooperative_sticky(r: Random) -> StickyUserData:
    return StickyUserData(r.choice((None, some(r, partition))), r.choice((None, 0, 5, -7)))


def streams_subscription(r: Random) -> StreamsSubscription | StreamsSubscriptionHeader:
    version = r.choice((*range(1, 12), 7, 10, 11, 11, 12))
    latest = r.choice((version, 11, 11, 12, 2**31 - 1))
    if version > 11:
        return StreamsSubscriptionHeader(version, max(latest, version))
    prev = some(r, task) if version <= 6 else ()
    standby = some(r, task) if version <= 6 else ()
    if version <= 6:
        sums = dict.fromkeys(prev, RUNNING_ACTIVE) | dict.fromkeys(standby, UNKNOWN_OFFSET_SUM)
    else:
        tasks = sorted(some(r, task)) if version < 10 else some(r, named_task)
        sums = {t: r.choice((-2, -3, 0, 12345, 2**63 - 1, -(2**63))) for t in tasks}
    return StreamsSubscription(
        version=version,
        latest_supported=max(latest, version) if version >= 3 else None,
        process_id=str(UUID(bytes=r.randbytes(16))),
        prev_tasks=prev,
        standby_tasks=standby,
        endpoint=r.choice((None, "h:80", "caf\u00e9:1")) if version >= 2 else None,
        offset_sums=sums,
        unique_field=r.randrange(-128, 128) if version >= 8 else None,
        error_code=r.choice((0, 4, -1)) if version >= 9 else None,
        client_tags=some(r, lambda r: (name(r), name(r))) if version >= 11 else None,
    )


def streams_assignment(r: Random) -> StreamsAssignment:
    version = r.choice((*range(1, 12), 7, 10, 11, 11))
    a_task = task if version < 10 else named_task
    return StreamsAssignment(
        version=version,
        commonly_supported=r.choice((version, 11, None)) if version >= 3 else None,
        active=some(r, a_task),
        standby=tuple(dict(some(r, lambda r: (a_task(r), some(r, partition)))).items()),
        partitions_by_host=hosts(r) if version >= 2 else (),
        standby_partitions_by_host=hosts(r) if version >= 6 else (),
        error_code=r.choice((0, 1, 4, -9)) if version >= 4 else None,
        next_rebalance_ms=r.choice((None, 0, 0x11223344, -1)) if version >= 7 else None,
    )


def hosts(r: Random) -> tuple[HostPartitions, ...]:
    named = {(name(r), r.choice(NUMBERS)): some(r, partition) for _ in range(r.randrange(3))}
    return tuple(HostPartitions(*host, partitions) for host, partitions in named.items())


def some(r: Random, make: Callable[[Random], T]) -> tuple[T, ...]:
    return tuple(make(r) for _ in range(r.choice((0, 1, 1, 2, 3, 5))))


def name(r: Random) -> str:
    return r.choice(NAMES) if r.random() < 0.7 else f"topic-{r.randrange(1000)}"


def partition(r: Random) -> TopicPartition:
    return TopicPartition(name(r), r.choice(NUMBERS))


def task(r: Random) -> TaskId:
    return TaskId(r.choice(NUMBERS[:4]), r.choice(NUMBERS))


def named_task(r: Random) -> TaskId:
    topology = r.choice(TOPOLOGIES)
    plain = task(r)
    return plain if topology is None else TaskId(f"{topology}__{plain.subtopology}", plain.partition)


class Layout(NamedTuple):
    """One kind of bytes: how to make, write and read it."""

    name: str
    make: Callable[[Random], Any]
    encode: Callable[[Any], bytes]
    decode: Callable[..., Any]


LAYOUTS = (
    Layout("subscription", subscription, encode_subscription, decode_subscription),
    Layout("assignment", assignment, encode_assignment, decode_assignment),
    Layout("sticky", sticky, encode_sticky, decode_sticky),
    Layout("cooperative-sticky", cooperative_sticky, encode_sticky, decode_cooperative_sticky),
    Layout("subscription-info", streams_subscription, encode_subscription_info, decode_subscription_info),
    Layout("assignment-info", streams_assignment, encode_assignment_info, decode_assignment_info),
)


def mutated(r: Random, data: bytes) -> bytes:
    """The bytes with one to three things wrong."""
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        data = r.choice(_MUTATIONS)(r, data)
    return data


def _cut(r: Random, data: bytes) -> bytes:
    return data[: r.randrange(len(data) + 1)]


def _appended(r: Random, data: bytes) -> bytes:
    return data + r.randbytes(r.randrange(1, 9))


def _byte(r: Random, data: bytes) -> bytes:
    at = r.randrange(len(data) + 1)
    return data[:at] + bytes((r.choice((0, 1, 0x7F, 0x80, 0xC0, 0xED, 0xFF, r.randrange(256))),)) + data[at + 1 :]


def _number(r: Random, data: bytes) -> bytes:
    at = r.randrange(len(data) + 1)
    raw = pack(r.choice((">i", ">I")), r.choice((0, 1, 2, 3, 4, 100, 0x7FFFFFFF)))
    return data[:at] + r.choice((raw, b"\xff" * 4, b"\xff\xff", raw[2:])) + data[at + 4 :]


def _removed(r: Random, data: bytes) -> bytes:
    at = r.randrange(len(data) + 1)
    return data[:at] + data[at + r.randrange(1, 5) :]


def _inserted(r: Random, data: bytes) -> bytes:
    at = r.randrange(len(data) + 1)
    return data[:at] + r.randbytes(r.randrange(1, 5)) + data[at:]


def _doubled(r: Random, data: bytes) -> bytes:
    at = r.randrange(len(data) + 1)
    end = at + r.randrange(1, 13)
    return data[:end] + data[at:end] + data[end:]


_MUTATIONS = (_cut, _cut, _appended, _byte, _byte, _number, _number, _removed, _inserted, _doubled)
