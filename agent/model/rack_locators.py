"""Racks of brokers and clients by the rack locators of ``rack.locator.class``, in their order (KIP-36).

The first locator that knows a rack wins; one that contradicts itself counts as unknown, and when none knows the rack is
conflicting. Aliases apply to every answer first; `Rack.rack_id` keeps the rack on the wire, which Kafka compares.
"""

from __future__ import annotations

import ipaddress
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic_core import SchemaValidator, core_schema

from agent.values.kafka import CLIENT_ID, GROUP_INSTANCE_ID
from agent.values.limits import LocatorKind, RackLocator, RackPattern
from agent.values.memo import Memo
from agent.values.observation import Observation, RawRackRow
from agent.values.snapshot import UNKNOWN_RACK, LocatorState, Rack, RackState

# Rules match host names and networks. Clients choose their names, so patterns run in linear time (Rust's regex engine
# of pydantic), and a rack comes from the rule, never out of a name.

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

HOST = "host"


class LocatorHost(NamedTuple):
    """A host as it is reported, in the forms in which it is looked for."""

    names: tuple[str, ...]
    """The names and addresses in it."""
    keys: tuple[tuple[str, str], ...]
    """The same as tables hold them."""
    addresses: tuple[IpAddress, ...]


@lru_cache(maxsize=16_384)
def host_of(host: str | None) -> LocatorHost:
    """A broker's or client's host: Java writes clients' as ``name/address`` or ``/address``."""
    names = tuple(part for part in (host or "").split("/") if part)
    parsed = [_address(name) for name in names]
    keys = tuple((HOST, name.lower() if one is None else str(one)) for name, one in zip(names, parsed, strict=True))
    return LocatorHost(names, keys, tuple(one for one in parsed if one is not None))


def name_key(of: str, name: str) -> tuple[str, str]:
    """How a name is compared: hosts without regard to case, addresses by value, everything else letter by letter."""
    if of != HOST:
        return of, name
    address = _address(name)
    return of, name.lower() if address is None else str(address)


class RackPatternIndex:
    """Patterns by the name that they match."""

    __slots__ = ("_by_name",)

    def __init__(self, patterns: Iterable[RackPattern]) -> None:
        self._by_name: dict[str, list[tuple[SchemaValidator, str]]] = {}
        for of, pattern, rack in patterns:
            validator = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
            self._by_name.setdefault(of, []).append((validator, rack))

    def racks(self, names: Iterable[tuple[str, str]], hosts: Sequence[str]) -> list[str]:
        """The racks of all patterns that are found in one of these names."""
        known = [(self._by_name.get(of, ()), name) for of, name in names]
        known += [(self._by_name.get(HOST, ()), host) for host in hosts]
        return [rack for patterns, name in known for validator, rack in patterns if validator.isinstance_python(name)]


class RackNetworkIndex:
    """Networks as spans of addresses that do not overlap, so that a look-up is one bisection."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, networks: Iterable[tuple[str, str]]) -> None:
        parsed = [(ipaddress.ip_network(text), rack) for text, rack in networks]
        spans = [((net.version, int(net.network_address), int(net.broadcast_address)), rack) for net, rack in parsed]
        self._starts: list[tuple[int, int]] = []
        self._ends: list[tuple[tuple[int, int], str]] = []
        for (version, first, last), rack in sorted(spans, key=lambda row: (*row[0][:2], -row[0][2])):
            # A network inside another has the same rack (the settings see to that), and adds nothing.
            if not self._ends or self._ends[-1][0] < (version, first):
                self._starts.append((version, first))
                self._ends.append(((version, last), rack))

    def racks(self, addresses: Iterable[IpAddress]) -> list[str]:
        """The racks of these addresses."""
        racks: list[str] = []
        for address in addresses:
            key = (address.version, int(address))
            at = bisect_right(self._starts, key) - 1
            if at >= 0 and key <= self._ends[at][0]:
                racks.append(self._ends[at][1])
        return racks


def _address(text: str) -> IpAddress | None:
    """The address that a text is; one of IPv4 that is written as IPv6 is itself, and a scope is left aside."""
    bare = text.partition("%")[0].removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


# The rack by all locators together.

_MOST_SETTLED = 10_000
_LocatorAnswer = tuple[str, Sequence[str]]
"""(locator, its racks, sorted: none, one, or a contradiction)."""


_Ask = Callable[["LocatorSubject", LocatorHost, Sequence[str]], Sequence[str]]


class LocatorSubject(NamedTuple):
    """A broker or client by all names under which a locator may know it."""

    names: tuple[tuple[str, str], ...]
    """(``broker``, ``host``, ``client.id`` or ``group.instance.id``; the name)."""
    host: str | None
    """As the broker advertises it, or as the coordinator saw the client."""


def broker_subject(broker: int, host: str | None) -> LocatorSubject:
    """A broker; without host, one that is only named by replica lists."""
    return LocatorSubject((("broker", str(broker)),), host)


def client_subject(client_id: str, instance_id: str | None, host: str) -> LocatorSubject:
    """A member of a group."""
    static = ((GROUP_INSTANCE_ID, instance_id),) if instance_id else ()
    return LocatorSubject((*static, (CLIENT_ID, client_id)), host)


class RackLocatorChain:
    """The locators with their rules and tables, ready to be asked; compared by identity."""

    __slots__ = ("_aliases", "_asked", "_settled")

    def __init__(self, order: tuple[RackLocator, ...], tables: Mapping[str, tuple[RawRackRow, ...]]) -> None:
        self._aliases = {other: meant for locator in order for other, meant in locator.aliases}
        asked = (locator for locator in order if locator.kind is not LocatorKind.ALIAS)
        self._asked = tuple((locator.name, _asker(locator, tables.get(locator.name, ()))) for locator in asked)
        self._settled: dict[tuple[object, ...], Rack] = {}

    def rack(self, subject: LocatorSubject, reported_racks: Sequence[str]) -> Rack:
        """Its rack by the locators; ``reported_racks``: the racks on the wire, several in a contradiction."""
        host = host_of(subject.host)
        answers: list[_LocatorAnswer] = []
        for name, ask in self._asked:
            racks = ask(subject, host, reported_racks)
            if racks:
                meant = {self._aliases.get(rack, rack) for rack in racks} if self._aliases else set(racks)
                answers.append((name, tuple(sorted(meant) if len(meant) > 1 else meant)))
        # A cluster has few racks and many clients: what was settled once is the same object for all.
        key = (*answers, tuple(reported_racks))
        rack = self._settled.get(key)
        if rack is None:
            if len(self._settled) >= _MOST_SETTLED:  # clients may send any rack
                self._settled.clear()
            rack = self._settled[key] = _settled(answers, reported_racks)
        return rack


def _asker(locator: RackLocator, rows: tuple[RawRackRow, ...]) -> _Ask:
    """The function from a subject to the locator's racks."""
    match locator.kind:
        case LocatorKind.WIRE:
            return lambda _subject, _host, reported_racks: reported_racks
        case LocatorKind.REGEX:
            patterns = RackPatternIndex(locator.patterns)
            return lambda subject, host, _wire_racks: patterns.racks(subject.names, host.names)
        case LocatorKind.CIDR:
            networks = RackNetworkIndex(locator.networks)
            return lambda _subject, host, _wire_racks: networks.racks(host.addresses)
        case _:
            table = _indexed(rows)
            return lambda subject, host, _wire_racks: [
                rack for key in (*subject.names, *host.keys) if key in table for rack in table[key]
            ]


def located(observation: Observation, order: tuple[RackLocator, ...], memo: Memo) -> RackLocatorChain | None:
    """The locators with this observation's answers, the same object while unchanged; None without locators."""
    if not order:
        return None
    tables = {table.locator: table.rows for table in observation.rack_tables}
    return memo.of(("located",), (order, tables), lambda: RackLocatorChain(order, tables))


def locator_states(observation: Observation, order: tuple[RackLocator, ...]) -> tuple[LocatorState, ...]:
    """Every locator with the size and age of its answer."""
    tables = {table.locator: table for table in observation.rack_tables}
    states: list[LocatorState] = []
    for locator in order:
        table = tables.get(locator.name)
        if locator.kind is LocatorKind.TABLE:
            size_and_age = (None, None) if table is None else (len(table.rows), table.age_ms)
            states.append(LocatorState(locator.name, *size_and_age))
        else:
            rules = len(locator.patterns) + len(locator.networks) + len(locator.aliases)
            states.append(LocatorState(locator.name, None if locator.kind is LocatorKind.WIRE else rules, 0))
    return tuple(states)


def _settled(answers: Sequence[_LocatorAnswer], reported_racks: Sequence[str]) -> Rack:
    """The first that knows wins; ``answers`` holds those that answered, in order."""
    sent = reported_racks[0] if len(reported_racks) == 1 else None
    winner = next(((name, racks[0]) for name, racks in answers if len(racks) == 1), None)
    if winner is None:
        if not answers:
            return UNKNOWN_RACK if sent is None else UNKNOWN_RACK._replace(source="", sent=sent)
        source, claims = answers[0]
        others = _others(answers[1:], None)
        return Rack(RackState.CONFLICTING, None, tuple(claims), source=source, sent=sent, others=others)
    source, name = winner
    others = _others(answers, name)
    if source == LocatorKind.WIRE.value and name == sent:
        return Rack(RackState.KNOWN, name, others=others)
    return Rack(RackState.KNOWN, name, source=source, sent=sent, others=others)


def _others(answers: Iterable[_LocatorAnswer], name: str | None) -> tuple[tuple[str, str], ...]:
    return tuple((locator, rack) for locator, racks in answers for rack in racks if rack != name)


def _indexed(rows: Iterable[RawRackRow]) -> dict[tuple[str, str], tuple[str, ...]]:
    table: dict[tuple[str, str], tuple[str, ...]] = {}
    for row in rows:
        key = name_key(row.of, row.name)
        table[key] = (*table.get(key, ()), row.rack)
    return table
