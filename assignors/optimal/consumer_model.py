"""A consumer group as dense integer arrays: members by id, topics by name, partitions by (topic, number)."""

from __future__ import annotations

from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from assignors.optimal.kinds import KeyNumbers
from assignors.optimal.tight_flow import Ints
from assignors.problem import BadProblem, ConsumerMember, ConsumerProblem, TopicPartition

_MOST_WEIGHT = 1 << 50
_MOST_PRICE = 1 << 20


class ConsumerModel(NamedTuple):
    """Arrays over partitions (``topic`` and so on), members (``rack``) and topics (``length``, ``topic_class``)."""

    ids: list[str]
    rack: Ints
    """Member -> rack; the last rack is that of members without one, where nothing is local."""
    topics: list[str]
    length: Ints
    """Topic -> number of partitions."""
    topic_class: Ints
    """Topic -> class of topics with the same subscribers."""
    eligible: NDArray[np.bool_]
    """(topic class, member): does the member subscribe."""
    topic: Ints
    number: Ints
    mask: Ints
    """Partition -> row of ``tariff``."""
    tariff: Ints
    """(mask, rack): what a unit of weight costs that is read there; nothing where reading is local."""
    owner: Ints
    """Partition -> the member that holds it and may keep it, or -1."""
    was_owned: NDArray[np.bool_]
    """Partition -> did exactly one member hold it, whether it may keep it or not."""
    weight: Ints
    """Partition -> index into ``weights``."""
    weights: Ints


def dense(problem: ConsumerProblem) -> ConsumerModel:
    """Turn names into integers. Raises ``BadProblem`` for a member id used twice and for impossible weights."""
    members = sorted_members(problem)
    racks = {name: number for number, name in enumerate(sorted({m.rack for m in members if m.rack is not None}))}
    rack = np.array([len(racks) if m.rack is None else racks[m.rack] for m in members], np.int64)
    topics, topic_class, eligible = _subscriptions(problem, members)
    length = np.array([len(problem.racks[name]) for name in topics], np.int64)
    topic = np.repeat(np.arange(len(topics)), length)
    first = np.cumsum(length) - length
    number = np.arange(len(topic)) - first[topic]
    mask, tariff = _locality(problem, topics, racks)
    owner, was_owned = _owners(members, topics, length, topic)
    may_keep = eligible[topic_class[topic], owner] if len(topic) and members else np.zeros(len(topic), np.bool_)
    weight, weights = _weights(problem, topics, len(topic))
    return ConsumerModel(
        ids=[m.id for m in members], rack=rack, topics=topics, length=length, topic_class=topic_class,
        eligible=eligible, topic=topic, number=number, mask=mask, tariff=tariff,
        owner=np.where(may_keep, owner, -1), was_owned=was_owned, weight=weight, weights=weights,
    )  # fmt: skip


def sorted_members(problem: ConsumerProblem) -> list[ConsumerMember]:
    """Members by id. Raises ``BadProblem`` when an id occurs twice."""
    by_id = {member.id: member for member in problem.members}
    if len(by_id) != len(problem.members):
        ids = [member.id for member in problem.members]
        twice = min(name for name in by_id if ids.count(name) > 1)
        raise BadProblem(f"member {twice} occurs twice; give every member its own id")
    return [by_id[name] for name in sorted(by_id)]


def checked_weight(partition: TopicPartition, weight: int) -> int:
    """Return the weight of a partition. Raises ``BadProblem`` when it is negative or above 2**50."""
    if not 0 <= weight <= _MOST_WEIGHT:
        raise BadProblem(f"partition {partition} weighs {weight}; weights lie between 0 and 2**50")
    return weight


def _subscriptions(
    problem: ConsumerProblem, members: list[ConsumerMember]
) -> tuple[list[str], Ints, NDArray[np.bool_]]:
    alike: dict[tuple[str, ...], int] = {}
    subscription = [alike.setdefault(member.topics, len(alike)) for member in members]
    subscribers: dict[str, set[int]] = {}
    for names, number in alike.items():
        for name in names:
            if problem.racks.get(name):
                subscribers.setdefault(name, set()).add(number)
    topics = sorted(subscribers)
    classes: dict[frozenset[int], int] = {}
    topic_class = [classes.setdefault(frozenset(subscribers[name]), len(classes)) for name in topics]
    by_subscription = np.zeros((len(classes), len(alike)), np.bool_)
    for numbers, number in classes.items():
        by_subscription[number, list(numbers)] = True
    return topics, np.array(topic_class, np.int64), by_subscription[:, subscription]


def _locality(problem: ConsumerProblem, topics: list[str], racks: dict[str, int]) -> tuple[Ints, Ints]:
    numbers: KeyNumbers[frozenset[str]] = KeyNumbers()
    sets = chain.from_iterable(problem.racks[topic] for topic in topics)
    mask = np.fromiter(map(numbers.__getitem__, sets), np.int64)
    unknown = _dearest(problem)
    rows: dict[tuple[int, ...], int] = {}
    row_of = [rows.setdefault((*_row(problem, names, racks, unknown), unknown), len(rows)) for names in numbers]
    return np.array(row_of, np.int64)[mask], np.array(list(rows), np.int64).reshape(len(rows), len(racks) + 1)


def _row(problem: ConsumerProblem, names: frozenset[str], racks: dict[str, int], unknown: int) -> list[int]:
    prices = problem.prices
    if prices is None or not names:
        return [0 if rack in names else unknown for rack in racks]
    return [0 if rack in names else min([prices.get((name, rack), 1) for name in names]) for rack in racks]


def _dearest(problem: ConsumerProblem) -> int:
    for (here, there), price in (problem.prices or {}).items():
        if not 0 <= price <= _MOST_PRICE:
            raise BadProblem(f"reading from {here} in {there} costs {price}; prices lie between 0 and 2**20")
    return max(1, *problem.prices.values()) if problem.prices else 1


def _owners(
    members: list[ConsumerMember], topics: list[str], length: Ints, topic: Ints
) -> tuple[Ints, NDArray[np.bool_]]:
    number_of = {name: number for number, name in enumerate(topics)}
    # Turned over member by member: partitions lie anywhere in memory, and a few hundred at a time stay in the cache.
    columns: list[tuple[Any, ...]] = [tuple(zip(*m.owned, strict=True)) or ((), ()) for m in members]
    claimed = np.fromiter(map(number_of.get, chain.from_iterable(map(itemgetter(0), columns)), repeat(-1)), np.int64)
    partition = np.fromiter(chain.from_iterable(map(itemgetter(1), columns)), np.int64, len(claimed))
    claimant = np.repeat(np.arange(len(members)), [len(m.owned) for m in members])
    size = np.append(length, 0)[claimed]
    exists = (partition >= 0) & (partition < size)
    if exists.all():
        # No copies where nothing is left out, which is nearly always.
        position = (np.cumsum(length) - length)[claimed] + partition if len(claimed) else claimed
    else:
        claimant = claimant[exists]
        position = (np.cumsum(length) - length)[claimed[exists]] + partition[exists]
    owner = np.full(len(topic), -1, np.int64)
    owner[position] = claimant
    contested = position[owner[position] != claimant]
    owner[contested] = -1
    return owner, owner >= 0


def _weights(problem: ConsumerProblem, topics: list[str], partitions: int) -> tuple[Ints, Ints]:
    if problem.weights is None:
        return np.zeros(partitions, np.int64), np.ones(1, np.int64)
    given = problem.weights
    weights = [
        checked_weight(name, given.get(name, 1))
        for topic in topics
        for name in map(TopicPartition, [topic] * len(problem.racks[topic]), range(len(problem.racks[topic])))
    ]
    if max(weights, default=0) * _dearest(problem) > _MOST_WEIGHT:
        raise BadProblem("the largest weight times the largest price is above 2**50; give prices in larger units")
    distinct, weight = np.unique(np.array(weights, np.int64), return_inverse=True)
    return weight, distinct
