"""A broker of a few lines for what no real broker can be made to do: answers that cannot be read, or never end.

It speaks through kafka-python's own encoders; each call is answered by a function of the test.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from agent.wire.protocol import API_VERSIONS, DESCRIBE_CLUSTER, METADATA, ApiCall

Answer = Callable[[int, memoryview], bytes]
"""From the call's version and the request's body to the answer's body."""


class FakeBroker:
    """Listens on a free port of 127.0.0.1 until the context is left."""

    def __init__(self, answers: dict[int, Answer]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.asked: list[tuple[int, int]] = []
        """Call and version of every request."""
        self.client_ids: list[str] = []
        """Client id of every request."""
        self.connections = 0
        self._answers = {API_VERSIONS.key: self._versions, DESCRIBE_CLUSTER.key: self._cluster, **answers}
        threading.Thread(target=self._accept, daemon=True, name="fake broker").start()

    @property
    def arguments(self) -> dict[str, Any]:
        """For a `WireClient`."""
        return {"bootstrap_servers": [f"127.0.0.1:{self.port}"]}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # a test has done so
            self._listener.shutdown(socket.SHUT_RDWR)  # it ends the wait for a connection, which closing does not
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(sock,), daemon=True, name="fake connection").start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error), sock:
            while True:
                size = struct.unpack(">i", _exactly(sock, 4))[0]
                frame = memoryview(_exactly(sock, size))
                key, version, correlation_id, client_length = struct.unpack_from(">hhih", frame)
                self.asked.append((key, version))
                self.client_ids.append(bytes(frame[10 : 10 + client_length]).decode())
                if key not in self._answers:
                    return  # as a broker does that does not know the call
                body = self._answers[key](version, frame[10 + client_length :])
                # ApiVersions never has tags in its header; all other calls here are asked in flexible versions.
                head = struct.pack(">i", correlation_id) + (b"" if key == API_VERSIONS.key else b"\0")
                sock.sendall(struct.pack(">i", len(head) + len(body)) + head + body)

    def _versions(self, version: int, _body: memoryview) -> bytes:
        row = API_VERSIONS.response.ApiVersion
        offers = dict.fromkeys(self._answers, 5) | {API_VERSIONS.key: 3, DESCRIBE_CLUSTER.key: 2, METADATA.key: 12}
        rows = [row(api_key=key, min_version=0, max_version=newest) for key, newest in offers.items()]
        return encode_body(API_VERSIONS, API_VERSIONS.response(error_code=0, api_keys=rows), version)

    def _cluster(self, version: int, _body: memoryview) -> bytes:
        row = DESCRIBE_CLUSTER.response.DescribeClusterBroker
        broker = row(broker_id=1, host="127.0.0.1", port=self.port, rack="a", is_fenced=False)
        answer = DESCRIBE_CLUSTER.response(cluster_id="fake", controller_id=1, brokers=[broker])
        return encode_body(DESCRIBE_CLUSTER, answer, version)


def encode_body(api: ApiCall, message: Any, version: int) -> bytes:
    """An answer's body as a broker would write it."""
    assert api.response is type(message)
    message.API_VERSION = version
    return bytes(message.encode(version=version))


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data
