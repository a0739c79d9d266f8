"""An S3 server over a folder of this machine (Versity's gateway), and a proxy before it that makes it slow and faulty.

An object is the file of its name below the folder, so that what is in the store can be read without it.
"""

from __future__ import annotations

import http.client
import os
import random
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from tests.deploy.tooling import program

MODULE = Path(__file__).with_name("s3_gateway")
USER, SECRET, BUCKET = "drill", "canary-of-the-drill", "lake"
_START_S, _ANSWER_S = 30, 120
_BARRIER_S, _MEETINGS = 20, 2


class Store(NamedTuple):
    """A running server."""

    port: int
    folder: Path
    """Of the bucket."""


@contextmanager
def running(folder: Path) -> Iterator[Store]:
    """The server, with one empty bucket, until the block is left."""
    (folder / BUCKET).mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    binary = program(MODULE, "versitygw", "github.com/versity/versitygw/cmd/versitygw")
    environment = {**os.environ, "ROOT_ACCESS_KEY": USER, "ROOT_SECRET_KEY": SECRET}
    command = [str(binary), "-p", f"127.0.0.1:{port}", "--keep-alive", "-q", "posix", str(folder)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(port, process)
            yield Store(port, folder / BUCKET)
        finally:
            process.kill()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        assert process.poll() is None, "the S3 server ended"
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the S3 server does not listen")


@dataclass(kw_only=True)
class Faults:
    """What the proxy does to requests; each share is of all of them, drawn at random."""

    seed: int = 1
    slow: float = 0.0
    """Answered after up to ``slow_s``."""
    slow_s: float = 2.0
    errors: float = 0.0
    """Answered with 500 or 503, not passed on."""
    cut_before: float = 0.0
    """The connection is closed, and nothing is passed on."""
    cut_after: float = 0.0
    """Passed on; the connection is closed instead of an answer."""
    dead: bool = False
    """Every request is answered with 500 or 503."""
    commits_meet: bool = False
    """A commit of a Delta log waits for that of another writer to the same version, until two have met."""
    seen: Counter[str] = field(default_factory=Counter)
    """What happened, by name: the faults, and ``refused`` for conditional writes that came second."""


class _Meeting:
    """Two requests for one path are let on at the same moment; one that stays alone, after a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._barriers: dict[str, threading.Barrier] = {}

    def wait(self, path: str) -> bool:
        with self._lock:
            barrier = self._barriers.setdefault(path, threading.Barrier(2))
        try:
            barrier.wait(_BARRIER_S)
        except threading.BrokenBarrierError:
            return False
        return True


@contextmanager
def proxied(store: Store, faults: Faults) -> Iterator[int]:
    """The port of a proxy before the server, until the block is left."""
    draw, meeting = random.Random(faults.seed), _Meeting()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

        def _pass_on(self) -> None:
            body = self._body()
            at = draw.random()
            if faults.dead or at < faults.errors:
                self._refuse(503 if at < faults.errors / 2 else 500)
            elif at < faults.errors + faults.cut_before:
                self._cut("cut before")
            else:
                self._answer(body, at - faults.errors - faults.cut_before)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            del self.headers["Transfer-Encoding"]
            self.headers["Content-Length"] = str(sum(map(len, parts)))
            return b"".join(parts)

        def _answer(self, body: bytes, at: float) -> None:
            if at >= faults.cut_after and at < faults.cut_after + faults.slow:
                faults.seen["slow"] += 1
                time.sleep(draw.uniform(0, faults.slow_s))
            path = self.path.partition("?")[0]
            if (
                faults.commits_meet
                and faults.seen["met"] < 2 * _MEETINGS
                and self.command == "PUT"
                and _is_commit(path)
            ):
                faults.seen["met"] += meeting.wait(path)
            status, heads, answer = _asked(store.port, self.command, self.path, self.headers, body)
            if at < faults.cut_after:
                self._cut("cut after")
                return
            faults.seen["refused"] += status == 412
            self.send_response_only(status)
            for name, value in heads:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def _refuse(self, status: int) -> None:
            faults.seen[str(status)] += 1
            code = "SlowDown" if status == 503 else "InternalError"
            answer = b"" if self.command == "HEAD" else f"<Error><Code>{code}</Code></Error>".encode()
            self.send_response_only(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _cut(self, name: str) -> None:
            faults.seen[name] += 1
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _is_commit(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder.endswith("/_delta_log") and name.endswith(".json") and name[:1].isdigit()


def _asked(port: int, verb: str, path: str, heads: Message, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
    try:
        connection.putrequest(verb, path, skip_host=True, skip_accept_encoding=True)
        for name, value in heads.items():
            if name.lower() not in {"expect", "connection"}:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
        kept = [(n, v) for n, v in answer.getheaders() if n.lower() not in {"connection", "transfer-encoding"}]
        if verb != "HEAD":
            kept = [(n, v) for n, v in kept if n.lower() != "content-length"] + [("Content-Length", str(len(content)))]
        return answer.status, kept, content
    finally:
        connection.close()
