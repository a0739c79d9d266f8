"""Types of the documents of ``status``, ``racks``, ``doctor`` and ``cluster``."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from agent.documents.groups import PricedDocument, RatesSource


class LocalBroker(TypedDict):
    """One broker of a cluster on this machine."""

    id: int
    rack: str | None
    """broker.rack; null for a broker without one."""
    pid: int | None
    """Process id; null where the process has ended."""
    jmx_port: int | None
    """Port of its byte counters; null without --jmx."""


class LocalCluster(TypedDict):
    """A cluster on this machine."""

    name: str
    state: str
    """starting, running, partly running or left behind."""
    why: str
    """Why it is in that state."""
    directory: str
    version: str | None
    """Kafka's version; this and the following are null where the cluster's manifest cannot be read."""
    brokers_running: int | None
    brokers: list[LocalBroker] | None
    bootstrap_servers: str | None
    memory_mib: int | None
    """Resident memory of all its processes, MiB."""
    proxied_bootstrap_servers: str | None
    """Addresses of the recording proxy; null without --proxied."""
    cluster_id: str | None


class FindingDocument(TypedDict):
    """One thing that is wrong, or worth knowing."""

    severity: Literal["critical", "warning", "info"]
    finding: str
    """What kind of finding it is, as one sentence."""
    subject: str
    """``kind/name`` of what it is about."""
    sentence: str
    evidence: dict[str, str | int | float | bool | list[str | int] | None]
    """Figures and names that show it."""
    since_ms: int
    """Epoch milliseconds of the look that saw it first."""
    held: bool
    """True while nothing is planned from it, because a rack does not hold still."""
    id: str


class GapDocument(TypedDict):
    """A part of the cluster that did not answer."""

    part: str
    cause: str
    subject: str
    """Empty: the part as a whole."""
    detail: str


class WorstGroup(PricedDocument):
    """One of the groups that cost most."""

    group: str
    unknown_reads: int
    """Reads (one partition by one reader) of which it is not known how many bytes cross."""


class UnknownGroups(TypedDict):
    """Groups of which it is not known, in part or in full, what their reads across racks cost."""

    groups: list[str] | None
    """Null where none was seen and some may be hidden, as in the next."""
    unbounded_groups: list[str] | None
    """Those among them of which not even a bound is known."""
    at_most_cross_rack_bytes_per_s: float | None
    """Bytes per second that the others read across racks at most; null: none has a bound."""
    at_most_usd_per_day: float | None
    """What they cost a day at most; null also where no price is set."""


class RackBrokers(TypedDict):
    """The brokers of a rack."""

    rack: str | None
    """Null for brokers whose rack is not known."""
    brokers: list[int]
    """Their ids."""


class LostTaskDocument(TypedDict):
    """A task that would have to restore."""

    group: str
    task: str
    process: str
    """The Kafka Streams process that runs it."""


class SurvivorDocument(TypedDict):
    """A broker outside the rack, with what it leads now and afterwards."""

    broker: int
    rack: str | None
    """Null where it is not known."""
    leaders: int
    leaders_after: int
    bytes_per_s: float | None
    """What the partitions that it leads take in; null where one rate is unknown."""
    bytes_per_s_after: float | None
    led_bytes: int | None
    """Bytes on disk of what it leads; null where one size is unknown."""
    led_bytes_after: int | None


class LossDocument(TypedDict):
    """What losing a rack costs."""

    leaderless: list[str]
    """Partitions that would have no leader."""
    under_min_isr: list[str]
    """Partitions that would be under their min ISR."""
    untold: list[str]
    """Partitions for which that is unknown."""
    tasks_without_caught_up_standby: list[LostTaskDocument]
    untold_tasks: list[LostTaskDocument]
    """Tasks for which it is unknown whether another rack has a standby that has caught up."""
    untold_groups: list[str]
    """Applications whose tasks are unknown."""
    not_seen: list[str]
    """Missing answers that may hide more of each; while there is one, an empty list is not known to be all."""
    survivors: list[SurvivorDocument]
    """Empty also where no topic was seen and some may be hidden."""


class AbsenceDocument(TypedDict):
    """A broker that is not live."""

    broker: int
    for_ms: int | None
    """How long it has been absent, as far as looks tell; null where only one look was taken."""
    sentence: str


class RackDocument(TypedDict):
    """A rack with what is in it, what crosses its border, and what losing it costs."""

    rack: str | None
    """Null for everything whose rack is not known."""
    known_from: dict[str, int]
    """Where the rack is known from -> how many brokers and members."""
    brokers: list[int] | None
    """Null where none was seen and some may be hidden, as in the numbers that follow."""
    absent_brokers: list[int] | None
    """Those of ``brokers`` that are not live."""
    absences: list[AbsenceDocument]
    """Of each of these, since when."""
    replicas: int | None
    leaders: int | None
    members: int | None
    active_tasks: int | None
    standby_tasks: int | None
    """Standbys and warm-ups."""
    cross_rack_in_bytes_per_s: float | None
    """Bytes per second that come in from other racks: at least, where ``unknown_parts`` is above 0; null: unknown."""
    cross_rack_out_bytes_per_s: float | None
    """Bytes per second that go out to other racks, in the same way."""
    usd_per_day: float | None
    """Dollars a day for what comes in, in the same way: the sum of all racks is what crosses racks in all."""
    unknown_parts: int
    """Reads and copies in the whole cluster of which it is not known how many bytes cross, or between which racks."""
    rates: RatesSource
    """Where bytes per second come from."""
    losing_it: str | None
    """What losing the rack costs, as one sentence; null where there is no rack to lose."""
    loss: LossDocument | None


class FixDocument(TypedDict):
    """What mends one cause."""

    who: list[str]
    """All that share the cause, each with its kind: ``group orders``, ``broker 1``, ``topic clicks``."""
    lines: list[str]
    """Settings or commands, in their order."""


class CheckDocument(TypedDict):
    """One question with its answer."""

    state: Literal["ok", "nothing", "once", "FAULT", "risk", "unknown"]
    """``nothing``: there is nothing to check; ``once``: a fault if it lasts, which one look cannot show."""
    check: str
    """What is asked."""
    sentence: str
    """The answer; it joins ``sentences`` with semicolons."""
    sentences: list[str]
    """The answer, one entry for each fact."""
    who: list[str]
    """What it concerns: brokers, topics or groups."""
    line: str | None
    """The line to change, where a single line mends all of it; null where there is none, or ``fixes`` has several."""
    fixes: list[FixDocument]
    """The lines to change, one entry for each cause."""
    cross_rack_bytes_per_s: float | None
    """Bytes per second that cross racks because of this fault, at least; null where that is unknown, or no question."""
    usd_per_day: float | None
    """What they cost a day, at least; null in the same way."""
    at_most_usd_per_day: float | None
    """A bound where more may cross than is known, as for members of unknown rack; null elsewhere."""
    always_shown: bool
    """Whether its answer is worth reading also where nothing is wrong."""


class BrokerDocument(TypedDict):
    """One broker."""

    broker: int
    host: str | None
    """Null for one that only replica lists name."""
    port: int | None
    rack: str | None
    """Null where it is not known."""
    known_from: str | None
    """Where the rack is known from; null where it is not."""
    live: bool
    absent: str | None
    """Since when it is absent, as a sentence; null for a live broker."""
    fenced: bool | None
    cordoned: bool
    replicas: int | None
    """Null where no topic was seen and some may be hidden, as in the numbers that follow."""
    leaders: int | None
    preferred_leaders: int | None
    """Partitions whose replica list it comes first in."""
    in_bytes_per_s: float | None
    """What producers write into the partitions that it leads; null where one of their rates is unknown."""
    led_bytes: int | None
    """Bytes on disk of the partitions that it leads; null where one of their sizes is unknown."""


class LookDocument(TypedDict):
    """What is true of every document of one look: its time, its gaps, and where its rates and prices are from."""

    cluster: str
    """The cluster's id."""
    mode: Literal["observe", "propose", "execute"]
    taken_ms: int
    """Epoch milliseconds."""
    partial: bool
    """Whether a part that these brokers offer did not answer."""
    gaps: list[GapDocument]
    rebalancing_groups: list[str]
    """Groups that show no racks or assignments of their members in this look."""
    rates_sentence: str
    price_sentence: str
    priced: bool
    """Whether a price is set; without one no money is known."""
    measured_partitions: int
    """Partitions with known bytes per second."""
    topics: int
    """Topics that were seen."""


class JournalSource(TypedDict):
    """The journal of the agents in mode execute."""

    name: str
    """Topic or file; ``none`` without one, ``not readable`` where it cannot be read."""
    known: bool
    """False where there may be one that cannot be read."""
    why: str | None
    """Why there is nothing to read; null where it was read."""


class AgentLookDocument(LookDocument):
    """The running agent's last finished look, with its cycle and its journal."""

    cycle: int
    """Number of the cycle since the start of the process, from 1."""
    look: str
    """Id of the look, as in the agent's telemetry."""
    planned_ms: int | None
    """Epoch milliseconds of the look that the proposals are of; null before the first planning."""
    groups_with_hidden_reads: list[str]
    """Groups whose reads are not visible now, so no topic counts them."""
    journal: JournalSource
