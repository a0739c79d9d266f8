"""Scenarios of an alert: its series in promtool's notation, one value a minute from minute 0.

`1x5` is six samples of 1, `0+60x5` rises by 60, `_x5` are five missing samples, `stale` is what Prometheus writes when
a target stops to answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

Labels = Mapping[str, str]
Series = Mapping[str, str]

CLUSTER: Labels = {"cluster": "prod", "job": "rackwise"}
SCENARIOS = ("fires", "quiet", "resolves", "absent", "restart")
NOW = "0+60x"
"""A metric that holds the present Unix time: promtool's clock begins at 0."""
CONSUME: Labels = {"path": "consume"}


class Scenario(NamedTuple):
    """Series, and the minutes at which the alert fires or is quiet with them."""

    series: Series
    fires: tuple[int, ...] = ()
    quiet: tuple[int, ...] = ()
    labels: tuple[Labels, ...] | None = None
    """Labels of each alert that fires, where they are not those of the alert's other scenarios."""


class AlertCase(NamedTuple):
    """An alert with its five scenarios, in the order of `SCENARIOS`, and further ones."""

    alert: str
    labels: Labels
    scenarios: tuple[Scenario, Scenario, Scenario, Scenario, Scenario]
    further: tuple[Scenario, ...] = ()


def series(metric: str, values: str, instance: str = "a", **labels: str) -> dict[str, str]:
    """One series of an agent of the cluster prod."""
    named = {**CLUSTER, "instance": f"{instance}:9464", **labels}
    return {f"{metric}{{{', '.join(f'{name}={json.dumps(value)}' for name, value in named.items())}}}": values}


def joined(*parts: Series) -> dict[str, str]:
    """Several series as one input."""
    return {name: values for part in parts for name, values in part.items()}


def lives(minutes: int = 3_000) -> dict[str, str]:
    """An agent that answers and whose cycles succeed, and nothing else."""
    return joined(
        series("up", f"1x{minutes}"),
        series("rackwise_build_info", f"1x{minutes}", version="1.0"),
        series("rackwise_last_success_timestamp_seconds", f"{NOW}{minutes}"),
        series("rackwise_cycles_total", f"0+6x{minutes}", outcome="succeeded"),
        series("rackwise_cycles_total", f"0x{minutes}", outcome="failed"),
        series("process_start_time_seconds", f"1x{minutes}"),
    )


def of_gauge(
    alert: str, metric: str, minutes: int, *, labels: Labels | None = None, kept: bool = False, **of: str
) -> AlertCase:
    """The scenarios of an alert that fires when a gauge has been above 0 for some minutes.

    Kept: a restart of two minutes does not begin the time anew, and the alert resolves within five minutes after the
    series has vanished.
    """
    end = minutes + 2
    late = 6 if kept else 1
    return AlertCase(
        alert,
        {**CLUSTER, **(labels or {})},
        (
            Scenario(series(metric, f"2x{end}", **of), (end,), (max(minutes - 1, 0),) if minutes else ()),
            Scenario(series(metric, f"0x{end + 9}", **of), (), (end, end + 9)),
            Scenario(series(metric, f"2x{end} 0x20", **of), (end,), (end + late + 1,)),
            Scenario(joined(lives(end), series(metric, f"2x{end} stale", **of)), (end,), (end + late,)),
            Scenario(
                series(metric, f"2x{max(minutes - 3, 0)} stale stale 2x{minutes + 9}", **of),
                (minutes + 1,) if kept else (2 * minutes + 1,),
                () if kept else (minutes + 1,),
            ),
        ),
        (Scenario(lives(end), (), (end,)),),
    )


def two(metric: str, first: str, second: str, **labels: str) -> dict[str, str]:
    """One metric of two agents."""
    return joined(series(metric, first, **labels), series(metric, second, "b", **labels))


def cycles(bad: str, good: str = "0+6x90", metric: str = "rackwise_cycles_overrun_total") -> dict[str, str]:
    succeeded = series("rackwise_cycles_total", good, outcome="succeeded")
    if metric == "rackwise_cycles_total":
        return joined(succeeded, series(metric, bad, outcome="failed"))
    return joined(succeeded, series("rackwise_cycles_total", "0x90", outcome="failed"), series(metric, bad))


def risen(alert: str, metric: str, low: str, high: str, small: str) -> AlertCase:
    """Higher from minute 1,500 on; a day has 1,440."""
    return AlertCase(
        alert,
        {**CLUSTER, **CONSUME},
        (
            Scenario(series(metric, f"{low}x1499 {high}x300", **CONSUME), (1_700,), (1_490, 1_520)),
            Scenario(series(metric, f"{low}x1499 {small}x300", **CONSUME), (), (1_700,)),
            Scenario(series(metric, f"{low}x1499 {high}x200 {low}x200", **CONSUME), (1_690,), (1_790,)),
            # no yesterday, so no rise
            Scenario(joined(lives(1_800), series(metric, f"_x1500 {high}x300", **CONSUME)), (), (1_700,)),
            Scenario(series(metric, f"{low}x1499 {high}x60 stale stale {high}x240", **CONSUME), (1_700,), (1_520,)),
        ),
    )
