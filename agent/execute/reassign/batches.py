"""Which partitions move next, together: as many as the caps allow, the safest and most useful first.

Copies flow from a partition's leader to the brokers that get a replica: a graph whose nodes are brokers (in racks) and
whose edges carry bytes. A batch is filled greedily in order of risk and gain, within caps: first what moves no data,
then partitions whose replicas are all in sync, then the greatest gain per copied byte, then the fewest bytes. Equal
input gives the equal batch. KIP-455.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from agent.execute.reassign.messages import Seen, SeenPartition
from agent.journal.columns import Size, runs
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import Policy, Target
from agent.values.words import counted, sized

if TYPE_CHECKING:
    import networkx as nx

RECORD_BYTES = 400_000
"""Of a batch's own record with the ends of all its partitions, and of one list of throttled replicas."""
_END_BYTES = 48
"""Of one partition's end, and of its place among those that are cancelled."""
Place = TypeVar("Place", int, "str | None")


class Load(NamedTuple):
    """What copies mean for one broker or one rack."""

    copies_out: int
    copies_in: int
    bytes_out: int
    bytes_in: int


def next_batch(
    pending: Iterable[Target], seen: Seen, policy: Policy, max_moves: int | None = None
) -> tuple[Target, ...]:
    """The partitions that may move together now, sorted by partition; empty only when nothing is pending.

    A partition that is beyond a cap by itself, or whose size is unknown where bytes are capped, is the only one of its
    batch that copies anything.
    """
    now = {partition.id: partition for partition in seen.partitions}
    limits = policy.limits
    at_most = min(limits.batch_partitions, limits.max_moves_per_cluster, max_moves or limits.batch_partitions)
    waiting = [_order(target, now.get(target.id)) for target in pending]
    heapify(waiting)
    copying = _Copying(limits, {of for pair in {(it[-1].before, it[-1].after) for it in waiting} for of in pair})
    record = _Record()
    chosen: list[Target] = []
    while waiting and len(chosen) < at_most:
        target = heappop(waiting)[-1]
        if target.moves_data and copying.full:
            break  # and so are all that come after it
        copies, cost = _copies(target, now.get(target.id)), _bytes(target)
        fits = copying.takes(copies, cost)
        if not (fits or not copying.copies) or (chosen and not record.takes(target)):
            continue
        chosen.append(target)
        copying.add(copies, cost)
        record.add(target)
        if not fits:
            break
    return tuple(sorted(chosen))


def in_records(targets: Iterable[Target]) -> Iterator[list[Target]]:
    """The targets in order, in as many batches as their records need when all of them have ended."""
    return runs(targets, RECORD_BYTES, _END_BYTES)


class _Copying:
    """How many copies each broker takes part in, and how many bytes are copied."""

    def __init__(self, limits: ExecuteLimits, brokers: Iterable[Iterable[int]]) -> None:
        self.copies = 0
        self._limits = limits
        self._load: Counter[int] = Counter()
        self._free = {broker for of in brokers for broker in of}
        self._taken = 0

    @property
    def full(self) -> bool:
        """Whether no copy fits any more: it takes two brokers."""
        return self.copies > 0 and len(self._free) < 2

    def takes(self, copies: Sequence[tuple[int, int]], cost: int | None) -> bool:
        """Whether these fit too; bytes that are unknown fit no bound."""
        added = Counter(broker for copy in copies for broker in copy)
        few = all(self._load[broker] + more <= self._limits.max_moves_per_broker for broker, more in added.items())
        cap = self._limits.max_bytes_in_flight
        return few and (cap is None or (cost is not None and self._taken + cost <= cap))

    def add(self, copies: Sequence[tuple[int, int]], cost: int | None) -> None:
        """Take them in."""
        self.copies += len(copies)
        self._taken += cost or 0
        for broker in (broker for copy in copies for broker in copy):
            self._load[broker] += 1
            if self._load[broker] >= self._limits.max_moves_per_broker:
                self._free.discard(broker)


class _Record:
    """How long a batch's own record, and those of its topics' lists of throttled replicas, become."""

    def __init__(self) -> None:
        self._size = Size(_END_BYTES)
        self._listed = 0

    def takes(self, target: Target) -> bool:
        """Whether that one fits too."""
        return max(self._size.bytes + self._size.more(target), self._listed + _listed(target)) <= RECORD_BYTES

    def add(self, target: Target) -> None:
        """Take it in."""
        self._size.add(target)
        self._listed += _listed(target)


def _listed(target: Target) -> int:
    """Bytes that its replicas take in lists of throttled replicas, ``partition:broker,`` each."""
    if not target.moves_data:
        return 0
    number = len(str(target.id.partition)) + 2
    return sum(number + len(str(broker)) for broker in (*target.before, *target.adding))


def replication_graph(targets: Iterable[Target], seen: Seen) -> nx.MultiDiGraph[int]:
    """Broker -> broker, one edge per copy with its bytes (0 when unknown), keyed by partition.

    A partition without a leader has no replica to copy from; its copies start at the first replica, which will lead it.
    """
    now = {partition.id: partition for partition in seen.partitions}
    graph = _no_copies()
    for target in targets:
        _add(graph, target, _copies(target, now.get(target.id)))
    return graph


def broker_loads(graph: nx.MultiDiGraph[int]) -> Mapping[int, Load]:
    """Broker -> what it sends and receives, by broker."""
    return _loads(_flows(graph))


def rack_loads(graph: nx.MultiDiGraph[int], racks: Mapping[int, str | None]) -> Mapping[str | None, Load]:
    """Rack -> what leaves it and what comes in; copies within a rack are not counted, an unknown rack is another."""
    crossing: list[tuple[str | None, str | None, int]] = []
    for source, target, size in _flows(graph):
        here, there = racks.get(source), racks.get(target)
        if here is None or here != there:
            crossing.append((here, there, size))
    return _loads(crossing)


def in_words(targets: Sequence[Target], seen: Seen, rate_bytes_per_s: int | None) -> str:
    """What a batch means for brokers and racks, in one sentence."""
    graph = replication_graph(targets, seen)
    loads = broker_loads(graph)
    if not loads:
        return f"{counted(len(targets), 'partition')} with another order of replicas, no data moves"
    unknown = " or more" if any(target.moves_data and target.bytes is None for target in targets) else ""
    busiest = max(loads, key=lambda broker: (loads[broker].bytes_in, loads[broker].copies_in, -broker))
    total = sized(sum(load.bytes_in for load in loads.values()))
    parts = [f"{counted(len(targets), 'partition')}, {total}{unknown} to copy"]
    parts.append(f"most to broker {busiest}: {sized(loads[busiest].bytes_in)}{unknown}")
    if seen.racks:
        crossing = sum(load.bytes_in for load in rack_loads(graph, dict(seen.racks)).values())
        parts.append(f"{sized(crossing)} across racks")
    if rate_bytes_per_s:
        slowest = max(max(load.bytes_in, load.bytes_out) for load in loads.values())
        parts.append(f"{slowest // rate_bytes_per_s} s{unknown} at {sized(rate_bytes_per_s)}/s")
    return "; ".join(parts)


def _no_copies() -> nx.MultiDiGraph[int]:
    import networkx as nx  # noqa: PLC0415 a third of the start of every command, and only batches need it

    return nx.MultiDiGraph()


def _flows(graph: nx.MultiDiGraph[int]) -> list[tuple[int, int, int]]:
    return [(source, target, int(data["bytes"])) for source, target, data in graph.edges(data=True)]


def _loads(edges: Iterable[tuple[Place, Place, int]]) -> Mapping[Place, Load]:
    found: dict[Place, list[int]] = {}
    for source, target, size in edges:
        out, into = found.setdefault(source, [0] * 4), found.setdefault(target, [0] * 4)
        out[0] += 1
        into[1] += 1
        out[2] += size
        into[3] += size
    return {place: Load(*found[place]) for place in sorted(found, key=str)}


def _order(target: Target, now: SeenPartition | None) -> tuple[bool, bool, float, int, Target]:
    """Without data first, then whole in-sync sets, then gain per byte, then few bytes; the name last."""
    out_of_sync = now is None or not set(target.before) <= now.isr
    cost = _bytes(target)
    gain = target.gain / max(1, cost) if cost is not None else 0.0
    return target.moves_data, out_of_sync, -gain, cost or 0, target


def _copies(target: Target, now: SeenPartition | None) -> list[tuple[int, int]]:
    """(source, destination) of each copy."""
    leader = None if now is None else now.leader
    source = target.before[0] if leader is None else leader
    return [(source, broker) for broker in target.adding]


def _add(graph: nx.MultiDiGraph[int], target: Target, copies: Iterable[tuple[int, int]]) -> None:
    for source, broker in copies:
        graph.add_edge(source, broker, key=target.id, bytes=target.bytes or 0)


def _bytes(target: Target) -> int | None:
    """Bytes to copy; None when unknown."""
    if not target.adding:
        return 0
    return None if target.bytes is None else target.bytes * len(target.adding)
