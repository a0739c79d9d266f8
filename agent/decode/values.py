"""Values of decoded subscriptions, assignments and user data, and the readers of their single fields.

All of them are named tuples: 100,000 members are built in a third of the time that frozen dataclasses take and compared
in C with identity first. Equal names, racks, partitions and tasks are one object each. Unknown is ``None``: a field
that the version cannot carry, a generation before the first rebalance, an empty rack.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple, NoReturn

from agent.values.observation import RawClassicGroup, RawMember
from assignors.problem import TaskId, TopicPartition

RUNNING_ACTIVE = -2
"""In place of an offset sum: the member runs this task as active, so it is caught up by definition."""
UNKNOWN_OFFSET_SUM = -3
"""In place of an offset sum: the member holds state of this task, of unknown size."""

LATEST_STREAMS_VERSION = 11
"""The newest SubscriptionInfo and AssignmentInfo layout; of a newer subscription only the header can be read."""


class UndecodableReason(StrEnum):
    """Why a member's bytes cannot be read."""

    EMPTY = "no bytes are stored"
    TRUNCATED = "the bytes end too early"
    NEGATIVE = "a length or count is negative where null is not allowed"
    COUNT_TOO_LARGE = "a count is larger than the bytes that are left"
    NOT_TEXT = "a name is not valid text"
    VERSION = "the version is none that exists"
    UNKNOWN_TOPIC = "a partition points at a topic that the dictionary lacks"
    TOO_LARGE = "larger than the limit"


class Undecodable(NamedTuple):
    """Bytes that could not be read; the member counts as one without history."""

    reason: UndecodableReason
    sentence: str
    """The field, what was found, and what was expected."""
    offset: int
    """Offset in the blob at which reading stopped, in bytes."""


class Subscription(NamedTuple):
    """A member's subscription (embedded consumer protocol, KIP-429, KIP-792, KIP-881)."""

    version: int
    """As sent; above 3 it was read as 3, because newer versions may only append."""
    topics: tuple[str, ...]
    """As sent; a regular expression has been resolved by the member."""
    user_data: bytes | None
    """The assignor's own bytes; always None in a `DecodedMember`, which holds them decoded."""
    owned: tuple[TopicPartition, ...] | None
    """None below version 1; eager members own nothing at join and send an empty list."""
    generation: int | None
    """None below version 2, and for a member that has not been through a rebalance."""
    rack: str | None
    """``client.rack``; None below version 3, and where the client sends none."""


class Assignment(NamedTuple):
    """The assignment that the leader gave a member (embedded consumer protocol)."""

    version: int
    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None
    """As in a `Subscription`."""


class StickyUserData(NamedTuple):
    """The history that the sticky assignors keep in their members."""

    owned: tuple[TopicPartition, ...] | None
    """None where the user data holds a generation alone and the subscription has the owned partitions."""
    generation: int | None
    """None for the oldest layout, and for a member that has not been through a rebalance."""


class StreamsSubscription(NamedTuple):
    """SubscriptionInfo: a Streams member's report to the leader (KIP-441, KIP-708)."""

    version: int
    latest_supported: int | None
    """None for versions 1 and 2, which do not carry it."""
    process_id: str
    """UUID text; members with the same id are threads of one process."""
    prev_tasks: tuple[TaskId, ...]
    """Active tasks as versions 1 to 6 send them; empty above."""
    standby_tasks: tuple[TaskId, ...]
    """Standby tasks as versions 1 to 6 send them; empty above."""
    endpoint: str | None
    """``application.server``, None when not set."""
    offset_sums: Mapping[TaskId, int]
    """Task -> sum of changelog offsets at the last join, `RUNNING_ACTIVE` or `UNKNOWN_OFFSET_SUM`. Versions 1 to 6
    sent no sums: their active tasks read as running, their standby tasks as unknown, as Kafka's leader reads them."""
    unique_field: int | None
    """Changed at every join so that no two are alike; None below version 8."""
    error_code: int | None
    """Non-zero when the member reports an error to the leader; None below version 9."""
    client_tags: tuple[tuple[str, str], ...] | None
    """``client.tag.*`` as sent; None below version 11."""


class StreamsSubscriptionHeader(NamedTuple):
    """The two numbers that can be read of a SubscriptionInfo newer than `LATEST_STREAMS_VERSION`."""

    version: int
    latest_supported: int


class HostPartitions(NamedTuple):
    """The partitions that interactive queries find at one ``application.server``."""

    host: str
    port: int
    partitions: tuple[TopicPartition, ...]


class StreamsAssignment(NamedTuple):
    """AssignmentInfo: the tasks that the Streams leader gave a member."""

    version: int
    commonly_supported: int | None
    """None for versions 1 and 2, and where the leader sent -1."""
    active: tuple[TaskId, ...]
    """Entry i belongs to entry i of the member's assigned partitions sorted by topic and partition."""
    standby: tuple[tuple[TaskId, tuple[TopicPartition, ...]], ...]
    """Standby tasks with their source partitions; warm-ups are among them, unmarked."""
    partitions_by_host: tuple[HostPartitions, ...]
    standby_partitions_by_host: tuple[HostPartitions, ...]
    error_code: int | None
    """None below version 4."""
    next_rebalance_ms: int | None
    """Epoch milliseconds at which this member shall ask for the next rebalance, 0 for at once; None for never."""


UserData = StickyUserData | StreamsSubscription | StreamsSubscriptionHeader | Undecodable | bytes | None
"""The assignor's part of a subscription; bytes where the assignor is not known; None where it sends none."""

AssignmentData = StreamsAssignment | Undecodable | bytes | None
"""The assignor's part of an assignment, in the same way."""


class DecodedMember(NamedTuple):
    """A member of a classic group with its bytes decoded.

    Each field is a value, `Undecodable`, or None. None in ``subscription`` and ``assignment`` means *not shown*: the
    broker shows them in state Stable only, and other protocol types than ``consumer`` have other layouts. It means
    nothing about the member, least of all that it has no rack.
    """

    raw: RawMember
    subscription: Subscription | Undecodable | None
    user_data: UserData
    assignment: Assignment | Undecodable | None
    assignment_data: AssignmentData


class DecodedGroup(NamedTuple):
    """A classic group as answered, and its decoded members in the same order."""

    raw: RawClassicGroup
    members: tuple[DecodedMember, ...]


class DecodedGroups(NamedTuple):
    """Every classic group of an observation, in its order."""

    groups: tuple[DecodedGroup, ...]


# Readers of single fields: of bytes and an offset they return the value, or the value and the offset behind it. A field
# that does not fit raises `UndecodableFieldError`, which never leaves this package. ``struct`` checks every bound, a
# count is compared with the bytes that are left before anything is allocated (`DecodeContext.count`), nothing recurses.

_Number = Callable[[bytes, int], tuple[int]]
INT32: _Number = struct.Struct(">i").unpack_from


class UndecodableFieldError(Exception):
    """The bytes cannot be read any further; ``value`` is the `Undecodable` in their place."""

    def __init__(self, reason: UndecodableReason, sentence: str, offset: int) -> None:
        super().__init__(sentence)
        self.value = Undecodable(reason, sentence, offset)


def _whole(form: str) -> Callable[[bytes, int, str], int]:
    """The reader of one big-endian number at an offset. It raises UndecodableFieldError where the bytes end before."""
    unpack_from, size = struct.Struct(form).unpack_from, struct.calcsize(form)

    def read(data: bytes, at: int, field: str) -> int:
        try:
            return unpack_from(data, at)[0]  # type: ignore[no-any-return]
        except struct.error:
            truncated(data, at, size, field)

    return read


int8, int16, int32, int64 = map(_whole, (">b", ">h", ">i", ">q"))


def nullable_bytes(data: bytes, at: int, field: str) -> tuple[bytes | None, int]:
    """Bytes behind a 32-bit length; any negative length is null, as in Kafka's reader."""
    length = int32(data, at, field)
    at += 4
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        truncated(data, at, length, field)
    return data[at:end], end


def plain_bytes(data: bytes, at: int, field: str) -> tuple[bytes, int]:
    """Bytes behind a 32-bit length. Raises UndecodableFieldError for null, and where they are cut short."""
    value, end = nullable_bytes(data, at, field)
    if value is None:
        raise UndecodableFieldError(
            UndecodableReason.NEGATIVE, f"{field}: the length is negative; null is not allowed here", at
        )
    return value, end


def name_bytes(data: bytes, at: int, field: str) -> tuple[bytes | None, int]:
    """The bytes of a name behind a signed 16-bit length; any negative length is null."""
    length = int16(data, at, field)
    at += 2
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        truncated(data, at, length, field)
    return data[at:end], end


def utf8(raw: bytes, at: int, field: str) -> str:
    """Text in UTF-8. Raises UndecodableFieldError for invalid bytes; Kafka would replace them by U+FFFD."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        sentence = f"{field}: not valid UTF-8, {error.reason} at byte {error.start} of {len(raw)}"
        raise UndecodableFieldError(UndecodableReason.NOT_TEXT, sentence, at + error.start) from None


def truncated(data: bytes, at: int, needed_bytes: int, field: str) -> NoReturn:
    """Raises UndecodableFieldError for a field that is longer than the bytes that are left."""
    left = max(0, len(data) - at)
    sentence = f"{field}: {needed_bytes} bytes are needed, but {left} are left"
    raise UndecodableFieldError(UndecodableReason.TRUNCATED, sentence, min(at, len(data)))


# Java's text outside of UTF-8. ``DataOutputStream.writeUTF`` encodes each UTF-16 code unit on its own: a character
# beyond U+FFFF becomes two surrogates of three bytes each, and NUL becomes two bytes. Overlong forms are taken, as
# Java's reader does; a surrogate without its partner is refused, because no later output could hold it.

_WHOLE = re.compile(rb"(?:[\x00-\x7f]|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2})*+")
_NO_BEGINNING = re.compile(rb"[\xf0-\xff]")
_TWO_FOR_ONE = re.compile(rb"[\xc0\xc1][\x80-\xbf]")
_THREE_FOR_TWO = re.compile(rb"\xe0[\x80-\x9f]")
_TWO_BYTES = {bytes((0xE0, middle)): bytes((middle ^ 0x40,)) for middle in range(0x80, 0xA0)}
_ONE_BYTE = {
    bytes((first, last)): bytes(((first & 1) << 6 | last & 0x3F,))
    for first in (0xC0, 0xC1)
    for last in range(0x80, 0xC0)
}
_SURROGATE = re.compile("[\ud800-\udfff]")


def from_modified_utf8(raw: bytes, at: int, field: str) -> str:
    """Text of ``DataOutputStream.writeUTF``, without a loop over characters. Raises UndecodableFieldError."""
    if raw.isascii():
        return raw.decode("ascii")
    wrong = _NO_BEGINNING.search(raw)
    if wrong is not None:
        sentence = f"{field}: not valid modified UTF-8, no character begins with byte 0x{raw[wrong.start()]:02x}"
        raise UndecodableFieldError(UndecodableReason.NOT_TEXT, sentence, at + wrong.start())
    try:
        units = raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        units = _shortest(raw, at, field).decode("utf-8", "surrogatepass")
    if _SURROGATE.search(units) is None:
        return units
    return from_utf16(units.encode("utf-16-be", "surrogatepass"), at, field)


def from_utf16(units: bytes, at: int, field: str) -> str:
    """Text from big-endian UTF-16 code units. Raises UndecodableFieldError for a surrogate without its partner."""
    try:
        return units.decode("utf-16-be")
    except UnicodeDecodeError as error:
        raise UndecodableFieldError(
            UndecodableReason.NOT_TEXT, f"{field}: not valid UTF-16, {error.reason}", at
        ) from None


def slow_characters(raw: bytes) -> int:
    """At most how many characters take half a microsecond: in a longer form than UTF-8 has, or half a pair."""
    return raw.count(b"\xc0") + raw.count(b"\xc1") + raw.count(b"\xe0") + raw.count(b"\xed")


def _shortest(raw: bytes, at: int, field: str) -> bytes:
    """The same characters, each in its shortest form, the only one valid in UTF-8.

    Java writes NUL in two bytes; other longer forms it only reads.
    """
    whole = _WHOLE.match(raw)
    end = whole.end() if whole is not None else 0
    if end < len(raw):
        sentence = f"{field}: not valid modified UTF-8, a character is cut short at byte {end} of {len(raw)}"
        raise UndecodableFieldError(UndecodableReason.NOT_TEXT, sentence, at + end)
    # The first of three bytes holds no bits of the character here; the second starts as the first of two would.
    raw = _THREE_FOR_TWO.sub(lambda match: _TWO_BYTES[match[0]], raw)
    return _TWO_FOR_ONE.sub(lambda match: _ONE_BYTE[match[0]], raw)
