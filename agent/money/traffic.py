"""Bytes per second across racks as a sum with unknown parts; and the route of one read or one copy.

A read goes to the leader, or to an in-sync replica in the reader's rack by a rack-aware selector (KIP-392); a copy goes
from leader to follower. Producers are not visible, so their traffic is in no sum. An unknown part hides only itself;
local parts are zero at any rate; a part without a rate removes the upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from agent.values.limits import Limits
from agent.values.number_format import usd
from agent.values.rates import Flows, Racks, highest_price, priced, usd_per_day
from agent.values.snapshot import PartitionState


class RackRoute(NamedTuple):
    """From which rack to which bytes go; both are one rack where they stay in it."""

    source: str
    target: str


class CrossRackTraffic(NamedTuple):
    """Bytes across racks of some reads and copies."""

    flows: Flows
    """(from rack, to rack) -> bytes per second, as far as they are known."""
    parts: int
    """Reads (of one partition by one reader) and copies (of one partition to one follower) that were looked at."""
    unknown: int
    """Parts of which it is unknown how many bytes cross."""
    open_bytes_per_s: float = 0.0
    """Bytes per second of the unknown parts with a known rate: they may cross, or not."""
    unbounded: int = 0
    """Unknown parts whose rate is not known either."""

    @property
    def bytes_per_s(self) -> float | None:
        """Lower bound of the crossing bytes, exact where nothing is unknown; None where none is known."""
        known = sum(self.flows[pair] for pair in sorted(self.flows))
        return None if self.unknown and not known else round(known, 3)

    def usd_per_day(self, limits: Limits) -> float | None:
        """The price of that, at least; None where it is unknown, or a pair of racks has no price."""
        return None if self.bytes_per_s is None else usd_per_day(self.flows, limits)

    @property
    def at_most_bytes_per_s(self) -> float | None:
        """Upper bound of the crossing bytes; None without one."""
        known = sum(self.flows[pair] for pair in sorted(self.flows))
        return None if self.unbounded else round(known + self.open_bytes_per_s, 3)

    def at_most_usd_per_day(self, limits: Limits) -> float | None:
        """The price of that, the open part at the dearest price; None without a bound, or where a price is missing."""
        known, dearest = usd_per_day(self.flows, limits), highest_price(limits)
        if self.unbounded or known is None:
            return None
        if not self.open_bytes_per_s:
            return known
        return None if dearest is None else priced(self.open_bytes_per_s, dearest) + known


NO_TRAFFIC = CrossRackTraffic({}, 0, 0)


class TrafficSum:
    """Adds up reads and copies, one after the other."""

    __slots__ = ("_flows", "_open", "_unbounded", "_unknown", "parts")

    def __init__(self) -> None:
        self._flows: dict[RackRoute, float] | None = None  # most sums of a large cluster have none
        self._unknown = self._unbounded = 0
        self._open = 0.0
        self.parts = 0
        """Reads and copies so far."""

    def add(self, route: RackRoute | None, rate: float | None) -> None:
        """One read or copy; ``rate`` in bytes per second. None for a route or a rate that is unknown."""
        self.parts += 1
        if route is not None:
            source, target = route
            if source == target or rate == 0.0:
                return
            if rate is not None:
                if self._flows is None:
                    self._flows = {}
                self._flows[route] = self._flows.get(route, 0.0) + rate
                return
        elif rate == 0.0:
            return
        self._unknown += 1
        self._unbounded += rate is None
        self._open += rate or 0.0

    def traffic(self) -> CrossRackTraffic:
        """The sum so far."""
        flows = {(*route,): rate for route, rate in sorted(self._flows.items())} if self._flows else NO_TRAFFIC.flows
        return CrossRackTraffic(flows, self.parts, self._unknown, self._open, self._unbounded)


def together(parts: Iterable[CrossRackTraffic]) -> CrossRackTraffic:
    """The sum of sums."""
    flows: dict[tuple[str, str], float] = {}
    number = unknown = unbounded = 0
    open_ = 0.0
    for part in parts:
        number, unknown = number + part.parts, unknown + part.unknown
        open_, unbounded = open_ + part.open_bytes_per_s, unbounded + part.unbounded
        for pair, rate in part.flows.items():
            flows[pair] = flows.get(pair, 0.0) + rate
    return CrossRackTraffic(dict(sorted(flows.items())), number, unknown, open_, unbounded)


def read_route(
    state: PartitionState | None, reader: str | None, racks: Racks, *, serves: bool | None
) -> RackRoute | None:
    """The way of a read by a reader in that rack; None where it is unknown, as without a leader.

    ``serves``: whether the nearest replica serves this reader; None when that is not known. A rack without
    brokers is a rack like any other: no replica is near to it.
    """
    if state is None or reader is None or state.leader is None:
        return None
    source = racks.get(state.leader)
    near = [racks.get(broker) for broker in state.isr]
    if source == reader or (serves and reader in near):
        return RackRoute(reader, reader)
    maybe_near = serves is not False and (reader in near or None in near)
    return None if source is None or maybe_near else RackRoute(source, reader)


def copy_routes(state: PartitionState, racks: Racks) -> Iterator[RackRoute | None]:
    """The way of every follower's copy, None where it is unknown; an offline follower fetches nothing."""
    source = racks.get(state.leader) if state.leader is not None else None
    for broker in state.replicas:
        if broker == state.leader or broker in state.offline:
            continue
        target = racks.get(broker)
        yield RackRoute(source, target) if source is not None and target is not None else None


class RackBorderTraffic(NamedTuple):
    """Bytes into and out of one rack; parts unknown in the total are unknown for each rack."""

    into: CrossRackTraffic
    out: CrossRackTraffic


def border(traffic: CrossRackTraffic, rack: str) -> RackBorderTraffic:
    """Bytes into a rack from others, and out to them."""
    into = {pair: rate for pair, rate in traffic.flows.items() if pair[1] == rack}
    out = {pair: rate for pair, rate in traffic.flows.items() if pair[0] == rack}
    return RackBorderTraffic(traffic._replace(flows=into), traffic._replace(flows=out))


_UNITS = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))
_WHOLE = 99.95
"""From here on a figure has three digits without its tenths."""


def bytes_words(rate: float | None, *, at_least: bool = False) -> str | None:
    """``1.2 MB/s`` for bytes per second; units are powers of ten, as prices are."""
    if rate is None:
        return None
    for size, unit in _UNITS:
        if rate >= size:
            figure = rate / size
            return f"{'≥ ' if at_least else ''}{figure:,.{0 if figure >= _WHOLE else 1}f} {unit}"
    return f"{'≥ ' if at_least else ''}{rate:,.0f} B/s" if not 0 < rate < 1 else "< 1 B/s"


def usd_words(dollars: float | None, *, at_least: bool = False) -> str | None:
    """``$3.10``."""
    return None if dollars is None else f"{'≥ ' if at_least else ''}{usd(dollars)}"


def saving_words(dollars: float | None) -> str | None:
    """``$3.10``; a negative saving is ``costs $0.02``."""
    if dollars is None:
        return None
    return f"costs {usd(-dollars)}" if dollars < 0 else usd(dollars)


def bytes_between(least: float | None, most: float | None) -> str | None:
    """Bytes per second: ``1.0 MB/s`` if known, ``1.0 MB/s to 2.0 MB/s``, ``≥ 1.0 MB/s``, ``≤ 2.0 MB/s`` if unknown."""
    return _between(least, most, bytes_words)


def usd_between(least: float | None, most: float | None) -> str | None:
    """The same for dollars."""
    return _between(least, most, usd_words)


def _between(least: float | None, most: float | None, words: Callable[[float | None], str | None]) -> str | None:
    low, high = words(least), words(most)
    if high is None:
        return low if low is None else f"≥ {low}"
    if not least and least != most:
        return f"≤ {high}"
    return high if low == high else f"{low} to {high}"


def worst_first(traffic: CrossRackTraffic | None, limits: Limits) -> tuple[int, float, float]:
    """Sort key: highest upper bound of the cost first, then of the bytes; lower bounds where there is no upper one.

    Traffic of unbounded cost comes after traffic with a figure, and before traffic that certainly costs nothing.
    """
    if traffic is None:
        return 1, 0.0, 0.0
    rate, money = traffic.at_most_bytes_per_s, traffic.at_most_usd_per_day(limits)
    if rate is None:
        rate, money = traffic.bytes_per_s, traffic.usd_per_day(limits)
    if rate is None:
        return 1, 0.0, 0.0
    return 0 if rate else 2, -(money or 0.0), -rate
