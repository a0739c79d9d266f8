"""Every route of the API against every role, over a real server: who may read, and who may command what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.openapi import committed
from tests.web.access.site import Site, fresh_address, site
from tests.web.api.agents import view_of
from tests.web.test_metrics import CYCLE

PROXY = "127.0.0.88"
PEOPLE = {"a stranger": None, "without a role": "none", "view": "staff", "approve": "kafka", "operate": "ops"}
"""Who asks -> the group that the proxy names."""
ROUTES = [(method.upper(), path) for path, methods in committed()["paths"].items() for method in methods]
CASES = [
    (who, *one) for who in PEOPLE for one in ROUTES if one[1] != "/events" or who in ("a stranger", "without a role")
]
"""A stream has no end: tests/web/api/test_events.py reads it."""
_ORDER = ("view", "approve", "operate")


def needed(method: str, path: str) -> str:
    """The least role, as docs/access.md has it."""
    if method == "GET":
        return "view"
    return "operate" if path.rpartition("/")[2] in ("pause", "resume") else "approve"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    rules: dict[str, Any] = {
        "networks": [f"{PROXY}/32"], "view": ["staff"], "approve": ["kafka"], "operate": ["ops"],
    }  # fmt: skip
    with site(tmp_path_factory.mktemp("roles"), {"auth": {"proxy": rules}}, view=view_of(CYCLE)) as running:
        yield running


def test_every_kind_of_route_is_there() -> None:
    assert {needed(*one) for one in ROUTES} == set(_ORDER)
    assert len(ROUTES) >= 30


@pytest.mark.parametrize(("who", "method", "path"), CASES, ids=[" ".join(case) for case in CASES])
def test_a_route_is_open_to_its_role_and_those_above_alone(here: Site, who: str, method: str, path: str) -> None:
    where = f"/api/v1{path.replace('{', '').replace('}', '')}?subject=topic/t"
    headers = {"Content-Type": "application/json"}
    group = PEOPLE[who]
    if group is not None:
        headers |= {"X-Forwarded-User": "ann", "X-Forwarded-Groups": group}
    body = "{}" if method == "POST" else ""
    answer = here.ask(method, where, headers, body, source=PROXY if group else fresh_address())
    role = needed(method, path)
    if group is None:
        assert answer.status == 401, answer
    elif who not in _ORDER or _ORDER.index(who) < _ORDER.index(role):
        assert answer.status == 403, answer
        assert f"lacks the role {'view' if who not in _ORDER and method == 'GET' else ''}" in answer.text
    else:
        assert answer.status not in (401, 403), answer
