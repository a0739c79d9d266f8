"""Consumer groups of librdkafka members, one thread and one `client.rack` each.

Invariant: a member belongs to its thread; other threads read only its notes and request its closing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from testbed.demo.workload.clientlog import LOG
from testbed.demo.workload.errors import WorkloadError
from testbed.demo.workload.plan import GroupProtocol, LibrdkafkaGroupPlan

_POLL_S = 0.5
_BATCH = 500
_CLOSE_WITHIN_S = 15.0
_MOST_EVENTS = 1_000


class RebalanceEvent(NamedTuple):
    """What a member was given in a rebalance."""

    at_ms: int
    member: str
    kind: str
    """`assigned`, `revoked` or `lost`."""
    partitions: tuple[int, ...]


class LibrdkafkaMember:
    """One consumer that reads and forgets."""

    def __init__(self, bootstrap_servers: str, plan: LibrdkafkaGroupPlan, name: str, rack: str | None) -> None:
        self.name = name
        self.rack = rack
        self._plan = plan
        self._consumer = Consumer(_settings(bootstrap_servers, plan, name, rack), logger=LOG)
        self._held: frozenset[int] = frozenset()
        self._events: deque[RebalanceEvent] = deque(maxlen=_MOST_EVENTS)
        self._records = 0
        self._failure: str | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"member-{name}", daemon=True)
        self._thread.start()

    @property
    def partitions(self) -> frozenset[int]:
        """Partitions of the group's topic that it holds now."""
        return self._held

    @property
    def events(self) -> tuple[RebalanceEvent, ...]:
        """What it was given, oldest first."""
        return tuple(self._events)

    @property
    def records(self) -> int:
        """Records read so far."""
        return self._records

    @property
    def failure(self) -> str | None:
        """The last error a poll gave; None when there was none."""
        return self._failure

    def leave(self) -> None:
        """Ask the member to leave its group; `join` waits for it."""
        self._ending.set()

    def join(self) -> None:
        """Wait until it has left. Raises WorkloadError when it hangs."""
        self._thread.join(_CLOSE_WITHIN_S)
        if self._thread.is_alive():
            raise WorkloadError(f"Member {self.name} did not leave within {_CLOSE_WITHIN_S:.0f} s")

    def _run(self) -> None:
        self._consumer.subscribe(
            [self._plan.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        try:
            while not self._ending.is_set():
                self._poll()
        finally:
            self._consumer.close()

    def _poll(self) -> None:
        try:
            messages = self._consumer.consume(_BATCH, _POLL_S)
        except KafkaException as failed:
            self._failure = str(failed)
            return
        for message in messages:
            if (error := message.error()) is not None:
                self._failure = str(error)
            else:
                self._records += 1

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._note("assigned", partitions, self._held | {one.partition for one in partitions})

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._note("revoked", partitions, self._held - {one.partition for one in partitions})

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._note("lost", partitions, self._held - {one.partition for one in partitions})

    def _note(self, kind: str, partitions: list[TopicPartition], held: frozenset[int]) -> None:
        self._held = held
        numbers = tuple(sorted(one.partition for one in partitions))
        self._events.append(RebalanceEvent(int(time.time() * 1000), self.name, kind, numbers))


class LibrdkafkaGroup:
    """A group and its members; members may come and go."""

    def __init__(self, bootstrap_servers: str, plan: LibrdkafkaGroupPlan) -> None:
        self.plan = plan
        self._bootstrap_servers = bootstrap_servers
        self._members: dict[str, LibrdkafkaMember] = {}
        self._counter = 0
        for rack in plan.racks:
            self.add(rack)

    @property
    def members(self) -> tuple[LibrdkafkaMember, ...]:
        """Members by name."""
        return tuple(self._members[name] for name in sorted(self._members))

    @property
    def partitions_held(self) -> int:
        """Partitions that some member holds."""
        return len(frozenset[int]().union(*(member.partitions for member in self._members.values())))

    def add(self, rack: str | None) -> LibrdkafkaMember:
        """One more member."""
        self._counter += 1
        name = f"{self.plan.group}-{self._counter}"
        self._members[name] = LibrdkafkaMember(self._bootstrap_servers, self.plan, name, rack)
        return self._members[name]

    def remove(self, name: str) -> None:
        """Let a member leave, and wait for it."""
        member = self._members.pop(name)
        member.leave()
        member.join()

    def restart(self, plan: LibrdkafkaGroupPlan) -> None:
        """Restart one member after the other with the settings of another plan for this group."""
        self.plan = plan
        for member in self.members:
            self.remove(member.name)
            self.add(member.rack)

    def close(self) -> None:
        """Let all leave side by side."""
        members, self._members = list(self._members.values()), {}
        leave_all(members)


def leave_all(members: Sequence[LibrdkafkaMember]) -> None:
    """Let members leave side by side, and wait for all."""
    for member in members:
        member.leave()
    for member in members:
        member.join()


def _settings(bootstrap_servers: str, plan: LibrdkafkaGroupPlan, name: str, rack: str | None) -> dict[str, str | int]:
    settings: dict[str, str | int] = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": plan.group,
        "client.id": name,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 2_000,
        # Larger and rarer answers: the load is small, and the brokers share the machine.
        "fetch.min.bytes": 4_096,
        "fetch.wait.max.ms": 500,
        "queued.max.messages.kbytes": 1_024,
    }
    if plan.protocol is GroupProtocol.CONSUMER:
        settings["group.protocol"] = "consumer"
        if plan.remote_assignor is not None:
            settings["group.remote.assignor"] = plan.remote_assignor
    else:
        settings |= {"partition.assignment.strategy": plan.protocol.value, "session.timeout.ms": 10_000}
    if rack is not None:
        settings["client.rack"] = rack
    return settings
