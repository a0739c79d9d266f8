"""Routes of the page: every view behind one guard, its files, its problems as pages, and commands from its forms.

A form sends: approve exactly what was shown, cancel, roll back, pause and resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl

import structlog
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from agent.journal.approvals import plan_hash
from agent.journal.commands import CommandVerb
from agent.values.clock import Clock
from agent.values.number_format import counted
from agent.web.access.person import person_of
from agent.web.access.request_checks import AccessRefused, local_path
from agent.web.agent_view import AgentView
from agent.web.commands import ROLES, STALE, CommandDesk, WantedCommand, wanted_from
from agent.web.page import (
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
from agent.web.page.environment import PREFIX, address, proposal_link, static_answer
from agent.web.page.look_documents import Preparation, ShownLooks, shown_looks
from agent.web.page.page_documents import shared_checks, shared_findings, shared_groups, shared_money, shared_racks
from agent.web.page.page_request import PageRequest, PageView, WrongQuery, stale_after_ms, theme_answer
from agent.web.page.proposal import ShownProposal, found_proposal, proposal_page

COMMANDS = "/commands"
_FIELDS = ("plan_hash", "reason", "throttle", "max_moves", "attempt")


def command_view(asked: PageRequest) -> Response:
    """Sends the command of a form, and leads to what came of it; a refusal is a page that says why."""
    verb = next((one for one in ROLES if one.value == asked.form.get("verb")), None)
    if verb is None:
        return asked.problem(422, "No such command", "The form names no command.", "Load the page again.")
    about = asked.form.get("about") or None
    if verb is CommandVerb.APPROVE and (changed := _changed(asked, about or "")) is not None:
        return changed
    try:
        wanted = wanted_from(verb, about, {name: asked.form[name] for name in _FIELDS if name in asked.form})
        return _sent(asked, wanted)
    except AccessRefused as refused:
        return _refused(asked, refused, about or "", verb)


def _changed(asked: PageRequest, proposal_id: str) -> Response | None:
    """The page of what changed, where another plan is proposed than the one that was seen; None where it is the same.

    An id that this agent does not know is left to the leading agent.
    """
    found = found_proposal(asked, proposal_id)
    if found is None:
        return None
    if found.ended is None and plan_hash(found.proposal) == asked.form.get("plan_hash"):
        return None
    return _stale(asked, found, "The plan that you saw is not the one that is proposed now, so nothing was approved.")


def _stale(asked: PageRequest, found: ShownProposal, refused: str) -> Response:
    return proposal_page(asked, found, status=HTTPStatus.CONFLICT, refused=refused)


def _sent(asked: PageRequest, wanted: WantedCommand) -> Response:
    if asked.desk is None:
        raise AccessRefused(HTTPStatus.CONFLICT, "This server takes no commands", todo="Use the command line.")
    answer = asked.desk.ask(person_of(asked.request), wanted)
    back = _back(asked, wanted)
    query = address("", told=answer["command"])
    return RedirectResponse(
        f"{back}{'&' if '?' in back else '?'}{str(query).removeprefix('?')}", HTTPStatus.SEE_OTHER, _HEADERS
    )


_HEADERS = {"cache-control": "no-store"}


def _back(asked: PageRequest, wanted: WantedCommand) -> str:
    """Where the form was; its address without an earlier answer."""
    if "back" in asked.form:
        path, _, rest = local_path(asked.form["back"]).partition("?")
        kept = "&".join(one for one in rest.split("&") if one and not one.startswith("told="))
        return f"{path}?{kept}" if kept else path
    return str(proposal_link(wanted.proposal_id)) if wanted.proposal_id else "/moves"


def _refused(asked: PageRequest, refused: AccessRefused, proposal_id: str, verb: CommandVerb) -> Response:
    """Why it was not carried out: on the proposal's own page where there is one."""
    sentence = f"{refused.what}{': ' + refused.why if refused.why else ''}"
    found = found_proposal(asked, proposal_id) if verb in (CommandVerb.APPROVE, CommandVerb.CANCEL) else None
    if found is not None and asked.documents is not None and refused.status_code == HTTPStatus.CONFLICT:
        words = "Another plan is proposed under this id by now. " if refused.kind == STALE else ""
        return _stale(asked, found, " ".join(filter(None, (f"{words}{sentence}.", refused.todo))))
    return asked.problem(refused.status_code, "Not carried out", f"{sentence}.", refused.todo)


VIEWS: tuple[PageView, ...] = (
    *overview.VIEWS,
    *rack_map.VIEWS,
    *groups.VIEWS,
    *group_page.VIEWS,
    *warmups.VIEWS,
    *proposals.VIEWS,
    *proposal.VIEWS,
    *moves.VIEWS,
    *timeline.VIEWS,
    *whatif.VIEWS,
    *reports.VIEWS,
    PageView(COMMANDS, command_view, methods=("POST",)),
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
