"""Assignments of members as bytes, and one assignment read alone: what leaders write and the agent only reads.

As in `agent.execute.probe_bytes`, ``decode(encode(value)) == value`` for every value that its version can
carry, and arrays are written in the order of the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

from agent.decode.decode_context import DecodeContext
from agent.decode.members import read_assignment
from agent.decode.streams_user_data import NEVER
from agent.decode.values import Assignment, HostPartitions, StreamsAssignment, Undecodable, UndecodableFieldError
from agent.execute.probe_bytes import array, named_topology, nullable, partition_array, plain_task
from assignors.problem import TaskId, TopicPartition


def decode_assignment(data: bytes, reading: DecodeContext | None = None) -> Assignment | Undecodable:
    """A member's assignment with its user data unread."""
    try:
        value, user_data = read_assignment(data, reading or DecodeContext())
    except UndecodableFieldError as broken:
        return broken.value
    return value._replace(user_data=user_data)


def encode_assignment(value: Assignment) -> bytes:
    """The assignment as the embedded consumer protocol carries it."""
    return pack(">h", value.version) + partition_array(value.partitions) + nullable(value.user_data)


def encode_assignment_info(value: StreamsAssignment) -> bytes:
    """AssignmentInfo, version 1 to 11."""
    version = value.version
    parts = [pack(">i", version)]
    if version >= 3:
        parts.append(pack(">i", -1 if value.commonly_supported is None else value.commonly_supported))
    parts.append(array([_task(task, version) for task in value.active]))
    standby = [_task(task, version) + array(map(_java_partition, partitions)) for task, partitions in value.standby]
    parts.append(array(standby))
    if 2 <= version <= 4:
        parts.append(array([_host(host, map(_java_partition, host.partitions)) for host in value.partitions_by_host]))
    if version >= 5:
        parts.append(_hosts_by_index(value))
    if version >= 4:
        parts.append(pack(">i", value.error_code or 0))
    if version >= 7:
        parts.append(pack(">q", NEVER if value.next_rebalance_ms is None else value.next_rebalance_ms))
    return b"".join(parts)


def to_modified_utf8(text: str) -> bytes:
    """The bytes that Java's ``writeUTF`` puts behind its length."""
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    units = text.encode("utf-16-be")
    return b"".join(_encoded((units[i] << 8) | units[i + 1]) for i in range(0, len(units), 2))


def _encoded(unit: int) -> bytes:
    if 0 < unit < 0x80:
        return bytes((unit,))
    if unit < 0x800:
        return bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
    return bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))


def _task(task: TaskId, version: int) -> bytes:
    if version < 10:
        return plain_task(task)
    units = (named_topology(task)[0] or "").encode("utf-16-be")
    return plain_task(task) + pack(">i", len(units) // 2) + units


def _java_name(text: str) -> bytes:
    raw = to_modified_utf8(text)
    return pack(">H", len(raw)) + raw


def _java_partition(partition: TopicPartition) -> bytes:
    return _java_name(partition.topic) + pack(">i", partition.partition)


def _host(host: HostPartitions, partitions: Iterable[bytes]) -> bytes:
    return _java_name(host.host) + pack(">i", host.port) + array(partitions)


def _hosts_by_index(value: StreamsAssignment) -> bytes:
    sides = [value.partitions_by_host]
    if value.version >= 6:
        sides.append(value.standby_partitions_by_host)
    topics = dict.fromkeys(p.topic for side in sides for host in side for p in host.partitions)
    index = {topic: i for i, topic in enumerate(topics)}
    parts = [array([pack(">i", i) + _java_name(topic) for topic, i in index.items()])]
    for side in sides:
        hosts = [_host(host, [pack(">ii", index[p.topic], p.partition) for p in host.partitions]) for host in side]
        parts.append(array(hosts))
    return b"".join(parts)
