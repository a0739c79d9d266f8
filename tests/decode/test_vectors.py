"""Bytes that Kafka's own classes wrote, field by field, and the values that they stand for."""

from __future__ import annotations

import pytest

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

IN_1 = TopicPartition("in", 1)
IN_2 = TopicPartition("in", 2)
TASK_1 = TaskId(0, 1)
TASK_2 = TaskId(0, 2)

SUBSCRIPTIONS = [
    pytest.param(
        "0003 00000001 0002696e 00000001 07 00000001 0002696e 00000001 00000001 00000004 00027231",
        Subscription(3, ("in",), b"\7", (IN_1,), 4, "r1"),
        id="version 3 with user data, owned partition, generation and rack",
    ),
    pytest.param(
        "0001 00000001 0002696e ffffffff 00000001 0002696e 00000001 00000001",
        Subscription(1, ("in",), None, (IN_1,), None, None),
        id="version 1 knows owned partitions, but neither generation nor rack",
    ),
    pytest.param(
        "0000 00000001 0002696e ffffffff",
        Subscription(0, ("in",), None, None, None, None),
        id="version 0 does not say what is owned",
    ),
    pytest.param(
        "0002 00000000 00000000 00000000 ffffffff",
        Subscription(2, (), b"", (), None, None),
        id="generation -1 before the first rebalance is no generation",
    ),
    pytest.param(
        "0003 00000000 ffffffff 00000000 00000007 ffff",
        Subscription(3, (), None, (), 7, None),
        id="a null rack is no rack",
    ),
]
SUBSCRIPTIONS_READ_ONLY = [
    pytest.param(
        "0003 00000000 ffffffff 00000000 00000007 0000",
        Subscription(3, (), None, (), 7, None),
        id="an empty rack is no rack",
    ),
    pytest.param(
        "0009 00000001 0002696e ffffffff 00000000 00000007 00027231 deadbeef",
        Subscription(9, ("in",), None, (), 7, "r1"),
        id="a newer version is read as version 3 and what it appends is ignored",
    ),
]


@pytest.mark.parametrize(("hexadecimal", "value"), SUBSCRIPTIONS + SUBSCRIPTIONS_READ_ONLY)
def test_subscription(hexadecimal: str, value: Subscription) -> None:
    assert decode_subscription(bytes.fromhex(hexadecimal)) == value


@pytest.mark.parametrize(("hexadecimal", "value"), SUBSCRIPTIONS)
def test_subscription_is_written_with_the_same_bytes(hexadecimal: str, value: Subscription) -> None:
    assert encode_subscription(value) == bytes.fromhex(hexadecimal)


def test_assignment() -> None:
    data = bytes.fromhex("0003 00000001 0002696e 00000001 00000001 ffffffff")
    assert decode_assignment(data) == Assignment(3, (IN_1,), None)
    assert encode_assignment(Assignment(3, (IN_1,), None)) == data


STICKY = "00000001 0002696e 00000002 00000001 00000002"


@pytest.mark.parametrize(
    ("hexadecimal", "value"),
    [
        pytest.param(f"{STICKY} 00000005", StickyUserData((IN_1, IN_2), 5), id="V1 has a generation"),
        pytest.param(f"{STICKY} ffffffff", StickyUserData((IN_1, IN_2), None), id="V1 before the first rebalance"),
        pytest.param(STICKY, StickyUserData((IN_1, IN_2), None), id="V0 has none"),
        pytest.param(f"{STICKY} 000000", StickyUserData((IN_1, IN_2), None), id="three bytes are no generation"),
    ],
)
def test_sticky(hexadecimal: str, value: StickyUserData) -> None:
    assert decode_sticky(bytes.fromhex(hexadecimal)) == value


@pytest.mark.parametrize(
    ("hexadecimal", "value"),
    [
        pytest.param("00000005", StickyUserData(None, 5), id="Java sends the generation alone"),
        pytest.param("ffffffff", StickyUserData(None, None), id="Java before the first rebalance"),
        pytest.param(f"{STICKY} 00000005", StickyUserData((IN_1, IN_2), 5), id="librdkafka adds what it owned"),
        pytest.param("00000005 00", StickyUserData(None, 5), id="anything else behind a generation is ignored"),
    ],
)
def test_cooperative_sticky(hexadecimal: str, value: StickyUserData) -> None:
    assert decode_cooperative_sticky(bytes.fromhex(hexadecimal)) == value


def test_sticky_user_data_is_written_with_the_same_bytes() -> None:
    assert encode_sticky(StickyUserData((IN_1, IN_2), 5)) == bytes.fromhex(f"{STICKY} 00000005")
    assert encode_sticky(StickyUserData(None, None)) == bytes.fromhex("ffffffff")


PROCESS = "0102030405060708090a0b0c0d0e0f10"
PROCESS_ID = "01020304-0506-0708-090a-0b0c0d0e0f10"
TASKS = "00000001 00000000 00000001 00000001 00000000 00000002"
ENDPOINT = "00000004 683a3830"
SUMS_BY_SUBTOPOLOGY = "00000001 00000000 00000002 00000001 fffffffffffffffe 00000002 000000000000012c"
SUMS = "00000002 00000000 00000001 fffffffffffffffe ffff 00000000 00000002 000000000000012c ffff"


def streams(
    version: int,
    *,
    sums: bool,
    unique: int | None = None,
    error: int | None = None,
    tags: tuple[tuple[str, str], ...] | None = None,
) -> StreamsSubscription:
    """The member of the vectors as each version tells it: task 0_1 runs, task 0_2 is a standby at offset 300."""
    return StreamsSubscription(
        version=version,
        latest_supported=11 if version >= 3 else None,
        process_id=PROCESS_ID,
        prev_tasks=() if sums else (TASK_1,),
        standby_tasks=() if sums else (TASK_2,),
        endpoint="h:80" if version >= 2 else None,
        offset_sums={TASK_1: RUNNING_ACTIVE, TASK_2: 300 if sums else UNKNOWN_OFFSET_SUM},
        unique_field=unique,
        error_code=error,
        client_tags=tags,
    )


STREAMS_SUBSCRIPTIONS = [
    pytest.param(f"00000001 {PROCESS} {TASKS}", streams(1, sums=False), id="v1 has two sets of tasks"),
    pytest.param(f"00000002 {PROCESS} {TASKS} {ENDPOINT}", streams(2, sums=False), id="v2 adds the endpoint"),
    *(
        pytest.param(
            f"0000000{version} 0000000b {PROCESS} {TASKS} {ENDPOINT}",
            streams(version, sums=False),
            id=f"v{version} says what it could speak",
        )
        for version in (3, 4, 5, 6)
    ),
    pytest.param(
        f"00000007 0000000b {PROCESS} {ENDPOINT} {SUMS_BY_SUBTOPOLOGY}",
        streams(7, sums=True),
        id="v7 has offset sums in place of the sets",
    ),
    pytest.param(
        f"00000008 0000000b {PROCESS} {ENDPOINT} {SUMS_BY_SUBTOPOLOGY} 05",
        streams(8, sums=True, unique=5),
        id="v8 adds the unique field",
    ),
    pytest.param(
        f"00000009 0000000b {PROCESS} {ENDPOINT} {SUMS_BY_SUBTOPOLOGY} 05 00000000",
        streams(9, sums=True, unique=5, error=0),
        id="v9 adds the error code",
    ),
    pytest.param(
        f"0000000a 0000000b {PROCESS} {ENDPOINT} {SUMS} 05 00000000",
        streams(10, sums=True, unique=5, error=0),
        id="v10 names the topology of each task",
    ),
    pytest.param(
        f"0000000b 0000000b {PROCESS} {ENDPOINT} {SUMS} 05 00000000 00000001 00000001 7a 00000001 61",
        streams(11, sums=True, unique=5, error=0, tags=(("z", "a"),)),
        id="v11 adds client tags",
    ),
]


@pytest.mark.parametrize(("hexadecimal", "value"), STREAMS_SUBSCRIPTIONS)
def test_streams_subscription(hexadecimal: str, value: StreamsSubscription) -> None:
    assert decode_subscription_info(bytes.fromhex(hexadecimal)) == value
    assert encode_subscription_info(value) == bytes.fromhex(hexadecimal)


def test_of_a_newer_streams_subscription_only_the_header_is_read() -> None:
    header = StreamsSubscriptionHeader(12, 13)
    assert decode_subscription_info(bytes.fromhex("0000000c 0000000d")) == header
    assert decode_subscription_info(bytes.fromhex("0000000c 0000000d deadbeef")) == header
    assert encode_subscription_info(header) == bytes.fromhex("0000000c 0000000d")


def test_a_task_of_a_named_topology_is_written_as_kafka_writes_it() -> None:
    data = bytes.fromhex(
        f"0000000b 0000000b {PROCESS} 00000000 00000001 00000002 00000003 0000000000000007 0001 78 05 00000000 00000000"
    )
    decoded = decode_subscription_info(data)
    assert isinstance(decoded, StreamsSubscription)
    assert {str(task): offset_sum for task, offset_sum in decoded.offset_sums.items()} == {"x__2_3": 7}
    assert encode_subscription_info(decoded) == data


ACTIVE = "00000001 00000000 00000001"
STANDBY_IN_2 = "00000001 0002696e 00000002"
DICTIONARY = "00000001 00000000 0002696e"
HOST_BY_INDEX = "00000001 000168 00000050 00000001 00000000 00000001"
NEXT = "0000000011223344"


def assigned(
    version: int, *, hosts: bool, commonly: int | None = 11, error: int | None = 0, next_ms: int | None = None
) -> StreamsAssignment:
    return StreamsAssignment(
        version=version,
        commonly_supported=commonly,
        active=(TASK_1,),
        standby=((TASK_2, (IN_2,)),),
        partitions_by_host=(HostPartitions("h", 80, (IN_1,)),) if hosts else (),
        standby_partitions_by_host=(),
        error_code=error,
        next_rebalance_ms=next_ms,
    )


STREAMS_ASSIGNMENTS = [
    pytest.param(
        f"00000001 {ACTIVE} 00000001 00000000 00000002 {STANDBY_IN_2}",
        assigned(1, hosts=False, commonly=None, error=None),
        id="v1 has tasks alone",
    ),
    pytest.param(
        f"00000004 0000000b {ACTIVE} 00000001 00000000 00000002 {STANDBY_IN_2}"
        "00000001 000168 00000050 00000001 0002696e 00000001 00000000",
        assigned(4, hosts=True),
        id="v4 has hosts and an error code",
    ),
    pytest.param(
        f"00000007 0000000b {ACTIVE} 00000001 00000000 00000002 {STANDBY_IN_2}"
        f"{DICTIONARY} {HOST_BY_INDEX} 00000000 00000000 {NEXT}",
        assigned(7, hosts=True, next_ms=0x11223344),
        id="v7 has a topic dictionary and the next rebalance",
    ),
    pytest.param(
        f"0000000b 0000000b {ACTIVE} 00000000 00000001 00000000 00000002 00000000 {STANDBY_IN_2}"
        f"{DICTIONARY} {HOST_BY_INDEX} 00000000 00000000 {NEXT}",
        assigned(11, hosts=True, next_ms=0x11223344),
        id="v11 has room for the topology's name",
    ),
    pytest.param(
        f"0000000b 0000000b {ACTIVE} 00000000 00000001 00000000 00000002 00000000 {STANDBY_IN_2}"
        f"{DICTIONARY} {HOST_BY_INDEX} 00000000 00000000 7fffffffffffffff",
        assigned(11, hosts=True, next_ms=None),
        id="the largest number stands for no next rebalance",
    ),
]


@pytest.mark.parametrize(("hexadecimal", "value"), STREAMS_ASSIGNMENTS)
def test_streams_assignment(hexadecimal: str, value: StreamsAssignment) -> None:
    data = bytes.fromhex(hexadecimal)
    assert decode_assignment_info(data) == value
    assert encode_assignment_info(value) == data
