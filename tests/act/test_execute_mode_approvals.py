"""One planning that could not see everything voids no approval; what was seen to be another does."""

from __future__ import annotations

import pytest

from agent.act.execute_mode import ApprovedProposals
from agent.journal.approvals import ApprovalState, approval_cleanup, approval_of
from agent.journal.entries import JournalState
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.proposal import Proposal
from tests.guard.acting import HOUR, MINUTE, only
from tests.guard.acting import approval as approved
from tests.guard.test_judge import shared, swapped
from tests.journals import journal
from tests.snapshots import NOW_MS, Builder, a_cluster


def moved() -> Builder:
    """What `shared` was, once another tool has moved t-0."""
    return a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 2), (2, 3))


def gap(part: ObservationPart, subject: str = "") -> tuple[Gap, ...]:
    return (Gap(part, GapCause.TIMED_OUT, subject, "no answer in time"),)


def state(
    built: Builder, then: Builder, *, proposed: tuple[Proposal, ...] = (), leads_anew: bool = False, **changes: object
) -> ApprovalState:
    """What an approval of the one proposal of a world is after a planning in another one."""
    _, proposal = only(built)
    view: JournalState = journal(approved(built), at_ms=NOW_MS)
    known = ApprovedProposals()
    if not leads_anew:
        known.planned(view, [proposal])
    known.planned(view, proposed)
    snapshot = then.snapshot(**changes)
    writes = approval_cleanup(view, proposed, frozenset(), NOW_MS, lambda one: known.may_hold(one, snapshot))
    found = approval_of(journal(*writes, at_ms=NOW_MS, view=view), proposal.id)
    assert found is not None
    return found.state


VOID, HOLDS = ApprovalState.VOID, ApprovalState.APPROVED


@pytest.mark.parametrize("built", [shared(), swapped()], ids=["a reassignment", "a trigger"])
@pytest.mark.parametrize(
    "part",
    [
        ObservationPart.BROKERS,
        ObservationPart.TOPICS,
        ObservationPart.GROUPS,
        ObservationPart.LOG_DIRS,
        ObservationPart.BROKER_CONFIGS,
    ],
)
def test_a_planning_with_a_gap_voids_nothing(built: Builder, part: ObservationPart) -> None:
    empty = a_cluster(a=(1,), b=(2,), c=(3,))
    assert state(built, empty, gaps=gap(part)) is HOLDS


def test_a_gap_of_another_topic_is_none_of_its_own() -> None:
    other = moved().topic("u", (1, 2))
    assert state(shared(), other, gaps=gap(ObservationPart.TOPICS, "u")) is VOID
    assert state(shared(), other, gaps=gap(ObservationPart.TOPICS, "t")) is HOLDS
    assert state(shared(), other, gaps=gap(ObservationPart.GROUPS, "g")) is HOLDS, "a group may read it"


def test_what_was_seen_and_is_different_voids_it() -> None:
    assert state(shared(), moved()) is VOID
    assert state(swapped(), a_cluster().topic("t", (1,), (2,))) is VOID, "the group is gone"


def test_what_is_as_it_was_holds_although_it_is_not_proposed_this_time() -> None:
    """Other proposals came first, or findings have not lasted long enough yet."""
    assert state(shared(), shared()) is HOLDS


def test_what_a_new_leader_has_not_proposed_itself_lasts_as_long_as_its_approval() -> None:
    assert state(shared(), moved(), leads_anew=True) is HOLDS
    view = journal(approved(shared(), age_ms=HOUR + MINUTE), at_ms=NOW_MS)
    (write,) = approval_cleanup(view, (), frozenset(), NOW_MS, lambda _: True)
    assert write.kind == ApprovalState.VOID.value


def test_another_plan_under_its_id_voids_it_only_where_the_ground_was_seen_to_be_another() -> None:
    _, proposal = only(shared())
    other = proposal._replace(snapshot_hash="another")
    assert state(shared(), moved(), proposed=(other,)) is VOID
    assert state(shared(), moved(), proposed=(other,), gaps=gap(ObservationPart.TOPICS)) is HOLDS
