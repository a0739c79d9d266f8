"""What the page says agrees with itself: savings, names, what holds a proposal, and a journal that is not there."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from agent.act.journal.journal_topic import no_journal
from agent.documents.doctor import doctor_checks, doctor_rows
from agent.errors import JournalUnavailable
from agent.explain.doctor_fixes import GroupFaultCosts
from agent.journal.entries import JournalState
from agent.values.limits import Limits, PriceLimits
from agent.values.proposal import Hold, HoldReason, PredictedEffect, ProposalKind
from agent.web.page.environment import short_client, subject_words
from agent.web.page.overview import FirstStep, first_steps, rank
from agent.web.page.proposal_standing import standing_of
from agent.web.page.proposals import known_savings
from tests.builders import an_observation, reader
from tests.web.page.acting_worlds import NOW_MS, acting, acting_client, approvable
from tests.web.page.answers import read, words
from tests.web.page.test_operating_views import main, page
from tests.web.page.worlds import sick, watched


def test_what_holds_a_proposal_keeps_the_case_of_names() -> None:
    proposal = approvable(sick())
    assert proposal is not None
    hold = Hold(proposal.id, HoldReason.EXCLUDED, "payments matches no pattern of execute.include_topics (2)")
    said = standing_of(proposal, hold, {}, (), NOW_MS).sentence
    assert said == "Held: payments matches no pattern of execute.include_topics (2)."


def test_a_rebalance_for_warm_ups_has_one_row_for_each_task() -> None:
    found = next(one for one in sick().proposals if one.kind is ProposalKind.TRIGGER and " 0_0 " in str(one.before))
    rows = page("sick", f"/proposals/proposal?id={found.id}").findall(".//div[@id='table-changes']//tbody/tr")
    told = [words(row) for row in rows]
    assert [one.split()[:2] for one in told] == [["task", "0_0"], ["task", "0_2"]]
    assert all("active in" in one and "warm-up in" in one for one in told)


def test_a_question_leads_to_its_answer() -> None:
    for query in ("", "?remove-rack=eu-1c", "?remove-rack=there-is-none"):
        document = page("sick", f"/whatif{query}")
        form = document.find(".//form[@class='questions']")
        assert form is not None
        assert form.get("action") == "/whatif#answer"
        answers = [one for one in document.iter() if one.get("id") == "answer"]
        assert len(answers) == bool(query), query


def test_a_journal_that_cannot_be_read_is_said_and_nothing_is_taken_for_done() -> None:
    def broken() -> JournalState:
        raise JournalUnavailable("the journal did not answer", why="it timed out")

    asked = acting_client(acting(read_journal=broken))
    text = main(read(asked.get("/moves").text))
    assert "The journal cannot be read, so approvals, plans and throttles of rackwise are unknown" in text
    assert "Whether a plan of rackwise is in progress is unknown." in text
    assert "No throttle of rackwise is set" not in text
    assert "nothing moves" not in text.lower()
    for key in ("throttles", "plans"):
        count = read(asked.get("/moves").text).find(f".//div[@id='table-{key}']//p[@role='status']")
        assert count is not None
        assert words(count) == "unknown", "what cannot be read is not none"
    rounds = main(read(asked.get("/warmups").text))
    assert "unknown the journal did not answer" in rounds
    assert "No rebalance was asked for" not in rounds

    def none() -> JournalState:
        raise no_journal("topic rackwise.journal", "execute.journal")

    missing = read(acting_client(acting(read_journal=none)).get("/moves").text)
    assert "There is no journal." in main(missing)
    assert "The journal is none" not in main(missing)
    assert main(missing).count("There is no topic rackwise.journal") == 1
    notices = [one.get("class") for one in missing.iter("p") if "notice" in (one.get("class") or "")]
    assert "notice warn" not in notices, "that no agent acts here is no fault"


def test_what_mends_a_grave_fault_is_not_put_off_because_it_costs_a_cent() -> None:
    def step(kind: str, gravity: int, usd: float | None) -> FirstStep:
        return FirstStep(kind, gravity, kind, Markup("/"), kind, usd, None)

    steps = [step("advise", 1, None), step("leaders", 2, 0.0), step("reassign", 0, -0.01), step("trigger", 2, 0.02)]
    assert [one.kind for one in sorted(steps, key=rank)] == ["trigger", "reassign", "advise", "leaders"]


def test_each_group_costs_what_it_has_of_a_fault_that_several_share() -> None:
    """Two groups in a rack that no broker has, a small and a large one, and one that sends no rack."""
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", *[(1, 2), (2, 3), (3, 1)] * 2)
    answers.group("large", *(reader(f"l{n}", "zz", f"orders-{n} orders-{n + 3}") for n in range(3)))
    answers.group("small", reader("s", "zz", "orders-0"), reader("t", "a", "orders-1 orders-2 orders-3 orders-4"))
    answers.group("mute", reader("m", None, "orders-0 orders-1 orders-2"))
    look = watched(answers, Limits(price=PriceLimits(usd_per_gb=0.02)))
    (check,) = [row for row in doctor_rows(doctor_checks(look), look) if row["check"] == "clients send client.rack"]
    of_groups = GroupFaultCosts(look)
    costs = {name: of_groups.of(check["check"], name) for name in ("large", "small", "mute", "none")}
    assert costs["mute"].usd_per_day is None, "its reads may cross"
    assert costs["mute"].at_most_usd_per_day
    assert costs["none"].usd_per_day is None
    known = [costs[name].usd_per_day or 0.0 for name in ("large", "small")]
    assert known[0] > known[1] > 0
    assert check["usd_per_day"] == pytest.approx(sum(known))
    steps = first_steps(look, doctor_rows(doctor_checks(look), look))
    said = {one: step.usd_per_day for one in costs for step in steps if f" of {one}" in step.sentence}
    assert {name: said[name] for name in ("large", "small")} == dict(zip(("large", "small"), known, strict=True))
    assert said.get("mute") is None


def test_names_of_streams_are_short_where_a_whole_one_tells_nothing_more() -> None:
    client = "shop-1c448f83-b422-42d9-9040-3194087a7094-StreamThread-2-consumer"
    assert short_client(client, 20) == "1c448f83…, thread 2"
    assert short_client("1c448f83-b422-42d9-9040-3194087a7094", 20) == "1c448f83…"
    assert short_client("orders-consumer-1", 20) == "orders-consumer-1"
    assert subject_words("task/shop/0_1/1c448f83-b422-42d9-9040-3194087a7094") == "task/shop/0_1"
    assert subject_words("task/a/b/0_1/c1") == "task/a/b/0_1"
    assert subject_words("topic/task/0_1/x") == "topic/task/0_1/x"
    about = [words(row.findall("td")[1]) for row in page("sick", "/findings").findall(".//tbody/tr")]
    assert "task/shop-app/0_0" in about


def test_what_proposals_save_is_the_same_in_every_view_and_what_one_costs_is_not_taken_off() -> None:
    told = "those with a known saving take $4.84 a day off the bill"
    assert told in words(page("sick", "/"))
    lead = words(page("sick", "/proposals").find(".//p[@class='lead big']"))
    assert told in lead
    assert "can be approved" not in lead, "a dry run approves nothing"
    proposal = sick().proposals[0]
    costs = [
        proposal._replace(predicted=PredictedEffect(usd_per_day_before=before, usd_per_day_after=after))
        for before, after in ((3.0, 1.0), (1.0, 2.5), (2.0, None))
    ]
    assert known_savings(costs) == "$2.00"
    assert known_savings(costs[1:]) is None
