"""What a group's findings need to know of the topics that it reads, worked out once per topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import NamedTuple

from agent.detect.assess import topics_by_group
from agent.detect.ground import Ground, View
from agent.memo import Memo
from agent.model.snapshot import Group, StreamsGroup, TopicState
from agent.reuse import each

_ID = itemgetter(0)


class TopicFacts(NamedTuple):
    """A topic's replica racks as clients see them: absent brokers have none (they know no earlier look)."""

    racks: frozenset[str]
    """All racks that hold a replica."""
    everywhere: bool
    """True when every partition has a replica in each of these racks."""
    rackless: tuple[int, ...]
    """Brokers that hold replicas and show clients no rack, sorted."""
    unsteady: bool
    """True when a replica is on a broker whose rack does not hold still."""


class Reading(NamedTuple):
    """The topics that a group reads, and what is known of them."""

    topics: tuple[str, ...]
    facts: tuple[TopicFacts | None, ...]
    """One per topic; None for a topic that is not shown."""
    changelogs: tuple[str, ...] = ()
    changelog_facts: tuple[TopicFacts | None, ...] = ()

    @property
    def shown(self) -> list[TopicFacts]:
        """The facts of the source topics that are shown."""
        return [facts for facts in self.facts if facts is not None]

    @property
    def unsteady(self) -> bool:
        """True when something that the group reads rests on a rack that does not hold still."""
        return any(facts.unsteady for facts in self.shown)


def readings(view: View, memo: Memo) -> list[Reading]:
    """What every group reads, in the snapshot's order."""
    snapshot, ground = view.snapshot, view.ground
    known = memo.of(("facts",), (snapshot.topics, ground), lambda: _facts(snapshot.topics, ground, memo))

    names = topics_by_group(snapshot, memo)

    def read(group: Group) -> Reading:
        topics, logs = names[group.id], _changelogs(group)
        return Reading(topics, tuple(map(known.get, topics)), logs, tuple(map(known.get, logs)))

    return each(memo, "readings", snapshot.groups.values(), _ID, read, context=(known,))


def _facts(topics: Mapping[str, TopicState], ground: Ground, memo: Memo) -> dict[str, TopicFacts]:
    facts = each(memo, "topic facts", topics.values(), _ID, _facts_on(ground), context=(ground,))
    return dict(zip(topics, facts, strict=True))


def _changelogs(group: Group) -> tuple[str, ...]:
    """Changelog topics of a group, sorted."""
    if not isinstance(group, StreamsGroup) or group.topology is None:
        return ()
    return tuple(sorted({changelog.topic for task in group.topology.tasks for changelog in task.changelogs}))


def _facts_on(ground: Ground) -> Callable[[TopicState], TopicFacts]:
    seen: dict[tuple[int, ...], tuple[frozenset[str], tuple[int, ...], bool]] = {}
    same: dict[TopicFacts, TopicFacts] = {}  # thousands of topics have equal facts
    shown: Mapping[int, str] = ground.shown

    def facts(topic: TopicState) -> TopicFacts:
        rackless: set[int] = set()
        unsteady = False
        sets = set()
        for state in topic.partitions:
            known = seen.get(state.replicas)
            if known is None:
                racks = frozenset([shown[replica] for replica in state.replicas if replica in shown])
                without = tuple([replica for replica in state.replicas if replica not in shown])
                known = seen[state.replicas] = racks, without, not ground.unsteady.isdisjoint(state.replicas)
            sets.add(known[0])
            if known[1]:
                rackless.update(known[1])
            unsteady = unsteady or known[2]
        union = frozenset().union(*sets)
        found = TopicFacts(union, bool(union) and sets == {union}, tuple(sorted(rackless)), unsteady)
        return same.setdefault(found, found)

    return facts
