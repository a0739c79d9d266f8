"""The only importer of kafka-python: message classes, bytes in and out, SASL mechanisms, names of errors; settings.

Of kafka-python 3.0.x only its codecs and its SASL mechanisms are used, not its connections: there a lookup of a host
name stops every other call, a deadline ends the waiting but not the work, and the answer that explains a wrong password
is lost. `tests/wire/test_contract.py` fails by name when a release changes what is used here. Settings of the wire
client (addresses, SASL, TLS, limits) are taken once, from kafka-python's keyword arguments.
"""

from __future__ import annotations

import os
import ssl
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
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

from agent.errors import ConfigError
from agent.values.kafka import UNKNOWN_SERVER_ERROR
from agent.values.number_format import unknown_error
from agent.values.observation import GapCause
from agent.wire.failure import UnusableAnswer, from_error_name
from config.kafka_keys import CA_LOCATION, CERTIFICATE_LOCATION, CRL_LOCATION

DEFAULT_FRAME_BYTES = 100_000_000

_GIVE = (
    "Give at least one host:port: option -b, environment variable RACKWISE_KAFKA_BOOTSTRAP_SERVERS, or setting "
    "kafka.bootstrap.servers of a config file."
)


class BrokerAddress(NamedTuple):
    """Host and port of a broker's listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSettings:
    """Bootstrap addresses, identity, TLS and limits."""

    bootstrap: tuple[BrokerAddress, ...]
    client_id: str
    version: str
    """Version of rackwise, which brokers show among their clients (KIP-511)."""
    sasl: Mapping[str, Any] | None
    """kafka-python's names; None when the listener takes any client."""
    tls: ssl.SSLContext | None
    max_frame_bytes: int
    setup_timeout_ms: int
    """Upper bound for one connection's set-up, within the call's own deadline."""
    max_idle_ms: int


def wire_settings(arguments: Mapping[str, Any]) -> WireSettings:
    """Settings of kafka-python's keyword arguments. Raises ConfigError for a missing address or an unreadable file."""
    if not arguments.get("bootstrap_servers"):
        raise ConfigError("bootstrap.servers is not set", todo=_GIVE)
    protocol = str(arguments.get("security_protocol", "PLAINTEXT"))
    return WireSettings(
        bootstrap=tuple(map(_address, arguments["bootstrap_servers"])),
        client_id=str(arguments.get("client_id", "rackwise")),
        version=_own_version(),
        sasl=_sasl(arguments, protocol) if protocol.startswith("SASL_") else None,
        tls=_tls_context(arguments) if protocol.endswith("SSL") else None,
        max_frame_bytes=int(arguments.get("receive_message_max_bytes", DEFAULT_FRAME_BYTES)),
        setup_timeout_ms=int(arguments.get("socket_connection_setup_timeout_ms", 10_000)),
        max_idle_ms=int(arguments.get("connections_max_idle_ms", 540_000)),
    )


def _own_version() -> str:
    try:
        return metadata.version("rackwise")
    except metadata.PackageNotFoundError:  # run from a tree that was never installed
        return "unknown"


def _address(text: str) -> BrokerAddress:
    host, _, port = text.rpartition(":")
    return BrokerAddress(host.strip("[]"), int(port))


def _sasl(arguments: Mapping[str, Any], protocol: str) -> dict[str, Any]:
    return {
        "sasl_mechanism": arguments.get("sasl_mechanism"),
        "sasl_plain_username": arguments.get("sasl_plain_username"),
        "sasl_plain_password": arguments.get("sasl_plain_password"),
        "security_protocol": protocol,
    }


def _tls_context(arguments: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = bool(arguments.get("ssl_check_hostname", True))
    _load_authorities(context, arguments)
    if arguments.get("ssl_certfile") or arguments.get("ssl_certdata"):
        _load_own_certificate(context, arguments)
    return context


def _load_authorities(context: ssl.SSLContext, arguments: Mapping[str, Any]) -> None:
    file, data = arguments.get("ssl_cafile"), arguments.get("ssl_cadata")
    try:
        if file or data:
            context.load_verify_locations(cafile=file, cadata=data)
        else:
            context.load_default_certs()
    except (OSError, ssl.SSLError) as error:
        raise _unreadable(CA_LOCATION, file, error) from error
    crl = arguments.get("ssl_crlfile")
    if crl:
        try:
            context.load_verify_locations(cafile=crl)
        except (OSError, ssl.SSLError) as error:
            raise _unreadable(CRL_LOCATION, crl, error) from error
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_own_certificate(context: ssl.SSLContext, arguments: Mapping[str, Any]) -> None:
    # A password of None would make OpenSSL ask at the terminal.
    password = arguments.get("ssl_password") or ""
    certificate, key = arguments.get("ssl_certfile"), arguments.get("ssl_keyfile")
    try:
        if certificate and key:
            context.load_cert_chain(certificate, key, password)
            return
        with tempfile.TemporaryDirectory(prefix="rackwise-") as folder:
            certificate = certificate or _private_file(folder, "certificate", arguments["ssl_certdata"])
            key = key or _private_file(folder, "key", arguments["ssl_keydata"])
            context.load_cert_chain(certificate, key, password)
    except (OSError, ssl.SSLError) as error:
        raise _unreadable(CERTIFICATE_LOCATION, arguments.get("ssl_certfile"), error) from error


def _private_file(folder: str, name: str, content: str) -> str:
    """A file of mode 0600 in that folder, as OpenSSL reads keys from files only."""
    path = Path(folder) / name
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(content)
    return str(path)


def _unreadable(key: str, file: object, error: Exception) -> ConfigError:
    if isinstance(error, ssl.SSLError):
        why = "it is not valid PEM, or its password is wrong"
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            why = "the key and the certificate do not belong together"
    else:
        why = getattr(error, "strerror", None) or str(error)
    where = str(file) if file else "the inline PEM"
    return ConfigError(f"{key} cannot be used", why=f"{where}: {why}", todo="Name a readable PEM file.")


_OWN = "agent.wire.messages"
"""Schemas of the calls that kafka-python does not know, in its own JSON form."""


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
