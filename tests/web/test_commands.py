"""Commands over the API: through the directory of commands to a real leader, and its answer from the journal."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.act.lease import LeadershipPlan
from agent.errors import GaveUp, JournalUnavailable, NotAllowed
from agent.execute.commands.command_context import CommandWitness
from agent.journal.approvals import ApprovalState, approval_of, plan_hash
from agent.journal.commands import CommandVerb, answer_to, history, pause_in
from agent.journal.entries import JournalKey, JournalState
from agent.journal.record_trust import LeaderEntry, leader_write
from agent.values.limits import ApproveLimits, Limits
from agent.values.proposal import Proposal
from agent.web.access.person import AccessRole, SignedInPerson, SignInWay, up_to
from agent.web.access.request_checks import AccessRefused
from agent.web.commands import CommandDesk, WantedCommand, wanted_from
from agent.web.cycle_history import EndedProposal
from tests.cli.execute.file_agent import MOVE, FileAgent
from tests.journals import journal
from tests.web.access.site import Answer, Site, site
from tests.web.api.agents import view_of
from tests.web.desks import KEY, desk_of
from tests.web.test_metrics import CYCLE

SEEN = plan_hash(MOVE)
JSON = {"Content-Type": "application/json"}
APPROVE = f"/api/v1/proposals/{MOVE.id}/approve"
Serve = Callable[..., "Served"]


class Served:
    """A site whose commands a real leader answers."""

    def __init__(self, here: Site, agent: FileAgent) -> None:
        self.here, self.agent = here, agent

    def post(self, who: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        return self.here.ask("POST", path, {**self.here.bearer(who), **JSON}, "" if body is None else json.dumps(body))

    @property
    def journal(self) -> JournalState:
        return self.agent.journal.view()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.web.commands._POLL_S", 0.02)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for tests after which nothing is approved."""
    folder = tmp_path_factory.mktemp("standing")
    agent = FileAgent(folder / "journal", Limits(), witnesses=(KEY,))
    try:
        with site(folder, view=view_of(CYCLE), desk=desk_of(folder / "journal", agent.journal.view)) as here:
            yield Served(here, agent)
    finally:
        agent.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    running: list[Any] = []

    def begin(limits: Limits | None = None, **more: Any) -> Served:
        path = tmp_path / "journal"
        agent = FileAgent(path, limits or Limits(), witnesses=(KEY,))
        running.append(agent.close)
        made = site(tmp_path, view=view_of(CYCLE), desk=desk_of(path, agent.journal.view, **more))
        here = made.__enter__()
        running.append(lambda: made.__exit__(None, None, None))
        return Served(here, agent)

    yield begin
    for end in reversed(running):
        end()


def test_an_approval_is_the_signed_in_person_s_with_reason_and_hash(serve: Serve) -> None:
    served = serve()
    answer = served.post(
        "ann", APPROVE, {"plan_hash": SEEN, "reason": "quiet  now", "throttle": "5MB/s", "max_moves": 3}
    )
    assert answer.status == 200, answer
    document = json.loads(answer.text)
    assert document["done"] is True
    approval = approval_of(served.journal, MOVE.id)
    assert (approval.state, approval.by, approval.person) == (ApprovalState.APPROVED, "ann", "ann")
    assert (approval.plan_hash, approval.reason) == (SEEN, "quiet now")
    assert (approval.throttle_bytes_per_s, approval.max_moves) == (5_000_000, 3)
    command = answer_to(served.journal, document["command"]).command
    assert (command.who, command.person, command.witness, command.plan_hash) == ("ann", "ann", "rw-1", SEEN)


def test_two_person_approval_works_with_two_sign_ins(serve: Serve) -> None:
    served = serve(Limits(approve=ApproveLimits(second_person=True)))
    assert served.post("ann", APPROVE, {"plan_hash": SEEN}).status == 200
    assert approval_of(served.journal, MOVE.id).state is ApprovalState.REQUESTED
    again = served.post("ann", APPROVE, {"plan_hash": SEEN})
    assert (again.status, "another person must approve it" in again.text) == (409, True)
    assert served.post("opa", APPROVE, {"plan_hash": SEEN}).status == 200
    approval = approval_of(served.journal, MOVE.id)
    assert (approval.state, approval.requested_by, approval.by) == (ApprovalState.APPROVED, "ann", "opa")


NO_PROPOSAL = "/api/v1/proposals/p-000000000000/approve"


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "said"),
    [
        pytest.param(NO_PROPOSAL, f'{{"plan_hash": "{SEEN}"}}', JSON, 404, "There is no proposal p-0", id="none"),
        pytest.param(APPROVE, "{}", JSON, 422, f"GET /api/v1/proposals/{MOVE.id}", id="no hash"),
        pytest.param(f"{APPROVE}?dry=1", "{}", JSON, 422, "dry: this route has no such parameter", id="a parameter"),
        pytest.param(APPROVE, '{"plan_hash": "x"}', JSON, 422, "plan_hash is no hash of a plan", id="not its hash"),
        pytest.param(APPROVE, '{"plan_hsh": "x"}', JSON, 422, "plan_hsh is no field of a command", id="no field"),
        pytest.param(APPROVE, '{"max_moves": 0}', JSON, 422, "max_moves is at least 1", id="too few"),
        pytest.param(APPROVE, '{"throttle": []}', JSON, 422, "throttle cannot be read", id="no rate"),
        pytest.param(APPROVE, "[]", JSON, 422, "the body is no JSON object", id="a list"),
        pytest.param(APPROVE, '{"reason":"x"}', {}, 415, "only application/json", id="no type"),
        pytest.param(
            APPROVE, '{"reason":"x"}', {"Content-Type": "application/x-www-form-urlencoded"}, 415,
            "the header Content-Type is application/x-www-form-urlencoded", id="the type that curl gives by itself",
        ),
    ],
)  # fmt: skip
def test_a_command_that_cannot_be_read_is_answered_with_what_to_mend(  # noqa: PLR0917 (as the table has it)
    standing: Served, path: str, body: str, headers: dict[str, str], status: int, said: str
) -> None:
    answer = standing.here.ask("POST", path, {**standing.here.bearer("ann"), **headers}, body)
    assert (answer.status, said in answer.text) == (status, True), answer.text


def test_a_header_of_authorization_without_a_token_says_so(standing: Served) -> None:
    for value, said in (("Bearer", "has no token"), ("Basic eDp5", "of another kind than Bearer")):
        answer = standing.here.ask("GET", "/api/v1/look", {"Authorization": value})
        assert (answer.status, said in answer.text) == (401, True), answer.text


def test_a_plan_that_has_changed_since_it_was_seen_is_not_approved(serve: Serve) -> None:
    served = serve()
    answer = served.post("ann", APPROVE, {"plan_hash": "0" * 32})
    problem = json.loads(answer.text)
    assert (answer.status, answer.headers["content-type"]) == (409, "application/problem+json")
    assert (problem["type"], problem["status"]) == ("urn:rackwise:problem:stale-plan", 409)
    assert "has changed since it was shown" in problem["detail"]
    assert approval_of(served.journal, MOVE.id) is None


@pytest.mark.parametrize(
    ("now", "todo"),
    [
        ((MOVE,), f"Read what is proposed for {MOVE.subject} now: GET /api/v1/proposals/{MOVE.id}"),
        ((), "List the open proposals: GET /api/v1/proposals"),
    ],
)
def test_an_approval_of_a_proposal_that_is_over_names_the_one_that_replaced_it(
    serve: Serve, now: tuple[Proposal, ...], todo: str
) -> None:
    before = MOVE._replace(id="p-0000000000aa")
    ended = (EndedProposal(before, 1, "the replicas of orders-0 have changed"),)
    served = serve(ended=lambda: ended, proposals=lambda: now)
    answer = served.post("ann", f"/api/v1/proposals/{before.id}/approve", {"plan_hash": SEEN})
    problem = json.loads(answer.text)
    assert (answer.status, problem["type"]) == (409, "urn:rackwise:problem:stale-plan")
    assert problem["detail"] == "Proposal p-0000000000aa is over: the replicas of orders-0 have changed"
    assert problem["todo"] == todo


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/v1/proposals/p-000000000000/approve", {"plan_hash": SEEN}, 404),
        ("/api/v1/proposals/p-000000000000/cancel", {}, 404),
        ("/api/v1/proposals/p-000000000000/rollback", {}, 404),
        (f"/api/v1/proposals/{MOVE.id}/rollback", {}, 409),
        ("/api/v1/proposals/%3Cscript%3E/cancel", {}, 404),
        ("/api/v1/proposals/..%2f..%2fpause/cancel", {}, 404),
        (f"/api/v1/proposals/{'x' * 10_000}/cancel", {}, 404),
        (APPROVE, {}, 422),
        (APPROVE, None, 422),
        (APPROVE, {"plan_hash": "x"}, 422),
        (APPROVE, {"plan_hash": SEEN, "who": "bob"}, 422),
        (APPROVE, {"plan_hash": SEEN, "reason": "x" * 501}, 422),
        (APPROVE, {"plan_hash": SEEN, "reason": 7}, 422),
        (APPROVE, {"plan_hash": SEEN, "throttle": "fast"}, 422),
        (APPROVE, {"plan_hash": SEEN, "throttle": -1}, 422),
        (APPROVE, {"plan_hash": SEEN, "throttle": "1B/s"}, 409),
        (APPROVE, {"plan_hash": SEEN, "max_moves": 0}, 422),
        (APPROVE, {"plan_hash": SEEN, "max_moves": 2**63}, 422),
        (APPROVE, {"plan_hash": SEEN, "max_moves": True}, 422),
        (APPROVE, {"plan_hash": SEEN, "throttle": True}, 422),
        (APPROVE, {"plan_hash": SEEN, "attempt": True}, 422),
        (APPROVE, {"plan_hash": SEEN, "attempt": 7}, 409),
        (APPROVE, [], 422),
    ],
)
def test_what_cannot_be_carried_out_is_a_problem(standing: Served, path: str, body: Any, status: int) -> None:
    answer = standing.post("ann", path, body)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json"), answer
    assert json.loads(answer.text)["detail"]
    assert "<script" not in answer.text
    assert approval_of(standing.journal, MOVE.id) is None


def test_pause_and_resume_need_the_role_operate(serve: Serve) -> None:
    served = serve()
    for path in ("/api/v1/pause", "/api/v1/resume", f"/api/v1/proposals/{MOVE.id}/pause"):
        refused = served.post("ann", path, {"reason": "x"})
        assert (refused.status, "lacks the role operate" in refused.text) == (403, True)
    assert pause_in(served.journal) is None
    assert served.post("opa", "/api/v1/pause", {"reason": "sale"}).status == 200
    paused = pause_in(served.journal)
    assert (paused.who, paused.reason) == ("opa", "sale")
    assert served.post("opa", "/api/v1/resume").status == 200
    assert pause_in(served.journal) is None


@pytest.mark.parametrize("verb", ["approve", "cancel", "rollback", "pause", "resume"])
def test_a_viewer_and_a_stranger_command_nothing(standing: Served, verb: str) -> None:
    before = len(history(standing.journal))
    path = f"/api/v1/proposals/{MOVE.id}/{verb}"
    assert standing.post("vic", path, {"plan_hash": SEEN}).status == 403
    assert standing.here.ask("POST", path, JSON, json.dumps({"plan_hash": SEEN})).status == 401
    assert len(history(standing.journal)) == before


def test_a_leader_that_does_not_know_the_page_obeys_no_approval_of_it(serve: Serve) -> None:
    served = serve(key=JournalKey(b"the key of another process"))
    answer = served.post("ann", APPROVE, {"plan_hash": SEEN})
    assert (answer.status, "a page that is not known" in answer.text) == (409, True)
    assert approval_of(served.journal, MOVE.id) is None


def test_no_agent_that_answers_is_504_and_no_agent_that_leads_too(tmp_path: Path) -> None:
    led = journal(leader_write(LeaderEntry("rw-1", "host", 1, "c", 0)), at_ms=0)
    for view in (led, {}):
        desk = desk_of(tmp_path / "journal", lambda view=view: view, wait_s=0.05)
        with pytest.raises(AccessRefused) as error:
            desk.ask(ANN, WantedCommand(CommandVerb.APPROVE, MOVE.id, SEEN))
        assert (error.value.status_code, error.value.kind) == (504, "urn:rackwise:problem:no-answer")
        assert error.value.todo


ANN = SignedInPerson("ann", up_to(AccessRole.APPROVE), SignInWay.TOKEN)


@pytest.mark.parametrize("error", [JournalUnavailable("no journal"), NotAllowed("no right", todo="Grant it.")])
def test_what_cannot_be_sent_is_503_with_the_reason(tmp_path: Path, error: Exception) -> None:
    def broken() -> JournalState:
        raise error

    with pytest.raises(AccessRefused) as refused:
        desk_of(tmp_path / "j", broken).ask(ANN, WantedCommand(CommandVerb.APPROVE, MOVE.id, SEEN))
    assert (refused.value.status_code, refused.value.what) == (503, str(error.args[0]))


def test_an_agent_in_dry_run_sends_nothing_and_signs_nothing(tmp_path: Path) -> None:
    plan = LeadershipPlan(config={}, agent="rw-1", file=tmp_path / "journal")
    for desk in (CommandDesk(), CommandDesk(plan=plan), CommandDesk(witness=CommandWitness("rw-1", (KEY,)))):
        with pytest.raises(AccessRefused) as error:
            desk.ask(ANN, WantedCommand(CommandVerb.APPROVE, MOVE.id, SEEN))
        assert (error.value.status_code, error.value.kind) == (409, "urn:rackwise:problem:dry-run")
    assert list(tmp_path.iterdir()) == []


def test_a_person_who_is_not_signed_in_reaches_no_desk(tmp_path: Path) -> None:
    for person in (ANN._replace(via=SignInWay.NONE), ANN._replace(roles=frozenset())):
        with pytest.raises(AccessRefused):
            desk_of(tmp_path / "j", dict).ask(person, WantedCommand(CommandVerb.APPROVE, MOVE.id, SEEN))


def test_commands_that_wait_are_bounded(tmp_path: Path) -> None:
    entered, leave = threading.Semaphore(0), threading.Event()

    def slow() -> JournalState:
        entered.release()
        leave.wait(10)
        raise GaveUp("over")

    desk, found = desk_of(tmp_path / "j", slow), []

    def one() -> None:
        with pytest.raises(AccessRefused) as error:
            desk.ask(ANN, WantedCommand(CommandVerb.APPROVE, MOVE.id, SEEN))
        found.append(error.value.status_code)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
        assert entered.acquire(timeout=10)
    one()
    assert found == [503]
    leave.set()
    for thread in threads:
        thread.join(10)
    assert found == [503, 504, 504, 504, 504]


def test_a_form_s_fields_are_read_like_those_of_json() -> None:
    fields = {"csrf": "x", "next": "/", "plan_hash": SEEN, "reason": "a\r\nb\tc", "throttle": "", "max_moves": "7"}
    wanted = wanted_from(CommandVerb.APPROVE, MOVE.id, fields)
    assert wanted == WantedCommand(CommandVerb.APPROVE, MOVE.id, SEEN, "a b c", None, 7, None)
    for wrong in ({"max_moves": "1e3"}, {"max_moves": True}, {"attempt": "-1"}, {"reason": "\ud800"}, {"x": "1"}):
        with pytest.raises(AccessRefused) as error:
            wanted_from(CommandVerb.APPROVE, MOVE.id, wrong)
        assert error.value.status_code == 422
