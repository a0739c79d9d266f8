"""Checks of a request that need no identity (host, origin, fetch metadata, headers sent twice, body), and refusals.

Sources: Fetch (Origin, ``Sec-Fetch-*``), RFC 6265 (cookies). They precede the identification of the sender. A refusal
is an RFC 9457 problem for programs and a short page for browsers: no secret, no foreign markup.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.web.page.environment import asset_url
from config.foreign_text import safe_text

API = "/api/"
_MOST_TEXT = 500
PROBLEM_TYPE = "application/problem+json"
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class AccessRefused(HTTPException):
    """A request that is not carried out, with the sentences *what*, *why* and *todo*."""

    def __init__(
        self,
        status: int,
        what: str,
        *,
        why: str = "",
        todo: str = "",
        kind: str = "about:blank",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """``kind`` names the kind of problem, for programs."""
        super().__init__(int(status), detail=what, headers=dict(headers or {}))
        self.kind = kind
        self.what = safe_text(what, _MOST_TEXT)
        self.why = safe_text(why, _MOST_TEXT)
        self.todo = safe_text(todo, _MOST_TEXT)


pages = Environment(
    loader=PackageLoader("agent.web.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
"""Templates of the pages that belong to signing in."""
pages.globals["asset_url"] = asset_url


def is_for_browser(request: Request) -> bool:
    """Whether a page is the answer, not a document."""
    return not str(request.scope["path"]).startswith(API) and "text/html" in request.headers.get("accept", "")


def refusal_answer(request: Request, refused: AccessRefused) -> Response:
    """The answer to a refused request."""
    headers = {**_HEADERS, **(refused.headers or {})}
    status = refused.status_code
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = 'Bearer realm="rackwise"'
    if is_for_browser(request):
        page = pages.get_template("refused.html").render(
            title=HTTPStatus(status).phrase, what=refused.what, why=refused.why, todo=refused.todo
        )
        return HTMLResponse(page, status_code=status, headers=headers)
    return Response(problem_bytes(refused), status, headers, PROBLEM_TYPE)


def problem_bytes(refused: AccessRefused) -> bytes:
    """The problem as JSON of ASCII alone."""
    problem: dict[str, object] = {
        "type": refused.kind,
        "title": HTTPStatus(refused.status_code).phrase,
        "status": refused.status_code,
        "detail": f"{refused.what}: {refused.why}" if refused.why else refused.what,
    }
    if refused.todo:
        problem["todo"] = refused.todo
    return json.dumps(problem, separators=(",", ":")).encode("ascii")


def failed(request: Request, _error: Exception) -> Response:
    """The handler of an error that no route expects; the server logs it."""
    todo = "See the agent's log for the error, and report it."
    return refusal_answer(request, AccessRefused(500, "the agent failed to answer", todo=todo))


SAFE = frozenset(("GET", "HEAD"))
"""Methods that change nothing."""
METHODS = SAFE | {"POST"}
MOST_HEAD = 16_384
"""Bytes of all headers."""
MOST_BODY = 65_536
"""Bytes of a body."""
BODY_S = 5.0
"""A whole body must come within this time."""
MOST_FIELDS = 100
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
_ONCE = ("authorization", "origin", "content-type", "sec-fetch-site", "x-csrf-token")
_EMBEDDED = frozenset(("iframe", "frame", "object", "embed"))


_HOST = re.compile(r"(\[(?P<bracketed>[0-9a-f:.]+)\]|(?P<plain>[^\[\]:@/\s]*))(:[0-9]*)?")
"""A host with or without a port; nothing may follow either."""


class AllowedHosts:
    """Answers 421 to a request for a host name that is not known; addresses are always known."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and not self._knows(Headers(scope=scope).getlist("host")):
            what, todo = "the Host header names an unknown host", "Add it to http.allowed_hosts, or use the address."
            refused = AccessRefused(421, what, todo=todo)
            await refusal_answer(Request(scope), refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, hosts: list[str]) -> bool:
        if len(hosts) != 1:
            return False
        found = _HOST.fullmatch(hosts[0].strip().lower())
        if found is None:
            return False
        bracketed, plain = found["bracketed"], found["plain"]
        return _is_address(bracketed) if bracketed is not None else plain in self._hosts or _is_address(plain)


def _is_address(name: str) -> bool:
    try:
        return not getattr(ipaddress.ip_address(name), "scope_id", None)  # a scope may be any text
    except ValueError:
        return False


def check_headers(request: Request, methods: frozenset[str] = METHODS) -> None:
    """Checks the method, one of those of the path, and that no header has two meanings. Raises AccessRefused."""
    if request.method not in methods:
        raise AccessRefused(
            405,
            f"{request.method} is no method of this {'server' if request.method not in METHODS else 'path'}",
            todo="Use one of the methods that the Allow header names.",
            headers={"allow": ", ".join(sorted(methods))},
        )
    if sum(len(name) + len(value) for name, value in request.scope["headers"]) > MOST_HEAD:
        raise AccessRefused(431, f"the headers have more than {MOST_HEAD:,} bytes")
    for name in _ONCE:
        if len(request.headers.getlist(name)) > 1:
            raise AccessRefused(400, f"the header {name} is sent more than once")
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        # A proxy in front may go by the other one, and take the rest for the next person's request.
        raise AccessRefused(400, "the body has two lengths", headers={"connection": "close"})


def check_origin(request: Request, origins: Sequence[str]) -> None:
    """Lets a page of another site do no more than link to here. Raises AccessRefused."""
    site = request.headers.get("sec-fetch-site", "")
    foreign = site not in ("", "same-origin", "none")
    if request.method in SAFE:
        link = request.headers.get("sec-fetch-mode") == "navigate" and not _is_embedded(request)
        if foreign and not link:
            raise _from_elsewhere()
        return
    origin = request.headers.get("origin")
    if foreign or (origin is not None and origin.lower() not in origins):
        raise _from_elsewhere()


def own_origins(request: Request, url: str | None, *, through_proxy: bool) -> tuple[str, ...]:
    """Origins of the pages of this server, as browsers write them; the Host header was checked before."""
    host = request.headers.get("host", "").lower()
    schemes = {request.url.scheme, "https"} if through_proxy else {request.url.scheme}
    return (*(f"{scheme}://{host}" for scheme in sorted(schemes)), *([url] if url else []))


def is_browser(request: Request) -> bool:
    """Whether a browser sent it, as far as that can be seen: programs send neither."""
    return any(name in request.headers for name in ("origin", "sec-fetch-site", "sec-fetch-mode", "cookie"))


def media_type(request: Request) -> str:
    """The type of the body without its parameters; empty for none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, receive: Receive) -> bytes:
    """The whole body. Raises AccessRefused for types other than JSON and forms, and what is too large or too slow."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length[:12]) > MOST_BODY:
        raise _too_large()
    try:
        async with asyncio.timeout(BODY_S):
            body = await _received(receive)
    except TimeoutError:
        raise AccessRefused(
            408, f"the body did not come within {BODY_S:.0f} s", headers={"connection": "close"}
        ) from None
    if media_type(request) not in ((JSON, FORM) if body else (JSON, FORM, "")):
        raise AccessRefused(415, f"only {JSON} and {FORM} are read")
    return body


async def _received(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise AccessRefused(400, "the client hung up")
        body += bytes(message.get("body", b""))
        if len(body) > MOST_BODY:
            raise _too_large()
        if not message.get("more_body", False):
            return body


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once more, then what comes after it."""
    waiting = True

    async def again() -> Message:
        nonlocal waiting
        if waiting:
            waiting = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


def form_fields(request: Request, body: bytes) -> dict[str, str]:
    """The fields of a form, each once; empty where the body is none. Raises AccessRefused for a field sent twice."""
    if media_type(request) != FORM:
        return {}
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise AccessRefused(400, "the form cannot be read") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise AccessRefused(400, "a field of the form is sent twice")
    return fields


def cookie_of(request: Request, name: str) -> str:
    """The value of one cookie; empty for none. Raises AccessRefused for one sent twice: another site set one."""
    pairs = [pair.strip() for header in request.headers.getlist("cookie") for pair in header.split(";")]
    values = [value for key, _, value in (pair.partition("=") for pair in pairs) if key == name]
    if len(values) > 1:
        raise AccessRefused(400, "the session cookie is sent twice", todo="Delete the cookies of this host.")
    return values[0] if values else ""


def local_path(text: str) -> str:
    """Where to go on after signing in: a path of this server, else the overview."""
    plain = text.isascii() and text.isprintable() and not set(text) & set("\\<>\"' ")
    if not plain or len(text) > 1_000 or not text.startswith("/") or text.startswith(("//", "/sign-")):
        return "/"
    return text


def _is_embedded(request: Request) -> bool:
    return request.headers.get("sec-fetch-dest", "") in _EMBEDDED


def _from_elsewhere() -> AccessRefused:
    return AccessRefused(
        403,
        "The request comes from a page of another site",
        todo="Open the page of rackwise itself; behind a proxy set http.url to the URL that people open.",
    )


def _too_large() -> AccessRefused:
    return AccessRefused(413, f"the body has more than {MOST_BODY:,} bytes", headers={"connection": "close"})
