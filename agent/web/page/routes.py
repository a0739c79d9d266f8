"""Routes of the page: every view behind one guard, its files, and its problems as pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agent.values.clock import Clock
from agent.web.agent_view import AgentView
from agent.web.page import findings, overview
from agent.web.page.assets import PREFIX, static_answer
from agent.web.page.operating_views import OPERATING_VIEWS
from agent.web.page.page_request import PageRequest, PageView, theme_answer

VIEWS: tuple[PageView, ...] = (*overview.VIEWS, *findings.VIEWS, *OPERATING_VIEWS)
"""Every view, each from the module of its name."""


def page_routes(agent: AgentView, clock: Clock, views: Sequence[PageView] = VIEWS) -> list[BaseRoute]:
    """The routes of all views, of the files that they use, and of the switch between light and dark."""
    routes: list[BaseRoute] = [
        Route(view.path, partial(_answer, view, agent, clock), methods=list(view.methods)) for view in views
    ]
    routes.append(Route(f"{PREFIX}/{{digest}}/{{name:path}}", static_answer, methods=["GET"]))
    routes.append(Route("/theme", theme_answer, methods=["GET"]))
    return routes


async def _answer(view: PageView, agent: AgentView, clock: Clock, request: Request) -> Response:
    """The view's answer, made in a thread: the server's own thread waits for no look."""
    form = {} if request.method != "POST" else _fields(await request.body())
    return await run_in_threadpool(_made, view, PageRequest(request, agent, clock, agent.look(), form))


def _made(view: PageView, asked: PageRequest) -> Response:
    if asked.finished is None and view.needs_look:
        return asked.problem(
            200,
            "No look yet",
            "The agent has not finished its first look at the cluster.",
            "This page shows it as soon as it is there; the agent's log says what it waits for.",
        )
    return view.answer(asked)


_MOST_FIELDS = 1_000


def _fields(body: bytes) -> dict[str, str]:
    """The fields of a form; none where they are too many."""
    try:
        return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return {}
