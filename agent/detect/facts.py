"""What a group's findings need to know of the topics that it reads, worked out once per topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter, itemgetter
from typing import NamedTuple

from agent.detect.assess import topics_by_group
from agent.detect.ground import Ground, View
from agent.values.memo import Memo, each
from agent.values.snapshot import Group, StreamsGroup, TopicState

_ID = itemgetter(0)
_REPLICAS = attrgetter("replicas")


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
    size: int = 0
    """Partitions it has, counted to the highest number."""


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


class _Seen(NamedTuple):
    """What clients see of one list of replicas."""

    racks: frozenset[str]
    rackless: tuple[int, ...]
    unsteady: bool


class _Sights(dict[tuple[int, ...], int]):
    """List of replicas -> number of what is seen of it: many lists show the same few racks."""

    __slots__ = ("_ground", "_numbers")

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self._ground = ground
        self._numbers: dict[_Seen, int] = {}

    def __missing__(self, replicas: tuple[int, ...]) -> int:
        shown, unsteady = self._ground.shown, self._ground.unsteady
        seen = _Seen(
            frozenset([shown[replica] for replica in replicas if replica in shown]),
            tuple([replica for replica in replicas if replica not in shown]),
            not unsteady.isdisjoint(replicas),
        )
        number = self[replicas] = self._numbers.setdefault(seen, len(self._numbers))
        return number

    def together(self, numbers: frozenset[int], size: int) -> TopicFacts:
        """The facts of a topic whose partitions have these sights."""
        all_seen = list(self._numbers)
        seen = [all_seen[number] for number in numbers]
        union = frozenset().union(*[one.racks for one in seen])
        return TopicFacts(
            union,
            bool(union) and all(one.racks == union for one in seen),
            tuple(sorted({broker for one in seen for broker in one.rackless})),
            any(one.unsteady for one in seen),
            size,
        )


def _facts_on(ground: Ground) -> Callable[[TopicState], TopicFacts]:
    sights = _Sights(ground)
    by_sights: dict[tuple[frozenset[int], int], TopicFacts] = {}
    same: dict[TopicFacts, TopicFacts] = {}  # thousands of topics have equal facts

    def facts(topic: TopicState) -> TopicFacts:
        numbers = frozenset(map(sights.__getitem__, map(_REPLICAS, topic.partitions)))
        key = numbers, topic.partitions[-1].id.partition + 1 if topic.partitions else 0
        found = by_sights.get(key)
        if found is None:
            found = sights.together(*key)
            found = by_sights[key] = same.setdefault(found, found)
        return found

    return facts
