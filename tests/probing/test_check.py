"""What the guard and ``explain`` are given of probing: until when a trigger is held, and in which words."""

from __future__ import annotations

import pytest

from agent.execute.probing_decision import ProbingContext
from agent.execute.probing_values import PastTrigger, ProbingWaitReason
from agent.explain.explain import about_probing
from agent.guard.execute_checks import probing_check
from agent.journal.triggers import TriggerEntry, TriggerExpectation, TriggerJudgement, TriggerVerdict, intent, judged
from agent.values.finding import SubjectId
from agent.values.limits import Limits
from agent.values.memory import Memory, StreamsMemory
from agent.values.plan import ExplainedRule, RuleAnswer
from agent.values.proposal import ProposalReason
from agent.values.snapshot import GroupKind, Snapshot
from tests.act.triggers import MemoryJournal, a_proposal
from tests.probing.warmups import JOINED, NOW, READY, decide, snapshot_of, warmup
from tests.snapshots import NOW_MS


def checked(
    snapshot: Snapshot, reason: ProposalReason = ProposalReason.WARMUP_PROMOTABLE, *, triggered_ms: int | None = None
) -> object:
    memory = Memory(cycle=5, monotonic_ms=NOW - 1_000, streams={"app": StreamsMemory(JOINED, {}, {}, ())})
    journal = MemoryJournal()
    if triggered_ms is not None:
        entry = TriggerEntry(
            group_id="app", proposal_id="p-1", reason="WARMUP_PROMOTABLE", intended_ms=NOW_MS - triggered_ms,
            expected=TriggerExpectation(generation=3, readers=("old",), holds={}, moves=(), items=4),
        )  # fmt: skip
        came = TriggerJudgement(TriggerVerdict.AS_PREDICTED, NOW_MS, "", came=1)
        journal.append(intent(entry), judged(entry, came))
    return probing_check(a_proposal("app", reason=reason), snapshot, memory, journal.view(), Limits())


def test_the_guard_is_told_until_when_on_the_wall_clock() -> None:
    assert checked(READY, triggered_ms=4_000) == (
        ProbingWaitReason.FLOOR.value, "the last trigger was 4 s ago; probing.floor is 10 s", NOW_MS + 6_000,
    )  # fmt: skip
    assert checked(READY, triggered_ms=11_000) is None


@pytest.mark.parametrize(
    ("snapshot", "sentence"),
    [
        pytest.param(
            snapshot_of(),
            "not probed: no process of it has a warm-up; this waits until a process of it has a warm-up",
            id="nothing to promote any more",
        ),
        pytest.param(
            snapshot_of(warmup(0, eta=30)),
            "the first of 1 warm-up will have caught up in 24 to 45 s, likely 30 s",
            id="not yet",
        ),
    ],
)
def test_the_guard_is_promised_no_time_where_there_is_only_an_estimate(snapshot: Snapshot, sentence: str) -> None:
    held = checked(snapshot)
    assert held is not None
    assert held[1:] == (sentence, None)  # type: ignore[index]


def test_the_guard_is_told_nothing_where_it_is_time_or_about_other_proposals() -> None:
    assert checked(READY) is None
    assert checked(snapshot_of(), ProposalReason.REBALANCE_IMPROVES) is None
    assert SubjectId("group", "app") == a_proposal("app").subject


@pytest.mark.parametrize(
    ("snapshot", "answer", "sentence"),
    [
        pytest.param(
            READY, RuleAnswer.YES, "rebalance app now: 1 warm-up (0_0) has caught up", id="it is time"
        ),
        pytest.param(
            snapshot_of(warmup(0, eta=30)), RuleAnswer.WAIT,
            "held: the first of 1 warm-up will have caught up in 24 to 45 s, likely 30 s", id="not yet",
        ),
        pytest.param(snapshot_of(), RuleAnswer.NO, "not probed: no process of it has a warm-up", id="nothing to do"),
    ],
)  # fmt: skip
def test_what_explain_says(snapshot: Snapshot, answer: RuleAnswer, sentence: str) -> None:
    memory = Memory(cycle=5, monotonic_ms=NOW - 1_000, streams={"app": StreamsMemory(JOINED, {}, {}, ())})
    ground = ProbingContext(snapshot, memory, Limits())
    assert about_probing("app", ground) == (ExplainedRule("group/app", "probing", answer, sentence),)


def test_explain_knows_of_earlier_triggers() -> None:
    (row,) = about_probing("app", ProbingContext(READY, Memory(), Limits()), [PastTrigger(NOW - 4_000, True)])
    assert (row.answer, row.sentence) == (RuleAnswer.WAIT, "held: the last trigger was 4 s ago; probing.floor is 10 s")


def test_of_many_warm_ups_the_first_are_named() -> None:
    decision = decide(snapshot_of(*(warmup(number) for number in range(4))))
    assert decision.sentence == "rebalance app now: 4 warm-ups (0_0, 0_1, 0_2 and 1 more) have caught up"


def test_explain_says_nothing_of_groups_without_warm_ups_by_their_kind() -> None:
    assert about_probing("app", ProbingContext(snapshot_of(kind=GroupKind.STREAMS), Memory(), Limits())) == ()
    assert about_probing("other", ProbingContext(READY, Memory(), Limits())) == ()
