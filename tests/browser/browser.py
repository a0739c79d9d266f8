"""A browser on the agent's page: Debian's Chromium, what goes wrong in it, and signing in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from tests.deploy.tooling import needed

DESKTOP, PHONE = (1280, 800), (390, 844)
WITHIN_MS = 30_000
"""For what the agent has to see, plan or move; a busy machine is slow."""
expect.set_options(timeout=WITHIN_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; none is downloaded."""
    program = needed("chromium", "chromium")
    with sync_playwright() as playwright:
        # Its sandbox needs rights that root in a container has not.
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        yield browser
        browser.close()


class WatchedTab:
    """A tab, and everything that went wrong in it: errors of the console, of scripts, of requests, of the CSP."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        self.is_cut = False
        """While the connection is cut on purpose, requests may fail."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not self.is_cut:
            self.faults.append(f"console: {message.text}")

    def _failed(self, request: Request) -> None:
        # A page that is left ends its stream of events and what it was fetching.
        if not self.is_cut and "ERR_ABORTED" not in (request.failure or ""):
            self.faults.append(f"request: {request.url} {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.faults.append(f"answer: {response.status} {response.url}")


def sign_in(context: BrowserContext, address: str, name: str, token: str) -> WatchedTab:
    """A tab of that person, at the overview."""
    tab = WatchedTab(context.new_page())
    tab.page.goto(f"{address}/sign-in")
    tab.page.get_by_label("Name").fill(name)
    tab.page.get_by_label("Token").fill(token)
    tab.page.get_by_role("button", name="Sign in").click()
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Overview")
    return tab


def tab_at(context: BrowserContext, url: str) -> WatchedTab:
    """One more tab of the same person."""
    tab = WatchedTab(context.new_page())
    tab.page.goto(url)
    return tab


def size(of: tuple[int, int]) -> Any:
    return {"width": of[0], "height": of[1]}


def shown_cycle(page: Page) -> int:
    """The number of the look that the tab shows."""
    return int(page.locator("#live").get_attribute("data-cycle") or 0)
