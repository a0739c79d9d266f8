"""What a report leads with: the first line, what can be saved and what ends it. No Spark is needed."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.telemetry.derived import _finding as finding_data
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId, ends_by
from pipeline.owner_rules import OwnerBook, OwnerRule
from pipeline.report.avoidable import avoidable_cost
from pipeline.report.compose import about, compose, notes
from pipeline.report.facts import LookCoverage, OpenFinding, ProposalText, ReportFacts, WeekCoverage
from pipeline.report.first import first_line
from pipeline.report.html import to_html
from pipeline.report.remedies import _FINDINGS
from pipeline.report.weeks import WEEK_MS, latest_days
from pipeline.transforms.spans import HOUR_MS
from tests.pipeline.report_facts import CROSSING, NAMED, UNKNOWN_PAIR, facts, proposal, topic_cost

HOUR_S = 3_600.0
READ_FINDINGS = _FINDINGS["consume"]
MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        pytest.param(
            facts(standing=(proposal(**NAMED),), topics=(topic_cost(),), pairs=(CROSSING,)),
            "Set client.rack for group billing: 1.9 GB/h cross racks avoidably, about $0.91 a day and $27.36 a month "
            "at $0.02 per GB.",
            id="what a group reads from elsewhere, and its bill",
        ),
        pytest.param(
            facts(
                standing=(proposal("leaders_to_readers", "topic/orders", predicted_usd_per_day=0.5),),
                topics=(topic_cost(), topic_cost(group="mailer")),
                pairs=(CROSSING,),
            ),
            "Give topic orders leaders in the racks of its readers: 3.8 GB/h cross racks avoidably, about $1.82 a day "
            f"and $54.72 a month at $0.02 per GB, predicted to change the cost by {MINUS}$0.50 a day.",
            id="one step that ends what two groups pay",
        ),
        pytest.param(
            facts(
                standing=(
                    proposal(**NAMED),
                    proposal(subject="topic/x", reason="leaders_even", predicted_usd_per_day=40.0, proposal="p-2"),
                ),
                topics=(topic_cost(),),
            ),
            "Spread the preferred leaders of topic x evenly over the racks: "
            f"predicted to change the cost by {MINUS}$40.00 a day.",
            id="a predicted gain that is larger than what can be avoided elsewhere comes first",
        ),
        pytest.param(
            facts(topics=(topic_cost(group="bill's $(x)"),), pairs=(CROSSING,)),
            "Nothing is proposed yet for what group bill's $(x) reads: 1.9 GB/h cross racks avoidably, about $0.91 a "
            "day and $27.36 a month at $0.02 per GB; run rackwise explain 'group/bill'\"'\"'s $(x)' to see why.",
            id="nothing is proposed about the dearest",
        ),
        pytest.param(
            facts(
                standing=(proposal("mend_rack_spread", "topic/orders", predicted_usd_per_day=-0.5),),
                topics=(topic_cost(),),
                pairs=(CROSSING,),
            ),
            "Nothing is proposed yet for what group billing reads: 1.9 GB/h cross racks avoidably, about $0.91 a day "
            "and $27.36 a month at $0.02 per GB; run rackwise explain group/billing to see why.",
            id="a proposal that raises the bill ends no cost",
        ),
        pytest.param(
            facts(
                topics=(
                    topic_cost(group="", path="replicate", avoidable_bytes=0.0, avoidable_usd=0.0, usd=90.0),
                    topic_cost(group="small", avoidable_usd=0.01),
                ),
                standing=(
                    proposal("mend_rack_spread", "topic/orders", cross_bytes=9e9, avoidable_bytes=1.9e9, usd=90.0),
                ),
            ),
            "Move replicas of topic orders, so that no rack holds more copies than it must: 1.9 GB/h cross racks "
            "avoidably, about $0.24 a day and $7.20 a month.",
            id="of a topic whose replication is unavoidable only what a reader pays is a step",
        ),
        pytest.param(
            facts(
                standing=(proposal("mend_rack_spread", "topic/pay", cross_bytes=9e9, avoidable_bytes=0.0),),
                topics=(topic_cost(path="replicate", group="", avoidable_bytes=0.0, avoidable_usd=0.0),),
                pairs=(CROSSING._replace(path="replicate", unavoidable_bytes=2e9),),
            ),
            "Nothing to save: what crosses racks, 2.0 GB, is unavoidable ($0.91 a day at $0.02 per GB); "
            "1 open proposal about placement.",
            id="what is unavoidable is no step, whatever is proposed about it",
        ),
        pytest.param(
            facts(standing=(proposal(unknown_bytes=3e8),)),
            "Set client.rack for group billing: for 300 MB/h it is unknown whether they cross racks.",
            id="readers of unknown rack",
        ),
        pytest.param(
            facts(
                standing=(proposal(cross_bytes=1e9, avoidable_bytes=1e9),),
                topics=(topic_cost(avoidable_bytes=1e9, avoidable_usd=None, usd=None),),
            ),
            "Set client.rack for group billing: 1.0 GB/h cross racks avoidably, without a known price.",
            id="no price",
        ),
        pytest.param(
            facts(coverage=(), standing=(proposal(**NAMED),), topics=(topic_cost(),)),
            "Set client.rack for group billing: 1.9 GB cross racks avoidably, $0.04 in the period.",
            id="no pace",
        ),
        pytest.param(
            facts(standing=(proposal("mend_rack_spread", "topic/pay"),)),
            "Move replicas of topic pay, so that no rack holds more copies than it must: its bytes are unknown.",
            id="nothing is known of the topic's bytes",
        ),
        pytest.param(
            facts(standing=(proposal("leaders_to_readers", "topic/pay", predicted_bytes_per_s=12_000.0),)),
            "Give topic pay leaders in the racks of its readers: predicted to leave 12.0 kB/s across racks.",
            id="a prediction without a price",
        ),
        pytest.param(
            facts(standing=(proposal("from_a_newer_agent", "topic/pay"),)),
            "Check proposal p-1 about topic pay: its bytes are unknown.",
            id="a reason that only a newer agent knows",
        ),
        pytest.param(
            facts(pairs=(CROSSING,), topics=(topic_cost(avoidable_bytes=0.0, avoidable_usd=0.0, unsure_bytes=2e9),)),
            "Unknown: 2.0 GB cross racks, and it is unknown whether they are avoidable.",
            id="whether it can be avoided is unknown",
        ),
        pytest.param(
            facts(pairs=(UNKNOWN_PAIR._replace(zone="SAME_ZONE"),)),
            "Nothing to do: no byte crosses racks, and there are no open proposals.",
            id="all is well",
        ),
        pytest.param(
            facts(pairs=(UNKNOWN_PAIR._replace(zone="SAME_ZONE"),), absent=("gold.proposal_outcomes",)),
            "Unknown: the table gold.proposal_outcomes does not exist yet, so no proposal can be shown.",
            id="the table of proposals is not there",
        ),
        pytest.param(
            facts(pairs=(UNKNOWN_PAIR,)),
            "Set the missing racks first: for all bytes it is unknown whether they cross racks (member without rack).",
            id="nothing is known of racks",
        ),
        pytest.param(
            facts(pairs=(UNKNOWN_PAIR._replace(bytes=3e8), UNKNOWN_PAIR._replace(zone="SAME_ZONE"))),
            "Set the missing racks first: for 300 MB it is unknown whether they cross racks (member without rack).",
            id="racks are known in part",
        ),
        pytest.param(
            facts(pairs=(CROSSING._replace(path="move"), CROSSING._replace(path="catch-up", undecided_bytes=2e9))),
            "Nothing to do: only copies, which are paid once, cross racks, and there are no open proposals.",
            id="what is copied once is not unavoidable",
        ),
        pytest.param(
            facts(
                pairs=(
                    CROSSING._replace(path="catch-up", bytes=None, usd=None, sizeless=3, undecided_bytes=None),
                    CROSSING._replace(path="move", bytes=7e9),
                    CROSSING._replace(path="replicate", unavoidable_bytes=2e9),
                ),
                standing=(proposal("mend_rack_spread", "topic/pay", cross_bytes=2e9, avoidable_bytes=0.0),),
            ),
            "Nothing to save: what crosses racks beside copies that are paid once, 2.0 GB, is unavoidable; "
            "1 open proposal about placement.",
            id="what is copied once makes nothing unknown",
        ),
        pytest.param(
            facts(pairs=(CROSSING._replace(bytes=None, usd=None, sizeless=3),)),
            "Unknown: records cross racks, and the size of some of them is unknown.",
            id="records of unknown size cross racks",
        ),
        pytest.param(
            facts(),
            "Unknown: the tables hold no traffic of this period.",
            id="looks without traffic are not taken for no crossing",
        ),
        pytest.param(
            facts(coverage=()),
            "Unknown: the tables hold no traffic of this period.",
            id="no traffic at all",
        ),
    ],
)
def test_the_first_line_says_what_to_do_first(told: ReportFacts, sentence: str):
    assert first_line(told, avoidable_cost(told)) == sentence


def test_every_avoidable_dollar_is_in_one_line_and_a_copy_of_a_reassignment_in_none():
    told = facts(
        topics=(
            topic_cost(avoidable_usd=3.0),
            topic_cost(topic="clicks", avoidable_usd=2.0),
            topic_cost(group="search", topic="clicks", avoidable_usd=4.0),
            topic_cost(path="replicate", group="", avoidable_usd=1.0),
            topic_cost(path="move", group="", avoidable_bytes=0.0, avoidable_usd=0.0, usd=50.0),
        ),
        standing=(proposal(), proposal("leaders_to_readers", "topic/clicks", proposal="p-2")),
    )
    cost = avoidable_cost(told)
    assert [(line.remedy.command, line.groups, line.topics, line.usd) for line in cost.lines] == [
        ("rackwise explain p-1", ("billing",), ("orders", "clicks"), 5.0),
        ("rackwise explain p-2", ("search",), ("clicks",), 4.0),
        ("rackwise explain topic/orders", (), ("orders",), 1.0),
    ]
    assert (cost.usd_per_day, cost.usd_per_month) == (240.0, 7_200.0)
    assert (cost.unavoidable_usd_per_day, cost.unsure_bytes) == (0.0, 0.0)
    (section,) = (one for one in compose(told).sections if one.name == "avoidable")
    assert "What was copied, $50.00 in this period, is paid once and is in no line." in section.notes


@pytest.mark.parametrize(
    ("kind", "text", "command"),
    [
        pytest.param("advise", "client.rack=a", "client.rack=a", id="the line of a configuration"),
        pytest.param("advise", "one\ntwo", "one; two", id="some lines"),
        pytest.param("advise", "1\n2\n3\n4", "rackwise explain p-1", id="many lines are in the proposal"),
        pytest.param("advise", None, "rackwise explain p-1", id="its document is not there"),
        pytest.param("leaders", None, "rackwise proposals approve p-1", id="a plan that the agent carries out"),
    ],
)
def test_a_line_has_the_setting_or_command_that_ends_it(kind: str, text: str | None, command: str):
    texts = (ProposalText("c", "p-1", text, ()),)
    told = facts(topics=(topic_cost(),), standing=(proposal(kind=kind),), texts=texts)
    assert [line.remedy.command for line in avoidable_cost(told).lines] == [command]


def test_proposals_and_findings_are_reached_from_the_line_and_those_that_are_gone_are_no_links():
    found = OpenFinding("c", "f-1", "MEMBER_WITHOUT_RACK", "WARNING", "group/billing", "it sends no client.rack", 0)
    told = facts(
        topics=(topic_cost(), topic_cost(group="search")),
        standing=(proposal(),),
        texts=(ProposalText("c", "p-1", "client.rack=a", ("f-1", "f-gone")),),
        findings=(found, found._replace(id="f-2", subject="group/search"), found._replace(id="f-3", subject="topic/x")),
    )
    page = ET.fromstring(to_html(compose(told)).removeprefix("<!DOCTYPE html>"))  # noqa: S314 our own page
    (section,) = (one for one in page.iter() if one.get("id") == "avoidable")
    links = [one.get("href", "") for one in section.iter() if one.tag.endswith("}a")]
    assert links == ["#proposal-p-1", "#finding-f-1", "#finding-f-2"]
    places = {one.get("id"): "".join(one.itertext()) for one in page.iter() if one.get("id")}
    assert [places[link.removeprefix("#")] for link in links] == ["p-1", "f-1", "f-2"]
    texts = "".join(section.itertext())
    assert "client.rack of each client" in texts, "without a proposal a finding names what ends it"
    assert "finding-f-3" not in places


def test_a_proposal_that_ends_no_read_is_not_named_as_what_ends_one():
    told = facts(topics=(topic_cost(),), standing=(proposal("set_standbys"), proposal("leaders_even", "topic/orders")))
    assert [line.remedy.proposal for line in avoidable_cost(told).lines] == [None]


def test_the_trend_is_of_the_same_days_a_week_before_or_it_says_why_there_is_none():
    last = LookCoverage("c", WEEK_MS, WEEK_MS + HOUR_MS, 2, 2 * HOUR_S, 0)
    told = facts(topics=(topic_cost(recent_usd=2.0, before_usd=3.0),), coverage=(last,))
    assert latest_days(told.coverage).week_before == (0, 2 * HOUR_MS)
    seen = told._replace(weeks=(WeekCoverage("c", 2 * HOUR_S, HOUR_S),))
    assert avoidable_cost(seen).change_usd_per_day == 24.0 - 72.0
    assert [line.change_usd_per_day for line in avoidable_cost(seen).lines] == [24.0 - 72.0]
    unpriced = seen._replace(topics=(topic_cost(recent_usd=2.0, before_usd=None),))
    for little in (told, told._replace(weeks=(WeekCoverage("c", 2 * HOUR_S, 0.4 * HOUR_S),)), unpriced):
        assert avoidable_cost(little).change_usd_per_day is None
        (section,) = (one for one in compose(little).sections if one.name == "avoidable")
        assert section.notes[0].startswith("No trend is shown: ")
        assert "against the week before" not in [head.title for head in section.grid.heads]
    assert "there is no look of the week before (1970-01-01 00:00 to 1970-01-01 02:00 UTC)" in str(compose(told))


def test_a_cost_that_ended_counts_in_the_trend_and_has_no_line():
    ended = topic_cost(group="gone", cross_bytes=0.0, usd=0.0, avoidable_bytes=0.0, avoidable_usd=0.0, recent_usd=0.0)
    told = facts(topics=(topic_cost(), ended._replace(before_usd=1.0)), weeks=(WeekCoverage("c", HOUR_S, HOUR_S),))
    cost = avoidable_cost(told)
    assert [line.groups for line in cost.lines] == [("billing",)]
    assert cost.change_usd_per_day == pytest.approx(24 * (0.038 - 1.0))


def test_owners_are_those_of_the_group_else_of_the_topic():
    rules = (
        OwnerRule("group", "bill*", "payments", "CC-1"),
        OwnerRule("topic", "orders", "sales"),
        OwnerRule("topic", "[!o]*", "web"),
    )
    book = OwnerBook(rules)
    found = [book.of(*names) for names in (("orders", "billing"), ("orders", "x"), ("clicks",), ("other", "y"))]
    assert [owner and owner.team for owner in found] == ["payments", "sales", "web", None]
    told = facts(topics=(topic_cost(), topic_cost(group="y", topic="other", avoidable_usd=0.01)), owners=rules)
    sections = {section.name: section for section in compose(told).sections}
    avoidable = sections["avoidable"].grid
    at = [head.title for head in avoidable.heads].index("owner")
    assert [row[at] for row in avoidable.rows] == ["payments", "no owner"]
    assert [row[:2] for row in sections["owners"].grid.rows] == [("payments", "CC-1"), ("no owner", "")]
    assert "owner" not in [head.title for head in compose(facts(topics=(topic_cost(),))).sections[0].grid.heads]


HOURS = st.lists(st.floats(0.0, 2 * HOUR_S), min_size=1, max_size=50)


@given(st.lists(HOURS, min_size=1, max_size=5))
def test_looks_never_cover_more_than_there_is(clusters: list[list[float]]):
    """Of several clusters, and of an hour that is run through twice because a clock is set back."""
    rows = tuple(
        LookCoverage(f"c-{at}", 0, (len(hours) - 1) * HOUR_MS, len(hours), sum(hours), 0, twice_s=_beyond(hours))
        for at, hours in enumerate(clusters)
    )
    told = facts(coverage=rows)
    assert told.covered_s <= told.span_s + 1e-6
    said = re.search(r"looks cover ([\d,.]+) of ([\d,.]+) h", about(told))
    assert said is not None
    covered, hours = (float(number.replace(",", "")) for number in said.groups())
    assert covered <= hours


def _beyond(hours: list[float]) -> float:
    return sum(max(seconds - HOUR_S, 0.0) for seconds in hours)


def test_the_time_covered_is_said_with_what_it_is_of():
    first, second = LookCoverage("a", 0, 2 * HOUR_MS, 3, 7_740.0, 0), LookCoverage("b", 0, 2 * HOUR_MS, 3, 7_740.0, 0)
    assert "looks cover 4.3 of 6.0 h, summed over 2 clusters: a, b." in about(facts(coverage=(first, second)))
    twice = first._replace(seconds=15_480.0, twice_s=4_680.0)
    assert "looks cover 3.0 of 3.0 h; 1 cluster: a." in about(facts(coverage=(twice,)))
    assert any("78 min more than their hours have" in note for note in notes(facts(coverage=(twice,))))


@pytest.mark.parametrize("reason", FindingReason)
def test_a_finding_of_telemetry_is_known_by_its_reason(reason: FindingReason):
    """A line without a proposal says what ends the finding, where that ends what the line costs."""
    of_group = Finding(
        reason=reason,
        subject=SubjectId("group", "billing"),
        sentence="s",
        evidence=(),
        severity=FindingSeverity.WARNING,
        since_ms=0,
    )
    written = finding_data(of_group)
    found = OpenFinding("c", written.id, written.reason, written.severity, written.subject, "s", 0)
    (line,) = avoidable_cost(facts(topics=(topic_cost(),), findings=(found,))).lines
    if reason in READ_FINDINGS:
        assert (line.remedy.todo, line.remedy.findings) == (ends_by(reason), (found,))
    else:
        assert (line.remedy.todo, line.remedy.findings) == ("See why its reads cross racks", ())


@pytest.mark.parametrize(
    ("path", "subject", "reason", "ends"),
    [
        pytest.param("consume", "topic/orders", "REPLICAS_SHARE_RACK", True, id="a topic's replicas"),
        pytest.param("consume", "cluster/c", "SELECTOR_NOT_RACK_AWARE", True, id="the cluster's selector"),
        pytest.param("consume", "broker/3", "BROKER_RACK_MISSING", True, id="a broker without a rack"),
        pytest.param("consume", "group/other", "MEMBER_WITHOUT_RACK", False, id="another group's"),
        pytest.param("replicate", "topic/orders", "REPLICAS_SHARE_RACK", True, id="copies, by replicas"),
        pytest.param("replicate", "cluster/c", "SELECTOR_NOT_RACK_AWARE", False, id="copies, by no selector"),
        pytest.param("produce", "topic/orders", "REPLICAS_SHARE_RACK", False, id="no finding ends what producers send"),
    ],
)
def test_a_finding_of_a_topic_broker_or_cluster_ends_what_it_can(path: str, subject: str, reason: str, ends: bool):
    found = OpenFinding("c", "f-1", reason, "WARNING", subject, "s", 0)
    cost = topic_cost(path=path, group="billing" if path == "consume" else "", topic="orders")
    (line,) = avoidable_cost(facts(topics=(cost,), findings=(found,))).lines
    assert line.remedy.findings == ((found,) if ends else ())
    assert (line.remedy.todo == ends_by(FindingReason[reason])) == ends


def test_of_findings_those_of_the_group_come_before_its_topics_and_brokers():
    of_group = OpenFinding("c", "f-1", "MEMBER_WITHOUT_RACK", "WARNING", "group/billing", "s", 0)
    of_broker = of_group._replace(id="f-2", reason="BROKER_RACK_MISSING", subject="broker/3")
    (line,) = avoidable_cost(facts(topics=(topic_cost(),), findings=(of_broker, of_group))).lines
    assert line.remedy.findings == (of_group,)
