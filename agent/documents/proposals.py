"""Types of the documents of ``proposals`` (with `ProposalDocument`), ``pause``, ``resume`` and ``reassign``."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from agent.documents.plan import ExplainedRow
from agent.propose.codec import ProposalDocument


class CommandAnswer(TypedDict):
    """The answer of the leading agent to a command."""

    command: str
    """The id of the command; proposals history shows it too."""
    done: bool
    """Whether the command is carried out; a refusal ends with exit code 4 instead of an answer."""
    sentence: str


class HistoryRow(TypedDict):
    """One entry of the journal: an approval, a command with its answer, a plan, or a trigger."""

    at_ms: int
    """Epoch milliseconds at which it was last written."""
    what: str
    """approval (one that is no more as a command left it), plan, trigger, or the command."""
    about: str | None
    """The proposal; null for a command that concerns everything."""
    who: str | None
    """The user who asked or approved; null where no user did."""
    state: str
    sentence: str
    reason: str | None
    """Reason that the user gave, or by which numbers the rule held; null where none was given."""
    plan_hash: str | None
    """Hash of the plan that the user saw, or that was approved; null where there is none."""


class LeaderRow(TypedDict):
    """The agent that led last by the journal; it may have ended since it confirmed that."""

    agent: str
    """Its client.id."""
    host: str
    since_ms: int
    """Epoch milliseconds at which it began to lead."""
    confirmed_ms: int
    """Epoch milliseconds at which it wrote last that it leads, which it does every five minutes."""


class PauseRow(TypedDict):
    """Acting is paused; observing goes on."""

    by: str
    """The user who paused it."""
    since_ms: int
    """Epoch milliseconds."""
    reason: str
    """Empty where none was given."""


class ThrottleRow(TypedDict):
    """A throttle setting of rackwise in the cluster."""

    resource_kind: str
    """broker or topic."""
    resource: str
    """A broker id or a topic name."""
    key: str
    """Kafka's name of the setting."""
    rate_bytes_per_s: int | None
    """The rate; null for a list of throttled replicas."""
    replicas: list[str] | None
    """Throttled replicas as Kafka writes them, PARTITION:BROKER; null for a rate."""
    plan: str
    """The plan that set it."""


class PlanPartition(TypedDict):
    """One partition of a plan."""

    topic: str
    partition: int
    before: list[int]
    """Replicas before the plan, preferred leader first."""
    after: list[int]
    """Replicas that are planned, preferred leader first."""
    end: str | None
    """How it ended for this partition; null where it has not."""


class PlanRow(TypedDict):
    """A reassignment plan, and how far it is."""

    plan: str
    """The id of its proposal, with the number of the attempt from the second one on."""
    attempt: int
    """1 for the first attempt at its proposal."""
    state: str
    """open, electing, cancelling, rolling back, done, cancelled, rolled back or failed."""
    paused: bool
    """Whether no batch begins until resume."""
    partitions: int
    done: int
    """Partitions that have their planned replicas."""
    moving: int
    """Partitions in a batch that has not closed."""
    batches: int
    """Batches begun."""
    rate_bytes_per_s: int | None
    """Throttle of the last batch that runs; null where none runs."""
    approved_by: str
    reason: str
    """The reason given with the approval."""
    sentence: str
    taken_back_by: str | None
    """The plan that takes this ended one back, or has taken it back; null where none does."""
    ends: dict[str, int]
    """Partitions that ended otherwise than planned, by how."""
    targets: list[PlanPartition]


class CopyRow(TypedDict):
    """A replica that is being copied."""

    partition: str
    """As topic-number."""
    to_broker: int
    bytes: int | None
    """Bytes that are there; null when unknown."""
    of_bytes: int | None
    """Bytes of the largest other replica; null when unknown."""
    copied_share: float | None
    """bytes of of_bytes, 0 to 1."""
    bytes_per_s: int | None
    seconds_left: int | None
    ours: bool | None
    """Whether a plan of rackwise moves it; null when there may be a journal that cannot be read."""


class MoveRow(TypedDict):
    """A reassignment in progress as the brokers report it, also of other tools."""

    partition: str
    """As topic-number."""
    adding: list[int]
    removing: list[int]
    replicas: list[int]
    """Replicas now, with those that are added and removed."""
    ours: bool | None
    """Whether a plan of rackwise moves it; null when there may be a journal that cannot be read."""
    by: str | None
    """The plan of rackwise, or "another tool"; null as above."""


class ReassignStatus(TypedDict):
    """Plans by the journal, and every copy that the brokers are making."""

    leader: LeaderRow | None
    """Null where no agent ever led."""
    paused: PauseRow | None
    """Null where acting is not paused."""
    throttles: list[ThrottleRow]
    journal: str
    """Topic or file of the journal; none without one, not readable where it cannot be read."""
    plans: list[PlanRow]
    reassignments: list[MoveRow]
    """Every reassignment that the brokers report."""
    copies: list[CopyRow]


class VerifyRow(TypedDict):
    """Whether one partition has its planned replicas."""

    partition: str
    """As topic-number."""
    state: Literal["done", "moving", "waiting", "other", "gone", "unknown"]
    """waiting: its plan is in progress and has yet to move it; other: it does not move and has other replicas."""
    replicas: list[int] | None
    """Replicas now, preferred leader first; null where the partition is gone or unknown."""
    planned: list[int]
    sentence: str


class VerdictRow(TypedDict):
    """What the guard said of one proposal at the last planning."""

    proposal: str
    """Its id."""
    verdict: Literal["allow", "hold", "refuse"]
    reason: str | None
    """Why it waits or is over, as a few words; null where it is allowed."""
    sentence: str
    by: str | None
    """The approver, ``user@host`` or ``rule NAME``; null unless it is allowed."""
    until_ms: int | None
    """Epoch milliseconds until which that holds; null where it is unknown, or has no end."""
    lasting: bool | None
    """Whether only a change of settings, or of the group by its owner, ends a hold; null for other verdicts."""


class ProposalChange(TypedDict):
    """One row that a proposal changes."""

    key: str
    """A partition, or a task."""
    before: list[str | int]
    """Replicas, the preferred leader first; or the process of a task."""
    after: list[str | int]


class ProposalDetailsDocument(TypedDict):
    """One proposal with its changed rows, the guard's verdict, its rules, and its history."""

    proposal: ProposalDocument
    plan_hash: str
    """Digest of exactly what an approval is for."""
    expired: bool
    """Whether it was not proposed again in time."""
    changes: list[ProposalChange]
    verdict: VerdictRow | None
    """Null where the guard was not asked."""
    rules: list[ExplainedRow]
    """Every rule and check, with its numbers."""
    history: list[HistoryRow] | None
    """What the journal says of it, the latest last; null where there is none that was read."""
