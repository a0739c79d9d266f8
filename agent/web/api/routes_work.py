"""Routes of what is proposed and done: proposals, verdicts, rules, moves, journal, settings, agents, reports."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi import Query as Parameter

from agent.documents.config import SettingRow, setting_rows
from agent.documents.explanation import explained_rows, needs_journal
from agent.documents.journal import history_rows, reassign_status
from agent.documents.plan import ExplainedRow
from agent.documents.proposal import history_of, proposal_details, proposal_rows, verdict_rows
from agent.documents.proposals import HistoryRow, ProposalDetailsDocument, ReassignStatus, VerdictRow
from agent.plan.new_partitions import gap_for, nearest_subject, perhaps_unread, subjects, why_unknown
from agent.propose.codec import ProposalDocument
from agent.simulate.evaluation import StageEvaluation
from agent.values.journal import JournalState
from agent.values.progress import AgentsDocument
from agent.values.proposal import Proposal
from agent.web.agent_view import FinishedLook
from agent.web.api import rows
from agent.web.api.answers import ApiAnswers, encoded
from agent.web.api.paging import ListQuery, list_query
from agent.web.api.problems import NO_LOOK, NOT_FOUND, ApiProblem, of_error
from agent.web.api.reports import ReportFile, report_bytes, report_files
from agent.web.api.segments import name_of
from config.load import effective

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

    @router.get("/proposals", response_model=rows.PageDocument[ProposalDocument], responses=NO_LOOK, tags=["proposals"])
    def proposals(request: Request, query: Query) -> Response:
        """What the agent proposes since its last planning."""
        return answers.page(request, rows.PROPOSALS, query, "proposals", lambda of: proposal_rows(of.look.evaluation))

    @router.get(
        "/proposals/{proposal}",
        response_model=ProposalDetailsDocument,
        responses={**NO_LOOK, **NOT_FOUND},
        tags=["proposals"],
    )
    def proposal(request: Request, proposal: str) -> Response:
        """One proposal: its changed rows before and after, the guard's verdict, every rule, and its history."""
        found, look = known(request, proposal)
        verdict = look.verdicts.get(found.id)
        document = proposal_details(found, look.evaluation, verdict, _view(answers), answers.now_ms)
        return answers.send(request, encoded(document))

    @router.get("/proposals/{proposal}/history", response_model=rows.PageDocument[HistoryRow], tags=["proposals"])
    def proposal_history(request: Request, query: Query, proposal: str) -> Response:
        """What the journal says of every attempt at a proposal, also of one that is not proposed now."""
        return answers.send_page(request, rows.HISTORY, query, history_of(name_of(proposal), _known_journal(answers)))

    @router.get("/verdicts", response_model=rows.PageDocument[VerdictRow], responses=NO_LOOK, tags=["proposals"])
    def verdicts(request: Request, query: Query) -> Response:
        """What the guard said of each proposal at the last planning."""
        return answers.send_page(request, rows.VERDICTS, query, verdict_rows(answers.documents(request).look.verdicts))


def _add_rules(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get(
        "/explain",
        response_model=rows.PageDocument[ExplainedRow],
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
        return answers.send_page(request, rows.RULES, query, explained_rows(subject, look.evaluation, view, _UNREAD))


def _check_subject(subject: str, seen: StageEvaluation) -> None:
    """Raises the problem of a subject that is not in the look."""
    known = subjects(seen.snapshot, (one.id for one in seen.proposals))
    why = why_unknown(subject, seen.snapshot, known)
    if why is None:
        return
    near = nearest_subject(subject, known)
    todo = f"Did you mean {near}?" if near else "A subject is topic/NAME, group/NAME, broker/ID or a proposal's id."
    if (gap := gap_for(subject.partition("/")[0], seen.snapshot)) is not None:
        raise of_error(perhaps_unread(subject, gap, todo))
    raise ApiProblem(404, f"{subject} is unknown: {why}", todo=todo)


def _add_journal(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/reassignments", response_model=ReassignStatus, responses=NO_LOOK, tags=["journal"])
    def reassignments(request: Request) -> Response:
        """Plans of the journal, throttles, and every reassignment that the brokers report, with its copies."""
        answers.documents(request)
        view = answers.view
        return answers.send(request, encoded(reassign_status(view.journal(), view.moves(), view.copies())))

    @router.get("/journal/history", response_model=rows.PageDocument[HistoryRow], responses=NO_LOOK, tags=["journal"])
    def history(request: Request, query: Query) -> Response:
        """Approvals, commands with their answers, plans and triggered rebalances, the latest last."""
        return answers.send_page(request, rows.HISTORY, query, history_rows(_known_journal(answers)))


def _add_agent(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/settings", response_model=rows.PageDocument[SettingRow], tags=["agent"])
    def settings(request: Request, query: Query) -> Response:
        """Every setting in force with its origin; secrets are shown as stars."""
        return answers.send_page(request, rows.SETTINGS, query, setting_rows(effective(answers.view.settings)))

    @router.get("/agents", response_model=AgentsDocument, responses=NO_LOOK, tags=["agent"])
    def agents(request: Request) -> Response:
        """This agent, and the agents that report in the telemetry topic, read at most every 30 seconds."""
        answers.documents(request)
        return answers.send(request, encoded(answers.view.agents()))


def _add_reports(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/reports", response_model=rows.PageDocument[ReportFile], tags=["reports"])
    def reports(request: Request, query: Query) -> Response:
        """The files of the folder of reports (``http.reports``), by name; none where the setting names no folder."""
        return answers.send_page(request, rows.REPORTS, query, report_files(answers.view.settings))

    @router.get("/reports/{name}", response_class=Response, responses=NOT_FOUND, tags=["reports"])
    def report(name: str) -> Response:
        """One file of a report, to be saved: a browser shows none of it in this site's name."""
        return report_bytes(answers.view.settings, name_of(name))
