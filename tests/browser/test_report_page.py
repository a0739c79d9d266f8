"""The pipeline's report in a real browser: on a wide screen, on a phone, light and dark, and on A4 paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from pipeline.report.compose import compose
from pipeline.report.document import SHOWN
from pipeline.report.html import to_html
from tests.browser.browser import DESKTOP, PHONE, WatchedTab, size
from tests.pipeline.report_facts import many_facts

PAPER = 1032
"""Width in CSS pixels of A4 on its side (297 mm) between margins of 12 mm."""
A4 = (842, 595)
"""In points."""
BEYOND = """width => [...document.querySelectorAll("table, svg, p, dl, h1, h2, code, summary")]
    .filter(one => one.checkVisibility() && one.getBoundingClientRect().right > width + 1)
    .filter(one => !one.parentElement.closest(".table, .plot") || getComputedStyle(
        one.parentElement.closest(".table, .plot")).overflowX === "visible")
    .map(one => one.tagName + " " + one.textContent.slice(0, 40))"""
"""What is wider than the page, unless it scrolls by itself."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with rows in every section."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(to_html(compose(many_facts())), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def width(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param


@pytest.fixture(params=["light", "dark"])
def tab(request: pytest.FixtureRequest, browser: Browser, width: tuple[int, int], report: str) -> Iterator[WatchedTab]:
    context = browser.new_context(viewport=size(width), color_scheme=request.param)
    opened = WatchedTab(context.new_page())
    opened.page.goto(report)
    yield opened
    context.close()


def test_nothing_is_wider_than_the_screen_and_the_browser_complains_about_nothing(
    tab: WatchedTab, width: tuple[int, int]
):
    page = tab.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width[0]
    assert page.evaluate(BEYOND, width[0]) == []
    assert page.locator("svg").count() == 7
    assert tab.faults == []
    ink, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert abs(_light(ink) - _light(paper)) > 180, "text can be read on its background"


def test_the_dearest_are_seen_first_the_rest_is_folded_and_a_link_leads_to_its_proposal(
    tab: WatchedTab, width: tuple[int, int]
):
    page = tab.page
    assert page.locator("main > section").first.get_attribute("id") == "avoidable"
    avoidable = page.locator("#avoidable")
    rows = avoidable.locator("tbody tr")
    assert [row.is_visible() for row in rows.all()] == [at < SHOWN for at in range(27)]
    first = avoidable.locator("td[data-head='command or setting'] code").first
    box = first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width[0], "what ends the dearest is seen without scrolling aside"
    avoidable.locator("summary").click()
    assert rows.last.is_visible()
    page.locator("a[href='#proposal-p-000000000011']").first.click()
    assert page.locator("#proposal-p-000000000011").is_visible(), "a folded row that a link leads to is unfolded"


@pytest.fixture
def printed(browser: Browser, report: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": PAPER, "height": 700}, color_scheme="dark")
    page = context.new_page()
    page.emulate_media(media="print")
    page.goto(report)
    yield page
    context.close()


def test_on_paper_no_table_is_cut_and_every_sheet_is_a4(printed: Page, tmp_path: Path):
    assert printed.evaluate(BEYOND, PAPER) == []
    assert printed.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "paper is white"
    seen = [row.is_visible() for row in printed.locator("#avoidable tbody tr").all()]
    assert seen == [at < SHOWN for at in range(27)]
    assert printed.locator("#avoidable summary").is_visible(), "it says where the other rows are"
    printed.emulate_media(media="screen", color_scheme="light")
    sheets = printed.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    boxes = {tuple(round(float(part)) for part in box) for box in _BOX.findall(sheets)}
    assert boxes == {A4}
    printed.emulate_media(media="print")
    kept = printed.evaluate("""[...document.querySelectorAll("tr")].map(one => getComputedStyle(one).breakInside)""")
    assert {*kept} == {"avoid"}, "no row is split between two sheets"


_BOX = re.compile(rb"/MediaBox\s*\[0 0 ([0-9.]+) ([0-9.]+)\]")


def _light(colour: str) -> float:
    return sum(map(float, re.findall(r"[0-9.]+", colour)[:3])) / 3
