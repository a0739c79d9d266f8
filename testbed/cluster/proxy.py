"""A recording proxy between clients and brokers: requests by broker, and network faults.

One port per broker, in front of a listener whose advertised address is that port; so a client that starts here
never learns another address. Invariants: bytes pass unchanged in every mode but `NO_BROKERS`; a request is on record
before it is passed on; `lost` counts the dropped requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeVar

from testbed.cluster.errors import BadSpec, ClusterError
from testbed.cluster.requests import (
    DESCRIBE_CLUSTER,
    METADATA,
    RecordedRequest,
    RequestHeader,
    read_header,
    record,
    without_brokers,
)
from testbed.cluster.settings import ProxyRoute
from testbed.cluster.spec import PASS, ConnectionFault, ConnectionFaultKind

T = TypeVar("T")

# Kafka's own socket.request.max.bytes.
_LONGEST_REQUEST_BYTES = 100 * 1024 * 1024
_LONGEST_REWRITE_BYTES = 16 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_KEPT = 100_000
_MOST_AWAITED = 1_000
_CALL_TIMEOUT_S = 10.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class _Lane:
    """One broker's way through the proxy; touched by the proxy's own thread alone."""

    broker_id: int
    route: ProxyRoute
    fault: ConnectionFault = PASS
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    server: asyncio.Server | None = None
    connections: set[asyncio.Task[None]] = field(default_factory=set)
    writers: set[asyncio.StreamWriter] = field(default_factory=set)


class RecordingProxy:
    """Passes and records the bytes between clients and brokers, and injects faults. Safe to use from any thread."""

    def __init__(self, routes: Mapping[int, ProxyRoute], *, kept: int = _KEPT) -> None:
        self._lanes = {broker_id: _Lane(broker_id, route) for broker_id, route in sorted(routes.items())}
        self._records: deque[RecordedRequest] = deque(maxlen=kept)
        self._count = 0
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recording-proxy", daemon=True)

    def start(self) -> None:
        """Listen on every route. Raises ClusterError when a port is taken."""
        self._thread.start()
        try:
            self._call(self._open_all())
        except OSError as error:
            self.stop()
            raise ClusterError(
                "The recording proxy cannot listen", why=str(error), todo="Start the cluster again."
            ) from error

    def stop(self) -> None:
        """End all connections and stop listening; fine when it is stopped already."""
        if self._loop.is_closed():
            return
        self._call(self._close_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_TIMEOUT_S)
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def count(self) -> int:
        """How many requests have passed; a mark for `records(since=…)`."""
        return self._count

    @property
    def lost(self) -> int:
        """How many of the oldest requests are no longer on record."""
        with self._lock:
            return self._count - len(self._records)

    def records(self, *, since: int = 0, client_id: str | None = None) -> tuple[RecordedRequest, ...]:
        """Requests on record after the mark, oldest first; of one client id when it is given."""
        with self._lock:
            kept = tuple(self._records)
        return tuple(one for one in kept if one.number > since and client_id in (None, one.client_id))

    def inject(self, fault: ConnectionFault, broker_id: int | None = None) -> None:
        """Replace the fault on one broker's connections, or on all. Raises BadSpec for an unknown broker."""
        if broker_id is not None and broker_id not in self._lanes:
            raise BadSpec(f"The proxy has no broker {broker_id}", why=f"its brokers are {sorted(self._lanes)}")
        lanes = self._lanes.values() if broker_id is None else (self._lanes[broker_id],)
        for lane in lanes:
            self._call(self._put(lane, fault))

    def heal(self) -> None:
        """Lift every fault; what a blackhole held back passes now."""
        self.inject(PASS)

    def _call(self, work: Coroutine[None, None, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_TIMEOUT_S)

    async def _open_all(self) -> None:
        for lane in self._lanes.values():
            await self._open(lane)

    async def _open(self, lane: _Lane) -> None:
        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # A task of our own: the one asyncio would make reports its cancellation as an error.
            task = asyncio.ensure_future(self._serve(lane, reader, writer))
            lane.connections.add(task)
            task.add_done_callback(lane.connections.discard)

        lane.server = await asyncio.start_server(serve, "127.0.0.1", lane.route.listen_port)

    async def _close_all(self) -> None:
        for lane in self._lanes.values():
            await self._put(lane, ConnectionFault(ConnectionFaultKind.REFUSE))
            running = tuple(lane.connections)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _put(self, lane: _Lane, fault: ConnectionFault) -> None:
        lane.fault = fault
        lane.changed.set()
        lane.changed = asyncio.Event()
        if fault.kind in (ConnectionFaultKind.RESET, ConnectionFaultKind.REFUSE):
            for writer in tuple(lane.writers):
                _reset(writer)
        if fault.kind is ConnectionFaultKind.REFUSE:
            if lane.server is not None:
                lane.server.close()
                lane.server = None
        elif lane.server is None:
            await self._open(lane)

    async def _serve(self, lane: _Lane, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lane.writers.add(writer)
        broker_writer: asyncio.StreamWriter | None = None
        try:
            await _admitted(lane, answers=False)
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", lane.route.broker_port)
            lane.writers.add(broker_writer)
            awaited: dict[int, RequestHeader] = {}
            ways = (
                asyncio.ensure_future(self._pass_requests(lane, reader, broker_writer, awaited)),
                asyncio.ensure_future(_pass_answers(lane, broker_reader, writer, awaited)),
            )
            try:
                # Either end closing ends both ways.
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            _reset(writer)
        finally:
            for one in (writer, broker_writer):
                if one is not None:
                    lane.writers.discard(one)
                    one.close()

    async def _pass_requests(
        self, lane: _Lane, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: dict[int, RequestHeader]
    ) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                prefix = await reader.readexactly(4)
                size = int.from_bytes(prefix, "big", signed=True)
                if not 0 <= size <= _LONGEST_REQUEST_BYTES:
                    return
                frame = await reader.readexactly(size)
                header = read_header(frame)
                if header is not None:
                    self._note(lane, header, frame)
                    if header.api_key in (METADATA, DESCRIBE_CLUSTER) and len(awaited) < _MOST_AWAITED:
                        awaited[header.correlation_id] = header
                await _admitted(lane, answers=False)
                writer.write(prefix + frame)
                await writer.drain()

    def _note(self, lane: _Lane, header: RequestHeader, frame: bytes) -> None:
        with self._lock:
            self._count += 1
            self._records.append(record(self._count, lane.broker_id, header, frame))


async def _pass_answers(
    lane: _Lane, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: dict[int, RequestHeader]
) -> None:
    with contextlib.suppress(OSError, EOFError):
        while True:
            start = await reader.readexactly(8)
            size = int.from_bytes(start[:4], "big", signed=True)
            header = awaited.pop(int.from_bytes(start[4:], "big", signed=True), None)
            await _admitted(lane, answers=True)
            rewritten = lane.fault.kind is ConnectionFaultKind.NO_BROKERS and header is not None
            if rewritten and header is not None and size <= _LONGEST_REWRITE_BYTES:
                whole = start[4:] + await reader.readexactly(size - 4)
                emptied = without_brokers(header.api_key, header.api_version, whole)
                writer.write(len(emptied).to_bytes(4, "big") + emptied)
            else:
                writer.write(start)
                await _copy(reader, writer, size - 4)
            await writer.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int) -> None:
    left = size
    while left > 0:
        part = await reader.read(min(left, _CHUNK_BYTES))
        if not part:
            raise EOFError
        writer.write(part)
        await writer.drain()
        left -= len(part)


async def _admitted(lane: _Lane, *, answers: bool) -> None:
    """Return when the fault lets a frame of this direction pass. Raises ConnectionResetError when it never does."""
    while True:
        match lane.fault.kind:
            case ConnectionFaultKind.PASS | ConnectionFaultKind.NO_BROKERS:
                return
            case ConnectionFaultKind.DELAY:
                if not answers:
                    await asyncio.sleep(lane.fault.delay_ms / 1000)
                return
            case ConnectionFaultKind.MUTE if not answers:
                return
            case ConnectionFaultKind.RESET | ConnectionFaultKind.REFUSE:
                raise ConnectionResetError
            case _:
                await lane.changed.wait()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN, as a crashed peer or a firewall does."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()
