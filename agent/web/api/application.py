"""The application below ``/api/v1``: its routes, the dependency that every one of them has, and its errors."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Depends, FastAPI, Request

from agent.values.clock import Clock
from agent.web.agent_view import AgentView
from agent.web.api.answers import ApiAnswers
from agent.web.api.described import describe
from agent.web.api.events import EventStream, event_routes
from agent.web.api.problems import EVERYWHERE, answer_problems
from agent.web.api.routes_commands import command_routes
from agent.web.api.routes_look import look_routes
from agent.web.api.routes_work import work_routes
from agent.web.commands import CommandDesk

PREFIX = "/api/v1"


def anybody(request: Request) -> None:
    """Lets every request in; the place of the check of who may view."""
    del request


def make_api(
    view: AgentView, clock: Clock, desk: CommandDesk | None = None, *, may_view: Callable[[Request], object] = anybody
) -> FastAPI:
    """The API of one running agent, to be mounted at `PREFIX`. ``may_view`` raises where a request may not read.

    ``desk`` takes commands; without one none is sent.
    """
    api = FastAPI(
        title="rackwise",
        summary="What a running agent sees, finds and proposes.",
        version="v1",
        servers=[{"url": PREFIX}],
        root_path_in_servers=False,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(may_view)],
        responses=EVERYWHERE,
        separate_input_output_schemas=False,
    )
    answers = ApiAnswers(view, clock)
    answer_problems(api)
    stream = EventStream(view, answers.looks)
    reading = (look_routes(answers), work_routes(answers), event_routes(stream))
    for router in (*reading, command_routes(desk or CommandDesk())):
        api.include_router(router)
    describe(api)
    return api
