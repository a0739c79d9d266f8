"""Proposals, moves, time line, what if and reports in every world: valid, harmless, honest about the unknown."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lxml.etree import _Element as HtmlElement

from agent.documents.proposals import CommandAnswer
from agent.journal.approvals import plan_hash
from agent.journal.commands import CommandVerb
from agent.journal.entries import JournalWrite
from agent.journal.plan_entries import change_writes
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
)
from agent.web.access.person import SignedInPerson
from agent.web.access.request_checks import AccessRefused
from agent.web.commands import STALE, CommandDesk, WantedCommand
from agent.web.cycle_history import CycleSummary, HistoryEvent, HistoryKind
from agent.web.page.timeline import own_hours
from config.foreign_text import is_unsafe
from tests.foreign_texts import POISONS
from tests.journals import journal
from tests.web.page.acting_worlds import (
    ANN,
    NOW_MS,
    TARGETS,
    VIEWER,
    a_journal,
    acting,
    acting_client,
    approvable,
    page_app,
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
    assert rows[1] == "broker/3,leader.replication.throttled.rate,50000000,,p-111111111111"
    plan = main(page("acting", "/moves/plan?id=p-111111111111"))
    assert "moves, 43 %" in plan
    assert "moved as planned" in plan
    assert "not begun" in plan


def moved_since(*writes: tuple[JournalWrite, ...]) -> PageClient:
    """The page of a look beside a journal in which these were written two seconds after it."""
    look = sick()
    view = journal(*writes, at_ms=look.snapshot.taken_ms + 2_000, view=a_journal(look))
    return acting_client(acting(read_journal=lambda: view))


def test_a_move_that_has_ended_since_the_look_is_not_another_tools_and_does_not_move() -> None:
    ends = tuple(PartitionEnd(one.id, PartitionEndReason.DONE) for one in TARGETS[:2])
    batch = Batch("p-111111111111", 1, TARGETS[:2], BatchState.CLOSED, sendings=1, ends=ends)
    text = main(read(moved_since(change_writes(batch)).get("/moves").text))
    assert "1 plan is in progress: 2 of 3 partitions done. " in text, "nothing moves by the journal, nor by the page"
    assert "2 of 3 partitions done, 0 moving" in text
    assert "The brokers report no reassignment of another tool." in text
    assert "No replica is being copied." in text


def test_a_plan_shows_what_takes_it_back_and_which_it_takes_back_with_their_own_copies() -> None:
    done = ReassignmentPlan("p-444444444444", TARGETS[:1], PlanState.DONE, approved_by="ann@desk", order=8)
    back = ReassignmentPlan("p-444444444444-back", tuple(map(ReassignmentTarget.back, TARGETS[:1])), order=9)
    client = moved_since(change_writes(done), change_writes(back))
    text = client.get("/moves/plan?id=p-444444444444").text
    assert "p-444444444444-back is taking it back: 0 of 1 partition done, 0 moving." in main(read(text))
    assert "/moves/plan?id=p-444444444444-back" in text
    assert "copy at" not in main(read(text)), "the copy is of another plan"
    assert "Roll back…" not in text
    assert "It takes p-444444444444 back." in main(read(client.get("/moves/plan?id=p-444444444444-back").text))
    ended = moved_since(change_writes(done), change_writes(back._replace(state=PlanState.DONE)))
    text = main(read(ended.get("/moves/plan?id=p-444444444444").text))
    assert "p-444444444444-back has taken it back" in text
    assert "done, taken back" in text
    assert "done; rollback: p-444444444444-back" in main(read(ended.get("/moves").text))


def test_a_list_without_ended_proposals_does_not_say_that_none_ever_ended() -> None:
    agent = acting(state=lambda state: replace(state, ended_proposals=()))
    text = main(read(acting_client(agent).get("/proposals").text))
    assert "No proposal has ended" not in text
    assert "one that ended and is made again is among the open ones" in text


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
    assert "71 % to 76 % of all reads are local" in told(reads=102, local=72, unknown=6)
    assert "71 % to 76 % of reads are local at the end" in told(reads=102, local=72, unknown=6)
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


def test_standbys_are_offered_for_streams_applications_alone() -> None:
    document = page("sick", "/whatif")
    offered = document.findall(".//datalist[@id='suggest-standbys']/option")
    assert [one.get("value") for one in offered] == ["shop-app=1"]
    fields = document.findall(".//input[@name='standbys']")
    assert {one.get("placeholder") for one in fields} == {"shop-app=1"}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("remove-rack=none", "No answer: there is no rack"),
        ("add-broker=x", "add-broker x cannot be read: it is not ID=RACK"),
        (
            "remove-rack=eu-1c&remove-brokr=2",
            "No answer: remove-brokr: there is no such change Did you mean remove-broker?",
        ),
        ("remove-brokr=2", "Changes: add-member, remove-member, strategy, standbys,"),
        ("%1b[2J=2", "No answer: \\x1b[2J: there is no such change"),
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
