"""Which partitions move next, together: as many as the caps allow, the safest and most useful first.

Copies flow from a partition's leader to the brokers that get a replica: a graph whose nodes are brokers (in racks) and
whose edges carry bytes. A batch is filled greedily in order of risk and gain, within caps: first what moves no data,
then partitions whose replicas are all in sync, then the greatest gain per copied byte, then the fewest bytes. Equal
input gives the equal batch. KIP-455.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import networkx as nx

from agent.execute.messages import Seen, SeenPartition
from agent.execute.values import Policy, Target
from assignors.problem import TopicPartition

Place = TypeVar("Place", int, "str | None")


class Load(NamedTuple):
    """What copies mean for one broker or one rack."""

    copies_out: int
    copies_in: int
    bytes_out: int
    bytes_in: int

    @property
    def copies(self) -> int:
        """Copies that it takes part in."""
        return self.copies_out + self.copies_in


def next_batch(
    pending: Iterable[Target], seen: Seen, policy: Policy, max_moves: int | None = None
) -> tuple[Target, ...]:
    """The partitions that may move together now, sorted by partition; empty only when nothing is pending.

    A partition that is beyond a cap by itself, or whose size is unknown where bytes are capped, is the only one of its
    batch that copies anything.
    """
    now = {partition.id: partition for partition in seen.partitions}
    at_most = min(policy.batch_partitions, policy.max_moves_per_cluster, max_moves or policy.batch_partitions)
    chosen: list[Target] = []
    copies: dict[int, int] = {}
    taken = 0
    for target in sorted(pending, key=lambda it: _order(it, now.get(it.id))):
        if len(chosen) >= at_most:
            break
        cost, more = _bytes(target), _copies(target, now.get(target.id))
        fits = cost is not None or policy.max_bytes_in_flight is None
        fits = fits and not _beyond(policy, _sum(copies, more), taken + (cost or 0))
        if not fits and copies:
            continue
        chosen.append(target)
        copies, taken = _sum(copies, more), taken + (cost or 0)
        if not fits:
            break
    return tuple(sorted(chosen))


def replication_graph(targets: Iterable[Target], leaders: Mapping[TopicPartition, int | None]) -> nx.MultiDiGraph[int]:
    """Broker -> broker, one edge per copy with its bytes (0 when unknown), keyed by partition.

    A partition without a leader is copied from nobody; its copies start at the first replica, which will lead it.
    """
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for target in targets:
        leader = leaders.get(target.id)
        source = target.before[0] if leader is None else leader
        for broker in target.adding:
            graph.add_edge(source, broker, key=target.id, bytes=target.bytes or 0)
    return graph


def broker_loads(graph: nx.MultiDiGraph[int]) -> Mapping[int, Load]:
    """Broker -> what it sends and receives, by broker."""
    return _loads(_copies_of(graph))


def rack_loads(graph: nx.MultiDiGraph[int], racks: Mapping[int, str | None]) -> Mapping[str | None, Load]:
    """Rack -> what leaves it and what comes in; copies within a rack are not counted, an unknown rack is another."""
    crossing: list[tuple[str | None, str | None, int]] = []
    for source, target, size in _copies_of(graph):
        here, there = racks.get(source), racks.get(target)
        if here is None or here != there:
            crossing.append((here, there, size))
    return _loads(crossing)


def _copies_of(graph: nx.MultiDiGraph[int]) -> list[tuple[int, int, int]]:
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


def _copies(target: Target, now: SeenPartition | None) -> dict[int, int]:
    """Broker -> copies that it sends or receives for this partition."""
    if not target.adding:
        return {}
    leader = None if now is None else now.leader
    source = target.before[0] if leader is None else leader
    copies = {source: len(target.adding)}
    for broker in target.adding:
        copies[broker] = copies.get(broker, 0) + 1
    return copies


def _sum(copies: Mapping[int, int], more: Mapping[int, int]) -> dict[int, int]:
    return {broker: copies.get(broker, 0) + more.get(broker, 0) for broker in {**copies, **more}}


def _beyond(policy: Policy, copies: Mapping[int, int], taken: int) -> bool:
    in_flight = policy.max_bytes_in_flight
    return max(copies.values(), default=0) > policy.max_moves_per_broker or (
        in_flight is not None and taken > in_flight
    )


def _bytes(target: Target) -> int | None:
    """Bytes to copy; None when unknown."""
    if not target.adding:
        return 0
    return None if target.bytes is None else target.bytes * len(target.adding)
