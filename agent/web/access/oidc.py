"""Sign-in at an OpenID Connect issuer: authorization code with PKCE, state and nonce; who an ID token names.

Sources: OpenID Connect Core 1.0 and Discovery 1.0, RFC 7636, RFC 9207. Invariants: a state is used once, within ten
minutes, by the browser that began; ID tokens count with asymmetric signatures only, of the keys that the issuer
publishes; every request to the issuer has a deadline and a bound, and follows no redirect.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, cast
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
from agent.web.access.credentials import CALLBACK, PendingSignIn, PendingSignIns
from agent.web.access.person import SignedInPerson, SignInWay, person_name, roles_of
from agent.web.access.request_checks import AccessRefused
from config.foreign_text import safe_text
from config.http_settings import OidcSettings, is_loopback

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
