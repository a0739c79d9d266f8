"""Signing in at an issuer that really signs: PKCE, state, nonce, keys, claims; and every way in which it must fail."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import ECKey, RSAKey

from tests.web.access.issuer import CLIENT, SECRET, Issuer, running_issuer
from tests.web.access.site import FORM, PLAN, Answer, Site, csrf_in, fresh_address, site


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


@pytest.fixture
def here(issuer: Issuer, tmp_path: Path) -> Iterator[Site]:
    secret = tmp_path / "client.secret"
    secret.touch(0o600)
    secret.write_text(SECRET + "\n")
    oidc = {
        "issuer": issuer.url,
        "client_id": CLIENT,
        "client_secret_file": str(secret),
        "view": ["staff"],
        "approve": ["kafka"],
        "timeout": "2s",
    }
    with site(tmp_path, {"url": "http://localhost", "auth": {"oidc": oidc}}) as running:
        yield running


def begin(here: Site, source: str, following: str = "/groups") -> tuple[str, str]:
    """Where the browser is sent, and its cookie."""
    answer = here.ask("GET", f"/sign-in/oidc?next={following}", source=source)
    assert answer.status == 303, answer
    assert "SameSite=Lax" in answer.raw.decode()
    assert "HttpOnly" in answer.raw.decode()
    return answer.headers["location"], f"{here.gate.state_cookie}={answer.cookies[here.gate.state_cookie]}"


def come_back(here: Site, issuer: Issuer, source: str | None = None) -> Answer:
    source = source or fresh_address()
    where, cookie = begin(here, source)
    return here.ask(
        "GET",
        issuer.authorize(where),
        {"Cookie": cookie, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        source=source,
    )


def test_a_person_signs_in_at_the_issuer_and_may_what_her_groups_allow(here: Site, issuer: Issuer) -> None:
    answer = come_back(here, issuer)
    assert answer.status == 200
    assert 'content="0; url=/groups"' in answer.text, "the browser goes on by itself, from here"
    cookie = f"{here.gate.session_cookie}={answer.cookies[here.gate.session_cookie]}"
    page = here.ask("GET", "/", {"Cookie": cookie})
    assert "ann@example.org" in page.text
    written = here.ask("POST", PLAN, {"Cookie": cookie, "Content-Type": FORM}, f"csrf={csrf_in(page)}")
    assert (written.status, here.done) == (200, [("ann@example.org", PLAN)])


def test_the_issuer_is_asked_with_pkce_state_and_nonce_that_are_new_each_time(here: Site, issuer: Issuer) -> None:
    asked = [parse_qs(urlsplit(begin(here, fresh_address())[0]).query) for _ in range(2)]
    for one in asked:
        assert one["code_challenge_method"] == ["S256"]
        assert one["redirect_uri"] == ["http://localhost/sign-in/oidc/callback"]
        assert one["response_type"] == ["code"]
        assert one["client_id"] == [CLIENT]
        assert SECRET not in str(one)
    for name in ("state", "nonce", "code_challenge"):
        first, second = (one[name][0] for one in asked)
        assert first != second
        assert len(first) >= 43


CLAIMS: list[tuple[str, dict[str, Any]]] = [
    ("an issuer of another name", {"iss": "https://evil.example"}),
    ("no issuer", {"iss": None}),
    ("another audience", {"aud": "other"}),
    ("no audience", {"aud": None}),
    ("several audiences without the party that it is for", {"aud": [CLIENT, "other"]}),
    ("several audiences for another party", {"aud": [CLIENT, "other"], "azp": "other"}),
    ("an end in the past", {"exp": round(time.time()) - 120}),
    ("no end", {"exp": None}),
    ("a beginning in the future", {"nbf": round(time.time()) + 86_400}),
    ("a time of issue in the future", {"iat": round(time.time()) + 86_400}),
    ("another nonce", {"nonce": "x"}),
    ("no nonce", {"nonce": None}),
    ("no name", {"email": None}),
    ("an address that is not verified", {"email_verified": False}),
    ("an address of which nothing is known", {"email_verified": None}),
    ("a verification that is a text", {"email_verified": "true"}),
    ("a name with a terminal's escape", {"email": "ann\x1b[2J"}),
    ("a name with a right-to-left mark", {"email": "ann\u202e"}),
    ("a name of 10,000 characters", {"email": "x" * 10_000}),
    ("a name that is a list", {"email": ["ann"]}),
    ("the hash of another access token", {"at_hash": "AAAA"}),
]


@pytest.mark.parametrize("claims", [claims for _, claims in CLAIMS], ids=[name for name, _ in CLAIMS])
def test_an_id_token_with_it_signs_no_one_in(here: Site, issuer: Issuer, claims: dict[str, Any]) -> None:
    issuer.claims = claims
    refused(here, come_back(here, issuer))


def refused(here: Site, answer: Answer) -> None:
    assert answer.status == 401, answer
    assert here.gate.session_cookie not in answer.cookies
    assert SECRET not in answer.raw.decode()
    assert here.gate.sessions.count == 0


def test_a_token_without_a_signature_signs_no_one_in(here: Site, issuer: Issuer) -> None:
    issuer.unsigned, issuer.header = True, {"alg": "none"}
    refused(here, come_back(here, issuer))
    issuer.header = {"alg": "RS256"}
    refused(here, come_back(here, issuer))


@pytest.mark.parametrize("secret", ["the public key", "the client's secret"])
def test_a_token_signed_with_a_shared_secret_signs_no_one_in(here: Site, issuer: Issuer, secret: str) -> None:
    public = issuer.keys[0].as_pem(private=False)
    issuer.secret, issuer.header = public if secret == "the public key" else SECRET.encode(), {"alg": "HS256"}
    refused(here, come_back(here, issuer))


@pytest.mark.parametrize("header", [{}, {"kid": "other"}, {"jku": "http://127.0.0.1:1/keys"}])
def test_a_token_of_another_key_signs_no_one_in(here: Site, issuer: Issuer, header: dict[str, str]) -> None:
    issuer.sign_with, issuer.header = RSAKey.generate_key(2048), header
    refused(here, come_back(here, issuer))


def test_a_key_in_the_token_itself_does_not_count(here: Site, issuer: Issuer) -> None:
    own = ECKey.generate_key("P-256")
    issuer.sign_with, issuer.header = own, {"alg": "ES256", "jwk": own.as_dict(private=False)}
    refused(here, come_back(here, issuer))


def test_a_rotated_key_is_asked_for_once_more(here: Site, issuer: Issuer) -> None:
    assert come_back(here, issuer).status == 200
    new = RSAKey.generate_key(2048, {"kid": "two", "use": "sig", "alg": "RS256"})
    issuer.keys, issuer.sign_with, issuer.header = [new], new, {"kid": "two"}
    refused_yet = come_back(here, issuer).status
    here.gate.oidc._keys_again = 0.0  # half a minute later
    assert (refused_yet, come_back(here, issuer).status) == (401, 200)
    assert issuer.asked.count("/keys") == 2


def test_a_state_counts_once(here: Site, issuer: Issuer) -> None:
    source = fresh_address()
    where, cookie = begin(here, source)
    back = issuer.authorize(where)
    assert here.ask("GET", back, {"Cookie": cookie}, source=source).status == 200
    again = here.ask("GET", issuer.authorize(where), {"Cookie": cookie}, source=source)
    assert again.status == 401
    assert here.gate.session_cookie not in again.cookies


def test_a_state_counts_in_the_browser_that_began_only(here: Site, issuer: Issuer) -> None:
    source = fresh_address()
    where, _ = begin(here, source)
    _, others = begin(here, fresh_address())
    back = issuer.authorize(where)
    refused(here, here.ask("GET", back, {"Cookie": others}, source=source))
    refused(here, here.ask("GET", back, source=source))


def test_an_old_state_counts_no_more(here: Site, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.web.access.credentials.STATE_S", -1.0)
    refused(here, come_back(here, issuer))


def test_a_code_of_another_sign_in_does_not_count(here: Site, issuer: Issuer) -> None:
    """PKCE: the code was given for another verifier."""
    source = fresh_address()
    mine, cookie = begin(here, source)
    theirs, _ = begin(here, fresh_address())
    code = issuer.authorize(theirs).partition("&code=")[2]
    back = issuer.authorize(mine).partition("&code=")[0]
    refused(here, here.ask("GET", f"{back}&code={code}", {"Cookie": cookie}, source=source))


def test_the_answer_of_another_issuer_does_not_count(here: Site, issuer: Issuer) -> None:
    source = fresh_address()
    where, cookie = begin(here, source)
    back = f"{issuer.authorize(where)}&iss=https://evil.example"
    refused(here, here.ask("GET", back, {"Cookie": cookie}, source=source))


def test_a_refusal_of_the_issuer_is_shown_without_its_markup(here: Site, issuer: Issuer) -> None:
    source = fresh_address()
    where, cookie = begin(here, source)
    state = parse_qs(urlsplit(where).query)["state"][0]
    answer = here.ask(
        "GET",
        f"/sign-in/oidc/callback?state={state}&error=%3Cscript%3E%1b",
        {"Cookie": cookie, "Accept": "text/html"},
        source=source,
    )
    refused(here, answer)
    assert "<script" not in answer.text
    assert "\x1b" not in answer.text
    assert "&lt;script&gt;" in answer.text


@pytest.mark.parametrize(
    "token",
    [{}, {"id_token": "x"}, {"id_token": 7}, {"id_token": "a.b.c"}, {"id_token": "e30.e30."}, {"error": "invalid"}],
)
def test_an_answer_without_a_token_signs_no_one_in(here: Site, issuer: Issuer, token: dict[str, Any]) -> None:
    issuer.token = token
    refused(here, come_back(here, issuer))


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": "http://evil.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
    ],
)
def test_an_issuer_that_names_others_is_not_gone_to(here: Site, issuer: Issuer, metadata: dict[str, Any]) -> None:
    issuer.metadata = metadata
    assert here.ask("GET", "/sign-in/oidc").status == 502


def test_a_slow_issuer_keeps_no_one_waiting(here: Site, issuer: Issuer) -> None:
    issuer.slow_s = 4.0
    began = time.monotonic()
    assert here.ask("GET", "/sign-in/oidc").status == 502
    assert time.monotonic() - began < 3.5


@pytest.mark.parametrize(
    ("groups", "status"),
    [(["staff"], 403), ("kafka", 200), (["other"], 403), ({"kafka": 1}, 403), (None, 403), ([["kafka"]], 403)],
)
def test_roles_follow_the_groups(here: Site, issuer: Issuer, groups: Any, status: int) -> None:
    issuer.claims = {"groups": groups}
    answer = come_back(here, issuer)
    assert answer.status == 200
    cookie = f"{here.gate.session_cookie}={answer.cookies[here.gate.session_cookie]}"
    page = here.ask("GET", "/", {"Cookie": cookie})
    token = csrf_in(page) if page.status == 200 else ""
    written = here.ask("POST", PLAN, {"Cookie": cookie, "Content-Type": FORM}, f"csrf={token}")
    assert written.status == status


def test_failed_ways_back_are_bounded_for_an_address(here: Site, issuer: Issuer) -> None:
    source = fresh_address()
    statuses = [here.ask("GET", f"/sign-in/oidc/callback?state=x{n}&code=y", source=source).status for n in range(7)]
    assert statuses == [401] * 5 + [429] * 2
    assert come_back(here, issuer, source).status == 200, "one that began here comes back all the same"
