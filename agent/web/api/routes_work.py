"""Routes of proposals, verdicts, moves, journal, settings, agents and reports, and of the commands that act."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response
from fastapi import Query as Parameter
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from agent.documents.config import SettingRow, setting_rows
from agent.documents.explanation import (
    explained_rows,
    needs_journal,
    proposal_details,
    proposal_rows,
    verdict_rows,
)
from agent.documents.journal import history_of_proposal, history_rows, reassign_status
from agent.documents.plan import ExplainedRow
from agent.documents.proposals import CommandAnswer, HistoryRow, ProposalDetailsDocument, ReassignStatus, VerdictRow
from agent.journal.commands import MAX_TEXT, CommandVerb
from agent.journal.entries import JournalState
from agent.plan.new_partitions import gap_for, nearest_subject, perhaps_unread, subjects, why_unknown
from agent.propose.codec import ProposalDocument
from agent.simulate.evaluation import StageEvaluation
from agent.values.plan import AgentsDocument
from agent.values.proposal import Proposal
from agent.web.access.person import AccessRole, SignedInPerson, require
from agent.web.agent_view import FinishedLook
from agent.web.api.answers import (
    HISTORY,
    PROPOSALS,
    REPORTS,
    RULES,
    SETTINGS,
    VERDICTS,
    ApiAnswers,
    ListQuery,
    PageDocument,
    encoded,
    list_query,
)
from agent.web.api.problems import (
    HEADERS,
    NO_LOOK,
    NOT_FOUND,
    ApiProblem,
    ProblemDocument,
    name_of,
    of_error,
    only_known_parameters,
)
from agent.web.commands import ROLES, CommandDesk, wanted_from
from config.load import LoadedSettings, effective

MOST_BYTES = 32 * 1024 * 1024
_MOST_FILES = 10_000
_TYPES = {".md": "text/markdown; charset=utf-8", ".html": "text/html; charset=utf-8", ".csv": "text/csv; charset=utf-8"}


class ReportFile(TypedDict):
    """One file of a report."""

    name: str
    bytes: int
    modified_ms: int
    """Epoch milliseconds."""


def report_files(settings: LoadedSettings) -> list[ReportFile]:
    """The reports of the folder by name; empty without a folder. Raises the problem of one that cannot be read."""
    folder = settings.settings.http.reports
    if folder is None:
        return []
    try:
        with os.scandir(folder) as entries:
            found = [_row(one) for one, _ in zip(entries, range(_MOST_FILES), strict=False) if _is_report(one)]
    except OSError as error:
        raise ApiProblem(
            503, f"the folder of reports cannot be read: {error.strerror}", todo="Correct http.reports."
        ) from None
    return sorted(found, key=lambda row: row["name"])


def report_bytes(settings: LoadedSettings, name: str) -> Response:
    """One report as an attachment. Raises the problem of a name that is not in the folder."""
    known = {row["name"]: row for row in report_files(settings)}
    folder = settings.settings.http.reports
    if folder is None or name not in known:
        raise ApiProblem(404, "there is no such report", todo="List the reports: GET /api/v1/reports")
    if known[name]["bytes"] > MOST_BYTES:
        raise ApiProblem(413, f"the report is larger than {MOST_BYTES} bytes", todo="Read it on the agent's host.")
    headers = {
        **HEADERS,
        "content-type": _TYPES[Path(name).suffix],
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    }
    try:
        descriptor = os.open(Path(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return Response(file.read(MOST_BYTES), headers=headers)
    except OSError as error:
        raise ApiProblem(404, f"the report cannot be read: {error.strerror}") from None


def _is_report(entry: os.DirEntry[str]) -> bool:
    """A plain file of a report's format; links lead out of the folder."""
    return Path(entry.name).suffix in _TYPES and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)


def _row(entry: os.DirEntry[str]) -> ReportFile:
    found = entry.stat(follow_symlinks=False)
    return {"name": entry.name, "bytes": found.st_size, "modified_ms": found.st_mtime_ns // 1_000_000}


Query = Annotated[ListQuery, Depends(list_query)]
_UNREAD = "the journal could not be read"


def work_routes(answers: ApiAnswers) -> APIRouter:
    """The routes of what the agent proposes, does and is set to."""
    router = APIRouter()
    _add_proposals(router, answers)
    _add_rules(router, answers)
    _add_journal(router, answers)
    _add_agent(router, answers)
    _add_reports(router, answers)
    return router


def _known_journal(answers: ApiAnswers) -> JournalState:
    """The journal, empty where there is none. Raises the problem of one that cannot be read: its rows are unknown."""
    records = answers.view.journal()
    if not records.known:
        raise ApiProblem(503, f"the journal cannot be read: {records.why}", retry_after_s=10)
    return records.view


def _view(answers: ApiAnswers) -> JournalState | None:
    """The journal; None where it could not be read."""
    records = answers.view.journal()
    return records.view if records.known and not records.why else None


def _add_proposals(router: APIRouter, answers: ApiAnswers) -> None:
    def known(request: Request, segment: str) -> tuple[Proposal, FinishedLook]:
        look, name = answers.documents(request).look, name_of(segment)
        for one in look.evaluation.proposals:
            if one.id == name:
                return one, look
        raise ApiProblem(
            404,
            f"there is no proposal {name}: the agent does not propose it now",
            todo="List the open proposals: GET /api/v1/proposals",
        )

    @router.get("/proposals", response_model=PageDocument[ProposalDocument], responses=NO_LOOK, tags=["proposals"])
    def proposals(request: Request, query: Query) -> Response:
        """What the agent proposes since its last planning."""
        return answers.page(request, PROPOSALS, query, "proposals", lambda of: proposal_rows(of.look.evaluation))

    @router.get(
        "/proposals/{proposal}",
        response_model=ProposalDetailsDocument,
        responses={**NO_LOOK, **NOT_FOUND},
        tags=["proposals"],
    )
    def proposal(request: Request, proposal: str) -> Response:
        """One proposal: its changed rows before and after, the guard's verdict, every rule, and its history."""
        found, look = known(request, proposal)
        verdict = answers.view.verdicts(look).get(found.id)
        document = proposal_details(found, look.evaluation, verdict, _view(answers), answers.now_ms)
        return answers.send(request, encoded(document))

    @router.get("/proposals/{proposal}/history", response_model=PageDocument[HistoryRow], tags=["proposals"])
    def proposal_history(request: Request, query: Query, proposal: str) -> Response:
        """What the journal says of every attempt at a proposal, also of one that is not proposed now."""
        rows = history_of_proposal(_known_journal(answers), name_of(proposal))
        return answers.send_page(request, HISTORY, query, rows)

    @router.get("/verdicts", response_model=PageDocument[VerdictRow], responses=NO_LOOK, tags=["proposals"])
    def verdicts(request: Request, query: Query) -> Response:
        """What the guard said of each proposal at the last planning."""
        look = answers.documents(request).look
        return answers.send_page(request, VERDICTS, query, verdict_rows(answers.view.verdicts(look)))


def _add_rules(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get(
        "/explain",
        response_model=PageDocument[ExplainedRow],
        responses={**NO_LOOK, **NOT_FOUND},
        tags=["proposals"],
    )
    def explain(
        request: Request,
        query: Query,
        subject: Annotated[str, Parameter(max_length=1_000, description="topic/NAME, group/NAME, broker/ID or an id.")],
    ) -> Response:
        """Why something is proposed or not: every rule and check with its numbers, as ``rackwise explain``."""
        look = answers.documents(request).look
        _check_subject(subject, look.evaluation)
        view = _view(answers) if needs_journal(subject, look.evaluation) else None
        return answers.send_page(request, RULES, query, explained_rows(subject, look.evaluation, view, _UNREAD))


def _check_subject(subject: str, evaluation: StageEvaluation) -> None:
    """Raises the problem of a subject that is not in the look."""
    known = subjects(evaluation.snapshot, (one.id for one in evaluation.proposals))
    why = why_unknown(subject, evaluation.snapshot, known)
    if why is None:
        return
    near = nearest_subject(subject, known)
    todo = f"Did you mean {near}?" if near else "A subject is topic/NAME, group/NAME, broker/ID or a proposal's id."
    if (gap := gap_for(subject.partition("/")[0], evaluation.snapshot)) is not None:
        raise of_error(perhaps_unread(subject, gap, todo))
    raise ApiProblem(404, f"{subject} is unknown: {why}", todo=todo)


def _add_journal(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/reassignments", response_model=ReassignStatus, responses=NO_LOOK, tags=["journal"])
    def reassignments(request: Request) -> Response:
        """Plans of the journal, throttles, and every reassignment that the brokers report, with its copies."""
        moves = answers.documents(request).look.moves
        return answers.send(request, encoded(reassign_status(answers.view.journal(), moves)))

    @router.get("/journal/history", response_model=PageDocument[HistoryRow], responses=NO_LOOK, tags=["journal"])
    def history(request: Request, query: Query) -> Response:
        """Approvals, commands with their answers, plans and triggered rebalances, the latest last."""
        return answers.send_page(request, HISTORY, query, history_rows(_known_journal(answers)))


def _add_agent(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/settings", response_model=PageDocument[SettingRow], tags=["agent"])
    def settings(request: Request, query: Query) -> Response:
        """Every setting in force with its origin; secrets are shown as stars."""
        return answers.send_page(request, SETTINGS, query, setting_rows(effective(answers.view.settings)))

    @router.get("/agents", response_model=AgentsDocument, responses=NO_LOOK, tags=["agent"])
    def agents(request: Request) -> Response:
        """This agent, and the agents that report in the telemetry topic, read at most every 30 seconds."""
        answers.documents(request)
        return answers.send(request, encoded(answers.view.agents()))


def _add_reports(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/reports", response_model=PageDocument[ReportFile], tags=["reports"])
    def reports(request: Request, query: Query) -> Response:
        """The files of the folder of reports (``http.reports``), by name; none where the setting names no folder."""
        return answers.send_page(request, REPORTS, query, report_files(answers.view.settings))

    @router.get("/reports/{name}", response_class=Response, responses=NOT_FOUND, tags=["reports"])
    def report(name: str) -> Response:
        """One file of a report, to be saved: a browser shows none of it in this site's name."""
        return report_bytes(answers.view.settings, name_of(name))


def _commander(role: AccessRole) -> Callable[[Request], SignedInPerson]:
    """A check of the person, then of the parameters: a person without the role hears of that first."""

    def check(request: Request) -> SignedInPerson:
        person = require(role)(request)
        only_known_parameters(request)
        return person

    return check


Approver = Annotated[SignedInPerson, Depends(_commander(AccessRole.APPROVE))]
Operator = Annotated[SignedInPerson, Depends(_commander(AccessRole.OPERATE))]
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
