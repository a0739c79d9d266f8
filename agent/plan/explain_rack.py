"""From where is a rack known, and what do others say of it? Of a broker, and of the members of a group."""

from __future__ import annotations

from agent.detect.located import whence
from agent.values.explained import Answer, Explained, yes_or_no
from agent.values.kafka import BROKER_RACK, CLIENT_RACK
from agent.values.limits import LocatorKind
from agent.values.snapshot import BrokerState, ConsumerGroup, LocatorState, Rack, RackState, Snapshot, StreamsGroup
from agent.values.words import lasted


def about_broker(name: str, snapshot: Snapshot) -> list[Explained]:
    """What every rack locator says of a broker, and the rack that Kafka itself has."""
    broker = next((broker for broker in snapshot.brokers if str(broker.id) == name), None)
    if broker is None:
        return []
    about = f"broker/{name}"
    known = _known(about, broker.rack, BROKER_RACK, snapshot)
    if broker.host is None and broker.rack.state is RackState.UNKNOWN:
        known = known._replace(sentence="the broker is absent, and its rack was never seen")
    return [known, *_others(about, broker.rack), _to_kafka(about, broker)]


def about_readers(name: str, snapshot: Snapshot) -> list[Explained]:
    """The racks of a group's members, where they are not simply what the members tell."""
    group = snapshot.groups.get(name)
    if not isinstance(group, ConsumerGroup | StreamsGroup) or not snapshot.rack_locators:
        return []
    rows: list[Explained] = []
    for member in group.members:
        if member.rack.source is not None or member.rack.others:
            rows.append(_known(member.id, member.rack, CLIENT_RACK, snapshot))
            rows += _others(member.id, member.rack)
    return rows


def _known(about: str, rack: Rack, setting: str, snapshot: Snapshot) -> Explained:
    if rack.state is RackState.KNOWN:
        said = f", where {setting} says {rack.sent}" if rack.source == LocatorKind.WIRE.value else ""
        age = _age(rack.source, snapshot.rack_locators)
        return Explained(about, "rack known", Answer.YES, f"rack {rack.name}, from {whence(rack, setting)}{said}{age}")
    if rack.state is RackState.CONFLICTING:
        who = f"{rack.source} says" if rack.source else "its sources give"
        return Explained(about, "rack known", Answer.NO, f"{who} {' and '.join(rack.claims)}, so no rack is used")
    told = (
        f"{setting} says {rack.sent}, which is not used, as rack.locator.class leaves out wire"
        if rack.sent
        else f"{setting} is not set"
    )
    asked = ", ".join(locator.name for locator in snapshot.rack_locators if locator.name != LocatorKind.WIRE.value)
    return Explained(about, "rack known", Answer.UNKNOWN, told + (f", and none of {asked} knows it" if asked else ""))


def _age(source: str | None, locators: tuple[LocatorState, ...]) -> str:
    age_ms = next((one.age_ms for one in locators if one.name == source), None)
    return f", answered {lasted(age_ms)} ago" if age_ms else ""


def _others(about: str, rack: Rack) -> list[Explained]:
    return [
        Explained(about, f"locator {locator} agrees", Answer.NO, f"it gives {other}, but another locator comes first")
        for locator, other in rack.others
    ]


def _to_kafka(about: str, broker: BrokerState) -> Explained:
    """Placement of new topics and consumers' choice of the nearest replica know nothing else."""
    told = broker.rack.told if broker.alive else None
    if not broker.alive:
        sentence = "it is absent, and clients do not know its rack"
    elif told is None:
        sentence = "it has no broker.rack, so Kafka places and assigns as for a broker without a rack"
    else:
        sentence = f"broker.rack is {told}"
    return Explained(about, "Kafka knows its rack", yes_or_no(told is not None), sentence)
