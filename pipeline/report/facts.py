"""Facts of a report: a few hundred rows, summed by Spark and collected. Unknown is None, never 0.

Rows of one kind have a fixed order, so that equal tables give equal reports.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.owner_rules import OwnerRule
from pipeline.report.balance import LedgerBalance
from pipeline.schemas.zones import CROSS_ZONE

LASTING_PATHS = ("produce", "replicate", "consume")
"""Paths that cost as long as nothing is changed. What other ones copy is paid once, and is never avoidable."""


class DailyCost(NamedTuple):
    """What one reader group, or one path other than reading, sent across racks on one day."""

    cluster: str
    day: str
    path: str
    group: str
    """Empty for the paths that no group is the cause of, and for all groups but the dearest, which are a path here."""
    cross_bytes: float | None
    unknown_bytes: float | None
    """Bytes of which it is unknown whether they crossed."""
    usd: float | None
    unpriced_bytes: float | None
    """Part of cross_bytes whose pair of racks has no price."""
    sizeless: int
    """Rows of the ledger whose bytes are unknown."""


class RackPairBytes(NamedTuple):
    """Bytes of one path from rack to rack over the whole period."""

    cluster: str
    path: str
    source_rack: str
    target_rack: str
    zone: str
    bytes: float | None
    unavoidable_bytes: float | None
    usd: float | None
    price_date: str | None
    """The latest price date that was applied."""
    why_unknown: str | None
    sizeless: int
    usd_per_gb_low: float | None = None
    """The lowest price of a gigabyte (10**9 bytes) that was applied across racks; None without a price."""
    usd_per_gb_high: float | None = None
    undecided_bytes: float | None = 0.0
    """Part of bytes that crossed racks, and of which it is unknown whether a placement avoids it."""

    @property
    def is_paid_once(self) -> bool:
        """Whether it crossed racks as a copy, which ends by itself."""
        return self.zone == CROSS_ZONE and self.path not in LASTING_PATHS


class TopicCost(NamedTuple):
    """What one reader group of one topic, or another path of one topic, sent across racks over the whole period."""

    cluster: str
    path: str
    group: str
    """Empty for the paths that no group is the cause of."""
    topic: str
    cross_bytes: float
    usd: float | None
    """None where the price of all of it is unknown."""
    avoidable_bytes: float
    """Part of cross_bytes that another placement or setting avoids."""
    avoidable_usd: float | None
    unpriced_bytes: float
    """Part of avoidable_bytes whose pair of racks has no price."""
    unsure_bytes: float
    """Part of cross_bytes of which it is unknown whether it can be avoided."""
    recent_usd: float | None
    """Avoidable, in the latest days (`weeks.LatestDays`); None where a price is unknown."""
    before_usd: float | None
    """The same a week before."""


class WeekCoverage(NamedTuple):
    """Seconds that looks cover in the latest days, and in the same days a week before."""

    cluster: str
    recent_s: float
    before_s: float


class DayCoverage(NamedTuple):
    """How much of a day looks cover."""

    cluster: str
    day: str
    hours: int
    """Hours with looks."""
    seconds: float
    """Never more than these hours have."""


class LookCoverage(NamedTuple):
    """How much of the period looks cover."""

    cluster: str
    first_ms: int
    """Begin of the first hour with looks."""
    last_ms: int
    """Begin of the last one."""
    hours: int
    """Hours with looks."""
    seconds: float
    """Seconds that looks cover."""
    thin_hours: int
    """Hours in between of which less than nine tenths are covered."""
    gap_seconds: float = 0.0
    """Seconds of gaps that are booked by the offsets on both sides."""
    twice_s: float = 0.0
    """Part of ``seconds`` beyond what its hours have: an hour is run through twice where a clock is set back."""

    @property
    def span_s(self) -> float:
        """Seconds from the first hour's begin to the last one's end."""
        return (self.last_ms - self.first_ms) / 1000.0 + 3_600.0


class ReaderLocality(NamedTuple):
    """How local the readers of a group in one rack are."""

    cluster: str
    group: str
    rack: str
    local: float | None
    total: float | None
    unknown: float | None
    local_bytes: float | None
    total_bytes: float | None


class WarmupTimes(NamedTuple):
    """Warm-ups of an application with one outcome."""

    cluster: str
    group: str
    outcome: str
    number: int
    low_s: float | None
    median_s: float | None
    high_s: float | None
    waited_s: float | None
    """Median wait from ready to promoted."""
    stalled_share: float | None
    """Share of their time in which the lag did not shrink."""


class RestoreSpeed(NamedTuple):
    """How fast one store restores, records per second."""

    cluster: str
    group: str
    subtopology: int
    samples: int
    low: float | None
    median: float | None
    high: float | None
    stalled_share: float | None
    stalls_when: str | None


class RebalanceCounts(NamedTuple):
    """Rebalances of a group with one cause."""

    cluster: str
    group: str
    cause: str
    number: int
    median_s: float | None
    longest_s: float | None
    moved: int | None
    """Partitions that changed their reader, where it could be seen."""
    unseen: int
    """Rebalances whose moves were hidden."""


class RackDrift(NamedTuple):
    """One change of racks."""

    cluster: str
    subject: str
    partition: int | None
    began_ms: int
    ended_ms: int | None
    lasted_s: float | None
    before: tuple[str, ...] | None
    after: tuple[str, ...] | None
    shares_rack: bool | None
    cause: str | None


class MeasuredOutcome(NamedTuple):
    """A proposal that was acted on: predicted and measured."""

    cluster: str
    proposal: str
    kind: str
    subject: str | None
    state: str
    predicted_moves: int | None
    measured_moves: int | None
    predicted_move_bytes: float | None
    measured_move_bytes: float | None
    predicted_seconds: float | None
    measured_seconds: float | None
    predicted_bytes_per_s: float | None
    measured_bytes_per_s: float | None
    predicted_usd_per_day: float | None
    measured_usd_per_day: float | None
    error_share: float | None


class PredictionErrors(NamedTuple):
    """(measured - predicted) / predicted of one quantity over all proposals that have both."""

    quantity: str
    number: int
    low: float
    """Tenth percentile."""
    median: float
    high: float
    """Ninetieth percentile."""
    worst: float
    """The largest error, with its sign."""


class OpenProposal(NamedTuple):
    """An open proposal, with the present cost of its subject."""

    cluster: str
    proposal: str
    kind: str
    reason: str | None
    subject: str | None
    created_ms: int | None
    predicted_moves: int | None
    predicted_move_bytes: float | None
    predicted_seconds: float | None
    predicted_bytes_per_s: float | None
    """Across racks afterwards."""
    predicted_usd_per_day: float | None
    """Gain."""
    cross_bytes: float | None
    """What the subject sent across racks in the period: what a group read, or all that has to do with a topic."""
    avoidable_bytes: float | None
    """Part of it that a placement avoids; None where that is unknown of all of it."""
    unknown_bytes: float | None
    usd: float | None
    undecided_bytes: float | None = None
    """Part of cross_bytes of which it is unknown whether a placement avoids it."""


class ProposalText(NamedTuple):
    """What the document of an open proposal says besides its figures."""

    cluster: str
    proposal: str
    line: str | None
    """The setting of an advice, as it is written into a configuration; may have several lines."""
    findings: tuple[str, ...]
    """Ids of the findings that it answers."""


class OpenFinding(NamedTuple):
    """A finding of a cluster's newest look."""

    cluster: str
    id: str
    reason: str
    severity: str | None
    subject: str | None
    sentence: str | None
    since_ms: int | None


class CountedInput(NamedTuple):
    """How much of what was read could not be used for one reason, and is missing from the figures."""

    why: str | None
    """None for what could be used."""
    number: int


class ReportFacts(NamedTuple):
    """The facts of a report."""

    coverage: tuple[LookCoverage, ...]
    costs: tuple[DailyCost, ...]
    pairs: tuple[RackPairBytes, ...]
    near: tuple[ReaderLocality, ...]
    warmups: tuple[WarmupTimes, ...]
    restores: tuple[RestoreSpeed, ...]
    rebalances: tuple[RebalanceCounts, ...]
    drifts: tuple[RackDrift, ...]
    outcomes: tuple[MeasuredOutcome, ...]
    errors: tuple[PredictionErrors, ...]
    standing: tuple[OpenProposal, ...]
    looks: tuple[CountedInput, ...]
    unread: tuple[CountedInput, ...]
    """Records that could not be read, of all clusters."""
    left_out: tuple[tuple[str, int], ...]
    """Title of a section -> rows that were left out because there were too many, sections with any."""
    absent: tuple[str, ...]
    """Tables that do not exist yet, sorted."""
    topics: tuple[TopicCost, ...] = ()
    """The dearest first by what is avoidable; also those that crossed racks in the week before alone."""
    weeks: tuple[WeekCoverage, ...] = ()
    texts: tuple[ProposalText, ...] = ()
    findings: tuple[OpenFinding, ...] = ()
    owners: tuple[OwnerRule, ...] = ()
    days: tuple[DayCoverage, ...] = ()
    bill: tuple[tuple[str, float], ...] = ()
    """UTC day -> dollars that a cloud's bill has for data transfer, where one is given."""
    balance: tuple[LedgerBalance, ...] = ()
    """The ledger beside counters, by cluster."""

    @property
    def several(self) -> bool:
        """Whether the report is about more than one cluster, so that each row must name its own."""
        clusters = [row.cluster for row in self.coverage] + [row.cluster for row in self.standing]
        return len({*clusters, *(row.cluster for row in self.pairs)}) > 1

    @property
    def covered_s(self) -> float:
        """Seconds that looks cover, over all clusters; never more than `span_s`."""
        return sum(row.seconds - row.twice_s for row in self.coverage)

    @property
    def span_s(self) -> float:
        """Seconds of the hours from each cluster's first look to its last, over all clusters."""
        return sum(row.span_s for row in self.coverage)
