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

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from testbed.demo.workload import ClusterWorkload
from tests.browser.browsed_agent import BrowsedAgent
from tests.browser.browser import DESKTOP, PHONE, WatchedTab, sign_in, size
from tests.browser.cut_proxy import CutProxy
from tests.browser.views import VIEWS, ShownView
from tests.web.page.fetch_assets import TEST_VENDOR, locked_files

pytestmark = pytest.mark.integration
AXE = (TEST_VENDOR / "axe.min.js").read_text()
KEPT = os.environ.get("RACKWISE_PICTURES")
COLOURS = 256
"""Of a picture: enough for letters with smooth edges."""
FARTHEST = 40
"""The difference from any colour of the screen to that of the picture, of 765: the palest sign keeps its colour."""
MOST_BYTES = 120_000
"""Of a picture that stays."""
_RUN = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


class ViewedAgent(NamedTuple):
    """A person at the agent's page, once in light and once in dark colours."""

    address: str
    tabs: dict[str, WatchedTab]


@pytest.fixture(scope="module")
def viewed(browser: Browser, browsed: BrowsedAgent, work: ClusterWorkload) -> Iterator[ViewedAgent]:
    if KEPT is not None:  # in a test run the workload is shared with others
        work.scale_out("shop", "c")
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
    return tmp_path_factory.mktemp("pictures") if KEPT is None else Path(KEPT)


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
        expect(tab.page.locator(".sidebar a[aria-current]")).to_be_in_viewport(ratio=0.9)
        drawings = tab.page.locator(".picture > .drawing").locator("visible=true")
        expect(drawings).to_have_count(tab.page.locator(".picture").count())  # one for each shape of the screen
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
    """A picture of what the screen shows; one that stays has few colours, so that it is small."""
    if KEPT is not None:  # on a busy machine a look may take long: that is said, and is no picture of the view
        expect(page.locator("#stale, .banner.served").locator("visible=true")).to_have_count(0)
    taken = Image.open(BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    assert taken.size == tuple((page.viewport_size or {}).values())
    if KEPT is None:
        taken.save(file)
        return
    colours, of_pixels, counts = np.unique(
        np.asarray(taken).reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    wanted = COLOURS
    while True:
        palette = _palette(colours, counts, wanted)
        distance = np.abs(colours[:, None, :].astype(int) - palette[None, :, :]).sum(axis=2)
        few = Image.fromarray(distance.argmin(axis=1)[of_pixels.ravel()].astype("uint8").reshape(taken.size[::-1]), "P")
        few.putpalette(palette.tobytes())
        few.save(file, optimize=True)
        assert distance.min(axis=1).max() <= FARTHEST
        if file.stat().st_size <= MOST_BYTES:
            return
        wanted //= 2


def _palette(colours: Any, counts: Any, wanted: int) -> Any:
    """The most frequent colours, and as many that are farthest from them: a small coloured sign is not grey."""
    chosen = list(np.argsort(-counts)[: wanted // 2])
    left = np.abs(colours[:, None, :].astype(int) - colours[chosen][None, :, :]).sum(axis=2).min(axis=1)
    while len(chosen) < min(wanted, len(colours)):
        chosen.append(int(left.argmax()))
        left = np.minimum(left, np.abs(colours.astype(int) - colours[chosen[-1]]).sum(axis=1))
    return colours[chosen]
