"""New preferred leaders by a new order of replicas, without data moved: LEADERS_EVEN, then LEADERS_TO_READERS.

Only a live, unfenced broker in the ISR becomes preferred leader, and never a gone one while another can lead. A
partition is planned once; running reassignments stay; with ``keep_leaders`` nothing is planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

from agent.plan.gain_thresholds import passes_thresholds, worth_bytes
from agent.plan.leader_balance import (
    LeaderCounts,
    LeaderOption,
    PartitionReaders,
    balance_leaders,
    fewest_changes,
    groups_by_topic,
    known_readers,
    readers_of,
    with_leader,
)
from agent.plan.placements import Skipped, left_out
from agent.plan.plan_context import PlanContext, addressed_findings, gone_brokers
from agent.values.finding import Finding, FindingReason, SubjectId
from agent.values.limits import Limits
from agent.values.plan import PlacementPlan, Unplanned
from agent.values.proposal import PlacementChange, ProposalReason
from agent.values.snapshot import PartitionState, TopicState
from agent.values.weights import RateColumn
from assignors.optimal import optimal_leaders
from assignors.problem import LeaderCandidate, TopicPartition

# LEADERS_TO_READERS: without a rack-aware selector (KIP-392) readers read from the leader, so it belongs where most of
# them are. Readers of unknown rack count for the present leader, writers not at all; evenness stays within the limit.

_Wanted = tuple[int, PartitionState, list[int]]
"""(Certain gain in readers, partition, in-sync replicas in the best rack)."""


def follow_readers(
    context: PlanContext, leader_counts: LeaderCounts, taken: set[TopicPartition]
) -> tuple[list[PlacementPlan], Skipped]:
    """New orders of replicas, topic by topic; partitions that are taken already are left alone."""
    if context.snapshot.selector_is_rack_aware is not False:
        return [], []
    answers = addressed_findings(context.found.of(FindingReason.SELECTOR_NOT_RACK_AWARE))
    if answers is None:
        return [], []
    if answers.held:
        return [], [(name, Unplanned.HELD) for name in answers.ids]
    plans: list[PlacementPlan] = []
    skipped: Skipped = []
    for name, groups in groups_by_topic(context.snapshot, context.memo).items():
        topic = context.snapshot.topics.get(name)
        if topic is None or left_out(topic, context.limits):
            continue
        readers = context.memo.of(("readers", name), (topic, *groups), partial(readers_of, topic, groups))
        column = context.snapshot.weighed.topics.get(name, ())
        wanted, unsure = _sure(_wanted(topic, readers, leader_counts, taken, column), leader_counts, context.held)
        skipped += unsure
        if not wanted:
            continue
        if not _is_worth(wanted, readers, column, context.limits):
            skipped.append((SubjectId("topic", name), Unplanned.BELOW_THRESHOLD))
            continue
        changes = _within_limits(wanted, leader_counts)
        if len(changes) < len(wanted):
            skipped.append((SubjectId("topic", name), Unplanned.UNEVEN))
        if changes:
            plans.append(_reader_plan(topic, changes, readers, leader_counts, answers.ids))
    return plans, skipped


def crossing_readers(
    readers: Mapping[TopicPartition, PartitionReaders], leader_racks: Mapping[TopicPartition, str | None]
) -> int:
    """Reads of known rack that cross when these racks lead."""
    return sum(of.total - of.near(leader_racks.get(partition)) for partition, of in readers.items())


def _is_worth(
    wanted: Iterable[_Wanted], readers: Mapping[TopicPartition, PartitionReaders], column: RateColumn, limits: Limits
) -> bool:
    """True when the gain passes the thresholds: in bytes per second where all read partitions have weights."""
    rates = {partition: _rate(column, partition) for partition in readers}
    known = [(readers[partition], rate) for partition, rate in rates.items() if rate is not None]
    if len(known) < len(rates):
        return passes_thresholds(
            sum(gain for gain, _, _ in wanted), sum(of.total + of.unknown for of in readers.values()), limits
        )
    gained = sum(gain * (rates[state.id] or 0.0) for gain, state, _ in wanted)
    return worth_bytes(gained, sum((of.total + of.unknown) * rate for of, rate in known), limits)


def _rate(column: RateColumn, partition: TopicPartition) -> float | None:
    return column[partition.partition] if 0 <= partition.partition < len(column) else None


def _wanted(
    topic: TopicState,
    readers: Mapping[TopicPartition, PartitionReaders],
    leader_counts: LeaderCounts,
    taken: set[TopicPartition],
    column: RateColumn,
) -> list[_Wanted]:
    """Changes nearer to readers, greatest gain first: in bytes by weights, else in readers."""
    wanted: list[_Wanted] = []
    for state in topic.partitions:
        of = readers.get(state.id)
        if of is None or state.id in taken or not state.replicas:
            continue
        candidates = leader_counts.candidates(state)
        best = max((of.near(leader_counts.rack_of[broker]) for broker in candidates), default=0)
        gain = best - of.near(leader_counts.rack_of.get(state.replicas[0])) - of.unknown
        if gain > 0:
            wanted.append((gain, state, [b for b in candidates if of.near(leader_counts.rack_of[b]) == best]))
    known = bool(column) and all(_rate(column, state.id) is not None for _, state, _ in wanted)
    # Evenness stops the row somewhere: what counts most comes first.
    weight = {state.id: (_rate(column, state.id) or 0.0) if known else 1.0 for _, state, _ in wanted}
    return sorted(wanted, key=lambda row: (-row[0] * weight[row[1].id], row[1].id))


def _sure(wanted: list[_Wanted], leader_counts: LeaderCounts, held: frozenset[int]) -> tuple[list[_Wanted], Skipped]:
    """Changes without held replicas and without a leader of unknown rack, which may be near its readers."""
    sure: list[_Wanted] = []
    skipped: Skipped = []
    for row in wanted:
        _, state, _ = row
        if not held.isdisjoint(state.replicas):
            skipped.append((SubjectId("topic", state.id.topic), Unplanned.HELD))
        elif state.replicas[0] not in leader_counts.rack_of:
            skipped.append((SubjectId("topic", state.id.topic), Unplanned.UNKNOWN_RACK))
        else:
            sure.append(row)
    return sure, skipped


def _within_limits(wanted: list[_Wanted], leader_counts: LeaderCounts) -> list[PlacementChange]:
    """The changes that keep leaders even enough, counted as they are made."""
    changes: list[PlacementChange] = []
    for _, state, near in wanted:
        allowed = [broker for broker in near if leader_counts.allows(state.replicas[0], broker)]
        if allowed:
            leader = leader_counts.least_busy(allowed)
            leader_counts.give(state.replicas[0], leader)
            changes.append(with_leader(state, leader))
    return sorted(changes)


def _reader_plan(
    topic: TopicState,
    changes: list[PlacementChange],
    readers: Mapping[TopicPartition, PartitionReaders],
    leader_counts: LeaderCounts,
    findings: tuple[str, ...],
) -> PlacementPlan:
    """The plan with its bound: the reads that cross whichever in-sync replica leads."""
    leads = {state.id: state.replicas[0] for state in topic.partitions if state.replicas}
    leads.update({change.id: change.after[0] for change in changes})
    after = crossing_readers(
        readers, {partition: leader_counts.rack_of.get(broker) for partition, broker in leads.items()}
    )
    least = 0
    for state in topic.partitions:
        of = readers.get(state.id)
        if of is not None:
            options = {*leader_counts.candidates(state), *state.replicas[:1]}
            least += of.total - max((of.near(leader_counts.rack_of.get(broker)) for broker in options), default=0)
    return PlacementPlan(
        topic=topic.name,
        reason=ProposalReason.LEADERS_TO_READERS,
        changes=tuple(changes),
        leaders_only=True,
        lower_bound=least,
        optimal=after == least,
        findings=findings,
    )


ByPartition = Mapping[TopicPartition, PartitionReaders]
"""Partition -> its readers."""


def place_leaders(context: PlanContext, busy: Iterable[TopicPartition]) -> tuple[list[PlacementPlan], Skipped]:
    """New orders of replicas, evenness first, readers second; ``busy`` partitions are planned for otherwise."""
    skew = context.found.of(FindingReason.LEADER_SKEW)
    if not skew and context.snapshot.selector_is_rack_aware is not False:
        return [], []
    taken = {*busy, *context.snapshot.reassignments}
    leader_counts = LeaderCounts(context.snapshot, context.held, context.limits, gone_brokers(context.found))
    plans, skipped = _make_even(context, skew, leader_counts, taken)
    more, left = follow_readers(context, leader_counts, taken)
    if context.limits.plan.keep_leaders:
        for plan in plans + more:
            left.append((SubjectId("topic", plan.topic), Unplanned.KEEPS_LEADERS))
            left += [(name, Unplanned.KEEPS_LEADERS) for name in plan.findings]
        return [], skipped + left
    return plans + more, skipped + left


def _make_even(
    context: PlanContext, skew: list[Finding], leader_counts: LeaderCounts, taken: set[TopicPartition]
) -> tuple[list[PlacementPlan], Skipped]:
    """Topics that are uneven by themselves first, then the cluster as it would be after them."""
    skipped: Skipped = [(finding.id, Unplanned.HELD) for finding in skew if finding.held]
    scopes: list[tuple[Finding, list[PartitionState]]] = []
    for finding in sorted((f for f in skew if not f.held), key=lambda f: (f.subject.kind != "topic", f.id)):
        scope = _scope(finding, context, taken)
        if scope:
            scopes.append((finding, scope))
        else:
            skipped.append((finding.id, Unplanned.EXCLUDED))
    names = sorted({state.id.topic for _, scope in scopes for state in scope})
    readers = known_readers(names, context.snapshot, context.memo)
    leaders: dict[TopicPartition, int] = {}
    answers: dict[str, set[str]] = {}
    for finding, scope in scopes:
        changed = _even(scope, leaders, leader_counts, readers)
        leaders.update(changed)
        for partition in changed:
            answers.setdefault(partition.topic, set()).add(finding.id)
        if not changed:
            skipped.append((finding.id, Unplanned.INFEASIBLE))
    states = {state.id: state for _, scope in scopes for state in scope}
    changes = [with_leader(states[p], leader) for p, leader in leaders.items() if leader != states[p].replicas[0]]
    taken.update(change.id for change in changes)
    return _plans(changes, scopes, answers, leader_counts), skipped


def _scope(finding: Finding, context: PlanContext, taken: set[TopicPartition]) -> list[PartitionState]:
    topics: Iterable[TopicState] = context.snapshot.topics.values()
    if finding.subject.kind == "topic":
        topic = context.snapshot.topics.get(finding.subject.name)
        topics = [topic] if topic is not None else []
    return [
        state
        for topic in topics
        if not left_out(topic, context.limits)
        for state in topic.partitions
        if state.id not in taken and state.replicas
    ]


def _even(
    scope: list[PartitionState],
    leaders: Mapping[TopicPartition, int],
    leader_counts: LeaderCounts,
    readers: ByPartition,
) -> dict[TopicPartition, int]:
    """Partition -> its new preferred leader, for those that change; ``leaders`` are changes made before.

    How many each rack leads is settled first. Of all choices that come to this by as few changes, it is one that lets
    no broker lead more than before or than an even share, where there is one, and then has fewest fetches across racks.
    """
    options = _options(scope, leaders, leader_counts)
    racks = balance_leaders(options)
    if not racks:
        return {}
    open_ones = [state for state in scope if options[state.id].rack is not None]
    now = {s.id: leader for s in open_ones if (leader := _leader(s, leaders, leader_counts)) is not None}
    candidates = [
        [
            LeaderCandidate(
                broker,
                int(broker != now[state.id]),
                leader_counts.fetched_across(state.replicas, broker, readers.get(state.id)),
            )
            for broker in dict.fromkeys((now[state.id], *leader_counts.candidates(state)))
        ]
        for state in open_ones
    ]
    leaders_of_rack = Counter(racks.get(name, of.rack or "") for name, of in options.items() if of.rack is not None)
    room = leader_counts.room(Counter(now.values()), hard=True)._replace(racks=leaders_of_rack)
    chosen = dict(zip(now, optimal_leaders(candidates, room), strict=True))
    changed = {name: broker for name, broker in chosen.items() if broker != now[name]}
    topics = {name.topic for name in changed}
    for state in open_ones:
        if state.replicas[0] in leader_counts.gone and state.id not in leaders and state.id.topic in topics:
            changed[state.id] = chosen[state.id]
    for name, broker in changed.items():
        leader_counts.give(now[name], broker)
    return changed


def _leader(state: PartitionState, leaders: Mapping[TopicPartition, int], leader_counts: LeaderCounts) -> int | None:
    made = leaders.get(state.id)
    return made if made is not None else leader_counts.preferred(state)


def _options(
    scope: list[PartitionState], leaders: Mapping[TopicPartition, int], leader_counts: LeaderCounts
) -> dict[TopicPartition, LeaderOption]:
    racks = leader_counts.rack_of
    options: dict[TopicPartition, LeaderOption] = {}
    for state in scope:
        leader = _leader(state, leaders, leader_counts)
        options[state.id] = LeaderOption(
            racks.get(leader) if leader is not None else None,
            tuple(sorted({racks[broker] for broker in leader_counts.candidates(state)})),
            tuple(racks[broker] for broker in state.replicas if broker in racks and broker not in leader_counts.gone),
        )
    return options


def _plans(
    changes: list[PlacementChange],
    scopes: list[tuple[Finding, list[PartitionState]]],
    answers: Mapping[str, set[str]],
    leader_counts: LeaderCounts,
) -> list[PlacementPlan]:
    """One plan per topic, with the fewest changes that evenness needs of it."""
    least: dict[str, int] = {}
    everywhere = 0
    for finding, scope in scopes:
        needed = fewest_changes(_options(scope, {}, leader_counts))
        if finding.subject.kind == "topic":
            least[finding.subject.name] = needed
        else:
            everywhere = max(everywhere, needed)
    plans: list[PlacementPlan] = []
    for topic, of_topic in _by_topic(changes).items():
        bound = max(least.get(topic, 0), everywhere - (len(changes) - len(of_topic)))
        plan = PlacementPlan(
            topic=topic,
            reason=ProposalReason.LEADERS_EVEN,
            changes=tuple(of_topic),
            leaders_only=True,
            lower_bound=min(bound, len(of_topic)),  # evenness itself may be out of reach
            optimal=len(of_topic) == bound,
            findings=tuple(sorted(answers[topic])),
        )
        plans.append(plan)
    return plans


def _by_topic(changes: Iterable[PlacementChange]) -> dict[str, list[PlacementChange]]:
    by_topic: dict[str, list[PlacementChange]] = {}
    for change in sorted(changes):
        by_topic.setdefault(change.id.topic, []).append(change)
    return by_topic
