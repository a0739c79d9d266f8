"""Groups: how local each one reads now and at best, what its reads across racks cost, and how far it is behind."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import Column, Query, highest, lines, page, rows, selected, variable

_GROUP, _MEASURE = 'group=~"$group"', 'measure=~"$measure"'
_NOW, _BEST = "rackwise_group_cross_rack_share", "rackwise_group_optimal_cross_rack_share"
_BYTES = "rackwise_group_cross_rack_bytes_per_second"
_SHARE_STEPS = ((None, "green"), (0.25, "orange"), (0.5, "red"))


def groups() -> dashboard.Dashboard:
    """The dashboard."""
    group = variable(
        "group", "Group", f"label_values({selected('rackwise_group_lag_records')}, group)",
        "Consumer groups with series of their own; the others are summed up as other (metrics.top_groups).",
    )  # fmt: skip
    measure = variable(
        "measure", "Measure", f"label_values({selected(_NOW)}, measure)",
        "kafka: local when any replica is in the reader's rack; read-local: when the one that serves is.",
    )  # fmt: skip
    whole = page(
        "groups",
        "rackwise: groups",
        "Reads of consumer groups across racks: now, at best, unknown; with their cost and lag.",
        variables=(group, measure),
    )
    return _courses(_all(whole))


def _of(metric: str, *by: str, measured: bool = True) -> str:
    return highest(metric, "group", *by, where=[_GROUP, _MEASURE] if measured else [_GROUP])


def _all(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    labels = ("measure", "unit")
    return whole.with_row(dashboard.Row("Groups")).with_panel(
        rows(
            "Reads across racks",
            "Share of a group's reads that cross racks, by measure and unit, now and under the best assignment. An "
            "empty cell is unknown.",
            [
                Column(_of(_NOW, *labels), "Across racks", "percentunit", _SHARE_STEPS, 0),
                Column(_of(_BEST, *labels), "At best", "percentunit", (), 0),
                Column(_of("rackwise_group_unknown_rack_share", *labels), "Unknown", "percentunit",
                       ((None, "green"), (0.001, "orange")), 0),
            ],
            by=["cluster", "group", *labels], sort="Across racks", height=11, width=14,
        )
    ).with_panel(
        rows(
            "Cost and lag",
            "Cost of a group's reads across racks in a day (a lower bound where some are unknown), and its lag.",
            [
                Column(_of("rackwise_group_cross_rack_usd_per_day", measured=False), "USD a day", "currencyUSD", (), 2),
                Column(_of("rackwise_group_lag_records", measured=False), "Lag", "short"),
            ],
            by=["cluster", "group"], sort="USD a day", height=11, width=10,
        )
    )  # fmt: skip


def _courses(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    legend = "{{group}} {{measure}} {{unit}}"
    matchers = 'cluster=~"$cluster", group=~"$group", measure=~"$measure"'
    excess = f"cluster_group:rackwise_group_cross_rack_share:excess{{{matchers}}}"
    return (
        whole.with_row(dashboard.Row("Over time"))
        .with_panel(
            lines("Share across racks", "Reads of unknown rack are not counted. At best: under the best assignment.",
                  Query(_of(_NOW, "measure", "unit"), legend),
                  Query(_of(_BEST, "measure", "unit"), f"{legend} at best"), unit="percentunit", soft_max=1)
        )
        .with_panel(
            lines("More than needed", "Share across racks now, less that of the best assignment (recording rule).",
                  Query(excess, legend), unit="percentunit", of=((None, "green"), (0.25, "orange")))
        )
        .with_panel(
            lines("Bytes across racks", "Where rates are known.",
                  Query(_of(_BYTES, "measure"), "{{group}} {{measure}}"), unit="Bps")
        )
        .with_panel(
            lines("Cost a day", "At the configured prices; a lower bound where some reads are unknown.",
                  Query(_of("rackwise_group_cross_rack_usd_per_day", measured=False), "{{group}}"),
                  unit="currencyUSD", stacked=True)
        )
        .with_panel(
            lines("Lag", "End offsets less committed offsets, over all topics of the group; a lower bound where some "
                  "are unknown.", Query(_of("rackwise_group_lag_records", measured=False), "{{group}}"))
        )
        .with_panel(
            lines("Share of unknown rack", "Reads of which it is unknown whether they cross racks: set client.rack.",
                  Query(_of("rackwise_group_unknown_rack_share", "measure", "unit"), legend), unit="percentunit",
                  soft_max=1)
        )
    )  # fmt: skip
