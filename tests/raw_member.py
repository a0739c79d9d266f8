"""A member of a classic group made of bare requests: it stores whatever bytes it is given, and always leaves.

Session time-out 6 s, the broker's minimum: that is how long a member can outlive a test that is killed.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing
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

from agent.wire.connection import open_connection
from agent.wire.failure import CallFailed, Deadline
from agent.wire.protocol import DESCRIBE_GROUPS, FIND_COORDINATOR, ApiCall, BrokerAddress, error_name, wire_settings

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
        self.join()
        return self

    def join(self) -> None:
        """Join, unless the group has the member.

        A coordinator that moves forgets a join that it has not answered: its group is empty then.
        """
        if self.joined or (self.member_id and self._is_member()):
            return
        self.member_id = ""
        self.member_id = self._ask(JOIN_GROUP, self._join_message(), 4, _PATIENCE_MS).member_id
        deadline = Deadline.after_ms(_PATIENCE_MS)
        while not self.joined:
            try:
                self._join()
                self.joined = True
            except CallFailed:
                if self._is_member():
                    return
                assert not deadline.over, f"the coordinator of {self.group} does not have the member"
        self._heart = threading.Thread(target=self._beat, daemon=True, name=f"heart of {self.group}")
        self._heart.start()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._heart is not None:
            self._heart.join()
        member = LEAVE_GROUP.request.MemberIdentity(member_id=self.member_id)
        message = LEAVE_GROUP.request(group_id=self.group, members=[member])
        self._ask(LEAVE_GROUP, message, 3, _PATIENCE_MS)

    def _join(self) -> None:
        joined = self._ask(JOIN_GROUP, self._join_message(), 4, self._join_timeout_ms)
        assert error_name(joined.error_code) is None, error_name(joined.error_code)
        self._generation = joined.generation_id
        mine = SYNC_GROUP.request.SyncGroupRequestAssignment(member_id=self.member_id, assignment=self.assignment)
        message = SYNC_GROUP.request(
            group_id=self.group, generation_id=self._generation, member_id=self.member_id, assignments=[mine]
        )
        synced = self._ask(SYNC_GROUP, message, 3, _PATIENCE_MS)
        assert error_name(synced.error_code) is None, error_name(synced.error_code)

    def _is_member(self) -> bool:
        """True if the coordinator has the member; a join that ended on its way, on a loaded machine, is sent again."""
        (group,) = self._ask(DESCRIBE_GROUPS, DESCRIBE_GROUPS.request(groups=[self.group]), 5, _PATIENCE_MS).groups
        return self.member_id in {member.member_id for member in group.members}

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
        while not self._ended.wait(_HEARTBEAT_S):
            message = HEARTBEAT.request(group_id=self.group, generation_id=self._generation, member_id=self.member_id)
            self._ask(HEARTBEAT, message, 3, _PATIENCE_MS)

    def _find_coordinator(self, deadline: Deadline) -> BrokerAddress:
        message = FIND_COORDINATOR.request(key_type=0, coordinator_keys=[self.group])
        while True:
            with closing(open_connection(self._settings.bootstrap[0], self._settings, deadline)) as connection:
                row = connection.call(FIND_COORDINATOR, message, deadline, version=4).coordinators[0]
            name = error_name(row.error_code)
            if name is None:
                return BrokerAddress(row.host, row.port)
            assert name in _MOVING, name
            time.sleep(0.2)

    def _ask(self, api: ApiCall, message: Any, version: int, timeout_ms: int) -> Any:
        """The answer of the coordinator, which is sought again while it is loading or moving.

        A broker that is fenced for a moment, as on a loaded machine, loses its groups to another one for minutes.
        """
        deadline = Deadline.after_ms(timeout_ms)
        while True:
            if self._coordinator is None:
                self._coordinator = self._find_coordinator(deadline)
            with closing(open_connection(self._coordinator, self._settings, deadline)) as connection:
                answer = connection.call(api, message, deadline, version=version)
            error = answer.groups[0].error_code if api is DESCRIBE_GROUPS else answer.error_code
            if error_name(error) not in _MOVING or deadline.over:
                return answer
            self._coordinator = None
            time.sleep(0.2)
