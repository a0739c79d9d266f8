"""People work with the page of a live agent: they see a finding appear, approve its plan, and see the move finish."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.browsed_agent import CLICKED, CROWDED, DROPPED, TYPED, BrowsedAgent
from tests.browser.browser import (
    DESKTOP,
    PHONE,
    WITHIN_MS,
    WatchedTab,
    shown_cycle,
    sign_in,
    size,
    tab_at,
)
from tests.browser.cut_proxy import CutProxy

SHARED = "with replicas that share a rack"
pytestmark = pytest.mark.integration


class BrowsedPage(NamedTuple):
    """Two people at the agent's page, one of them with two tabs."""

    agent: BrowsedAgent
    proxy: CutProxy
    ann: WatchedTab
    """Role approve, at a desk."""
    beside: WatchedTab
    """Ann's second tab."""
    opa: WatchedTab
    """Role operate, at a phone."""

    @property
    def tabs(self) -> tuple[WatchedTab, ...]:
        return (self.ann, self.beside, self.opa)


@pytest.fixture(scope="module")
def walk(browser: Browser, browsed: BrowsedAgent) -> Iterator[BrowsedPage]:
    with CutProxy(browsed.address) as proxy:
        desk, phone = (browser.new_context(viewport=size(one)) for one in (DESKTOP, PHONE))
        ann = sign_in(desk, proxy.address, "ann", browsed.tokens["ann"])
        beside = tab_at(desk, f"{proxy.address}/racks?rack=a")
        opa = sign_in(phone, proxy.address, "opa", browsed.tokens["opa"])
        yield BrowsedPage(browsed, proxy, ann, beside, opa)
        desk.close()
        phone.close()


def until(true: Callable[[], object], page: Page) -> None:
    """Wait until it is true, while the tab's events are taken."""
    ends = time.monotonic() + WITHIN_MS / 1_000
    while not true():
        assert time.monotonic() < ends, f"it did not come about: {page.inner_text('main')[:2_000]}"
        page.wait_for_timeout(100)


def lost_with_a(page: Page) -> Locator:
    """Partitions of the topic that have no leader when rack a is lost, as the map says."""
    return page.locator("#loss tbody tr").filter(has_text=f"{CLICKED}-").filter(has_text="has no leader")


def test_a_finding_appears_in_an_open_tab(walk: BrowsedPage) -> None:
    walk.ann.page.goto(f"{walk.proxy.address}/findings?q={CLICKED}")
    expect(walk.ann.page.get_by_text("No finding").or_(walk.ann.page.locator(".empty")).first).to_be_visible()
    walk.agent.make_topics(CLICKED, TYPED)
    expect(walk.ann.page.locator("main tbody tr").filter(has_text=SHARED).first).to_be_visible()
    assert walk.ann.page.url.endswith(f"/findings?q={CLICKED}")
    assert walk.ann.faults == []


def test_the_map_shows_what_the_loss_of_the_rack_would_cost(walk: BrowsedPage) -> None:
    expect(lost_with_a(walk.beside.page)).to_have_count(len(CROWDED))


def test_a_viewer_cannot_approve(walk: BrowsedPage, browser: Browser) -> None:
    context = browser.new_context(viewport=size(DESKTOP))
    vic = sign_in(context, walk.proxy.address, "vic", walk.agent.tokens["vic"])
    vic.page.goto(_proposal_link(vic.page, walk.proxy.address, CLICKED))
    expect(vic.page.locator("#decide")).to_be_visible()
    expect(vic.page.get_by_role("button", name="Approve exactly this plan")).to_have_count(0)
    expect(vic.page.get_by_text("approve", exact=False).first).to_be_visible()
    context.close()
    assert vic.faults == []


def test_its_plan_is_approved_by_clicking_on_what_was_seen(walk: BrowsedPage) -> None:
    page = walk.ann.page
    page.goto(_proposal_link(page, walk.proxy.address, CLICKED))
    expect(page.locator("#table-checks")).to_be_visible()
    page.get_by_label("Reason, kept in the journal").first.fill("carts must outlive a rack")
    page.get_by_role("button", name="Approve exactly this plan").click()
    expect(page.locator(".notice.good")).to_contain_text("Done:")


def test_the_move_finishes_and_the_other_person_sees_it(walk: BrowsedPage) -> None:
    walk.opa.page.goto(f"{walk.proxy.address}/moves")
    until(lambda: all(len(racks) == 2 for racks in walk.agent.racks_of(CLICKED)), walk.opa.page)
    ended = walk.opa.page.locator("#table-plans tbody tr").filter(has_text="ann")
    expect(ended).to_contain_text("done")


def test_the_map_improves_without_a_reload(walk: BrowsedPage) -> None:
    expect(lost_with_a(walk.beside.page)).to_have_count(0)
    walk.ann.page.goto(f"{walk.proxy.address}/findings?q={CLICKED}")
    expect(walk.ann.page.locator("main tbody tr").filter(has_text=SHARED)).to_have_count(0)


def test_the_keyboard_alone_approves(walk: BrowsedPage) -> None:
    page = walk.ann.page
    proposal = _proposal_link(walk.opa.page, walk.proxy.address, TYPED).rpartition("=")[2]
    page.goto(walk.proxy.address)
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page.get_by_role("heading", level=1)).to_have_text("Proposals")
    _tab_to(page, "a", lambda text: text == proposal)
    page.keyboard.press("Enter")
    expect(page.locator("#decide")).to_be_visible()
    _tab_to(page, "button", lambda text: text == "Approve exactly this plan")
    page.keyboard.press("Enter")
    expect(page.locator(".notice.good")).to_contain_text("Done:")
    until(lambda: all(len(racks) == 2 for racks in walk.agent.racks_of(TYPED)), page)


def test_a_stale_plan_says_so_before_the_click_and_without_script_after_it(walk: BrowsedPage, browser: Browser) -> None:
    walk.agent.make_topics(DROPPED)
    context = browser.new_context(viewport=size(PHONE), java_script_enabled=False)
    plain = sign_in(context, walk.proxy.address, "opa", walk.agent.tokens["opa"])
    link = _proposal_link(walk.ann.page, walk.proxy.address, DROPPED)
    for page in (walk.ann.page, plain.page):
        page.goto(link)
        expect(page.get_by_role("button", name="Approve exactly this plan")).to_be_visible()
    walk.agent.drop_topic(DROPPED)
    expect(walk.ann.page.locator("#stale-plan")).to_contain_text("Stale.")
    expect(walk.ann.page.get_by_role("button", name="Approve exactly this plan")).to_have_count(0)
    plain.page.get_by_role("button", name="Approve exactly this plan").click()
    expect(plain.page.locator(".notice.bad")).to_contain_text("Not carried out.")
    context.close()
    assert all("409" in fault for fault in plain.faults), plain.faults


def test_two_tabs_agree(walk: BrowsedPage) -> None:
    for tab in (walk.ann, walk.beside):
        tab.page.goto(walk.proxy.address)

    def shown(tab: WatchedTab) -> tuple[int, str]:
        return shown_cycle(tab.page), tab.page.locator("dl.figures").inner_text()

    def agree() -> bool:
        first, second = shown(walk.ann), shown(walk.beside)
        return first == second and first[0] > began and shown(walk.ann) == first

    began = shown_cycle(walk.ann.page)
    until(agree, walk.ann.page)


def test_a_broken_connection_is_said_and_comes_back(walk: BrowsedPage) -> None:
    walk.ann.page.goto(f"{walk.proxy.address}/findings")
    expect(walk.ann.page.locator("#connection")).to_have_attribute("data-state", "live")
    for tab in walk.tabs:
        tab.is_cut = True
    walk.proxy.cut()
    expect(walk.ann.page.locator("#lost")).to_be_visible()
    expect(walk.ann.page.locator("#lost")).to_contain_text("The agent does not answer")
    last = shown_cycle(walk.ann.page)
    walk.proxy.mend()
    expect(walk.ann.page.locator("#connection")).to_have_attribute("data-state", "live")
    expect(walk.ann.page.locator("#lost")).to_be_hidden()
    until(lambda: shown_cycle(walk.ann.page) > last, walk.ann.page)


def test_nothing_went_wrong_in_any_tab(walk: BrowsedPage) -> None:
    assert [fault for tab in walk.tabs for fault in tab.faults] == []


def _proposal_link(page: Page, address: str, topic: str) -> str:
    """The address of the open proposal about a topic."""
    page.goto(f"{address}/proposals?q={topic}")
    row = page.locator("main tbody tr").filter(has_text=f"topic/{topic}")
    link = row.locator("a[href*='/proposals/proposal']").first  # the table of ended ones has links of other topics
    expect(link).to_be_visible()
    return f"{address}{link.get_attribute('href')}"


def _tab_to(page: Page, tag: str, wanted: Callable[[str], bool]) -> None:
    """Press Tab until that element has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        at = page.evaluate("() => [document.activeElement.localName, document.activeElement.innerText.trim()]")
        if at[0] == tag and wanted(at[1]):
            return
    pytest.fail(f"Tab does not reach the {tag}")
