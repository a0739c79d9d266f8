"""Routes that act: approve, cancel, roll back, pause and resume, each with the leading agent's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from agent.documents.proposals import CommandAnswer
from agent.journal.commands import MAX_TEXT, CommandVerb
from agent.web.access.person import AccessRole, SignedInPerson, require
from agent.web.api.problems import ProblemDocument
from agent.web.api.segments import name_of
from agent.web.commands import ROLES, CommandDesk, wanted_from

Approver = Annotated[SignedInPerson, Depends(require(AccessRole.APPROVE))]
Operator = Annotated[SignedInPerson, Depends(require(AccessRole.OPERATE))]
_ABOUT_ONE = (CommandVerb.APPROVE, CommandVerb.CANCEL, CommandVerb.ROLLBACK, CommandVerb.PAUSE, CommandVerb.RESUME)
_SENTENCES = {
    CommandVerb.APPROVE: "Approve exactly the plan whose hash is given.",
    CommandVerb.CANCEL: "Start no further batch, and revert moving partitions; before it has begun: void its approval.",
    CommandVerb.ROLLBACK: "Restore the replicas from before the plan.",
    CommandVerb.PAUSE: "Start no new batch until resumed.",
    CommandVerb.RESUME: "End a pause.",
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemDocument, "description": text}
    for status, text in (
        (401, "Not signed in."),
        (403, "The role is missing."),
        (404, "There is no such proposal."),
        (409, "Refused: the plan has changed since it was seen, the guard holds it, or the agent is in dry run."),
        (503, "The command could not be sent."),
        (504, "No agent answered in time; the command may still be carried out."),
    )
}


class CommandBody(BaseModel):
    """What goes with a command; an approval has the hash."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, strict=True)

    plan_hash: Annotated[str | None, Field(max_length=64, description="Hash of the plan that was seen.")] = None
    reason: Annotated[str | None, Field(max_length=MAX_TEXT, description="Reason, kept in the journal.")] = None
    throttle: Annotated[
        str | int | None, Field(description="Replication rate per broker, such as 50MB/s; default: the setting.")
    ] = None
    max_moves: Annotated[
        int | None, Field(ge=1, le=2**63 - 1, description="Move at most so many partitions at a time.")
    ] = None
    attempt: Annotated[int | None, Field(ge=1, le=2**63 - 1, description="The attempt that was seen.")] = None


def command_routes(desk: CommandDesk) -> APIRouter:
    """The routes of commands; those without a proposal are about everything."""
    router = APIRouter(tags=["commands"], responses=_RESPONSES)
    for verb in _ABOUT_ONE:
        _add(router, f"/proposals/{{proposal}}/{verb.value}", verb, _about_one(desk, verb), f"{verb.value}_proposal")
    for verb in (CommandVerb.PAUSE, CommandVerb.RESUME):
        _add(router, f"/{verb.value}", verb, _about_all(desk, verb), verb.value)
    return router


def _add(router: APIRouter, path: str, verb: CommandVerb, route: Callable[..., CommandAnswer], name: str) -> None:
    router.add_api_route(
        path, route, methods=["POST"], response_model=CommandAnswer, name=name, description=_SENTENCES[verb]
    )


def _about_one(desk: CommandDesk, verb: CommandVerb) -> Callable[..., CommandAnswer]:
    def by_approver(person: Approver, proposal: str, body: CommandBody | None = None) -> CommandAnswer:
        return desk.ask(person, wanted_from(verb, name_of(proposal), _given(body)))

    def by_operator(person: Operator, proposal: str, body: CommandBody | None = None) -> CommandAnswer:
        return desk.ask(person, wanted_from(verb, name_of(proposal), _given(body)))

    return by_operator if ROLES[verb] is AccessRole.OPERATE else by_approver


def _about_all(desk: CommandDesk, verb: CommandVerb) -> Callable[..., CommandAnswer]:
    def by_operator(person: Operator, body: CommandBody | None = None) -> CommandAnswer:
        return desk.ask(person, wanted_from(verb, None, _given(body)))

    return by_operator


def _given(body: CommandBody | None) -> dict[str, object]:
    return {} if body is None else body.model_dump()
