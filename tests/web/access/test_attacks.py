"""Attacks on the pages and the API, each against the real server: refused or harmless, and nothing is carried out."""
# ruff: noqa: E501 a row of the table is one attack

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.access.site import FORM, PAUSE, PLAN, Answer, Browser, Site, csrf_in, fresh_address, site
from tests.web.api.agents import view_of
from tests.web.test_metrics import CYCLE

PROXY = "127.0.0.77"
"""The address of the one trusted proxy."""
OPEN = {"auth": {}}
SECURE = {"url": "https://page.example"}
PROXIED = {
    "auth": {"proxy": {"networks": [f"{PROXY}/32"], "view": ["staff"], "approve": ["kafka"], "operate": ["ops"]}},
}
OIDC = {"issuer": "http://127.0.0.1:9", "client_id": "rackwise", "operate": ["*"], "timeout": "500ms"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    """With tokens, without any sign-in, behind a proxy, over TLS elsewhere, with an issuer that is silent, with the API."""
    given: dict[str, dict[str, Any]] = {"token": {}, "open": OPEN, "proxy": PROXIED, "secure": SECURE}
    made = {name: site(tmp_path_factory.mktemp(name), settings) for name, settings in given.items()}
    tokens = tmp_path_factory.mktemp("oidc")
    made["api"] = site(tmp_path_factory.mktemp("api"), {}, view=view_of(CYCLE))
    made["oidc"] = site(tokens, {"url": "http://localhost", "auth": {"oidc": OIDC}})
    running = {name: one.__enter__() for name, one in made.items()}
    yield running
    for one in made.values():
        one.__exit__(None, None, None)


@pytest.fixture(scope="module")
def browsers(sites: dict[str, Site]) -> dict[str, Browser]:
    return {name: sites["token"].signed_in(name) for name in ("ann", "vic", "opa")}


class World:
    """What an attack may use."""

    def __init__(self, sites: dict[str, Site], browsers: dict[str, Browser]) -> None:
        self.sites, self.browsers = sites, browsers

    def on(self, name: str) -> Site:
        return self.sites[name]

    def ask(self, method: str, path: str, headers: dict[str, str], body: str = "") -> Answer:
        return self.on("token").ask(method, path, headers, body)

    def as_ann(self, path: str = PLAN, body: str = "", **headers: str) -> Answer:
        """A write from Ann's browser, with what an attacker may change."""
        ann = self.browsers["ann"]
        given = {"Cookie": ann.cookie, "X-CSRF-Token": ann.csrf, "Content-Type": FORM, "Origin": "http://localhost"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, {name: value for name, value in given.items() if value}, body)


Attack = Callable[[World], Answer]


def asks(path: str, method: str = "GET", body: str = "", who: str = "opa", **headers: str) -> Attack:
    """A request of the API itself, by one who may ask it."""

    def attack(world: World) -> Answer:
        of = world.on("api")
        given = {**of.bearer(who), **JSON, **{key.replace("_", "-"): text for key, text in headers.items()}}
        return of.ask(method, f"/api/v1{path}", given, body)

    return attack


def late(data: str) -> Attack:
    """A connection that sends a part and then waits for the server to hang up."""

    def attack(world: World) -> Answer:
        began = time.monotonic()
        answer = world.on("token").raw(data.encode(), wait_s=20)
        assert time.monotonic() - began < 15, "it is cut off"
        return answer

    return attack


def bearer(name: str, path: str = PLAN, method: str = "POST", **headers: str) -> Attack:
    def attack(world: World) -> Answer:
        given = {**world.on("token").bearer(name), **{key.replace("_", "-"): text for key, text in headers.items()}}
        return world.ask(method, path, given)

    return attack


def token(text: str, path: str = "/api/v1/whoami") -> Attack:
    return lambda world: world.ask("GET", path, {"Authorization": f"Bearer {text}"})


def get(path: str, on: str = "token", **headers: str) -> Attack:
    given = {key.replace("_", "-"): text for key, text in headers.items()}
    return lambda world: world.on(on).ask("GET", path, given)


def ann(path: str = PLAN, body: str = "", **headers: str) -> Attack:
    return lambda world: world.as_ann(path, body, **headers)


def proxied(headers: list[tuple[str, str]], path: str = "/api/v1/whoami", source: str | None = PROXY, method: str = "GET") -> Attack:  # fmt: skip
    return lambda world: world.on("proxy").ask(method, path, headers, source=source or fresh_address())


def raw(text: str | bytes, on: str = "token") -> Attack:
    return lambda world: world.on(on).raw(text if isinstance(text, bytes) else text.encode())


def with_token(text: str) -> Attack:
    """A raw request in which TOKEN is Ann's token."""
    return lambda world: world.on("token").raw(text.replace("TOKEN", world.on("token").tokens["ann"]).encode())


def user(name: str, **more: str) -> list[tuple[str, str]]:
    return [("X-Forwarded-User", name), *((key.replace("_", "-"), value) for key, value in more.items())]


def sign_in_form(world: World, on: str = "token", **fields: str) -> Answer:
    """The form of signing in, with what an attacker may change."""
    of = world.on(on)
    form = of.ask("GET", "/sign-in")
    cookie = "; ".join(f"{key}={value}" for key, value in form.cookies.items())
    given = {"csrf": csrf_in(form), "name": "ann", "token": of.tokens["ann"], "next": "/", **fields}
    headers = {"Cookie": given.pop("cookie", cookie), "Content-Type": FORM}
    return of.ask("POST", "/sign-in", headers, "&".join(f"{key}={value}" for key, value in given.items()))


def going_to(following: str) -> Attack:
    return lambda world: sign_in_form(world, next=following)


def fixed_session(world: World) -> Answer:
    """The attacker's session cookie in the victim's browser before signing in."""
    of, name = world.on("token"), world.on("token").gate.session_cookie
    known = "A" * 43
    after = of.signed_in("ann", cookies=f"{name}={known}")
    assert known not in after.cookie
    return of.ask("GET", "/api/v1/whoami", {"Cookie": f"{name}={known}"})


def session_after(end: str) -> Attack:
    def attack(world: World) -> Answer:
        of = world.on("token")
        before = of.signed_in("ann")
        if end == "sign-out":
            out = {"Cookie": before.cookie, "X-CSRF-Token": before.csrf, "Content-Type": FORM}
            assert of.ask("POST", "/sign-out", out).status == 303
        else:
            again = of.ask("GET", "/sign-in")
            cookie = "; ".join([before.cookie, *(f"{key}={value}" for key, value in again.cookies.items())])
            person = of.ask("GET", "/", {"Cookie": before.cookie})
            body = f"csrf={csrf_in(person)}&name=ann&token={of.tokens['ann']}"
            assert of.ask("POST", "/sign-in", {"Cookie": cookie, "Content-Type": FORM}, body).status == 303
        return of.ask("GET", "/api/v1/whoami", {"Cookie": before.cookie})

    return attack


def foreign_csrf(world: World) -> Answer:
    return world.as_ann(X_CSRF_Token=world.browsers["vic"].csrf)


def visitor_csrf(world: World) -> Answer:
    """A token for forms that anyone gets without signing in."""
    return world.as_ann(X_CSRF_Token=csrf_in(world.on("token").ask("GET", "/sign-in")))


def csrf_of_one_session_in_another(world: World) -> Answer:
    return world.as_ann(X_CSRF_Token=world.on("token").signed_in("ann").csrf)


def guessing(world: World) -> Answer:
    """Tokens from one address, until it may try no more."""
    of, source = world.on("token"), fresh_address()
    answers = [of.ask("GET", "/api/v1/whoami", {"Authorization": f"Bearer rackwise_{n}"}, source=source) for n in range(9)]  # fmt: skip
    assert {one.status for one in answers[:5]} == {401}
    right = of.ask("GET", "/api/v1/whoami", of.bearer("ann"), source=source)
    assert right.status == 200, "a right token counts from there all the same"
    return answers[-1]


def name_under_attack(world: World) -> Answer:
    """Strangers fail under Vic's name; Vic, from an address of hers, signs in all the same."""
    for _ in range(12):
        assert sign_in_form(world, name="vic", token="rackwise_wrong").status == 401
    of = world.on("token")
    assert of.signed_in("vic").cookie
    return of.ask("GET", "/api/v1/whoami")


def cookie_and_bad_bearer(world: World) -> Answer:
    """A wrong token is not ignored in favour of the cookie."""
    return world.as_ann(Authorization="Bearer rackwise_wrong")


LONG = "x" * 10_000
CROSS = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
ATTACKS: list[tuple[str, Attack, set[int]]] = [
    # host
    ("an unknown host", get("/", Host="evil.example"), {421}),
    ("an unknown host that holds a known one", get("/", Host="localhost.evil.example"), {421}),
    ("a host with a path", get("/", Host="localhost/evil"), {400, 421}),
    ("a host with a user", get("/", Host="localhost@evil.example"), {400, 421}),
    ("two hosts", raw("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"), {400, 421}),
    ("no host", raw("GET / HTTP/1.1\r\n\r\n"), {400, 421}),
    ("a whole URL as the target", raw("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), {400, 401, 404, 421}),
    ("a forwarded host", get("/api/v1/whoami", X_Forwarded_Host="evil.example"), {401}),
    # origin and fetch metadata
    ("an origin of another site", ann(Origin="https://evil.example"), {403}),
    ("the origin null", ann(Origin="null"), {403}),
    ("an origin that begins as ours", ann(Origin="http://localhost.evil.example"), {403}),
    ("an origin of another port", ann(Origin="http://localhost:1"), {403}),
    ("an origin of another scheme", ann(Origin="https://localhost"), {403}),
    ("an origin with a user", ann(Origin="http://localhost@evil.example"), {403}),
    ("another site, by fetch metadata", ann(Sec_Fetch_Site="cross-site"), {403}),
    ("another host of our site, by fetch metadata", ann(Sec_Fetch_Site="same-site"), {403}),
    ("a token from another site's script", bearer("ann", Origin="https://evil.example"), {403}),
    ("a token from another site, by fetch metadata", bearer("ann", Sec_Fetch_Site="cross-site"), {403}),
    ("a page in another site's frame", get("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe"), {403}),
    ("an API answer as another site's script", get("/api/v1/whoami", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors"), {403}),
    ("a preflight of another site", lambda world: world.ask("OPTIONS", PLAN, {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}), {405}),
    ("a sign-in form of another site", lambda world: world.ask("POST", "/sign-in", {"Origin": "https://evil.example", "Content-Type": FORM}, "name=ann"), {403}),
    ("two origins", with_token(f"POST {PLAN} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nOrigin: http://localhost\r\nOrigin: https://evil.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), {400}),
    # token and role
    ("no token", get("/api/v1/whoami"), {401}),
    ("an empty token", token(""), {401}),
    ("a token that is none", token("rackwise_" + "A" * 43), {401}),
    ("a token without its last character", lambda world: world.ask("GET", "/api/v1/whoami", {"Authorization": f"Bearer {world.on('token').tokens['ann'][:-1]}"}), {401}),
    ("a token with a character more", lambda world: world.ask("GET", "/api/v1/whoami", {"Authorization": f"Bearer {world.on('token').tokens['ann']}A"}), {401}),
    ("the hash of a token as the token", lambda world: world.ask("GET", "/api/v1/whoami", {"Authorization": f"Bearer {world.on('token').gate.tokens.entry_of(world.on('token').tokens['ann'], 0).hashed}"}), {401}),
    ("an expired token", bearer("old", "/api/v1/whoami", "GET"), {401}),
    ("a token of 10,000 characters", token(LONG), {401}),
    ("a token of other letters", token("räckwise_ß"), {401}),
    ("a token in a Basic header", get("/api/v1/whoami", Authorization="Basic YW5uOmFubg=="), {401}),
    ("two tokens", with_token("GET /api/v1/whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nAuthorization: Bearer rackwise_x\r\nConnection: close\r\n\r\n"), {400}),
    ("a token in the URL", lambda world: world.ask("GET", f"/api/v1/whoami?token={world.on('token').tokens['ann']}", {}), {401}),
    ("a token in a cookie", lambda world: world.ask("GET", "/api/v1/whoami", {"Cookie": f"{world.on('token').gate.session_cookie}={world.on('token').tokens['ann']}"}), {401}),
    ("a wrong token beside a right cookie", cookie_and_bad_bearer, {401}),
    ("guessing tokens", guessing, {429}),
    ("guessing under a person's name", name_under_attack, {401}),
    ("another person's token under a name", lambda world: sign_in_form(world, name="vic"), {401}),
    ("a viewer approves", bearer("vic"), {403}),
    ("a viewer pauses", bearer("vic", PAUSE), {403}),
    ("an approver pauses", bearer("ann", PAUSE), {403}),
    ("a role in a header", bearer("vic", X_Role="operate", X_Forwarded_Groups="ops"), {403}),
    ("a write where no sign-in is set", lambda world: world.on("open").ask("POST", PLAN, JSON, "{}"), {403}),
    ("a form where no sign-in is set", lambda world: world.on("open").ask("POST", PLAN, {"Content-Type": FORM}, "a=b"), {403}),
    ("signing in where no sign-in is set", lambda world: world.on("open").ask("POST", "/sign-in", JSON, "{}"), {403}),
    # sessions and cookies
    ("a session fixed beforehand", fixed_session, {401}),
    ("a session after signing out", session_after("sign-out"), {401}),
    ("a session after signing in anew", session_after("sign-in"), {401}),
    ("a made-up session", lambda world: world.ask("GET", "/api/v1/whoami", {"Cookie": f"{world.on('token').gate.session_cookie}={'B' * 43}"}), {401}),
    ("two session cookies in one header", lambda world: world.as_ann(Cookie=f"{world.browsers['vic'].cookie}; {world.browsers['ann'].cookie}"), {400}),
    ("two session cookies in two headers", lambda world: world.on("token").ask("POST", PLAN, [("Cookie", world.browsers["vic"].cookie), ("Cookie", world.browsers["ann"].cookie)]), {400}),
    ("a session cookie of 10,000 characters", lambda world: world.ask("GET", "/api/v1/whoami", {"Cookie": f"{world.on('token').gate.session_cookie}={LONG}"}), {401}),
    ("a session of another server", lambda world: world.on("proxy").ask("GET", "/api/v1/whoami", {"Cookie": world.browsers["ann"].cookie}), {401}),
    # CSRF
    ("no form token", ann(X_CSRF_Token=""), {403}),
    ("a wrong form token", ann(X_CSRF_Token="0" * 64), {403}),
    ("a form token of other letters", ann(X_CSRF_Token="ä" * 64), {403}),
    ("another person's form token", foreign_csrf, {403}),
    ("a form token of someone who is not signed in", visitor_csrf, {403}),
    ("a form token of another session", csrf_of_one_session_in_another, {403}),
    ("a form token in the URL", lambda world: world.as_ann(f"{PLAN}?csrf={world.browsers['ann'].csrf}", X_CSRF_Token=""), {403}),
    ("a form with two tokens", lambda world: world.as_ann(body=f"csrf={world.browsers['ann'].csrf}&csrf=x", X_CSRF_Token=""), {400}),
    ("JSON from a browser without a form token", ann(Content_Type="application/json", X_CSRF_Token="", body="{}"), {403}),
    ("signing out from another site", lambda world: world.ask("POST", "/sign-out", {"Cookie": world.browsers["ann"].cookie, "Content-Type": FORM}, "a=b"), {403}),
    ("signing in with a form that was not shown", lambda world: sign_in_form(world, csrf="0" * 64), {403}),
    ("signing in with another browser's form", lambda world: sign_in_form(world, cookie=f"{world.on('token').gate.visitor_cookie}={'C' * 43}"), {403}),
    # methods and bodies
    ("a method in a header", lambda world: world.ask("GET", PLAN, {**world.on("token").bearer("ann"), "X-HTTP-Method-Override": "POST"}), {405}),
    ("a method in a field", lambda world: world.ask("GET", f"{PLAN}?_method=POST", world.on("token").bearer("ann")), {405}),
    ("TRACE", bearer("ann", method="TRACE"), {405}),
    ("PUT", bearer("ann", method="PUT"), {405}),
    ("DELETE", bearer("ann", method="DELETE"), {405}),
    ("CONNECT", raw("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), {0, 400, 405}),
    ("a text as a body", lambda world: world.as_ann(body="csrf=1", Content_Type="text/plain"), {415}),
    ("a form of parts", lambda world: world.as_ann(body="--x--", Content_Type="multipart/form-data; boundary=x"), {415}),
    ("XML as a body", lambda world: world.as_ann(body="<a/>", Content_Type="text/xml"), {415}),
    ("a body of more than 64 kB", lambda world: world.as_ann(body="a=" + "b" * 70_000), {413}),
    ("a body that claims to be of a terabyte", with_token(f"POST {PLAN} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 1000000000000\r\nConnection: close\r\n\r\n"), {413}),
    ("chunks of more than 64 kB", lambda world: world.on("token").raw((f"POST {PLAN} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {world.on('token').tokens['ann']}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + "2000\r\n" + "a" * 8192 + "\r\n").encode() + b"2000\r\n" + (b"a" * 8192 + b"\r\n2000\r\n") * 9), {413}),
    ("a form of a thousand fields", lambda world: world.as_ann(body="&".join(f"f{n}=1" for n in range(1_000))), {400}),
    ("a form that is no UTF-8", lambda world: world.as_ann(body="a=%ff%fe"), {400}),
    ("a length and chunks", with_token(f"POST {PLAN} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"), {400, 415}),
    ("two lengths", with_token(f"POST {PLAN} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 0\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"), {400}),
    ("a header of 20 kB", get("/", X_Long="x" * 20_000), {0, 400, 431}),
    ("a header of a megabyte", get("/", X_Long="x" * 1_000_000), {0, 400, 431}),
    # paths and headers
    ("a path out of the static files", get("/static/../../../../etc/passwd"), {401, 404}),
    ("an escaped path out of the static files", get("/static/%2e%2e/%2e%2e/etc/passwd"), {401, 404}),
    ("a path with a null character", get("/static/page.css%00.html"), {401, 404}),
    ("a path around the gate", get("//api/v1/whoami"), {401, 404}),
    ("a path that ends as an open one", get("/api/v1/whoami/livez"), {401, 404}),
    ("a path that begins as an open one", get("/livez/../api/v1/whoami"), {401, 404}),
    ("an open path with a slash more", get("/metrics/"), {401}),
    ("a path in capitals", get("/API/V1/whoami"), {401, 404}),
    ("a path of 10,000 characters", get(f"/{LONG}"), {401, 404}),
    ("a path with a script", get("/<script>alert(1)</script>", Accept="text/html"), {303, 401, 404}),
    ("a line in a header of the answer", get("/sign-in/oidc?next=/%0d%0aSet-Cookie:%20a=b", on="oidc"), {502}),
    ("a line in the place to go on at", going_to("/%0d%0aSet-Cookie:%20a=b"), {303}),
    ("a line break in the path", get("/groups%0d%0aX-Evil:%20yes", Accept="text/html"), {303, 401, 404}),
    ("a bare line feed in a header", raw("GET /api/v1/whoami HTTP/1.1\r\nHost: localhost\r\nX: a\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n"), {400, 401}),
    ("a space before a header's colon", raw("GET /api/v1/whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization : Bearer x\r\nConnection: close\r\n\r\n"), {400}),
    ("a WebSocket", get("/", Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Version="13", Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA=="), {303, 401}),
    # open redirects
    ("going on to another site", going_to("https://evil.example/"), {303}),
    ("going on to another host", going_to("//evil.example/"), {303}),
    ("going on over a backslash", going_to("/\\evil.example"), {303}),
    ("going on over a tab", going_to("/%09/evil.example"), {303}),
    ("going on to a script", going_to("javascript:alert(1)"), {303}),
    ("going on in a circle", going_to("/sign-out"), {303}),
    ("a link to sign in that goes elsewhere", get("/sign-in?next=https://evil.example/", Accept="text/html"), {200}),
    ("a link to sign in with a script", get("/sign-in?next=/%22%3E%3Cscript%3Ealert(1)%3C/script%3E", Accept="text/html"), {200}),
    # names
    ("a name with a script", lambda world: sign_in_form(world, name="%3Cscript%3Ealert(1)%3C/script%3E"), {401}),
    ("a name with a terminal's escape", lambda world: sign_in_form(world, name="%1b%5b2Jann"), {400}),
    ("a name with a right-to-left mark", lambda world: sign_in_form(world, name="ann%E2%80%AE"), {400}),
    ("a name of 10,000 characters", lambda world: sign_in_form(world, name=LONG), {400}),
    ("a name that is another's in other letters", lambda world: sign_in_form(world, name="%EF%BD%81nn", token="rackwise_x"), {401}),
    # proxy
    ("a proxy's header from another address", proxied(user("ann", X_Forwarded_Groups="ops"), source=None), {401}),
    ("a proxy's address in a header", proxied([*user("ann", X_Forwarded_Groups="ops"), ("X-Forwarded-For", PROXY), ("X-Real-IP", PROXY), ("Forwarded", f"for={PROXY}")], source=None), {401}),
    ("a person twice in a proxy's request", proxied([("X-Forwarded-User", "ann"), *user("opa", X_Forwarded_Groups="ops")]), {400}),
    ("groups twice in a proxy's request", proxied([*user("ann", X_Forwarded_Groups="staff"), ("X-Forwarded-Groups", "ops")]), {400}),
    ("an empty person in a proxy's request", proxied(user("", X_Forwarded_Groups="ops")), {400}),
    ("a person of 10,000 characters in a proxy's request", proxied(user(LONG, X_Forwarded_Groups="ops")), {400}),
    ("a terminal's escape in a proxy's request", proxied(user("ann\u009b2J", X_Forwarded_Groups="ops")), {400}),
    ("a right-to-left mark in a proxy's request", proxied(user("ann\u202e", X_Forwarded_Groups="ops")), {400}),
    ("a person without a group", proxied(user("ann")), {403}),
    ("a person of an unknown group", proxied(user("ann", X_Forwarded_Groups="opsx, xops, *")), {403}),
    ("a proxy's person who may only look", proxied(user("ann", X_Forwarded_Groups="staff"), PLAN, method="POST"), {403}),
    ("a form over a proxy without a form token", proxied([*user("ann", X_Forwarded_Groups="kafka"), ("Content-Type", FORM)], PLAN, method="POST"), {403}),
    ("a script of another site over a proxy", proxied([*user("ann", X_Forwarded_Groups="kafka"), ("Origin", "https://evil.example"), *JSON.items()], PLAN, method="POST"), {403}),
    ("a token where none are known", lambda world: world.on("proxy").ask("GET", "/api/v1/whoami", world.on("token").bearer("ann")), {401}),
    # the API itself: names, cursors, commands
    ("a group with a script", asks("/groups/%3Cscript%3Ealert(1)%3C%2Fscript%3E"), {404}),
    ("a topic with a terminal's escape", asks("/topics/%1b%5b2J"), {404}),
    ("a group with a right-to-left mark", asks("/groups/%E2%80%AEpuorg"), {404}),
    ("a group of 10,000 characters", asks(f"/groups/{LONG}"), {404}),
    ("a subject with a line break", asks("/explain?subject=topic/a%0d%0aX-Evil:%20yes"), {404}),
    ("a subject of 10,000 characters", asks(f"/explain?subject={LONG}"), {422}),
    ("a search for a script", asks("/groups?q=%3Cscript%3E"), {200}),
    ("a sort by an attribute of the language", asks("/groups?sort=__class__"), {422}),
    ("a cursor of one's own", asks("/groups?cursor=WzAsIiIsIiJd"), {422}),
    ("a cursor of deep brackets", asks(f"/groups?cursor={'W1tb' * 400}"), {422}),
    ("a limit of a million rows", asks("/groups?limit=1000000"), {422}),
    ("a report out of its folder", asks("/reports/..%2f..%2fetc%2fpasswd"), {404}),
    ("a report by an absolute path", asks("/reports/%2fetc%2fpasswd"), {404}),
    ("an answer in another form by its name", asks("/groups.html"), {404}),
    ("an event id with a control character", asks("/cluster", Last_Event_ID="x\x0b1"), {400}),
    ("a command with a person's name in it", asks("/pause", "POST", '{"reason": "x", "who": "ann"}'), {422}),
    ("a command with a witness in it", asks("/pause", "POST", '{"witness": "rw-1"}'), {422}),
    ("a command of deep brackets", asks("/pause", "POST", "[" * 60_000), {422}),
    ("a number of 6,000 digits", asks("/pause", "POST", '{"max_moves": ' + "1" * 6_000 + "}"), {422}),
    ("a field with a terminal's escape", asks("/pause", "POST", '{"\\u001b[2J\\u202e": 1}'), {422}),
    ("an approval without what was seen", asks("/proposals/p-1/approve", "POST", "{}"), {409}),
    ("an approval by a path that leads to another command", asks("/proposals/..%2f..%2fpause/approve", "POST", "{}"), {404, 409}),
    ("a proxy's header beside a token", asks("/look", who="vic", X_Forwarded_User="opa", X_Forwarded_Groups="ops"), {200}),
    # slow
    ("a head that does not end", late("GET /api/v1/look HTTP/1.1\r\nHost: localhost\r\n"), {0}),
    ("a body that does not come", late(f"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: {FORM}\r\nContent-Length: 9\r\n\r\n"), {408}),
    # issuer
    ("a way back that no one began", get("/sign-in/oidc/callback?state=x&code=y", on="oidc"), {401}),
    ("a way back without a state", get("/sign-in/oidc/callback?code=y", on="oidc"), {401}),
    ("a way back with two states", get("/sign-in/oidc/callback?state=x&state=y&code=z", on="oidc"), {401}),
    ("a way back with a state of one's own", get("/sign-in/oidc/callback?state=x&code=y", on="oidc", Cookie="rackwise-oidc-0=x"), {401}),
    ("an issuer that does not answer", get("/sign-in/oidc", on="oidc"), {502}),
    ("an issuer where none is set", get("/sign-in/oidc"), {404}),
]  # fmt: skip


def test_the_attacks_are_many_and_each_has_a_name_of_its_own() -> None:
    assert len({name for name, _, _ in ATTACKS}) == len(ATTACKS) >= 80


@pytest.mark.parametrize(("attack", "statuses"), [(one[1], one[2]) for one in ATTACKS], ids=[one[0] for one in ATTACKS])
def test_an_attack_is_refused_or_harmless(
    sites: dict[str, Site], browsers: dict[str, Browser], attack: Attack, statuses: set[int]
) -> None:
    for one in sites.values():
        one.done.clear()
    answer = attack(World(sites, browsers))
    assert answer.status in statuses, answer
    assert [one.done for one in sites.values()] == [[] for _ in sites], "nothing was carried out"
    assert_harmless(answer)
    assert sites["token"].ask("GET", "/livez").status == 200


def assert_harmless(answer: Answer) -> None:
    """No markup, control character or foreign header comes back, and no way leads to another host."""
    if answer.headers.get("content-type", "").endswith("json"):  # no browser reads markup in it
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.text.isascii()
    else:
        assert not re.search(r"<script|javascript:", answer.text), answer.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", answer.text), answer.text
    assert "x-evil" not in answer.headers
    assert "a" not in answer.cookies
    assert "access-control-allow-origin" not in answer.headers
    where = answer.headers.get("location", "/")
    assert re.match(r"/(?![/\\])", where), where
    assert "evil" not in where.partition("?")[0], where
    assert not re.search(r"(href|action|url)=[\"']?(https?:)?//evil", answer.text)


def test_the_same_requests_of_the_person_herself_are_carried_out(sites: dict[str, Site], tmp_path: Path) -> None:
    """So that the attacks are refused for what is wrong with them."""
    with site(tmp_path) as fresh:
        ann = fresh.signed_in("ann")
        origin = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
        written = {"Cookie": ann.cookie, "X-CSRF-Token": ann.csrf, "Content-Type": FORM, **origin}
        assert fresh.ask("POST", PLAN, written, "reason=x").status == 200
        in_form = {"Cookie": ann.cookie, "Content-Type": FORM, **origin}
        assert fresh.ask("POST", PLAN, in_form, f"csrf={ann.csrf}&reason=x").status == 200
        assert fresh.ask("POST", PLAN, {**fresh.bearer("ann"), **JSON}, "{}").status == 200
        assert fresh.ask("POST", PAUSE, {**fresh.bearer("opa"), **JSON}, "{}").status == 200
        assert fresh.done == [("ann", PLAN)] * 3 + [("opa", PAUSE)]
    with site(tmp_path, PROXIED) as fresh:
        groups = dict(user("ann@example.org", X_Forwarded_Groups="staff, kafka"))
        assert fresh.ask("POST", PLAN, {**groups, **JSON}, "{}", PROXY).status == 200
        page = fresh.ask("GET", "/", groups, source=PROXY)
        cookie = "; ".join(f"{key}={value}" for key, value in page.cookies.items())
        form = {**groups, "Cookie": cookie, "Content-Type": FORM, "Origin": "https://localhost"}
        assert fresh.ask("POST", PLAN, form, f"csrf={csrf_in(page)}", PROXY).status == 200
        assert fresh.done == [("ann@example.org", PLAN)] * 2
