"""Which in-sync replica shall be the preferred leader? Only the order of replicas changes, no data moves.

Two reasons, in this order: leaders were found to be so uneven over the racks that it hurts (LEADERS_EVEN, here); or
most readers of a partition live in another rack than its leader (LEADERS_TO_READERS, in `readers`).

Invariants: only a live, unfenced broker in the ISR becomes preferred leader; a topic that is planned for has none on a
broker that is gone, where another replica can lead; no partition is planned for twice; running
reassignments are left alone; with ``keep_leaders`` nothing is planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from agent.plan.even import Option, Seats, even_racks, fewest_changes, led_by
from agent.plan.found import Scene, gone_brokers
from agent.plan.placements import Skipped, left_out
from agent.plan.readers import follow_readers
from agent.plan.reading import Readers, known_readers
from agent.values.finding import Finding, FindingReason
from agent.values.plan import PlacementPlan, Unplanned
from agent.values.proposal import PlacementChange, ProposalReason
from agent.values.snapshot import PartitionState, TopicState
from assignors.optimal import optimal_leaders
from assignors.problem import LeaderCandidate, TopicPartition

ByPartition = Mapping[TopicPartition, Readers]
"""Partition -> its readers."""


def place_leaders(scene: Scene, busy: Iterable[TopicPartition]) -> tuple[list[PlacementPlan], Skipped]:
    """New orders of replicas, evenness first, readers second; ``busy`` partitions are planned for otherwise."""
    skew = scene.found.of(FindingReason.LEADER_SKEW)
    if not skew and scene.snapshot.selector_is_rack_aware is not False:
        return [], []
    taken = {*busy, *scene.snapshot.reassignments}
    seats = Seats(scene.snapshot, scene.held, scene.limits, gone_brokers(scene.found))
    plans, skipped = _make_even(scene, skew, seats, taken)
    more, left = follow_readers(scene, seats, taken)
    if scene.limits.plan.keep_leaders:
        names = {name for plan in plans + more for name in (f"topic/{plan.topic}", *plan.findings)}
        return [], skipped + left + [(name, Unplanned.KEEPS_LEADERS) for name in sorted(names)]
    return plans + more, skipped + left


def _make_even(
    scene: Scene, skew: list[Finding], seats: Seats, taken: set[TopicPartition]
) -> tuple[list[PlacementPlan], Skipped]:
    """Topics that are uneven by themselves first, then the cluster as it would be by then."""
    skipped: Skipped = [(finding.id, Unplanned.HELD) for finding in skew if finding.held]
    scopes: list[tuple[Finding, list[PartitionState]]] = []
    for finding in sorted((f for f in skew if not f.held), key=lambda f: (f.subject.kind != "topic", f.id)):
        scope = _scope(finding, scene, taken)
        if scope:
            scopes.append((finding, scope))
        else:
            skipped.append((finding.id, Unplanned.EXCLUDED))
    names = sorted({state.id.topic for _, scope in scopes for state in scope})
    readers = known_readers(names, scene.snapshot, scene.memo)
    leaders: dict[TopicPartition, int] = {}
    answers: dict[str, set[str]] = {}
    for finding, scope in scopes:
        changed = _even(scope, leaders, seats, readers)
        leaders.update(changed)
        for partition in changed:
            answers.setdefault(partition.topic, set()).add(finding.id)
        if not changed:
            skipped.append((finding.id, Unplanned.INFEASIBLE))
    states = {state.id: state for _, scope in scopes for state in scope}
    changes = [led_by(states[p], leader) for p, leader in leaders.items() if leader != states[p].replicas[0]]
    taken.update(change.id for change in changes)
    return _plans(changes, scopes, answers, seats), skipped


def _scope(finding: Finding, scene: Scene, taken: set[TopicPartition]) -> list[PartitionState]:
    topics: Iterable[TopicState] = scene.snapshot.topics.values()
    if finding.subject.kind == "topic":
        topic = scene.snapshot.topics.get(finding.subject.name)
        topics = [topic] if topic is not None else []
    return [
        state
        for topic in topics
        if not left_out(topic, scene.limits)
        for state in topic.partitions
        if state.id not in taken and state.replicas
    ]


def _even(
    scope: list[PartitionState], leaders: Mapping[TopicPartition, int], seats: Seats, readers: ByPartition
) -> dict[TopicPartition, int]:
    """Partition -> its new preferred leader, for those that change; ``leaders`` are changes made before.

    How many each rack leads is settled first. Of all choices that come to this by as few changes, it is one that lets
    no broker lead more than before or than an even share, where there is one, and then has fewest fetches across racks.
    """
    options = _options(scope, leaders, seats)
    racks = even_racks(options)
    if not racks:
        return {}
    open_ones = [state for state in scope if options[state.id].rack is not None]
    now = {s.id: leader for s in open_ones if (leader := _leader(s, leaders, seats)) is not None}
    candidates = [
        [
            LeaderCandidate(
                broker,
                int(broker != now[state.id]),
                seats.fetched_across(state.replicas, broker, readers.get(state.id)),
            )
            for broker in dict.fromkeys((now[state.id], *seats.candidates(state)))
        ]
        for state in open_ones
    ]
    led = Counter(racks.get(name, of.rack or "") for name, of in options.items() if of.rack is not None)
    room = seats.room(Counter(now.values()), hard=True)._replace(racks=led)
    chosen = dict(zip(now, optimal_leaders(candidates, room), strict=True))
    changed = {name: broker for name, broker in chosen.items() if broker != now[name]}
    topics = {name.topic for name in changed}
    for state in open_ones:
        if state.replicas[0] in seats.gone and state.id not in leaders and state.id.topic in topics:
            changed[state.id] = chosen[state.id]
    for name, broker in changed.items():
        seats.give(now[name], broker)
    return changed


def _leader(state: PartitionState, leaders: Mapping[TopicPartition, int], seats: Seats) -> int | None:
    made = leaders.get(state.id)
    return made if made is not None else seats.preferred(state)


def _options(
    scope: list[PartitionState], leaders: Mapping[TopicPartition, int], seats: Seats
) -> dict[TopicPartition, Option]:
    racks = seats.rack_of
    options: dict[TopicPartition, Option] = {}
    for state in scope:
        leader = _leader(state, leaders, seats)
        options[state.id] = Option(
            racks.get(leader) if leader is not None else None,
            tuple(sorted({racks[broker] for broker in seats.candidates(state)})),
            tuple(racks[broker] for broker in state.replicas if broker in racks and broker not in seats.gone),
        )
    return options


def _plans(
    changes: list[PlacementChange],
    scopes: list[tuple[Finding, list[PartitionState]]],
    answers: Mapping[str, set[str]],
    seats: Seats,
) -> list[PlacementPlan]:
    """One plan per topic, with the fewest changes that evenness needs of it."""
    least: dict[str, int] = {}
    everywhere = 0
    for finding, scope in scopes:
        needed = fewest_changes(_options(scope, {}, seats))
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
