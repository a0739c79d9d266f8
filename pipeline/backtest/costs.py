"""Cost of reads in one look: the part of the bytes that crosses racks, and its price.

By the agent's own rule of who serves a read (`agent.values.rates.read_flows`), partition by partition, so that it is
worked out once per arrangement of a group and its topics, and laid over the rates of every look with two sums.
Unknown racks, selectors and rates make a part unknown, which is counted apart and never as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from agent.detect.assess import bits_for
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.rates import BYTES_PER_GB, RackReads, read_flows
from agent.values.snapshot import (
    ConsumerGroup,
    Group,
    PartitionState,
    RackState,
    Snapshot,
    StreamsGroup,
    TopicState,
    topics_of,
)
from assignors.problem import TopicPartition
from pipeline.backtest.look import HistoryLook, Rates


class ReadPaths(NamedTuple):
    """How the bytes of a group's partitions travel to their readers, by topic and partition."""

    crossing: Rates
    """1 for a partition that is read in another rack, 0 for one that is read in its own; NaN where that is unknown."""
    usd_per_byte: Rates
    """NaN where a way has no price."""
    reads: int
    """Partitions that are read."""
    partitions: float
    """Reads that cross racks."""
    unknown: float
    """Reads of which it is not known whether they do."""


class CrossRackCost(NamedTuple):
    """Per second of time."""

    partitions: float = 0.0
    """Reads across racks."""
    unknown: float = 0.0
    """Reads of which that is not known."""
    bytes: float = 0.0
    """Bytes read across racks, where they are known."""
    usd: float = 0.0
    dark: float = 0.0
    """Groups of which the bytes are not known, in part or as a whole."""

    def plus(self, other: CrossRackCost) -> CrossRackCost:
        """Both."""
        return CrossRackCost(*map(sum, zip(self, other, strict=True)))

    def minus(self, other: CrossRackCost) -> CrossRackCost:
        """The difference."""
        return CrossRackCost(*(a - b for a, b in zip(self, other, strict=True)))


NOTHING = CrossRackCost()
_Pair = tuple[str, str] | tuple[()] | None
"""(from rack, to rack) of a read that crosses, () of one that does not, None of one that is unknown."""


class _Served(NamedTuple):
    """The facts that decide which broker serves a read."""

    racks: Mapping[int, str]
    selector: bool | None
    known: dict[tuple[int | None, tuple[int, ...], str | None], _Pair]
    """What was worked out before."""


class CostModel:
    """The costs of one strategy's looks; costs of unchanged arrangements are reused."""

    def __init__(self) -> None:
        self._memo = Memo()
        self._valid_for: tuple[object, ...] = ()
        self._pairs: dict[tuple[int | None, tuple[int, ...], str | None], _Pair] = {}
        """(leader, ISR, rack of the reader) -> route, of these racks and this selector; a cluster has few of them."""
        self.fresh = 0
        """Arrangements of groups and their topics that were not those of the look before."""

    def by_group(self, look: HistoryLook, snapshot: Snapshot, names: Iterable[str]) -> dict[str, CrossRackCost]:
        """What each of these groups costs; one that is not there, or assigns nothing, is left out."""
        found: dict[str, CrossRackCost] = {}
        brokers, selector, prices = snapshot.brokers, snapshot.selector_is_rack_aware, _prices(look.limits)
        racks = self._memo.of(("racks",), (brokers,), lambda: _racks(snapshot))
        of, groups, topics = self._memo.of, snapshot.groups.get, snapshot.topics.get
        for name in names:
            group = groups(name)
            if not isinstance(group, ConsumerGroup | StreamsGroup):
                continue
            read = of(("topics", name), (group,), partial(topics_of, group))
            shown = tuple(map(topics, read))
            inputs = (group, shown, racks, selector, prices)
            ways = of(("ways", name), inputs, partial(self._fresh, group, shown, racks, snapshot, look.limits))
            found[name] = _cost(ways, _rates(look, name, shown))
        return found

    def _fresh(
        self,
        group: ConsumerGroup | StreamsGroup,
        topics: Sequence[TopicState | None],
        racks: tuple[tuple[int, str], ...],
        snapshot: Snapshot,
        limits: Limits,
    ) -> ReadPaths:
        self.fresh += 1
        selector = bits_for((group,), snapshot, self._memo).selector_is_rack_aware
        if (racks, selector) != self._valid_for:
            self._valid_for, self._pairs = (racks, selector), {}
        return _ways(group, topics, _Served(dict(racks), selector, self._pairs), limits)

    def turn(self) -> None:
        """End a look."""
        self._memo.turn()


def total(costs: Iterable[CrossRackCost]) -> CrossRackCost:
    """The sum."""
    rows = list(costs)
    return CrossRackCost(*map(sum, zip(*rows, strict=True))) if rows else NOTHING


def price_of(source: str | None, target: str | None, limits: Limits) -> float | None:
    """Dollars for a byte from rack to rack; None where that is not known."""
    if source is None or target is None:
        return None
    if source == target:
        return 0.0
    price = limits.price.between.get((source, target), limits.price.usd_per_gb)
    return None if price is None else price / BYTES_PER_GB


def racks_of(snapshot: Snapshot) -> Mapping[int, str]:
    """Broker -> rack, brokers of known rack only."""
    return dict(_racks(snapshot))


def rates_of(snapshot: Snapshot, topics: Iterable[TopicState | None]) -> Rates:
    """Bytes per second of every partition of those topics, in their order."""
    rates = snapshot.bytes_per_s.get
    return np.array(
        [rates(state.id, np.nan) for topic in topics if topic is not None for state in topic.partitions], dtype=float
    )


def _rates(look: HistoryLook, name: str, topics: Iterable[TopicState | None]) -> Rates | None:
    if look.rates is not None:
        return look.rates.get(name)
    return rates_of(look.snapshot, topics) if look.snapshot.bytes_per_s else None


def _cost(ways: ReadPaths, rates: Rates | None) -> CrossRackCost:
    if rates is None or len(rates) != len(ways.crossing):
        return CrossRackCost(ways.partitions, ways.unknown, 0.0, 0.0, 1.0 if ways.reads else 0.0)
    weight, usd = float(rates @ ways.crossing), float(rates @ ways.usd_per_byte)
    if weight == weight and usd == usd:  # noqa: PLR0124 NaN alone differs from itself, and this runs a million times
        return CrossRackCost(ways.partitions, ways.unknown, weight, usd)
    known = ~np.isnan(rates * ways.crossing)
    priced = known & ~np.isnan(ways.usd_per_byte)
    return CrossRackCost(
        ways.partitions,
        ways.unknown,
        float(rates[known] @ ways.crossing[known]),
        float(rates[priced] @ ways.usd_per_byte[priced]),
        1.0,
    )


def _ways(
    group: ConsumerGroup | StreamsGroup, topics: Sequence[TopicState | None], served: _Served, limits: Limits
) -> ReadPaths:
    states = [state for topic in topics if topic is not None for state in topic.partitions]
    place = {state.id: number for number, state in enumerate(states)}
    crossing, usd = np.zeros(len(states)), np.zeros(len(states))
    reads = partitions = unknown = 0
    for partition, rack in _readers(group):
        at = place.get(partition)
        if at is None:
            continue
        reads += 1
        pair = _route(states[at], rack, served)
        if pair is None:
            unknown += 1
            crossing[at] = usd[at] = np.nan
        elif pair:
            partitions += 1
            price = price_of(*pair, limits)
            crossing[at] += 1.0
            usd[at] += np.nan if price is None else price
    return ReadPaths(crossing, usd, reads, float(partitions), float(unknown))


def _readers(group: Group) -> Iterator[tuple[TopicPartition, str | None]]:
    """(partition, rack of its reader)."""
    if isinstance(group, ConsumerGroup):
        for member in group.members:
            rack = member.rack.name if member.rack.state is RackState.KNOWN else None
            for partition in member.assigned or ():
                yield partition, rack
    elif isinstance(group, StreamsGroup) and group.topology is not None:
        sources = {task.id: task.sources for task in group.topology.tasks}
        for process in group.processes:
            rack = process.rack.name if process.rack.state is RackState.KNOWN else None
            for task in process.active:
                for partition in sources.get(task, ()):
                    yield partition, rack


def _route(state: PartitionState, rack: str | None, served: _Served) -> _Pair:
    """How a read by a member in that rack travels; it depends on the leader and the ISR alone."""
    key = (state.leader, state.isr, rack)
    try:
        return served.known[key]
    except KeyError:
        flows = read_flows(
            (RackReads(state.id, rack),), {state.id: state}, served.racks, {state.id: 1.0}, selector=served.selector
        )
        pair = served.known[key] = None if flows is None else next(iter(flows), ())
        return pair


def _racks(snapshot: Snapshot) -> tuple[tuple[int, str], ...]:
    return tuple(
        [(b.id, b.rack.name) for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None]
    )


def _prices(limits: Limits) -> tuple[object, ...]:
    return (limits.price.usd_per_gb, tuple(limits.price.between.items()))
