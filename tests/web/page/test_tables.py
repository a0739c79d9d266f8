"""Tables of every view beside their files: CSV has every column, and every figure that a cell shows."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Mapping

import pytest
from markupsafe import Markup

from agent.web.page import page_request
from agent.web.page.routes import VIEWS
from agent.web.page.tables import TableShown, TableSource, as_csv, chosen_rows, shown
from tests.web.page.answers import read, words
from tests.web.page.test_operating_views import client
from tests.web.page.test_operating_views import every_page as operating_pages
from tests.web.page.test_views import every_page
from tests.web.page.worlds import sick

ELSEWHERE = {
    "best_local_share": "unknown_share",
    "cross_rack_in_bytes_per_s": "unknown_parts",
    "cross_rack_out_bytes_per_s": "unknown_parts",
}
"""Column -> the column that says whether its figure is a bound."""


def test_csv_has_every_column_of_the_table_and_every_figure_of_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds too: what a cell shows beside its figure has a column of its own."""
    sources: dict[str, TableSource] = {}

    def seen(source: TableSource, asked: Mapping[str, str]) -> TableShown:
        sources[f"{source.title}: {', '.join(column.name for column in source.columns)}"] = source
        return shown(source, asked)

    monkeypatch.setattr(page_request, "shown", seen)
    for world, path in (*every_page(), *operating_pages()):
        assert client(world).get(path).status_code == 200
    missing, checked = [], 0
    for name, source in sources.items():
        head, *rows = csv.reader(io.StringIO(as_csv(source, {})))
        fields = [list(column.fields) for column in source.columns]
        assert head == [field for of in fields for field in of], name
        assert len(set(head)) == len(head), name
        missing += [f"{source.title} has no {column.name}" for column in source.columns if column.name not in head]
        in_order = chosen_rows(source, {})
        for row, written in zip(in_order[:200], rows, strict=False):
            values = dict(zip(head, written, strict=True))
            for column in source.columns:
                shown_words = Markup(column.cell(row).words or "").striptags()  # noqa: S704 (it is read here)
                own = [values[field] for field in column.fields]
                if shown_words in own or len(shown_words) > 60:
                    continue  # a name or a sentence
                figures = [part for part in re.split(r",? of which | to | of ", shown_words) if re.search(r"\d", part)]
                is_bound = bool(re.search(r"[≥≤] .*\d|\d.* (to|of) [$\d]", shown_words))
                has_bound = len(own) > 1 or ELSEWHERE.get(column.name) in head
                if len([one for one in own if one]) < len(figures) or (is_bound and not has_bound):
                    missing.append(f"{source.title}: {column.name} shows {shown_words!r}, and CSV has {own}")
                checked += 1
    assert not missing, "\n".join(sorted({*missing})[:40])
    assert checked > 1_000


WRONG = {
    "": ("nope=1", "view=x", "format=x", "table=x", "told=a&told=b"),
    "/racks": ("racks.sort=nope", "flows.page=0", "rack=a&rack=b", "loss.sort.x=1&racks.q2=1"),
    "/groups": ("sort=nope", "page=x", "rows=0"),
    "/groups/group?id=billing": ("members.sort=nope", "rules.answer=perhaps", "ids=billing"),
    "/warmups": ("page=x", "rounds.rows=x"),
    "/findings": ("severity=grave", "sort=mends"),
    "/proposals": ("kind=nope", "ended.sort=nope"),
    "/proposals/proposal?id={proposal}": ("moves.page=x", "checks.sort=nope"),
    "/proposals/file?id={proposal}&file=proposal": ("sort=id",),
    "/moves/plan?id=p-111111111111": ("partitions.sort=nope", "plan=1"),
    "/moves": ("plans.sort=nope", "copies.q=1&copies.qq=1"),
    "/timeline": ("hours=7", "hours=1&hours=6", "events.rows=x"),
    "/whatif?remove-rack=eu-1c": ("groups.sort=nope", "proposals.change=perhaps"),
    "/reports": ("of=nope", "off=gain"),
    "/reports/figure?name=a.svg": ("format=png", "size=1"),
}
"""View -> queries that it cannot answer; those of "" are of every view."""


@pytest.mark.parametrize("path", [view.path for view in VIEWS if view.methods == ("GET",)])
def test_no_view_leaves_a_field_aside_that_it_cannot_answer(path: str) -> None:
    proposal, world = sick().proposals[0].id, "acting" if path == "/moves/plan" else "sick"
    address = next(one for one in WRONG if one.partition("?")[0] == path) if path != "/" else "/"
    queries = WRONG.get(address, ()) if path != "/" else ("findings=1", "sort=name")
    every = WRONG[""] if path != "/whatif" else WRONG[""][1:]
    for query in (*queries, *every):
        asked = f"{address.format(proposal=proposal)}{'&' if '?' in address else '?'}{query}"
        answer = client(world).get(asked)
        assert answer.status_code == 400, (asked, answer.status_code)
        assert query.rpartition("&")[2].partition("=")[0] in html.unescape(answer.text), asked
    fine = client(world).get(f"{address.format(proposal=proposal)}").status_code
    assert fine == (404 if path == "/reports/figure" else 200)


def test_a_value_that_no_row_has_any_more_fits_no_row() -> None:
    """It may have been there a look ago, so the page that stays open goes on."""
    document = read(client("sick").get("/groups?kind=gone").text)
    assert "No group fits the filter." in words(document.find(".//main"))
    assert document.find(".//option[@value='gone']").get("selected") is not None
    assert client("sick").get("/racks?rack=gone&loss.page=2").status_code == 200


def test_every_link_of_a_view_is_understood() -> None:
    asked = {address for world, address in every_page() if world == "sick"}
    seen: set[str] = set()
    for address in sorted(asked | {"/proposals", "/moves", "/timeline", "/reports", "/whatif?remove-rack=eu-1c"}):
        for link in read(client("sick").get(address).text).iter("a"):
            href = (link.get("href") or "").partition("#")[0]
            seen.add(f"{address.partition('?')[0]}{href}" if href.startswith("?") else href)
    own = [one for one in sorted(seen) if one.startswith("/") and not one.startswith(("/api/", "/static/", "/theme"))]
    assert len(own) > 200
    assert [one for one in own if client("sick").get(one).status_code == 400] == []
