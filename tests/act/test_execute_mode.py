"""Mode execute around the line, with a leadership and an inbox that do what a test wants.

The executor is the real one; its brokers are not there, so it looks in vain and moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import pytest
import structlog

from agent.act.execute_mode import ExecuteMode
from agent.act.inbox import MOST_AT_ONCE, CommandInbox
from agent.act.inbox import InboxCommand as Waiting
from agent.errors import FatalFailure, JournalUnavailable
from agent.execute.commands.command_context import CommandSigner, signed
from agent.guard.judge import guard
from agent.journal import plan_entries
from agent.journal.approvals import ApprovalState, ProposalApproval, plan_hash, written
from agent.journal.commands import (
    CommandVerb,
    ExecutionPause,
    OperatorCommand,
    answer_to,
    command_to_json,
    pause_in,
    paused,
)
from agent.journal.entries import JournalKey, JournalPort, JournalState, JournalWrite
from agent.journal.record_trust import LeaderEntry, leader_write
from agent.values.clock import system_clock
from agent.values.limits import AgentMode, ApproveLimits, ExecuteLimits, Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from agent.values.plan import ExecuteFault, ExecuteState
from agent.values.proposal import Allow
from agent.values.reassignment import PlanState, ReassignmentPlan, ReassignmentTarget
from assignors.problem import TopicPartition
from tests.act.triggers import MemoryJournal
from tests.guard.acting import PLAIN, SMALL
from tests.guard.test_judge import proposals_of, shared, swapped
from tests.observe.live import wait_for
from tests.snapshots import Builder
from tests.web.test_metrics import a_cycle

PLAN = ReassignmentPlan("p-1", (ReassignmentTarget(TopicPartition("t", 0), "id", (1, 2), (3, 2)),), order=1)
LIMITS = Limits(mode=AgentMode.EXECUTE, execute=ExecuteLimits(request_timeout_ms=300, tick_ms=50))


@dataclass
class Box:
    """An inbox with what a test puts in."""

    waiting: list[Waiting] = field(default_factory=list)
    trouble: str | None = None
    skipped: str | None = None
    reached: bool = True

    def read(self, view: JournalState) -> tuple[Waiting, ...]:
        return tuple(one for one in self.waiting if answer_to(view, one.id) is None)

    def problem(self) -> str | None:
        return self.trouble or self.skipped

    def unread(self) -> str | None:
        return self.trouble

    def caught_up(self) -> bool:
        return self.reached

    def close(self) -> None:
        pass


@dataclass
class Leading:
    """Leads, from the start."""

    own: JournalPort
    box: CommandInbox
    fails: Exception | None = None
    leads: bool = True
    trouble: str | None = None
    wrong: tuple[str, ...] = ()

    def start(self) -> None:
        pass

    def observed(self, observation: Observation) -> None:
        pass

    def journal(self) -> JournalPort | None:
        if self.fails is not None:
            raise self.fails
        return self.own

    def inbox(self) -> CommandInbox | None:
        return self.box

    def may_act(self) -> bool:
        return self.leads

    def leads_for_s(self) -> float:
        return inf

    def problem(self) -> str | None:
        return self.trouble

    def notices(self) -> tuple[str, ...]:
        return self.wrong

    def ignored(self) -> int | None:
        return None

    def close(self) -> None:
        pass


@contextmanager
def acting(leading: Leading, **more: Any) -> Iterator[ExecuteMode]:
    one = ExecuteMode(
        leadership=leading,
        arguments={"bootstrap_servers": ["127.0.0.1:1"]},
        clock=system_clock,
        **{"limits": LIMITS, **more},
    )
    one._standing = ()  # as after the first planning
    one.start()
    try:
        yield one
    finally:
        one.close()


def asked(verb: CommandVerb, about: str | None = PLAN.proposal_id, name: str = "c-1") -> Waiting:
    wish = OperatorCommand(name, verb, "ann@desk", system_clock().wall_ms, about)
    return Waiting(wish.id, command_to_json(wish), JournalWrite("command-position", "offset", {"next": 1}))


class Doubtful(MemoryJournal):
    """The answer to a command is written, and that it is does not come back."""

    def append(self, *writes: JournalWrite) -> None:
        super().append(*writes)
        if any(write.key == "command/c-1" for write in writes):
            raise JournalUnavailable("No answer in time")


def test_a_word_whose_answer_was_written_in_doubt_reaches_the_mover_all_the_same() -> None:
    journal = Doubtful()
    journal.append(*plan_entries.change_writes(PLAN))
    with acting(Leading(journal, Box([asked(CommandVerb.CANCEL)]))):
        wait_for(lambda: answer_to(journal.view(), "c-1") is not None, "it is answered", 20)
        wait_for(lambda: plan_entries.plans(journal.view())[0].state is not PlanState.OPEN, "it is cancelled", 20)


def test_a_pause_of_one_plan_that_a_former_leader_promised_is_kept_by_the_next() -> None:
    journal = Doubtful()
    journal.append(*plan_entries.change_writes(PLAN))
    with acting(Leading(journal, Box([asked(CommandVerb.PAUSE)]))):
        wait_for(lambda: plan_entries.plans(journal.view())[0].paused, "it is paused", 20)


@pytest.mark.parametrize("built", [swapped(), shared()], ids=["a trigger", "a reassignment"])
@pytest.mark.parametrize("verb", [CommandVerb.PAUSE, CommandVerb.CANCEL])
def test_what_was_allowed_is_not_begun_after_a_pause_or_a_cancel_was_answered(
    built: Builder, verb: CommandVerb
) -> None:
    """Allowed by a look, and answered between that and the act."""
    snapshot = built.snapshot(taken_ms=system_clock().wall_ms)
    (proposal,) = proposals_of(snapshot)
    limits = replace(LIMITS, trigger=PLAIN, approve=ApproveLimits(rules=(SMALL,)))
    (allowed,) = guard([proposal], snapshot, Memory(), limits, {}, snapshot.taken_ms)
    assert isinstance(allowed, Allow)
    journal, box = MemoryJournal(), Box()
    with acting(Leading(journal, box), limits=limits) as one:
        wait_for(lambda: one.view() is not None, "it leads", 20)
        one._standing = (proposal,)
        about = proposal.id if verb is CommandVerb.CANCEL else None
        wish = OperatorCommand("c-1", verb, "ann@desk", snapshot.taken_ms, about)
        box.waiting.append(
            Waiting(wish.id, command_to_json(wish), JournalWrite("command-position", "offset", {"next": 1}))
        )
        wait_for(lambda: answer_to(journal.view(), "c-1") is not None, "it is answered", 20)
        answered = answer_to(journal.view(), "c-1")
        assert answered is not None
        outcome = one.carry_out(proposal, snapshot)
        assert outcome.done is not answered.answer.done, (answered.answer.sentence, outcome.sentence)
        assert "ann@desk" in outcome.sentence
    assert not any(key.startswith(("trigger/", "plan/")) for key in journal.view())


@pytest.mark.parametrize("by_a_person", [False, True], ids=["by a rule", "by a person"])
def test_a_plan_is_handed_over_with_the_end_of_its_approval_and_the_racks_it_rests_on(*, by_a_person: bool) -> None:
    now_ms = system_clock().wall_ms
    snapshot = shared().snapshot(taken_ms=now_ms)
    (proposal,) = proposals_of(snapshot)
    limits = replace(LIMITS, approve=ApproveLimits(rules=() if by_a_person else (SMALL,)))
    journal = MemoryJournal()
    if by_a_person:
        given = ProposalApproval(
            proposal.id, plan_hash(proposal), ApprovalState.APPROVED, "ann@desk", now_ms, now_ms + 90_000
        )
        journal.append(written(given))
    with acting(Leading(journal, Box()), limits=limits) as one:
        wait_for(lambda: one.view() is not None, "it leads", 20)
        view = one.view()
        (allowed,) = guard([proposal], snapshot, Memory(), limits, view, now_ms)
        assert isinstance(allowed, Allow), allowed
        assert one.carry_out(proposal, snapshot).done
        wait_for(lambda: bool(plan_entries.plans(journal.view())), "it is written down", 20)
    (plan,) = plan_entries.plans(journal.view())
    named = {broker for target in plan.targets for broker in (*target.before, *target.after)}
    assert dict(plan.racks) == {broker: {1: "a", 2: "b", 3: "c", 4: "a"}[broker] for broker in named}
    assert plan.begin_by_ms is not None
    if by_a_person:
        assert plan.begin_by_ms == now_ms + 90_000
    else:
        assert plan.begin_by_ms >= now_ms + limits.approve.valid_ms


def test_commands_that_cannot_be_read_are_told_of() -> None:
    sentence = "commands could not be read from rackwise.commands: Broker: Topic authorization failed"
    with structlog.testing.capture_logs() as told, acting(Leading(MemoryJournal(), Box(trouble=sentence))):
        wait_for(lambda: any(row.get("sentence") == sentence for row in told), "it is reported", 20)


def test_a_fault_in_the_acting_thread_ends_the_agent_with_a_sentence() -> None:
    ended: list[FatalFailure] = []
    leading = Leading(MemoryJournal(), Box(), fails=ZeroDivisionError("an unexpected division"))
    with acting(leading, on_fatal=ended.append):
        wait_for(lambda: bool(ended), "it ended", 20)
        leading.fails = None
    assert "internal error of rackwise (ZeroDivisionError: an unexpected division)" in str(ended[0])


def test_what_keeps_an_agent_from_leading_is_told_at_any_moment() -> None:
    leading = Leading(MemoryJournal(), Box())
    with acting(leading) as one:
        leading.leads, leading.trouble = False, "Topic authorization failed: rackwise.leader"
        assert one.now() == ExecuteState(
            leads=False, troubles={ExecuteFault.LEAD: "Topic authorization failed: rackwise.leader"}
        )
        leading.trouble = None
        assert one.now() == ExecuteState(leads=False), "it stands by"


def test_an_executor_that_cannot_see_the_cluster_is_told_beside_its_plans() -> None:
    journal = MemoryJournal()
    journal.append(*plan_entries.change_writes(PLAN))
    with acting(Leading(journal, Box())) as one:
        wait_for(lambda: ExecuteFault.LOOK in one.now().troubles, "its looks fail: no broker is there", 20)
        now = one.now()
    assert (now.leads, now.plans, now.partitions_left) == (True, 1, 1)
    assert set(now.troubles) == {ExecuteFault.LOOK}
    assert now.troubles[ExecuteFault.LOOK]


def test_nothing_begins_before_what_operators_asked_for_earlier_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.act.execute_mode._ANSWER_S", 0.2)
    snapshot = shared().snapshot(taken_ms=system_clock().wall_ms)
    (proposal,) = proposals_of(snapshot)
    limits = replace(LIMITS, approve=ApproveLimits(rules=(SMALL,)))
    (allowed,) = guard([proposal], snapshot, Memory(), limits, {}, snapshot.taken_ms)
    assert isinstance(allowed, Allow)
    journal, box = MemoryJournal(), Box(reached=False)
    journal.append(*plan_entries.change_writes(PLAN))
    first = "operators' commands that wait are answered first"
    with acting(Leading(journal, box), limits=limits) as one:
        wait_for(lambda: first in one.now().waits, "no batch of an open plan begins", 20)
        assert one.carry_out(proposal, snapshot).sentence == f"not done: {first}"
        box.trouble = "commands could not be read from rackwise.commands: Broker: Topic authorization failed"
        wait_for(lambda: first not in one.now().waits, "what cannot be read does not hold", 20)
        box.trouble = None
        wait_for(lambda: first in one.now().waits, "it waits again", 20)
        box.reached = True
        wait_for(lambda: first not in one.now().waits, "all was read", 20)
        box.reached = False
        assert one.carry_out(proposal, snapshot).done, "once"


def test_a_pause_that_waited_comes_before_the_first_thing_that_begins() -> None:
    """Also before the first planning, and in the very cycle in which this agent takes over."""
    snapshot = shared().snapshot(taken_ms=system_clock().wall_ms)
    (proposal,) = proposals_of(snapshot)
    limits = replace(LIMITS, approve=ApproveLimits(rules=(SMALL,)))
    (allowed,) = guard([proposal], snapshot, Memory(), limits, {}, snapshot.taken_ms)
    assert isinstance(allowed, Allow)
    pause = asked(CommandVerb.PAUSE)
    pause = pause._replace(value={**pause.value, "proposal_id": None})
    journal, box = MemoryJournal(), Box([pause])
    one = ExecuteMode(
        leadership=Leading(journal, box), arguments={"bootstrap_servers": ["127.0.0.1:1"]}, clock=system_clock,
        limits=limits,
    )  # fmt: skip
    try:
        one._follow()
        outcome = one.carry_out(proposal, snapshot)
    finally:
        one.close()
    assert (outcome.done, "ann@desk" in outcome.sentence) == (False, True)
    assert pause_in(journal.view()) is not None


UNHEARD = "operators' commands that wait are answered first"


@contextmanager
def before_planning(journal: JournalPort, box: Box) -> Iterator[ExecuteMode]:
    """An agent that leads, and whose looks have failed so far."""
    with acting(Leading(journal, box)) as one:
        one._standing = None
        yield one


@pytest.mark.parametrize("first", [CommandVerb.APPROVE, CommandVerb.APPLY, CommandVerb.CANCEL])
@pytest.mark.parametrize("stop", [CommandVerb.PAUSE, CommandVerb.CANCEL])
def test_what_stops_something_is_heard_before_the_first_planning_whatever_comes_before_it(
    first: CommandVerb, stop: CommandVerb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.act.leadership_term.ANSWER_WITHIN_S", 0.1)
    journal = MemoryJournal()
    journal.append(*plan_entries.change_writes(PLAN))
    about = PLAN.proposal_id if stop is CommandVerb.CANCEL else None
    with before_planning(journal, Box([asked(first, "p-strange", "c-0"), asked(stop, about)])) as one:
        wait_for(lambda: answer_to(journal.view(), "c-1") is not None, "it is answered", 20)
        assert answer_to(journal.view(), "c-0") is None, "what is proposed is not known yet"
        assert "command-position" not in journal.view(), "the next leader reads what waits"
        if stop is CommandVerb.CANCEL:
            wait_for(lambda: plan_entries.plans(journal.view())[0].state is not PlanState.OPEN, "it is cancelled", 20)
        else:
            assert pause_in(journal.view()) is not None
        one._standing = ()
        wait_for(lambda: answer_to(journal.view(), "c-0") is not None, "after the planning its turn comes", 20)
        assert "command-position" in journal.view()


STRANGE = asked(CommandVerb.CANCEL, "p-strange")


@pytest.mark.parametrize(
    ("waiting", "holds"),
    [
        pytest.param([STRANGE], False, id="a cancel of what the journal does not have"),
        pytest.param([STRANGE, asked(CommandVerb.PAUSE, "p-strange", "c-2")], False, id="and a pause of it"),
        pytest.param([STRANGE, asked(CommandVerb.ROLLBACK, PLAN.proposal_id, "c-2")], True, id="and a rollback"),
        pytest.param([asked(CommandVerb.APPROVE, "p-strange", "c-0"), STRANGE], False, id="behind an approval"),
    ],
)
def test_a_cancel_that_waits_for_the_first_planning_holds_what_it_may_be_about(
    waiting: list[Waiting], *, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes: what is proposed does not begin, and a plan in the journal goes on but for its own."""
    monkeypatch.setattr("agent.act.leadership_term.ANSWER_WITHIN_S", 0.1)
    journal = MemoryJournal()
    journal.append(*plan_entries.change_writes(PLAN))
    with before_planning(journal, Box(waiting)) as one:
        wait_for(lambda: one._term is not None and one._term.backlog.for_planning, "it was read", 20)
        led = one._term
        assert led is not None
        led.backlog._done = True  # and all that waited was read
        assert (one._may(journal, led.backlog).sentence == UNHEARD) is holds
        assert one._answer_earlier(led) == UNHEARD
        one._standing = ()
        wait_for(lambda: led.backlog.why_not(one._leadership.inbox()) is None, "it was answered", 20)


def test_what_waits_for_the_first_planning_gives_way_where_it_takes_all_places() -> None:
    journal = MemoryJournal()
    junk = [asked(CommandVerb.APPROVE, f"p-{number}", f"j-{number}") for number in range(MOST_AT_ONCE)]
    box = Narrow([*junk, asked(CommandVerb.PAUSE, None)])
    with before_planning(journal, box):
        wait_for(lambda: pause_in(journal.view()) is not None, "the pause behind them is heard", 20)
    refused = answer_to(journal.view(), "j-0")
    assert refused is not None
    assert "has not planned yet, so it is not known whether p-0 is open" in refused.answer.sentence


class Narrow(Box):
    """Hands out so many at once, as inboxes do."""

    def read(self, view: JournalState) -> tuple[Waiting, ...]:
        return super().read(view)[:MOST_AT_ONCE]


def test_what_was_passed_over_is_no_reason_to_begin_before_all_was_read() -> None:
    journal, box = MemoryJournal(), Box(skipped="skipped 100 records of rackwise.commands: no command", reached=False)
    with acting(Leading(journal, box)) as one:
        wait_for(lambda: one._term is not None, "it leads", 20)
        led = one._term
        assert led is not None
        assert one._may(journal, led.backlog).sentence == UNHEARD
        box.trouble = "commands could not be read from rackwise.commands: Broker: Topic authorization failed"
        assert one._may(journal, led.backlog).sentence != UNHEARD
        assert one.now().notices == (box.trouble,)


def test_what_is_not_as_it_should_be_is_told_beside_what_the_agent_does() -> None:
    wrong, unread = "rackwise.leader has 3 partitions", "commands could not be read from rackwise.commands: why"
    box = Box(trouble=unread)
    leading = Leading(MemoryJournal(), box, wrong=(wrong,))
    with acting(leading) as one:
        wait_for(lambda: one.now().leads and one.now().plans == 0, "it leads", 20)
        assert (one.now().notices, one.now().reasons) == ((wrong, unread), ())
        leading.wrong, box.trouble = (), None
        assert one.now().notices == ()


def test_what_is_not_as_it_should_be_is_said_once_while_it_lasts() -> None:
    leading = Leading(MemoryJournal(), Box(), wrong=("rackwise.leader has 3 partitions",))
    with structlog.testing.capture_logs() as logs, acting(leading):
        said = lambda: [one["sentence"] for one in logs if one["event"] == "acting_notice"]  # noqa: E731 a word
        wait_for(said, "it is said", 20)
        leading.wrong = (*leading.wrong, "another one")
        wait_for(lambda: len(said()) == 2, "a new one is said", 20)
    assert said() == ["rackwise.leader has 3 partitions", "another one"]


def test_a_command_of_a_person_is_checked_with_the_persons_key() -> None:
    journal, key = MemoryJournal(), JournalKey(b"the very own key of ann")
    journal.append(leader_write(LeaderEntry("rw-1", "host", 1, "c-1", 0)), paused(ExecutionPause("bob", "", 1)))
    wish = asked(CommandVerb.RESUME)
    command = {**wish.value, "proposal_id": None}
    with acting(Leading(journal, Box([wish._replace(value=command)])), people={"ann": key}):
        refused = wait_for(lambda: answer_to(journal.view(), "c-1"), "it is answered", 20)
    assert (refused.answer.done, pause_in(journal.view()) is None) == (False, False)
    own = {**command, "id": "c-2"}
    proven = wish._replace(id="c-2", value=signed(own, CommandSigner("ann", key), "c-1"))
    with acting(Leading(journal, Box([proven])), people={"ann": key}):
        wait_for(lambda: answer_to(journal.view(), "c-2"), "it is answered", 20)
    assert pause_in(journal.view()) is None


def test_a_time_of_the_future_in_the_journal_is_written_anew_with_the_next_cycle() -> None:
    journal, now_ms = MemoryJournal(), system_clock().wall_ms
    journal.append(paused(ExecutionPause("ann", "", now_ms + 315_360_000_000)))
    with acting(Leading(journal, Box())) as one:
        wait_for(lambda: one._term is not None, "it leads", 20)
        one.end(a_cycle(), poll_ms=1_000)
    pause = pause_in(journal.view())
    assert pause is not None
    assert now_ms <= pause.since_ms <= system_clock().wall_ms
