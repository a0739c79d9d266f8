"""What the sticky assignors remember in a member's user data.

===================  ==============================================================================================
sticky, V1           array of {topic, array of int32}, then the generation (int32)
sticky, V0           the same without generation; what is too short for V1 is V0
cooperative-sticky   Java writes the generation alone (4 bytes), librdkafka the V1 layout of sticky
===================  ==============================================================================================

Null and empty user data both mean that the member has no history. Kafka reads what it cannot parse as "no history" as
well; here it is `Undecodable`, because a person may want to know.
"""

from __future__ import annotations

from agent.decode.cursor import Broken, int32
from agent.decode.reading import Reading
from agent.decode.values import StickyUserData, Undecodable

_NO_GENERATION = -1


def decode_sticky(data: bytes, reading: Reading | None = None) -> StickyUserData | Undecodable:
    """The user data of the ``sticky`` assignor, which says what the member owned before it joined."""
    try:
        owned, at = (reading or Reading()).partitions(data, 0)
    except Broken as broken:
        return broken.value
    if len(data) - at < 4:
        return StickyUserData(owned, None)
    return StickyUserData(owned, _known(int32(data, at, "the generation")))


def decode_cooperative_sticky(data: bytes, reading: Reading | None = None) -> StickyUserData | Undecodable:
    """The user data of the ``cooperative-sticky`` assignor: a generation, and what librdkafka adds.

    Five bytes and more are librdkafka's layout when they are that to the last byte; else they are a generation with
    something behind it, as Kafka reads them.
    """
    if len(data) > 4:
        try:
            owned, at = (reading or Reading()).partitions(data, 0)
            if at + 4 == len(data):
                return StickyUserData(owned, _known(int32(data, at, "the generation")))
        except Broken:
            pass  # then the first number is no count but a generation
    try:
        return StickyUserData(None, _known(int32(data, 0, "the generation")))
    except Broken as broken:
        return broken.value


def _known(generation: int) -> int | None:
    """None for the number that both clients write before the first rebalance; the assignors treat the two alike."""
    return None if generation == _NO_GENERATION else generation
