"""The only importer of kafka-python: message classes, bytes in and out, SASL mechanisms, names of errors.

Of kafka-python 3.0.x only its codecs and its SASL mechanisms are used, not its connections: there a lookup of a host
name stops every other call, a deadline ends the waiting but not the work, and the answer that explains a wrong password
is lost. `tests/wire/test_contract.py` fails by name when a release changes what is used here.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from kafka import errors as kafka_errors
from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from agent.values.kafka import UNKNOWN_SERVER_ERROR
from agent.values.number_format import unknown_error
from agent.values.observation import GapCause
from agent.wire.failure import UnusableAnswer, from_error_name

_OWN = "agent.wire.messages"


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_OWN):  # type: ignore[misc, call-arg] # kafka-python is untyped
    """KIP-848."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_OWN):  # type: ignore[misc, call-arg] # kafka-python is untyped
    """KIP-848."""


class StreamsGroupDescribeRequest(ApiMessage, load_json=_OWN):  # type: ignore[misc, call-arg] # kafka-python is untyped
    """KIP-1071."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=_OWN):  # type: ignore[misc, call-arg] # kafka-python is untyped
    """KIP-1071."""


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=_OWN):  # type: ignore[misc, call-arg] # kafka-python is untyped
    """KIP-932."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=_OWN):  # type: ignore[misc, call-arg] # kafka-python is untyped
    """KIP-932."""


class ApiCall(NamedTuple):
    """A call: its request and response classes."""

    request: Any
    response: Any
    changes: bool = False
    """True for a call that changes the cluster: no layer below its caller repeats it."""

    @property
    def key(self) -> int:
        """Kafka's number of the call."""
        return int(self.request.API_KEY)

    @property
    def name(self) -> str:
        """Kafka's name of the call, without "Request"."""
        return str(self.request.__name__).removesuffix("Request")

    @property
    def newest(self) -> int:
        """The newest version that the codec supports."""
        return int(self.request.max_version)


API_VERSIONS = ApiCall(ApiVersionsRequest, ApiVersionsResponse)
METADATA = ApiCall(MetadataRequest, MetadataResponse)
DESCRIBE_CLUSTER = ApiCall(DescribeClusterRequest, DescribeClusterResponse)
DESCRIBE_CONFIGS = ApiCall(DescribeConfigsRequest, DescribeConfigsResponse)
DESCRIBE_LOG_DIRS = ApiCall(DescribeLogDirsRequest, DescribeLogDirsResponse)
LIST_PARTITION_REASSIGNMENTS = ApiCall(ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse)
LIST_GROUPS = ApiCall(ListGroupsRequest, ListGroupsResponse)
DESCRIBE_GROUPS = ApiCall(DescribeGroupsRequest, DescribeGroupsResponse)
CONSUMER_GROUP_DESCRIBE = ApiCall(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse)
STREAMS_GROUP_DESCRIBE = ApiCall(StreamsGroupDescribeRequest, StreamsGroupDescribeResponse)
DESCRIBE_SHARE_GROUP_OFFSETS = ApiCall(DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse)
FIND_COORDINATOR = ApiCall(FindCoordinatorRequest, FindCoordinatorResponse)
OFFSET_FETCH = ApiCall(OffsetFetchRequest, OffsetFetchResponse)
LIST_OFFSETS = ApiCall(ListOffsetsRequest, ListOffsetsResponse)
LIST_TRANSACTIONS = ApiCall(ListTransactionsRequest, ListTransactionsResponse)
DESCRIBE_TRANSACTIONS = ApiCall(DescribeTransactionsRequest, DescribeTransactionsResponse)
JOIN_GROUP = ApiCall(JoinGroupRequest, JoinGroupResponse, changes=True)
LEAVE_GROUP = ApiCall(LeaveGroupRequest, LeaveGroupResponse, changes=True)
ALTER_PARTITION_REASSIGNMENTS = ApiCall(
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, changes=True
)
ELECT_LEADERS = ApiCall(ElectLeadersRequest, ElectLeadersResponse, changes=True)
INCREMENTAL_ALTER_CONFIGS = ApiCall(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, changes=True)
SASL_HANDSHAKE = ApiCall(SaslHandshakeRequest, SaslHandshakeResponse)
SASL_AUTHENTICATE = ApiCall(SaslAuthenticateRequest, SaslAuthenticateResponse)

# Errors of the codecs on malformed bytes.
_DECODE_ERRORS = (
    struct.error,
    ValueError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    AssertionError,
)


def encode(message: Any, version: int, correlation_id: int, client_id: str) -> bytes:
    """The bytes of a request, with its length in front."""
    message.API_VERSION = version
    message.with_header(correlation_id=correlation_id, client_id=client_id)
    return bytes(message.encode(header=True, framed=True))


def decode(api: ApiCall, version: int, frame: memoryview) -> Any:
    """The answer in a frame (without its length). Raises UnusableAnswer for bytes that do not fit the schema."""
    try:
        # Not by kafka-python: its header reader copies the whole frame.
        flexible = api is not API_VERSIONS and api.response.flexible_version_q(version)
        body = frame[4:] if not flexible else frame[_after_tags(frame, 4) :]
        return api.response.decode(body, version=version)
    except _DECODE_ERRORS as error:
        detail = f"the answer to {api.name} v{version} ({len(frame)} bytes) cannot be read: {error}"
        raise UnusableAnswer(GapCause.ERROR, detail) from error


def error_name(code: int) -> str | None:
    """Kafka's name of an error code (``GROUP_AUTHORIZATION_FAILED``); None for 0; `unknown_error` of a newer code."""
    return None if code == 0 else _known_name(code) or unknown_error(code)


def is_unknown_error(code: int) -> bool:
    """Whether an error code has no name here."""
    return code != 0 and _known_name(code) is None


def _known_name(code: int) -> str | None:
    if code == -1:
        return UNKNOWN_SERVER_ERROR
    name = getattr(kafka_errors.for_code(code), "message", None)
    return str(name) if name and name != "UNKNOWN" else None


def raise_on_error(code: int, message: str | None = None) -> None:
    """Raises CallFailed for an error code other than 0."""
    name = error_name(code)
    if name is not None:
        raise from_error_name(name, message)


def sasl_mechanism(host: str, arguments: dict[str, Any]) -> Any:
    """A fresh exchange of the configured mechanism, with ``auth_bytes()``, ``receive(bytes)`` and ``is_done()``."""
    return get_sasl_mechanism(arguments["sasl_mechanism"])(host=host, **arguments)


def operations(field: Any) -> frozenset[int] | None:
    """Authorised operations as Kafka's operation codes; None where the broker does not report them."""
    if field is None:
        return None
    if isinstance(field, int):
        return None if field == -(2**31) else frozenset(code for code in range(31) if field >> code & 1)
    return frozenset(field)


def _after_tags(frame: memoryview, at: int) -> int:
    """Offset of the body behind the tagged fields of a header."""
    count, at = _varint(frame, at)
    for _ in range(count):
        _, at = _varint(frame, at)
        size, at = _varint(frame, at)
        at += size
    return at


def _varint(frame: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = frame[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at
        if shift > 28:
            raise ValueError("a varint of more than five bytes")
