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

from agent.journal.triggers import TriggerEffect, TriggerPath
from agent.values.clock import elapsed_s
from agent.values.kafka import STABLE
from agent.values.observation import GapCause, RawClassicGroup
from agent.wire.failure import CallFailed
from agent.wire.membership_calls import JoinRequest, JoinResponse

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
    """A connection of its own to the group's coordinator (`agent.wire.membership_calls.CoordinatorConnection`)."""

    @property
    def fingerprint(self) -> str:
        """Gives the broker's release."""

    def describe(self, deadline_ms: int) -> RawClassicGroup:
        """The group now. Raises CallFailed."""

    def join(self, ask: JoinRequest, member_id: str, deadline_ms: int) -> JoinResponse:
        """Ask to be let in. Raises CallFailed."""

    def leave(self, member_id: str, reason: str, deadline_ms: int) -> str | None:
        """Take a member out. Raises CallFailed."""

    def close(self) -> None:
        """Hang up."""


class ProbeResult(NamedTuple):
    """Result of a probe."""

    effect: TriggerEffect
    path: TriggerPath | None
    """The way that worked, or the last one tried; None when nothing was asked."""
    sentence: str


class StaleGroupError(Exception):
    """It is not sure any more that the group is as it was when it was decided to ask it."""

    def __init__(self, why: str, group: RawClassicGroup) -> None:
        super().__init__(why)
        self.group = group
        """As it was described then."""


class RebalanceProbe:
    """One probe of one group; a context manager, which leaves whatever happens.

    ``open_line`` gives a new line to the group's coordinator; ``same`` is true for a description if the group is
    still as it was meant (None) or why not; ``on_step`` is called after each step, for records and drills.
    """

    def __init__(
        self,
        open_line: Callable[[], CoordinatorPort],
        ask: JoinRequest,
        same: Callable[[RawClassicGroup], str | None],
        *,
        on_step: Callable[[str], None] = lambda _step: None,
    ) -> None:
        self._open_line = open_line
        self._ask = ask
        self._same = same
        self._on_step = on_step
        self._line: CoordinatorPort | None = None
        self._owed: dict[str, float] = {}
        """Member ids that are to be given back -> when the coordinator forgets them by itself."""
        self._parked: list[_Parked] = []
        self._before: frozenset[tuple[str, bytes]] = frozenset()
        """What identified the generation right before the first join."""
        self.asked = False
        """True once a join may have reached the coordinator."""

    def run(self, first: TriggerPath) -> ProbeResult:
        """Ask in that way, and in the other one where the group stayed stable. Raises CallFailed, StaleGroupError."""
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
        """Give back every id that is still owed, then hang up."""
        for member_id in tuple(self._owed):
            self._give_back(member_id)
        for parked in self._parked:
            parked.close()
        if self._line is not None:
            self._line.close()

    # --- the two ways -------------------------------------------------------------------------------------------

    def _pending_leave(self) -> ProbeResult:
        group, answer = self._first_half()
        if not answer.member_id:
            return _refused(answer, TriggerPath.PENDING_LEAVE)
        left = self._give_back(answer.member_id)
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
        parked = _Parked(self._open_line(), self._ask, answer.member_id)
        self._parked.append(parked)
        parked.start()
        joined = self._await_joined(answer.member_id, parked)
        self._on_step("joined")
        self._give_back(answer.member_id)
        self._on_step("left")
        if parked.answer_within(CALL_MS) is None and parked.let_in:
            # The group assembled before the leave: no SyncGroup, and out again at once.
            self._owed[answer.member_id] = elapsed_s() + SESSION_TIMEOUT_MS / 1000
            self._give_back(answer.member_id)
            return ProbeResult(TriggerEffect.REBALANCING, TriggerPath.PHANTOM_JOIN, _ASSEMBLED)
        if not joined and parked.error not in (None, _GONE):
            return _refused(JoinResponse(parked.error, ""), TriggerPath.PHANTOM_JOIN)
        return self._seen(TriggerPath.PHANTOM_JOIN, group)

    def _first_half(self) -> tuple[RawClassicGroup, JoinResponse]:
        """The group right before, and the coordinator's answer to a member without an id."""
        line = self._talk()
        began = elapsed_s()
        group = line.describe(CALL_MS)
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
        answer = line.join(self._ask, "", CALL_MS)
        if answer.member_id:
            self._owed[answer.member_id] = elapsed_s() + SESSION_TIMEOUT_MS / 1000
        if answer.error not in (_GIVEN, None):
            return group, JoinResponse(answer.error, "")
        self._on_step("pending")
        return group, answer

    def _await_joined(self, member_id: str, parked: _Parked) -> bool:
        """Until the group rebalances with the probe in it: a leave that overtakes the join would do nothing."""
        deadline = elapsed_s() + JOINED_WITHIN_MS / 1000
        while not parked.done and elapsed_s() < deadline:
            group = self._talk().describe(CALL_MS)
            if group.state != STABLE and any(member.member_id == member_id for member in group.members):
                return True
            time.sleep(_JOINED_EVERY_S)
        return parked.let_in

    def _seen(self, path: TriggerPath, before: RawClassicGroup) -> ProbeResult:
        """Whether the group rebalances now, or has already done so."""
        deadline = elapsed_s() + SEEN_WITHIN_MS / 1000
        while True:
            try:
                group = self._talk().describe(CALL_MS)
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

    # --- lines --------------------------------------------------------------------------------------------------

    def _talk(self) -> CoordinatorPort:
        if self._line is None:
            self._line = self._open_line()
        return self._line

    def _give_back(self, member_id: str) -> bool:
        """Leave, repeatedly until the coordinator confirms it or has dropped the id; True when it confirmed.

        Leaving may be sent twice: a member that is gone already is only unknown.
        """
        forgotten_at = self._owed.get(member_id, 0.0)
        while True:
            try:
                error = self._talk().leave(member_id, self._ask.reason, CALL_MS)
            except CallFailed as failure:
                self._hang_up()
                if failure.cause is GapCause.NOT_ALLOWED:
                    return False
            else:
                if error in (None, _GONE):
                    self._owed.pop(member_id, None)
                    return True
                # The coordinator moved: the next line is opened to where it is now.
                self._hang_up()
            if elapsed_s() >= forgotten_at:
                self._owed.pop(member_id, None)
                return False
            time.sleep(_AGAIN_S)

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


class _Parked(threading.Thread):
    """A join that the coordinator answers when it pleases."""

    def __init__(self, line: CoordinatorPort, ask: JoinRequest, member_id: str) -> None:
        super().__init__(name="parked join", daemon=True)
        self._line = line
        self._ask = ask
        self._member_id = member_id
        self._answer: JoinResponse | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            self._answer = self._line.join(self._ask, self._member_id, SESSION_TIMEOUT_MS + CALL_MS)
        except CallFailed:
            self._answer = None
        finally:
            self._ended.set()

    @property
    def done(self) -> bool:
        """True once it was answered, or the line broke."""
        return self._ended.is_set()

    @property
    def error(self) -> str | None:
        """The coordinator's error."""
        return None if self._answer is None else self._answer.error

    @property
    def let_in(self) -> bool:
        """True when it became a member of a generation."""
        return self._answer is not None and self._answer.error is None

    def answer_within(self, duration_ms: int) -> str | None:
        """The error that it was answered, waited for so long."""
        self._ended.wait(duration_ms / 1000)
        return self.error

    def close(self) -> None:
        """Hang up."""
        self._line.close()


def _refused(answer: JoinResponse, path: TriggerPath) -> ProbeResult:
    return ProbeResult(TriggerEffect.REFUSED, path, f"the coordinator refused the join: {answer.error}")


def _member_metadata(group: RawClassicGroup) -> frozenset[tuple[str, bytes]]:
    """What distinguishes one generation from the next: members name their former one in their subscriptions."""
    return frozenset((member.member_id, member.metadata) for member in group.members)
