"""A proxy that also keeps what reassignment requests say, partition by partition: the other side of the journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka.protocol.admin import AlterPartitionReassignmentsRequest

from agent.cluster.proxy import RecordingProxy
from agent.cluster.requests import Header
from agent.cluster.settings import Route
from assignors.problem import TopicPartition

_ALTER = 45


class Started(NamedTuple):
    """One line of a request that passed."""

    at_s: float
    client_id: str | None
    id: TopicPartition
    target: tuple[int, ...] | None
    """None cancels."""


class WatchingProxy(RecordingProxy):
    """Keeps every line of every reassignment request."""

    def __init__(self, routes: Mapping[int, Route]) -> None:
        super().__init__(routes)
        self._kept: list[Started] = []
        self._keeping = threading.Lock()

    def started(self, client_id: str, topics: frozenset[str]) -> list[Started]:
        """Lines of clients whose id begins so about those topics, in the order in which they passed."""
        with self._keeping:
            kept = list(self._kept)
        return [row for row in kept if (row.client_id or "").startswith(client_id) and row.id.topic in topics]

    def _note(self, lane: Any, header: Header, frame: bytes) -> None:
        super()._note(lane, header, frame)
        if header.api_key != _ALTER:
            return
        request = AlterPartitionReassignmentsRequest.decode(frame, version=header.api_version, header=True)
        now = time.monotonic()
        with self._keeping:
            for topic in request.topics:
                for row in topic.partitions:
                    target = None if row.replicas is None else tuple(row.replicas)
                    self._kept.append(
                        Started(now, header.client_id, TopicPartition(topic.name, row.partition_index), target)
                    )
