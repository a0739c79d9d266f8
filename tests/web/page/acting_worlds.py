"""An agent in mode execute with a journal, a plan that moves, five hours of cycles, and proposals that ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.journal import plan_entries
from agent.journal.approvals import ApprovalState, ProposalApproval, plan_hash, written
from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand, answered
from agent.journal.entries import JournalState
from agent.journal.record_trust import LeaderEntry, leader_write
from agent.simulate.evaluation import StageEvaluation
from agent.values.clock import ClockReading
from agent.values.kafka import FOLLOWER_RATE, LEADER_RATE
from agent.values.observation import Observation
from agent.values.proposal import Proposal, ProposalKind
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    ThrottleDebt,
)
from agent.values.throttles import ThrottleResource
from agent.web.access.person import AccessRole, SignedInPerson, SignInWay, up_to
from agent.web.agent_view import AgentView, LoopState
from agent.web.commands import CommandDesk
from agent.web.cycle_history import CycleSummary, EndedProposal, HistoryEvent, HistoryKind
from agent.web.page.page_request import PageView
from agent.web.page.routes import VIEWS, page_routes
from assignors.problem import TopicPartition
from config.load import LoadedSettings
from config.settings import Settings
from tests.builders import Answers
from tests.journals import journal
from tests.web.page.answers import PageClient
from tests.web.page.worlds import NOW, clock, cycle_of, sick

NOW_MS = NOW.wall_ms
MINUTE = 60_000
MOVING = TopicPartition("clicks", 3)
MB = 1_000_000


ANN = SignedInPerson("ann", up_to(AccessRole.OPERATE), SignInWay.TOKEN)
VIEWER = SignedInPerson("vic", up_to(AccessRole.VIEW), SignInWay.TOKEN)


def target(partition: TopicPartition, before: tuple[int, ...], after: tuple[int, ...]) -> ReassignmentTarget:
    return ReassignmentTarget(partition, f"id-{partition.topic}", before, after, bytes=400 * MB)


TARGETS = (
    target(MOVING, (3, 6), (3, 5)),
    target(TopicPartition("orders", 0), (1, 2, 3), (1, 2, 6)),
    target(TopicPartition("orders", 1), (2, 3, 1), (2, 3, 4)),
)


def a_journal(look: StageEvaluation) -> JournalState:
    """A plan in progress, two that ended, an approval, throttles, and what was said."""
    plan = ReassignmentPlan(
        "p-111111111111", TARGETS, approved_by="ann@desk", reason="one rack is full", order=7,
    )  # fmt: skip
    batch = Batch(
        plan.proposal_id, 1, TARGETS[:2], BatchState.ACKED, rate_bytes_per_s=50 * MB,
        ends=(PartitionEnd(TARGETS[1].id, PartitionEndReason.DONE),),
    )  # fmt: skip
    done = ReassignmentPlan("p-222222222222", TARGETS[1:2], PlanState.DONE, approved_by="rule night", order=5)
    back = ReassignmentPlan(
        "p-333333333333.2", TARGETS[2:], PlanState.ROLLED_BACK, approved_by="bob@desk", order=6,
        sentence="rollback requested by ann@desk",
    )  # fmt: skip
    debts = [
        ThrottleDebt(ThrottleResource(broker=3), LEADER_RATE, 50 * MB, None, plan.proposal_id, 1),
        ThrottleDebt(ThrottleResource(broker=5), FOLLOWER_RATE, 50 * MB, None, plan.proposal_id, 1),
        ThrottleDebt(
            ThrottleResource(topic="clicks"), "follower.replication.throttled.replicas", ("3:5",), None,
            plan.proposal_id, 1,
        ),
    ]  # fmt: skip
    command = OperatorCommand("c1", CommandVerb.PAUSE, "bob@desk", NOW_MS - 50 * MINUTE, "p-111111111111")
    refusal = OperatorCommand("c2", CommandVerb.ROLLBACK, "<script>eve</script>", NOW_MS - 40 * MINUTE, "p-0")
    writes = [
        leader_write(LeaderEntry("rackwise-1", "host-1", 4711, "test-cluster", NOW_MS - 300 * MINUTE)),
        *(line for one in (done, back, plan, batch, *debts) for line in plan_entries.change_writes(one)),
        answered(command, LeaderAnswer(done=True, sentence="paused p-111111111111", at_ms=NOW_MS - 50 * MINUTE,
                                       plan="p-111111111111")),
        answered(refusal, LeaderAnswer(done=False, sentence="no plan p-0", at_ms=NOW_MS - 40 * MINUTE)),
    ]  # fmt: skip
    if (proposal := approvable(look)) is not None:
        writes.append(
            written(
                ProposalApproval(
                    proposal.id,
                    plan_hash(proposal),
                    ApprovalState.REQUESTED,
                    "bob@desk",
                    NOW_MS - MINUTE,
                    NOW_MS + 50 * MINUTE,
                )
            )
        )
    return journal(*writes, at_ms=NOW_MS - 20 * MINUTE)


def approvable(look: StageEvaluation) -> Proposal | None:
    """The first proposal that a person may approve."""
    return next((one for one in look.proposals if one.kind is not ProposalKind.ADVISE), None)


def five_hours(look: StageEvaluation) -> tuple[CycleSummary, ...]:
    """A row a minute, with a gap where looks failed, and an event of every kind."""
    rows = []
    for minute in range(300, -1, -1):
        at_ms = NOW_MS - minute * MINUTE
        if 140 < minute < 150:
            events = (HistoryEvent(at_ms, HistoryKind.LOOK_FAILED, "", "the cluster did not answer"),)
            rows.append(CycleSummary(at_ms, None, None, None, None, None, None, events))
            continue
        local = 40 + (300 - minute) // 8 - (18 if 90 < minute < 140 else 0)
        crossing = None if minute > 290 else (100 - local) * 60_000.0
        rows.append(
            CycleSummary(at_ms, 100, local, 6 if 90 < minute < 120 else 0, crossing, 5, 0, _events(minute, at_ms))
        )
    return tuple(rows)


def _events(minute: int, at_ms: int) -> tuple[HistoryEvent, ...]:
    kinds: Mapping[int, tuple[HistoryKind, str, str, str]] = {
        139: (HistoryKind.RACKS, "broker/4", "broker 4 of rack eu-1a is absent", ""),
        138: (HistoryKind.FINDING_BEGAN, "broker/4", "Broker 4 is absent", "critical"),
        131: (HistoryKind.REBALANCE, "group/billing", "group billing has rebalanced", ""),
        95: (HistoryKind.RACKS, "broker/4", "broker 4 is back in rack eu-1a", ""),
        94: (HistoryKind.FINDING_ENDED, "broker/4", "Broker 4 is absent", "critical"),
        70: (HistoryKind.PROPOSED, "topic/clicks", "p-111111111111: Move 3 partitions", ""),
        40: (HistoryKind.MOVE_BEGAN, "topic/clicks", "clicks-3 began to move", ""),
        25: (HistoryKind.MOVE_ENDED, "topic/orders", "orders-0 moves no more", ""),
        10: (HistoryKind.PROPOSAL_ENDED, "topic/clicks", "p-111111111111: replaced by p-2", ""),
        5: (HistoryKind.REBALANCE, "group/<b>&\u202e", "group <b>&\u202e has rebalanced", ""),
    }
    return (HistoryEvent(at_ms, *kinds[minute]),) if minute in kinds else ()


def acting(
    look: StageEvaluation | None = None,
    *,
    read_journal: Callable[[], JournalState] | None = None,
    proposals: tuple[Proposal, ...] | None = None,
    mode: str = "execute",
    state: Callable[[LoopState], LoopState] = lambda state: state,
    **settings: Any,
) -> AgentView:
    """A running agent as API and page read it. ``proposals`` are those of its last planning; else the look's own."""
    look = look or sick()
    chosen = {"kafka": {"bootstrap.servers": "kafka:9092"}, "mode": mode, **settings}
    loaded = LoadedSettings(settings=Settings.model_validate(chosen))
    cycle = replace(cycle_of(look), observation=copying(172 * MB, NOW.monotonic_ms))
    if proposals is not None:
        cycle = replace(cycle, proposals=proposals)
    at = ClockReading(NOW_MS - 3_000, NOW.monotonic_ms - 3_000)
    ended = [EndedProposal(one._replace(id="p-0ld0ld0ld0ld"), NOW_MS - 9 * MINUTE, f"replaced by {one.id}")
             for one in look.proposals[:1]]  # fmt: skip
    made = LoopState(
        started=ClockReading(NOW_MS - 300 * MINUTE, 0),
        cycle=cycle,
        planned=cycle,
        last_end=at,
        last_success=at,
        past=five_hours(look),
        ended_proposals=tuple(ended),
    )
    view = a_journal(look)
    shown = [replace(made, cycle=replace(cycle, observation=copying(90 * MB, NOW.monotonic_ms - 20_000)))]
    agent = AgentView(
        state=lambda: shown[0],
        settings=loaded,
        read_journal=read_journal or (lambda: view),
        journal_name="rackwise.journal",
    )
    agent.look()  # rates are known from a second look on
    shown[0] = state(made)
    return agent


def copying(there: int, monotonic_ms: int) -> Observation:
    """A look at the copy of `MOVING` to broker 5."""
    answers = Answers()
    answers.moving(str(MOVING), (3, 6, 5), (5,), (6,))
    answers.sizes.update({(3, MOVING): 400 * MB, (6, MOVING): 400 * MB, (5, MOVING): there})
    return replace(answers.at(), monotonic_ms=monotonic_ms)


class KnownPerson:
    """Says who asks, in the place of the access layer."""

    def __init__(self, app: ASGIApp, person: SignedInPerson) -> None:
        self._app, self._person = app, person

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["person"] = self._person
        await self._app(scope, receive, send)


def page_app(
    agent: AgentView,
    person: SignedInPerson = ANN,
    views: tuple[PageView, ...] = VIEWS,
    desk: CommandDesk | None = None,
) -> Starlette:
    """The page of this agent for this person."""
    return Starlette(routes=page_routes(agent, clock, views, desk), middleware=[Middleware(KnownPerson, person=person)])


def acting_client(agent: AgentView | None = None, person: SignedInPerson = ANN) -> PageClient:
    """A client of the page of an acting agent."""
    return PageClient(page_app(agent or acting(), person))
