"""A proxy that also keeps what reassignment requests say, partition by partition: the other side of the journal.

It can cut single requests, or lose their answers, by API, broker and client; and tell of each reassignment request
before it is passed on, so that what is set by then can be looked up.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka.protocol.admin import AlterPartitionReassignmentsRequest

from assignors.problem import TopicPartition
from testbed.cluster.proxy import RecordingProxy
from testbed.cluster.requests import RequestHeader
from testbed.cluster.settings import ProxyRoute
from testbed.cluster.spec import ConnectionFault, ConnectionFaultKind

METADATA, DESCRIBE_CONFIGS, ALTER_CONFIGS, LIST_REASSIGNMENTS = 3, 32, 44, 46
_ALTER = 45
_ANSWERED_S = 0.3
"""So long after its answer was lost a connection is closed."""


class Started(NamedTuple):
    """One line of a request that passed."""

    at_s: float
    client_id: str | None
    id: TopicPartition
    target: tuple[int, ...] | None
    """None cancels."""


@dataclass
class Cut:
    """What does not get through."""

    apis: frozenset[int]
    brokers: frozenset[int]
    client_id: str
    """Begins so."""
    done: bool
    """True: the broker gets the request, and its answer is lost. False: the request never arrives."""
    times: int | None = None
    """So often; None: until it is healed."""
    hit: int = 0

    def takes(self, broker: int, header: RequestHeader) -> bool:
        """Whether it is for this request; counted then."""
        over = self.times is not None and self.hit >= self.times
        named = (header.client_id or "").startswith(self.client_id)
        if over or not named or broker not in self.brokers or header.api_key not in self.apis:
            return False
        self.hit += 1
        return True


class _Line:
    """A connection's own view of its lane, with a fault of its own once a request of it was cut."""

    def __init__(self, lane: Any) -> None:
        self._lane = lane
        self._own: ConnectionFault | None = None
        self._changed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lane, name)

    @property
    def fault(self) -> ConnectionFault:
        return self._lane.fault if self._own is None else self._own  # type: ignore[no-any-return]

    @property
    def changed(self) -> asyncio.Event:
        return self._lane.changed if self._own is None else self._changed  # type: ignore[no-any-return]

    def cut(self, *, done: bool) -> None:
        if not done:
            self._own = ConnectionFault(ConnectionFaultKind.RESET)
            return
        self._own = ConnectionFault(ConnectionFaultKind.MUTE)
        asyncio.get_running_loop().call_later(_ANSWERED_S, self._close)

    def _close(self) -> None:
        self._own = ConnectionFault(ConnectionFaultKind.RESET)
        self._changed.set()


class WatchingProxy(RecordingProxy):
    """Keeps every line of every reassignment request."""

    def __init__(self, routes: Mapping[int, ProxyRoute]) -> None:
        super().__init__(routes)
        self._kept: list[Started] = []
        self._keeping = threading.Lock()
        self._cuts: list[Cut] = []
        self.before_alter: Callable[[Sequence[Started]], None] | None = None
        """Told of the lines of each reassignment request, which is held meanwhile, as all else is."""

    def started(self, client_id: str, topics: frozenset[str], *, since_s: float = 0.0) -> list[Started]:
        """Lines of clients whose id begins so about those topics, in the order in which they passed."""
        with self._keeping:
            kept = list(self._kept)
        mine = (row for row in kept if (row.client_id or "").startswith(client_id) and row.id.topic in topics)
        return [row for row in mine if row.at_s >= since_s]

    def cut(self, cut: Cut) -> Cut:
        """From now on, until it is healed."""
        with self._keeping:
            self._cuts.append(cut)
        return cut

    def heal(self) -> None:
        """Lift every fault and every cut."""
        with self._keeping:
            self._cuts.clear()
        super().heal()

    async def _serve(self, lane: Any, reader: Any, writer: Any) -> None:
        await super()._serve(_Line(lane), reader, writer)  # type: ignore[arg-type]

    def _note(self, lane: Any, header: RequestHeader, frame: bytes) -> None:
        super()._note(lane, header, frame)
        with self._keeping:
            cut = next((cut for cut in self._cuts if cut.takes(lane.broker_id, header)), None)
        if cut is not None:
            lane.cut(done=cut.done)
        if header.api_key == _ALTER:
            self._keep(header, frame)

    def _keep(self, header: RequestHeader, frame: bytes) -> None:
        request = AlterPartitionReassignmentsRequest.decode(frame, version=header.api_version, header=True)
        now = time.monotonic()
        rows = [
            Started(
                now,
                header.client_id,
                TopicPartition(topic.name, row.partition_index),
                None if row.replicas is None else tuple(row.replicas),
            )
            for topic in request.topics
            for row in topic.partitions
        ]
        with self._keeping:
            self._kept.extend(rows)
        if self.before_alter is not None:
            self.before_alter(rows)
