"""Readiness of a broker: the brokers and racks in its Metadata response.

Invariant: asks one broker over its internal listener with one Metadata request, so that security settings, client
libraries and their retries have no part in the answer. Foreign bytes cannot harm: the answer is bounded and parsed by
a schema, and a malformed one counts as "no answer".
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from testbed.cluster.requests import UNREADABLE

_CLIENT_ID = "rackwise-cluster"
_VERSION = 4
_LONGEST_ANSWER_BYTES = 16 * 1024 * 1024


def known_brokers(port: int, timeout_s: float = 2.0) -> Mapping[int, str | None] | None:
    """Live brokers and their racks as the broker at this port of 127.0.0.1 knows them; None when it does not answer."""
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False, version=_VERSION)
    request.with_header(correlation_id=1, client_id=_CLIENT_ID)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
            connection.sendall(request.encode(header=True, framed=True))
            (size,) = struct.unpack(">i", _exactly(connection, 4))
            if not 0 <= size <= _LONGEST_ANSWER_BYTES:
                return None
            answer = MetadataResponse.decode(_exactly(connection, size), version=_VERSION, header=True)
    except (OSError, *UNREADABLE):
        return None
    return {broker.node_id: broker.rack for broker in answer.brokers}


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise EOFError
        received += part
    return bytes(received)
