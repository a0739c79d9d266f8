"""Bytes that a client may store as a member's metadata or assignment to do harm, by what is wrong with them.

Each is below the broker's own limits, so that a raw client can store it on a live cluster as well. None of them can be
read as what it is stored as: ``HOSTILE_SUBSCRIPTIONS`` in a group of any protocol, ``HOSTILE_USER_DATA`` inside a whole
subscription of a Streams group, ``HOSTILE_ASSIGNMENTS`` as an assignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from struct import pack

from agent.decode.values import Assignment, StreamsSubscription, Subscription
from agent.execute.probe_bytes import encode_subscription, encode_subscription_info
from assignors.problem import TaskId, TopicPartition
from tests.decode.assignments import encode_assignment

_WHOLE = encode_subscription(Subscription(3, ("orders",), b"\7", (TopicPartition("orders", 1),), 4, "r1"))
_ASSIGNED = encode_assignment(Assignment(3, (TopicPartition("orders", 1),), None))
_STREAMS = encode_subscription_info(
    StreamsSubscription(
        version=11,
        latest_supported=11,
        process_id="01020304-0506-0708-090a-0b0c0d0e0f10",
        prev_tasks=(),
        standby_tasks=(),
        endpoint="h:80",
        offset_sums={TaskId(0, 1): -2},
        unique_field=1,
        error_code=0,
        client_tags=(("zone", "a"),),
    )
)
_NAME = b"\0\6orders"
_NOISE = Random(5).randbytes(300)

HOSTILE_SUBSCRIPTIONS: Mapping[str, bytes] = {
    "one byte": b"\0",
    "a version alone": b"\0\3",
    "a negative version": b"\xff\xfe" + _WHOLE[2:],
    "two billion topics": b"\0\3" + pack(">i", 2**31 - 1) + _NAME,
    "minus one topics": b"\0\3" + pack(">i", -1) + _WHOLE[6:],
    "the most negative count of topics": b"\0\3" + pack(">i", -(2**31)) + _WHOLE[6:],
    "a null topic": b"\0\3" + pack(">ih", 1, -1) + _WHOLE[14:],
    "a topic longer than the bytes": b"\0\3" + pack(">ih", 1, 32767) + b"orders",
    "a topic that is no text": _WHOLE.replace(b"orders", b"ord\xff\xfes", 1),
    "half a surrogate pair in a topic": _WHOLE.replace(b"orders", b"\xed\xa0\xbdord", 1),
    "user data longer than the bytes": b"\0\3" + pack(">i", 1) + _NAME + pack(">i", 2**31 - 1) + b"\7",
    "two billion owned partitions": b"\0\3" + pack(">iii", 0, -1, 1) + _NAME + pack(">i", 2**31 - 1),
    "a null array of owned partitions": b"\0\3" + pack(">iii", 0, -1, -1) + pack(">ih", 4, -1),
    "cut before the generation": _WHOLE[:-8],
    "cut inside the rack": _WHOLE[:-1],
    "a rack longer than the bytes": _WHOLE[:-4] + b"\x7f\xffr1",
    "nothing but noise": b"\0\1" + _NOISE,
    "nothing but 0xff": b"\xff" * 300,
    "a count that fits and items that do not": b"\0\3" + pack(">i", 100) + b"\0" * 150,
    "a million owned topics that are not there": b"\0\3" + pack(">iii", 0, -1, 10**6) + _NAME,
}

HOSTILE_USER_DATA: Mapping[str, bytes] = {
    "one byte": b"\0",
    "version 0": pack(">i", 0) + _STREAMS[4:],
    "a negative version": pack(">i", -3) + _STREAMS[4:],
    "a newer version that supports less": pack(">ii", 12, 3),
    "supports less than it speaks": pack(">ii", 11, 7) + _STREAMS[8:],
    "a process id of eight bytes": _STREAMS[:16],
    "two billion offset sums": _STREAMS[:32] + pack(">i", 2**31 - 1),
    "a null endpoint": _STREAMS[:24] + pack(">i", -1) + _STREAMS[32:],
    "cut before the client tags": _STREAMS[:-16],
    "a null client tag": _STREAMS[:-13] + pack(">i", -1),
    "nothing but noise": pack(">ii", 11, 11) + _NOISE,
}

HOSTILE_ASSIGNMENTS: Mapping[str, bytes] = {
    "one byte": b"\0",
    "a negative version": b"\x80\0" + _ASSIGNED[2:],
    "two billion topics": b"\0\0" + pack(">i", 2**31 - 1) + _NAME,
    "minus one topics": b"\0\0" + pack(">i", -1) + _ASSIGNED[6:],
    "two billion partitions": b"\0\0" + pack(">i", 1) + _NAME + pack(">i", 2**31 - 1),
    "a null topic": b"\0\0" + pack(">ih", 1, -1) + _ASSIGNED[14:],
    "no user data": _ASSIGNED[:-4],
    "user data longer than the bytes": _ASSIGNED[:-4] + pack(">i", 2**30),
    "nothing but noise": b"\0\0" + _NOISE,
}
