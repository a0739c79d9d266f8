"""What do the reads of an assignment cost a day? Where they really go, at the prices of their pairs of racks."""

from __future__ import annotations

from collections.abc import Mapping

from agent.detect.measured import states_of
from agent.detect.tally import Reads
from agent.values.flows import Reader, priced, read_flows, usd_per_day
from agent.values.limits import Limits
from agent.values.locality import Ground
from agent.values.snapshot import RackState, Snapshot
from assignors.problem import TopicPartition

_ELSEWHERE = "(no broker's)"
"""A rack without brokers has no name in the ground, but it is known, and known to be none of theirs."""


def bill(  # noqa: PLR0917 (an assignment, what is known of it, and the world)
    reads: Reads,
    ground: Ground,
    crossing_bytes_per_s: float | None,
    rates: Mapping[TopicPartition, float],
    snapshot: Snapshot,
    limits: Limits,
) -> float | None:
    """Dollars a day of the bytes that cross; None where they are unknown, or a pair of racks has no price."""
    if crossing_bytes_per_s is None:
        return None
    if not limits.prices:
        return None if limits.usd_per_gb is None else priced(crossing_bytes_per_s, limits.usd_per_gb)
    names = {bit: name for name, bit in ground.bits.bit_of.items()}
    readers = [
        Reader(partition, names.get(bit, _ELSEWHERE) if bit else None)
        for bit, partitions in reads
        for partition in partitions
    ]
    states = states_of(snapshot.topics[name] for name in ground.masks)
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
    flows = read_flows(readers, states, racks, rates, selector=ground.bits.selector_is_rack_aware)
    return usd_per_day(flows, limits)
