"""What the gate promises to everyone who is let in: headers, forms, links, sessions, bounds, and roles of routes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.web.access.credentials import MOST, MOST_EACH, FormTokens, SessionStore
from agent.web.access.gate import BURST, REFILL_S, FailedSignIns
from agent.web.access.person import (
    AccessRole,
    SignedInPerson,
    SignInWay,
    client_address,
    person_name,
    roles_of,
    trusted_networks,
    up_to,
)
from agent.web.access.request_checks import local_path
from agent.web.app import ServerBounds
from config.http_settings import RoleSettings
from tests.web.access.site import FORM, PLAN, Site, csrf_in, fresh_address, site

ANN = SignedInPerson("ann", up_to(AccessRole.APPROVE), SignInWay.TOKEN)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("gate")) as running:
        yield running


@pytest.fixture(scope="module")
def open_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("open"), {"auth": {}}) as running:
        yield running


def test_an_address_without_a_page_says_so(open_site: Site) -> None:
    answer = open_site.ask("GET", "/nothing", {"Accept": "text/html"})
    assert answer.status == 404
    assert "There is no such page." in answer.text
    assert '"detail":"There is no such page"' in open_site.ask("GET", "/nothing").text


@pytest.mark.parametrize("path", ["/", "/sign-in", "/nothing", "/api/v1/whoami", PLAN, "/static/page.css"])
def test_every_answer_tells_browsers_to_run_nothing_foreign(here: Site, path: str) -> None:
    headers = here.ask("GET", path, here.bearer("ann")).headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert {"referrer-policy", "permissions-policy"} <= headers.keys()
    assert headers.get("cache-control") == (None if path.startswith("/static/") else "no-store")
    assert "server" not in headers


def test_pages_and_refusals_have_no_script_and_no_style_of_their_own(here: Site) -> None:
    for answer in (here.ask("GET", "/sign-in"), here.ask("GET", "/no", {**here.bearer("ann"), "Accept": "text/html"})):
        assert "<script" not in answer.text
        assert "<style" not in answer.text
        assert " style=" not in answer.text
        assert " on" not in answer.text.split("<body>")[0]


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_health_and_metrics_need_no_sign_in_and_are_as_they_were(here: Site, path: str) -> None:
    answer = here.ask("GET", path, {"Authorization": "Bearer rackwise_wrong", "Cookie": "a=b"})
    assert answer.status == 200
    assert "content-security-policy" not in answer.headers
    assert not answer.cookies


def test_a_browser_without_a_session_is_sent_to_sign_in_and_comes_back(here: Site) -> None:
    away = here.ask("GET", "/groups?sort=lag", {"Accept": "text/html"})
    assert (away.status, away.headers["location"]) == (303, "/sign-in?next=%2Fgroups%3Fsort%3Dlag")
    form = here.ask("GET", away.headers["location"], {"Accept": "text/html"})
    assert 'name="next" value="/groups?sort=lag"' in form.text


def test_a_program_is_told_that_it_lacks_a_token(here: Site) -> None:
    answer = here.ask("GET", "/api/v1/whoami")
    assert (answer.status, answer.headers["content-type"]) == (401, "application/problem+json")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_link_from_another_site_finds_the_session_after_one_more_step(here: Site) -> None:
    """The strict cookie does not come with the link, but with the request after it."""
    ann = here.signed_in("ann")
    link = {"Accept": "text/html", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    away = here.ask("GET", "/groups", link)
    step = here.ask("GET", away.headers["location"], link)
    assert 'content="0; url=/sign-in?next=%2Fgroups"' in step.text
    found = here.ask("GET", "/sign-in?next=%2Fgroups", {"Cookie": ann.cookie, "Sec-Fetch-Site": "same-origin"})
    assert (found.status, found.headers["location"]) == (303, "/groups")


def test_everyone_on_the_machine_may_look_where_no_sign_in_is_set(open_site: Site) -> None:
    assert open_site.ask("GET", "/").status == 200
    assert open_site.ask("GET", "/api/v1/whoami").text == '{"name":""}'
    refused = open_site.ask("POST", PLAN, {"Content-Type": "application/json"}, "{}")
    assert refused.status == 403
    assert "http.auth.tokens_file" in refused.text
    assert not open_site.done


def test_a_token_that_is_taken_back_ends_its_sessions_at_once(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        ann = here.signed_in("ann")
        assert here.ask("GET", "/", {"Cookie": ann.cookie}).status == 200
        file = tmp_path / "tokens.yaml"
        file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if "ann" not in line))
        assert here.ask("GET", "/", {"Cookie": ann.cookie}).status == 401
        assert here.ask("GET", "/", here.bearer("ann")).status == 401
        assert here.ask("GET", "/", here.bearer("opa")).status == 200


def test_a_role_that_is_changed_counts_for_a_session_that_is_open(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        ann = here.signed_in("ann")
        file = tmp_path / "tokens.yaml"
        file.write_text(file.read_text().replace('"ann", role: approve', '"ann", role: view'))
        written = {"Cookie": ann.cookie, "X-CSRF-Token": ann.csrf, "Content-Type": FORM}
        assert here.ask("POST", PLAN, written, "a=b").status == 403
        assert here.done == []


@pytest.mark.parametrize("spoiled", ["an entry that is none", "readable by all", "gone"])
def test_a_file_that_cannot_be_used_lets_no_one_in_and_recovers(tmp_path: Path, spoiled: str) -> None:
    with site(tmp_path) as here:
        file = tmp_path / "tokens.yaml"
        good = file.read_text()
        if spoiled == "gone":
            file.unlink()
        elif spoiled == "readable by all":
            file.chmod(0o644)
        else:
            file.write_text(good + "- {name: x}\n")
        assert here.ask("GET", "/", here.bearer("ann")).status == 401
        file.touch(0o600)
        file.chmod(0o600)
        file.write_text(good)
        assert here.ask("GET", "/", here.bearer("ann")).status == 200


def test_a_slow_body_is_cut_off_and_takes_no_other_s_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.web.access.request_checks.BODY_S", 0.5)
    with site(tmp_path) as here:
        host, port = here.server.address.split(":")
        slow = [socket.create_connection((host, int(port)), 10) for _ in range(12)]
        head = f"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\nContent-Length: 100\r\n\r\na"
        for one in slow:
            one.sendall(head.encode())
            time.sleep(0.01)  # so that no more than eight are being decided about at once
        began = time.monotonic()
        assert here.ask("GET", "/", here.bearer("ann")).status == 200, "of eight places strangers take two"
        assert time.monotonic() - began < 0.4
        statuses = sorted(int(one.recv(65_536).split()[1]) for one in slow)
        assert statuses == [408] * 2 + [503] * 10
        assert here.ask("GET", "/readyz").status == 200


def test_the_body_of_one_who_may_not_write_is_not_waited_for(here: Site) -> None:
    began = time.monotonic()
    host, port = here.server.address.split(":")
    with socket.create_connection((host, int(port)), 10) as raw:
        raw.sendall(f"POST {PLAN} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n".encode())
        assert raw.recv(12) == b"HTTP/1.1 401"
    assert time.monotonic() - began < 2


def test_sessions_end_by_themselves_and_are_bounded() -> None:
    store = SessionStore(idle_ms=1_000, max_ms=5_000)
    cookie = store.begin(ANN, "", 0)
    assert all(store.find(cookie, at) for at in range(0, 5_000, 900))
    assert store.find(cookie, 5_000) is None, "the absolute end"
    idle = store.begin(ANN, "", 10_000)
    assert store.find(idle, 11_000) is None
    many = [store.begin(ANN, "", 20_000) for _ in range(MOST_EACH + 5)]
    assert [store.find(one, 20_000) is not None for one in many] == [False] * 5 + [True] * MOST_EACH
    for number in range(MOST + 50):
        store.begin(ANN._replace(name=f"p{number}"), "", 20_000)
    assert store.count == MOST


def test_form_tokens_are_of_one_cookie_one_person_and_one_process() -> None:
    forms = FormTokens()
    token = forms.of("cookie", ANN)
    assert forms.holds(token, "cookie", ANN)
    assert not forms.holds(token, "other", ANN)
    assert not forms.holds(token, "cookie", ANN._replace(name="bob"))
    assert not forms.holds(token, "cookie", ANN._replace(via=SignInWay.PROXY))
    assert not FormTokens().holds(token, "cookie", ANN)
    assert not forms.holds(forms.of("", ANN), "", ANN), "no cookie, no token"


def test_failures_slow_an_address_down_and_lock_no_one_out_for_good() -> None:
    now = [0.0]
    failures = FailedSignIns(lambda: now[0])
    for _ in range(BURST):
        assert failures.wait_s("1.1.1.1", "ann") == 0
        failures.failed("1.1.1.1", "ann")
    assert failures.wait_s("1.1.1.1", "ann") == round(REFILL_S)
    assert failures.wait_s("1.1.1.1", "bob") == round(REFILL_S), "an address, whatever name it tries"
    assert failures.wait_s("2.2.2.2", "ann") == 0, "the person herself, from her own address"
    failures.failed("2.2.2.2", "ann")
    assert failures.wait_s("2.2.2.2", "ann") > 0, "a second address that fails under the name"
    assert failures.wait_s("2.2.2.2", "bob") == 0
    now[0] = REFILL_S
    assert failures.wait_s("1.1.1.1", "ann") == 0, "after a while it may try once more"
    for number in range(10_000):
        failures.failed(f"10.0.{number >> 8}.{number & 255}", f"name-{number}")
    assert len(failures._addresses._left) == len(failures._names._left) <= 4_096


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ann", "ann"), (" ann ", "ann"), ("ann@example.org", "ann@example.org"), ("Änne Müller", "Änne Müller"),
        ("\uff41nn", "ann"), ("李雷", "李雷"),
        ("", None), (" ", None), ("a\nb", None), ("a\x00", None), ("\x1b[2J", None), ("a\u202eb", None),
        ("a\u200bb", None), ("a\ufeff", None), ("\ud800", None),
        ("x" * 129, None), ("\ufdfa" * 100, None), (7, None), (None, None),
    ],
)  # fmt: skip
def test_names_are_short_and_plainly_visible(text: object, name: str | None) -> None:
    assert person_name(text) == name


def test_a_role_includes_those_before_it() -> None:
    rules = RoleSettings(view=("*",), approve=("kafka",), operate=("ops",))
    assert roles_of(["ops"], rules) == set(AccessRole)
    assert roles_of(["kafka", "x"], rules) == {AccessRole.VIEW, AccessRole.APPROVE}
    assert roles_of([], rules) == {AccessRole.VIEW}
    assert roles_of(["*"], RoleSettings(approve=("kafka",))) == set()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/groups?x=1&y=2#z", "/groups?x=1&y=2#z"), ("/", "/"), ("", "/"), ("groups", "/"), ("//evil", "/"),
        ("/\\evil", "/"), ("https://evil", "/"), ("/a\tb", "/"), ("/a\r\nb", "/"), ("/é", "/"), ("/sign-out", "/"),
        ("/a b", "/"), ('/a"b', "/"), ("/" + "x" * 1_000, "/"),
    ],
)  # fmt: skip
def test_people_go_on_to_a_path_of_this_server_only(text: str, path: str) -> None:
    assert local_path(text) == path


def test_a_viewer_s_own_page_has_a_form_token_of_hers(here: Site) -> None:
    first, second = (here.ask("GET", "/", {"Cookie": here.signed_in("vic").cookie}) for _ in range(2))
    assert csrf_in(first) != csrf_in(second)
    assert fresh_address() != fresh_address()


NETWORKS = trusted_networks(["10.0.0.0/8", "fd00::/8"])


@pytest.mark.parametrize(
    ("client", "forwarded", "address"),
    [
        ("1.2.3.4", ["9.9.9.9"], "1.2.3.4"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["9.9.9.9"], "9.9.9.9"),
        ("10.0.0.1", ["6.6.6.6, 9.9.9.9"], "9.9.9.9"),
        ("10.0.0.1", ["6.6.6.6", "9.9.9.9, 10.0.0.2"], "9.9.9.9"),
        ("10.0.0.1", ["9.9.9.9, <script>"], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("::ffff:10.0.0.1", ["9.9.9.9"], "9.9.9.9"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("fd00::1%eth0", ["2001:db8::1"], "2001:db8::1"),
    ],
)
def test_a_trusted_proxy_alone_names_the_client_s_address(client: str, forwarded: list[str], address: str) -> None:
    headers = [(b"x-forwarded-for", one.encode()) for one in forwarded]
    assert client_address({"client": (client, 1), "headers": headers}, NETWORKS) == address


def test_people_behind_a_proxy_have_a_rate_each(tmp_path: Path) -> None:
    with site(tmp_path, bounds=ServerBounds(per_s=0.001, burst=2), proxies=["127.0.0.66/32"]) as here:
        for person in ("1.1.1.1", "2.2.2.2"):
            asked = [here.ask("GET", "/readyz", {"X-Forwarded-For": person}, source="127.0.0.66") for _ in range(3)]
            assert [one.status for one in asked] == [200, 200, 429]
        spoofed = [here.ask("GET", "/readyz", {"X-Forwarded-For": f"3.3.3.{n}"}, source="127.0.0.67") for n in range(3)]
        assert [one.status for one in spoofed] == [200, 200, 429]
