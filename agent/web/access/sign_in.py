"""Routes of signing in and out: a form for name and token, the way over an issuer, the session's cookie."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from agent.web.access.gate import AccessGate
from agent.web.access.middleware import SIGN_IN, SIGN_OUT, cookie_text, csrf_token
from agent.web.access.person import SignedInPerson, person_name, person_of
from agent.web.access.request_checks import AccessRefused, cookie_of, is_for_browser, local_path, pages, refusal_answer
from agent.web.access.sessions import CALLBACK, OIDC, STATE_S, PendingSignIn, PendingSignIns

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
