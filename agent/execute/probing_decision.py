"""Decides whether a Streams application is triggered now, so that caught-up warm-ups take over (KIP-441).

The group leader reads lags only in a rebalance, by default every ``probing.rebalance.interval.ms``. An early trigger
costs one cheap round, moves the application's own deadline and brings fresh offset sums; a late one costs time. Bounds:
a floor between triggers that grows while they promote nothing, a budget per hour, the application's own deadline.

Invariants: only copies that their process hosts justify a trigger; every bound rests on the monotonic clock; of several
bounds the one that ends last is named. The guard checks static members, eager protocols, rolling restarts and windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from agent.detect.streams import (
    LEARN_AFTER_MS,
    WarmupReadiness,
    WarmupUncertainty,
    doubt_about,
    growing_standbys,
    readiness,
)
from agent.execute.probing_values import (
    PastTrigger,
    ProbingDecision,
    ProbingOff,
    ProbingOffReason,
    ProbingReason,
    ProbingTrigger,
    ProbingWait,
    ProbingWaitReason,
    failures,
)
from agent.memory.streams import NOTHING, current_join, last_look_of
from agent.values.kafka import SETTLED_STATES, STABLE
from agent.values.limits import GroupLimits, Limits, ProbingLimits
from agent.values.memory import CopyKey, Join, Memory
from agent.values.number_format import counted, few
from agent.values.snapshot import GroupKind, Snapshot, StreamsGroup

HOUR_MS = 3_600_000
SETTLE_MS = 2_000
"""A join younger than this may be followed by another at once, when tasks were taken from a process."""
JUDGED_WITHIN_MS = 60_000
"""A trigger whose effect is unknown after this long counts as one that promoted nothing."""
AGAIN_MS = 1_000
"""Least time until the next look at an unknown."""
STANDBY_EVERY_MS = HOUR_MS
"""Standbys fall behind for reasons that a rebalance seldom mends: one an hour is enough."""
_NAMED = 3


class ProbingContext(NamedTuple):
    """The input of a decision: one look, the memory before it, and the limits."""

    snapshot: Snapshot
    memory: Memory
    limits: Limits


def decisions(context: ProbingContext, past: Mapping[str, Sequence[PastTrigger]]) -> Mapping[str, ProbingDecision]:
    """One decision for each classic Streams application, by group."""
    groups = context.snapshot.groups
    return {
        name: decide(name, context, past.get(name, ()))
        for name in sorted({*context.snapshot.copies, *context.memory.streams})
        if getattr(groups.get(name), "kind", None) is GroupKind.CLASSIC_STREAMS
        and not context.limits.excludes_group(name)
    }


def decide(group_id: str, context: ProbingContext, past: Sequence[PastTrigger] = ()) -> ProbingDecision:
    """The decision for one group. ``past``: its triggers of the last hour at least, in any order."""
    group = context.snapshot.groups.get(group_id)
    if not isinstance(group, StreamsGroup) or group.kind is not GroupKind.CLASSIC_STREAMS:
        return ProbingOff(
            group_id,
            ProbingOffReason.NOT_CLASSIC,
            "not probed: only classic Streams applications have probing rebalances that a trigger can bring forward",
        )
    if not context.limits.probing.enabled:
        return ProbingOff(group_id, ProbingOffReason.SWITCHED_OFF, "not probed: probing.enabled is false")
    state = _GroupState(group, context, past)
    if group.state != STABLE or group.hidden:
        return state.rebalancing()
    wanted = state.wanted()
    if not isinstance(wanted, ProbingTrigger):
        return wanted
    return state.held(wanted) or state.shared(wanted) or wanted


class _GroupState:
    """One application at one look."""

    def __init__(self, group: StreamsGroup, context: ProbingContext, past: Sequence[PastTrigger]) -> None:
        snapshot, memory, probing = context.snapshot, context.memory, context.limits.probing
        settings = context.limits.group(group.id)
        self._group, self._probing = group, probing
        self._now_ms = snapshot.monotonic_ms
        known = memory.streams.get(group.id, NOTHING)
        self._join: Join | None = known.join
        self._waited_ms = 0
        self._rebalancing_since_ms = memory.rebalancing.get(group.id)
        if group.join is not None:
            self._join = current_join(known.join, group.join, self._now_ms, last_look_of(memory, group.id))
        if known.ready_ms is not None and self._join is known.join:
            self._waited_ms = max(0, self._now_ms - known.ready_ms)
        # A trigger in the future has the time of a clock that jumped: it counts as one of now.
        self._past = tuple(one._replace(at_ms=min(one.at_ms, self._now_ms)) for one in past)
        copies = snapshot.copies.get(group.id, ())
        self._warmups: WarmupReadiness = readiness(copies, settings.acceptable_recovery_lag)
        self._growing = growing_standbys(copies, settings, memory, self._now_ms) if probing.standbys else ()
        self._deadline: ProbingDeadline | None = deadline(
            group.next_rebalance_ms, snapshot.taken_ms, self._now_ms, self._join, settings
        )

    def wanted(self) -> ProbingDecision:
        """The trigger that the group justifies, else a wait or an off."""
        warm = self._warmups
        if not any(warm):
            return self._about_standbys()
        if self._group.next_rebalance_ms is None and not any(member.defects for member in self._group.members):
            # A follow-up is on its way, or copies that were taken for warm-ups are standbys.
            return self._off(ProbingOffReason.NOTHING_WANTED, "its leader has scheduled no probing rebalance")
        if warm.caught_up:
            copies = (*warm.caught_up, *warm.likely)
            return self._now(ProbingReason.CAUGHT_UP, copies, f"{_copies(warm.caught_up)} caught up")
        doubt = doubt_about(warm, self._join, self._now_ms)
        return self._restoring() if doubt is None else self._doubted(*doubt)

    def rebalancing(self) -> ProbingDecision:
        """The decision about a group that is not Stable: another look soon, unless its state is settled."""
        why = f"group {self._group.id} is {self._group.state}, not Stable"
        if self._group.state in SETTLED_STATES and not self._group.hidden:
            return self._off(ProbingOffReason.EMPTY, why)
        return self._wait(ProbingWaitReason.REBALANCING, self._again_ms(self._rebalancing_since_ms), why)

    def held(self, wanted: ProbingTrigger) -> ProbingWait | None:
        """The bound that ends last; None when none holds."""
        waits = [wait for wait in self._bounds(wanted) if wait.until_ms is None or wait.until_ms > self._now_ms]
        return max(waits, key=lambda wait: inf if wait.until_ms is None else wait.until_ms, default=None)

    def shared(self, wanted: ProbingTrigger) -> ProbingWait | None:
        """A short wait for warm-ups that arrive together; None when the trigger had better come now."""
        if wanted.reason not in (ProbingReason.CAUGHT_UP, ProbingReason.LIKELY):
            return None
        arrivals_ms = [arrival.eta_s.likely * 1_000 for arrival in self._warmups.arriving]
        wait_ms = worth_waiting_ms(
            len(wanted.copies),
            arrivals_ms,
            floor_ms=self._probing.floor_ms,
            longest_ms=self._probing.share_ms,
            waited_ms=self._waited_ms,
        )
        if wait_ms is None:
            return None
        more = sum(arrival <= wait_ms for arrival in arrivals_ms)
        why = f"{counted(more, 'more warm-up')} will have caught up within {wait_ms / 1000:.1f} s and share the trigger"
        return self._wait(ProbingWaitReason.SHARING, self._now_ms + wait_ms, why)

    def _about_standbys(self) -> ProbingDecision:
        if not self._growing:
            return self._off(ProbingOffReason.NO_WARMUPS, "no process of it has a warm-up")
        keys = tuple((copy.process_id, copy.task) for copy in self._growing)
        return self._now(
            ProbingReason.STANDBY, keys, f"{counted(len(keys), 'standby', 'standbys')} falling behind without bound"
        )

    def _doubted(self, why: WarmupUncertainty, copies: tuple[CopyKey, ...]) -> ProbingDecision:
        if why is WarmupUncertainty.LIKELY:
            return self._now(ProbingReason.LIKELY, copies, f"{_copies(copies)} probably caught up by now")
        if why is WarmupUncertainty.NOTHING_KNOWN:
            return self._now(
                ProbingReason.LEARN,
                copies,
                f"the progress of {counted(len(copies), 'warm-up')} is unknown until a rebalance brings fresh "
                "offset sums",
            )
        if failures(self._past, self._now_ms, JUDGED_WITHIN_MS):  # fresh sums were had, and the estimate rests on them
            return self._restoring()
        left_s = self._warmups.arriving[0].eta_s.likely
        left = f"{_copies(copies)} not caught up by the estimate, which leaves {left_s:.0f} s"
        return self._now(ProbingReason.LEARN, copies, f"{left}; a rebalance brings fresh offset sums to check it")

    def _restoring(self) -> ProbingWait:
        warm = self._warmups
        if warm.unknown and not warm.arriving and self._join is not None:
            left_ms = self._join.seen_ms + LEARN_AFTER_MS - self._now_ms
            why = (
                f"the progress of {counted(len(warm.unknown), 'warm-up')} is unknown; a rebalance for fresh "
                f"offset sums is due in {_s(left_ms)}"
            )
            return self._wait(ProbingWaitReason.RESTORING, self._now_ms + left_ms, why)
        if not warm.arriving:
            why = f"{_copies((*warm.stuck, *warm.unknown))} not caught up, and the remaining time is unknown"
            return self._wait(
                ProbingWaitReason.RESTORING, self._again_ms(self._join.seen_ms if self._join else None), why
            )
        first = warm.arriving[0]
        eta = f"{first.eta_s.low:.0f} to {first.eta_s.high:.0f} s, likely {first.eta_s.likely:.0f} s"
        why = f"the first of {counted(len(warm.arriving), 'warm-up')} will have caught up in {eta}"
        return self._wait(ProbingWaitReason.RESTORING, self._now_ms + round(first.eta_s.likely * 1_000), why)

    def _bounds(self, wanted: ProbingTrigger) -> Iterable[ProbingWait]:
        now_ms, probing = self._now_ms, self._probing
        if self._join is not None and self._join.after_ms is not None:
            ago = _s(now_ms - self._join.seen_ms)
            yield self._wait(ProbingWaitReason.SETTLING, self._join.seen_ms + SETTLE_MS, f"it rebalanced {ago} ago")
        yield from self._after_last()
        lately = sorted(one.at_ms for one in self._past if now_ms - one.at_ms < HOUR_MS)
        budget = probing.budget_per_group_per_hour
        if len(lately) >= budget:
            until_ms = lately[-budget] + HOUR_MS if budget else None
            why = f"{counted(len(lately), 'trigger')} within the last hour; the budget is {budget}"
            yield self._wait(ProbingWaitReason.BUDGET, until_ms, why)
        if wanted.reason is ProbingReason.STANDBY:
            last_ms = max((one.at_ms for one in self._past), default=None)
            if last_ms is not None:
                why = f"one trigger an hour is the limit for standbys; the last was {_s(now_ms - last_ms)} ago"
                yield self._wait(ProbingWaitReason.FLOOR, last_ms + STANDBY_EVERY_MS, why)
        yield from self._near_deadline()

    def _after_last(self) -> Iterable[ProbingWait]:
        if not self._past:
            return
        now_ms, probing = self._now_ms, self._probing
        last = max(self._past, key=lambda one: one.at_ms)
        ago = _s(now_ms - last.at_ms)
        seen = self._join is not None and self._join.seen_ms > last.at_ms
        if last.promoted is None and not seen:
            why = f"the rebalance of the trigger {ago} ago has not been observed yet"
            yield self._wait(ProbingWaitReason.JUDGING, last.at_ms + JUDGED_WITHIN_MS, why)
        floor_ms = probing.floor_ms
        yield self._wait(
            ProbingWaitReason.FLOOR,
            last.at_ms + floor_ms,
            f"the last trigger was {ago} ago; probing.floor is {_s(floor_ms)}",
        )
        failed = failures(self._past, now_ms, JUDGED_WITHIN_MS)
        if failed:
            pause_ms = backoff_ms(failed, probing)
            why = f"the last {counted(failed, 'trigger')} promoted no warm-up, so the next one waits {_s(pause_ms)}"
            yield self._wait(ProbingWaitReason.BACK_OFF, last.at_ms + pause_ms, why)

    def _near_deadline(self) -> Iterable[ProbingWait]:
        near_ms = self._probing.near_deadline_ms
        due = self._deadline
        # A deadline long past was not kept, or is of a clock that differs from ours: nothing to wait for.
        if due is None or not -near_ms <= due.left_ms <= near_ms:
            return
        when = f"in {_s(due.left_ms)}" if due.left_ms >= 0 else f"any moment, {_s(-due.left_ms)} overdue"
        why = f"the application will rebalance by itself {when}"
        yield self._wait(ProbingWaitReason.DEADLINE, self._now_ms + due.left_ms + near_ms, why)

    def _again_ms(self, since_ms: int | None) -> int:
        """When to look again at a state that began then: the older, the later."""
        return self._now_ms + (AGAIN_MS if since_ms is None else max(AGAIN_MS, (self._now_ms - since_ms) // 4))

    def _now(self, reason: ProbingReason, copies: tuple[CopyKey, ...], why: str) -> ProbingTrigger:
        return ProbingTrigger(self._group.id, reason, copies, f"rebalance {self._group.id} now: {why}")

    def _wait(self, reason: ProbingWaitReason, until_ms: int | None, why: str) -> ProbingWait:
        return ProbingWait(self._group.id, reason, until_ms, why, self._warmups.arriving)

    def _off(self, reason: ProbingOffReason, why: str) -> ProbingOff:
        return ProbingOff(self._group.id, reason, f"not probed: {why}")


def backoff_ms(failed: int, probing: ProbingLimits) -> int:
    """The pause after so many triggers in a row that promoted nothing."""
    longest_ms = max(probing.floor_ms, probing.backoff_max_ms)
    pause_ms = float(probing.floor_ms)
    for _ in range(failed):
        pause_ms *= probing.backoff_factor
        if pause_ms >= longest_ms:
            return longest_ms
    return max(probing.floor_ms, round(pause_ms))


def _copies(keys: Sequence[CopyKey]) -> str:
    """The tasks by name, where they are few."""
    verb = "has" if len(keys) == 1 else "have"
    return f"{counted(len(keys), 'warm-up')} ({few([task for _, task in keys], _NAMED)}) {verb}"


def _s(duration_ms: int) -> str:
    return f"{duration_ms / 1000:.0f} s"


# The application's own deadline is a wall-clock time of its group leader, whose clock may differ or jump. The last join
# plus one interval bounds it on the monotonic clock; a time outside of these bounds is ignored.

DISAGREE_MS = 30_000
"""Clocks that differ by more than this are not believed."""


class ProbingDeadline(NamedTuple):
    """When the application's own probing rebalance is due, in milliseconds from now; negative when it is overdue."""

    left_ms: int
    reported: bool
    """False where it is the join plus the interval, not the time of the group leader."""


def deadline(
    next_rebalance_ms: int | None, taken_ms: int, now_ms: int, join: Join | None, settings: GroupLimits
) -> ProbingDeadline | None:
    """The application's deadline; None where it is unknown.

    ``taken_ms``: wall clock at the look, ``now_ms``: monotonic clock. Only an interval that the user set is a bound: an
    assumed one proves nothing.
    """
    if next_rebalance_ms is None:
        return None
    left_ms = next_rebalance_ms - taken_ms
    if not settings.known or join is None:
        return ProbingDeadline(left_ms, reported=True)
    latest_ms = join.seen_ms + settings.probing_rebalance_interval_ms - now_ms
    earliest_ms = None if join.after_ms is None else join.after_ms + settings.probing_rebalance_interval_ms - now_ms
    if left_ms > latest_ms + DISAGREE_MS or (earliest_ms is not None and left_ms < earliest_ms - DISAGREE_MS):
        return None if earliest_ms is None else ProbingDeadline(earliest_ms, reported=False)
    return ProbingDeadline(left_ms, reported=True)


# A wait delays the warm-ups that have caught up; it saves a rebalance and, for the late ones, the floor between two
# triggers. Costs are milliseconds of waiting tasks; a rebalance costs as much as one task that waits for one floor. The
# whole wait is bounded, from when the first warm-up had caught up; slipping estimates do not prolong it.


def worth_waiting_ms(
    ready: int, arrivals_ms: Sequence[float], *, floor_ms: int, longest_ms: int, waited_ms: int
) -> int | None:
    """Milliseconds to wait for the others; None when the trigger is better sent now.

    ``ready`` warm-ups have caught up and have ``waited_ms``; the others arrive in ``arrivals_ms`` from now, sorted.
    """
    best_ms, best_cost = 0.0, _cost(0.0, ready, arrivals_ms, floor_ms)
    for wait_ms in arrivals_ms:
        if wait_ms > longest_ms - waited_ms:
            break
        cost = _cost(wait_ms, ready, arrivals_ms, floor_ms)
        if wait_ms > 0 and cost <= best_cost:
            best_ms, best_cost = wait_ms, cost
    return round(best_ms) or None


def _cost(wait_ms: float, ready: int, arrivals_ms: Sequence[float], floor_ms: int) -> float:
    """Cost of a trigger after that wait: tasks that wait for it, late ones that wait for the next, and the next one."""
    waiting = ready * wait_ms + sum(wait_ms - arrival for arrival in arrivals_ms if arrival <= wait_ms)
    late = [wait_ms + floor_ms - arrival for arrival in arrivals_ms if wait_ms < arrival < wait_ms + floor_ms]
    return waiting + sum(late) + (floor_ms if late else 0)
