"""A member of a classic group made of bare requests: it stores whatever bytes it is given, and always leaves.

Session time-out 6 s, the broker's minimum: that is how long a member can outlive a test that is killed.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Self

from kafka.protocol.consumer import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from agent.wire.connection import BrokerConnection, open_connection
from agent.wire.failure import CallFailed, Deadline
from agent.wire.protocol import FIND_COORDINATOR, ApiCall, error_name
from agent.wire.settings import BrokerAddress, wire_settings

JOIN_GROUP = ApiCall(JoinGroupRequest, JoinGroupResponse)
SYNC_GROUP = ApiCall(SyncGroupRequest, SyncGroupResponse)
HEARTBEAT = ApiCall(HeartbeatRequest, HeartbeatResponse)
LEAVE_GROUP = ApiCall(LeaveGroupRequest, LeaveGroupResponse)

SESSION_TIMEOUT_MS = 6_000
_HEARTBEAT_S = 1.5
_PATIENCE_MS = 30_000
"""How long an answer may take; on a loaded machine a broker that is well may take many seconds."""
_MOVING = {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}


class RawMember:
    """The only member of its group; join it as a context manager. It heartbeats until it leaves."""

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        *,
        metadata: bytes,
        assignment: bytes = b"",
        protocol: str = "range",
        client_id: str = "raw-member",
        join_timeout_ms: int = 10_000,
    ) -> None:
        self.group = group
        self.metadata = metadata
        self.assignment = assignment
        self.member_id = ""
        self.joined = False
        """False after a join that the coordinator did not answer; the member is in the group all the same."""
        self._protocol = protocol
        self._join_timeout_ms = join_timeout_ms
        self._settings = wire_settings({"bootstrap_servers": bootstrap_servers.split(","), "client_id": client_id})
        self._coordinator: BrokerAddress | None = None
        self._generation = -1
        self._ended = threading.Event()
        self._heart: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._coordinator = self._find_coordinator()
        with self._connection() as connection:
            self.member_id = self._ask(connection, JOIN_GROUP, self._join_message(), 4, _PATIENCE_MS).member_id
        try:
            self._join()
        except CallFailed:
            self.joined = False
        else:
            self.joined = True
            self._heart = threading.Thread(target=self._beat, daemon=True, name=f"heart of {self.group}")
            self._heart.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._heart is not None:
            self._heart.join()
        member = LEAVE_GROUP.request.MemberIdentity(member_id=self.member_id)
        message = LEAVE_GROUP.request(group_id=self.group, members=[member])
        with self._connection() as connection:
            self._ask(connection, LEAVE_GROUP, message, 3, _PATIENCE_MS)

    def _join(self) -> None:
        with self._connection() as connection:
            joined = self._ask(connection, JOIN_GROUP, self._join_message(), 4, self._join_timeout_ms)
            assert error_name(joined.error_code) is None, error_name(joined.error_code)
            self._generation = joined.generation_id
            mine = SYNC_GROUP.request.SyncGroupRequestAssignment(member_id=self.member_id, assignment=self.assignment)
            message = SYNC_GROUP.request(
                group_id=self.group, generation_id=self._generation, member_id=self.member_id, assignments=[mine]
            )
            synced = self._ask(connection, SYNC_GROUP, message, 3, _PATIENCE_MS)
            assert error_name(synced.error_code) is None, error_name(synced.error_code)

    def _join_message(self) -> Any:
        protocol = JOIN_GROUP.request.JoinGroupRequestProtocol(name=self._protocol, metadata=self.metadata)
        return JOIN_GROUP.request(
            group_id=self.group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[protocol],
        )

    def _beat(self) -> None:
        with self._connection() as connection:
            while not self._ended.wait(_HEARTBEAT_S):
                message = HEARTBEAT.request(
                    group_id=self.group, generation_id=self._generation, member_id=self.member_id
                )
                self._ask(connection, HEARTBEAT, message, 3, _PATIENCE_MS)

    def _find_coordinator(self) -> BrokerAddress:
        deadline = Deadline.after_ms(30_000)
        while True:
            connection = open_connection(self._settings.bootstrap[0], self._settings, deadline)
            message = FIND_COORDINATOR.request(key_type=0, coordinator_keys=[self.group])
            row = connection.call(FIND_COORDINATOR, message, deadline, version=4).coordinators[0]
            connection.close()
            name = error_name(row.error_code)
            if name is None:
                return BrokerAddress(row.host, row.port)
            assert name in _MOVING, name
            self._ended.wait(0.2)

    def _connection(self) -> _Held:
        assert self._coordinator is not None
        return _Held(open_connection(self._coordinator, self._settings, Deadline.after_ms(_PATIENCE_MS)))

    def _ask(self, connection: BrokerConnection, api: ApiCall, message: Any, version: int, timeout_ms: int) -> Any:
        """The answer, asked again while the coordinator is loading or moving."""
        deadline = Deadline.after_ms(timeout_ms)
        while True:
            answer = connection.call(api, message, deadline, version=version)
            if error_name(answer.error_code) not in _MOVING or deadline.over:
                return answer
            self._ended.wait(0.2)


class _Held:
    """Closes its connection at the end."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection

    def __enter__(self) -> BrokerConnection:
        return self._connection

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._connection.close()
