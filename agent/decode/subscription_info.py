"""SubscriptionInfo: what a member of a classic Streams group sends its leader, as user data of assignor ``stream``.

=======================  ==========================================================  =============
field                    type                                                        versions
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
"""

from __future__ import annotations

from struct import Struct

from agent.decode.decode_context import BLOCK, NUMBER, OFFSET_SUM, PAIR_OF_TEXTS, DecodeContext
from agent.decode.values import (
    LATEST_STREAMS_VERSION,
    RUNNING_ACTIVE,
    UNKNOWN_OFFSET_SUM,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Undecodable,
    UndecodableFieldError,
    UndecodableReason,
    int8,
    int32,
    int64,
    plain_bytes,
    truncated,
)
from assignors.problem import TaskId

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
