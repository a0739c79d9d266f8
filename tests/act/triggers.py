"""What tests of triggers share: a journal in memory, proposals by hand, and eyes on a group."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import NamedTuple, Self

from agent.decode.members import decode_subscription
from agent.decode.values import Subscription
from agent.journal.entries import Entry, JournalState, JournalWrite
from agent.values.finding import SubjectId
from agent.values.observation import RawClassicGroup
from agent.values.proposal import (
    Outcome,
    PredictedEffect,
    Proposal,
    ProposalKind,
    ProposalMove,
    ProposalReason,
    ProposalRow,
)
from agent.wire.admin_client import CoordinatorConnection, WireAdminClient
from agent.wire.client import WireClient
from agent.wire.failure import CallFailed

NOW_MS = 1_760_000_000_000
DEADLINE_MS = 10_000


class MemoryJournal:
    """Returns what was appended, as a durable journal does; that a real one is durable is not tested here."""

    def __init__(self) -> None:
        self._view: Mapping[str, Entry] = {}
        self._lock = threading.Lock()
        self._seq = 0
        self.kinds: list[str] = []
        """Of everything that was appended, in order."""
        self.fails: Exception | None = None
        """Raised by the next append, instead of writing."""

    @property
    def epoch(self) -> int:
        return 1

    def view(self) -> JournalState:
        return self._view

    def append(self, *writes: JournalWrite) -> None:
        with self._lock:
            if self.fails is not None:
                failure, self.fails = self.fails, None
                raise failure
            view = dict(self._view)
            for write in writes:
                self._seq += 1
                self.kinds.append(write.kind)
                if write.value is None:
                    view.pop(write.key, None)
                else:
                    now_ms = time.time_ns() // 1_000_000
                    view[write.key] = Entry(write.key, write.kind, write.value, now_ms, 1, self._seq)
            self._view = MappingProxyType(view)


def a_proposal(
    group: str,
    *,
    proposal_id: str = "p-0123456789ab",
    reason: ProposalReason = ProposalReason.REBALANCE_IMPROVES,
    before: tuple[ProposalRow, ...] = (),
    after: tuple[ProposalRow, ...] = (),
    moves: tuple[ProposalMove, ...] = (),
) -> Proposal:
    """A proposal to trigger that group; it moves nothing unless told otherwise."""
    return Proposal(
        id=proposal_id,
        kind=ProposalKind.TRIGGER,
        reason=reason,
        subject=SubjectId("group", group),
        sentence=f"Rebalance {group} once: it brings work home",
        before=before,
        after=after,
        moves=moves,
        predicted=PredictedEffect(moves=len(moves)),
        lower_bound=None,
        optimal=None,
        evidence=(),
        findings=(),
        snapshot_hash="0" * 16,
        created_ms=NOW_MS,
        expires_ms=NOW_MS + 900_000,
    )


def sent(attempt: Callable[[], Outcome], tries: int = 5) -> Outcome:
    """The outcome of the first attempt in time: on a busy machine it may be too late to be sure of a group."""
    outcome = attempt()
    for _ in range(tries - 1):
        if not outcome.sentence.endswith("too old to join on") and " ms old, and it is valid" not in outcome.sentence:
            break
        print(f"again: {outcome.sentence}")
        outcome = attempt()
    return outcome


def joined_generations(group: RawClassicGroup) -> dict[str, int]:
    """Member -> the generation from which it came into the last rebalance; -1 for newcomers."""
    found = {}
    for member in group.members:
        subscription = decode_subscription(member.metadata)
        assert isinstance(subscription, Subscription), subscription
        found[member.member_id] = -1 if subscription.generation is None else subscription.generation
    return found


def held(group: RawClassicGroup) -> dict[str, bytes]:
    """Member -> its assignment, as stored."""
    return {member.member_id: member.assignment for member in group.members}


class Stretch(NamedTuple):
    """A time that a group was not Stable."""

    began_s: float
    """Monotonic."""
    lasted_s: float


class GroupWatch:
    """Looks at a group all the time, on a line of its own, and writes down when it is out of Stable."""

    def __init__(self, admin_client: WireAdminClient, group: str, *, every_s: float = 0.02) -> None:
        self._admin_client = admin_client
        self._group = group
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"watch of {group}")
        self._line: CoordinatorConnection | None = None
        self.stretches: list[Stretch] = []
        self.generations: set[int] = set()
        """Every generation that a member told while it was looked at."""
        self.last: RawClassicGroup | None = None
        self.slowest_s = 0.0
        """The longest time between two looks: what is measured may be longer than it was by so much."""
        self._since: float | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait_stable()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def generation(self) -> int:
        """The newest one that a member told."""
        return max(self.generations)

    def wait_stable(self, within_s: float = 60) -> RawClassicGroup:
        """The group once it is Stable; and stays so for a moment, as a follow-up rebalance comes at once."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            group = self.last
            if group is not None and group.state == "Stable" and group.members:
                time.sleep(0.15)
                if self.last is not None and self.last.state == "Stable":
                    return self.last
            time.sleep(0.02)
        raise AssertionError(f"group {self._group} did not become Stable within {within_s} s: {self.last}")

    def _run(self) -> None:
        before = time.monotonic()
        while not self._ended.wait(self._every_s):
            try:
                if self._line is None:
                    self._line = self._admin_client.group_line(self._group, DEADLINE_MS)
                group = self._line.describe(DEADLINE_MS)
            except CallFailed:
                self._line = None
                continue
            now = time.monotonic()
            self.slowest_s, before = max(self.slowest_s, now - before), now
            if group.state == "Stable":
                if self._since is not None:
                    self.stretches.append(Stretch(self._since, now - self._since))
                    self._since = None
                self.generations.update(joined_generations(group).values())
            elif self._since is None:
                self._since = now
            self.last = group
        if self._line is not None:
            self._line.close()


def admin_client_of(bootstrap_servers: str) -> WireAdminClient:
    """An admin client that knows the brokers."""
    admin_client = WireAdminClient({"bootstrap_servers": bootstrap_servers.split(","), "client_id": "rackwise-hand"})
    admin_client.describe_brokers(DEADLINE_MS)
    return admin_client


def wire_of(bootstrap_servers: str) -> WireClient:
    """A client that knows the brokers."""
    wire = WireClient({"bootstrap_servers": bootstrap_servers.split(","), "client_id": "rackwise-eyes"})
    wire.describe_brokers(DEADLINE_MS)
    return wire
