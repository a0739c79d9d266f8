"""Facts of a report, written out: one cluster, one hour, and what a test adds to it."""

from __future__ import annotations

from pipeline.owner_rules import OwnerRule
from pipeline.report.facts import (
    CountedInput,
    DailyCost,
    LookCoverage,
    MeasuredOutcome,
    OpenFinding,
    OpenProposal,
    PredictionErrors,
    ProposalText,
    RackDrift,
    RackPairBytes,
    ReaderLocality,
    RebalanceCounts,
    ReportFacts,
    RestoreSpeed,
    TopicCost,
    WarmupTimes,
    WeekCoverage,
)


def facts(**some: object) -> ReportFacts:
    empty = ReportFacts(
        coverage=(LookCoverage("c", 0, 0, 1, 3600.0, 0),),
        costs=(),
        pairs=(),
        near=(),
        warmups=(),
        restores=(),
        rebalances=(),
        drifts=(),
        outcomes=(),
        errors=(),
        standing=(),
        looks=(CountedInput(None, 1),),
        unread=(),
        left_out=(),
        absent=(),
    )
    return empty._replace(**some)


def proposal(reason: str = "set_client_rack", subject: str = "group/billing", **figures: object) -> OpenProposal:
    row = OpenProposal("c", "p-1", "advise", reason, subject, *[None] * 10)
    return row._replace(**figures)


def cost(**figures: object) -> DailyCost:
    return DailyCost("c", "1970-01-01", "consume", "billing", 2e9, 0.0, 0.04, 0.0, 0)._replace(**figures)


def topic_cost(**figures: object) -> TopicCost:
    """1.9 GB that group billing read of topic orders from another rack, all of it avoidable."""
    row = TopicCost("c", "consume", "billing", "orders", 1.9e9, 0.038, 1.9e9, 0.038, 0.0, 0.0, 0.038, 0.0)
    return row._replace(**figures)


NAMED = {"cross_bytes": 1.9e9, "avoidable_bytes": 1.9e9, "unknown_bytes": 0.0, "usd": 0.038}
CROSSING = RackPairBytes("c", "consume", "a", "b", "CROSS_ZONE", 2e9, 0.0, 0.04, None, None, 0, 0.02, 0.02)
UNKNOWN_PAIR = RackPairBytes("c", "consume", "a", "", "UNKNOWN", 1.0, None, None, None, "member without rack", 0)


def many_facts() -> ReportFacts:
    """Rows in every section, more than are seen at once in some; long names, hostile ones, and unknown figures."""
    names = [f"{name}-{at}" for at in range(9) for name in ("billing", "x" * 100, "we <b>ird</b> $x^2$ | name")]
    clusters = ("W2nPzD9yTbqkkq0uB0s7Jg", "5L6g3nShT-eMCtK--X86sw")
    hour = 3_600_000
    return facts(
        coverage=tuple(LookCoverage(cluster, 0, 200 * hour, 201, 700_000.0, 3) for cluster in clusters),
        weeks=tuple(WeekCoverage(cluster, 600_000.0, 500_000.0) for cluster in clusters),
        topics=tuple(
            topic_cost(
                cluster=clusters[at % 2],
                group=name,
                topic=f"topic-{at % 4}",
                usd=400.0 / (at + 1),
                avoidable_usd=None if at == 5 else 300.0 / (at + 1),
                recent_usd=200.0 / (at + 1),
                before_usd=9.0,
            )
            for at, name in enumerate(names)
        ),
        costs=tuple(
            cost(cluster=clusters[0], day=f"2026-11-{day:02}", group=name, usd=float(day))
            for day in range(1, 9)
            for name in names[:4]
        ),
        pairs=(
            *(
                CROSSING._replace(
                    cluster=cluster, path=path, source_rack=source, target_rack=target, price_date="2026-01"
                )
                for cluster in clusters
                for path in ("consume", "replicate")
                for source, target in (("use1-az1", "use1-az2"), ("use1-az2", "use1-az4"), ("use1-az4", "use1-az1"))
            ),
            UNKNOWN_PAIR._replace(cluster=clusters[0], bytes=3e9),
        ),
        near=tuple(
            ReaderLocality(clusters[0], name, rack, 3.0, 9.0, 0.0, 3e9, 9e9 + at)
            for at, name in enumerate(names[:8])
            for rack in ("use1-az1", "use1-az2", "")
        ),
        warmups=(WarmupTimes(clusters[0], "orders-app", "promoted", 3, 41.0, 55.0, 77.0, 31.0, 0.045),),
        restores=(RestoreSpeed(clusters[0], "orders-app", 1, 3, 90.0, 210.0, 400.0, 0.55, "rebalance: it stalls"),),
        rebalances=tuple(RebalanceCounts(clusters[0], name, "probing", 2, 3.0, 4.0, 4, 0) for name in names[:12]),
        drifts=(RackDrift(clusters[1], "broker/4", None, 0, None, 3_600.0, ("c",), ("a",), None, "relabelled"),),
        outcomes=tuple(
            MeasuredOutcome(
                clusters[0],
                f"p-00000000{at:04}",
                "reassign",
                f"topic/{name}",
                "done",
                6,
                6,
                4e9,
                4.2e9,
                80.0,
                96.0,
                1e5,
                1.04e5,
                0.5,
                0.45,
                0.04,
            )
            for at, name in enumerate(names[:3])
        ),
        errors=(PredictionErrors("moves", 2, 0.05, 0.25, 0.45, 0.5),),
        standing=tuple(
            proposal(
                subject=f"group/{name}",
                cluster=clusters[at % 2],
                proposal=f"p-{at:012}",
                usd=3.0,
                cross_bytes=2e9,
                avoidable_bytes=2e9,
                unknown_bytes=0.0,
                created_ms=0,
                predicted_moves=4,
            )
            for at, name in enumerate(names[:12])
        ),
        texts=(ProposalText(clusters[0], "p-000000000000", "client.rack=use1-az1", ("f-1",)),),
        findings=(
            OpenFinding(
                clusters[0], "f-1", "MEMBER_WITHOUT_RACK", "WARNING", "group/billing-0", "no client.rack " * 9, 0
            ),
        ),
        owners=(OwnerRule("group", "billing*", "payments", "CC-1000"), OwnerRule("topic", "*", "platform", None)),
    )
