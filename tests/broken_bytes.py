"""Broken bytes that a member can store in a group, each with a name that a colleague would say.

``bricks``: seen on 4.3.1, the coordinator gives up on such a join and the group hangs in PreparingRebalance; its bytes
are never stored. So each kind has a throw-away group of its own, which is freed when its member leaves.
"""

from __future__ import annotations

import random
import struct
from typing import NamedTuple


class Hostile(NamedTuple):
    """One kind of broken member."""

    name: str
    metadata: bytes
    assignment: bytes
    bricks: bool = False


def text(value: bytes) -> bytes:
    """A string as the consumer protocol writes it."""
    return struct.pack(">h", len(value)) + value


def subscription(version: int, *, topics: tuple[bytes, ...] = (b"orders",), rest: bytes = b"") -> bytes:
    """A subscription without user data; ``rest`` is what comes after."""
    return struct.pack(">hi", version, len(topics)) + b"".join(map(text, topics)) + struct.pack(">i", -1) + rest


def assignment(
    *, topic: bytes = b"orders", partitions: tuple[int, ...] = (0, 1), user_data: bytes | None = None
) -> bytes:
    """An assignment of one topic, version 1."""
    head = struct.pack(">hi", 1, 1) + text(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return head + (struct.pack(">i", -1) if user_data is None else struct.pack(">i", len(user_data)) + user_data)


GOOD = subscription(1, rest=struct.pack(">i", 0))
HELD = assignment()
_NOISE = random.Random(441)
_OWNED_NOTHING = struct.pack(">i", 0)

HOSTILE = (
    Hostile("no metadata at all", b"", HELD),
    Hostile("metadata of one byte", b"\x00", HELD),
    Hostile("metadata cut in the middle of a topic", GOOD[:9], HELD, bricks=True),
    Hostile("random metadata", _NOISE.randbytes(64), HELD, bricks=True),
    Hostile("metadata of a negative version", subscription(-1), HELD),
    Hostile("metadata of version 32767", subscription(32767, rest=b"\x00" * 20), HELD),
    Hostile("a negative number of topics", struct.pack(">hi", 1, -2), HELD, bricks=True),
    Hostile("two thousand million topics", struct.pack(">hi", 1, 2**31 - 1), HELD, bricks=True),
    Hostile("a topic without a name", struct.pack(">hih", 1, 1, -1) + struct.pack(">i", -1), HELD, bricks=True),
    Hostile("a topic name longer than the bytes", struct.pack(">hih", 1, 1, 32767) + b"x", HELD, bricks=True),
    Hostile("a topic name that is no UTF-8", subscription(1, topics=(b"\xff\xfe\x80",), rest=_OWNED_NOTHING), HELD),
    Hostile("user data of a negative length", GOOD[:-8] + struct.pack(">i", -77), HELD),
    Hostile("user data longer than the bytes", GOOD[:-8] + struct.pack(">i", 2**30), HELD, bricks=True),
    Hostile("two thousand million owned partitions", subscription(1, rest=struct.pack(">i", 2**31 - 1)), HELD),
    Hostile("a rack longer than the bytes", subscription(3, rest=_OWNED_NOTHING + struct.pack(">ih", 5, 999)), HELD),
    Hostile("good metadata, then a quarter of a megabyte of noise", GOOD + _NOISE.randbytes(262_144), HELD),
    Hostile("Streams user data of version 99", subscription(0)[:-4] + struct.pack(">iii", 8, 99, 99), HELD),
    Hostile(
        "Streams user data with two thousand million tasks",
        subscription(0)[:-4] + struct.pack(">iii", 28, 11, 11) + b"\x07" * 16 + struct.pack(">i", 2**31 - 1),
        HELD,
    ),
    Hostile("no assignment at all", GOOD, b""),
    Hostile("an assignment of one byte", GOOD, b"\x01"),
    Hostile("an assignment cut in the middle", GOOD, HELD[:11]),
    Hostile("a random assignment", GOOD, _NOISE.randbytes(64)),
    Hostile("an assignment of two thousand million topics", GOOD, struct.pack(">hi", 1, 2**31 - 1)),
    Hostile("an assignment of a negative number of topics", GOOD, struct.pack(">hi", 1, -5)),
    Hostile("an assigned topic that is no UTF-8", GOOD, assignment(topic=b"\xc3\x28\xff")),
    Hostile("two thousand million assigned partitions", GOOD, HELD[:14] + struct.pack(">i", 2**31 - 1)),
    Hostile("Streams assignment info that ends early", GOOD, assignment(user_data=struct.pack(">ii", 11, 11))),
)
"""Twenty-seven kinds; twenty of them are stored, seven leave the group hanging."""
