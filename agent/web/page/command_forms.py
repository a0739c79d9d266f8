"""Commands that the page's forms send: approve exactly what was shown, cancel, roll back, pause and resume."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import RedirectResponse, Response

from agent.journal.approvals import plan_hash
from agent.journal.commands import CommandVerb
from agent.web.access.person import person_of
from agent.web.access.request_checks import AccessRefused, local_path
from agent.web.commands import ROLES, STALE, WantedCommand, wanted_from
from agent.web.page.environment import address, proposal_link
from agent.web.page.page_request import PageRequest, PageView
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


VIEWS = (PageView(COMMANDS, command_view, methods=("POST",)),)
