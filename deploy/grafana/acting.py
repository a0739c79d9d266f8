"""Acting: who leads, what fails, which plans are open or held, what was done, and which throttles are set."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import (
    NONE_IS_GOOD,
    NONE_IS_GOOD_ELSE_BAD,
    Column,
    Query,
    highest,
    lines,
    number,
    page,
    rows,
    selected,
    states,
)

_NOT_EXECUTE = "no leader known"


def acting() -> dashboard.Dashboard:
    """The dashboard."""
    whole = page(
        "acting",
        "rackwise: acting",
        "Mode execute: leadership, plans, throttles and outcomes. Empty in modes observe and propose.",
    )
    return _history(_guard(_state(whole)))


def _state(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        whole.with_row(dashboard.Row("How things stand"))
        .with_panel(
            number("Leaders", "Agents that lead: one for each cluster in mode execute.",
                   f"sum({selected('rackwise_leads')})", of=((None, "red"), (1, "green")),
                   no_value="not in mode execute")
        )
        .with_panel(
            number("Open plans", "Reassignment plans that have not ended.", f"sum({highest('rackwise_plans_open')})",
                   no_value=_NOT_EXECUTE)
        )
        .with_panel(
            number("Held plans", "Open plans that a window, a pause, a budget or the state of the cluster holds.",
                   f"sum({highest('rackwise_plans_waiting')})", of=NONE_IS_GOOD, no_value=_NOT_EXECUTE)
        )
        .with_panel(
            number("Partitions left", "Partitions of open plans that have not moved yet.",
                   f"sum({highest('rackwise_plan_partitions_left')})", no_value=_NOT_EXECUTE)
        )
        .with_panel(
            number("Throttles set", "Throttle settings of rackwise that are not removed yet; with no open plan they "
                   "are left over.", f"sum({highest('rackwise_throttles_set')})", no_value=_NOT_EXECUTE)
        )
        .with_panel(
            number("Failing parts", "Parts of acting that fail now: lead, look, journal or plans.",
                   f"sum({highest('rackwise_acting_fails', 'what')})", of=NONE_IS_GOOD_ELSE_BAD,
                   no_value="not in mode execute")
        )
        .with_panel(
            states("Leadership", "A row for each agent in mode execute.",
                   Query(selected("rackwise_leads"), "{{instance}}"),
                   words=(("0", "stands by", "blue"), ("1", "leads", "green")), height=6)
        )
        .with_panel(
            states("What fails", "A standby agent reports only whether it could lead.",
                   Query(selected("rackwise_acting_fails"), "{{instance}} {{what}}"),
                   words=(("0", "works", "green"), ("1", "fails", "red")), height=6)
        )
    )  # fmt: skip


def _guard(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        whole.with_row(dashboard.Row("Verdicts of the last planning"))
        .with_panel(
            rows("Verdicts", "Proposals that the guard allows, holds or refuses, with the reason: rackwise explain ID "
                 "has every check.", [Column(highest("rackwise_verdicts", "verdict", "reason"), "Proposals")],
                 by=["cluster", "verdict", "reason"], sort="Proposals", width=12, height=8,
                 no_value="no proposal, or no planning yet")
        )
        .with_panel(
            lines("Proposals by kind", "Of the last planning.",
                  Query(highest("rackwise_proposals", "kind"), "{{cluster}} {{kind}}"))
        )
    )  # fmt: skip


def _history(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    acts = selected("rackwise_acts_total")
    return (
        whole.with_row(dashboard.Row("Over time"))
        .with_panel(
            lines("Partitions left", "It falls while plans move; flat with no held plan: the move stands.",
                  Query(highest("rackwise_plan_partitions_left"), "{{cluster}} left"))
        )
        .with_panel(
            lines("Plans and throttles", "Throttles without an open plan are left over.",
                  Query(highest("rackwise_plans_open"), "{{cluster}} open plans"),
                  Query(highest("rackwise_plans_waiting"), "{{cluster}} held plans"),
                  Query(highest("rackwise_throttles_set"), "{{cluster}} throttles"))
        )
        .with_panel(
            lines("Executed proposals", "Since the start of each agent, by kind and outcome; not done is a plan that "
                  "ended badly, or a rebalance that did not happen.",
                  Query(f"sum by (cluster, kind, outcome) ({acts})", "{{cluster}} {{kind}} {{outcome}}"))
        )
        .with_panel(
            lines("Foreign records in the journal", "Records that no agent wrote, ignored by the leading agent; "
                  "without a signed journal there is no line.",
                  Query(highest("rackwise_journal_records_ignored"), "{{cluster}}"))
        )
    )  # fmt: skip
