"""Results of the demo: the proposals read back from their topic, their gain, and the kinds that are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import KafkaException

from agent.errors import ClusterUnreachable
from agent.money.costs import CrossRackCosts, costs_of
from agent.money.traffic import bytes_words
from agent.propose.codec import BadProposalDocument, proposal_from_json
from agent.record.reader import ConsumerRecord, open_reader
from agent.telemetry.topic_records import CREATED
from agent.values.assessment import LocalityMeasure
from agent.values.cycle import Cycle
from agent.values.limits import Limits
from agent.values.number_format import counted, usd, usd_per_gb
from agent.values.proposal import Proposal, ProposalKind, saved_usd_per_day
from agent.values.rates import priced
from config.settings import Settings
from testbed.demo.events import with_line
from testbed.demo.shares import CrossingShare, shares

WANTED = (ProposalKind.REASSIGN, ProposalKind.TRIGGER, ProposalKind.ADVISE)
"""Kinds that the demo must have published to end well."""
_READ_MS = 15_000
_RULES = {
    LocalityMeasure.KAFKA: "by Kafka's rule (local: a replica in the reader's rack)",
    LocalityMeasure.READ_LOCAL: "as read (local: the leader, or a follower fetch in the reader's rack)",
}


class DemoProposals(NamedTuple):
    """What a plain consumer found in the topic."""

    records: int
    proposals: tuple[Proposal, ...]
    """Every proposal once, in the order in which they were first written."""


def read_back(settings: Settings) -> DemoProposals:
    """Everything in the proposals topic, read with a plain consumer. Raises ClusterUnreachable."""
    topic = settings.proposals_topic
    try:
        with open_reader(
            settings.kafka.confluent(), topic, prefix=settings.topics.prefix, timeout_ms=_READ_MS
        ) as reader:
            return published(reader.read(reader.spans()))
    except KafkaException as error:
        raise ClusterUnreachable(
            f"{topic} could not be read back",
            why=error.args[0].str(),
            todo="Run the demo on a machine with less load.",
        ) from error


def published(records: Iterable[ConsumerRecord]) -> DemoProposals:
    """The proposals among these records."""
    proposals: dict[str, Proposal] = {}
    count = 0
    for record in records:
        count += 1
        if record.headers.get("ce_type") == CREATED and record.value is not None:
            with suppress(BadProposalDocument):
                proposal = proposal_from_json(record.value)
                proposals.setdefault(proposal.id, proposal)
    return DemoProposals(count, tuple(proposals.values()))


def missing(read: DemoProposals) -> tuple[str, ...]:
    """One sentence for each wanted kind of which no proposal was read back."""
    kinds = {proposal.kind for proposal in read.proposals}
    return tuple(
        f"no {kind.value} proposal was read back from the topic, and the demo expects at least one"
        for kind in WANTED
        if kind not in kinds
    )


def summary(read: DemoProposals, topic: str, last: Cycle) -> tuple[str, ...]:
    """The closing lines."""
    kinds = Counter(proposal.kind.value for proposal in read.proposals)
    slots = {(proposal.kind, proposal.subject, proposal.reason) for proposal in read.proposals}
    found_shares = shares(last)
    head = f"Read back from topic {topic} with a plain consumer: {counted(read.records, 'record')}, "
    return (
        head + f"{counted(len(read.proposals), 'proposal')}, {len(slots)} distinct by kind, subject and reason",
        *(f"  {kind:<9} {kinds[kind]}" for kind in (kind.value for kind in ProposalKind)),
        "",
        "Reads across racks now -> after everything that is proposed now (best case)",
        *(f"  {line}" for line in share_lines(found_shares)),
        *(f"  {line}" for line in money_lines(found_shares, last.limits)),
        "",
        "The largest proposal of each kind (replicas that share a rack first, then by dollars saved a day)",
        *(f"  {number}. {sentence}" for number, sentence in enumerate(_of_each_kind(last), 1)),
        "",
        "Next steps",
        "  rackwise cluster up && rackwise doctor -b HOST:PORT   the same checks, on a cluster that keeps running",
        "  rackwise run -b HOST:PORT                             the agent beside your own cluster, in dry run",
        "  README.md, docs/                                      the meaning of each finding and proposal",
    )


def share_lines(crossing: Sequence[CrossingShare]) -> list[str]:
    """The share of reads across racks now and after what is proposed, one line for each measure."""
    lines: list[str] = []
    for share in crossing:
        then = f"{_percent(share.crossing_now, share.total)} -> {_percent(share.crossing_after, share.total)}"
        in_partitions = share.unit == "partitions"
        total = counted(round(share.total), "partition") if in_partitions else bytes_words(share.total)
        unknown = f"{share.unknown:,.0f}" if in_partitions else bytes_words(share.unknown)
        lines.append(
            f"{then:<16} of {total} {_RULES[share.measure]}"
            + (f"; {unknown} more by readers of unknown rack" if share.unknown else "")
        )
    return lines or ["unknown: no group has members of known rack"]


def money_lines(crossing: Sequence[CrossingShare], limits: Limits) -> list[str]:
    """What reads across racks cost a day, and the price that is assumed; nothing without rates or a single price."""
    if limits.price.usd_per_gb is None or limits.price.between:
        return []
    price = limits.price.usd_per_gb
    return [
        f"{_usd_per_day(share.crossing_now, price)} -> {_usd_per_day(share.crossing_after, price)} "
        f"for these reads at an assumed {usd_per_gb(price)} across racks (price.usd_per_gb)"
        for share in crossing
        if share.unit == "bytes_per_s" and share.measure is LocalityMeasure.READ_LOCAL
    ]


def _usd_per_day(bytes_per_s: float, usd_per_gb: float) -> str:
    return f"{usd(priced(bytes_per_s, usd_per_gb))}/day"


def _percent(part: float, total: float) -> str:
    return f"{100 * part / total:.0f} %"


def _of_each_kind(last: Cycle) -> list[str]:
    """One proposal of each kind: placement, which is for safety, then what saves most."""
    costs = costs_of(last.snapshot)

    def weight(proposal: Proposal) -> tuple[bool, float, int]:
        """The application's own topics before Kafka's, what may save most first, then what changes most."""
        own = not proposal.subject.name.startswith("__")
        return own, _may_save(proposal, costs, last.limits), len(proposal.after)

    kinds = (ProposalKind.REASSIGN, ProposalKind.TRIGGER, ProposalKind.ADVISE, ProposalKind.LEADERS)
    best = [max((p for p in last.proposals if p.kind is kind), key=weight, default=None) for kind in kinds]
    first = [proposal for proposal in best if proposal is not None]
    first.sort(key=lambda one: (one.kind is not ProposalKind.REASSIGN, -_may_save(one, costs, last.limits)))
    return [with_line(proposal) for proposal in first] or ["no proposals"]


def _may_save(proposal: Proposal, costs: CrossRackCosts, limits: Limits) -> float:
    """Dollars a day that it saves as predicted, else all that its group may cost; 0 where neither is known."""
    saved = saved_usd_per_day(proposal.predicted)
    if saved is not None:
        return saved
    traffic = costs.groups.get(proposal.subject.name) if proposal.subject.kind == "group" else None
    return 0.0 if traffic is None else traffic.at_most_usd_per_day(limits) or 0.0
