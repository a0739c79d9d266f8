"""In which rack each broker and each member is, and how far that can be relied upon.

Three-valued: known, unknown, conflicting. An empty rack is no rack. A broker that is absent keeps the rack that it told
last, marked as remembered, because replicas stay where the machine stands. Members of one process stand on one machine:
where they claim different racks, none of the claims is believed.

KIP-881 and KIP-925 compare rack ids exactly, so nothing is trimmed or folded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.memory.values import Memory
from agent.model.snapshot import UNKNOWN_RACK, BrokerState, Rack, RackState
from agent.observation import Observation, RawBroker

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SELECTOR_CONFIG = "replica.selector.class"


def known_rack(name: str | None) -> Rack:
    """A rack as it was told, or unknown for none."""
    return Rack(RackState.KNOWN, name) if name else UNKNOWN_RACK


def agreed_rack(claims: Iterable[str | None]) -> Rack:
    """The one rack that all who claim one agree on; unknown when nobody does, conflicting when they differ."""
    told = sorted({claim for claim in claims if claim})
    if not told:
        return UNKNOWN_RACK
    return known_rack(told[0]) if len(told) == 1 else Rack(RackState.CONFLICTING, None, tuple(told))


def brokers_of(observation: Observation, named: Iterable[int], memory: Memory) -> tuple[BrokerState, ...]:
    """Every broker that answered or that is named by a replica list or remembered with replicas, sorted by id."""
    answered: dict[int, list[RawBroker]] = {}
    for row in observation.brokers:
        answered.setdefault(row.id, []).append(row)
    brokers = [_present(rows, observation.cordoned) for rows in answered.values()]
    brokers += [_absent(broker, memory) for broker in set(named) - answered.keys()]
    return tuple(sorted(brokers, key=lambda broker: broker.id))


def selector_is_rack_aware(brokers: Iterable[BrokerState], configs: Mapping[int, Mapping[str, str]]) -> bool | None:
    """True when every live broker serves reads from the nearest replica; None when one cannot be told.

    Of a selector that is not Kafka's own it cannot be told.
    """
    told: list[bool | None] = []
    for broker in brokers:
        if not broker.alive:
            continue
        config = configs.get(broker.id)
        if config is None:
            told.append(None)
        else:
            selector = config.get(SELECTOR_CONFIG)
            told.append(False if not selector else (selector == RACK_AWARE_SELECTOR or None))
    if not told:
        return None
    if False in told:
        return False
    return None if None in told else True


def _present(rows: list[RawBroker], cordoned: frozenset[int]) -> BrokerState:
    row = rows[0]
    fenced = None if any(r.fenced is None for r in rows) else all(r.fenced for r in rows)
    return BrokerState(
        row.id,
        row.host,
        row.port,
        agreed_rack(r.rack for r in rows),
        fenced is not True,
        fenced,
        row.id in cordoned,
    )


def _absent(broker: int, memory: Memory) -> BrokerState:
    seen = memory.brokers.get(broker)
    remembered = known_rack(seen.known if seen is not None else None)
    if remembered is not UNKNOWN_RACK:
        remembered = remembered._replace(remembered=True)
    return BrokerState(broker, None, None, remembered, alive=False, fenced=None, cordoned=False)
