"""Serves the application from a thread of its own, so that a slow cycle never delays an answer about itself."""

from __future__ import annotations

import asyncio
import socket
import threading
from functools import partial
from types import TracebackType
from typing import Self, cast

import uvicorn
from starlette.types import ASGIApp

from agent.errors import ConfigError
from agent.web.bounds import BoundedConnection, Bounds, Turnstile

DEFAULTS = Bounds()
_STOP_S = 1.0


class WebServer:
    """Listens from `start` on; a context manager."""

    def __init__(self, app: ASGIApp, bind: str, port: int, bounds: Bounds = DEFAULTS) -> None:
        self._socket = _listen(bind, port)
        config = uvicorn.Config(
            Turnstile(app, bounds),
            http=cast("type[asyncio.Protocol]", partial(BoundedConnection, bounds=bounds)),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=bounds.head_bytes,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="rackwise-web", daemon=True
        )

    @property
    def address(self) -> str:
        """``host:port`` that it listens on."""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Answer no more."""
        self._server.should_exit = True
        self._thread.join(_STOP_S)
        self._socket.close()

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._server.server_state.connections)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()


def _listen(bind: str, port: int) -> socket.socket:
    """A listening socket. Raises ConfigError that names the address and what is wrong with it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(64)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {bind}:{port}",
            why=error.strerror or str(error),
            todo="Set http.bind and http.port to a free address, or http.enabled to false.",
        ) from error
    return listener
