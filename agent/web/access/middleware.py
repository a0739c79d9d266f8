"""The one way to every page and API route: headers, origin, person, body and form token are checked before it.

Invariants: health and metrics are passed through as they are. All else needs the role view, except for signing in; what
is not GET or HEAD also needs approve. Routes ask for more with `require`; one that forgets is not open.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.web.access.gate import AccessGate
from agent.web.access.person import AccessRole, SignedInPerson, SignInWay, not_allowed, person_of
from agent.web.access.request_checks import (
    JSON,
    METHODS,
    SAFE,
    AccessRefused,
    check_headers,
    check_origin,
    form_fields,
    is_browser,
    is_for_browser,
    media_type,
    read_body,
    refusal_answer,
    replayed,
)

HEALTH = frozenset(("/livez", "/readyz", "/metrics"))
"""Paths that need no sign-in and are answered as they are."""
SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
STATIC = "/static/"
_OPEN = frozenset((SIGN_IN, SIGN_OUT, "/sign-in/oidc", "/sign-in/oidc/callback"))
CSRF_FIELD, CSRF_HEADER = "csrf", "x-csrf-token"
_MOST_STRANGERS = 2
"""Of the few requests at once: slow bodies of strangers leave the other places to everyone else."""
_YEAR_S = 31_536_000
_VISITOR_S = 86_400


class AccessControl:
    """ASGI middleware around everything that the server answers."""

    def __init__(
        self, app: ASGIApp, gate: AccessGate, methods_at: Callable[[Scope], frozenset[str]] = lambda _: METHODS
    ) -> None:
        """``methods_at``: the methods of the path of a request."""
        self._methods_at = methods_at
        self._app = app
        self._gate = gate
        self._strangers = 0
        """Bodies that are being read of people who are not signed in."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            return
        if scope["path"] in HEALTH:
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["gate"] = self._gate
        request = Request(scope)
        answer = self._with_headers(request, send)
        try:
            check_headers(request, self._methods_at(scope))
            check_origin(request, self._gate.origins(request))
            request.state.person = await run_in_threadpool(self._gate.identify, request)  # it may read a file
            instead = self._unless_allowed(request)
            if instead is None and request.method not in SAFE:
                receive = await self._read(request, receive)
        except AccessRefused as refused:
            instead = refusal_answer(request, refused)
        await (self._app if instead is None else instead)(scope, receive, answer)

    async def _read(self, request: Request, receive: Receive) -> Receive:
        """The body for the route, checked, with its fields in ``request.state.fields``. Raises AccessRefused."""
        gate, person = self._gate, person_of(request)
        if not person.signed_in and self._strangers >= _MOST_STRANGERS:
            raise AccessRefused(503, "Too many people are signing in at once", headers={"retry-after": "1"})
        self._strangers += not person.signed_in
        try:
            body = await read_body(request, receive)
        finally:
            self._strangers -= not person.signed_in
        fields = form_fields(request, body)
        if _needs_form_token(request, person):
            token = request.headers.get(CSRF_HEADER) or fields.get(CSRF_FIELD, "")
            if not gate.forms.holds(token, gate.browser_cookie(request), person):
                raise AccessRefused(
                    403,
                    "The form is not one that this browser was shown",
                    why="its token is missing, or of another session",
                    todo="Load the page again and repeat it; a program sends its token as Authorization: Bearer.",
                )
        request.state.fields = fields
        return replayed(body, receive)

    def _unless_allowed(self, request: Request) -> Response | None:
        """The answer instead of the route's; None where the person may go on."""
        path, person = str(request.scope["path"]), person_of(request)
        if path in _OPEN or path.startswith(STATIC):
            return None
        role = AccessRole.VIEW if request.method in SAFE else AccessRole.APPROVE
        if person.may(role):
            return None
        if not person.signed_in and request.method in SAFE and is_for_browser(request):
            query = request.scope["query_string"].decode("latin-1")
            following = f"{path}?{query}" if query else path
            return RedirectResponse(f"{SIGN_IN}?next={quote(following, safe='')}", status_code=HTTPStatus.SEE_OTHER)
        return refusal_answer(request, not_allowed(person, role))

    def _with_headers(self, request: Request, send: Send) -> Send:
        gate = self._gate

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                set_answer_headers(headers, request, gate)
                made = getattr(request.state, "visitor", "")
                if made:
                    headers.append("set-cookie", cookie_text(gate, gate.visitor_cookie, made, _VISITOR_S))
            await send(message)

        return sending


def csrf_token(request: Request) -> str:
    """The token that a form of this answer holds in a hidden field ``csrf``, or a script sends as X-CSRF-Token."""
    gate: AccessGate = request.state.gate
    cookie = gate.browser_cookie(request) or getattr(request.state, "visitor", "")
    if not cookie:
        request.state.visitor = cookie = secrets.token_urlsafe(32)
    return gate.forms.of(cookie, person_of(request))


def cookie_text(gate: AccessGate, name: str, value: str, max_age_s: int | None, *, same_site: str = "Strict") -> str:
    """A Set-Cookie header; None for the age ends it with the browser."""
    age = "" if max_age_s is None else f"; Max-Age={max_age_s}"
    return f"{name}={value}; Path=/; HttpOnly; SameSite={same_site}{age}{'; Secure' if gate.secure else ''}"


def set_answer_headers(headers: MutableHeaders, request: Request, gate: AccessGate) -> None:
    """What every answer of pages and API says to browsers."""
    issuer = f" {gate.oidc.origin}" if gate.oidc is not None else ""
    policy = (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        f" object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'{issuer}"
    )
    headers.setdefault("content-security-policy", policy)  # a route may have a narrower one
    headers["x-content-type-options"] = "nosniff"
    headers["x-frame-options"] = "DENY"
    headers["referrer-policy"] = "same-origin"
    headers["permissions-policy"] = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"
    headers["cross-origin-opener-policy"] = "same-origin"
    headers["cross-origin-resource-policy"] = "same-origin"
    is_static = str(request.scope["path"]).startswith(STATIC)
    if person_of(request).signed_in and not is_static:
        headers["cache-control"] = "no-store"
    elif not is_static:
        headers.setdefault("cache-control", "no-store")
    if gate.secure:
        headers["strict-transport-security"] = f"max-age={_YEAR_S}"


def refuse(request: Request, error: Exception) -> Response:
    """The handler of an AccessRefused that a route raises; one in a thread may be of Starlette's own kind."""
    if isinstance(error, AccessRefused):
        return refusal_answer(request, error)
    if isinstance(error, HTTPException):
        return refusal_answer(request, AccessRefused(error.status_code, _what(error, request), headers=error.headers))
    raise error


def _what(error: HTTPException, request: Request) -> str:
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            return "There is no such page"
        case HTTPStatus.METHOD_NOT_ALLOWED:
            return f"This address takes no {request.method}"
        case status:
            return HTTPStatus(status).phrase


def _needs_form_token(request: Request, person: SignedInPerson) -> bool:
    """A token in the Authorization header proves that no other site's page sent it.

    So does JSON without any sign of a browser: a page could send it only after a preflight, which is refused.
    """
    if person.via is SignInWay.TOKEN and "authorization" in request.headers:
        return False
    return is_browser(request) or media_type(request) != JSON
