"""In which rack each broker and each member is, and how far that can be relied upon.

Three-valued: known, unknown, conflicting. An empty rack is no rack. A broker that is absent keeps the rack that it told
last, marked as remembered, because replicas stay where the machine stands. Members of one process stand on one machine:
where they claim different racks, none of the claims is believed.

KIP-881 and KIP-925 compare rack ids exactly, so nothing is trimmed or folded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.model.located import Located, broker_subject
from agent.values.kafka import RACK_AWARE_SELECTOR, REPLICA_SELECTOR
from agent.values.memory import Memory
from agent.values.observation import Observation, Part, RawBroker
from agent.values.snapshot import UNKNOWN_RACK, BrokerState, Rack, RackState


def known_rack(name: str | None) -> Rack:
    """A rack as it was told, or unknown for none."""
    return Rack(RackState.KNOWN, name) if name else UNKNOWN_RACK


def agreed_racks(racks: Sequence[Rack]) -> Rack:
    """The one rack of all that are known; conflicting when they differ. As it was told, where it was told by one."""
    known = [rack for rack in racks if rack.name is not None]
    names = tuple(sorted({str(rack.name) for rack in known}))
    if len(names) > 1:
        told = {rack.told for rack in racks} - {None}
        source = None if len(told) > 1 else min(rack.source for rack in known if rack.source is not None)
        return Rack(RackState.CONFLICTING, None, names, source=source)
    return min(known, key=lambda rack: (rack.source or "", rack.sent or "", rack.others), default=UNKNOWN_RACK)


def agreed_rack(claims: Iterable[str | None]) -> Rack:
    """The one rack that all who claim one agree on; unknown when none does, conflicting when they differ."""
    told = sorted({claim for claim in claims if claim})
    if not told:
        return UNKNOWN_RACK
    return known_rack(told[0]) if len(told) == 1 else Rack(RackState.CONFLICTING, None, tuple(told))


def brokers_of(
    observation: Observation, named: Iterable[int], memory: Memory, located: Located | None = None
) -> tuple[BrokerState, ...]:
    """Every broker that answered or that is named by a replica list or remembered with replicas, sorted by id."""
    answered: dict[int, list[RawBroker]] = {}
    for row in observation.brokers:
        answered.setdefault(row.id, []).append(row)
    unanswered = any(gap.part is Part.RACK_LOCATORS for gap in observation.gaps)
    brokers: list[BrokerState] = []
    for broker, rows in answered.items():
        rack = _told(rows, located)
        if unanswered and rack.state is RackState.UNKNOWN:  # a locator that did not answer may well know
            rack = _remembered(broker, memory)._replace(source=rack.source or "", sent=rack.sent)
        brokers.append(_present(rows, rack, observation.cordoned))
    brokers += [_absent(broker, memory, located) for broker in set(named) - answered.keys()]
    return tuple(sorted(brokers, key=lambda broker: broker.id))


def selector_is_rack_aware(brokers: Iterable[BrokerState], configs: Mapping[int, Mapping[str, str]]) -> bool | None:
    """True when every live broker serves reads from the nearest replica; None when one is unknown.

    Of a selector that is not Kafka's own it is unknown.
    """
    told: list[bool | None] = []
    for broker in brokers:
        if not broker.alive:
            continue
        config = configs.get(broker.id)
        if config is None:
            told.append(None)
        else:
            selector = config.get(REPLICA_SELECTOR)
            told.append(False if not selector else (selector == RACK_AWARE_SELECTOR or None))
    if not told:
        return None
    if False in told:
        return False
    return None if None in told else True


def _told(rows: list[RawBroker], located: Located | None) -> Rack:
    claims = sorted({row.rack for row in rows if row.rack})
    return agreed_rack(claims) if located is None else located.rack(broker_subject(rows[0].id, rows[0].host), claims)


def _present(rows: list[RawBroker], rack: Rack, cordoned: frozenset[int]) -> BrokerState:
    row = rows[0]
    fenced = None if any(r.fenced is None for r in rows) else all(r.fenced for r in rows)
    return BrokerState(row.id, row.host, row.port, rack, fenced is not True, fenced, row.id in cordoned)


def _absent(broker: int, memory: Memory, located: Located | None) -> BrokerState:
    rack = UNKNOWN_RACK if located is None else located.rack(broker_subject(broker, None), ())
    if rack.state is RackState.UNKNOWN:
        rack = _remembered(broker, memory)
    return BrokerState(broker, None, None, rack, alive=False, fenced=None, cordoned=False)


def _remembered(broker: int, memory: Memory) -> Rack:
    seen = memory.brokers.get(broker)
    rack = known_rack(seen.known if seen is not None else None)
    return rack if rack is UNKNOWN_RACK else rack._replace(remembered=True)
