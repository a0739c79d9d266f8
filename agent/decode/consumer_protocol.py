"""What do a member's subscription and assignment say? The consumer protocol that travels inside the group protocol.

Both blobs are a 16-bit version and a body that is never flexible. A reader takes a version above 3 for 3, because newer
versions may only append, and ignores what follows the fields it knows.

====================  =======================================  ============================
Subscription field    type                                     since version
====================  =======================================  ============================
topics                array of string                          0
user data             nullable bytes                           0
owned partitions      array of {topic, array of int32}         1 (KIP-429)
generation            int32                                    2 (KIP-792)
rack                  nullable string, empty means none        3 (KIP-881)
====================  =======================================  ============================

An assignment is an array of {topic, array of int32} and nullable bytes in every version.
"""

from __future__ import annotations

from agent.decode.cursor import Broken, int16, int32, nullable_bytes
from agent.decode.reading import Reading
from agent.decode.values import Assignment, Subscription, Undecodable, UndecodableReason


def decode_subscription(data: bytes, reading: Reading | None = None) -> Subscription | Undecodable:
    """A member's subscription."""
    try:
        return _subscription(data, reading or Reading())
    except Broken as broken:
        return broken.value


def decode_assignment(data: bytes, reading: Reading | None = None) -> Assignment | Undecodable:
    """A member's assignment."""
    try:
        return _assignment(data, reading or Reading())
    except Broken as broken:
        return broken.value


def _subscription(data: bytes, reading: Reading) -> Subscription:
    version = _version(data, "the subscription")
    topics, at = reading.topics(data, 2)
    user_data, at = nullable_bytes(data, at, "the subscription's user data")
    if version == 0:
        return Subscription(version, topics, user_data, None, None, None)
    owned, at = reading.partitions(data, at)
    if version == 1:
        return Subscription(version, topics, user_data, owned, None, None)
    generation = int32(data, at, "the generation")
    if version == 2:
        return Subscription(version, topics, user_data, owned, _known(generation), None)
    rack, at = reading.nullable_name(data, at + 4, "the rack")
    return Subscription(version, topics, user_data, owned, _known(generation), rack or None)


def _assignment(data: bytes, reading: Reading) -> Assignment:
    version = _version(data, "the assignment")
    partitions, at = reading.partitions(data, 2)
    user_data, _ = nullable_bytes(data, at, "the assignment's user data")
    return Assignment(version, partitions, user_data)


def _version(data: bytes, what: str) -> int:
    version = int16(data, 0, f"{what}'s version")
    if version < 0:
        raise Broken(UndecodableReason.VERSION, f"{what} has version {version}; versions begin at 0", 0)
    return version


def _known(generation: int) -> int | None:
    """None for the numbers that Kafka writes when there is no generation yet."""
    return generation if generation >= 0 else None
