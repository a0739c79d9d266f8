"""Sessions of signed-in people, and the sign-in at an OpenID Connect issuer that begins one.

Sessions are kept in the server: a cookie holds a random name alone. It is made at sign-in and never taken from a
request, so none can be fixed beforehand. Each has an idle and an absolute end. A person has at most `MOST_EACH`, all
together `MOST`; the one unused for longest goes.

Sign-in: authorization code with PKCE, state and nonce (OpenID Connect Core 1.0 and Discovery 1.0, RFC 7636, RFC 9207).
A state is used once, within ten minutes, by the browser that began; ID tokens count with asymmetric signatures only, of
the keys that the issuer publishes; every request to the issuer has a deadline and a bound, and follows no redirect.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import httpx2
import joserfc.jwt
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from agent.errors import reason
from agent.web.access.person import SignedInPerson, SignInWay, person_name, roles_of
from agent.web.access.request_checks import AccessRefused
from config.foreign_text import safe_text
from config.http_settings import OidcSettings, is_loopback

MOST = 1_000
MOST_EACH = 20
_COOKIE_CHARS = 43
"""Of 32 random bytes in base64."""


class WebSession(NamedTuple):
    """One sign-in of a person in one browser."""

    person: SignedInPerson
    credential: str
    """Hash of the token entry that it rests on; empty for a sign-in elsewhere."""
    began_ms: int
    """Milliseconds of a clock that does not jump, as are the others."""
    used_ms: int


class SessionStore:
    """All sessions; callable from any thread."""

    def __init__(self, *, idle_ms: int, max_ms: int) -> None:
        self._idle_ms = idle_ms
        self._max_ms = max_ms
        self._lock = threading.Lock()
        self._sessions: OrderedDict[bytes, WebSession] = OrderedDict()
        """Hash of a cookie -> its session; the latest used last."""

    def begin(self, person: SignedInPerson, credential: str, now_ms: int) -> str:
        """A new session; the value of its cookie."""
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_old(now_ms)
            own = [key for key, one in self._sessions.items() if one.person.name == person.name]
            for key in own[: max(0, len(own) - MOST_EACH + 1)]:
                del self._sessions[key]
            while len(self._sessions) >= MOST:
                self._sessions.popitem(last=False)
            self._sessions[_key(cookie)] = WebSession(person, credential, now_ms, now_ms)
        return cookie

    def find(self, cookie: str, now_ms: int, *, used: bool = True) -> WebSession | None:
        """The session of a cookie, which is ``used`` now; None where there is none, or it has ended."""
        if len(cookie) != _COOKIE_CHARS or not cookie.isascii():
            return None
        key = _key(cookie)
        with self._lock:
            found = self._sessions.get(key)
            if found is None:
                return None
            if self._is_over(found, now_ms):
                del self._sessions[key]
                return None
            if used:
                self._sessions[key] = found = found._replace(used_ms=now_ms)
                self._sessions.move_to_end(key)
            return found

    def end(self, cookie: str) -> None:
        """Sign out; of an unknown cookie it does nothing."""
        with self._lock:
            self._sessions.pop(_key(cookie), None)

    @property
    def count(self) -> int:
        """Number of open sessions."""
        return len(self._sessions)

    def _is_over(self, session: WebSession, now_ms: int) -> bool:
        return now_ms - session.used_ms >= self._idle_ms or now_ms - session.began_ms >= self._max_ms

    def _drop_old(self, now_ms: int) -> None:
        for key in [key for key, one in self._sessions.items() if self._is_over(one, now_ms)]:
            del self._sessions[key]


def _key(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()


class FormTokens:
    """CSRF tokens: an HMAC over the browser's cookie and the person, which no page of another site can make.

    By a key of this process: a form that was loaded before a restart is loaded again.
    """

    def __init__(self) -> None:
        self._key = os.urandom(32)

    def of(self, cookie: str, person: SignedInPerson) -> str:
        """The token for forms that this browser is shown while this person is signed in."""
        text = f"{cookie}\0{person.via.value}\0{person.name}"
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    def holds(self, token: str, cookie: str, person: SignedInPerson) -> bool:
        """Whether that is the token."""
        return bool(cookie) and token.isascii() and hmac.compare_digest(token, self.of(cookie, person))


OIDC = "/sign-in/oidc"
CALLBACK = "/sign-in/oidc/callback"
STATE_S = 600.0
"""So long a sign-in may take."""
_MOST_STATES = 1_000
_MOST_EACH = 20
"""States of one address."""


class PendingSignIn(NamedTuple):
    """A sign-in that went to the issuer and has not come back."""

    nonce: str
    verifier: str
    next: str
    address: str
    until_s: float


class PendingSignIns:
    """The states that are out; callable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, PendingSignIn] = OrderedDict()

    def begin(self, following: str, address: str) -> tuple[str, PendingSignIn]:
        """A new one, with its state; the oldest ones of an address give way to it."""
        state, until_s = secrets.token_urlsafe(32), time.monotonic() + STATE_S
        began = PendingSignIn(secrets.token_urlsafe(32), secrets.token_urlsafe(48), following, address, until_s)
        with self._lock:
            own = [key for key, one in self._waiting.items() if one.address == address]
            for key in own[: max(0, len(own) - _MOST_EACH + 1)]:
                del self._waiting[key]
            if len(self._waiting) >= _MOST_STATES:
                self._waiting.popitem(last=False)
            self._waiting[state] = began
        return state, began

    def end(self, state: str) -> PendingSignIn | None:
        """The one of that state, which counts no more; None for one that is used, unknown or too old."""
        with self._lock:
            found = self._waiting.pop(state, None)
        return found if found is not None and time.monotonic() < found.until_s else None


ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Signatures that only the issuer can make: never ``none``, and none with the client's secret."""
_KNOWN_S = 3_600.0
"""So long what the issuer publishes is not asked again; a key that is not there is asked for at once."""
_AGAIN_S = 30.0
"""Least time between two such questions."""
_MOST_BYTES = 1_048_576
_LEEWAY_S = 60
_MOST_VALUES = 500


class OidcProvider:
    """One issuer. Its methods wait for it: call them in a thread of their own."""

    def __init__(self, settings: OidcSettings, secret: str | None, url: str) -> None:
        """``secret`` is the client's; ``url`` the origin that people open."""
        self._settings = settings
        self._secret = secret
        self._redirect = url + CALLBACK
        self._timeout = httpx2.Timeout(settings.timeout_ms / 1_000)
        self._lock = threading.Lock()
        self._metadata: Mapping[str, Any] = {}
        self._keys: KeySet | None = None
        self._metadata_until = self._keys_until = self._keys_again = 0.0
        self.pending = PendingSignIns()

    @property
    def origin(self) -> str:
        """Scheme and host of the issuer, for the Content-Security-Policy."""
        parts = urlsplit(self.issuer)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def issuer(self) -> str:
        """URL of the issuer, as in the settings."""
        return self._settings.issuer or ""

    def begin(self, following: str, address: str) -> tuple[str, str]:
        """The URL at the issuer that a browser is sent to, and the state. Raises AccessRefused."""
        endpoint = self._endpoint("authorization_endpoint")
        state, began = self.pending.begin(following, address)
        with self._client() as client:
            url, _ = client.create_authorization_url(
                endpoint,
                state=state,
                nonce=began.nonce,
                code_challenge=create_s256_code_challenge(began.verifier),
                code_challenge_method="S256",
            )
        return str(url), state

    def end(self, began: PendingSignIn, query: Mapping[str, str]) -> SignedInPerson:
        """The person who came back from the issuer. Raises AccessRefused for anyone who is not sure."""
        if "error" in query:
            raise _failed(f"the issuer answers {safe_text(query['error'], 80)}")
        if query.get("iss", self.issuer) != self.issuer:
            raise _failed("the answer is of another issuer")
        code = query.get("code", "")
        if not code or len(code) > 4_096:
            raise _failed("the answer has no code")
        token = self._token(code, began)
        try:
            claims = self._claims(token, began.nonce)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise _failed(f"the ID token is not valid ({type(error).__name__}: {reason(error)})") from error
        return self._person(claims)

    def _token(self, code: str, began: PendingSignIn) -> Mapping[str, Any]:
        endpoint = self._endpoint("token_endpoint")
        try:
            with self._client() as client:
                found = client.fetch_token(
                    endpoint, code=code, code_verifier=began.verifier, grant_type="authorization_code"
                )
        except Exception as error:  # Authlib passes on what its parts raise, of several trees
            raise _failed(f"the code was not accepted ({type(error).__name__})") from error
        if not isinstance(found, dict) or not isinstance(found.get("id_token"), str):
            raise _failed("there is no ID token in the answer")
        return found

    def _claims(self, token: Mapping[str, Any], nonce: str) -> Mapping[str, Any]:
        text, registry = token["id_token"], JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
        try:
            decoded = joserfc.jwt.decode(text, key=self._key_set(), registry=registry)
        except JoseError:  # keys are rotated: once more, with those of now
            decoded = joserfc.jwt.decode(text, key=self._key_set(anew=True), registry=registry)
        wanted = {
            "iss": {"essential": True, "values": [self.issuer]},
            "aud": {"essential": True, "values": [self._settings.client_id]},
        }
        params = {
            "nonce": nonce,
            "client_id": self._settings.client_id,
            "access_token": token.get("access_token"),
        }
        claims = CodeIDToken(decoded.claims, decoded.header, wanted, params)
        claims.validate(leeway=_LEEWAY_S)
        return cast("Mapping[str, Any]", claims)

    def _person(self, claims: Mapping[str, Any]) -> SignedInPerson:
        wanted = self._settings.name_claim
        name = person_name(claims.get(wanted))
        if name is None:
            raise _failed(f"the claim {wanted} (http.auth.oidc.name_claim) is no short visible text")
        if wanted == "email" and claims.get("email_verified") is not True:
            raise _failed("the issuer has not verified the email address; set http.auth.oidc.name_claim to another one")
        given = claims.get(self._settings.role_claim)
        values = [given] if isinstance(given, str) else given if isinstance(given, list) else []
        roles = roles_of((one for one in values[:_MOST_VALUES] if isinstance(one, str)), self._settings)
        return SignedInPerson(name, roles, SignInWay.OIDC)

    def _client(self) -> OAuth2Client:
        return OAuth2Client(
            self._settings.client_id,
            self._secret,
            token_endpoint_auth_method="none" if self._secret is None else self._method(),
            scope=" ".join(self._settings.scopes),
            redirect_uri=self._redirect,
            timeout=self._timeout,
            follow_redirects=False,
            trust_env=False,
        )

    def _method(self) -> str:
        known = self._known().get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        return "client_secret_basic" if "client_secret_basic" in known else "client_secret_post"

    def _endpoint(self, name: str) -> str:
        url = self._known().get(name)
        if not isinstance(url, str) or not self._is_safe(url):
            raise _failed(f"the issuer names no usable {name}", status=502)
        return url

    def _is_safe(self, url: str) -> bool:
        """Whether it may be asked: https, or loopback for an issuer on loopback."""
        parts = urlsplit(url)
        here = is_loopback(urlsplit(self.issuer).hostname or "")
        return parts.scheme == "https" or (parts.scheme == "http" and here and is_loopback(parts.hostname or ""))

    def _known(self) -> Mapping[str, Any]:
        """What the issuer says about itself."""
        with self._lock:
            if time.monotonic() >= self._metadata_until:
                found = self._get(self.issuer.rstrip("/") + "/.well-known/openid-configuration")
                if found.get("issuer") != self.issuer:
                    raise _failed("the issuer names itself otherwise than http.auth.oidc.issuer", status=502)
                self._metadata, self._metadata_until = found, time.monotonic() + _KNOWN_S
            return self._metadata

    def _key_set(self, *, anew: bool = False) -> KeySet:
        url = self._endpoint("jwks_uri")
        with self._lock:
            now = time.monotonic()
            if self._keys is None or now >= self._keys_until or (anew and now >= self._keys_again):
                self._keys = KeySet.import_key_set(cast("Any", self._get(url)))
                self._keys_until, self._keys_again = now + _KNOWN_S, now + _AGAIN_S
            return self._keys

    def _get(self, url: str) -> dict[str, Any]:
        """A JSON object of the issuer. Raises AccessRefused."""
        deadline, content = time.monotonic() + self._settings.timeout_ms / 1_000, b""
        try:
            with (
                httpx2.Client(timeout=self._timeout, follow_redirects=False, trust_env=False) as client,
                client.stream("GET", url) as answer,
            ):
                answer.raise_for_status()
                for part in answer.iter_bytes():
                    content += part
                    if len(content) > _MOST_BYTES or time.monotonic() > deadline:
                        raise _failed("the issuer's answer is too large or too slow", status=502)
                document = httpx2.Response(200, content=content).json()
        except (httpx2.HTTPError, ValueError) as error:
            raise _failed(f"the issuer does not answer ({type(error).__name__})", status=502) from error
        if not isinstance(document, dict):
            raise _failed("the issuer's answer is no JSON object", status=502)
        return document


def _failed(why: str, status: int = 401) -> AccessRefused:
    return AccessRefused(
        status,
        "Signing in did not work",
        why=why,
        todo="Try again; if it goes on, check http.auth.oidc in the settings.",
    )
