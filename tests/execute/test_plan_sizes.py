"""What no plan can hold is refused when it is approved, handed over or taken back, with the reason, not in silence."""

from __future__ import annotations

import jsonschema
import pytest

from agent.act.execute_mode import hand_over
from agent.act.reassign.reassignment_executor import ReassignmentExecutor
from agent.execute.commands.apply import apply_commands
from agent.guard.judge import explained, foreseen
from agent.journal import plan_entries
from agent.journal.commands import CommandVerb
from agent.journal.targets import (
    MOST_OPEN_BYTES,
    MOST_TARGETS,
    estimated_plan_size,
    no_room_reason,
    plan_size,
    too_large_reason,
)
from agent.values.memory import Memory
from agent.values.plan import RuleAnswer
from agent.values.proposal import Allow, HoldReason, ProposalRow
from agent.values.reassignment import InvalidProposalError, PlanState, ReassignmentPlan, ReassignmentTarget
from assignors.problem import TopicPartition
from tests.docs.schemas import journal_schema
from tests.execute.commands import LIMITS, MOVE, STANDING, TARGET, ask, done, in_journal, plan
from tests.guard.acting import EMPTY_JOURNAL, held, limits_of, only
from tests.guard.test_judge import shared
from tests.journals import journal
from tests.snapshots import NOW_MS


def targets(count: int, replicas: int = 2) -> tuple[ReassignmentTarget, ...]:
    lists = tuple(range(replicas)), tuple(range(1, replicas + 1))
    return tuple(ReassignmentTarget(TopicPartition("t", at), "id", *lists) for at in range(count))


def test_a_plan_may_have_so_many_partitions_and_name_so_many_replicas() -> None:
    assert too_large_reason(plan_size(ReassignmentPlan("p", targets(MOST_TARGETS)))) is None
    assert too_large_reason(plan_size(ReassignmentPlan("p", targets(MOST_TARGETS + 1)))) == (
        "it moves 100,001 partitions, and one plan may move 100,000"
    )
    assert "4,002,000 replicas" in str(too_large_reason(plan_size(ReassignmentPlan("p", targets(20_010, 100)))))
    assert "its reason and racks take" in str(
        too_large_reason(plan_size(ReassignmentPlan("p", (), reason="r" * 500_000)))
    )


def test_plans_that_have_not_ended_share_the_room_and_ended_ones_take_none() -> None:
    need = plan_size(ReassignmentPlan("p", targets(10)))
    half = need._replace(bytes=MOST_OPEN_BYTES - 1_000)
    one = ReassignmentPlan("p-1", targets(100), order=1)
    assert no_room_reason({}, half) is None
    told = no_room_reason(journal(plan_entries.change_writes(one), at_ms=1), half)
    assert told is not None
    assert told.endswith("of 64.0 MB: it can begin when one of them has ended")
    assert (
        no_room_reason(journal(plan_entries.change_writes(one._replace(state=PlanState.DONE)), at_ms=1), half) is None
    )


def test_what_is_judged_when_it_is_proposed_is_not_less_than_what_is_written() -> None:
    _, proposal = only(shared())
    rows = tuple(ProposalRow(f"t-{at}", (1_000_000 + at, 2_000_000 + at)) for at in range(2_000))
    after = tuple(ProposalRow(row.key, (*row.value[:1], 3)) for row in rows)
    likely = estimated_plan_size(proposal._replace(before=rows, after=after))
    ids = (TopicPartition("t", at) for at in range(2_000))
    lists = zip(rows, after, strict=True)
    written = plan_size(
        ReassignmentPlan(
            "p",
            tuple(
                ReassignmentTarget(
                    id_, "A" * 22, tuple(map(int, one.value)), tuple(map(int, two.value)), 10**18, 1e18 / 7, 1e18 / 7
                )
                for id_, (one, two) in zip(ids, lists, strict=True)
            ),
        )
    )
    assert likely[:2] == written[:2] == (2_000, 8_000)
    assert written.bytes <= likely.bytes < 2 * written.bytes


def test_an_approval_of_what_is_too_large_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.journal.targets.MOST_TARGETS", 0)
    verdict = held(shared(), EMPTY_JOURNAL)
    assert verdict.reason is HoldReason.TOO_LARGE
    assert not verdict.passes
    result = apply_commands(
        [ask(CommandVerb.APPROVE, MOVE)], {}, STANDING, LIMITS, NOW_MS, lambda _proposal, _view: foreseen(verdict)
    )
    answer = done(result)
    assert not answer.done
    assert answer.sentence == (
        f"an approval does not let {MOVE.id} begin: it moves 1 partition, and one plan may move 0; lower "
        "proposals.max_moves"
    )


def test_an_approval_waits_for_room_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.journal.targets.MOST_OPEN_BYTES", 300)
    view = journal(plan_entries.change_writes(ReassignmentPlan("p-other", targets(40), order=1)), at_ms=1)
    verdict = held(shared(), view)
    assert verdict.reason is HoldReason.TOO_LARGE
    assert verdict.passes
    assert "it can begin when one of them has ended" in verdict.sentence


def test_an_explanation_has_the_size() -> None:
    snapshot, proposal = only(shared())
    rows = {row.rule: row for row in explained(proposal, snapshot, Memory(), limits_of(), EMPTY_JOURNAL)}
    assert (rows["fits one plan"].answer, rows["fits one plan"].sentence) == (
        RuleAnswer.YES,
        "1 partition of at most 100,000 in one plan",
    )


def test_what_became_too_large_since_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, proposal = only(shared())
    monkeypatch.setattr("agent.journal.targets.MOST_HEADER_BYTES", 10)
    with pytest.raises(InvalidProposalError, match="its reason and racks take"):
        hand_over(ReassignmentExecutor.__new__(ReassignmentExecutor), proposal, Allow(proposal.id, ""), snapshot, 2)


# --- taking back ----------------------------------------------------------------------------------------------------


def test_what_has_no_partitions_in_the_journal_any_more_cannot_be_taken_back() -> None:
    header, _part = plan(PlanState.DONE)
    view = in_journal(header)
    (kept,) = plan_entries.plans(view)
    assert (kept.targets, kept.partitions) == ((), 1)
    answer = done(apply_commands([ask(CommandVerb.ROLLBACK, MOVE)], view, STANDING, LIMITS, NOW_MS), view)
    assert not answer.done
    assert answer.sentence == (
        f"{MOVE.id} is done, and cannot be taken back any more: the journal keeps the partitions of the "
        "latest ended plans only, and those of this plan (1) are no longer in it"
    )


def test_what_there_is_no_room_for_is_not_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.journal.targets.MOST_OPEN_BYTES", 50)
    view = in_journal(plan(PlanState.DONE))
    result = apply_commands([ask(CommandVerb.ROLLBACK, MOVE)], view, STANDING, LIMITS, NOW_MS)
    answer = done(result, view)
    assert not answer.done
    assert f"{MOVE.id}-back cannot move the partitions of {MOVE.id} back: " in answer.sentence
    assert result.commands == ()


# --- the schema -----------------------------------------------------------------------------------------------------


def test_the_schema_has_the_header_and_the_columns_of_a_plan() -> None:
    definitions = journal_schema()["$defs"]
    header, part = plan_entries.change_writes(ReassignmentPlan("p", (TARGET,), begin_by_ms=5, racks=((1, "a"),)))
    jsonschema.validate(header.value, definitions["PlanHeader"])
    jsonschema.validate(part.value, definitions["Targets"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**(part.value or {}), "topic": "t"}, definitions["Targets"])
    assert set(header.value or {}) == set(definitions["PlanHeader"]["properties"])
