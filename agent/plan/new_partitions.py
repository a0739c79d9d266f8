"""Placement of new partitions: Kafka's own placer and the best, for a new topic or a larger one.

Kafka starts at random: one placement of its distribution is shown, by the racks that brokers report. The best is
`assignors.optimal.new_partitions`, by all known racks, existing replicas and preferred leaders. No existing replica
moves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Literal, NamedTuple

from agent.errors import BadInput, PartialAnswer
from agent.values.kafka import MAX_TOPIC_CHARS
from agent.values.number_format import counted, few
from agent.values.observation import Gap, ObservationPart
from agent.values.snapshot import RackState, Snapshot, TopicState
from agent.values.throttles import target_replicas
from assignors.kafka.exceptions import KafkaRefusal
from assignors.kafka.replica_placement import BrokerMetadata, PlacementStart, add_partitions, create_topic
from assignors.kafka.striped_placer import UsableBroker, place_striped
from assignors.optimal.new_partitions import ExistingReplicas, optimal_new_partitions
from assignors.problem import BadProblem, ReplicaBroker

FORMS = "topic/NAME, topic/NAME/PARTITION, group/NAME, broker/ID, or the id of a proposal"
PROPOSAL = re.compile(r"p-[0-9a-f]{12}(\.[0-9]+)?")
BEGINNING = re.compile(r"p-[0-9a-f]{0,11}")
"""An id of a proposal that was cut short."""
PROPOSALS = "proposal"
_MOST_BROKERS = 20
_PARTS = {"topic": (ObservationPart.TOPICS,), "group": (ObservationPart.GROUPS,), "broker": (ObservationPart.BROKERS,)}
_CLOSE = 0.6
_CLOSER = 0.7
"""For a name of another kind: short names are soon half alike."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``Did you mean NAME? `` with the nearest name there is, to begin a remedy with; empty where none is near."""
    near = get_close_matches(name, tuple(known), n=1, cutoff=_CLOSE)
    return f"Did you mean {near[0]}? " if near else ""


def unknown_topic(
    name: str, snapshot: Snapshot, todo: str = "List all topics: rackwise topics"
) -> BadInput | PartialAnswer:
    """The error for a topic that is not in the look: it does not exist, or its name may not have been read."""
    return _unknown("topic", name, snapshot.topics, snapshot, todo)


def unknown_group(name: str, snapshot: Snapshot) -> BadInput | PartialAnswer:
    """The error for a group that is not in the look, in the same way."""
    return _unknown("group", name, snapshot.groups, snapshot, "List all groups: rackwise groups --all")


def _unknown(kind: str, name: str, known: Iterable[str], snapshot: Snapshot, todo: str) -> BadInput | PartialAnswer:
    todo = f"{did_you_mean(name, known)}{todo}"
    gap = gap_for(kind, snapshot)
    if gap is None:
        return BadInput(f"there is no {kind} {name!r}", why="no broker lists it", todo=todo)
    return perhaps_unread(f"{kind} {name!r}", gap, todo)


def gap_for(kind: str, snapshot: Snapshot) -> Gap | None:
    """The gap in which there may be a subject of this kind; None when all names of the kind were read.

    A proposal may rest on anything, so that any gap may be why it is not made.
    """
    missed = [gap for gap in snapshot.gaps if gap.is_missed]
    if kind == PROPOSALS:
        return missed[0] if missed else None
    parts = _PARTS.get(kind, ())
    of_rights = (
        gap for gap in missed if gap.part is ObservationPart.RIGHTS and gap.subject == ObservationPart.GROUPS.value
    )
    listed = next((gap for gap in missed if gap.part in parts), None)
    return listed or (next(of_rights, None) if kind == "group" else None)


def perhaps_unread(subject: str, gap: Gap, todo: str) -> PartialAnswer:
    """The error for a name that was not found in a look without all names: it may exist all the same."""
    why = f"not all {gap.part.value} could be read ({gap.cause.value}), so it may exist"
    return PartialAnswer(f"{subject} was not found", why=why, todo=todo)


def subjects(snapshot: Snapshot, proposals: Iterable[str]) -> tuple[str, ...]:
    """All that can be explained, in their forms."""
    return (
        *(f"topic/{name}" for name in snapshot.topics),
        *(f"group/{name}" for name in snapshot.groups),
        *(f"broker/{broker.id}" for broker in snapshot.brokers),
        *proposals,
    )


def why_unknown(subject: str, snapshot: Snapshot, known: Iterable[str]) -> str | None:
    """Why there is nothing to explain, as one clause; None when there is."""
    if subject in known:
        return None
    kind, _, name = subject.partition("/")
    topic, _, number = name.rpartition("/")
    if kind == "topic" and topic in snapshot.topics:
        return _no_partition(snapshot.topics[topic], number)
    if kind == "broker":
        return f"there is no broker {name}{_brokers(snapshot)}"
    if kind in {"topic", "group"}:
        return f"there is no {kind} {name}"
    return _no_proposal(subject)


def _no_proposal(subject: str) -> str:
    if BEGINNING.fullmatch(subject):
        return "the id of a proposal is p- and 12 hex digits"
    if PROPOSAL.fullmatch(subject):
        return "no proposal has this id now; other moves of the same subject are a proposal with another id"
    return "it is no subject"


def _brokers(snapshot: Snapshot) -> str:
    """``; brokers: 1, 2, 3``."""
    every = [str(broker.id) for broker in snapshot.brokers]
    return f"; brokers: {few(every, _MOST_BROKERS)}" if every else ""


def proposals_by_prefix(beginning: str, proposals: Iterable[str]) -> tuple[str, ...]:
    """The ids of proposals that begin with an id that was cut short; none for anything else."""
    if BEGINNING.fullmatch(beginning) is None or beginning == "p-":
        return ()
    return tuple(one for one in proposals if one.startswith(beginning))


def _no_partition(topic: TopicState, number: str) -> str | None:
    if number.isdecimal() and any(state.id.partition == int(number) for state in topic.partitions):
        return None
    return f"topic {topic.name} has {counted(len(topic.partitions), 'partition')}, and no partition {number}"


def nearest_subject(subject: str, known: Iterable[str]) -> str | None:
    """The nearest subject that there is; None when none is near. Ids of proposals are hashes: none is near another."""
    every = tuple(one for one in known if PROPOSAL.fullmatch(one) is None)
    if PROPOSAL.fullmatch(subject) or BEGINNING.fullmatch(subject):
        return None
    kind, _, name = subject.partition("/")
    exact = next((one for one in every if one.partition("/")[2] in {subject, name} and name in one), None)
    if exact is not None and exact != subject:
        return exact
    same_kind = [one for one in every if one.startswith(f"{kind}/")]
    # Of the same kind first: what they have in common would else make all topics look alike.
    names = {one.partition("/")[2]: one for one in same_kind}
    near = get_close_matches(name, names, n=1, cutoff=_CLOSE)
    if near:
        return names[near[0]]
    anything = {one.partition("/")[2] or one: one for one in every}
    near = get_close_matches(name or subject, anything, n=1, cutoff=_CLOSER)
    return anything[near[0]] if near else None


MOST_PARTITIONS = 100_000
"""Kafka's controller refuses more than 10,000 in one request; beyond this a typing error is the likelier reading."""
_LEGAL = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_TOPIC_CHARS}}}")

NextInt = Callable[[int], int]
"""Bound -> a number from 0 to below it."""


class KafkaPlacer(StrEnum):
    """Which of Kafka's placers the cluster has."""

    STRIPED = "striped"
    """KRaft controllers, Kafka 3.0 on; the only one from 4.0 on."""
    KIP_36 = "kip-36"
    """Clusters with ZooKeeper, up to 3.9."""


class ClusterPlacer(NamedTuple):
    """The placer of the cluster and its random draws."""

    placer: KafkaPlacer
    next_int: NextInt


class NewPlacementSpread(NamedTuple):
    """How even a placement leaves things; each pair is the least and the most of all brokers that take replicas."""

    most_in_a_rack: int
    """Replicas of one new partition in one rack."""
    against_the_rule: int
    """New partitions with more than ceil(RF / racks) replicas in one rack."""
    topic_replicas: tuple[int, int]
    """Of the topic, those that were there included."""
    topic_leaders: tuple[int, int]
    cluster_replicas: tuple[int, int]
    cluster_leaders: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlacement:
    """The replicas of the new partitions, by one placer."""

    by: Literal["kafka", "optimum"]
    """``kafka`` or ``optimum``."""
    topic: str
    existing: tuple[tuple[int, ...], ...]
    """Replicas of the partitions that are there, by number; empty for a new topic."""
    replicas: tuple[tuple[int, ...], ...]
    """Replicas of the new ones, preferred leader first; they are numbered on from ``existing``. Empty when refused."""
    spread: NewPlacementSpread | None
    sentence: str
    """How it was computed, and its certainty."""
    refused: str | None = None
    """Kafka's error instead of a placement."""


def place_new_topic(
    snapshot: Snapshot, topic: str, partitions: int, replication_factor: int, kafka: ClusterPlacer
) -> tuple[NewPlacement, NewPlacement]:
    """Kafka's placement of a new topic and the best one. Raises ``BadInput``."""
    _check_name(topic, snapshot)
    return _both(_Asked(topic, (), partitions, replication_factor), snapshot, kafka)


def place_added(
    snapshot: Snapshot, topic: str, partitions: int, kafka: ClusterPlacer
) -> tuple[NewPlacement, NewPlacement]:
    """Kafka's placement of the partitions that a topic lacks to have ``partitions``, and the best. Raises BadInput."""
    state = snapshot.topics.get(topic)
    if state is None:
        raise unknown_topic(topic, snapshot)
    if not state.partitions:
        raise BadInput(f"topic {topic} has no partitions yet", why="it is still being created", todo="Try again.")
    now = len(state.partitions)
    if partitions <= now:
        raise BadInput(
            f"topic {topic} has {counted(now, 'partition')} already",
            why=f"{partitions} would not be more, and Kafka takes none away",
            todo=f"Name a number above {now}: it is the whole number, as in kafka-topics --partitions.",
        )
    existing = tuple(target_replicas(p, snapshot.reassignments.get(p.id)) for p in state.partitions)
    return _both(_Asked(topic, existing, partitions - now, len(existing[0])), snapshot, kafka)


class _Asked(NamedTuple):
    topic: str
    existing: tuple[tuple[int, ...], ...]
    more: int
    replication_factor: int


def _check_name(topic: str, snapshot: Snapshot) -> None:
    if topic in snapshot.topics:
        raise BadInput(
            f"topic {topic} is there already",
            why=f"it has {counted(len(snapshot.topics[topic].partitions), 'partition')}",
            todo=f"Give it more with: rackwise plan --add-partitions {topic}=N",
        )
    if _LEGAL.fullmatch(topic) is None or topic in (".", ".."):
        raise BadInput(
            f"{topic!r} is no name for a topic",
            why=f"Kafka takes 1 to {MAX_TOPIC_CHARS} of the characters a-z, A-Z, 0-9, '.', '_' and '-'",
            todo="Name the topic otherwise.",
        )
    same = sorted(name for name in snapshot.topics if name.replace(".", "_") == topic.replace(".", "_"))
    if same:
        raise BadInput(
            f"topic {topic} would collide with {same[0]}",
            why="Kafka's metrics write '.' and '_' alike, so it refuses the second name",
            todo="Name the topic otherwise.",
        )


def _both(asked: _Asked, snapshot: Snapshot, kafka: ClusterPlacer) -> tuple[NewPlacement, NewPlacement]:
    for what, number in (("partitions", asked.more), ("replicas of a partition", asked.replication_factor)):
        if number < 1:
            raise BadInput(f"a topic cannot have {number} {what}", why="there is at least one", todo="Name 1 or more.")
    if asked.more > MOST_PARTITIONS:
        raise BadInput(
            f"{asked.more} new partitions are too many",
            why=f"more than {MOST_PARTITIONS} are not placed at once",
            todo="Add them in several steps.",
        )
    best = _best(asked, snapshot)
    return _kafka(asked, snapshot, kafka), best


def _best(asked: _Asked, snapshot: Snapshot) -> NewPlacement:
    brokers = takers(snapshot)
    try:
        placed = optimal_new_partitions(brokers, asked.more, asked.replication_factor, _standing(asked, snapshot))
    except BadProblem as error:
        raise BadInput(
            f"{counted(asked.replication_factor, 'replica')} of a partition cannot be placed",
            why=f"only {counted(_usable(brokers), 'broker')} can take replicas (alive, not fenced, not cordoned, "
            "rack known)",
            todo="Name a smaller replication factor, or bring brokers back.",
        ) from error
    proof = "no placement is more even" if placed.leaders_optimal else "leaders as even as these replicas allow"
    sentence = f"at most {placed.most_in_a_rack} of a partition in one rack, the least that is possible; {proof}"
    if away := [broker.id for broker in snapshot.brokers if not broker.alive]:
        sentence += f"; brokers that are absent take nothing: {', '.join(map(str, away))}"
    if _without_rack(brokers):
        sentence += f"; brokers without a known rack take nothing: {', '.join(map(str, _without_rack(brokers)))}"
    return NewPlacement(
        by="optimum",
        topic=asked.topic,
        existing=asked.existing,
        replicas=placed.replicas,
        spread=_spread(asked, placed.replicas, snapshot),
        sentence=sentence,
    )


def takers(snapshot: Snapshot) -> tuple[ReplicaBroker, ...]:
    """All brokers; those accept replicas that are surely there and open for them."""
    return tuple(
        ReplicaBroker(
            id=broker.id,
            rack=broker.rack.name if broker.rack.state is RackState.KNOWN else None,
            accepts=broker.alive and not broker.fenced and not broker.cordoned,
        )
        for broker in snapshot.brokers
    )


def _kafka(asked: _Asked, snapshot: Snapshot, kafka: ClusterPlacer) -> NewPlacement:
    try:
        replicas, how = (_striped if kafka.placer is KafkaPlacer.STRIPED else _kip_36)(asked, snapshot, kafka.next_int)
    except KafkaRefusal as refusal:
        why = f"Kafka would refuse: {refusal.kafka_name}: {refusal}"
        return NewPlacement(
            by="kafka", topic=asked.topic, existing=asked.existing, replicas=(), spread=None, sentence=why,
            refused=str(refusal),
        )  # fmt: skip
    return NewPlacement(
        by="kafka",
        topic=asked.topic,
        existing=asked.existing,
        replicas=replicas,
        spread=_spread(asked, replicas, snapshot),
        sentence=how,
    )


def _striped(asked: _Asked, snapshot: Snapshot, next_int: NextInt) -> tuple[tuple[tuple[int, ...], ...], str]:
    brokers = [
        UsableBroker(broker.id, broker.rack.rack_id, fenced=not broker.alive or broker.fenced is True)
        for broker in snapshot.brokers
        if broker.host is not None and not broker.cordoned
    ]
    replicas = place_striped(brokers, asked.more, asked.replication_factor, next_int)
    return replicas, (
        "one answer of the controller's striped placer; its draws are random, so only the distribution is Kafka's"
    )


def _kip_36(asked: _Asked, snapshot: Snapshot, next_int: NextInt) -> tuple[tuple[tuple[int, ...], ...], str]:
    brokers = [BrokerMetadata(broker.id, broker.rack.rack_id) for broker in snapshot.brokers if broker.alive]
    if asked.existing:
        placed = add_partitions(brokers, asked.topic, dict(enumerate(asked.existing)), len(asked.existing) + asked.more)
        return tuple(placed[number] for number in sorted(placed)), "Kafka's answer (KIP-36), of which nothing is random"
    placed = create_topic(
        brokers, asked.more, asked.replication_factor, lambda count: PlacementStart.drawn(next_int, count)
    )
    return tuple(placed[number] for number in sorted(placed)), (
        "one answer of KIP-36's placer; where it begins is random, so only the distribution is Kafka's"
    )


def _standing(asked: _Asked, snapshot: Snapshot) -> ExistingReplicas:
    lists = [
        target_replicas(state, snapshot.reassignments.get(state.id))
        for topic in snapshot.topics.values()
        for state in topic.partitions
    ]
    return ExistingReplicas(
        replicas=Counter(broker for replicas in lists for broker in replicas),
        leaders=Counter(replicas[0] for replicas in lists if replicas),
        topic_replicas=Counter(broker for replicas in asked.existing for broker in replicas),
        topic_leaders=Counter(replicas[0] for replicas in asked.existing if replicas),
    )


def _spread(asked: _Asked, replicas: Iterable[tuple[int, ...]], snapshot: Snapshot) -> NewPlacementSpread:
    rows = list(replicas)
    rack_of = {broker.id: broker.rack.name for broker in snapshot.brokers}
    racks = len({name for name in rack_of.values() if name is not None}) or 1
    fullest = [max(Counter(rack_of.get(broker) for broker in of).values()) for of in rows]
    rule = -(-asked.replication_factor // racks)
    before = _standing(asked, snapshot)
    taking = [broker.id for broker in takers(snapshot) if broker.accepts]
    held = Counter(broker for of in rows for broker in of)
    leaders = Counter(of[0] for of in rows)

    def ends(old: Mapping[int, int], new: Mapping[int, int]) -> tuple[int, int]:
        sums = [old.get(broker, 0) + new.get(broker, 0) for broker in taking]
        return min(sums, default=0), max(sums, default=0)

    return NewPlacementSpread(
        most_in_a_rack=max(fullest),
        against_the_rule=sum(count > rule for count in fullest),
        topic_replicas=ends(before.topic_replicas, held),
        topic_leaders=ends(before.topic_leaders, leaders),
        cluster_replicas=ends(before.replicas, held),
        cluster_leaders=ends(before.leaders, leaders),
    )


def _usable(brokers: Iterable[ReplicaBroker]) -> int:
    taking = [broker for broker in brokers if broker.accepts]
    return sum(broker.rack is not None for broker in taking) or len(taking)


def _without_rack(brokers: Iterable[ReplicaBroker]) -> list[int]:
    """Brokers that are left out for want of a rack, because others have one."""
    taking = [broker for broker in brokers if broker.accepts]
    blank = [broker.id for broker in taking if broker.rack is None]
    return blank if len(blank) < len(taking) else []
