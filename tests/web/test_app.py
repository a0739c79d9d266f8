"""Health over HTTP, asked of a real server on a loopback address."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import httpx
import pytest

from agent.errors import ConfigError
from agent.record.librdkafka import RecordCounts
from agent.record.recorder import RecordingResult
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.plan import ExecuteFault, ExecuteState
from agent.web import metrics, money_metrics
from agent.web.agent_view import CycleFailure, LoopState
from agent.web.app import WebServer, make_app
from agent.web.metrics import SeriesCaps
from agent.web.money_metrics import Sample
from tests.web.test_metrics import CYCLE, looked, state

NOW = ClockReading(1_760_000_010_000, 10_000)


class Seen:
    """The state that the server under test is shown."""

    value = state()


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    app = make_app(
        lambda: Seen.value,
        lambda: NOW,
        fresh_ms=30_000,
        stall_ms=60_000,
        caps=SeriesCaps(),
        allowed_hosts=["Agent.Example"],
    )
    with WebServer(app, "127.0.0.1", 0) as started:
        yield started


def get(server: WebServer, path: str, seen: LoopState | None = None, **headers: str) -> httpx.Response:
    Seen.value = seen or state()
    return httpx.get(f"http://{server.address}{path}", headers=headers, timeout=10)


GAPS = (
    Gap.of_broker(ObservationPart.LOG_DIRS, GapCause.TIMED_OUT, 2, "no answer in 5000 ms"),
    Gap(ObservationPart.GROUPS, GapCause.NOT_ALLOWED, "pay\nments", "GROUP_AUTHORIZATION_FAILED"),
)
BLIND = state(replace(CYCLE, snapshot=replace(CYCLE.snapshot, gaps=GAPS)))


@pytest.mark.parametrize(
    ("seen", "status", "reasons"),
    [
        pytest.param(state(), 200, [], id="a fresh look"),
        pytest.param(LoopState(started=ClockReading(0, 0)), 503, ["no look has succeeded yet"], id="no look yet"),
        pytest.param(
            replace(state(), last_success=ClockReading(0, -30_000)),
            503,
            ["the last successful look was 40 s ago"],
            id="an old look",
        ),
        pytest.param(
            replace(state(), failure=CycleFailure(7, "no broker answers", 0)),
            503,
            ["no broker answers"],
            id="a failing loop",
        ),
        pytest.param(replace(state(), stopping=True), 503, ["the agent is stopping"], id="about to end"),
        pytest.param(BLIND, 200, [], id="a partial look is a look"),
    ],
)
def test_readyz(server: WebServer, seen: LoopState, status: int, reasons: list[str]) -> None:
    answer = get(server, "/readyz", seen)
    assert (answer.status_code, answer.json()["ready"], answer.json()["reasons"]) == (status, status == 200, reasons)


@pytest.mark.parametrize(
    ("now", "status", "reasons", "waits_for"),
    [
        pytest.param(ExecuteState(leads=False), 200, [], None, id="an agent that stands by is ready"),
        pytest.param(
            ExecuteState(leads=False, troubles={ExecuteFault.LEAD: "GROUP_AUTHORIZATION_FAILED"}),
            503,
            ["this agent cannot lead: GROUP_AUTHORIZATION_FAILED"],
            None,
            id="one that could not lead is not",
        ),
        pytest.param(ExecuteState(leads=True, plans=0), 200, [], None, id="a leader without plans"),
        pytest.param(
            ExecuteState(leads=True, plans=1, waits="no new batch: outside of every window"),
            200,
            [],
            "no new batch: outside of every window",
            id="a waiting plan is named",
        ),
        pytest.param(
            ExecuteState(leads=True, plans=1, troubles={ExecuteFault.LOOK: "only one broker described the topics"}),
            503,
            ["plans are not carried on: only one broker described the topics"],
            None,
            id="its executor sees nothing",
        ),
        pytest.param(
            ExecuteState(leads=True, troubles={ExecuteFault.PLANS: "fenced", ExecuteFault.JOURNAL: "no answer"}),
            503,
            ["no plan is carried out any more: fenced", "plans are not carried on: no answer"],
            None,
            id="everything fails",
        ),
        pytest.param(
            ExecuteState(leads=True, plans=0, notices=("rackwise.leader has 3 partitions",)),
            200,
            [],
            None,
            id="what is only a notice",
        ),
    ],
)
def test_readyz_says_whether_mode_execute_can_act(
    server: WebServer, now: ExecuteState, status: int, reasons: list[str], waits_for: str | None
) -> None:
    answer = get(server, "/readyz", replace(state(), acting=now))
    assert (answer.status_code, answer.json()["reasons"]) == (status, reasons)
    assert answer.json()["acting"] == {
        "leads": now.leads, "plans_open": now.plans, "waits_for": waits_for, "notices": list(now.notices),
    }  # fmt: skip
    assert get(server, "/livez", replace(state(), acting=now)).status_code == 200, "a restart mends none of it"


def test_what_mode_execute_does_is_told_as_it_is_now_and_not_as_at_the_last_look() -> None:
    now = ExecuteState(leads=False, troubles={ExecuteFault.LEAD: "the lock topic is gone"})
    app = make_app(state, lambda: NOW, fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps(), acting=lambda: now)
    with WebServer(app, "127.0.0.1", 0) as started:
        page = httpx.get(f"http://{started.address}/metrics", timeout=10).text
        answer = httpx.get(f"http://{started.address}/readyz", timeout=10)
    assert "rackwise_leads 0.0" in page
    assert 'rackwise_acting_fails{what="lead"} 1.0' in page
    assert answer.json()["reasons"] == ["this agent cannot lead: the lock topic is gone"]


def test_readyz_names_what_it_cannot_see_and_what_it_could_not_record(server: WebServer) -> None:
    recording = RecordingResult(True, RecordCounts(0, 3, 0), 0, ("rackwise.telemetry: Topic authorization failed",))
    document = get(server, "/readyz", replace(BLIND, recording=recording)).json()
    assert document["not_seen"] == [
        {"part": "log dirs", "cause": "no answer in time", "subject": "broker 2", "detail": "no answer in 5000 ms"},
        {
            "part": "groups",
            "cause": "not authorized",
            "subject": "pay\\nments",
            "detail": "GROUP_AUTHORIZATION_FAILED",
        },
    ]
    assert document["not_recorded"] == ["rackwise.telemetry: Topic authorization failed"]
    assert (document["cycle"], document["mode"], document["cluster"]) == (1, "propose", "synthetic-world")
    assert document["sentence"].startswith("saw 12 brokers in 3 racks")


@pytest.mark.parametrize(
    ("seen", "status", "reasons"),
    [
        pytest.param(state(), 200, [], id="a loop that turns"),
        pytest.param(replace(state(), failure=CycleFailure(7, "x", 0)), 200, [], id="a failing loop turns too"),
        pytest.param(LoopState(started=ClockReading(0, 5_000)), 200, [], id="just started"),
        pytest.param(
            replace(state(), last_end=ClockReading(0, -60_000)),
            503,
            ["no cycle has ended for 70 s"],
            id="a loop that hangs",
        ),
        pytest.param(
            LoopState(started=ClockReading(0, -90_000)), 503, ["no cycle has ended for 100 s"], id="never began"
        ),
    ],
)
def test_livez(server: WebServer, seen: LoopState, status: int, reasons: list[str]) -> None:
    answer = get(server, "/livez", seen)
    assert (answer.status_code, answer.json()) == (status, {"live": status == 200, "reasons": reasons})


@pytest.mark.parametrize(
    ("host", "status"),
    [
        pytest.param("127.0.0.1:9464", 200, id="an address"),
        pytest.param("127.0.0.1", 200, id="an address without port"),
        pytest.param("[::1]:9464", 200, id="an IPv6 address"),
        pytest.param("10.1.2.3:9464", 200, id="the address of a pod"),
        pytest.param("localhost:9464", 200, id="localhost"),
        pytest.param("LOCALHOST", 200, id="in capitals"),
        pytest.param("agent.example:9464", 200, id="a host that the settings name"),
        pytest.param("evil.example", 421, id="any other name"),
        pytest.param("127.0.0.1.evil.example", 421, id="a name that begins like an address"),
        pytest.param("localhost.evil.example", 421, id="a name that begins like localhost"),
        pytest.param("evil.example:127.0.0.1", 421, id="an address for a port"),
        pytest.param("", 421, id="no name"),
        pytest.param("[::1].evil.example", 421, id="a name that begins like an IPv6 address"),
        pytest.param("[::1].evil.example:9464", 421, id="such a name with a port"),
        pytest.param("[::1]evil.example", 421, id="a name right after an IPv6 address"),
        pytest.param("[::1%evil.example]", 421, id="a name as the scope of an IPv6 address"),
        pytest.param("::1%evil.example", 421, id="such a scope without brackets"),
        pytest.param("[localhost]", 421, id="a name in brackets"),
        pytest.param("[127.0.0.1]:9464", 200, id="an address in brackets"),
        pytest.param("localhost:evil.example", 421, id="a name for a port"),
        pytest.param("localhost:80:evil.example", 421, id="a name after a port"),
        pytest.param("evil.example@localhost", 421, id="a user before the name"),
    ],
)
@pytest.mark.parametrize("path", ["/livez", "/metrics", "/nowhere"])
def test_only_known_hosts_are_answered(server: WebServer, host: str, status: int, path: str) -> None:
    expected = 404 if path == "/nowhere" and status == 200 else status
    assert get(server, path, host=host).status_code == expected


def test_two_host_headers_are_refused(server: WebServer) -> None:
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert raw.recv(100).split()[1] in (b"400", b"421")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_it_is_for_reading_only(server: WebServer, method: str, path: str) -> None:
    assert httpx.request(method, f"http://{server.address}{path}", timeout=10).status_code == 405


def test_metrics_come_in_the_form_that_is_asked_for(server: WebServer) -> None:
    plain = get(server, "/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=")
    assert 'rackwise_cycles_total{outcome="succeeded"} 4.0' in plain.text
    assert "process_resident_memory_bytes" in plain.text
    modern = get(server, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert modern.headers["content-type"].startswith("application/openmetrics-text")
    assert modern.text.endswith("# EOF\n")


def test_answers_are_neither_kept_nor_guessed_at(server: WebServer) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        headers = get(server, path).headers
        assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
        assert "server" not in headers


def test_a_port_that_is_taken_is_a_setting_to_correct(server: WebServer) -> None:
    app = make_app(lambda: Seen.value, lambda: NOW, fresh_ms=1, stall_ms=1, caps=SeriesCaps())
    with pytest.raises(ConfigError) as refused:
        WebServer(app, "127.0.0.1", int(server.address.rpartition(":")[2]))
    assert refused.value.exit_code == 2
    assert str(refused.value).endswith("Set http.bind and http.port to a free address, or http.enabled to false.")


def test_once_stopped_nothing_listens() -> None:
    app = make_app(lambda: Seen.value, lambda: NOW, fresh_ms=1, stall_ms=1, caps=SeriesCaps())
    with WebServer(app, "127.0.0.1", 0) as started:
        address = started.address
        assert httpx.get(f"http://{address}/livez", timeout=10).status_code == 503
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://{address}/livez", timeout=10)


def test_a_scrape_of_many_groups_does_not_wait_for_the_samples_of_a_new_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(money_metrics, "MOST_AT_ONCE", len(CYCLE.snapshot.groups) - 1)
    seen, began, released, made = looked(1, after_s=0), threading.Event(), threading.Event(), list[int]()

    def slow(cycle: Cycle, most: int) -> Mapping[str, Sequence[Sample]]:
        if cycle.number > 1:
            began.set()
            assert released.wait(30)
        made.append(cycle.number)
        return figures(cycle, most)

    figures = metrics._groups
    monkeypatch.setattr(metrics, "_groups", slow)
    app = make_app(lambda: seen, lambda: NOW, fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps())
    with WebServer(app, "127.0.0.1", 0) as started:
        assert _samples_at(started) == 0
        seen = looked(2, after_s=10)
        assert _samples_at(started) == 0
        assert began.wait(30), "made although no scrape follows"
        assert [_samples_at(started) for _ in range(3)] == [0, 0, 0], "while they are made"
        released.set()
        until = time.monotonic() + 30
        while _samples_at(started) != 10 and time.monotonic() < until:
            time.sleep(0.02)
        assert _samples_at(started) == 10
    assert made == [1, 2], "once each"


def _samples_at(server: WebServer) -> float:
    """Seconds between `CYCLE` and the look of the samples in an answer."""
    text = httpx.get(f"http://{server.address}/metrics", timeout=10).text
    found = [line.split()[1] for line in text.splitlines() if line.startswith("rackwise_samples_timestamp_seconds ")]
    return float(*found) - CYCLE.snapshot.taken_ms / 1_000
