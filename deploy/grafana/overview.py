"""The overview: how things stand, what crosses racks and costs, what rackwise found, and how the agent itself does."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import (
    NONE_IS_GOOD,
    NONE_IS_GOOD_ELSE_BAD,
    Column,
    Query,
    bars,
    highest,
    lines,
    number,
    or_none,
    page,
    rows,
    selected,
)

_BYTES, _USD = "rackwise_cross_rack_bytes_per_second", "rackwise_cross_rack_usd_per_day"
_CRITICAL = 'severity="critical"'
_JOB = 'job=~".*rackwise.*"'


def overview() -> dashboard.Dashboard:
    """The dashboard."""
    whole = page(
        "overview",
        "rackwise: overview",
        "What crosses racks and what it costs, what is wrong, and whether rackwise sees everything.",
    )
    return _agent(_plans(_findings(_size(_traffic(_state(whole))))))


def _state(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    age = f"time() - max by (cluster) ({selected('rackwise_last_success_timestamp_seconds')})"
    return (
        whole.with_row(dashboard.Row("How things stand"))
        .with_panel(
            number("Agents", "Agents that answer.", f"count({selected('rackwise_build_info')})",
                   of=((None, "red"), (1, "green")), no_value="no agent answers", width=3)
        )
        .with_panel(
            number("Last success", "Time since a cycle last succeeded, of the cluster with the oldest.", f"max({age})",
                   unit="s", of=((None, "green"), (60, "orange"), (120, "red")), no_value="no success yet", width=3)
        )
        .with_panel(
            number("Critical findings", "Findings that may cost data or availability: rackwise status lists them.",
                   or_none(f"sum({highest('rackwise_findings', 'reason', where=[_CRITICAL])})"),
                   of=NONE_IS_GOOD_ELSE_BAD, width=3)
        )
        .with_panel(
            number("Unseen parts", "Parts of the last look that are unknown; their figures are missing, not zero.",
                   or_none(f"sum({highest('rackwise_gaps', 'part', 'cause')})"), of=NONE_IS_GOOD, width=3)
        )
        .with_panel(
            number("Across racks", "Bytes per second by all known paths; a lower bound where some are unknown.",
                   f"sum({highest(_BYTES, 'path')})", unit="Bps")
        )
        .with_panel(
            number("Cost a day", "What these bytes cost in a day at the configured prices; none without a price.",
                   f"sum({highest(_USD, 'path')})", unit="currencyUSD", no_value="unknown or no price")
        )
        .with_panel(
            number("Unknown across racks", "Copies and reads whose bytes across racks are unknown.",
                   f"sum({highest('rackwise_cross_rack_unknown', 'path')})", of=NONE_IS_GOOD)
        )
        .with_panel(
            rows("Firing alerts", "Alerts of rackwise that fire now; docs/runbooks.md has a section for each.",
                 [Column('ALERTS{alertname=~"Rackwise.*", alertstate="firing", cluster=~"$cluster"}', "Firing")],
                 by=["severity", "alertname", "cluster", "group", "rack", "part", "reason"], sort="severity", height=6,
                 no_value="no alert fires, or the rules are not loaded")
        )
    )  # fmt: skip


def _traffic(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    day = 'cluster:rackwise_cross_rack_usd_per_day:avg1d{cluster=~"$cluster"}'
    return (
        whole.with_row(dashboard.Row("What crosses racks"))
        .with_panel(
            lines("Bytes across racks", "By path: replicate (followers fetch) and consume (groups read). A path "
                  "without a line is unknown.", Query(highest(_BYTES, "path"), "{{cluster}} {{path}}"), unit="Bps",
                  stacked=True)
        )
        .with_panel(
            lines("Cost a day", "At the configured prices, with the mean of the last 24 hours (recording rule).",
                  Query(highest(_USD, "path"), "{{cluster}} {{path}}"), Query(day, "{{cluster}} mean of 24 h"),
                  unit="currencyUSD")
        )
        .with_panel(
            lines("Unknown copies and reads", "While some are unknown, bytes and cost are lower bounds.",
                  Query(highest("rackwise_cross_rack_unknown", "path"), "{{cluster}} {{path}}"), width=24, height=6)
        )
    )  # fmt: skip


def _size(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        whole.with_row(dashboard.Row("Cluster"))
        .with_panel(
            lines("Brokers by rack", "An empty rack is unknown. An absent broker still holds replicas.",
                  Query(highest("rackwise_brokers", "rack", "state"), "{{cluster}} {{rack}} {{state}}"), width=10)
        )
        .with_panel(
            bars("Groups by kind", "Consumer groups, as they were last listed.",
                 Query(f"sum by (kind) ({highest('rackwise_groups', 'kind')})", "{{kind}}"), width=6)
        )
        .with_panel(number("Topics", "Topics observed.", f"sum({highest('rackwise_topics')})", height=8))
        .with_panel(
            number("Partitions", "Partitions observed.", f"sum({highest('rackwise_partitions')})", height=8)
        )
        .with_panel(
            lines("Age of figures", "Time since a look last confirmed all brokers, topics, groups or findings. Counts "
                  "of an older part are shown as they last were. Shares, bytes, costs and lags of very many groups may "
                  "be of a former look.",
                  Query(f"time() - {highest('rackwise_seen_timestamp_seconds', 'figures')}", "{{cluster}} {{figures}}"),
                  Query(f"time() - {highest('rackwise_samples_timestamp_seconds')}", "{{cluster}} shares, costs, lags"),
                  unit="s", of=((None, "green"), (900, "red")))
        )
        .with_panel(
            rows("Unseen parts", "Parts of the last look that are unknown, with the cause.",
                 [Column(f"{highest('rackwise_gaps', 'part', 'cause')} > 0", "Gaps")], by=["cluster", "part", "cause"],
                 sort="Gaps", width=12, height=8, no_value="no gap, or no look yet")
        )
    )  # fmt: skip


def _findings(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    found = highest("rackwise_findings", "reason", "severity")
    return (
        whole.with_row(dashboard.Row("Findings"))
        .with_panel(
            rows("Findings", "Current findings by reason; rackwise status and rackwise doctor name their subjects.",
                 [Column(found, "Findings")], by=["cluster", "severity", "reason"], sort="Findings", width=12, height=9,
                 no_value="no finding, or no look yet")
        )
        .with_panel(
            lines("Findings by severity", "A line that ends has no finding any more, or the agent is gone.",
                  Query(f"sum by (cluster, severity) ({found})", "{{cluster}} {{severity}}"), height=9)
        )
    )  # fmt: skip


def _plans(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        whole.with_row(dashboard.Row("Proposals of the last planning"))
        .with_panel(
            bars("Proposals", "By kind.", Query(f"sum by (kind) ({highest('rackwise_proposals', 'kind')})", "{{kind}}"),
                 no_value="none, or no planning yet")
        )
        .with_panel(
            bars("Verdicts of the guard", "What is allowed, held until a condition holds, or refused; with the reason.",
                 Query(f"sum by (verdict, reason) ({highest('rackwise_verdicts', 'verdict', 'reason')})",
                       "{{verdict}}: {{reason}}"), no_value="none, or no planning yet")
        )
        .with_panel(
            bars("Left out", "Changes that the planning left out, by reason.",
                 Query(f"sum by (reason) ({highest('rackwise_unplanned', 'reason')})", "{{reason}}"),
                 no_value="none, or no planning yet")
        )
    )  # fmt: skip


def _agent(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    def rate(metric: str, *by: str) -> str:
        return f"sum by ({', '.join(('cluster', 'instance', *by))}) (rate({selected(metric)}[$__rate_interval]))"

    return (
        whole.with_row(dashboard.Row("Agent"))
        .with_panel(
            lines("Duration of a cycle", "The last cycle of each agent, without recording; beyond poll.interval the "
                  "next look is skipped.", Query(selected("rackwise_cycle_seconds"), "{{instance}}"), unit="s", width=8)
        )
        .with_panel(
            lines("Time by stage", "Seconds per second that each stage takes.",
                  Query(rate("rackwise_stage_seconds_total", "stage"), "{{instance}} {{stage}}"), unit="s", width=8,
                  stacked=True)
        )
        .with_panel(
            lines("Cycles", "Per second: cycles by outcome, looks skipped because a cycle was still running, and "
                  "cycles that took longer than poll.interval.",
                  Query(rate("rackwise_cycles_total", "outcome"), "{{instance}} {{outcome}}"),
                  Query(rate("rackwise_looks_skipped_total"), "{{instance}} looks skipped"),
                  Query(rate("rackwise_cycles_overrun_total"), "{{instance}} overrun"), unit="cps", width=8)
        )
        .with_panel(
            lines("Records", "Telemetry and proposal records per second: written, failed or dropped.",
                  Query(rate("rackwise_records_total", "outcome"), "{{instance}} {{outcome}}"), unit="cps", width=8)
        )
        .with_panel(
            lines("Notifications", "Messages to targets per second: sent, tried again or given up; and dropped events.",
                  Query(rate("rackwise_notifications_total", "outcome"), "{{instance}} {{outcome}}"), unit="cps",
                  width=8)
        )
        .with_panel(
            lines("Records waiting", "Records that the brokers had not confirmed at the end of the last cycle.",
                  Query(selected("rackwise_records_waiting"), "{{instance}}"), width=8)
        )
        .with_panel(
            lines("Memory", "Resident memory; process.memory_ceiling ends the agent with exit code 7.",
                  Query(selected("process_resident_memory_bytes", _JOB), "{{instance}}"), unit="bytes", width=8)
        )
        .with_panel(
            lines("Processor", "Cores in use.",
                  Query(f"rate({selected('process_cpu_seconds_total', _JOB)}[$__rate_interval])", "{{instance}}"),
                  width=8)
        )
        .with_panel(
            lines("Age of the process", "A line that falls is a restart.",
                  Query(f"time() - {selected('process_start_time_seconds', _JOB)}", "{{instance}}"), unit="s", width=8)
        )
        .with_panel(
            rows("Versions", "Agents with their version.", [Column(selected("rackwise_build_info"), "Agents")],
                 by=["cluster", "instance", "version"], sort="version", width=8, height=8,
                 no_value="no agent answers")
        )
    )  # fmt: skip
