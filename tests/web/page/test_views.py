"""Every view of every world: valid HTML, nothing inline, every picture with words and a table, unknown as unknown."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from functools import cache

import pytest
from lxml.etree import _Element as HtmlElement

from agent.values.finding import FindingReason, SubjectId
from agent.values.limits import Limits
from agent.web.page.environment import environment
from agent.web.page.group_tiles import _reader_name
from agent.web.page.overview import _sentence
from agent.web.page.page_documents import FindingRemedies
from agent.web.page.routes import VIEWS
from config.foreign_text import is_unsafe
from tests.builders import an_observation, consumer, instance, reader, with_group
from tests.foreign_texts import POISONS
from tests.snapshots import process
from tests.web.page.answers import page_client, read, words
from tests.web.page.worlds import WORLDS, many, watched

PATHS = ("/", "/racks", "/racks?view=table", "/groups", "/warmups", "/warmups?view=table", "/findings")


@cache
def html(world: str, path: str) -> str:
    answer = page_client(WORLDS[world]()).get(path)
    assert answer.status_code == 200, answer.text[:500]
    return answer.text


def page(world: str, path: str) -> HtmlElement:
    return read(html(world, path))


def every_page() -> list[tuple[str, str]]:
    pages = [(world, path) for world in WORLDS for path in PATHS]
    pages += [("sick", f"/groups/group?id={name}") for name in ("billing", "shop-app", "legacy-reports", "rebalancing")]
    pages += [("sick", "/groups/group?id=fraud-check&view=table"), ("sick", "/racks?rack=eu-1b")]
    return [*pages, ("unknown", "/groups/group?id=billing"), ("healthy", "/racks?rack=eu-1a&view=table")]


@pytest.mark.parametrize(("world", "path"), every_page())
def test_a_view_is_valid_has_nothing_inline_and_words_for_every_picture(world: str, path: str) -> None:
    document = page(world, path)
    elements = [one for one in document.iter() if isinstance(one.tag, str)]
    assert not [one for one in elements if one.tag == "style" or "style" in one.attrib]
    assert not [name for one in elements for name in one.attrib if str(name).lower().startswith("on")]
    assert all(one.get("src") and not (one.text or "").strip() for one in elements if one.tag == "script")
    ids = [one.get("id") for one in elements if one.get("id")]
    assert len(ids) == len(set(ids))
    for picture in (one for one in elements if one.tag in {"svg", "img"}):
        named = picture.get("aria-label") or picture.get("alt") or picture.get("aria-hidden") == "true"
        assert named
    for label in (
        one for one in elements if one.tag in {"input", "select", "textarea"} and one.get("type") != "hidden"
    ):
        assert any(parent.tag == "label" for parent in label.iterancestors()) or label.get("aria-label")
    assert len(document.findall(".//h1")) == 1
    assert all(words(one) or one.get("aria-label") for one in elements if one.tag in {"a", "button"})
    assert not re.search(r"\bNone\b|\bnan\b|Undefined|<built-in|object at 0x", words(document.find(".//main")))


def test_the_views_together_have_each_path_once() -> None:
    paths = [view.path for view in VIEWS]
    assert len(paths) == len(set(paths))
    assert {"/", "/racks", "/groups", "/groups/group", "/warmups", "/findings"} <= set(paths)


def test_templates_compile_and_print_every_value_through_the_border() -> None:
    own = environment()
    for name in own.list_templates():
        own.get_template(name)
    assert own.autoescape
    assert own.from_string("{{ a }}{{ b }}").render(a="\x1b[2J\u202e<b>", b=None) == "\\x1b[2J\\u202e&lt;b&gt;unknown"


def test_what_strangers_chose_is_shown_escaped_everywhere() -> None:
    poisons = [text for text in POISONS.values() if any(map(is_unsafe, text))]
    for path in PATHS:
        written = html("hostile", path)
        assert "<script>alert" not in written
        assert not [text for text in poisons if text in written]
        unsafe = {char for char in written if is_unsafe(char) and char != "\n"}
        assert not unsafe, sorted(map(hex, map(ord, unsafe)))


def test_a_group_with_any_name_has_its_page() -> None:
    client = page_client(WORLDS["hostile"]())
    names = [name for name in WORLDS["hostile"]().snapshot.groups if name.isprintable() or not name.isascii()]
    for name in names[::9]:
        if any("\ud800" <= char <= "\udfff" for char in name):
            continue  # no browser can send it
        answer = client.get("/groups/group", params={"id": name})
        assert answer.status_code == 200, name
        read(answer.text)
    assert client.get("/groups/group?id=there-is-none").status_code == 404
    assert client.get("/groups/group").status_code == 404


def test_the_overview_says_how_things_are_and_what_to_do_first() -> None:
    document = page("sick", "/")
    lead = words(document.find(".//p[@class='lead big']"))
    assert lead == (
        "At least 36.8 MB/s cross racks, which costs at least $63.59 a day; 1 critical finding and 2 warnings; "
        "4 proposals are open."
    )
    steps = [words(one) for one in document.findall(".//ol[@class='steps']/li")]
    assert len(steps) == 3
    assert "saves $4.15 a day" in steps[0]
    assert "critical" in steps[2], "a critical finding is always among them"
    assert "no proposal answers it" in steps[2]
    assert "group rebalancing rebalances" in words(document).lower()
    healthy = words(page("healthy", "/"))
    assert (
        "12.8 MB/s cross racks, which costs $22.12 a day; nothing critical was found; nothing is proposed." in healthy
    )
    assert "Nothing is to be done." in healthy


def test_unknown_is_never_zero_nor_fine() -> None:
    overview = words(page("unknown", "/"))
    assert "What crosses racks is unknown" in overview
    assert "nothing critical was found in what was seen" in overview or "finding" in overview
    assert "Across racks now unknown" in overview
    assert "not authorized" in overview
    assert "$0.00" not in overview
    assert "0 B/s" not in overview
    racks = words(page("unknown", "/racks"))
    assert "No rate is known" in racks
    assert "0 B/s" not in racks
    groups = page("unknown", "/groups")
    row = groups.find(".//tbody/tr")
    assert "unknown" in words(row)
    assert "%" not in words(row)
    assert "some may be hidden" not in words(page("empty", "/groups"))
    assert "There are no groups." in words(page("empty", "/groups"))


def test_a_group_in_part_unknown_has_a_range_and_is_hatched() -> None:
    rows = {words(one.find("td")): one for one in page("sick", "/groups").findall(".//tbody/tr")}
    legacy = [one for one in rows["legacy-reports"].findall("td") if "heat" in (one.get("class") or "")]
    assert [words(one) for one in legacy] == ["·", "·", "·", "unknown"]
    assert "is-unknown" in (legacy[3].get("class") or "")
    assert "≤ 3.2 MB/s" in words(rows["legacy-reports"])
    billing = [words(one) for one in rows["billing"].findall("td") if "heat" in (one.get("class") or "")]
    assert billing == ["50 %", "50 %", "67 %", "·"]


def test_reads_in_racks_without_a_column_have_one_together() -> None:
    answers = an_observation(a=(1,), b=(2,)).topic("t", (1, 2), (2, 1))
    answers.group("lost", reader("m1", "eu-west", "t-0"), reader("m2", "eu-east", "t-1"))
    answers.group("near", reader("m3", "a", "t-0"), reader("m4", "b", "t-1"))
    client = page_client(watched(answers))
    rows = {words(one.find("td")): one for one in read(client.get("/groups").text).findall(".//tbody/tr")}
    heat = {
        name: [words(one) for one in row.findall("td") if "heat" in (one.get("class") or "")]
        for name, row in rows.items()
    }
    assert heat == {"lost": ["·", "·", "0 %"], "near": ["100 %", "100 %", "·"]}
    assert "local_share_elsewhere" in client.get("/groups?format=csv").text.splitlines()[0]
    assert "other racks" not in html("sick", "/groups"), "all of its readers are in racks of brokers"


def test_a_table_that_is_not_there_is_refused_with_those_that_are() -> None:
    client = page_client(WORLDS["sick"]())
    only = client.get("/groups?format=csv&table=nope")
    assert (only.status_code, only.text) == (404, "this page has no such table; leave table out, as it has only one\n")
    some = client.get("/moves?format=csv&table=nope").text
    assert some == "this page has no such table; its tables are brokers, copies, plans, throttles, others\n"


def test_rules_of_a_group_have_no_column_that_says_the_same_in_each_row() -> None:
    """A column of the group's own name would take room, and break every name."""
    for name in ("fraud-check", "billing", "legacy-reports"):
        table = page("sick", f"/groups/group?id={name}").find(".//div[@id='table-rules']//table")
        heads = [words(one) for one in table.findall(".//th")]
        rows = page_client(WORLDS["sick"]()).get(f"/groups/group?id={name}&format=json&table=rules").json()
        assert ("About" in heads) == (len({row["about"] for row in rows}) > 1), name
        cells = [row.findall("td")[-1] for row in table.findall(".//tbody/tr")] if "About" in heads else []
        assert all("one-line" in (one.get("class") or "") for one in cells), name


def test_rates_of_evidence_are_rounded_as_elsewhere() -> None:
    row = {"evidence": {"bytes/s gained": 11_548.952936716767, "share": 0.123456789}, "sentence": "s"}
    shown = str(_sentence(row, is_open=True).words)
    assert "<dd>11.5 kB/s</dd>" in shown
    assert "<dd>0.123457</dd>" in shown


def test_a_group_shows_three_columns_and_why_it_is_not_triggered() -> None:
    billing = page("sick", "/groups/group?id=billing")
    columns = billing.findall(".//div[@class='three']/div")
    assert [words(one.find("h3")).split()[0] for one in columns] == ["Now", "Its", "Optimum"]
    assert "3 reads cross racks" in words(columns[0])
    assert "0 reads cross racks" in words(columns[2])
    tiles = columns[0].findall(".//span[@class]")
    crossing = [one for one in tiles if "tile crossing" in one.get("class")]
    assert len(crossing) == 3
    assert all("leader in" in one.get("title") for one in crossing)
    verdict = words(billing.find(".//div[@class='verdict']"))
    assert "held" in verdict
    assert "already in progress: 1 reassignment" in verdict
    rules = billing.findall(".//div[@id='table-rules']//tbody/tr")
    assert rules
    fraud = words(page("sick", "/groups/group?id=fraud-check&view=table"))
    assert "Why it is not made to rebalance" in fraud


def test_a_group_that_brokers_assign_has_a_column_with_the_plug_in() -> None:
    fraud = page("sick", "/groups/group?id=fraud-check")
    columns = fraud.findall(".//div[@class='three four']/div")
    assert [words(one.find("h3")) for one in columns][2] == "With the plug-in on the brokers"
    assert "0 reads cross racks" in words(columns[2])
    assert "The plug-in for brokers: nothing to gain: every rack has a replica." in words(fraud)
    rows = page_client(WORLDS["sick"]()).get("/groups/group?id=fraud-check&format=json&table=assignments").json()
    assert {"now", "own", "plugin", "optimum"} <= set(rows[0])


def test_where_the_plug_in_cannot_help_its_column_says_so_and_not_unknown() -> None:
    answers = an_observation().topic("t", (1, 2), (2, 3)).selector(None)
    answers.kip848("g", consumer("m1", "c", "t-0"), consumer("m2", "a", "t-1"))
    group = read(page_client(watched(answers)).get("/groups/group?id=g").text)
    column = group.findall(".//div[@class='three four']/div")[2]
    said = "cannot help: no follower fetching (replica.selector.class)"
    assert words(column) == f"With the plug-in on the brokers {said}"
    assert f"The plug-in for brokers: {said}." in words(group)


def test_a_reader_whose_id_has_a_comma_is_in_its_rack() -> None:
    answers = an_observation().topic("t", (1, 2), (2, 3))
    answers.kip848("g", consumer("pay, one", "c", "t-0"), consumer("two", "a", "t-1"))
    client = page_client(watched(answers))
    text = client.get("/groups/group?id=g&format=csv&table=assignments").text
    rows = [(row["name"], row["now"], row["now_racks"]) for row in csv.DictReader(io.StringIO(text))]
    assert rows == [("t-0", "pay, one", "c"), ("t-1", "two", "a")]
    assert client.get("/groups/group?id=g&format=json&table=assignments").json()[0]["now"] == "pay, one"


@pytest.mark.parametrize(
    ("client", "shown"),
    [
        pytest.param("pay, thread pool", "pay, thread pool · 2 threads", id="of its own"),
        pytest.param(
            "shop-app-12345678-1234-1234-1234-123456789abc-StreamThread-1-consumer", "12345678… · 2 threads",
            id="of Kafka",
        ),
    ],
)  # fmt: skip
def test_a_process_is_shown_without_its_thread_and_with_all_of_its_own_name(client: str, shown: str) -> None:
    assert _reader_name(process("p", "a", capacity=2)._replace(client_ids=(client,))) == shown


def test_a_streams_application_tells_warm_ups_from_standbys() -> None:
    shop = page("sick", "/groups/group?id=shop-app")
    now = shop.findall(".//div[@class='three']/div")[0]
    assert len([one for one in now.iter("span") if "tile warmup" in (one.get("class") or "")]) == 4


@pytest.mark.parametrize(
    ("settings", "own", "standbys"),
    [
        ({"num_standby_replicas": 1}, "", 4),
        (None, "Standbys are not computed: num.standby.replicas is unknown, and Kafka's default of 0 is assumed.", 0),
    ],
    ids=["by the settings", "unknown"],
)
def test_a_column_without_standbys_says_why(settings: dict[str, int] | None, own: str, standbys: int) -> None:
    answers = an_observation(a=(1,), b=(2,)).topic("shop", (1,), (2,), (1,), (2,))
    answers.topic("app-store-changelog", *[(1, 2), (2, 1)] * 2, cleanup_policy="compact")
    sides = {"0_0": "shop-0", "0_1": "shop-1"}, {"0_2": "shop-2", "0_3": "shop-3"}
    answers.streams("app", instance(1, "a", *sides), instance(2, "b", *sides[::-1]))
    limits = Limits() if settings is None else with_group("app", **settings)
    document = read(page_client(watched(answers, limits)).get("/groups/group?id=app").text)
    now, predicted, optimum = document.findall(".//div[@class='three']/div")
    shown = [len([one for one in column.iter("span") if one.get("class", "").startswith("tile standby")])
             for column in (now, predicted, optimum)]  # fmt: skip
    assert shown == [4, standbys, 0]
    notes = [
        [words(one) for one in column.findall("p") if one.get("class") == "note"] for column in (predicted, optimum)
    ]
    assert notes == [[own] if own else [], ["Standbys are not computed: the optimum is of active tasks alone."]]


def test_warm_ups_have_lag_threshold_range_source_and_the_next_probe() -> None:
    document = page("sick", "/warmups")
    rows = {words(one.findall("td")[1]): words(one) for one in document.findall(".//div[@id='table-main']//tbody/tr")}
    assert rows["0_1"].endswith("15,100 10,000 54 to 217 in 23 s to 93 s application endpoint")
    assert "falls behind: never at this rate" in rows["0_3"]
    assert "caught up" in rows["0_0"]
    application = words(document.find(".//div[@id='table-applications']//tbody/tr"))
    assert "2 of 4 in 7 min; a rebalance now saves 7 min 10 min 0 0 s" in application
    assert "No rebalance was asked for because of warm-ups." in words(document)
    bars = document.find(".//svg[@class='drawing warmups']")
    assert len([one for one in bars.iter("line") if one.get("class") == "threshold"]) == 4


def test_a_finding_has_evidence_an_age_and_what_mends_it() -> None:
    rows = {words(one.findall("td")[1]): one for one in page("sick", "/findings").findall(".//tbody/tr")}
    legacy = rows["group/legacy-reports"]
    assert "client.rack=<eu-1a|eu-1b|eu-1c>" in words(legacy)
    assert "advise p-" in words(legacy)
    assert legacy.find(".//details//dl") is not None
    assert words(legacy.findall("td")[3]) == "60 s 2025-10-09 08:53:20 UTC"
    client = page_client(WORLDS["sick"]())
    one = client.get("/findings?format=json&severity=critical").json()
    assert [row["subject"] for row in one] == ["topic/payments"]
    alone = read(client.get("/findings", params={"id": one[0]["id"]}).text)
    assert len(alone.findall(".//tbody/tr")) == 1
    assert client.get("/findings?id=none").status_code == 404


def test_a_finding_without_a_line_says_what_ends_it() -> None:
    rows = [words(one) for one in page("sick", "/findings").findall(".//tbody/tr")]
    (isr,) = [one for one in rows if "under min ISR" in one]
    assert "Bring its replicas back in sync; rackwise moves nothing of it meanwhile." in isr
    assert not [one for one in rows if "no setting or move that is known here" in one]


def test_a_cause_that_another_finding_has_a_line_for_has_that_line() -> None:
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", (1, 2), (2, 3), (3, 1))
    answers.group("exports", reader("m1", None, "orders-0 orders-1"), reader("m2", None, "orders-2"))
    look = watched(answers)
    (off,) = [one for one in look.detection.findings if one.reason is FindingReason.RACK_AWARENESS_OFF]
    assert "no member sends a rack" in off.sentence
    assert FindingRemedies(look).of(off).lines == ("client.rack=<a|b|c>",)


def test_an_assignor_is_no_mend_where_no_assignment_can_be_local() -> None:
    """Members in racks without brokers need another rack first; where replicas are elsewhere no line helps."""
    topics = an_observation(a=(1,), b=(2,), c=(3,), d=(4,)).topic("orders", (1, 2), (2, 3), (3, 1))
    topics.kip848("away", consumer("m1", "zone-x", "orders-1"), consumer("m2", "zone-y", "orders-0 orders-2"))
    topics.kip848("both", consumer("m1", "zone-x", "orders-1"), consumer("m2", None, "orders-0 orders-2"))
    topics.kip848("beside", consumer("m1", "d", "orders-1"), consumer("m2", "d", "orders-0 orders-2"))
    topics.kip848("partly", consumer("m1", "zone-x", "orders-1"), consumer("m2", "a", "orders-0 orders-2"))
    topics.group("blind", reader("m", "zone-x", "orders-0 orders-1 orders-2"), assignor="roundrobin")
    look = watched(topics)
    kinds = (FindingReason.GROUP_KIND_IGNORES_RACKS, FindingReason.RACK_AWARENESS_OFF)
    of = FindingRemedies(look).of
    choice = "client.rack=<a|b|c|d>"
    assert {one.subject.name: of(one).lines for one in look.detection.findings if one.reason in kinds} == {
        "away": (choice,),
        "both": (choice,),
        "beside": (),
        "partly": ("group.protocol=classic",),
        "blind": (choice,),
    }
    (beside,) = [one for one in look.detection.findings if one.subject.name == "beside" and one.reason in kinds]
    assert "replicas and leaders near the members" in of(beside).words


@pytest.mark.parametrize(
    ("kind", "waits"),
    [
        ("broker", "waits until its rack has been stable, or it has been absent, for long enough"),
        ("topic", "waits until the racks of the brokers have been stable, or these absent, for long enough"),
    ],
)
def test_a_held_finding_waits_for_brokers_alone(kind: str, waits: str) -> None:
    look = WORLDS["sick"]()
    held = replace(look.detection.findings[0], subject=SubjectId(kind, "1"), held=True)
    remedy = FindingRemedies(look).of(held)
    assert remedy.waits == waits
    assert waits in environment().get_template("remedy.html").render(remedy=remedy, links=[])


def test_rules_of_a_group_have_names_in_words_and_no_fault_where_there_is_none() -> None:
    fraud = page("sick", "/groups/group?id=fraud-check")
    rows = [words(one) for one in fraud.findall(".//div[@id='table-rules']//tbody/tr")]
    (classic,) = [one for one in rows if "no classic group" in one]
    assert "✕" not in classic
    legacy = words(page("sick", "/groups/group?id=legacy-reports"))
    for raw in ("why_not_weights", " who ", " count ", "subjects in all"):
        assert raw not in f"{words(fraud)} {legacy}", raw
    assert "3 in all" in legacy


def test_the_overview_counts_findings_and_proposals_with_their_nouns() -> None:
    look = WORLDS["sick"]()
    warnings = sum(one.severity.value == "warning" for one in look.detection.findings)
    assert f"1 critical finding ◆ {warnings} warnings" in words(page("sick", "/"))
    unpriced = tuple(
        one._replace(predicted=replace(one.predicted, usd_per_day_before=None, usd_per_day_after=None))
        for one in look.proposals
    )
    text = words(read(page_client(look._replace(proposals=unpriced)).get("/").text))
    assert "rebalances" in text or "1 rebalance" in text
    assert "setting" in text
    assert "reassignment" in text


def test_tables_of_racks_and_groups_stack_on_a_phone_and_count_rows() -> None:
    racks_page, groups_page = page("unknown", "/racks"), page("sick", "/groups")
    for document, key in ((racks_page, "racks"), (groups_page, "main")):
        assert document.find(f".//div[@id='table-{key}']//table").get("class") == "stacks"
    assert words(racks_page.find(".//div[@id='table-racks']//p")).endswith(("row", "rows"))


def test_every_table_has_its_csv_and_json() -> None:
    client = page_client(WORLDS["sick"]())
    found = 0
    for path in (*PATHS, "/racks?rack=eu-1b", "/groups/group?id=shop-app"):
        for link in {one.get("href") for one in page("sick", path).iter("a") if "format=" in (one.get("href") or "")}:
            answer = client.get(f"{path.partition('?')[0]}{link}")
            assert answer.status_code == 200, link
            if "format=csv" in link:
                head, *rows = csv.reader(io.StringIO(answer.text))
                assert all(len(row) == len(head) for row in rows)
            else:
                assert isinstance(answer.json(), list)
            found += 1
    assert found >= 20


def test_a_thousand_groups_are_paged_and_searched() -> None:
    client = page_client(many(1_000))
    first = read(client.get("/groups").text)
    assert len(first.findall(".//tbody/tr")) == 50
    assert "1\N{EN DASH}50 of 1,000" in words(first)
    assert words(read(client.get("/groups?q=group-000999").text).find(".//tbody/tr/td")) == "group-000999"
    assert len(client.get("/groups?format=json").json()) == 1_000


def test_what_a_phone_reads_is_the_same_page() -> None:
    assert 'name="viewport" content="width=device-width, initial-scale=1"' in html("sick", "/")
