"""User data of assignor ``stream`` of classic Streams groups: SubscriptionInfo to the leader, AssignmentInfo from it.

=======================  ==========================================================  =============
SubscriptionInfo         type                                                        versions
=======================  ==========================================================  =============
version                  int32, 1 to 11; of a newer one only the next number is read  1+
latest supported         int32                                                       3+
process id               16 bytes                                                    1+
previous active tasks    array of {subtopology int32, partition int32}               1 to 6
standby tasks            the same                                                    1 to 6
application.server       bytes in UTF-8, empty means none                            2+
offset sums              by subtopology: {int32, array of {partition, int64}}        7 to 9
offset sums              {int32, int32, int64, nullable string named topology}       10+ (KIP-441)
unique field             int8                                                        8+
error code               int32                                                       9+
client tags              array of {bytes, bytes} in UTF-8                            11+ (KIP-708)
=======================  ==========================================================  =============

The offset sums are those of the member's last join: between rebalances they do not change.

==========================  =====================================================================  ========
AssignmentInfo              type                                                                   versions
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
    BLOCK,
    HOST,
    NAME,
    NUMBER,
    OFFSET_SUM,
    PAIR_OF_TEXTS,
    TASK_WITH_PARTITIONS,
    DecodeContext,
    Hosts,
    int32s,
)
from agent.decode.values import (
    LATEST_STREAMS_VERSION,
    RUNNING_ACTIVE,
    UNKNOWN_OFFSET_SUM,
    HostPartitions,
    StreamsAssignment,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Undecodable,
    UndecodableFieldError,
    UndecodableReason,
    from_utf16,
    int8,
    int32,
    int64,
    plain_bytes,
    truncated,
)
from assignors.problem import TaskId, TopicPartition

_SUM_BYTES = 18
_SUM = Struct(">8sq2x").iter_unpack
_SUM_OF_PARTITION = Struct(">iq").iter_unpack


def decode_subscription_info(
    data: bytes, context: DecodeContext | None = None
) -> StreamsSubscription | StreamsSubscriptionHeader | Undecodable:
    """The SubscriptionInfo in these bytes, its header where no layout here is as new, or why it cannot be read."""
    try:
        return _subscription_info(data, context or DecodeContext())
    except UndecodableFieldError as broken:
        return broken.value


def _subscription_info(data: bytes, context: DecodeContext) -> StreamsSubscription | StreamsSubscriptionHeader:
    version, latest_supported, at = _versions(data)
    if version > LATEST_STREAMS_VERSION:
        return StreamsSubscriptionHeader(version, latest_supported)
    process_id, at = _process_id(data, at, context)

    prev_tasks: tuple[TaskId, ...] = ()
    standby_tasks: tuple[TaskId, ...] = ()
    endpoint = unique_field = error_code = client_tags = None
    if version < 7:
        prev_tasks, at = _tasks(data, at, context, "the previous active tasks")
        standby_tasks, at = _tasks(data, at, context, "the standby tasks")
    if version > 1:
        endpoint, at = _text(data, at, context, "application.server")
    if version < 7:
        sums = dict.fromkeys(prev_tasks, RUNNING_ACTIVE) | dict.fromkeys(standby_tasks, UNKNOWN_OFFSET_SUM)
    elif version < 10:
        sums, at = _sums_by_subtopology(data, at, context)
    else:
        sums, at = _sums(data, at, context)
    if version > 7:
        unique_field = int8(data, at, "the unique field")
        at += 1
    if version > 8:
        error_code = int32(data, at, "the error code")
        at += 4
    if version > 10:
        client_tags = _client_tags(data, at, context)
    return StreamsSubscription(
        version,
        None if version < 3 else latest_supported,
        process_id,
        prev_tasks,
        standby_tasks,
        endpoint or None,
        sums,
        unique_field,
        error_code,
        client_tags,
    )


def _versions(data: bytes) -> tuple[int, int, int]:
    version = int32(data, 0, "the version")
    if version < 1:
        raise UndecodableFieldError(
            UndecodableReason.VERSION, f"version {version} of a Streams subscription does not exist", 0
        )
    if version < 3:
        return version, version, 4
    latest_supported = int32(data, 4, "the latest supported version")
    if latest_supported < version:
        sentence = f"a Streams subscription of version {version} claims to support no more than {latest_supported}"
        raise UndecodableFieldError(UndecodableReason.VERSION, sentence, 4)
    return version, latest_supported, 8


def _process_id(data: bytes, at: int, context: DecodeContext) -> tuple[str, int]:
    raw = data[at : at + 16]
    if len(raw) < 16:
        truncated(data, at, 16, "the process id")
    known = context.names.process_ids
    text = known.get(raw)
    if text is None:
        digits = raw.hex()
        text = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        known[raw] = text
    return text, at + 16


def _tasks(data: bytes, at: int, context: DecodeContext, field: str) -> tuple[tuple[TaskId, ...], int]:
    items = context.count(data, at, 8, field, NUMBER)
    start = at + 4
    end = start + 8 * items
    return tuple([context.names.tasks[data[i : i + 8]] for i in range(start, end, 8)]), end


def _text(data: bytes, at: int, context: DecodeContext, field: str) -> tuple[str, int]:
    raw, end = plain_bytes(data, at, field)
    return context.text(raw, at + 4, field), end


def _sums_by_subtopology(data: bytes, at: int, context: DecodeContext) -> tuple[dict[TaskId, int], int]:
    tasks = context.names.tasks
    sums: dict[TaskId, int] = {}
    subtopologies = context.count(data, at, 8, "the offset sums", BLOCK)
    at += 4
    for _ in range(subtopologies):
        subtopology = data[at : at + 4]
        at += 4
        items = context.count(data, at, 12, "the offset sums of a subtopology", OFFSET_SUM)
        start = at + 4
        at = start + 12 * items
        for i, (_, offset_sum) in zip(range(start, at, 12), _SUM_OF_PARTITION(data[start:at]), strict=True):
            sums[tasks[subtopology + data[i : i + 4]]] = offset_sum
    return sums, at


def _sums(data: bytes, at: int, context: DecodeContext) -> tuple[dict[TaskId, int], int]:
    """Offset sums by task; one line for the usual case, in which no task has a named topology."""
    items = context.count(data, at, _SUM_BYTES, "the offset sums", OFFSET_SUM)
    start = at + 4
    end = start + _SUM_BYTES * items
    # The sign of each named topology's length: negative means null.
    if min(data[start + 16 : end : _SUM_BYTES], default=0xFF) < 0x80:
        return _sums_with_names(data, start, items, context)
    tasks = context.names.tasks
    return {tasks[task]: offset_sum for task, offset_sum in _SUM(data[start:end])}, end


def _sums_with_names(data: bytes, at: int, items: int, context: DecodeContext) -> tuple[dict[TaskId, int], int]:
    context.named_tasks(items, at, "the offset sums")
    sums: dict[TaskId, int] = {}
    for _ in range(items):
        task = TaskId(int32(data, at, "a task's subtopology"), int32(data, at + 4, "a task's partition"))
        offset_sum = int64(data, at + 8, "an offset sum")
        name, at = context.nullable_name(data, at + 16, "a named topology")
        sums[named_task(task, name)] = offset_sum
    return sums, at


def named_task(task: TaskId, topology: str | None) -> TaskId:
    """The task of a named topology, whose subtopology then is text: Kafka writes such a task ``name__0_1``."""
    return TaskId(f"{topology}__{task.subtopology}", task.partition) if topology else task


def _client_tags(data: bytes, at: int, context: DecodeContext) -> tuple[tuple[str, str], ...]:
    items = context.count(data, at, 8, "the client tags", PAIR_OF_TEXTS)
    at += 4
    tags = []
    for _ in range(items):
        key, at = _text(data, at, context, "a client tag's key")
        value, at = _text(data, at, context, "a client tag's value")
        tags.append((key, value))
    return tuple(tags)


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
