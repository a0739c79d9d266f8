"""``--agent URL``: a reading command asks the API of a running agent instead of the cluster, and shows the same.

The token comes from the environment variable RACKWISE_AGENT_TOKEN, or from the file of ``--agent-token-file``. TLS is
verified, and no redirect is followed: the token goes to the named agent alone.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agent.cli.output import remember_agent, say
from agent.errors import AgentUnreachable, BadInput, GaveUp, reason
from config.secrets import remember as remember_secrets

if TYPE_CHECKING:
    from agent.documents.cluster import AgentLookDocument

OPTION, TOKEN_OPTION = "--agent", "--agent-token-file"
VARIABLE, TOKEN_VARIABLE = "RACKWISE_AGENT", "RACKWISE_AGENT_TOKEN"
ANSWERED = frozenset(
    {
        "status", "doctor", "groups", "topics", "racks", "explain", "proposals", "proposals list", "proposals history",
        "reassign status", "reassign verify", "config show", "top", "plan", "simulate",
    }
)  # fmt: skip
"""Commands that a running agent answers."""
_TIMEOUT_S = 60.0
_MOST_BYTES = 256 * 1024 * 1024
_PAGE = 1_000
_MOST_PAGES = 10_000
_TRIES = 3
"""How often documents are read because a new look came between them."""
_LISTS_READ = 2
"""How often a list is read because a new look came between its pages."""
_PACED_TRIES = 5
"""How often a request is sent that the agent refuses as one too many."""
_MADE_WITHIN_S = 60.0
"""How long an answer is waited for that the agent is still making."""
_TOO_MANY, _BEING_MADE = 429, 202

Query = Mapping[str, str | Sequence[str]]


class NamedAgent(NamedTuple):
    """The agent that this command asks."""

    url: str
    token: str | None = None


class _Received(NamedTuple):
    """A document, and the look that it is of."""

    document: Any
    look: str
    """Empty where the answer names none."""
    is_made: bool = True
    """False while the agent is making it."""


class _InForce:
    """The agent that is asked by the command that runs in this process."""

    agent: NamedAgent | None = None


def taken_off(arguments: list[str], environ: Mapping[str, str] | None = None) -> list[str]:
    """The arguments without the options that name an agent, which is the one to ask from now on.

    Raises BadInput for an agent that is named for a command which asks none, and a token that cannot be read.
    """
    environ = os.environ if environ is None else environ
    given: dict[str, str] = {}
    while arguments and arguments[0].partition("=")[0] in (OPTION, TOKEN_OPTION):
        name, equal, value = arguments[0].partition("=")
        if not equal and len(arguments) < 2:
            raise BadInput(f"{name} has no value", todo=f"Write {name} {'URL' if name == OPTION else 'FILE'} COMMAND.")
        given[name] = value if equal else arguments[1]
        arguments = arguments[1 if equal else 2 :]
    _InForce.agent = None
    url = given.get(OPTION) or (environ.get(VARIABLE, "") if _is_answered(arguments) else "")
    if OPTION in given and not _is_answered(arguments) and not {"--help", "--version"} & {*arguments}:
        from difflib import get_close_matches

        named = " ".join(arguments[:2])
        near = [one for asked in (named, *arguments[:1]) for one in get_close_matches(asked, ANSWERED, n=1)]
        raise BadInput(
            f"{named or 'This'} asks no agent",
            why="it is no such command, changes something, or needs the cluster or a file itself",
            todo=f"{f'Did you mean {near[0]}? ' if near else ''}An agent answers: {', '.join(sorted(ANSWERED))}.",
        )
    if url:
        _InForce.agent = NamedAgent(_checked(url), _token(given.get(TOKEN_OPTION), environ))
        remember_agent(_InForce.agent.url, ANSWERED)
    return arguments


def named_agent() -> NamedAgent | None:
    """The agent to ask; None where the cluster is to be asked."""
    return _InForce.agent


def document(route: str, query: Query | None = None) -> Any:
    """The document of a route, which the agent may take a while to make. Raises AgentUnreachable, BadInput, GaveUp."""
    agent, until = _agent(), time.monotonic() + _MADE_WITHIN_S
    while not (found := _get(agent, route, query or {})).is_made:
        if time.monotonic() > until:
            raise AgentUnreachable(
                f"The agent at {agent.url} has not answered within {_MADE_WITHIN_S:.0f} s",
                why="it is still working on the answer",
                todo="Ask for less at once, or ask the cluster: leave --agent out.",
            )
        time.sleep(1)
    return found.document


def answer(route: str, query: Query | None = None) -> tuple[Any, AgentLookDocument]:
    """The document of a route, of a list all its rows, with what is true of the look that it is of."""
    (found,), look = answers((route, query or {}))
    return found, look


def answers(*asked: tuple[str, Query]) -> tuple[list[Any], AgentLookDocument]:
    """The documents of several routes, all of one look, with what is true of it."""
    for _ in range(_TRIES):
        found = [_whole(route, query)[0] for route, query in asked]
        look = cast("AgentLookDocument", document("/look"))
        mark = _mark(str(look["cycle"]), str(look["look"]))
        if {one.look for one in found} <= {"", mark}:
            return [one.document for one in found], look
    raise _changed("a new look came between its documents each time that they were read")


def rows(route: str) -> list[Any]:
    """All rows of a list. Raises GaveUp for another answer, which is never taken for a list without rows."""
    found, of_pages = _whole(route, {})
    if not of_pages or not all(isinstance(row, dict) for row in found.document):
        raise GaveUp(
            f"The answer of {_agent().url} is no list of objects", todo="Check that the URL is that of an agent."
        )
    return cast("list[Any]", found.document)


def _whole(route: str, query: Query) -> tuple[_Received, bool]:
    """A document, or all rows of a list from its pages, which are of one look; and whether it came in pages."""
    for _ in range(_LISTS_READ):
        if (found := _read_through(route, query)) is not None:
            return found
    raise _changed("a new look came between the pages of a list, also when it was read again")


def _read_through(route: str, query: Query) -> tuple[_Received, bool] | None:
    """The same; None where its pages are of different looks."""
    agent, asked = _agent(), dict(query)
    found: list[Any] = []
    look: str | None = None
    for _ in range(_MOST_PAGES):
        got = _get(agent, route, asked)
        page = got.document
        if not (isinstance(page, dict) and {"items", "next", "total"} == page.keys()):
            return got, False
        if look is not None and got.look != look:
            return None
        look = got.look
        found += page["items"]
        if page["next"] is None:
            return _Received(found, look), True
        if not page["items"]:
            break
        asked = {**query, "limit": str(_PAGE), "cursor": page["next"]}
    raise GaveUp(f"{agent.url} answers with a list that does not end", todo="Check that the URL is that of an agent.")


def _changed(why: str) -> AgentUnreachable:
    return AgentUnreachable(f"The answer of {_agent().url} changed while it was read", why=why, todo="Ask again.")


def _agent() -> NamedAgent:
    if _InForce.agent is None:
        raise RuntimeError("no agent is named")
    return _InForce.agent


def _is_answered(arguments: list[str]) -> bool:
    words = [word for word in arguments[:2] if not word.startswith("-")]
    return " ".join(words) in ANSWERED or (
        bool(words) and words[0] in ANSWERED and words[0] not in ("proposals", "reassign", "config")
    )


def _checked(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_one = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_one or parts.query or parts.fragment:
        raise BadInput(f"{OPTION} {url} is no URL of an agent", todo=f"Write it as {OPTION} http://HOST:9464 COMMAND.")
    if parts.username is not None or parts.password is not None:
        raise BadInput(
            f"{OPTION} has a user or password in its URL",
            why="a command line is not secret",
            todo=f"Give the token by {TOKEN_VARIABLE} or {TOKEN_OPTION} FILE.",
        )
    return url.rstrip("/")


def _token(file: str | None, environ: Mapping[str, str]) -> str | None:
    text = environ.get(TOKEN_VARIABLE, "")
    if file is not None:
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            todo = f"Name a file with the token in {TOKEN_OPTION}."
            raise BadInput(f"{file} cannot be read", why=reason(error), todo=todo) from error
    token = text.strip()
    if not token:
        return None
    remember_secrets((token,))
    if not token.isascii() or not token.isprintable() or " " in token:
        raise BadInput("The token is not one line of printable characters", todo="Copy it again.")
    return token


def _get(agent: NamedAgent, route: str, query: Query) -> _Received:
    """The document of one request; one that comes too soon after others is sent again a little later."""
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.parse import urlencode

    url = f"{agent.url}/api/v1{route}" + (f"?{urlencode(query, doseq=True)}" if query else "")
    headers = {"accept": "application/json", "user-agent": "rackwise"}
    if agent.token is not None:
        headers["authorization"] = f"Bearer {agent.token}"
    try:
        return _sent(agent, url, headers, _PACED_TRIES)
    except HTTPError as error:
        raise _refusal(agent, error) from error
    except (URLError, HTTPException, OSError) as error:
        why = reason(error.reason) if isinstance(error, URLError) and isinstance(error.reason, OSError) else str(error)
        raise AgentUnreachable(
            f"The agent at {agent.url} did not answer",
            why=why or type(error).__name__,
            todo="Check the URL, and that the agent runs with http.enabled; or ask the cluster: leave --agent out.",
        ) from error


def _sent(agent: NamedAgent, url: str, headers: dict[str, str], tries: int) -> _Received:
    from urllib.error import HTTPError
    from urllib.request import Request

    try:
        with _opener().open(Request(url, headers=headers), timeout=_TIMEOUT_S) as response:  # noqa: S310 checked
            mark = _mark(response.headers.get("rackwise-cycle", ""), response.headers.get("rackwise-look", ""))
            return _Received(_read(agent, response), mark, response.status != _BEING_MADE)
    except HTTPError as error:
        if error.code != _TOO_MANY or tries == 1:
            raise
    time.sleep(1)
    return _sent(agent, url, headers, tries - 1)


def _mark(cycle: str, look: str) -> str:
    """What tells a look from every other, also from one of the agent's process before."""
    return f"{cycle} {look.encode('ascii', 'backslashreplace').decode('ascii')}".strip()


def _opener() -> Any:
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class NoRedirects(HTTPRedirectHandler):
        """A redirect is an answer like any other error."""

        def redirect_request(self, *_: object) -> None:
            """None: it is not followed."""

    return build_opener(NoRedirects(), ProxyHandler({}))  # a proxy of the environment would get the token


def _read(agent: NamedAgent, response: Any) -> Any:
    body = response.read(_MOST_BYTES + 1)
    what, todo = f"The answer of {agent.url} is no document", "Check that the URL is that of an agent."
    if len(body) > _MOST_BYTES:
        raise GaveUp(what, why=f"it is longer than {_MOST_BYTES} bytes", todo=todo)
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise GaveUp(what, why=reason(error), todo=todo) from error


def _refusal(agent: NamedAgent, error: Any) -> Exception:
    """The error of this command for a problem of the API."""
    status, problem = error.code, _problem(error)
    detail, todo = str(problem.get("detail") or f"HTTP status {status}"), str(problem.get("todo") or "")
    if status in (429, 502, 503, 504):
        return AgentUnreachable(f"The agent at {agent.url} cannot answer now", why=detail, todo=todo)
    if status in (401, 403):
        todo = todo or f"Give a token that may view: {TOKEN_VARIABLE} or {TOKEN_OPTION} FILE."
        return BadInput(f"The agent at {agent.url} refuses", why=detail, todo=todo)
    if status in (404, 422) and problem:
        what, _, why = detail.partition(": ")
        return BadInput(what, why=why, todo=todo)
    todo = todo or "Check that the URL is that of an agent."
    return GaveUp(f"The agent at {agent.url} does not answer this", why=detail, todo=todo)


def _problem(error: Any) -> Mapping[str, Any]:
    """The problem document of an error; empty where it has none."""
    try:
        found = json.loads(error.read(65_536))
    except (ValueError, OSError, RecursionError):
        return {}
    return found if isinstance(found, dict) and "application/problem+json" in str(error.headers) else {}


def note_options(*ignored: object) -> None:
    """Say that options which lead to a cluster have no effect beside an agent."""
    if any(ignored):
        say(f"note: {_agent().url} answers by its own settings: --config, --properties, --set and -b are not read")
