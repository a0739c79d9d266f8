"""AssignmentInfo: what the leader of a classic Streams group gives a member, as user data of assignor ``stream``.

==========================  =====================================================================  ========
part                        bytes                                                                  versions
==========================  =====================================================================  ========
version                     int32, 1 to 11                                                         1+
commonly supported version  int32                                                                  3+
active tasks                array of task                                                          1+
standby tasks               array of {task, array of {topic, int32 partition}}                     1+
partitions by host          array of {host, int32 port, array of {topic, int32 partition}}         2 to 4
topic dictionary            array of {int32 index, topic}                                          5+
partitions by host          array of {host, int32 port, array of {int32 index, int32 partition}}   5+
standby partitions by host  the same                                                               6+
error code                  int32                                                                  4+
next rebalance              int64 epoch milliseconds, the largest number for never                 7+
==========================  =====================================================================  ========

Arrays begin with an int32 count. Topics and hosts are written by Java's ``writeUTF``. A task is two int32, and from
version 10 on an int32 count and as many UTF-16 code units of a named topology. Where an index or a host or a standby
task comes twice, the last one counts, as in Kafka's maps.
"""

from __future__ import annotations

from struct import Struct

from agent.decode.decode_context import (
    HOST,
    NAME,
    NUMBER,
    PAIR_OF_TEXTS,
    TASK_WITH_PARTITIONS,
    DecodeContext,
    Hosts,
    int32s,
)
from agent.decode.subscription_info import named_task
from agent.decode.values import (
    LATEST_STREAMS_VERSION,
    HostPartitions,
    StreamsAssignment,
    Undecodable,
    UndecodableFieldError,
    UndecodableReason,
    from_utf16,
    int32,
    int64,
    truncated,
)
from assignors.problem import TaskId, TopicPartition

_UNKNOWN = -1
_NAMED_TASK = Struct(">8si")

NEVER = (1 << 63) - 1
"""Java's Long.MAX_VALUE, which means no next rebalance."""


def decode_assignment_info(data: bytes, context: DecodeContext | None = None) -> StreamsAssignment | Undecodable:
    """The AssignmentInfo in these bytes, or why they cannot be read."""
    try:
        return _assignment_info(data, context or DecodeContext())
    except UndecodableFieldError as broken:
        return broken.value


def _assignment_info(data: bytes, context: DecodeContext) -> StreamsAssignment:
    version = int32(data, 0, "the version")
    if not 1 <= version <= LATEST_STREAMS_VERSION:
        raise UndecodableFieldError(
            UndecodableReason.VERSION, f"version {version} of a Streams assignment does not exist", 0
        )
    at = 4
    commonly_supported = error_code = next_rebalance_ms = None
    if version > 2:
        commonly_supported = int32(data, at, "the commonly supported version")
        at += 4
    active, at = _active(data, at, version, context)
    standby, at = _standby(data, at, version, context)
    (by_host, standby_by_host), at = _hosts(data, at, version, context)
    if version > 3:
        error_code = int32(data, at, "the error code")
        at += 4
    if version > 6:
        next_rebalance_ms = int64(data, at, "the next rebalance")
    return StreamsAssignment(
        version,
        None if commonly_supported == _UNKNOWN else commonly_supported,
        active,
        standby,
        by_host,
        standby_by_host,
        error_code,
        None if next_rebalance_ms == NEVER else next_rebalance_ms,
    )


def _active(data: bytes, at: int, version: int, context: DecodeContext) -> tuple[tuple[TaskId, ...], int]:
    size = _task_bytes(version)
    items = context.count(data, at, size, "the active tasks", NUMBER)
    at += 4
    end = at + size * items
    known = context.names.tasks
    if version < 10:
        return tuple([known[data[i : i + size]] for i in range(at, end, size)]), end
    # Named topologies are rare: try without, when every task is equally long.
    plain = [known[task] for task, units in _NAMED_TASK.iter_unpack(data[at:end]) if units <= 0]
    if len(plain) == items:
        return tuple(plain), end
    context.named_tasks(items, at, "the active tasks")
    tasks = []
    for _ in range(items):
        task, at = _task(data, at, version, context)
        tasks.append(task)
    return tuple(tasks), at


def _standby(
    data: bytes, at: int, version: int, context: DecodeContext
) -> tuple[tuple[tuple[TaskId, tuple[TopicPartition, ...]], ...], int]:
    items = context.count(data, at, _task_bytes(version) + 4, "the standby tasks", TASK_WITH_PARTITIONS)
    at += 4
    tasks = {}
    for _ in range(items):
        task, at = _task(data, at, version, context)
        tasks[task], at = _partitions(data, at, context, "the partitions of a standby task")
    return tuple(tasks.items()), at


def _task_bytes(version: int) -> int:
    return 8 if version < 10 else 12


def _task(data: bytes, at: int, version: int, context: DecodeContext) -> tuple[TaskId, int]:
    size = _task_bytes(version)
    if at + size > len(data):
        truncated(data, at, size, "a task")
    task = context.names.tasks[data[at : at + 8]]
    at += size
    if version < 10:
        return task, at
    units = int32(data, at - 4, "a named topology")
    if units <= 0:
        return task, at
    end = at + 2 * units
    if end > len(data):
        truncated(data, at, 2 * units, "a named topology")
    return named_task(task, from_utf16(data[at:end], at, "a named topology")), end


def _partitions(data: bytes, at: int, context: DecodeContext, field: str) -> tuple[tuple[TopicPartition, ...], int]:
    items = context.count(data, at, 6, field, NAME)
    at += 4
    partitions = []
    for _ in range(items):
        topic, at = context.java_name(data, at, "a topic")
        partitions.append(context.names.partitions[topic][int32(data, at, "a partition")])
        at += 4
    return tuple(partitions), at


def _hosts(data: bytes, at: int, version: int, context: DecodeContext) -> tuple[Hosts, int]:
    """The partitions by host: every member of a group gets the same, so they are read once for all of them."""
    if context.hosts is not None:
        known_version, raw, known = context.hosts
        if known_version == version and data.startswith(raw, at):
            return known, at + len(raw)
    start = at
    active: tuple[HostPartitions, ...] = ()
    standby: tuple[HostPartitions, ...] = ()
    if 2 <= version <= 4:
        active, at = _partitions_by_host(data, at, None, context)
    elif version > 4:
        topics, at = _dictionary(data, at, context)
        active, at = _partitions_by_host(data, at, topics, context)
        if version > 5:
            standby, at = _partitions_by_host(data, at, topics, context)
    context.hosts = version, data[start:at], (active, standby)
    return (active, standby), at


def _partitions_by_host(
    data: bytes, at: int, topics: dict[int, str] | None, context: DecodeContext
) -> tuple[tuple[HostPartitions, ...], int]:
    """Partitions by host; with a dictionary each names its topic by index."""
    items = context.count(data, at, 10, "the partitions by host", HOST)
    at += 4
    hosts = {}
    for _ in range(items):
        host, at = context.java_name(data, at, "a host")
        port = int32(data, at, "a host's port")
        if topics is None:
            partitions, at = _partitions(data, at + 4, context, "the partitions of a host")
        else:
            partitions, at = _indexed_partitions(data, at + 4, topics, context)
        hosts[host, port] = HostPartitions(host, port, partitions)
    return tuple(hosts.values()), at


def _dictionary(data: bytes, at: int, context: DecodeContext) -> tuple[dict[int, str], int]:
    items = context.count(data, at, 6, "the topic dictionary", PAIR_OF_TEXTS)
    at += 4
    topics = {}
    for _ in range(items):
        index = int32(data, at, "a topic's index")
        topics[index], at = context.java_name(data, at + 4, "a topic")
    return topics, at


def _indexed_partitions(
    data: bytes, at: int, topics: dict[int, str], context: DecodeContext
) -> tuple[tuple[TopicPartition, ...], int]:
    pairs = context.count(data, at, 8, "the partitions of a host", NUMBER)
    at += 4
    numbers = int32s(data, at, 2 * pairs)
    known = context.names.partitions
    try:
        partitions = tuple([known[topics[t]][p] for t, p in zip(numbers[::2], numbers[1::2], strict=True)])
    except KeyError as missing:
        sentence = f"a host's partition points at topic {missing.args[0]}, which the dictionary lacks"
        raise UndecodableFieldError(UndecodableReason.UNKNOWN_TOPIC, sentence, at) from None
    return partitions, at + 8 * pairs
