"""Plans made of proposals, batches and throttle debts: the state of the reassignment executor, and its policy.

Invariant: each value is written to the journal before anything is done about it, so an agent that reads them back and
looks at the cluster has the same state as the one that wrote them. All are hashable, as the model checker runs the same
machine. A target is in one batch for each direction. States of a batch::

    INTENT ──> SENT ──> ACKED ──> CLOSED
       │        │  └───────────────^          all ends are known without an answer
       │        └─> SENT <──┘                 sent again: the request was lost, or for the former order
       └───────────────────────────^          nothing was sent

and of a plan::

    OPEN ──> ELECTING ──> DONE | FAILED
      │  └─> CANCELLING ──> CANCELLED
      │         │  ^
      │         v  │                         a rollback can be cancelled, and requested again
      └────> ROLLING_BACK ──> ROLLED_BACK | FAILED
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from agent.values.limits import ExecuteLimits
from agent.values.number_format import counted, sized
from agent.values.observation import ObservationPart
from agent.values.proposal import PlacementChange, PlanAttempt, Proposal
from agent.values.snapshot import Snapshot
from agent.values.throttles import ThrottleResource
from assignors.problem import TopicPartition


@lru_cache(maxsize=65_536)
def _adding(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Cached: called several times at every event of each partition of a plan."""
    return tuple(broker for broker in after if broker not in before)


class ReassignmentTarget(NamedTuple):
    """A partition with its replicas before and after, both in order: the first is the preferred leader."""

    id: TopicPartition
    topic_id: str
    """Id at the time of the proposal: a topic of the same name with another id is another topic."""
    before: tuple[int, ...]
    after: tuple[int, ...]
    bytes: int | None = None
    """Size of one replica; None when unknown."""
    bytes_per_s: float | None = None
    """Bytes per second that producers write; None when unknown."""
    gain: float = 0.0
    """Predicted bytes per second that stay in their rack; only compared."""

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that get a copy."""
        return _adding(self.before, self.after)

    @property
    def moves_data(self) -> bool:
        """False for a pure change of order."""
        return bool(self.adding)

    def back(self) -> ReassignmentTarget:
        """The target that restores ``before``."""
        return self._replace(before=self.after, after=self.before, gain=0.0)


class PartitionEndReason(StrEnum):
    """The end of a partition's move."""

    DONE = "moved as planned"
    BACK = "back on the former replicas"
    GONE = "not moved: the topic was deleted"
    REPLACED = "not moved: the topic was deleted and created again"
    CHANGED = "changed by another tool"
    REFUSED = "not moved: the controller refused the move"
    NOT_BEGUN = "not moved: the move was requested repeatedly and did not begin"
    SKIPPED = "not moved: a broker that is needed is down"


class PartitionEnd(NamedTuple):
    """The end of one partition."""

    id: TopicPartition
    end: PartitionEndReason


class PlanState(StrEnum):
    """State of a plan; see the drawing above."""

    OPEN = "open"
    ELECTING = "electing"
    CANCELLING = "cancelling"
    ROLLING_BACK = "rolling back"
    DONE = "done"
    CANCELLED = "cancelled"
    ROLLED_BACK = "rolled back"
    FAILED = "failed"


ENDED = frozenset({PlanState.DONE, PlanState.CANCELLED, PlanState.ROLLED_BACK, PlanState.FAILED})


def limits_words(rate: int | None, most: int | None) -> str:
    """An operator's limits as a clause: ``at 5.0 MB/s per broker`` of ``rate`` bytes per second; empty without any."""
    words = [f"{sized(rate)}/s per broker"] if rate is not None else []
    words += [f"{counted(most, 'partition')} at a time"] if most is not None else []
    return f" at {' and '.join(words)}" if words else ""


class ReassignmentPlan(NamedTuple):
    """An accepted proposal with the state of its execution."""

    proposal_id: str
    """The plan's name: the proposal's id, with the number of the attempt from the second on (`attempts`)."""
    targets: tuple[ReassignmentTarget, ...]
    """Sorted by partition."""
    state: PlanState = PlanState.OPEN
    paused: bool = False
    """No new batch begins; running moves continue."""
    elections: int = 0
    """Number of preferred-leader elections requested."""
    approved_by: str = ""
    reason: str = ""
    throttle_bytes_per_s: int | None = None
    """The operator's own; None: that of the policy."""
    max_moves: int | None = None
    """At most so many partitions at a time; None: the policy's number."""
    order: int = 0
    """Plans are carried out one after the other, in the order in which they were accepted."""
    sentence: str = ""
    """Reason of this state."""
    heard: str = ""
    """Id of the latest operator's command that changed it; after a crash, commands after that one are repeated."""
    moved: str | None = None
    """Targets that have their planned replicas, in the form of `moved_by`; None before the plan's end, and in entries
    of older agents."""
    begin_by_ms: int | None = None
    """Epoch milliseconds by which its first batch is to be sent; None in entries of older agents."""
    racks: tuple[tuple[int, str], ...] = ()
    """(broker, rack) of its brokers at the time of acceptance, by broker."""
    turned: int = 0
    """Number of its latest batch when the rollback was requested: ends of back-batches up to it belong to an earlier,
    cancelled rollback."""
    dropped: int = 0
    """Number of its partitions once the journal has dropped them: an old plan without targets, which cannot be rolled
    back. 0 while it has them."""
    attempt: int = 1
    """Number of the attempt, counted from 1; a record has it in the name alone."""

    @property
    def partitions(self) -> int:
        """Number of its partitions."""
        return len(self.targets) or self.dropped

    @property
    def ended(self) -> bool:
        """True in an end state."""
        return self.state in ENDED


def moved_by(plan: ReassignmentPlan, moved: Collection[object]) -> str:
    """Those targets of a plan as a hexadecimal number: bit n is target n."""
    bits = "".join("1" if target.id in moved else "0" for target in reversed(plan.targets))
    return f"{int(bits or '0', 2):x}"


def moved_of(plan: ReassignmentPlan) -> frozenset[TopicPartition] | None:
    """Partitions that a plan left with their planned replicas; None when its entry does not have them."""
    if plan.moved is None or not set(plan.moved) <= set("0123456789abcdef") or not plan.moved:
        return None
    bits = reversed(f"{int(plan.moved, 16):b}")
    return frozenset(target.id for bit, target in zip(bits, plan.targets, strict=False) if bit == "1")


class BatchState(StrEnum):
    """State of a batch; see the drawing above."""

    INTENT = "intent"
    SENT = "sent"
    """Written right before the request: it may have been sent."""
    ACKED = "acked"
    CLOSED = "closed"


class Batch(NamedTuple):
    """Partitions that move together. Its entry is rewritten as it goes on."""

    proposal_id: str
    number: int
    """Counts the batches of a plan from 1."""
    targets: tuple[ReassignmentTarget, ...]
    """``before``: replicas that the partition must have right before the request."""
    state: BatchState = BatchState.INTENT
    back: bool = False
    """True for a batch that takes finished partitions back."""
    rate_bytes_per_s: int | None = None
    """None: not throttled by us."""
    repaced: bool = False
    """A stuck batch gets more room once."""
    sendings: int = 0
    """How often the request may have been sent."""
    cancelling: tuple[TopicPartition, ...] = ()
    """Partitions whose move is to be cancelled; it never leaves this list."""
    ends: tuple[PartitionEnd, ...] = ()
    sentence: str = ""


class ThrottleDebt(NamedTuple):
    """A throttle setting that rackwise has set or is about to set, and must remove."""

    resource: ThrottleResource
    key: str
    ours: int | tuple[str, ...]
    """A rate in bytes per second, or the entries added to a list."""
    before: str | None
    """The resource's own value before ours; None when it had none."""
    proposal_id: str
    number: int
    """Number of its batch."""
    formerly: int | None = None
    """An earlier rate of ours that may still be set."""
    topic_id: str | None = None
    tries: int = 0

    @property
    def value(self) -> str:
        """The rate or the entries as a value of Kafka's config."""
        return str(self.ours) if isinstance(self.ours, int) else ",".join(self.ours)

    @property
    def rates(self) -> tuple[str, ...]:
        """The rate, and an earlier one, as values of Kafka's config."""
        return (self.value,) if self.formerly is None else (self.value, str(self.formerly))


class ClearedThrottle(NamedTuple):
    """The key of a debt that is paid."""

    resource: ThrottleResource
    key: str


ReassignmentEntry = ReassignmentPlan | Batch | ThrottleDebt | ClearedThrottle
"""One line of an append to the journal."""


class ReassignmentRecords(NamedTuple):
    """The journal's entries about reassignments, typed."""

    plans: tuple[ReassignmentPlan, ...] = ()
    """Plans that have not ended, in the order in which they were accepted."""
    batches: tuple[Batch, ...] = ()
    """The batches of those plans, by plan and number."""
    debts: tuple[ThrottleDebt, ...] = ()
    """Sorted by resource and key; also debts of ended plans whose broker is down."""
    known: frozenset[str] = frozenset()
    """Names of all accepted plans: none is accepted again, only another attempt."""


class ReassignmentPolicy(NamedTuple):
    """The executor's policy: the settings, and bounds that are no settings."""

    limits: ExecuteLimits = ExecuteLimits()
    look_ms: int = 2_000
    idle_look_ms: int = 30_000
    """Interval of looks when only debts of brokers that are down are left."""
    max_sendings: int = 5
    """Requests for one batch; partitions still not begun then count as refused."""
    max_configurings: int = 3
    """Requests for a throttle; without it nothing is moved."""
    max_elections: int = 3

    @property
    def landing_ms(self) -> int:
        """The controller is to drop a request that it has not begun this long after it was sent."""
        return self.limits.request_timeout_ms // 2

    @property
    def settle_ms(self) -> int:
        """No request of a former leader, and none without an answer, takes effect later than this.

        Twice the landing time: a request was sent before its sender lost the lease or the answer was given up.
        """
        return 2 * self.landing_ms


# Names of plans: `p-1` is the first attempt at proposal p-1, `p-1.2` the second; `p-1-back` rolls plan `p-1` back. The
# same change has the same proposal id whenever it is proposed, and an ended plan does not begin again: it is another
# attempt, with a plan, an approval and batches of its own.

_NAME = re.compile(r"(?P<of>.+?)(?:\.(?P<number>[1-9][0-9]{0,8}))?")
_BACK = "-back"


def attempt(name: str) -> PlanAttempt:
    """The attempt that a plan of that name is."""
    found = _NAME.fullmatch(name)
    return PlanAttempt(name) if found is None else PlanAttempt(found["of"], int(found["number"] or 1))


def of_plan(plan: ReassignmentPlan) -> PlanAttempt:
    """The attempt that the plan is."""
    first = plan.attempt == 1
    return PlanAttempt(plan.proposal_id if first else plan.proposal_id.removesuffix(f".{plan.attempt}"), plan.attempt)


def latest(plans: Iterable[ReassignmentPlan], of: str) -> ReassignmentPlan | None:
    """The newest attempt at a proposal; None when none of these is one."""
    tried = ((of_plan(plan), plan) for plan in plans if plan.proposal_id.startswith(of))
    return max(((one.number, plan) for one, plan in tried if one.of == of), default=(0, None), key=lambda it: it[0])[1]


def newest_rollback(plans: Iterable[ReassignmentPlan], name: str) -> ReassignmentPlan | None:
    """The newest plan that rolls that one back; None when none of these does."""
    return latest(plans, rollback_name(name))


def rollback_name(name: str) -> str:
    """The name of plans that roll that plan back, without the attempt."""
    return f"{name}{_BACK}"


def rolled_back_plan(name: str) -> str | None:
    """The plan that a plan of this name rolls back; None for one that is no rollback."""
    of = attempt(name).of
    return of.removesuffix(_BACK) if of.endswith(_BACK) else None


def taken_back_by(plans: tuple[ReassignmentPlan, ...], name: str) -> ReassignmentPlan | None:
    """The plan that takes that ended one back, or has; None where none does, or where that was taken back itself."""
    back = newest_rollback(plans, name)
    return back if back is not None and (not back.ended or in_force(plans, back)) else None


def rollback_words(back: ReassignmentPlan) -> str:
    """``p-1-back is taking p-1 back``, or has taken it."""
    how = "has taken" if back.ended else "is taking"
    return f"{back.proposal_id} {how} {rolled_back_plan(back.proposal_id)} back"


def in_force(plans: tuple[ReassignmentPlan, ...], plan: ReassignmentPlan) -> bool:
    """Whether it is done, and was not rolled back since."""
    rollback = newest_rollback(plans, plan.proposal_id)
    return plan.state is PlanState.DONE and (rollback is None or not in_force(plans, rollback))


# Reassignment plan from an approved proposal and the limits. Pure.
#
# Invariant: a plan names the topic ids and replica lists of its proposal, so an outdated one is found before any move.


class InvalidProposalError(ValueError):
    """The proposal cannot be made a plan, for the reason in the sentence."""


def plan_of(
    proposal: Proposal,
    snapshot: Snapshot,
    *,
    approved_by: str,
    reason: str = "",
    throttle_bytes_per_s: int | None = None,
    max_moves: int | None = None,
    begin_by_ms: int | None = None,
    begins: PlanAttempt | None = None,
) -> ReassignmentPlan:
    """The plan of a reassignment or a change of leaders; void where no batch of it is sent until ``begin_by_ms``.

    ``begins`` is the attempt that it is; None: the first. Raises InvalidProposalError for a proposal that moves no
    replicas, and for topics that the snapshot does not know.
    """
    changes = sorted(proposal.placements)
    if not changes:
        raise InvalidProposalError(f"{proposal.id} changes no replica list")
    gains = _gains(changes, snapshot, proposal)
    begins = begins or PlanAttempt(proposal.id)
    return ReassignmentPlan(
        str(begins),
        tuple(_target(change, snapshot, proposal, gain) for change, gain in zip(changes, gains, strict=True)),
        approved_by=approved_by,
        reason=reason or proposal.sentence,
        throttle_bytes_per_s=throttle_bytes_per_s,
        max_moves=max_moves,
        begin_by_ms=begin_by_ms,
        racks=_racks(changes, snapshot),
        attempt=begins.number,
    )


def _racks(changes: Sequence[PlacementChange], snapshot: Snapshot) -> tuple[tuple[int, str], ...]:
    named = {broker for change in changes for broker in (*change.before, *change.after)}
    known = ((broker.id, broker.rack.name) for broker in snapshot.brokers if broker.id in named)
    return tuple(sorted((broker, rack) for broker, rack in known if rack is not None))


def traffic_of(snapshot: Snapshot) -> Mapping[int, float]:
    """Broker -> bytes per second that its replicas take in; one with a replica of unknown rate is left out.

    Empty where topics were not seen: what is unknown is never zero.
    """
    if any(gap.part is ObservationPart.TOPICS for gap in snapshot.gaps):
        return {}
    taken = {broker.id: 0.0 for broker in snapshot.brokers if broker.alive}
    unknown: set[int] = set()
    for topic in snapshot.topics.values():
        for state in topic.partitions:
            rate = snapshot.bytes_per_s.get(state.id)
            if rate is None:
                unknown.update(state.replicas)
                continue
            for broker in state.replicas:
                taken[broker] = taken.get(broker, 0.0) + rate
    return {broker: rate for broker, rate in taken.items() if broker not in unknown}


def _target(change: PlacementChange, snapshot: Snapshot, proposal: Proposal, gain: float) -> ReassignmentTarget:
    topic = snapshot.topics.get(change.id.topic)
    if topic is None or topic.topic_id is None:
        raise InvalidProposalError(f"{proposal.id} is about {change.id}, whose topic id is not known")
    return ReassignmentTarget(
        change.id,
        topic.topic_id,
        change.before,
        change.after,
        bytes=snapshot.size_bytes.get(change.id),
        bytes_per_s=snapshot.bytes_per_s.get(change.id),
        gain=gain,
    )


def _gains(changes: Sequence[PlacementChange], snapshot: Snapshot, proposal: Proposal) -> list[float]:
    """Each one's part of what the proposal saves, by what is written to it; only compared within a plan."""
    before, after = proposal.predicted.cross_rack_bytes_per_s_before, proposal.predicted.cross_rack_bytes_per_s_after
    if before is None or after is None:
        return [0.0] * len(changes)
    saved = max(0.0, before - after)
    written = [snapshot.bytes_per_s.get(change.id, 0.0) for change in changes]
    total = sum(written)
    return [saved * (one / total if total else 1 / len(written)) for one in written]
