"""Proposals, moves, time line, what if and reports in every world: valid, harmless, honest about the unknown."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lxml.etree import _Element as HtmlElement

from agent.act.journal.journal_topic import no_journal
from agent.documents.proposals import CommandAnswer
from agent.journal import plan_entries
from agent.journal.approvals import plan_hash
from agent.journal.commands import CommandVerb
from agent.propose.codec import proposal_from_json, read_reassignment_json
from agent.values.journal import JournalState
from agent.values.proposal import Proposal
from agent.values.reassignment import PlanState, ReassignmentPlan
from agent.web.access.person import SignedInPerson
from agent.web.access.refusals import AccessRefused
from agent.web.agent_view import AgentView
from agent.web.commands import STALE, CommandDesk, WantedCommand
from agent.web.cycle_history import CycleSummary, EndedProposal, HistoryEvent, HistoryKind
from agent.web.page.proposal import differences
from agent.web.page.proposal_standing import standing_of
from agent.web.page.timeline import own_hours
from config.foreign_text import is_unsafe
from tests.foreign_texts import POISONS
from tests.journals import journal
from tests.web.page.acting_worlds import (
    ANN,
    MINUTE,
    NOW_MS,
    VIEWER,
    a_journal,
    acting,
    acting_client,
    approvable,
    page_app,
    target,
)
from tests.web.page.answers import PageClient, page_client, read, words
from tests.web.page.worlds import WORLDS, sick

PATHS = (
    "/proposals",
    "/moves",
    "/moves?view=table",
    "/timeline",
    "/timeline?hours=24&view=table",
    "/whatif",
    "/reports",
)


@cache
def client(world: str) -> PageClient:
    return acting_client() if world == "acting" else page_client(WORLDS[world]())


def page(world: str, path: str, status: int = 200) -> HtmlElement:
    answer = client(world).get(path)
    assert answer.status_code == status, answer.text[:500]
    return read(answer.text)


def main(document: HtmlElement) -> str:
    found = document.find(".//main")
    assert found is not None
    return words(found)


def every_page() -> list[tuple[str, str]]:
    pages = [(world, path) for world in (*WORLDS, "acting") for path in PATHS]
    pages += [
        (world, f"/proposals/proposal?id={one.id}")
        for world in ("sick", "unknown", "hostile")
        for one in WORLDS[world]().proposals[:6]
    ]
    pages += [("acting", f"/proposals/proposal?id={one.id}") for one in sick().proposals]
    pages += [("acting", f"/moves/plan?id=p-{name}") for name in ("111111111111", "222222222222", "333333333333.2")]
    return [*pages, ("acting", "/proposals/proposal?id=p-0ld0ld0ld0ld"), ("sick", "/whatif?remove-rack=eu-1c")]


@pytest.mark.parametrize(("world", "path"), every_page())
def test_a_view_is_valid_has_nothing_inline_and_words_for_every_picture(world: str, path: str) -> None:
    document = page(world, path)
    elements = [one for one in document.iter() if isinstance(one.tag, str)]
    assert not [one for one in elements if one.tag == "style" or "style" in one.attrib]
    assert not [name for one in elements for name in one.attrib if str(name).lower().startswith("on")]
    assert all(one.get("src") and not (one.text or "").strip() for one in elements if one.tag == "script")
    ids = [one.get("id") for one in elements if one.get("id")]
    assert len(ids) == len(set(ids))
    for picture in (one for one in elements if one.tag in {"svg", "img", "meter"}):
        assert picture.get("aria-label") or picture.get("alt") or picture.get("aria-hidden") == "true"
    fields = [one for one in elements if one.tag in {"input", "select", "textarea"} and one.get("type") != "hidden"]
    for field in fields:
        assert any(parent.tag == "label" for parent in field.iterancestors()) or field.get("aria-label")
    for form in (one for one in elements if one.tag == "form" and one.get("method") == "post"):
        assert "csrf" in [field.get("name") for field in form.iter("input")]
    assert len(document.findall(".//h1")) == 1
    assert not re.search(r"\bNone\b|\bnan\b|Undefined|<built-in|object at 0x", main(document))


def test_what_strangers_chose_is_shown_escaped_everywhere() -> None:
    poisons = [text for text in POISONS.values() if any(map(is_unsafe, text))]
    paths = [*PATHS, *(f"/proposals/proposal?id={one.id}" for one in WORLDS["hostile"]().proposals)]
    for world, path in [*(("hostile", path) for path in paths), ("acting", "/timeline"), ("acting", "/moves")]:
        written = client(world).get(path).text
        assert "<script>alert" not in written
        assert "<script>eve" not in written
        assert not [text for text in poisons if text in written]
        unsafe = {char for char in written if is_unsafe(char) and char != "\n"}
        assert not unsafe, (path, sorted(map(hex, map(ord, unsafe))))


# --- proposals -----------------------------------------------------------------------------------------------------


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


# --- moves ---------------------------------------------------------------------------------------------------------


def test_moves_show_progress_by_partition_and_broker_with_rate_and_time_left() -> None:
    text = main(page("acting", "/moves"))
    assert (
        "1 plan is in progress: 1 of 3 partitions done; 1 partition moves now; 1 copy at 4.1 MB/s, 56 s left." in text
    )
    assert "throttled to 50.0 MB/s per broker" in text
    assert "172 MB of 400 MB, 56 s left" in text
    table = page("acting", "/moves?view=table").find(".//div[@id='table-brokers']")
    assert table is not None
    assert "5 1 172 MB 400 MB 4.1 MB/s 56 s" in words(table)
    rows = client("acting").get("/moves?format=csv&table=throttles").text.splitlines()
    assert rows[1] == "broker/3,leader.replication.throttled.rate,50000000,p-111111111111"
    plan = main(page("acting", "/moves/plan?id=p-111111111111"))
    assert "moves, 43 %" in plan
    assert "moved as planned" in plan
    assert "not begun" in plan


def test_actions_on_a_plan_are_forms_for_who_may_and_commands_for_others() -> None:
    document = page("acting", "/moves")
    verbs = {one.get("value") for one in document.findall(".//input[@name='verb']")}
    assert verbs == {"pause", "cancel", "rollback"}
    viewer = acting_client(person=VIEWER).get("/moves").text
    assert 'name="verb"' not in viewer
    assert "rackwise reassign rollback p-111111111111" in viewer
    approver = ANN._replace(roles=frozenset(role for role in ANN.roles if role.value != "operate"))
    cut = acting_client(person=approver).get("/moves").text
    assert 'value="cancel"' in cut
    assert 'value="pause"' not in cut


def test_moves_of_other_tools_are_told_apart_and_unreported_ones_are_unknown() -> None:
    assert "clicks-3" in main(page("acting", "/moves"))
    text = main(page("unknown", "/moves"))
    assert "nothing moves now" in text.lower() or "unknown" in text


# --- time line -----------------------------------------------------------------------------------------------------


def test_the_time_line_hatches_what_is_unknown_and_has_a_mark_for_every_event() -> None:
    document = page("acting", "/timeline")
    assert "what was before this agent's start 5 h ago is unknown" in main(document)
    titles = [words(one) for one in document.iter("title")]
    assert "unknown: before this agent's start" in titles
    assert "unknown: no look" in titles
    for kind in ("rack change", "rebalance", "move began", "move ended", "finding began", "finding ended", "plan"):
        assert any(f" {kind}: " in title for title in titles), kind
    rows = client("acting").get("/timeline?format=json&table=curve").json()
    failed = [row for row in rows if row["local_share"] is None]
    assert len(failed) == 9
    assert all(row["cross_rack_bytes_per_s"] is None and row["reads"] is None for row in failed)
    events = client("acting").get("/timeline?format=csv&table=events").text
    assert events.count("look failed") == 1
    ids = [one.get("id") for one in document.iter() if one.get("id")]
    assert len(ids) == len(set(ids)), "a picture that is hidden must not hold the pattern of the one that is shown"
    legend = document.find(".//ul[@aria-label='Events']")
    assert legend is not None
    assert len(legend) == 9, "each kind of event once, and what has the common sign"
    empty = main(page("empty", "/timeline"))
    assert "How many reads are local is unknown" in empty


def test_a_time_line_tells_no_reads_from_unknown_ones_and_counts_what_is_not_kept() -> None:
    event = HistoryEvent(NOW_MS, HistoryKind.REBALANCE, "group/g", "group g has rebalanced")

    def told(**row: Any) -> str:
        seen = CycleSummary(NOW_MS, None, None, None, None, 0, 0, (event,) * 3, more_events=7)
        agent = acting(state=lambda state: replace(state, past=(seen._replace(**row),)), read_journal=dict)
        return acting_client(agent).get("/timeline?hours=1").text

    text = told()
    assert "No group reads anything; 10 events in 1 hour, of which 7 are not kept" in text
    assert "Of a minute 24 events are kept: 7 more events were not." in text
    assert 'id="curve-plot"' not in text, "one look makes no curve"
    assert "How many reads are local is unknown" in told(gaps=1)
    assert "How many reads are local is unknown" in told(findings=None)
    assert 'id="curve-plot"' in acting_client().get("/timeline").text


@pytest.mark.parametrize(("age_ms", "hours"), [(0, 1), (3_600_000, 1), (3_600_001, 6), (40_000_000, 6)])
def test_the_time_line_of_a_young_agent_begins_an_hour_ago(age_ms: int, hours: int) -> None:
    assert own_hours(NOW_MS - age_ms, NOW_MS) == hours


# --- what if -------------------------------------------------------------------------------------------------------


def test_a_question_is_an_address_and_its_answer_has_three_columns() -> None:
    document = page("sick", "/whatif?remove-rack=eu-1c&add-member=billing%3Deu-1a")
    text = main(document)
    assert "no rack eu-1c" in text
    assert "rackwise simulate --add-member billing=eu-1a --remove-rack eu-1c" in text
    heads = [words(one) for one in document.findall(".//div[@id='table-groups']//th")]
    assert heads[:5] == ["Group", "Now", "Its own assignor then", "With the plug-in then", "Optimum then"]
    alone = page("sick", "/whatif?add-member=billing%3Deu-1a")
    heads = [words(one) for one in alone.findall(".//div[@id='table-groups']//th")]
    assert heads[:4] == ["Group", "Now", "Its own assignor then", "Optimum then"], "no group that brokers assign"
    rows = client("sick").get("/whatif?format=json&table=groups&remove-rack=eu-1c").json()
    assert {"group", "now", "own_assignor", "optimum"} <= set(rows[0])


def test_an_answer_about_a_group_that_brokers_assign_has_a_column_with_the_plug_in() -> None:
    document = page("sick", "/whatif?add-member=fraud-check%3Deu-1b")
    heads = [words(one) for one in document.findall(".//div[@id='table-groups']//th")]
    assert heads[:5] == ["Group", "Now", "Its own assignor then", "With the plug-in then", "Optimum then"]
    (row,) = client("sick").get("/whatif?format=json&table=groups&add-member=fraud-check%3Deu-1b").json()
    assert row["plugin_gain"] == "nothing to gain: every rack has a replica"
    assert row["plugin"]["crossing"] == 0


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("remove-rack=none", "No answer: there is no rack"),
        ("add-broker=x", "add-broker x cannot be read: it is not ID=RACK"),
        ("remove-broker=1;drop", "cannot be read"),
        ("add-member=%3Cscript%3Ealert(1)%3C/script%3E%3Deu-1a", "No answer:"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_in_words(question: str, said: str) -> None:
    document = page("sick", f"/whatif?{question}")
    assert said in main(document)
    assert document.find(".//div[@id='table-groups']") is None


# --- reports -------------------------------------------------------------------------------------------------------

GOLDEN = Path(__file__).parents[2] / "pipeline" / "golden" / "report"


def reporting(folder: Path | None) -> PageClient:
    http = {} if folder is None else {"reports": str(folder)}
    return acting_client(acting(http=http))


def test_the_pipelines_report_is_shown_as_tables_and_a_scatter() -> None:
    asked = reporting(GOLDEN)
    document = read(asked.get("/reports").text)
    assert "Set client.rack for group billing: 2.5 GB/h cross racks" in main(document)
    points = document.findall(".//circle[@class='point']")
    assert len(points) == 2
    rows = asked.get("/reports?format=csv&table=outcomes").text.splitlines()
    assert rows[0] == "proposal,kind,subject,predicted,measured,error_share"
    assert rows[1] == "p-555555555555,reassign,topic/payments,100000.0,104000.0,0.04"
    ledger = read(asked.get("/reports?file=ledger.csv").text)
    assert ledger.find(".//div[@id='table-table']//tbody/tr") is not None
    copied = main(read(asked.get("/reports?of=copied").text))
    assert "unknown" in copied
    assert asked.get("/reports?file=../secrets.csv").status_code == 404


def test_foreign_files_are_data_alone(tmp_path: Path) -> None:
    (tmp_path / "evil.csv").write_text("<script>alert(1)</script>,=cmd()\n\u202eb,=1+1\n,\n")
    (tmp_path / "figure.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    (tmp_path / "secret.svg").symlink_to("/etc/passwd")
    (tmp_path / "run.js").write_text("alert(1)")
    asked = reporting(tmp_path)
    written = asked.get("/reports?file=evil.csv").text
    assert "<script>alert" not in written
    assert "\u202e" not in written
    assert "'=1+1" in asked.get("/reports?file=evil.csv&format=csv&table=table").text
    figure = asked.get("/reports/figure?name=figure.svg")
    assert figure.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in figure.headers["content-security-policy"]
    assert figure.headers["x-content-type-options"] == "nosniff"
    for name in ("secret.svg", "run.js", "../figure.svg", "evil.csv", ""):
        assert asked.get("/reports/figure", {"name": name}).status_code == 404, name


def test_without_a_folder_of_reports_the_view_says_how_to_have_one(tmp_path: Path) -> None:
    assert "Set http.reports" in reporting(None).get("/reports").text
    assert "has no report yet" in reporting(tmp_path).get("/reports").text
    assert "cannot be read" in reporting(tmp_path / "none").get("/reports").text


def test_a_plan_of_a_newer_rackwise_makes_the_journal_unreadable() -> None:
    view = dict(a_journal(sick()))
    entry = view["plan/p-111111111111"]
    view["plan/p-111111111111"] = entry._replace(value={**entry.value, "state": "SOMETHING_NEW"})
    asked = acting_client(acting(read_journal=lambda: view))
    assert "The journal cannot be read" in main(read(asked.get("/moves").text))
    assert asked.get("/proposals").status_code == 200


# --- commands ------------------------------------------------------------------------------------------------------


class AnsweringDesk(CommandDesk):
    """Takes commands and gives one answer, in the place of a leading agent."""

    def __init__(self, refusal: AccessRefused | None = None) -> None:
        self.refusal = refusal
        self.heard: list[tuple[str, WantedCommand]] = []

    def ask(self, person: SignedInPerson, wanted: WantedCommand) -> CommandAnswer:
        self.heard.append((person.name, wanted))
        if self.refusal is not None:
            raise self.refusal
        return {"command": "c1", "done": True, "sentence": "approved"}


def commanding(desk: CommandDesk) -> PageClient:
    return PageClient(page_app(acting(), desk=desk))


def test_a_form_sends_exactly_what_was_shown_as_the_signed_in_person_and_leads_to_the_answer() -> None:
    proposal, desk = approvable(sick()), AnsweringDesk()
    assert proposal is not None
    form = {
        "csrf": "x", "verb": "approve", "about": proposal.id, "plan_hash": plan_hash(proposal), "attempt": "1",
        "reason": "it is time", "throttle": "50MB/s", "max_moves": "7",
    }  # fmt: skip
    answer = commanding(desk).post("/commands", form)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/proposals/proposal?id={proposal.id}&told=c1"
    wanted = WantedCommand(CommandVerb.APPROVE, proposal.id, plan_hash(proposal), "it is time", 50_000_000, 7, 1)
    assert desk.heard == [("ann", wanted)]
    told = main(read(acting_client().get(answer.headers["location"]).text))
    assert "Done: paused p-111111111111" in told


def test_a_form_leads_back_to_this_server_alone() -> None:
    for back, expected in (
        ("/moves/plan?id=p-1&told=c0", "/moves/plan?id=p-1&told=c1"),
        ("/moves", "/moves?told=c1"),
        ("https://example.org/", "/?told=c1"),
        ("//example.org/x", "/?told=c1"),
    ):
        desk = AnsweringDesk()
        answer = commanding(desk).post("/commands", {"verb": "pause", "about": "", "back": back})
        assert answer.headers["location"] == expected
        assert desk.heard[0][1].proposal_id is None


def test_a_refusal_of_the_leading_agent_is_a_page_that_says_why() -> None:
    proposal = approvable(sick())
    assert proposal is not None
    desk = AnsweringDesk(AccessRefused(409, "the budget is used up", todo="Wait.", kind=STALE))
    form = {"verb": "approve", "about": proposal.id, "plan_hash": plan_hash(proposal)}
    answer = commanding(desk).post("/commands", form)
    assert answer.status_code == 409
    assert "Another plan is proposed under this id by now. the budget is used up. Wait." in main(read(answer.text))
    late = commanding(AnsweringDesk(AccessRefused(504, "No agent answered within 20 s", why="it is gone")))
    answer = late.post("/commands", {"verb": "cancel", "about": "p-111111111111"})
    assert answer.status_code == 504
    assert "No agent answered within 20 s: it is gone." in main(read(answer.text))
