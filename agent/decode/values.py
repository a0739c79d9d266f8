"""What members' bytes say once they are read: one frozen value per layout, or why a layout could not be read.

All of them are named tuples. A world has a hundred thousand members: a named tuple is built in one C call (a frozen
dataclass sets each field through ``object.__setattr__`` and takes three times as long), is compared in C with identity
first, and needs no ``__dict__``. Equal names, racks, partitions and tasks are one object each.

Unknown is ``None``: a field that the version cannot carry, a generation before the first rebalance, an empty rack.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from agent.values.observation import RawClassicGroup, RawMember
from assignors.problem import TaskId, TopicPartition

RUNNING_ACTIVE = -2
"""In place of an offset sum: the member runs this task as active, so it is caught up by definition."""
UNKNOWN_OFFSET_SUM = -3
"""In place of an offset sum: the member holds state of this task and does not say how much."""

LATEST_STREAMS_VERSION = 11
"""The newest SubscriptionInfo and AssignmentInfo layout; of a newer subscription only the header can be read."""


class UndecodableReason(StrEnum):
    """Why foreign bytes could not be read."""

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
    """Which field, what was found, what was expected."""
    offset: int
    """Where in the blob the reading stopped, in bytes."""


class Subscription(NamedTuple):
    """A member's subscription (embedded consumer protocol, KIP-429, KIP-792, KIP-881)."""

    version: int
    """As sent; above 3 it was read as 3, because newer versions may only append."""
    topics: tuple[str, ...]
    """As sent; a regular expression has been resolved by the member."""
    user_data: bytes | None
    """What the assignor put in, unread; always None in a `DecodedMember`, which holds it read."""
    owned: tuple[TopicPartition, ...] | None
    """None below version 1; eager members own nothing at join and send an empty list."""
    generation: int | None
    """None below version 2, and for a member that has not been through a rebalance."""
    rack: str | None
    """``client.rack``; None below version 3, and where the client sends none."""


class Assignment(NamedTuple):
    """What the leader gave a member (embedded consumer protocol)."""

    version: int
    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None
    """Likewise."""


class StickyUserData(NamedTuple):
    """What the sticky assignors remember in their members."""

    owned: tuple[TopicPartition, ...] | None
    """None where the user data holds a generation alone and the subscription says what is owned."""
    generation: int | None
    """None for the oldest layout, and for a member that has not been through a rebalance."""


class StreamsSubscription(NamedTuple):
    """SubscriptionInfo: what a Streams member tells the leader (KIP-441, KIP-708)."""

    version: int
    latest_supported: int | None
    """None for versions 1 and 2, which could not say."""
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
    """AssignmentInfo: what the Streams leader gave a member."""

    version: int
    commonly_supported: int | None
    """None for versions 1 and 2, and where the leader did not know."""
    active: tuple[TaskId, ...]
    """Entry i belongs to entry i of the member's assigned partitions sorted by topic and partition."""
    standby: tuple[tuple[TaskId, tuple[TopicPartition, ...]], ...]
    """Standby tasks with their source partitions; warm-ups travel here too and look the same."""
    partitions_by_host: tuple[HostPartitions, ...]
    standby_partitions_by_host: tuple[HostPartitions, ...]
    error_code: int | None
    """None below version 4."""
    next_rebalance_ms: int | None
    """Epoch milliseconds at which this member shall ask for the next rebalance, 0 for at once; None for never."""


UserData = StickyUserData | StreamsSubscription | StreamsSubscriptionHeader | Undecodable | bytes | None
"""The assignor's part of a subscription; bytes where the assignor is not known; None where it sends none."""

AssignmentData = StreamsAssignment | Undecodable | bytes | None
"""The assignor's part of an assignment, likewise."""


class DecodedMember(NamedTuple):
    """A member of a classic group with all that its bytes say.

    Each field is a value, `Undecodable`, or None. None in ``subscription`` and ``assignment`` means *not shown*: the
    broker tells them in state Stable only, and other protocol types than ``consumer`` have other layouts. It says
    nothing about the member, least of all that it has no rack.
    """

    raw: RawMember
    subscription: Subscription | Undecodable | None
    user_data: UserData
    assignment: Assignment | Undecodable | None
    assignment_data: AssignmentData


class DecodedGroup(NamedTuple):
    """A classic group as answered, and its members as read, in the same order."""

    raw: RawClassicGroup
    members: tuple[DecodedMember, ...]


class DecodedGroups(NamedTuple):
    """Every classic group of an observation, in its order."""

    groups: tuple[DecodedGroup, ...]
