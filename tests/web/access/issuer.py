"""An OpenID Connect issuer on loopback, with keys of its own: it signs whatever a test wants it to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jws
from joserfc.jwk import KeySet, RSAKey

CLIENT, SECRET = "rackwise", "canary-client-secret-51fe"


KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})


class Issuer:
    """What it does is changed by tests: ``claims`` and ``header`` go over those that it would send."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys = [KEY]
        self.sign_with: Any = self.keys[0]
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.token: dict[str, Any] | None = None
        """Instead of the answer of the token endpoint."""
        self.unsigned = False
        self.secret: bytes | None = None
        """Signs as HS256 with it."""
        self.slow_s = 0.0
        self.asked: list[str] = []
        """Paths that were asked for."""
        self.codes: dict[str, dict[str, str]] = {}
        """Code -> the request that it is for."""

    def authorize(self, where: str) -> str:
        """What a browser that a person signs in with is sent back to."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(where).query).items()}
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"/sign-in/oidc/callback?state={query['state']}&code={code}"

    def document(self, path: str) -> dict[str, Any] | None:
        if path == "/.well-known/openid-configuration":
            own = {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "id_token_signing_alg_values_supported": ["RS256", "none"],
            }
            return {**own, **self.metadata}
        return KeySet(self.keys).as_dict(private=False) if path == "/keys" else None

    def answer(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Of the token endpoint; a code counts once, with its verifier, and from the client that has the secret."""
        request = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        client = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if request is None or request["code_challenge"] != challenge or request["code_challenge_method"] != "S256":
            return 400, {"error": "invalid_grant"}
        if authorization != client or form["redirect_uri"] != request["redirect_uri"]:
            return 401, {"error": "invalid_client"}
        if self.token is not None:
            return 200, self.token
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": self.id_token(request["nonce"])}

    def id_token(self, nonce: str) -> str:
        now = round(time.time())
        own = {
            "iss": self.url, "sub": "42", "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": nonce,
            "email": "ann@example.org", "email_verified": True, "groups": ["kafka", "staff"],
        }  # fmt: skip
        claims = {name: value for name, value in {**own, **self.claims}.items() if value is not None}
        header = {"alg": "RS256", "kid": "one", **self.header}
        body = f"{_b64(header)}.{_b64(claims)}"
        if self.unsigned:
            return f"{body}."
        if self.secret is not None:
            code = hmac.new(self.secret, body.encode(), hashlib.sha256).digest()
            return f"{body}.{base64.urlsafe_b64encode(code).rstrip(b'=').decode()}"
        return jws.serialize_compact(header, json.dumps(claims), self.sign_with, algorithms=["RS256", "ES256"])


def _b64(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """It listens until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            time.sleep(issuer.slow_s)
            document = issuer.document(self.path)
            self._send(200 if document is not None else 404, document or {})

        def do_POST(self) -> None:
            issuer.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._send(*issuer.answer(form, self.headers.get("Authorization", "")))

        def _send(self, status: int, document: dict[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer = Issuer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
