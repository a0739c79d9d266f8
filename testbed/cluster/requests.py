"""Facts of a client's request to a broker, decoded from its bytes.

Invariant: a request counts as mutating unless its API is known to only read. A request that cannot be read keeps
its header's facts and has `subjects` None; it is never taken for one that touches nothing. A Metadata request that
names topics and lets the broker create them counts as mutating, for any settings of the broker.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kafka.protocol import admin, consumer, metadata, producer
from kafka.protocol.api_key import ApiKey

METADATA = 3
DESCRIBE_CLUSTER = 60
_HEADER = struct.Struct(">hhih")

# Pushing telemetry is left out on purpose: it writes.
_READ_ONLY = frozenset({
    "ApiVersions", "ConsumerGroupDescribe", "DescribeAcls", "DescribeClientQuotas", "DescribeCluster",
    "DescribeConfigs", "DescribeDelegationToken", "DescribeGroups", "DescribeLogDirs", "DescribeProducers",
    "DescribeQuorum", "DescribeShareGroupOffsets", "DescribeTopicPartitions", "DescribeTransactions",
    "DescribeUserScramCredentials", "Fetch", "FindCoordinator", "GetTelemetrySubscriptions", "ListConfigResources",
    "ListGroups", "ListOffsets", "ListPartitionReassignments", "ListTransactions", "Metadata", "OffsetFetch",
    "OffsetForLeaderEpoch", "SaslAuthenticate", "SaslHandshake", "ShareGroupDescribe", "StreamsGroupDescribe",
})  # fmt: skip
# Heartbeats of the newer group protocols: kafka-python has no schema for them; each begins with its group.
_GROUP_HEARTBEATS: Mapping[int, str] = {
    68: "ConsumerGroupHeartbeat",
    76: "ShareGroupHeartbeat",
    88: "StreamsGroupHeartbeat",
}
_RESOURCE_KINDS = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}
# What kafka-python's decoders raise on bytes that are not what they should be.
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, OverflowError, struct.error)


class RequestSubject(NamedTuple):
    """Something a request names: a topic, a group, a transactional id, a broker."""

    kind: str
    name: str


class RequestHeader(NamedTuple):
    """The part that all requests share."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class RecordedRequest(NamedTuple):
    """One request as it passed."""

    number: int
    """Counts the requests of all brokers, from 1."""
    broker_id: int
    client_id: str | None
    api_key: int
    api: str
    api_version: int
    correlation_id: int
    subjects: tuple[RequestSubject, ...] | None
    """What a mutating request names; empty for one that only reads, None when it could not be read."""
    mutating: bool
    """False only for a request that is known to only read."""

    @property
    def topics(self) -> tuple[str, ...] | None:
        """Topics among the subjects; None when the request could not be read."""
        if self.subjects is None:
            return None
        return tuple(one.name for one in self.subjects if one.kind == "topic")


def read_header(frame: bytes) -> RequestHeader | None:
    """The request's header; None when the frame is too short for one."""
    if len(frame) < _HEADER.size:
        return None
    api_key, api_version, correlation_id, length = _HEADER.unpack_from(frame)
    if length < 0:
        return RequestHeader(api_key, api_version, correlation_id, None)
    raw = frame[_HEADER.size : _HEADER.size + length]
    return RequestHeader(api_key, api_version, correlation_id, raw.decode("utf-8", "replace"))


def record(number: int, broker_id: int, header: RequestHeader, frame: bytes) -> RecordedRequest:
    """The request as it is remembered; never raises."""
    api = api_name(header.api_key)
    reads = api in _READ_ONLY and not (header.api_key == METADATA and _may_create(header, frame))
    return RecordedRequest(
        number=number,
        broker_id=broker_id,
        client_id=header.client_id,
        api_key=header.api_key,
        api=api,
        api_version=header.api_version,
        correlation_id=header.correlation_id,
        subjects=() if reads else _subjects(header, frame),
        mutating=not reads,
    )


def api_name(api_key: int) -> str:
    """Kafka's name of the API, or its number when it is not known."""
    if api_key in _GROUP_HEARTBEATS:
        return _GROUP_HEARTBEATS[api_key]
    try:
        return str(ApiKey(api_key).name)
    except ValueError:
        return f"api-{api_key}"


def without_brokers(api_key: int, api_version: int, answer: bytes) -> bytes:
    """A Metadata or DescribeCluster answer with its list of brokers emptied; unreadable ones as they were."""
    kind = metadata.MetadataResponse if api_key == METADATA else admin.DescribeClusterResponse
    try:
        parsed = kind.decode(answer, version=api_version, header=True)
        parsed.brokers = []
        return bytes(parsed.encode(header=True))
    except UNREADABLE:
        return answer


def _may_create(header: RequestHeader, frame: bytes) -> bool:
    try:
        request = metadata.MetadataRequest.decode(frame, version=header.api_version, header=True)
    except UNREADABLE:
        return True
    # Before version 4 a client could not forbid it.
    return bool(request.topics) and (header.api_version < 4 or bool(request.allow_auto_topic_creation))


def _subjects(header: RequestHeader, frame: bytes) -> tuple[RequestSubject, ...] | None:
    if header.api_key in _GROUP_HEARTBEATS:
        group = _first_compact_string(frame, header)
        return None if group is None else (RequestSubject("group", group),)
    if header.api_key not in _REQUESTS:
        return None
    kind, *names = _REQUESTS[header.api_key]
    try:
        request = kind.decode(frame, version=header.api_version, header=True)
        return tuple(dict.fromkeys(subject for of in names for subject in of(request)))
    except UNREADABLE:
        return None


def _first_compact_string(frame: bytes, header: RequestHeader) -> str | None:
    """First field of a flexible request without header tags; None when its length does not fit one byte."""
    start = _HEADER.size + len((header.client_id or "").encode())
    if len(frame) < start + 2 or frame[start] != 0 or not 0 < frame[start + 1] < 0x80:
        return None
    raw = frame[start + 2 : start + 1 + frame[start + 1]]
    return raw.decode("utf-8", "replace")


# kafka-python's values have no types; what is read here is turned into text at once.
def _topic(one: Any) -> RequestSubject:
    name = getattr(one, "name", None) or getattr(one, "topic", None)
    return RequestSubject("topic", str(name)) if name else RequestSubject("topic id", str(one.topic_id))


def _topics_of(request: Any) -> Iterator[RequestSubject]:
    for one in request.topics or ():
        yield _topic(one)


def _produced(request: Any) -> Iterator[RequestSubject]:
    for one in request.topic_data:
        yield _topic(one)


def _transaction(request: Any) -> Iterator[RequestSubject]:
    if request.transactional_id:
        yield RequestSubject("transactional id", str(request.transactional_id))


def _group(request: Any) -> Iterator[RequestSubject]:
    yield RequestSubject("group", str(request.group_id))


def _deleted_topics(request: Any) -> Iterator[RequestSubject]:
    for name in request.topic_names or ():
        yield RequestSubject("topic", str(name))
    yield from _topics_of(request)


def _added_to_transaction(request: Any) -> Iterator[RequestSubject]:
    if request.v3_and_below_transactional_id:
        yield RequestSubject("transactional id", str(request.v3_and_below_transactional_id))
    for topic in request.v3_and_below_topics or ():
        yield _topic(topic)
    for one in request.transactions or ():
        yield from _transaction(one)
        for topic in one.topics:
            yield _topic(topic)


def _resources(request: Any) -> Iterator[RequestSubject]:
    for one in request.resources:
        kind = _RESOURCE_KINDS.get(one.resource_type, f"resource {one.resource_type}")
        yield RequestSubject(kind, str(one.resource_name))


def _groups(request: Any) -> Iterator[RequestSubject]:
    for name in request.groups_names:
        yield RequestSubject("group", str(name))


def _elected(request: Any) -> Iterator[RequestSubject]:
    if request.topic_partitions is None:
        yield RequestSubject("topic", "*")
    for one in request.topic_partitions or ():
        yield _topic(one)


_REQUESTS: Mapping[int, tuple[Any, *tuple[Callable[[Any], Iterator[RequestSubject]], ...]]] = {
    0: (producer.ProduceRequest, _transaction, _produced),
    METADATA: (metadata.MetadataRequest, _topics_of),
    8: (consumer.OffsetCommitRequest, _group, _topics_of),
    11: (consumer.JoinGroupRequest, _group),
    12: (consumer.HeartbeatRequest, _group),
    13: (consumer.LeaveGroupRequest, _group),
    14: (consumer.SyncGroupRequest, _group),
    19: (admin.CreateTopicsRequest, _topics_of),
    20: (admin.DeleteTopicsRequest, _deleted_topics),
    21: (admin.DeleteRecordsRequest, _topics_of),
    22: (producer.InitProducerIdRequest, _transaction),
    24: (producer.AddPartitionsToTxnRequest, _added_to_transaction),
    25: (producer.AddOffsetsToTxnRequest, _transaction, _group),
    26: (producer.EndTxnRequest, _transaction),
    28: (producer.TxnOffsetCommitRequest, _transaction, _group, _topics_of),
    33: (admin.AlterConfigsRequest, _resources),
    37: (admin.CreatePartitionsRequest, _topics_of),
    42: (admin.DeleteGroupsRequest, _groups),
    43: (admin.ElectLeadersRequest, _elected),
    44: (admin.IncrementalAlterConfigsRequest, _resources),
    45: (admin.AlterPartitionReassignmentsRequest, _topics_of),
    47: (consumer.OffsetDeleteRequest, _group, _topics_of),
}
