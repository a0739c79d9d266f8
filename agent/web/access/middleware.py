"""The one way to every page and API route, and the routes of signing in and out.

Headers, origin, person, body and form token are checked before a route. Invariants: health and metrics are passed
through as they are. All else needs the role view, except for signing in; what is not GET or HEAD also needs approve.
Routes ask for more with `require`; one that forgets is not open. Signing in is a form for name and token, or the way
over an issuer; it gives the session's cookie.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import quote

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.web.access.credentials import CALLBACK, OIDC, STATE_S, PendingSignIn, PendingSignIns
from agent.web.access.gate import AccessGate
from agent.web.access.person import AccessRole, SignedInPerson, SignInWay, not_allowed, person_name, person_of
from agent.web.access.request_checks import (
    JSON,
    METHODS,
    SAFE,
    AccessRefused,
    check_headers,
    check_origin,
    cookie_of,
    form_fields,
    is_browser,
    is_for_browser,
    local_path,
    media_type,
    pages,
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


_NOT_SET = "No sign-in with a token is set up here: set http.auth.tokens_file (rackwise token new)."


def sign_in_routes() -> list[BaseRoute]:
    """All routes of signing in."""
    return [
        Route(SIGN_IN, show_form, methods=["GET"]),
        Route(SIGN_IN, sign_in, methods=["POST"]),
        Route(SIGN_OUT, sign_out, methods=["POST"]),
        Route(OIDC, to_issuer, methods=["GET"]),
        Route(CALLBACK, from_issuer, methods=["GET"]),
    ]


def show_form(request: Request) -> Response:
    """The form; someone who is signed in goes on."""
    following = local_path(request.query_params.get("next", "/"))
    if person_of(request).signed_in:
        return RedirectResponse(following, status_code=HTTPStatus.SEE_OTHER)
    # A link on another site's page brings no strict cookie with it: the browser comes once more, from here.
    again = f"{SIGN_IN}?next={quote(following, safe='')}" if _is_followed_link(request) else ""
    return _form(request, following, again=again)


def sign_in(request: Request) -> Response:
    """A session for a name and its token."""
    gate: AccessGate = request.state.gate
    fields: dict[str, str] = request.state.fields
    following, name = local_path(fields.get("next", "/")), person_name(fields.get("name", "")) or ""
    if gate.tokens is None:
        return refusal_answer(request, AccessRefused(403, _NOT_SET))
    if not name:
        return refusal_answer(request, AccessRefused(400, "A name is missing, or is no short visible text"))
    try:
        person, credential = gate.by_token(request, fields.get("token", "").strip(), name)
    except AccessRefused as refused:
        if not is_for_browser(request):
            return refusal_answer(request, refused)
        failed = f"{refused.what}{f': {refused.why}' if refused.why else ''}. {refused.todo}"
        page = _form(request, following, failed=failed, name=name)
        page.status_code = refused.status_code
        return page
    return signed_in(request, person, credential, RedirectResponse(following, status_code=HTTPStatus.SEE_OTHER))


def sign_out(request: Request) -> Response:
    """End the session; also of a browser without one."""
    gate: AccessGate = request.state.gate
    if cookie := cookie_of(request, gate.session_cookie):
        gate.sessions.end(cookie)
    answer = RedirectResponse(SIGN_IN, status_code=HTTPStatus.SEE_OTHER)
    answer.headers.append("set-cookie", cookie_text(gate, gate.session_cookie, "", 0))
    return answer


async def to_issuer(request: Request) -> Response:
    """To the issuer, with a state that only this browser can bring back."""
    gate: AccessGate = request.state.gate
    if gate.oidc is None:
        return refusal_answer(request, AccessRefused(404, "Sign-in over OIDC is not set up (http.auth.oidc)"))
    following = local_path(request.query_params.get("next", "/"))
    try:
        url, state = await run_in_threadpool(gate.oidc.begin, following, gate.address_of(request))
    except AccessRefused as refused:
        return refusal_answer(request, refused)
    answer = RedirectResponse(url, status_code=HTTPStatus.SEE_OTHER)
    # Strict would keep it from coming back: the way back begins at the issuer.
    answer.headers.append("set-cookie", cookie_text(gate, gate.state_cookie, state, int(STATE_S), same_site="Lax"))
    return answer


async def from_issuer(request: Request) -> Response:
    """Back from the issuer: a session for the person of the ID token."""
    gate: AccessGate = request.state.gate
    if gate.oidc is None:
        return refusal_answer(request, AccessRefused(404, "Sign-in over OIDC is not set up (http.auth.oidc)"))
    try:
        began = _began(request, gate.oidc.pending)
        person = await run_in_threadpool(gate.oidc.end, began, dict(request.query_params))
    except AccessRefused as refused:
        return refusal_answer(request, _counted(request, refused))
    # The next page is asked for from here: a redirect would still count as coming from the issuer, without the cookie.
    page = pages.get_template("sign_in.html").render(again=began.next)
    answer = signed_in(request, person, "", HTMLResponse(page))
    answer.headers.append("set-cookie", cookie_text(gate, gate.state_cookie, "", 0, same_site="Lax"))
    return answer


def signed_in(request: Request, person: SignedInPerson, credential: str, answer: Response) -> Response:
    """The answer with a new session; one that the browser had before ends."""
    gate: AccessGate = request.state.gate
    if before := cookie_of(request, gate.session_cookie):
        gate.sessions.end(before)
    cookie = gate.sessions.begin(person, credential, gate.clock().monotonic_ms)
    answer.headers.append("set-cookie", cookie_text(gate, gate.session_cookie, cookie, None))
    structlog.get_logger("rackwise").info(
        "signed_in",
        person=person.name,
        via=person.via.value,
        address=gate.address_of(request),
        sentence=f"{person.name} signed in ({person.via.value}) from {gate.address_of(request)}",
    )
    return answer


def _began(request: Request, pending: PendingSignIns) -> PendingSignIn:
    """The sign-in that this browser began. Raises AccessRefused."""
    gate: AccessGate = request.state.gate
    states = request.query_params.getlist("state")
    known = len(states) == 1 and cookie_of(request, gate.state_cookie) == states[0]
    began = pending.end(states[0]) if known else None
    if began is None:
        raise AccessRefused(
            401,
            "Signing in did not work",
            why="it began in another browser, is older than ten minutes, or was used before",
            todo="Sign in again.",
        )
    return began


def _counted(request: Request, refused: AccessRefused) -> AccessRefused:
    """The refusal of a sign-in at the issuer, counted as a failed one; 429 where there are too many."""
    gate: AccessGate = request.state.gate
    if refused.status_code == HTTPStatus.UNAUTHORIZED:
        try:
            gate.failed(request, refused.why or refused.what)
        except AccessRefused as too_many:
            return too_many
    return refused


def _form(request: Request, following: str, *, again: str = "", failed: str = "", name: str = "") -> HTMLResponse:
    gate: AccessGate = request.state.gate
    oidc = f"{OIDC}?next={quote(following, safe='')}" if gate.oidc is not None else ""
    page = pages.get_template("sign_in.html").render(
        again=again,
        csrf=csrf_token(request),
        failed=failed,
        instead=_instead(gate),
        issuer=gate.oidc.issuer if gate.oidc is not None else "",
        name=name,
        next=following,
        oidc=oidc,
        tokens=gate.tokens is not None,
    )
    return HTMLResponse(page)


def _instead(gate: AccessGate) -> str:
    """What to do where neither a form nor an issuer is there."""
    if not gate.settings.auth.is_set:
        return _NOT_SET
    return "People sign in at the proxy in front of rackwise, or with a client certificate."


def _is_followed_link(request: Request) -> bool:
    return request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
