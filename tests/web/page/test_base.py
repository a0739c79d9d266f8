"""The page's frame: its header, its files, its tables as HTML, CSV and JSON, and what it does without a look."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from jinja2 import ChoiceLoader, DictLoader
from starlette.responses import Response

from agent.web.page.environment import asset_url, environment, percent, rendered, static_assets
from agent.web.page.page_request import NAVIGATION, PageRequest, PageView
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableSource, as_csv, shown
from tests.web.page.answers import page_client, read, words
from tests.web.page.fetch_assets import VENDOR, locked_files
from tests.web.page.worlds import healthy

ROOT = Path(__file__).parents[3]

ROWS: tuple[Mapping[str, Any], ...] = tuple(
    {"name": name, "bytes": size, "kind": kind}
    for name, size, kind in (
        ("orders", 300, "topic"),
        ("=HYPERLINK(1)", None, "topic"),
        ("billing", 20, "group"),
        ("<script>alert(1)</script>", 1, "group"),
        ("a\u202eb", 5, "group"),
    )
)
SOURCE = TableSource(
    title="Things",
    rows=ROWS,
    columns=(
        TableColumn("name", "Name", lambda row: TableCell(row["name"]), lambda row: row["name"]),
        TableColumn(
            "bytes",
            "Bytes",
            lambda row: TableCell(None if row["bytes"] is None else str(row["bytes"])),
            lambda row: row["bytes"],
            is_number=True,
            falls=True,
        ),
    ),
    text=lambda row: row["name"],
    choices=(TableChoice("kind", "Kind", ("topic", "group"), lambda row: row["kind"]),),
    unit="thing",
)


def _things(asked: PageRequest) -> Response:
    return asked.page("things.html", "Things", tables=(SOURCE,))


def _listing(asked: PageRequest) -> Response:
    return asked.problem(404, "Not here", "There is no <b>such</b> thing.")


VIEWS = (PageView("/things", _things), PageView("/none", _listing, needs_look=False))
TEMPLATE = """{% extends "layout.html" %}{% from "parts.html" import table %}
{% block content %}{{ table(tables[""]) }}{% endblock %}"""


@pytest.fixture(autouse=True)
def _template(monkeypatch: pytest.MonkeyPatch) -> None:
    own = environment()
    assert own.loader is not None
    monkeypatch.setattr(own, "loader", ChoiceLoader([DictLoader({"things.html": TEMPLATE}), own.loader]))


def names(html: str) -> list[str]:
    return ["".join(cell.itertext()).strip() for cell in read(html).findall(".//tbody/tr/td[1]")]


def test_the_frame_names_cluster_mode_and_age_and_leads_to_every_view() -> None:
    html = page_client(healthy(), views=VIEWS).get("/things").text
    document = read(html)
    text = words(document)
    assert "Cluster test-cluster" in text
    assert "Mode propose" in text
    assert "Last look 3 s ago" in text
    links = [one.get("href") for one in document.findall(".//nav[@aria-label='Views']//li/a")]
    assert links == [entry.path for entry in NAVIGATION]
    assert len({entry.key for entry in NAVIGATION}) == len(NAVIGATION)
    for landmark in ("header", "nav", "main"):
        assert document.find(f".//{landmark}") is not None
    assert document.find(".//a[@href='#content']") is not None


def test_an_old_look_and_a_missing_one_are_said() -> None:
    old = page_client(healthy(), views=VIEWS, age_ms=31_000).get("/things").text
    assert "The last finished look was 31 s ago. Everything below is that old." in old
    none = page_client(None, views=VIEWS).get("/things")
    assert none.status_code == 200
    assert "The agent has not finished its first look" in none.text
    assert "No look has finished yet, so nothing is known of the cluster." in none.text


def test_nothing_is_inline_and_every_address_is_of_this_server() -> None:
    for path in ("/things", "/none"):
        html = page_client(healthy(), views=VIEWS).get(path).text
        document = read(html)
        assert not document.findall(".//style")
        assert not [one for one in document.iter() if one.get("style") is not None]
        assert not [name for one in document.iter() for name in one.attrib if name.lower().startswith("on")]
        assert all(one.get("src") and not (one.text or "").strip() for one in document.findall(".//script"))
        outside = re.findall(r'(?:src|href|action|hx-get)="((?:[a-z]+:)?//[^"]*|javascript:[^"]*)"', html)
        assert not outside


def test_a_problem_is_a_page_with_its_status_and_escaped() -> None:
    answer = page_client(None, views=VIEWS).get("/none")
    assert answer.status_code == 404
    assert "There is no &lt;b&gt;such&lt;/b&gt; thing." in answer.text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["orders", "=HYPERLINK(1)", "billing", "<script>alert(1)</script>", "a\\u202eb"]),
        ("?sort=name", ["<script>alert(1)</script>", "=HYPERLINK(1)", "a\\u202eb", "billing", "orders"]),
        ("?sort=bytes", ["<script>alert(1)</script>", "a\\u202eb", "billing", "orders", "=HYPERLINK(1)"]),
        ("?sort=-bytes", ["orders", "billing", "a\\u202eb", "<script>alert(1)</script>", "=HYPERLINK(1)"]),
        ("?sort=&page=&rows=&kind=&view=&told=", [row["name"].replace("\u202e", "\\u202e") for row in ROWS]),
        ("?q=ORD", ["orders"]),
        ("?kind=group&sort=name", ["<script>alert(1)</script>", "a\\u202eb", "billing"]),
        ("?rows=2&page=2", ["billing", "<script>alert(1)</script>"]),
        ("?rows=2&page=99", ["a\\u202eb"]),
    ],
)
def test_a_table_is_sorted_filtered_and_paged_by_its_address(query: str, expected: list[str]) -> None:
    assert names(page_client(healthy(), views=VIEWS).get(f"/things{query}").text) == expected


@pytest.mark.parametrize(
    ("query", "sentence", "remedy"),
    [
        ("sort=nonsense", "sort=nonsense: Things cannot be sorted by that.", "It can be sorted by name and bytes"),
        ("sort=--bytes", "sort=--bytes: Things cannot be sorted by that.", "the other way round"),
        ("page=-1", "page=-1: it is a number from 1 on.", "Leave page out"),
        ("page=0", "page=0: it is a number from 1 on.", "Leave page out"),
        ("page=\u0662", "page=\u0662: it is a number from 1 on.", "Leave page out"),
        ("rows=x", "rows=x: it is a number from 1 to 200.", "Leave rows out"),
        ("rows=201", "rows=201: it is a number from 1 to 200.", "Leave rows out"),
        ("kind=nope", "kind=nope: there is no such value.", "Its values: topic and group."),
        ("q=" + "a" * 257, "q: it has 257 characters, and at most 256 are searched for.", "Ask for less."),
        ("view=tabel", "view=tabel: there is no such value.", "Its values: table."),
        ("format=xml", "format=xml: there is no such value. Its values: csv and json.", ""),
        ("format=csv&sort=nonsense", "sort=nonsense: Things cannot be sorted by that. It can be sorted by", ""),
        ("table=x", "table: it names the table of a file, and format is missing.", "Add format=csv or json."),
        (
            "srot=name",
            "srot: this page has no such field.",
            "Did you mean sort? It has format, kind, page, q, rows, sort,",
        ),
        ("things.sort=name", "things.sort: this page has no such field.", "It has format,"),
        ("page=1&page=2", "page: it has one value, and 2 are asked for.", "Keep one page."),
        ("<b>%1b=1", "<b>\\x1b: this page has no such field.", "It has format,"),
    ],
)
def test_a_field_that_means_nothing_is_refused_in_one_sentence(query: str, sentence: str, remedy: str) -> None:
    answer = page_client(healthy(), views=VIEWS).get(f"/things?{query}")
    assert answer.status_code == 400
    if "format=" in query:
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text.startswith(sentence)
        return
    said = words(read(answer.text).find(".//main"))
    assert sentence in said
    assert remedy in said


def test_a_page_beyond_the_last_is_the_last_one_and_says_so() -> None:
    answer = page_client(healthy(), views=VIEWS).get("/things?rows=2&page=99")
    assert "There is no page 99 of it; this is the last one." in words(read(answer.text).find(".//main"))
    assert "There is no page" not in page_client(healthy(), views=VIEWS).get("/things?rows=2&page=3").text


def test_an_unknown_figure_reads_unknown_and_a_filter_without_hits_says_so() -> None:
    client = page_client(healthy(), views=VIEWS)
    row = next(
        one for one in read(client.get("/things").text).findall(".//tbody/tr") if "=HYPER" in "".join(one.itertext())
    )
    assert words(row.findall("td")[1]) == "unknown"
    assert "No thing fits the filter." in client.get("/things?q=zebra").text


def test_links_of_a_table_keep_the_rest_of_the_query() -> None:
    made = shown(SOURCE, {"q": "o", "sort": "name", "view": "table", "page": "3"})
    assert made.heads[0].href is not None
    assert "sort=-name" in made.heads[0].href
    assert "view=table" in made.heads[0].href
    assert "page=" not in made.heads[0].href
    assert dict(made.kept) == {"sort": "name", "view": "table"}
    assert made.cleared is not None
    assert "q=" not in made.cleared


def test_csv_and_json_are_the_filtered_rows_without_formulas_or_losses() -> None:
    client = page_client(healthy(), views=VIEWS)
    written = client.get("/things?format=csv&kind=topic")
    assert written.headers["content-type"] == "text/csv; charset=utf-8"
    assert written.text == "name,bytes\r\norders,300\r\n'=HYPERLINK(1),\r\n"
    assert written.headers["content-disposition"] == 'attachment; filename="rackwise-things.csv"'
    assert client.get("/things?format=json&q=b").json() == [dict(ROWS[2]), dict(ROWS[4])]
    assert client.get("/things?format=csv&table=other").status_code == 404
    assert as_csv(SOURCE, {"q": "nothing"}) == "name,bytes\r\n"


def test_files_are_kept_for_ever_and_come_compressed() -> None:
    client = page_client(None)
    for name, asset in static_assets().items():
        plain = client.get(asset_url(name), headers={"accept-encoding": "identity"})
        assert plain.content == asset.content
        assert "immutable" in plain.headers["cache-control"]
        if asset.compressed is not None:
            assert gzip.decompress(asset.compressed) == asset.content
            assert client.get(asset_url(name)).headers["content-encoding"] == "gzip"
    assert client.get("/static/000000000000/rackwise.css").headers["cache-control"] == "no-cache"
    for path in ("/static/0/none.css", "/static/0/%2e%2e/environment.py", "/static/0/..%2fenvironment.py"):
        assert client.get(path).status_code == 404


def test_the_files_in_git_are_those_of_the_lock_with_their_licences() -> None:
    rows = list(locked_files())
    for row in rows:
        assert hashlib.sha256((VENDOR / row.copy).read_bytes()).hexdigest() == row.sha256, row.copy
    assert {path.name for path in VENDOR.iterdir()} == {row.copy for row in rows} | {"vendor.lock.json"}
    packages = {entry["package"]: entry for entry in json.loads((VENDOR / "vendor.lock.json").read_text())}
    for package, entry in packages.items():
        assert entry["licence"]
        assert entry["integrity"].startswith("sha512-")
        assert any(row.copy.endswith(".LICENSE") for row in rows if row.package == package)


def test_a_first_view_is_small() -> None:
    client = page_client(healthy(), views=VIEWS)
    html = client.get("/things").text
    files = set(re.findall(r'/static/[0-9a-f]{12}/([^"]+)', html))
    sizes = [len(asset.compressed or asset.content) for name, asset in static_assets().items() if name in files]
    assert len(sizes) == len(files)
    assert sum(sizes) + len(html.encode()) <= 150_000


def test_the_theme_is_kept_in_a_cookie_and_leads_back_to_this_server_alone() -> None:
    client = page_client(healthy(), views=VIEWS)
    answer = client.get("/theme?set=dark&back=/things?sort%3Dname")
    assert answer.headers["location"] == "/things?sort=name"
    assert "rackwise_theme=dark" in answer.headers["set-cookie"]
    assert 'data-theme="dark"' in client.get("/things", headers={"cookie": "rackwise_theme=dark"}).text
    for back in (
        "https://example.org/",
        "//example.org",
        "/\\example.org",
        "javascript:alert(1)",
        "/a\r\nset-cookie: x=1",
    ):
        assert client.get("/theme", params={"set": "light", "back": back}).headers["location"] == "/"
    assert 'data-theme="' not in client.get("/things", headers={"cookie": "rackwise_theme=x"}).text
    assert "set-cookie" in client.get("/theme?set=auto").headers
    for query in ("set=blue", "back=/"):
        assert client.get(f"/theme?{query}").status_code == 400


def test_shares_and_missing_values_are_written_with_care() -> None:
    assert [percent(share) for share in (0, 0.0004, 0.004, 0.5, 0.9951, 0.99999, 1)] == [
        "0 %", "0.1 %", "0.4 %", "50 %", "99.5 %", "99.9 %", "100 %",
    ]  # fmt: skip
    with pytest.raises(Exception, match="undefined"):
        rendered("problem.html")


def test_templates_and_files_are_in_the_wheel() -> None:
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    page = ROOT / "agent" / "web" / "page"
    wanted = {
        path.relative_to(ROOT).as_posix()
        for folder in ("templates", "static")
        for path in (page / folder).rglob("*")
        if path.is_file()
    }
    assert wanted
    assert wanted <= packed


def test_pages_tell_the_browser_library_to_use_no_script_of_theirs() -> None:
    head = read(page_client(healthy(), views=VIEWS).get("/things").text).find(".//meta[@name='htmx-config']")
    settings = json.loads(head.get("content") or "")
    assert settings["includeIndicatorCSS"] is False
    assert "open" in settings["morphIgnore"]
    assert {"4xx", "5xx"} <= set(map(str, settings["noSwap"]))
    written = "".join(path.read_text() for path in (ROOT / "agent" / "web" / "page" / "templates").glob("*.html"))
    assert not re.search(r"hx-on|hx-vals|\bjs:|javascript:", written), "these would need a policy that allows eval"
