"""How figures are written, and which sentence comes first: no Spark is needed."""

from __future__ import annotations

import pytest

from agent.errors import BadInput
from agent.values.proposal import ProposalReason
from config.foreign_text import shortened
from pipeline.commands.report import _formats
from pipeline.report import words
from pipeline.report.advice import todo
from pipeline.report.avoidable import avoidable_cost
from pipeline.report.balance import LedgerBalance
from pipeline.report.compose import compose, notes
from pipeline.report.csvs import to_csv
from pipeline.report.document import ColumnHead, ReportGrid, ValueUnit
from pipeline.report.facts import CountedInput, LookCoverage, ReportFacts
from pipeline.report.first import by_worth, first_line
from pipeline.report.html import to_html
from pipeline.report.markdown import escaped, to_markdown
from pipeline.report.period import ReportPeriod, period_of
from tests.pipeline.report_facts import CROSSING, NAMED, cost, facts, proposal

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(words.money(18.4), "$18.40", id="dollars have cents"),
        pytest.param(words.money(1234.5), "$1,234.50", id="many dollars have them too"),
        pytest.param(words.money(0.00312), "$0.0031", id="parts of a cent keep two digits"),
        pytest.param(words.money(-0.5, sign=True), "\N{MINUS SIGN}$0.50", id="a saving has its sign before the dollar"),
        pytest.param(words.money(2.0, sign=True), "+$2.00", id="a rise has a plus"),
        pytest.param(words.money(0.0), "$0.00", id="nothing is nothing"),
        pytest.param(words.money(None), "unknown", id="an unknown price is no zero"),
        pytest.param(words.volume(1.9e9), "1.9 GB", id="gigabytes are decimal, as prices are"),
        pytest.param(words.per_second(-48_000.0, sign=True), "\N{MINUS SIGN}48.0 kB/s", id="fewer bytes a second"),
        pytest.param(words.share(0.584), "58 %", id="per cent"),
        pytest.param(words.share(0.0043), "0.4 %", id="a small share keeps a digit"),
        pytest.param(words.share(1.0, 0.0), "unknown", id="a part of nothing is unknown"),
        pytest.param(words.duration(64), "64 s", id="a minute is still seconds"),
        pytest.param(words.duration(720), "12 min", id="minutes"),
        pytest.param(words.duration(11_520), "3.2 h", id="hours"),
        pytest.param(words.number(1234.0, "records/s"), "1,234 records/s", id="a number with its unit"),
        pytest.param(shortened("a\x00b\nc"), "a\\x00b\\nc", id="what cannot be printed is escaped"),
        pytest.param(words.short("abcdefghij", 5), "ab…ij", id="a long name is cut in the middle"),
        pytest.param(escaped("<b>|`x`_"), "\\<b\\>\\|\\`x\\`\\_", id="a name makes no markup of Markdown"),
    ],
)
def test_a_figure_reads(text: str, expected: str):
    assert text == expected


@pytest.mark.parametrize(
    ("begin", "end", "period"),
    [
        pytest.param(None, None, ReportPeriod(), id="everything there is"),
        pytest.param("1970-01-02", None, ReportPeriod(86_400_000), id="a date begins at midnight UTC"),
        pytest.param(
            "1970-01-01T01:00+01:00", "1970-01-01T00:01", ReportPeriod(0, 60_000), id="times with and without offset"
        ),
    ],
)
def test_a_period_is_read(begin: str | None, end: str | None, period: ReportPeriod):
    assert period_of(begin, end) == period


@pytest.mark.parametrize(
    ("begin", "end", "sentence"),
    [
        pytest.param("yesterday", None, "--from 'yesterday' is not a date", id="a word"),
        pytest.param("2025-01-02", "2025-01-02", "is not before", id="no time at all"),
    ],
)
def test_a_period_that_is_none_is_refused(begin: str | None, end: str | None, sentence: str):
    with pytest.raises(BadInput, match=sentence):
        period_of(begin, end)


def test_forms_of_output_are_read_and_unknown_ones_refused():
    assert _formats("html, md,html") == ("html", "md")
    with pytest.raises(BadInput, match="'pdf'"):
        _formats("md,pdf")


def _first(told: ReportFacts) -> str:
    return first_line(told, avoidable_cost(told))


def test_bytes_that_a_placement_may_or_may_not_avoid_are_neither_avoidable_nor_unavoidable():
    undecided = CROSSING._replace(path="replicate", bytes=4.6e9, unavoidable_bytes=None, undecided_bytes=4.6e9)
    section = next(one for one in compose(facts(pairs=(CROSSING, undecided))).sections if one.name == "ledger")
    assert section.lead == (
        "100 % of 6.6 GB crossed racks; 0 B of these no placement avoids at this replication factor, "
        "2.0 GB could stay within a rack, for 4.6 GB it is unknown whether a placement avoids them; for 0 B it is "
        "unknown."
    )
    heads = [head.title for head in section.grid.heads]
    told = [dict(zip(heads, row, strict=True)) for row in section.grid.rows]
    assert [(row["avoidable"], row["unknown whether avoidable"]) for row in told] == [(2e9, 0.0), (None, 4.6e9)]


def test_nothing_is_no_size_below_zero_where_sizes_are_no_whole_bytes():
    rows = (CROSSING._replace(bytes=1_900_000_000.1), CROSSING._replace(path="move", bytes=3_800_000_000.3))
    section = next(one for one in compose(facts(pairs=rows)).sections if one.name == "ledger")
    assert "100 % of 5.7 GB crossed racks; 0 B of these no placement avoids" in section.lead


def test_what_is_known_to_be_avoidable_ranks_before_what_is_not_known_to_be():
    undecided = proposal(
        "mend_rack_spread", "topic/big", cross_bytes=9e9, avoidable_bytes=None, undecided_bytes=9e9, usd=0.18
    )
    known = proposal(**NAMED)
    assert [row.subject for row in by_worth(facts(standing=(undecided, known)))] == ["group/billing", "topic/big"]
    assert "for 9.0 GB/h it is unknown whether a placement avoids them" in _first(facts(standing=(undecided,)))


def test_every_reason_of_a_proposal_has_words():
    told = [todo(proposal(reason.name.lower())) for reason in ProposalReason]
    assert [sentence for sentence in told if "billing" not in sentence or sentence.startswith("Look at")] == []


def test_a_period_without_looks_is_not_told_as_complete():
    assert "There is no look of this period." in notes(facts(looks=()))
    assert "2 looks of the period, all complete." in notes(facts(looks=(CountedInput(None, 2),)))


def test_a_gap_of_hours_is_told_and_its_absence_too():
    gap = LookCoverage("c", 0, 3 * HOUR_MS, 3, 9_000.0, 1)
    assert notes(facts(coverage=(gap,)))[0] == (
        "Gaps in cluster c: 1 hour without any look and 1 hour covered by less than nine tenths, out of 4; "
        "no values are filled in for them."
    )
    booked = gap._replace(gap_seconds=5_400.0)
    assert notes(facts(coverage=(booked,)))[0].endswith("of the gaps 90 min are booked by the offsets on both sides.")
    assert notes(facts())[0].startswith("No gaps")


def test_the_pace_is_of_the_time_that_is_booked():
    half = LookCoverage("c", 0, 0, 1, 1_800.0, 0, 1_800.0)
    sentence = _first(facts(standing=(proposal(**NAMED),), pairs=(CROSSING,), coverage=(half,)))
    assert "1.9 GB/h cross racks" in sentence


def test_the_ledger_stands_beside_its_counters():
    even = LedgerBalance("c", 3e9, 3e9, 0.0, 0.0, None, None, 0, None)
    assert "The ledger of cluster c beside its counters: booked 3.0 GB, counted 3.0 GB; no difference." in notes(
        facts(balance=(even,))
    )
    uneven = LedgerBalance("c", 2.9e9, 3e9, 0.15e9, 0.05e9, "consume", "t", 2, "offsets went back")
    (sentence,) = [note for note in notes(facts(balance=(uneven,))) if note.startswith("The ledger of cluster c")]
    assert sentence.endswith(
        "booked 2.9 GB, counted 3.0 GB; it lacks 150 MB and has 50.0 MB too many (6.7 %), most of it on "
        "path consume of topic t; for 2 rows of topic, path and hour it is unknown (offsets went back)."
    )


def test_a_report_sums_all_rows_and_shows_the_first_of_them():
    costs = tuple(cost(day=f"{day:05}", cross_bytes=1e9, usd=0.5) for day in range(1_500))
    report = compose(facts(costs=costs, coverage=(LookCoverage("c", 0, 0, 1_500, 86_400.0 * 1_500, 0),)))
    section = next(one for one in report.sections if one.name == "cost")
    assert section.lead == "1.5 TB crossed racks in this period and cost $750.00, which is $0.50 a day at this pace."
    page = to_html(report)
    seen, folded = page.index("<td>00009</td>"), page.index("<td>00010</td>")
    assert seen < page.index("<details><summary>1,490 more rows in cost.csv</summary>") < folded
    assert "<td>01499</td>" not in page
    assert "500 more rows in cost.csv." in page
    assert "1,490 more rows in cost.csv." in to_markdown(report)
    assert to_csv(section.grid).count("\n") == 1_501


def test_unknown_is_an_empty_field_of_csv_and_no_name_is_a_formula():
    heads = (
        ColumnHead("group"),
        ColumnHead("bytes read", ValueUnit.BYTES),
        ColumnHead("error of that", ValueUnit.SHARE, sign=True),
    )
    text = to_csv(ReportGrid(heads, (("=cmd()", None, -0.25), ('a "b", c', 3.0, None))))
    assert text.splitlines() == [
        "group,bytes_read_bytes,error_of_that_share",
        "'=cmd(),,-0.25",
        '"a ""b"", c",3,',
    ]
