"""Kafka Streams: lags of active tasks, standbys and warm-ups, how fast they catch up, and what can be promoted."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import (
    NONE_IS_GOOD,
    Column,
    Query,
    highest,
    lines,
    number,
    page,
    rows,
    selected,
    states,
    variable,
)

_GROUP = 'group=~"$group"'
_LAG, _TREND = "rackwise_task_lag_records", "rackwise_task_lag_trend_records_per_second"
_ETA, _PROMOTABLE = "rackwise_task_caught_up_eta_seconds", "rackwise_task_promotable"


def streams() -> dashboard.Dashboard:
    """The dashboard."""
    group = variable(
        "group", "Application", f"label_values({selected(_LAG)}, group)",
        "application.id of Kafka Streams applications with stateful tasks.",
    )  # fmt: skip
    whole = page(
        "streams",
        "rackwise: Kafka Streams",
        "Warm-ups and standbys of Kafka Streams applications: lag, rate, expected end, promotion.",
        variables=(group,),
    )
    return _courses(_tasks(_state(whole)))


def _of(metric: str, *by: str, where: tuple[str, ...] = ()) -> str:
    return highest(metric, "group", *by, where=[_GROUP, *where])


def _state(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    warmups = _of(_LAG, "task", where=('role="warm-up"',))
    return (
        whole.with_row(dashboard.Row("How things stand"))
        .with_panel(
            number("Warm-ups", "Tasks with a warm-up of known lag.", f"count({warmups})", width=6,
                   no_value="none known")
        )
        .with_panel(
            number("Promotable", "Tasks whose warm-up has caught up and waits for a rebalance.",
                   f"sum({_of(_PROMOTABLE, 'task')})", of=NONE_IS_GOOD, width=6, no_value="none known")
        )
        .with_panel(
            number("Lag unknown", "Copies of stateful tasks whose lag is unknown; they are in no other panel.",
                   f"sum({_of('rackwise_task_copies_lag_unknown')})", of=NONE_IS_GOOD, width=6,
                   no_value="none, or no look yet")
        )
        .with_panel(
            number("Without series", "Tasks by group and role beyond metrics.top_tasks: the ones that lag least.",
                   f"sum({highest('rackwise_task_series_left_out')})", of=NONE_IS_GOOD, width=6)
        )
    )  # fmt: skip


def _tasks(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    labels = ("task", "role")
    return (
        whole.with_row(dashboard.Row("Tasks"))
        .with_panel(
            rows(
                "Tasks by role",
                "The copy of each task with the highest lag. Rate: records by which it catches up each second; "
                "negative: it falls behind. An empty cell is unknown.",
                [
                    Column(_of(_LAG, *labels), "Lag"),
                    Column(_of(_TREND, *labels), "Rate", "cps", ((None, "red"), (0, "text")), 1),
                    Column(_of(_ETA, *labels), "Caught up in", "s"),
                ],
                by=["cluster", "group", *labels], sort="Lag", width=14, height=12,
            )
        )
        .with_panel(
            states("Warm-ups that can take over", "A row for each task with a warm-up; no row where it is unknown.",
                   Query(_of(_PROMOTABLE, "task"), "{{group}} {{task}}"), width=10, height=12,
                   words=(("0", "catching up", "blue"), ("1", "promotable", "green")))
        )
    )  # fmt: skip


def _courses(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    legend = "{{group}} {{task}} {{role}}"
    warmup, standby = ('role="warm-up"',), ('role="standby"',)
    return (
        whole.with_row(dashboard.Row("Over time"))
        .with_panel(
            lines("Lag of warm-ups", "Records behind the end of the changelogs. The line is acceptable.recovery.lag by "
                  "default (10,000).", Query(_of(_LAG, "task", "role", where=warmup), legend),
                  of=((None, "green"), (10_000, "orange")))
        )
        .with_panel(
            lines("Lag of standbys", "A standby beyond acceptable.recovery.lag (10,000 by default) cannot take over at "
                  "once.", Query(_of(_LAG, "task", "role", where=standby), legend),
                  of=((None, "green"), (10_000, "orange")))
        )
        .with_panel(
            lines("Rate of catching up", "Records per second; below zero a copy falls further behind.",
                  Query(_of(_TREND, "task", "role"), legend), unit="cps")
        )
        .with_panel(
            lines("Expected time until caught up", "The likely time; no line where the rate is unknown or not enough.",
                  Query(_of(_ETA, "task", "role"), legend), unit="s")
        )
        .with_panel(
            lines("Copies of unknown lag", "By application.",
                  Query(_of("rackwise_task_copies_lag_unknown"), "{{cluster}} {{group}}"), width=24, height=6)
        )
    )  # fmt: skip
