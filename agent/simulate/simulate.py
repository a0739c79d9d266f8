"""What would be, if: the world as it is and as it would be, through the very stages of the agent; nothing is asked.

Every group that a change concerns gets three columns: now, what its own assignor would give it after the change, and
the best that is possible then. Beside them what would be found that is not found now and the other way round, what
would be proposed, and what losing each rack would cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from agent.detect.find import detect
from agent.money.costs import costs_of
from agent.money.traffic import Traffic
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.simulate.changes import Change, RemoveRack
from agent.simulate.loss import RackLoss, rack_losses
from agent.simulate.what_if import World, what_if
from agent.simulate.what_if_columns import Simulated, simulated_groups
from agent.values.absences import gone_for_good
from agent.values.finding import Finding
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.proposal import Proposal
from agent.values.snapshot import Snapshot


class AddedCopies(NamedTuple):
    """The added replicas of one topic."""

    topic: str
    replicas: int
    bytes_to_copy: int | None
    """Sizes of their partitions, once for each added replica; None where a size is unknown."""
    now: Traffic
    """Copies of the topic across racks without the changes."""
    then: Traffic
    """The same with the changes."""


def added_copies(before: Snapshot, after: Snapshot) -> tuple[AddedCopies, ...]:
    """A row for every topic that gets a replica on a broker where it has none of that partition, sorted by topic."""
    had = {state.id: set(state.replicas) for topic in before.topics.values() for state in topic.partitions}
    found: dict[str, list[int | None]] = {}
    for name, topic in sorted(after.topics.items()):
        for state in topic.partitions:
            added = len(set(state.replicas) - had.get(state.id, set()))
            found.setdefault(name, []).extend([before.size_bytes.get(state.id)] * added)
    added_to = {name: sizes for name, sizes in found.items() if sizes}
    if not added_to:
        return ()
    now, then = costs_of(before).topics, costs_of(after).topics
    return tuple(
        AddedCopies(
            name,
            len(sizes),
            None if None in sizes else sum(size for size in sizes if size is not None),
            now[name].replicate,
            then[name].replicate,
        )
        for name, sizes in added_to.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """All that changes would change."""

    changes: tuple[str, ...]
    groups: tuple[Simulated, ...]
    found: tuple[Finding, ...]
    """Findings that are not there now."""
    gone: tuple[Finding, ...]
    proposals: tuple[Proposal, ...]
    """What rackwise would propose then."""
    proposals_now: tuple[Proposal, ...]
    """What it proposes without the changes."""
    copies: tuple[AddedCopies, ...]
    """What replicas that are added cost, by topic."""
    losses: tuple[tuple[str, RackLoss | None, RackLoss | None], ...]
    """(rack, what losing it costs now, and then) where that differs; None where there is no such rack."""


def simulate(snapshot: Snapshot, memory: Memory, limits: Limits, changes: tuple[Change, ...]) -> Simulation:
    """What those changes would lead to. Raises ``BadInput`` for changes that cannot be."""
    after = what_if(World(snapshot, limits), changes)
    here = {broker.id for broker in snapshot.brokers if broker.alive}
    gone = here - {broker.id for broker in after.snapshot.brokers if broker.alive}
    later = gone_for_good(memory, after.snapshot, after.limits.racks.broker_absent_for_ms, gone)
    before, then = detect(snapshot, memory, limits, None), detect(after.snapshot, later, after.limits, None)
    plan = make_plan(after.snapshot, then, after.limits, None)
    plan_now = make_plan(snapshot, before, limits, None)
    known, expected = {one.id for one in before.findings}, {one.id for one in then.findings}
    losses = {loss.rack: loss for loss in rack_losses(snapshot)}
    losses_then = {loss.rack: loss for loss in rack_losses(after.snapshot)}
    return Simulation(
        changes=tuple(map(str, changes)),
        groups=simulated_groups(
            World(snapshot, limits),
            before.assessments,
            after,
            racks_go=any(isinstance(one, RemoveRack) for one in changes),
        ),
        found=tuple(one for one in then.findings if one.id not in known),
        gone=tuple(one for one in before.findings if one.id not in expected),
        proposals=propose(after.snapshot, plan, then, after.limits, None),
        proposals_now=propose(snapshot, plan_now, before, limits, None),
        copies=added_copies(snapshot, after.snapshot),
        losses=tuple(
            (rack, losses.get(rack), losses_then.get(rack))
            for rack in sorted({*losses, *losses_then})
            if losses.get(rack) != losses_then.get(rack)
        ),
    )
