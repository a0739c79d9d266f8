"""The prober against a coordinator that does what a real one cannot be made to do on demand.

It loses answers, moves, refuses, and assembles a group at the worst moment. Whatever happens: every id is given back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from agent.act import probe
from agent.act.probe import ProbeResult, RebalanceProbe, StaleGroupError
from agent.journal.triggers import TriggerEffect, TriggerPath
from agent.values.observation import GapCause, RawClassicGroup, RawMember
from agent.wire import protocol
from agent.wire.admin_client import JoinRequest, JoinResponse
from agent.wire.failure import CallFailed

ASK = JoinRequest("cooperative-sticky", b"bytes", 6_000, 6_000, "a test")
MEMBER = RawMember("m1", None, "c1", "/h", b"from generation 4", b"")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is waited for on a real network is here at once."""
    monkeypatch.setattr(probe, "_AGAIN_S", 0.001)
    monkeypatch.setattr(probe, "_LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(probe, "SEEN_WITHIN_MS", 20)
    monkeypatch.setattr(probe, "JOINED_WITHIN_MS", 200)
    monkeypatch.setattr(probe, "SESSION_TIMEOUT_MS", 200)


@dataclass
class Coordinator:
    """Of one group with one member."""

    quirk: bool = True
    """Whether giving a pending id back makes the group rebalance, as Kafka 4 does."""
    state: str = "Stable"
    pending: set[str] = field(default_factory=set)
    joined: set[str] = field(default_factory=set)
    rebalances: int = 0
    left: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    fails: dict[str, list[Exception | str]] = field(default_factory=dict)
    """Call -> what its next ones end with; "lost" is done but not answered, other text is the error answered."""
    assembles: bool = False
    """True: the group has assembled by the time the probe leaves."""
    answered: threading.Event = field(default_factory=threading.Event)
    lines: int = 0

    def line(self) -> Line:
        self.lines += 1
        return Line(self)

    def take(self, call: str) -> Exception | str | None:
        self.said.append(call)
        waiting = self.fails.get(call)
        return waiting.pop(0) if waiting else None


def lost() -> CallFailed:
    return CallFailed(GapCause.TIMED_OUT, "no answer in time")


class Line:
    """A connection to it."""

    fingerprint = "api-00000000"

    def __init__(self, to: Coordinator) -> None:
        self._to = to
        self._open = True

    def describe(self, deadline_ms: int) -> RawClassicGroup:
        self._check("describe")
        strangers = tuple(RawMember(name, None, "probe", "/h", b"", b"") for name in sorted(self._to.joined))
        return RawClassicGroup("g", self._to.state, "consumer", "cooperative-sticky", (MEMBER, *strangers), None)

    def join(self, ask: JoinRequest, member_id: str, deadline_ms: int) -> JoinResponse:
        what = self._check("join")
        if isinstance(what, str) and what != "lost":
            return JoinResponse(what, "")
        if not member_id:
            given = f"probe-{len(self._to.said)}"
            self._to.pending.add(given)
            if what == "lost":
                raise lost()
            return JoinResponse("MEMBER_ID_REQUIRED", given)
        if member_id not in self._to.pending:
            return JoinResponse("UNKNOWN_MEMBER_ID", "")
        self._to.pending.discard(member_id)
        self._to.joined.add(member_id)
        self._to.state = "PreparingRebalance"
        self._to.rebalances += 1
        if self._to.assembles:
            return JoinResponse(None, member_id)
        assert self._to.answered.wait(deadline_ms / 1000)
        return JoinResponse("UNKNOWN_MEMBER_ID", "")

    def leave(self, member_id: str, reason: str, deadline_ms: int) -> str | None:
        what = self._check("leave")
        if isinstance(what, str) and what != "lost":
            return what
        known = member_id in self._to.pending or member_id in self._to.joined
        if known:
            self._to.left.append(member_id)
        if member_id in self._to.pending and self._to.quirk:
            self._to.state = "PreparingRebalance"
            self._to.rebalances += 1
        self._to.pending.discard(member_id)
        self._to.joined.discard(member_id)
        self._to.answered.set()
        if what == "lost":
            raise lost()
        return None if known else "UNKNOWN_MEMBER_ID"

    def close(self) -> None:
        self._open = False

    def _check(self, call: str) -> Exception | str | None:
        if not self._open:
            raise CallFailed(GapCause.UNREACHABLE, "the connection broke")
        what = self._to.take(call)
        if isinstance(what, Exception):
            self._open = False
            raise what
        return what


def fine(group: RawClassicGroup) -> str | None:
    return None if group.state == "Stable" else f"the group is {group.state}"


def run(
    to: Coordinator, first: TriggerPath = TriggerPath.PENDING_LEAVE, on_step: Callable[[str], None] = lambda _: None
) -> ProbeResult:
    with RebalanceProbe(to.line, ASK, fine, on_step=on_step) as prober:
        return prober.run(first)


@pytest.mark.parametrize(
    ("to", "first", "path", "joins"),
    [
        pytest.param(Coordinator(), TriggerPath.PENDING_LEAVE, TriggerPath.PENDING_LEAVE, 1, id="Kafka 4"),
        pytest.param(
            Coordinator(quirk=False), TriggerPath.PENDING_LEAVE, TriggerPath.PHANTOM_JOIN, 3, id="an older coordinator"
        ),
        pytest.param(
            Coordinator(), TriggerPath.PHANTOM_JOIN, TriggerPath.PHANTOM_JOIN, 2, id="a phantom join is remembered"
        ),
        pytest.param(
            Coordinator(quirk=False, assembles=True),
            TriggerPath.PHANTOM_JOIN,
            TriggerPath.PHANTOM_JOIN,
            2,
            id="the group assembles with the probe in it",
        ),
        pytest.param(
            Coordinator(fails={"leave": [lost(), lost()]}),
            TriggerPath.PENDING_LEAVE,
            TriggerPath.PENDING_LEAVE,
            1,
            id="two leaves never arrive",
        ),
        pytest.param(
            Coordinator(fails={"leave": ["lost"]}),
            TriggerPath.PENDING_LEAVE,
            TriggerPath.PENDING_LEAVE,
            1,
            id="the answer to a leave is lost",
        ),
        pytest.param(
            Coordinator(fails={"leave": ["NOT_COORDINATOR"]}),
            TriggerPath.PENDING_LEAVE,
            TriggerPath.PENDING_LEAVE,
            1,
            id="the coordinator moves before the leave",
        ),
    ],
)
def test_the_group_rebalances_once_and_every_id_is_given_back(
    to: Coordinator, first: TriggerPath, path: TriggerPath, joins: int
) -> None:
    probed = run(to, first)
    assert (probed.effect, probed.path) == (TriggerEffect.REBALANCING, path), probed
    assert to.rebalances == 1
    assert to.said.count("join") == joins
    assert (to.pending, to.joined) == (set(), set())
    assert ("rebalances once more" in probed.sentence) is to.assembles


@pytest.mark.parametrize("early", [1, 2, 3])
def test_a_probe_that_a_group_assembled_with_after_its_leave_leaves_once_more(early: int) -> None:
    """The leave overtakes the join: the coordinator does not know the member yet, and lets it in afterwards."""
    to = Coordinator(quirk=False, assembles=True, fails={"leave": ["UNKNOWN_MEMBER_ID", *["NOT_COORDINATOR"] * early]})
    probed = run(to, TriggerPath.PHANTOM_JOIN)
    assert (probed.effect, to.joined, to.pending) == (TriggerEffect.REBALANCING, set(), set())
    assert len(to.left) == 1
    assert to.said.count("leave") == 2 + early


def test_a_probe_that_was_let_in_after_its_leave_had_overtaken_its_join_leaves_at_once() -> None:
    """The coordinator does not know the id yet when it is removed, and then the group assembles with it."""
    to = Coordinator(quirk=False, assembles=True, fails={"leave": ["UNKNOWN_MEMBER_ID"]})
    with RebalanceProbe(to.line, ASK, fine) as prober:
        probed = prober.run(TriggerPath.PHANTOM_JOIN)
        assert (to.pending, to.joined, len(to.left)) == (set(), set(), 1)
    assert (probed.effect, to.said.count("leave")) == (TriggerEffect.REBALANCING, 2)
    assert "rebalances once more" in probed.sentence


@pytest.mark.parametrize("error", ["GROUP_MAX_SIZE_REACHED", "INCONSISTENT_GROUP_PROTOCOL", "INVALID_SESSION_TIMEOUT"])
def test_a_refusal_of_the_coordinator_ends_it_harmlessly(error: str) -> None:
    to = Coordinator(fails={"join": [error]})
    probed = run(to)
    assert probed.effect is TriggerEffect.REFUSED
    assert error in probed.sentence
    assert (to.rebalances, to.said.count("join"), to.left) == (0, 1, [])


def test_a_refusal_of_the_second_half_ends_it_as_well() -> None:
    to = Coordinator(quirk=False, fails={"join": ["", "GROUP_MAX_SIZE_REACHED"]})
    to.fails["join"][0] = None  # type: ignore[call-overload]  # the first half is answered as always
    probed = run(to, TriggerPath.PHANTOM_JOIN)
    assert probed.effect is TriggerEffect.REFUSED
    assert to.pending == set()


def test_an_id_whose_answer_is_lost_is_not_asked_for_again() -> None:
    to = Coordinator(fails={"join": ["lost"]})
    prober = RebalanceProbe(to.line, ASK, fine)
    with pytest.raises(CallFailed), prober:
        prober.run(TriggerPath.PENDING_LEAVE)
    assert prober.asked
    assert to.said.count("join") == 1


@pytest.mark.parametrize("failing", [lost(), "NOT_COORDINATOR"])
def test_an_id_that_cannot_be_given_back_is_tried_until_its_session_is_over(failing: Exception | str) -> None:
    to = Coordinator(fails={"leave": [failing] * 10_000})
    probed = run(to)
    assert probed.effect is TriggerEffect.UNKNOWN
    assert to.said.count("leave") > 5


class EndedError(BaseException):
    """As a signal ends a process."""


@pytest.mark.parametrize(
    ("step", "first"),
    [
        pytest.param("described", TriggerPath.PENDING_LEAVE, id="before it asked"),
        pytest.param("pending", TriggerPath.PENDING_LEAVE, id="with an id"),
        pytest.param("left", TriggerPath.PENDING_LEAVE, id="after it left"),
        pytest.param("joined", TriggerPath.PHANTOM_JOIN, id="as a member"),
    ],
)
def test_whatever_ends_it_it_leaves_first(step: str, first: TriggerPath) -> None:
    to = Coordinator()

    def end(now: str) -> None:
        if now == step:
            raise EndedError

    with pytest.raises(EndedError):
        run(to, first, end)
    assert (to.pending, to.joined) == (set(), set())
    assert to.said.count("leave") == (0 if step == "described" else 1)


def test_a_group_that_is_not_as_it_was_is_not_asked() -> None:
    to = Coordinator(state="PreparingRebalance")
    with pytest.raises(StaleGroupError, match="PreparingRebalance"):
        run(to)
    assert "join" not in to.said


def test_a_coordinator_that_describes_too_slowly_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "FRESH_MS", -1)
    to = Coordinator()
    with pytest.raises(StaleGroupError, match="too old to join on"):
        run(to)
    assert "join" not in to.said


@pytest.mark.parametrize(
    ("after", "effect"),
    [
        pytest.param(MEMBER, TriggerEffect.NOTHING, id="the group is untouched, but it has become too late"),
        pytest.param(
            MEMBER._replace(metadata=b"from generation 5"), TriggerEffect.UNKNOWN, id="the group has rebalanced"
        ),
    ],
)
def test_a_group_that_is_not_sure_any_more_between_the_two_ways_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, after: RawMember, effect: TriggerEffect
) -> None:
    monkeypatch.setattr(probe, "SEEN_WITHIN_MS", 0)
    to = Coordinator(quirk=False)
    asked: list[RawClassicGroup] = []

    def same(group: RawClassicGroup) -> str | None:
        asked.append(group)
        return None if len(asked) == 1 else "it is too late"

    class Later(Line):
        def describe(self, deadline_ms: int) -> RawClassicGroup:
            group = super().describe(deadline_ms)
            # Before the first way, after it, and before the second.
            return group._replace(members=(after,)) if to.said.count("describe") == 3 else group

    with RebalanceProbe(lambda: Later(to), ASK, same) as prober:
        probed = prober.run(TriggerPath.PENDING_LEAVE)
    assert probed.effect is effect
    assert "no second attempt: it is too late" in probed.sentence
    assert to.said.count("join") == 1


def test_a_group_that_has_rebalanced_in_no_time_is_seen_by_its_members_generations() -> None:
    to = Coordinator(quirk=False)
    shown = iter((MEMBER, MEMBER._replace(metadata=b"from generation 5")))

    class Quick(Line):
        def describe(self, deadline_ms: int) -> RawClassicGroup:
            return super().describe(deadline_ms)._replace(members=(next(shown),))

    with RebalanceProbe(lambda: Quick(to), ASK, fine) as prober:
        probed = prober.run(TriggerPath.PENDING_LEAVE)
    assert probed.effect is TriggerEffect.REBALANCING
    assert "has already rebalanced" in probed.sentence


def test_there_is_no_way_to_take_part_in_a_generation() -> None:
    offered = {api.name for api in vars(protocol).values() if isinstance(api, protocol.ApiCall)}
    assert "JoinGroup" in offered
    assert offered & {"SyncGroup", "Heartbeat"} == set()
