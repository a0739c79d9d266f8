"""A TCP proxy between a browser and an agent that can be cut and mended."""

from __future__ import annotations

import itertools
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

_SOURCES = (f"127.77.{high}.{low}" for high, low in itertools.product(range(256), range(1, 255)))
_CHUNK = 65_536


class CutProxy:
    """Passes bytes from a port of its own to an agent; a context manager.

    The agent bounds the requests of one client address. ``spread``: each connection comes from an address of its own,
    for a test that asks more in a minute than a person does.
    """

    def __init__(self, target: str, *, spread: bool = False) -> None:
        host, port = target.rsplit(":", 1)
        self._target, self._spread = (host, int(port)), spread
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = self._listen(0)
        self._port = self._listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"

    def cut(self) -> None:
        """Take no connection, and end those that are open."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Listen again, at the same address."""
        self._listener = self._listen(self._port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self.cut()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    source = (next(_SOURCES), 0) if self._spread else None
                    agent = socket.create_connection(self._target, source_address=source)
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    self._open |= {client, agent}
                for one, other in ((client, agent), (agent, client)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while taken := one.recv(_CHUNK):
                other.sendall(taken)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(one)
        one.close()
