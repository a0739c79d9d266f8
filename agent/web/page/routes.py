"""Routes of the page: every view behind one guard, its files, and its problems as pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import parse_qsl

import structlog
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agent.values.clock import Clock
from agent.values.number_format import counted
from agent.web.access.request_checks import AccessRefused
from agent.web.agent_view import AgentView
from agent.web.commands import CommandDesk
from agent.web.page import (
    command_forms,
    findings,
    group_page,
    groups,
    moves,
    overview,
    proposal,
    proposals,
    rack_map,
    reports,
    timeline,
    warmups,
    whatif,
)
from agent.web.page.environment import PREFIX, static_answer
from agent.web.page.look_documents import Preparation, ShownLooks, shown_looks
from agent.web.page.page_documents import shared_checks, shared_findings, shared_groups, shared_money, shared_racks
from agent.web.page.page_request import PageRequest, PageView, WrongQuery, stale_after_ms, theme_answer

VIEWS: tuple[PageView, ...] = (
    *overview.VIEWS,
    *rack_map.VIEWS,
    *groups.VIEWS,
    *group_page.VIEWS,
    *warmups.VIEWS,
    *findings.VIEWS,
    *proposals.VIEWS,
    *proposal.VIEWS,
    *moves.VIEWS,
    *timeline.VIEWS,
    *whatif.VIEWS,
    *reports.VIEWS,
    *command_forms.VIEWS,
)
"""Every view, each from the module of its name."""


PREPARATIONS: tuple[Preparation, ...] = (
    shared_findings,
    shared_groups,
    shared_racks,
    shared_checks,
    shared_money,
    overview.shared_steps,
    warmups.shared_warmups,
    groups.shared_ledger,
)
"""What views need, made before a new look is shown."""


def page_routes(
    agent: AgentView, clock: Clock, views: Sequence[PageView] = VIEWS, desk: CommandDesk | None = None
) -> list[BaseRoute]:
    """The routes of all views, of the files that they use, and of the switch between light and dark.

    ``desk`` takes the commands of forms; without one none is sent.
    """
    looks = shown_looks(agent, PREPARATIONS, stale_after_ms(agent))
    routes: list[BaseRoute] = [
        Route(view.path, partial(_answer, view, PageAgent(agent, looks, clock, desk)), methods=list(view.methods))
        for view in views
    ]
    routes.append(Route(f"{PREFIX}/{{digest}}/{{name:path}}", static_answer, methods=["GET"]))
    routes.append(Route("/theme", theme_answer, methods=["GET"]))
    return routes


class PageAgent(NamedTuple):
    """What every view has of its agent."""

    agent: AgentView
    looks: ShownLooks
    clock: Clock
    desk: CommandDesk | None


async def _answer(view: PageView, of: PageAgent, request: Request) -> Response:
    """The view's answer, made in a thread: the server's own thread waits for no look."""
    form = {} if request.method != "POST" else await _fields(request)
    return await run_in_threadpool(_made, view, of, request, form)


def _made(view: PageView, of: PageAgent, request: Request, form: dict[str, str]) -> Response:
    documents, afterwards = of.looks.now()
    asked = PageRequest(request, of.agent, of.clock, documents, form, of.desk, view)
    if documents is None and view.needs_look:
        answer = _no_look(asked)
    elif documents is not None and view.is_of_all and not documents.are_made and "format" not in asked.query:
        answer = _not_made(asked)
    else:
        answer = _answered(view, asked)
    if afterwards is not None:
        answer.background = BackgroundTask(afterwards)
    return answer


def _answered(view: PageView, asked: PageRequest) -> Response:
    """The view's own answer; one that fails is a page that says so, and the others go on."""
    try:
        return view.answer(asked)
    except WrongQuery as wrong:
        return asked.wrong_query(wrong.fault)
    except (AccessRefused, HTTPException):
        raise
    except Exception as error:  # noqa: BLE001 a page is no reason to end anything
        structlog.get_logger("rackwise").error(
            "page_failed", path=view.path, sentence=f"the page {view.path} failed: {error!r}", exc_info=True
        )
        what = "This view could not be made. The agent goes on, and so do the other views."
        return asked.problem(500, "Failed", what, "The agent's log has the error (page_failed): please report it.")


def _not_made(asked: PageRequest) -> Response:
    """For a moment, where no page was asked for lately and there are very many groups."""
    groups = counted(len(asked.look.snapshot.groups), "group")
    return asked.preparing(f"The figures of {groups} are being made.")


def _no_look(asked: PageRequest) -> Response:
    return asked.problem(
        200,
        "No look yet",
        "The agent has not finished its first look at the cluster.",
        "This page shows it as soon as it is there; the agent's log says what it waits for.",
    )


_MOST_FIELDS = 1_000


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a form: as the gate read them; by itself where there is none. None where they are too many."""
    known: dict[str, str] | None = getattr(request.state, "fields", None)
    if known is not None:
        return known
    try:
        body = (await request.body()).decode(errors="replace")
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return {}
