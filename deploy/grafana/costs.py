"""Costs: what crossed racks in days and months, and what of it can be avoided; of the pipeline's views, by SQL.

The views are those of `rackwise spark sql`, and the data source is Trino's plugin. Queries are SQL that Spark and Trino
have in common, so that tests run them in Spark. A sum leaves out what is unknown; the panels of unknown bytes and of
covered time say how much that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from grafana_foundation_sdk.builders import common, dashboard, stat, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.runtime import UnknownDataquery
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana.panels import PLAIN, UNKNOWN, Step, dressed, steps

PLUGIN = "trino-datasource"
SOURCE = model.DataSourceRef(type_val=PLUGIN, uid="${datasource}")
_DAYS = "utc_day BETWEEN substr('${__from:date:iso}', 1, 10) AND substr('${__to:date:iso}', 1, 10)"
_MONTHS = (
    "substr(CAST(utc_month AS VARCHAR(30)), 1, 7)"
    " BETWEEN substr('${__from:date:iso}', 1, 7) AND substr('${__to:date:iso}', 1, 7)"
)
_VIEWS = "${schema}."
_CLUSTERS = "cluster IN ($cluster)"
_OF_CLUSTERS = "SELECT DISTINCT cluster FROM ${schema}.coverage_by_day ORDER BY cluster"
_SERIES, _TABLE = 0, 1
"""Formats of the plugin: lines by column `metric` over column `time`, and rows as they are."""
_MOST = 50


class SqlColumn(NamedTuple):
    """A column of a query's answer, its head, the unit of its values and what it is; a key has its own name."""

    name: str
    head: str
    unit: str = "string"
    value: str = ""


class SqlQuery(Builder[Dataquery]):
    """A query of the plugin."""

    def __init__(self, sql: str, form: int) -> None:
        self._sql, self._form = sql, form

    def build(self) -> Dataquery:
        """As Grafana stores it."""
        source = {"type": PLUGIN, "uid": "${datasource}"}
        return UnknownDataquery({"datasource": source, "format": self._form, "rawSQL": self._sql, "refId": "A"})


_CLUSTER, _GROUP, _TOPIC = SqlColumn("cluster", "Cluster"), SqlColumn("group_id", "Group"), SqlColumn("topic", "Topic")
_TEAM = SqlColumn("team", "Team")
_PATH = SqlColumn("traffic_path", "Path")
_USD = SqlColumn("usd", "USD", "currencyUSD", "sum(usd)")
_AVOIDABLE = SqlColumn("avoidable_usd", "Avoidable USD", "currencyUSD", "sum(avoidable_usd)")
_CROSSED = SqlColumn("cross_bytes", "Across racks", "bytes", "sum(cross_bytes)")
_BYTES = SqlColumn("bytes", "Bytes", "bytes", "sum(bytes)")


def costs() -> dashboard.Dashboard:
    """The dashboard."""
    return _trust(_tables(_days(_totals(_page()))))


def _page() -> dashboard.Dashboard:
    source = dashboard.DatasourceVariable("datasource").label("Data source").type(PLUGIN)
    schema = (
        dashboard.TextBoxVariable("schema")
        .label("Schema")
        .description("Catalog and schema with the views of rackwise spark sql.")
        .default_value("delta.rackwise")
    )
    cluster = (
        dashboard.QueryVariable("cluster")
        .label("Cluster")
        .description("Id of a Kafka cluster.")
        .datasource(SOURCE)
        .query({"format": _TABLE, "rawSQL": _OF_CLUSTERS, "refId": "A"})
        .refresh(model.VariableRefresh.ON_DASHBOARD_LOAD)
        .multi(True)  # noqa: FBT003
        .include_all(True)  # noqa: FBT003
        .current(model.VariableOption(selected=True, text="All", value="$__all"))
    )  # fmt: skip
    return (
        dashboard.Dashboard("rackwise: costs")
        .uid("rackwise-costs")
        .description("What crossed racks, what it cost, and what of it can be avoided; of the pipeline's tables.")
        .tags(["rackwise", "kafka"])
        .timezone("utc")
        .time("now-30d", "now")
        .with_variable(source)
        .with_variable(schema)
        .with_variable(cluster)
    )


def _totals(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        whole.with_row(dashboard.Row("In the days shown"))
        .with_panel(
            _number("Avoidable", "Dollars across racks that another placement or setting avoids.",
                    "sum(avoidable_usd) AS avoidable_usd", "avoidable_cost_by_day", "currencyUSD",
                    of=((None, "green"), (1, "orange")))
        )
        .with_panel(
            _number("Cost", "Dollars of all bytes across racks.", "sum(usd) AS usd", "cost_by_path", "currencyUSD")
        )
        .with_panel(
            _number("Unknown bytes", "Bytes that may or may not have crossed racks.", "sum(bytes) AS bytes",
                    "unknown_traffic", "bytes", no_value="none")
        )
        .with_panel(
            _number("Covered", "Share of the hours with looks that looks cover; the rest is a gap, and in no sum.",
                    "sum(seconds) / (3600e0 * sum(hours)) AS covered", "coverage_by_day", "percentunit",
                    of=((None, "orange"), (0.95, "green")))
        )
    )  # fmt: skip


def _days(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    return (
        whole.with_row(dashboard.Row("By day"))
        .with_panel(
            _by_day("Cost by path", "Dollars of bytes across racks.", "traffic_path", "usd", "cost_by_path")
        )
        .with_panel(
            _by_day("Avoidable by cluster", "Dollars that another placement or setting avoids.", "cluster",
                    "avoidable_usd", "avoidable_cost_by_day")
        )
    )  # fmt: skip


def _tables(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    figures = (_USD, _AVOIDABLE, _CROSSED)
    measured = SqlColumn("measured_usd", "Measured", "currencyUSD", "max(measured_usd_per_day)")
    predicted = SqlColumn("predicted_usd", "Predicted", "currencyUSD", "max(predicted_usd_per_day)")
    return (
        whole.with_row(dashboard.Row("Who and what"))
        .with_panel(
            _rows("What can be saved", "Groups and topics with the most avoidable dollars.",
                  (_CLUSTER, _PATH, _GROUP, _TOPIC, _TEAM), (_AVOIDABLE,), "avoidable_cost_by_day", width=24)
        )
        .with_panel(
            _rows("Owners", "Teams and cost centres of spark.owners, over whole months; no team: no rule fits.",
                  (_TEAM, SqlColumn("cost_centre", "Cost centre")), figures, "cost_by_owner", days=_MONTHS)
        )
        .with_panel(_rows("Groups", "What each group read.", (_CLUSTER, _GROUP, _TEAM), figures, "cost_by_group"))
        .with_panel(
            _rows("From rack to rack", "All paths together.",
                  (_CLUSTER, SqlColumn("source_rack", "From"), SqlColumn("target_rack", "To"),
                   SqlColumn("zone", "Zone")), (_USD, _BYTES), "cost_by_rack_pair")
        )
        .with_panel(
            _rows("Proposals", "Carried out: dollars a day that were predicted, and measured.",
                  (_CLUSTER, SqlColumn("proposal", "Proposal"), SqlColumn("subject", "Subject"),
                   SqlColumn("state", "State")), (measured, predicted), "proposal_results")
        )
    )  # fmt: skip


def _trust(whole: dashboard.Dashboard) -> dashboard.Dashboard:
    near = SqlColumn("local_share", "Of partitions", "percentunit", "max_by(local_share, utc_day)")
    near_bytes = SqlColumn("local_bytes_share", "Of bytes", "percentunit", "max_by(local_bytes_share, utc_day)")
    largest = SqlColumn("lag_max", "Largest, records", "short", "max(lag_max)")
    last = SqlColumn("lag_last", "Last, records", "short", "max_by(lag_last, utc_day)")
    return (
        whole.with_row(dashboard.Row("Reading, and what is unknown"))
        .with_panel(
            _rows("Near reads", "Share of partitions and of bytes read within the rack, on the newest day.",
                  (_CLUSTER, _GROUP), (near, near_bytes), "locality_by_group", order="ASC")
        )
        .with_panel(
            _rows("Lags", "Groups behind: the largest lag, and that of the newest day.",
                  (_CLUSTER, _GROUP, _TOPIC), (largest, last), "lag_by_group")
        )
        .with_panel(
            _rows("Why unknown", "Bytes that may or may not have crossed racks; no bytes: their size is unknown too.",
                  (_CLUSTER, _PATH, SqlColumn("why_unknown", "Reason")), (_BYTES,), "unknown_traffic", width=24)
        )
    )  # fmt: skip


def _number(
    title: str, description: str, value: str, view: str, unit: str, *, of: Sequence[Step] = PLAIN,
    no_value: str = UNKNOWN,
) -> stat.Panel:  # fmt: skip
    panel = stat.Panel().color_mode(common_model.BigValueColorMode.VALUE).thresholds(steps(*of))
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    query = f"SELECT {value} FROM {_VIEWS}{view} WHERE {_DAYS} AND {_CLUSTERS}"  # noqa: S608 all of it is written here
    return dressed(
        panel.unit(unit).no_value(no_value), title, description, SOURCE, [SqlQuery(query, _TABLE)], width=6, height=4
    )


def _by_day(title: str, description: str, metric: str, value: str, view: str) -> timeseries.Panel:
    panel = (
        timeseries.Panel()
        .draw_style(common_model.GraphDrawStyle.BARS)
        .fill_opacity(60)
        .stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL).group("A"))
        .thresholds(steps(*PLAIN))
        .unit("currencyUSD")
        .no_value(UNKNOWN)
    )
    query = (
        f"SELECT CAST(utc_day AS TIMESTAMP) AS time, {metric} AS metric, sum({value}) AS {value} FROM {_VIEWS}{view}"  # noqa: S608
        f" WHERE {_DAYS} AND {_CLUSTERS} GROUP BY utc_day, {metric} ORDER BY utc_day, {metric}"
    )
    return dressed(panel, title, description, SOURCE, [SqlQuery(query, _SERIES)], width=12, height=8)


def _rows(
    title: str, description: str, by: Sequence[SqlColumn], figures: Sequence[SqlColumn], view: str, *,
    days: str = _DAYS, order: str = "DESC", width: int = 12,
) -> table.Panel:  # fmt: skip
    """A row for each combination of columns, sorted by the first figure; what is unknown is empty, and last."""
    keys = ", ".join(column.name for column in by)
    values = ", ".join(f"{column.value} AS {column.name}" for column in figures)
    query = (
        f"SELECT {keys}, {values} FROM {_VIEWS}{view} WHERE {days} AND {_CLUSTERS}"  # noqa: S608 as above
        f" GROUP BY {keys} ORDER BY {figures[0].name} {order} NULLS LAST LIMIT {_MOST}"
    )
    panel = table.Panel().filterable(True).no_value(UNKNOWN)  # noqa: FBT003
    for column in (*by, *figures):
        look = [model.DynamicConfigValue(id_val="displayName", value=column.head)]
        look.append(model.DynamicConfigValue(id_val="unit", value=column.unit))
        panel = panel.override_by_name(column.name, look)
    return dressed(panel, title, description, SOURCE, [SqlQuery(query, _TABLE)], width=width, height=9)
