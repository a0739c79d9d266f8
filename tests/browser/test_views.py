"""Every view of a live agent, at a desk and at a phone, light and dark: it fits, nothing fails, and axe finds no fault.

With RACKWISE_PICTURES the pictures stay in that folder (make pictures).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.browser.browsed_agent import BrowsedAgent
from tests.browser.browser import DESKTOP, PHONE, WatchedTab, sign_in, size
from tests.browser.cut_proxy import CutProxy
from tests.browser.views import VIEWS, ShownView
from tests.web.page.fetch_assets import TEST_VENDOR, locked_files

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
AXE = (TEST_VENDOR / "axe.min.js").read_text()
COLOURS = 256
"""Of a picture: enough for letters with smooth edges."""
_RUN = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


class ViewedAgent(NamedTuple):
    """A person at the agent's page, once in light and once in dark colours."""

    address: str
    tabs: dict[str, WatchedTab]


@pytest.fixture(scope="module")
def viewed(browser: Browser, browsed: BrowsedAgent) -> Iterator[ViewedAgent]:
    with CutProxy(browsed.address, spread=True) as proxy:
        tabs = {}
        for theme in ("light", "dark"):
            context = browser.new_context(viewport=size(DESKTOP), color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
            tabs[theme] = sign_in(context, proxy.address, "opa", browsed.tokens["opa"])
            # Rates are known when sizes of logs were seen twice.
            expect(tabs[theme].page.locator("dl.figures dd").first).to_contain_text("B/s")
        yield ViewedAgent(proxy.address, tabs)
        for tab in tabs.values():
            tab.page.context.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("RACKWISE_PICTURES")
    return Path(named) if named else tmp_path_factory.mktemp("pictures")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_fits_and_can_be_used_by_all(viewed: ViewedAgent, folder: Path, view: ShownView, theme: str) -> None:
    tab = viewed.tabs[theme]
    tab.faults.clear()
    _open(tab.page, viewed.address, view)
    for shape, of in (("desk", DESKTOP), ("phone", PHONE)):
        tab.page.set_viewport_size(size(of))
        assert _wider_than_the_screen(tab.page) == []
        assert _faults_of_access(tab.page) == []
        _take(tab.page, folder / f"{view.name}-{shape}-{theme}.png")
    assert tab.faults == []


def test_the_files_of_the_test_are_those_of_its_lock() -> None:
    for row in locked_files(TEST_VENDOR):
        assert hashlib.sha256((TEST_VENDOR / row.copy).read_bytes()).hexdigest() == row.sha256


def _open(page: Page, address: str, view: ShownView) -> None:
    page.set_viewport_size(size(DESKTOP))
    page.goto(f"{address}{view.path}")
    if view.follow:
        page.locator(view.follow).first.click()
        expect(page.locator("#decide")).to_be_visible()
    expect(page.locator("h1")).to_be_visible()
    page.evaluate("() => document.fonts.ready")


def _wider_than_the_screen(page: Page) -> list[str]:
    """What makes the page scroll sideways; empty where it does not."""
    return page.evaluate(  # type: ignore[no-any-return]
        """() => {
          const room = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= room) return [];
          return [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > room + 1)
            .slice(0, 5).map((one) => one.outerHTML.slice(0, 160));
        }"""
    )


def _faults_of_access(page: Page) -> list[str]:
    """Serious and critical faults that axe finds."""
    # By the protocol of the browser's tools, past the Content-Security-Policy of the page, which allows no such script.
    page.evaluate(AXE)
    found: list[dict[str, Any]] = page.evaluate(_RUN)
    return [
        f"{one['id']} ({one['impact']}): {json.dumps([node['target'] for node in one['nodes'][:4]])} "
        f"{one['nodes'][0]['failureSummary'][:400]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def _take(page: Page, file: Path) -> None:
    """A picture of what the screen shows, small as a file."""
    taken = Image.open(BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    assert taken.size == tuple((page.viewport_size or {}).values())
    # The most frequent colours stay exactly as they are; shades of letters become the nearest of them.
    counted = sorted(taken.getcolors(taken.width * taken.height), reverse=True)[:COLOURS]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in counted for part in colour])
    taken.quantize(palette=palette, dither=Image.Dither.NONE).save(file, optimize=True)
