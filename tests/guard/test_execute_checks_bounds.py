"""What the checks of mode execute tell of the leader, the cluster, a pause, a plan in progress and patterns."""

from __future__ import annotations

import pytest

from agent.guard.execute_checks import may_begin
from agent.guard.guard_context import GuardJournal
from agent.guard.judge import explained
from agent.journal.commands import ExecutionPause, paused
from agent.journal.entries import JournalState
from agent.journal.record_trust import LeaderEntry, leader_write
from agent.values.limits import AgentMode
from agent.values.memory import Memory
from agent.values.proposal import Hold, HoldReason
from agent.values.reassignment import PlanState
from tests.guard.acting import EMPTY_JOURNAL, HOUR, MINUTE, held, judged, limits_of, only, plan_of, with_approval
from tests.guard.test_judge import shared
from tests.journals import journal
from tests.snapshots import NOW_MS


def told(view: JournalState, **limits: object) -> dict[str, str]:
    """Rule -> its sentence about the move."""
    snapshot, proposal = only(shared())
    return {row.rule: row.sentence for row in explained(proposal, snapshot, Memory(), limits_of(**limits), view)}


def test_an_explanation_names_the_agent_that_leads() -> None:
    by = leader_write(LeaderEntry("rw-1", "host-7", 11, "test-cluster", 0))
    assert told(journal(by, at_ms=NOW_MS))["leading"] == "rw-1 on host-7 leads"
    assert told(EMPTY_JOURNAL)["leading"] == "this agent leads"


@pytest.mark.parametrize(
    ("leader", "allowed", "reason"),
    [
        pytest.param("test-cluster", None, None, id="its own"),
        pytest.param("other", None, HoldReason.WRONG_CLUSTER, id="the journal of another"),
        pytest.param("", None, None, id="a journal that names none"),
        pytest.param("test-cluster", "test-cluster", None, id="the one that the settings allow"),
        pytest.param("test-cluster", "other", HoldReason.WRONG_CLUSTER, id="one that the settings do not allow"),
    ],
)
def test_the_cluster_is_the_one_of_the_journal_and_of_the_settings(
    leader: str, allowed: str | None, reason: HoldReason | None
) -> None:
    by = leader_write(LeaderEntry("rw-1", "host-7", 11, leader, 0))
    answer = judged(shared(), with_approval(shared(), by), cluster__id=allowed)
    assert (answer.reason if isinstance(answer, Hold) else None) is reason


def test_a_pause_is_told_with_its_person_its_age_and_its_reason() -> None:
    view = with_approval(shared(), paused(ExecutionPause("ann@desk", "an incident", NOW_MS - 5 * MINUTE)))
    assert held(shared(), view).sentence == (
        "held: ann@desk paused acting 5 min ago (an incident); resume with: rackwise resume"
    )
    plain = with_approval(shared(), paused(ExecutionPause("ann@desk", "", NOW_MS - 5 * MINUTE)))
    assert held(shared(), plain).sentence == "held: ann@desk paused acting 5 min ago; resume with: rackwise resume"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        pytest.param({}, "held: it is in progress (open), approved by ann@desk", id="open"),
        pytest.param({"paused": True}, "held: it is in progress (open, paused), approved by ann@desk", id="paused"),
        pytest.param({"approved_by": ""}, "held: it is in progress (open), approved by an unknown user", id="unknown"),
    ],
)
def test_what_is_in_progress_is_told_with_who_approved_it(changes: dict[str, object], sentence: str) -> None:
    answer = held(shared(), with_approval(shared(), plan_of(shared(), PlanState.OPEN, **changes)))
    assert (answer.reason, answer.sentence) == (HoldReason.BEGUN, sentence)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        pytest.param({}, "t is not excluded (patterns: 0 include, 0 exclude)", id="no patterns"),
        pytest.param(
            {"execute__include_topics": ("t", "u")}, "t is not excluded (patterns: 2 include, 0 exclude)", id="included"
        ),
        pytest.param(
            {"execute__include_topics": ("u",)}, "t matches no pattern of execute.include_topics (1)", id="not included"
        ),
        pytest.param({"execute__exclude_topics": ("t",)}, "t is excluded (execute.exclude_topics)", id="excluded"),
        pytest.param(
            {"execute__exclude_topics": ("t",), "execute__include_topics": ("t",)},
            "t is excluded (execute.exclude_topics)", id="excluded and included",
        ),
        pytest.param(
            {"execute__exclude_groups": ("t",), "execute__include_groups": ("u",)},
            "t is not excluded (patterns: 0 include, 0 exclude)", id="patterns of groups",
        ),
    ],
)  # fmt: skip
def test_topics_are_left_out_by_their_patterns(limits: dict[str, object], sentence: str) -> None:
    assert told(EMPTY_JOURNAL, **limits)["not excluded"].removeprefix("held: ") == sentence


@pytest.mark.parametrize(
    ("left_ms", "sentence"),
    [
        pytest.param(1, None, id="one millisecond is left"),
        pytest.param(0, "its approval ended 0 s ago, and no batch of it was sent", id="over"),
        pytest.param(-MINUTE, "its approval ended 60 s ago, and no batch of it was sent", id="over for a minute"),
        pytest.param(2 * HOUR, None, id="twice as much as an approval lasts"),
        pytest.param(
            2 * HOUR + 1,
            "its approval is of the future by this agent's clock, and no batch of it was sent",
            id="of the future",
        ),
        pytest.param(None, None, id="of an older agent"),
    ],
)
@pytest.mark.parametrize("mode", [AgentMode.EXECUTE, AgentMode.PROPOSE])
def test_a_plan_of_which_no_batch_was_sent_lasts_as_long_as_its_approval(
    left_ms: int | None, sentence: str | None, mode: AgentMode
) -> None:
    """Whether a batch may begin at all or not."""
    begin_by_ms = None if left_ms is None else NOW_MS + left_ms
    view = journal(plan_of(shared(), PlanState.OPEN, begin_by_ms=begin_by_ms), at_ms=NOW_MS)
    found = may_begin(GuardJournal(view), limits_of(mode=mode), NOW_MS)
    assert [why for _, why in found.lapsed] == ([] if sentence is None else [sentence])
    assert found.begin is (mode is AgentMode.EXECUTE)
