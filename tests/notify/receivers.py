"""Receivers of messages on 127.0.0.1: an HTTP server with scripted answers, and a mail server."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Receiver:
    """An HTTP server. ``answer``: a status, ``hang``, ``close`` or ``drip``."""

    answer: int | str = 200
    requests: list[tuple[str, str]] = field(default_factory=list)
    """(path, body) of every request."""
    port: int = 0
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def documents(self) -> list[Any]:
        return [json.loads(body) for _, body in self.requests]

    def wait(self, number: int, within_s: float = 10) -> None:
        until = time.monotonic() + within_s
        while len(self.requests) < number:
            assert time.monotonic() < until, f"{len(self.requests)} of {number} requests came"
            time.sleep(0.01)


@contextmanager
def receiver(answer: int | str = 200) -> Iterator[Receiver]:
    """A running HTTP server."""
    held = Receiver(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            held.requests.append((self.path, body))
            if held.answer == "hang":
                held.released.wait(60)
            elif held.answer == "drip":
                self.send_response(200)
                self.send_header("content-length", "100000")
                self.end_headers()
                while not held.released.wait(0.2):
                    self.wfile.write(b"x")
                    self.wfile.flush()
            if isinstance(held.answer, int):
                self.send_response(held.answer)
                if held.answer in (301, 307):
                    self.send_header("location", "/elsewhere")
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"ok")
            else:
                self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 the library's name
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # a client that is gone is no error here
    held.port = server.server_address[1]
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    serving.start()
    try:
        yield held
    finally:
        held.released.set()
        server.shutdown()
        server.server_close()


class Mailbox:
    """Keeps what a mail server is handed."""

    def __init__(self) -> None:
        self.mails: list[str] = []

    async def handle_DATA(self, _server: object, _session: object, envelope: Any) -> str:
        self.mails.append(envelope.content.decode())
        return "250 OK"


@contextmanager
def mail_server() -> Iterator[tuple[Mailbox, int]]:
    """A running mail server, and its port."""
    mailbox = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]  # the library asks its own port, so it takes no 0
    controller = Controller(mailbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield mailbox, port
    finally:
        controller.stop()
