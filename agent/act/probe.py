"""Probe: makes a classic group rebalance once without being a member.

*Pending leave*: a JoinGroup that only returns a member id, then LeaveGroup with it; a Kafka 4 coordinator rebalances
the present members. *Phantom join*, for other coordinators: a full JoinGroup on a connection of its own, and LeaveGroup
before the group has assembled. The members assemble with the probe if all heartbeat within the two round trips between
join and leave; the answer reports a time that was too long.

Invariants: LeaveGroup is sent on every exit once a member id is known, also after an exception or signal, on a new
connection if needed, until the coordinator answers or the session expires; the coordinator drops a killed probe after
`SESSION_TIMEOUT_MS`. SyncGroup is never sent. JoinGroup is sent at most once, and only within `FRESH_MS` of a
description that showed the group stable and unchanged.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from agent.errors import PROBE_JOIN, thread
from agent.journal.triggers import TriggerEffect, TriggerPath
from agent.values.clock import elapsed_s
from agent.values.kafka import STABLE
from agent.values.observation import GapCause, RawClassicGroup
from agent.wire.admin_client import JoinRequest, JoinResponse
from agent.wire.failure import CallFailed

SESSION_TIMEOUT_MS = 6_000
"""The least that brokers take by default: what a probe that is killed can cost."""
FRESH_MS = 1_000
"""How old the description may be on which a join rests."""
CALL_MS = 3_000
SEEN_WITHIN_MS = 400
"""A coordinator that rebalances has begun to by the time it answers; others stay stable."""
JOINED_WITHIN_MS = 1_500
_LOOK_EVERY_S = 0.05
_JOINED_EVERY_S = 0.002
"""Members of one generation heartbeat nearly together: each moment that a probe stays in a group longer is a risk."""
_AGAIN_S = 0.2
_ASSEMBLED = (
    "triggered by phantom join: the rebalance ended before the extra member left, so the assignor "
    "may have given it partitions; the group rebalances once more without it"
)
_GIVEN = "MEMBER_ID_REQUIRED"
_GONE = "UNKNOWN_MEMBER_ID"


class CoordinatorPort(Protocol):
    """A connection of its own to the group's coordinator (`agent.wire.admin_client.CoordinatorConnection`)."""

    @property
    def fingerprint(self) -> str:
        """Versions of the broker's API keys, which tell its release."""

    def describe(self, deadline_ms: int) -> RawClassicGroup:
        """The group now. Raises CallFailed."""

    def join(self, ask: JoinRequest, member_id: str, deadline_ms: int) -> JoinResponse:
        """Send JoinGroup. Raises CallFailed."""

    def leave(self, member_id: str, reason: str, deadline_ms: int) -> str | None:
        """Send LeaveGroup for a member; the coordinator's error, None without one. Raises CallFailed."""

    def close(self) -> None:
        """Close the connection."""


class ProbeResult(NamedTuple):
    """Result of a probe."""

    effect: TriggerEffect
    path: TriggerPath | None
    """The path that made the group rebalance, or the last one tried; None when no request was sent."""
    sentence: str


class StaleGroupError(Exception):
    """The group differs from the description that the trigger rests on, or may differ."""

    def __init__(self, why: str, group: RawClassicGroup) -> None:
        super().__init__(why)
        self.group = group
        """Its description now."""


class RebalanceProbe:
    """One probe of one group; a context manager, which leaves whatever happens.

    ``connect`` gives a new connection to the group's coordinator; ``same`` is true for a description if the group is
    still as it was meant (None) or why not; ``on_step`` is called after each step, for records and drills.
    """

    def __init__(
        self,
        connect: Callable[[], CoordinatorPort],
        ask: JoinRequest,
        same: Callable[[RawClassicGroup], str | None],
        *,
        on_step: Callable[[str], None] = lambda _step: None,
    ) -> None:
        self._connect = connect
        self._ask = ask
        self._same = same
        self._on_step = on_step
        self._connection: CoordinatorPort | None = None
        self._owed: dict[str, float] = {}
        """Member ids that still need a LeaveGroup -> when the coordinator drops them by itself."""
        self._joins: list[_PendingJoin] = []
        self._before: frozenset[tuple[str, bytes]] = frozenset()
        """What identified the generation right before the first join."""
        self.asked = False
        """True once a JoinGroup may have reached the coordinator."""

    def run(self, first: TriggerPath) -> ProbeResult:
        """Probe by that path, and by the other where the group stayed stable. Raises CallFailed, StaleGroupError."""
        if first is TriggerPath.PHANTOM_JOIN:
            return self._phantom_join()
        probed = self._pending_leave()
        if probed.effect is not TriggerEffect.NOTHING:
            return probed
        try:
            return self._phantom_join()
        except StaleGroupError as stale:
            untouched = stale.group.state == STABLE and _member_metadata(stale.group) == self._before
            effect = TriggerEffect.NOTHING if untouched else TriggerEffect.UNKNOWN
            return ProbeResult(effect, TriggerPath.PENDING_LEAVE, f"{probed.sentence}; no second attempt: {stale}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Send LeaveGroup for every member id that is still owed, then close the connections."""
        for member_id in tuple(self._owed):
            self._leave(member_id)
        for pending in self._joins:
            pending.close()
        if self._connection is not None:
            self._connection.close()

    # --- the two ways -------------------------------------------------------------------------------------------

    def _pending_leave(self) -> ProbeResult:
        group, answer = self._first_half()
        if not answer.member_id:
            return _refused(answer, TriggerPath.PENDING_LEAVE)
        left = self._leave(answer.member_id)
        self._on_step("left")
        if not left:
            return ProbeResult(
                TriggerEffect.UNKNOWN,
                TriggerPath.PENDING_LEAVE,
                "the coordinator did not confirm LeaveGroup for the pending member id; the id expires in 6 s",
            )
        return self._seen(TriggerPath.PENDING_LEAVE, group)

    def _phantom_join(self) -> ProbeResult:
        group, answer = self._first_half()
        if not answer.member_id:
            return _refused(answer, TriggerPath.PHANTOM_JOIN)
        pending = _PendingJoin(self._connect(), self._ask, answer.member_id)
        self._joins.append(pending)
        pending.start()
        joined = self._await_joined(answer.member_id, pending)
        self._on_step("joined")
        self._leave(answer.member_id)
        self._on_step("left")
        if pending.answer_within(CALL_MS) is None and pending.let_in:
            # The group assembled before the leave: no SyncGroup, and out again at once.
            self._owed[answer.member_id] = elapsed_s() + SESSION_TIMEOUT_MS / 1000
            self._leave(answer.member_id)
            return ProbeResult(TriggerEffect.REBALANCING, TriggerPath.PHANTOM_JOIN, _ASSEMBLED)
        if not joined and pending.error not in (None, _GONE):
            return _refused(JoinResponse(pending.error, ""), TriggerPath.PHANTOM_JOIN)
        return self._seen(TriggerPath.PHANTOM_JOIN, group)

    def _first_half(self) -> tuple[RawClassicGroup, JoinResponse]:
        """The group right before, and the coordinator's answer to a member without an id."""
        connection = self._connected()
        began = elapsed_s()
        group = connection.describe(CALL_MS)
        why = self._same(group)
        if why is not None:
            raise StaleGroupError(why, group)
        # From the moment of asking: the answer may be as old as that.
        took_ms = (elapsed_s() - began) * 1000
        if took_ms > FRESH_MS:
            slow = f"the coordinator took {took_ms:.0f} ms to describe the group; the description is too old to join on"
            raise StaleGroupError(slow, group)
        self._on_step("described")
        if not self.asked:
            self._before = _member_metadata(group)
        self.asked = True
        answer = connection.join(self._ask, "", CALL_MS)
        if answer.member_id:
            self._owed[answer.member_id] = elapsed_s() + SESSION_TIMEOUT_MS / 1000
        if answer.error not in (_GIVEN, None):
            return group, JoinResponse(answer.error, "")
        self._on_step("pending")
        return group, answer

    def _await_joined(self, member_id: str, pending: _PendingJoin) -> bool:
        """Until the group rebalances with the probe in it: a leave that overtakes the join would do nothing."""
        deadline = elapsed_s() + JOINED_WITHIN_MS / 1000
        while not pending.done and elapsed_s() < deadline:
            group = self._connected().describe(CALL_MS)
            if group.state != STABLE and any(member.member_id == member_id for member in group.members):
                return True
            time.sleep(_JOINED_EVERY_S)
        return pending.let_in

    def _seen(self, path: TriggerPath, before: RawClassicGroup) -> ProbeResult:
        """Whether the group rebalances now, or has already done so."""
        deadline = elapsed_s() + SEEN_WITHIN_MS / 1000
        while True:
            try:
                group = self._connected().describe(CALL_MS)
            except CallFailed as failure:
                return ProbeResult(
                    TriggerEffect.UNKNOWN, path, f"triggered by {path.value}; its effect is unknown: {failure.detail}"
                )
            if group.state != STABLE:
                return ProbeResult(
                    TriggerEffect.REBALANCING, path, f"triggered by {path.value}: the group is {group.state}"
                )
            if _member_metadata(group) != _member_metadata(before):
                return ProbeResult(
                    TriggerEffect.REBALANCING, path, f"triggered by {path.value}: the group has already rebalanced"
                )
            if elapsed_s() >= deadline:
                return ProbeResult(TriggerEffect.NOTHING, path, f"triggered by {path.value}: the group stayed Stable")
            time.sleep(_LOOK_EVERY_S)

    # --- connections --------------------------------------------------------------------------------------------

    def _connected(self) -> CoordinatorPort:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _leave(self, member_id: str) -> bool:
        """Leave, repeatedly until the coordinator confirms it or has dropped the id; True when it confirmed.

        Leaving may be sent twice: a member that is gone already is only unknown.
        """
        forgotten_at = self._owed.get(member_id, 0.0)
        while True:
            try:
                error = self._connected().leave(member_id, self._ask.reason, CALL_MS)
            except CallFailed as failure:
                self._close_connection()
                if failure.cause is GapCause.NOT_ALLOWED:
                    return False
            else:
                if error in (None, _GONE):
                    self._owed.pop(member_id, None)
                    return True
                # The coordinator moved: the next connection is opened to where it is now.
                self._close_connection()
            if elapsed_s() >= forgotten_at:
                self._owed.pop(member_id, None)
                return False
            time.sleep(_AGAIN_S)

    def _close_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _PendingJoin:
    """A JoinGroup in a thread of its own: the coordinator answers it once the group has assembled."""

    def __init__(self, connection: CoordinatorPort, ask: JoinRequest, member_id: str) -> None:
        self._connection = connection
        self._ask = ask
        self._member_id = member_id
        self._answer: JoinResponse | None = None
        self._ended = threading.Event()
        self._thread = thread(PROBE_JOIN, self._join)

    def start(self) -> None:
        """Send the JoinGroup."""
        self._thread.start()

    def _join(self) -> None:
        try:
            self._answer = self._connection.join(self._ask, self._member_id, SESSION_TIMEOUT_MS + CALL_MS)
        except CallFailed:
            self._answer = None
        finally:
            self._ended.set()

    @property
    def done(self) -> bool:
        """True once the coordinator has answered, or the connection is closed."""
        return self._ended.is_set()

    @property
    def error(self) -> str | None:
        """The error of the coordinator's answer; None without one."""
        return None if self._answer is None else self._answer.error

    @property
    def let_in(self) -> bool:
        """True when the answer makes the probe a member of a generation."""
        return self._answer is not None and self._answer.error is None

    def answer_within(self, duration_ms: int) -> str | None:
        """The error of the answer, after waiting for it at most ``duration_ms``; None without one."""
        self._ended.wait(duration_ms / 1000)
        return self.error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _refused(answer: JoinResponse, path: TriggerPath) -> ProbeResult:
    return ProbeResult(TriggerEffect.REFUSED, path, f"the coordinator refused the join: {answer.error}")


def _member_metadata(group: RawClassicGroup) -> frozenset[tuple[str, bytes]]:
    """What distinguishes one generation from the next: members name their former one in their subscriptions."""
    return frozenset((member.member_id, member.metadata) for member in group.members)
