"""Server-Sent Events: what is sent, to whom, how a client comes back; what slow or many clients do to the server."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from agent.values.cycle import Cycle
from agent.web.agent_view import AgentView
from agent.web.api import application
from agent.web.app import ServerBounds, WebServer
from agent.web.page.look_documents import shown_looks
from tests.builders import an_observation
from tests.cli.documents import a_cluster
from tests.observe.live import wait_for
from tests.web.api.agents import cycle_of, state_of, view_of
from tests.web.api.servers import GENEROUS, server_of

FIRST = cycle_of(a_cluster().at())
SECOND = cycle_of(an_observation(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 2), (2, 3)).at(), number=2)


class ShownAgent:
    """An agent whose last cycle a test changes."""

    def __init__(self, cycle: Cycle | None = FIRST) -> None:
        self.cycle = cycle
        self.stopping = False
        self.view: AgentView = view_of(None, state=lambda: replace(state_of(self.cycle), stopping=self.stopping))


def stream_of(agent: ShownAgent) -> application.EventStream:
    return application.EventStream(agent.view, shown_looks(agent.view, (), 30_000))


Event = tuple[str, str, Any]


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    """(name, id, data) of each event."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line and fields:
            if "data" in fields:
                yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value


@contextmanager
def listening(server: WebServer, last: str | None = None) -> Iterator[Iterator[Event]]:
    headers = {} if last is None else {"last-event-id": last}
    url = f"http://{server.address}/api/v1/events"
    with httpx.stream("GET", url, headers=headers, timeout=20) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield parsed(answer.iter_lines())


def until(stream: Iterator[Event], name: str) -> list[Event]:
    found = []
    for event in stream:
        found.append(event)
        if event[0] == name:
            return found
    raise AssertionError(f"the stream ended before {name}")


def test_a_listener_learns_of_the_present_look_and_of_each_new_one_with_what_changed() -> None:
    agent = ShownAgent()
    with server_of(agent.view) as server, listening(server) as stream:
        name, _, data = next(stream)
        assert (name, data["cycle"], data["look"]) == ("look", 1, "look-1")
        agent.cycle = SECOND
        name, _, data = next(stream)
        assert (name, data["cycle"]) == ("look", 2)
        found = [next(stream) for _ in range(4)]
        changes = {(name, data["change"]) for name, _, data in found}
        assert changes >= {("finding", "ended")}
        agent.stopping = True
        rest = [*found, *stream]
    gone = {data["id"] for name, _, data in rest if (name, data.get("change")) == ("proposal", "gone")}
    assert gone == {one.id for one in FIRST.proposals} - {one.id for one in SECOND.proposals}
    ended = {data["id"] for name, _, data in rest if (name, data.get("change")) == ("finding", "ended")}
    assert ended == {one.id for one in FIRST.detection.findings} - {one.id for one in SECOND.detection.findings}


def test_a_listener_that_comes_back_gets_what_it_missed() -> None:
    agent = ShownAgent()
    with server_of(agent.view) as server, listening(server) as other:
        next(other)
        agent.cycle = SECOND
        missed = until(other, "proposal")
        with listening(server, missed[0][1]) as again:
            assert [next(again) for _ in missed[1:]] == missed[1:]


@pytest.mark.parametrize("last", ["0000-1", "x", "-", "1", "a-99999999999999999999"])
def test_a_listener_of_another_life_is_told_to_read_everything_again(last: str) -> None:
    with server_of(ShownAgent().view) as server, listening(server, last) as stream:
        assert next(stream)[0] == "reset"


def test_before_the_first_look_a_listener_waits_for_it() -> None:
    agent = ShownAgent(None)
    with server_of(agent.view) as server, listening(server) as stream:
        assert next(stream)[2] == {}
        agent.cycle = FIRST
        assert next(stream)[2]["cycle"] == 1


def test_streams_take_no_page_and_outlive_the_time_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "_HEARTBEAT_S", 0.1)
    bounds = GENEROUS._replace(pages=1, answer_s=0.5, head_s=5.0)
    agent = ShownAgent()
    with server_of(agent.view, bounds=bounds) as server, ExitStack() as open_streams:
        streams = [open_streams.enter_context(listening(server)) for _ in range(5)]
        for stream in streams:
            next(stream)
        time.sleep(1.5)
        assert httpx.get(f"http://{server.address}/api/v1/cluster", timeout=10).status_code == 200
        agent.cycle = SECOND
        assert [next(stream)[2]["cycle"] for stream in streams] == [2] * 5


def test_one_stream_too_many_is_refused_with_a_time_to_come_back() -> None:
    bounds = GENEROUS._replace(streams=2)
    with server_of(ShownAgent().view, bounds=bounds) as server, ExitStack() as open_streams:
        streams = [open_streams.enter_context(listening(server)) for _ in range(2)]
        for stream in streams:
            next(stream)
        answer = httpx.get(f"http://{server.address}/api/v1/events", timeout=10)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert httpx.get(f"http://{server.address}/api/v1/cluster", timeout=10).status_code == 200


def test_a_listener_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = ShownAgent()
    bounds = ServerBounds(answer_s=1.0, per_s=1e6, burst=1e6)
    with server_of(agent.view, bounds=bounds) as server:
        host, port = server.address.split(":")
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        raw.connect((host, int(port)))
        raw.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert raw.recv(12) == b"HTTP/1.1 200"
        big = [("finding", {"id": f"f-{number}", "text": "x" * 2_000}) for number in range(10_000)]
        monkeypatch.setattr(application, "_changes", lambda _before, _now: big)
        agent.cycle = SECOND
        wait_for(lambda: server.connections == 0, "it is cut off", 20)
        raw.close()


def test_all_listeners_share_one_message() -> None:
    agent = ShownAgent()
    stream = stream_of(agent)
    queues: list[Any] = [asyncio.Queue(100) for _ in range(50)]
    stream._listeners.update(queues)
    stream._send(("look", {"cycle": 1}))
    assert len({id(queue.get_nowait()) for queue in queues}) == 1


def test_names_that_lie_about_events_stay_within_their_line() -> None:
    stream = stream_of(ShownAgent())
    stream._send(("finding", {"sentence": "a\n\nevent: look\ndata: {}\r\n\u2028\ud800"}))
    (message,) = stream._ring
    assert message.body.count(b"\n") == 4
    assert message.body.startswith(b"id: ")


def test_the_server_stops_at_once_with_streams_open() -> None:
    agent = ShownAgent()
    with server_of(agent.view) as server:
        ended = threading.Event()

        def listen() -> None:
            try:
                with listening(server) as stream:
                    for _ in stream:
                        pass
            except httpx.HTTPError:
                pass
            ended.set()

        threading.Thread(target=listen, daemon=True).start()
        wait_for(lambda: server.connections == 1, "it listens", 10)
        began = time.monotonic()
        agent.stopping = True
        assert ended.wait(5)
    assert time.monotonic() - began < 4


def test_a_listener_that_is_many_looks_behind_is_let_go() -> None:
    stream = stream_of(ShownAgent())
    queue: Any = asyncio.Queue(application._WAITING + 1)
    stream._listeners.add(queue)
    for number in range(application._WAITING + 5):
        stream._send(("look", {"cycle": number}))
    assert not stream._listeners
    chunks = [queue.get_nowait() for _ in range(queue.qsize())]
    assert (len(chunks), chunks[-1]) == (application._WAITING + 1, None)


def test_a_look_with_very_many_changes_counts_what_it_does_not_name() -> None:
    before = application._SeenState(1, {}, {}, {})
    now = application._SeenState(2, {f"f-{number}": {"id": f"f-{number}"} for number in range(250)}, {}, {})
    told = list(application._changes(before, now))
    assert len(told) == 101
    assert told[-1] == ("finding", {"change": "begun", "more": 150})


def test_a_stream_ends_by_itself_so_that_access_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "_LIFETIME_S", 0.3)
    monkeypatch.setattr(application, "_HEARTBEAT_S", 0.1)
    with server_of(ShownAgent().view) as server, listening(server) as stream:
        assert [name for name, _, _ in stream] == ["look"]


def test_fifty_tabs_get_each_look_which_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they cost of a core is measured by tests/bench/bench_page_load.py."""
    compared: list[int] = []
    changes = application._changes

    def counted(before: application._SeenState, now: application._SeenState) -> Iterator[tuple[str, dict[str, Any]]]:
        compared.append(now.cycle)
        return changes(before, now)

    monkeypatch.setattr(application, "_changes", counted)
    agent = ShownAgent()
    with server_of(agent.view) as server, ExitStack() as held:
        streams = [held.enter_context(listening(server)) for _ in range(50)]
        for stream in streams:
            next(stream)
        for number in (2, 3):
            agent.cycle = replace(FIRST, number=number)
            for stream in streams:
                name, _, data = next(stream)
                assert (name, data["cycle"]) == ("look", number)
    assert compared == [2, 3]
