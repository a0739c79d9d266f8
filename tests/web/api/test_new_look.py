"""While the documents of a new look are made, the look before is answered."""

from __future__ import annotations

import time
from dataclasses import replace

import httpx
import pytest

from agent.values.cycle import Cycle
from tests.cli.documents import a_cluster
from tests.web.api.agents import cycle_of, state_of, view_of
from tests.web.api.servers import client_of

FIRST = cycle_of(a_cluster().at())


class ChangingAgent:
    """An agent whose last cycle a test changes."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self.view = view_of(None, state=lambda: state_of(self.cycle))


def cycle_shown(answer: httpx.Response) -> int:
    return int(answer.headers["rackwise-cycle"])


def test_the_look_before_is_answered_until_the_documents_of_the_new_one_are_made() -> None:
    agent = ChangingAgent(FIRST)
    with client_of(agent.view) as client:
        assert cycle_shown(client.get("/api/v1/groups")) == 1
        agent.cycle = replace(FIRST, number=2, look="look-2")
        assert cycle_shown(client.get("/api/v1/groups")) == 1
        until = time.monotonic() + 10
        while cycle_shown(client.get("/api/v1/groups")) == 1:
            assert time.monotonic() < until
        assert client.get("/api/v1/look").json()["look"] == "look-2"


def test_reassignments_are_of_the_look_that_is_named() -> None:
    agent = ChangingAgent(FIRST)
    moved = replace(FIRST.observation, reassignments=())
    with client_of(agent.view) as client:
        client.get("/api/v1/reassignments")
        agent.cycle = replace(FIRST, number=2, look="look-2", observation=moved)
        seen = []
        until = time.monotonic() + 10
        while not seen or seen[-1][0] == 1:
            answer = client.get("/api/v1/reassignments")
            seen.append((cycle_shown(answer), len(answer.json()["reassignments"])))
            assert time.monotonic() < until
    assert seen[0] == (1, 1)
    assert set(seen) == {(1, 1), (2, 0)}


@pytest.mark.parametrize("path", ["/api/v1/groups/nothing", "/api/v1/groups?sort=nothing"])
def test_a_request_that_fails_makes_the_documents_of_a_new_look_all_the_same(path: str) -> None:
    agent = ChangingAgent(FIRST)
    with client_of(agent.view) as client:
        client.get("/api/v1/groups")
        agent.cycle = replace(FIRST, number=2)
        assert client.get(path).status_code in {404, 422}
        until = time.monotonic() + 10
        while cycle_shown(client.get("/api/v1/cluster")) == 1:
            assert time.monotonic() < until
