"""A stream of events is long under way: it ends with what it rests on, and keeps no session from ending."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from agent.web.access.credentials import SessionStore
from agent.web.access.person import AccessRole, SignedInPerson, SignInWay, up_to
from agent.web.api import application
from tests.cli.documents import a_cluster
from tests.web.access.site import Site, site
from tests.web.api.agents import cycle_of, view_of

ANN = SignedInPerson("ann", up_to(AccessRole.APPROVE), SignInWay.TOKEN)
GOES_ON_S = 1.0
"""So long a stream is watched that is not to end; ten heartbeats."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(application, "_HEARTBEAT_S", 0.1)
    with site(tmp_path, view=view_of(cycle_of(a_cluster().at()))) as running:
        yield running


def ends(here: Site, headers: dict[str, str], then: Callable[[], object], within_s: float = 20) -> bool:
    """Whether a stream of events ends after that is done; false where it goes on for so long."""
    url = f"http://{here.server.address}/api/v1/events"
    with httpx.stream("GET", url, headers=headers, timeout=20) as answer:
        assert answer.status_code == 200
        chunks = answer.iter_raw()
        next(chunks)
        then()
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if next(chunks, None) is None:
                return True
    return False


def test_a_stream_goes_on_while_its_person_may_look(here: Site) -> None:
    for headers in (here.bearer("ann"), {"cookie": here.signed_in("ann").cookie}):
        assert not ends(here, headers, lambda: None, GOES_ON_S)


def test_a_stream_of_a_token_or_of_its_session_ends_with_it(here: Site, tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    lines = file.read_text().splitlines(keepends=True)
    browser = here.signed_in("ann")
    without = "".join(line for line in lines if '"ann"' not in line)
    assert ends(here, here.bearer("ann"), lambda: file.write_text(without))
    file.write_text("".join(lines))
    assert ends(here, {"cookie": browser.cookie}, lambda: file.write_text(without))


def test_a_stream_ends_when_its_browser_signs_out(here: Site) -> None:
    cookie = here.signed_in("vic").cookie
    assert ends(here, {"cookie": cookie}, lambda: here.gate.sessions.end(cookie.partition("=")[2]))


def test_a_look_at_a_session_that_uses_it_not_lets_it_end() -> None:
    store = SessionStore(idle_ms=1_000, max_ms=5_000)
    cookie = store.begin(ANN, "", 0)
    assert store.find(cookie, 900, used=False) is not None
    assert store.find(cookie, 1_000, used=False) is None, "it was used at 0 for the last time"
    other = store.begin(ANN, "", 0)
    assert store.find(other, 900) is not None
    assert store.find(other, 1_800, used=False) is not None
    assert store.count == 1
