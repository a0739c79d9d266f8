"""A proposal's page and the list of proposals: what is approved, what is over, and what no agent can hear."""

from __future__ import annotations

from dataclasses import replace

from lxml.etree import _Element as HtmlElement

from agent.act.journal.journal_topic import no_journal
from agent.journal import plan_entries
from agent.journal.approvals import plan_hash
from agent.journal.entries import JournalState
from agent.propose.codec import proposal_from_json, read_reassignment_json
from agent.values.proposal import Proposal
from agent.values.reassignment import PlanState, ReassignmentPlan
from agent.web.agent_view import AgentView
from agent.web.cycle_history import EndedProposal
from agent.web.page.proposal import differences
from agent.web.page.proposal_standing import standing_of
from tests.journals import journal
from tests.web.page.acting_worlds import (
    MINUTE,
    NOW_MS,
    VIEWER,
    a_journal,
    acting,
    acting_client,
    approvable,
    target,
)
from tests.web.page.answers import read, words
from tests.web.page.test_operating_views import client, main, page
from tests.web.page.worlds import sick


def reassign_page() -> HtmlElement:
    proposal = approvable(sick())
    assert proposal is not None
    return page("acting", f"/proposals/proposal?id={proposal.id}")


def test_a_proposal_begins_with_its_sentence_and_shows_what_changes_alone() -> None:
    document, proposal = reassign_page(), approvable(sick())
    assert proposal is not None
    lead = document.find(".//p[@class='lead big']")
    assert lead is not None
    assert words(lead) == proposal.sentence
    changes = document.findall(".//div[@id='table-changes']//tbody/tr")
    assert len(changes) == sum(before != after for before, after in zip(proposal.before, proposal.after, strict=True))
    assert "removed: " in words(changes[0])
    assert "added: " in words(changes[0])
    text = main(document)
    for heading in ("Checks of the guard", "Why this one", "Why not the others", "Moves", "What was said and done"):
        assert heading in text
    assert "lower bound of copied bytes" in text
    assert "Pay-back never" in text


def test_approving_names_exactly_the_plan_that_is_shown_and_only_who_may_has_the_form() -> None:
    proposal = approvable(sick())
    assert proposal is not None
    form = reassign_page().find(".//form[@id='approve']")
    assert form is not None
    fields = {str(one.get("name")): one.get("value") for one in form.iter("input")}
    assert fields["plan_hash"] == plan_hash(proposal)
    assert (fields["about"], fields["verb"], fields["attempt"]) == (proposal.id, "approve", "1")
    viewer = acting_client(person=VIEWER).get(f"/proposals/proposal?id={proposal.id}").text
    assert 'id="approve"' not in viewer
    assert "vic has no role approve" in viewer
    assert f"rackwise proposals approve {proposal.id}" in viewer
    dry = acting_client(acting(mode="propose")).get(f"/proposals/proposal?id={proposal.id}").text
    assert 'id="approve"' not in dry
    assert "This agent runs in mode propose and sends nothing that changes the cluster." in dry


def test_a_stale_plan_says_so_before_the_click_and_after_it() -> None:
    proposal = approvable(sick())
    assert proposal is not None
    stale = proposal._replace(snapshot_hash="0" * 16)
    asked = acting_client(acting(proposals=(stale,)))
    before = asked.get(f"/proposals/proposal?id={proposal.id}")
    assert "has changed since it was proposed, so the agent refuses it" in before.text
    assert 'id="approve"' not in before.text
    after = asked.post(
        "/commands", {"verb": "approve", "about": proposal.id, "plan_hash": plan_hash(proposal), "attempt": "1"}
    )
    assert after.status_code == 409
    assert "The plan that you saw is not the one that is proposed now, so nothing was approved." in after.text
    gone = acting_client().post("/commands", {"verb": "approve", "about": "p-0ld0ld0ld0ld", "plan_hash": "0" * 32})
    assert gone.status_code == 409
    assert "This proposal is over: replaced by" in gone.text


def test_a_replaced_plan_names_what_the_new_one_does_otherwise() -> None:
    proposal = approvable(sick())
    assert proposal is not None
    first, *rest = proposal.after
    other = proposal._replace(after=(first._replace(value=(1, 6)), *rest))
    assert differences(proposal, other) == ["clicks-0: 1, 5 before, 1, 6 now"]
    assert differences(proposal, proposal) == []
    many_rows = proposal._replace(after=tuple(first._replace(key=f"t-{number}") for number in range(20)))
    assert differences(many_rows, proposal)[-1] == "and 15 more rows"


def test_an_ended_proposal_is_over_in_every_part_of_its_page() -> None:
    proposal = approvable(sick())
    assert proposal is not None
    racks = {broker.id: f"then-{broker.id}" for broker in sick().snapshot.brokers}
    over = EndedProposal(proposal, NOW_MS - 9 * MINUTE, "there is no reason for it now", racks)
    agent = acting(proposals=(), state=lambda state: replace(state, ended_proposals=(over,)), read_journal=dict)
    text = main(read(acting_client(agent).get(f"/proposals/proposal?id={proposal.id}").text))
    assert "This proposal is over: there is no reason for it now." in text
    assert "ended 9 min ago" in text
    assert "then-1" in text, "racks are those of its planning"
    for untrue in (
        "expires in", "The guard has not judged it yet", "An ended proposal is not checked", "Checks of the guard",
        "No other change was considered", "It has no figures", "rackwise proposals approve",
        "kafka-reassign-partitions.sh",
    ):  # fmt: skip
        assert untrue not in text, untrue


def carried_out() -> tuple[Proposal, AgentView]:
    """A proposal of the last planning whose plan is done by the journal, while the look shows the replicas before."""
    proposal = approvable(sick())
    assert proposal is not None
    targets = tuple(target(one.id, one.before, one.after) for one in proposal.placements)
    plan = ReassignmentPlan(proposal.id, targets, PlanState.DONE, approved_by="ann", order=9)
    view = journal(*plan_entries.change_writes(plan), at_ms=proposal.created_ms + MINUTE)
    stale = proposal._replace(snapshot_hash="0" * 16)
    return stale, acting(proposals=(stale,), read_journal=lambda: view)


def test_a_plan_that_is_done_is_neither_open_nor_stale_before_the_next_planning() -> None:
    proposal, agent = carried_out()
    asked = acting_client(agent)
    document = read(asked.get("/proposals").text)
    assert "Nothing is proposed." in main(document)
    assert not [row for row in document.findall(".//div[@id='table-']//tbody/tr") if proposal.id in words(row)]
    (row,) = document.findall(".//div[@id='table-ended']//tbody/tr")[-1:]
    assert proposal.id in main(document)
    assert "carried out: the planned replicas are in place" in main(document)
    assert words(row)
    text = main(read(asked.get(f"/proposals/proposal?id={proposal.id}").text))
    assert "by the journal the planned replicas are in place" in text
    for untrue in ("Stale.", "approve it with", "Checks of the guard", "Approve exactly this plan"):
        assert untrue not in text, untrue


def test_a_command_that_no_agent_can_hear_is_not_offered() -> None:
    proposal = approvable(sick())
    assert proposal is not None

    def none() -> JournalState:
        raise no_journal("topic rackwise.journal", "execute.journal_topic")

    dry = acting(mode="propose", read_journal=none)
    text = main(read(acting_client(dry).get(f"/proposals/proposal?id={proposal.id}").text))
    assert "Start an agent in mode execute to approve proposals." in text
    assert "rackwise proposals approve" not in text
    beside = main(read(acting_client(acting(mode="propose")).get(f"/proposals/proposal?id={proposal.id}").text))
    assert f"rackwise proposals approve {proposal.id}" in beside
    assert "An agent in mode execute carries it out, once it is approved there or by the command below." in beside


def test_only_a_check_of_the_guard_can_fail() -> None:
    """A rule about a subject answers a question: that nothing is planned for a partition is no fault."""
    document = reassign_page()
    answers = document.findall(".//div[@id='table-others']//tbody/tr")
    assert "no" in {words(row.findall("td")[0]).strip("· ") for row in answers}
    assert not [row for row in answers if "does not hold" in words(row) or row.findall(".//*[@class='bad']")]


def test_without_a_desk_and_without_a_role_nothing_is_sent() -> None:
    proposal = approvable(sick())
    assert proposal is not None
    form = {"verb": "approve", "about": proposal.id, "plan_hash": plan_hash(proposal)}
    assert acting_client().post("/commands", form).status_code == 409
    assert acting_client().post("/commands", {**form, "verb": "format"}).status_code == 422
    assert acting_client().post("/commands", {**form, "throttle": "fast"}).status_code == 422


def test_files_of_a_proposal_are_what_kafkas_tool_reads() -> None:
    proposal = approvable(sick())
    assert proposal is not None
    answers = {
        name: client("acting").get(f"/proposals/file?id={proposal.id}&file={name}")
        for name in ("proposal", "reassignment", "rollback")
    }
    assert proposal_from_json(answers["proposal"].text) == proposal
    assert read_reassignment_json(answers["reassignment"].text) == {one.id: one.after for one in proposal.placements}
    assert read_reassignment_json(answers["rollback"].text) == {one.id: one.before for one in proposal.placements}
    name = f'attachment; filename="{proposal.id}-reassignment.json"'
    assert answers["reassignment"].headers["content-disposition"] == name
    assert client("acting").get(f"/proposals/file?id={proposal.id}&file=../x").status_code == 404
    assert client("acting").get("/proposals/file?id=p-none&file=proposal").status_code == 404


def test_an_unknown_proposal_is_not_there_and_the_journal_says_what_became_of_it() -> None:
    document = page("acting", "/proposals/proposal?id=p-222222222222", 404)
    assert "The journal has it: attempt 1 done" in main(document)
    assert "No proposal p-none is open" in main(page("sick", "/proposals/proposal?id=p-none", 404))


def test_states_of_a_proposal_are_those_of_journal_verdict_and_clock() -> None:
    proposal = approvable(sick())
    assert proposal is not None
    view: JournalState = {}
    verdict = acting().verdicts()[proposal.id]
    assert standing_of(proposal, verdict, view, (), NOW_MS).state in {"held", "proposed"}
    assert standing_of(proposal, None, view, (), proposal.expires_ms).state == "expired"
    approved = standing_of(proposal, verdict, a_journal(sick()), (), NOW_MS)
    assert approved.state == "one of two approvals"
    assert "bob@desk approved it; a second person has to approve it" in approved.sentence
