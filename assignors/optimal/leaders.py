"""Preferred leaders by one flow: one candidate for each partition, brokers and racks within their room.

    partition --candidate--> broker --within its room, or beyond--> rack --within its room, or beyond--> sink

Priorities: the candidates' first cost; leaders beyond the room of brokers, the farthest beyond weighing most; leaders
beyond the room of racks; the candidates' last cost. The answer is optimal in that order and deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assignors.optimal.network import FlowNetwork
from assignors.problem import LeaderCandidate, LeaderCapacity

_STEPS = 8
"""So many leaders beyond the room weigh more one by one, those after them as much as the last."""
_MANY = 1 << 40


def optimal_leaders(candidates: Sequence[Sequence[LeaderCandidate]], room: LeaderCapacity) -> list[int]:
    """The broker that leads each partition; every partition has a candidate, and each candidate a rack.

    Raises ``InfeasibleFlowError`` where hard racks have no room for all.
    """
    if not candidates:
        return []
    rows = [(number, each) for number, of in enumerate(candidates) for each in of]
    brokers = sorted({each.broker for _, each in rows})
    racks = sorted({room.rack_of[broker] for broker in brokers})
    count, steps = len(candidates), min(_STEPS, len(candidates))
    first = np.array([each.first for _, each in rows], np.int64)
    last = np.array([each.last for _, each in rows], np.int64)
    network = FlowNetwork([count * steps, count, count * int(last.max())])
    network.nodes(count)
    broker_node = {broker: network.nodes(1) for broker in brokers}
    rack_node = {rack: network.nodes(1) for rack in racks}
    sink = network.nodes(1)
    chosen = network.arcs(
        [number for number, _ in rows], [broker_node[each.broker] for _, each in rows], 1, first, 0, 0, last
    )
    for broker in brokers:
        head = rack_node[room.rack_of[broker]]
        network.arcs(broker_node[broker], head, max(0, room.brokers.get(broker, 0)))
        beyond = np.arange(1, steps + 1)
        network.arcs(broker_node[broker], head, np.where(beyond < steps, 1, _MANY), 0, beyond)
    for rack in racks:
        network.arcs(rack_node[rack], sink, max(0, room.racks.get(rack, 0)))
        if not room.hard:
            network.arcs(rack_node[rack], sink, _MANY, 0, 0, 1)
    network.supply(np.arange(count), 1)
    network.supply(sink, -count)
    units = network.solve().units[chosen].tolist()
    return [each.broker for (_, each), carried in zip(rows, units, strict=True) if carried]
