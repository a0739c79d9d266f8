"""What a person is shown before approving: only what the approval's hash covers, and figures as such."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli.proposals import MOST_ROWS, figures_as_published, what_is_approved
from agent.journal.approvals import plan_hash
from agent.values.proposal import Proposal, ProposalKind, ProposalMove, ProposalReason, ProposalRow
from tests.cli.conftest import Run
from tests.cli.execute.file_agent import MOVE, options, write_journal

TOTAL = "1 replica list; 1 replica added (broker 2: 1); 1 replica removed (broker 4: 1); 0 preferred leaders changed"
LINES = (
    f"{MOVE.id}: reassign topic/t, because replicas share a rack while another is free",
    f"changes: {TOTAL}",
    "t-0: 1, 4 -> 1, 2",
)


def forged(proposal: Proposal) -> Proposal:
    """As an observer can publish it in the same slot: all that the hash does not cover is made up."""
    return proposal._replace(
        sentence="Change the order of 1 replica list of t; no byte is copied; saves $999.00 a day",
        predicted=replace(
            proposal.predicted, moves=0, bytes_to_move=0, usd_per_day_before=999.0, usd_per_day_after=0.0
        ),
        moves=tuple(move._replace(bytes=0) for move in proposal.moves),
        evidence=(("partitions", 0),),
        lower_bound=0.0,
        optimal=True,
        findings=(),
    )


def test_a_record_that_was_forged_is_shown_as_what_it_does() -> None:
    fake = forged(MOVE)
    assert plan_hash(fake) == plan_hash(MOVE), "it would be approved"
    assert what_is_approved(fake) == what_is_approved(MOVE) == LINES
    assert figures_as_published(fake, fake.created_ms).startswith(
        "as published: 0 B to copy, $999.00/day across racks before, $0.00/day after; figures of "
    )


def test_no_word_of_a_forged_record_reaches_the_person_who_approves(
    here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda _loaded, _tell: (forged(MOVE),))
    write_journal(tmp_path / "journal")
    done = here("proposals", "approve", MOVE.id, *options(tmp_path / "journal"))
    *what, figures = done.stderr.splitlines()[:4]
    assert (tuple(what), figures[:14]) == (LINES, "as published: ")
    assert "no byte is copied" not in done.stderr


def test_any_change_of_what_is_done_is_seen() -> None:
    other = MOVE._replace(after=(ProposalRow("t-0", (2, 1)),))
    _, total, change = what_is_approved(other)
    assert total == LINES[1].replace("0 preferred leaders", "1 preferred leader")
    assert change == "t-0: 1, 4 -> 2, 1"
    unknown = MOVE._replace(before=())
    assert what_is_approved(unknown)[2] == "t-0: (none) -> 1, 2"


def test_long_lists_are_counted() -> None:
    before, after = (tuple(ProposalRow(f"t-{n}", of) for n in range(12)) for of in ((1, 4), (4, 1)))
    told = what_is_approved(MOVE._replace(kind=ProposalKind.LEADERS, before=before, after=after))
    assert told[1] == "changes: 12 replica lists; 0 replicas added; 0 replicas removed; 12 preferred leaders changed"
    assert told[-1] == "and 2 more changes: rackwise proposals -o json"
    assert len(told) == 2 + MOST_ROWS + 1


def test_a_rebalance_is_shown_by_its_moves() -> None:
    moves = (ProposalMove("task", "0_1", "p-1", "p-2", None), ProposalMove("task", "0_2", None, "p-1", None))
    trigger = MOVE._replace(kind=ProposalKind.TRIGGER, reason=ProposalReason.REBALANCE_IMPROVES, moves=moves)
    assert what_is_approved(trigger)[1:] == ("changes: 2 moves", "task 0_1: p-1 -> p-2", "task 0_2: (none) -> p-1")
    unknown = trigger._replace(predicted=replace(trigger.predicted, bytes_to_move=None))
    assert figures_as_published(unknown, 0).startswith("as published: bytes to copy unknown, $/day unknown; ")
