"""Panels of the dashboards: one look for all of them, and the queries' selectors.

Two agents beside one cluster export the same figures, so a query takes the highest (`max by (cluster, ...)`) before it
adds clusters up. What is unknown has no sample: a panel then says so, and no query fills a hole with zero. Only where a
missing series does mean none (no finding, no gap) a query gives 0, and only while a cycle has succeeded: `or_none`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, Self, TypeVar

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders.bargauge import Panel as BarPanel
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

UNKNOWN = "unknown"
SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
AGENT = 'cluster=~"$cluster", instance=~"$instance"'
"""Selector of all series; a series without a label cluster matches `.*`."""

Step = tuple[float | None, str]
GOOD: tuple[Step, ...] = ((None, "green"),)
PLAIN: tuple[Step, ...] = ((None, "blue"),)
NONE_IS_GOOD: tuple[Step, ...] = ((None, "green"), (1, "orange"))
NONE_IS_GOOD_ELSE_BAD: tuple[Step, ...] = ((None, "green"), (1, "red"))


class Query(NamedTuple):
    """A PromQL expression and the legend of its series."""

    expr: str
    legend: str = ""


class _Panel(Protocol):
    """What all builders of panels have."""

    def title(self, title: str) -> Self: ...
    def description(self, description: str) -> Self: ...
    def datasource(self, datasource: model.DataSourceRef) -> Self: ...
    def height(self, h: int) -> Self: ...
    def span(self, w: int) -> Self: ...
    def unit(self, unit: str) -> Self: ...
    def no_value(self, no_value: str) -> Self: ...
    def thresholds(self, thresholds: Builder[model.ThresholdsConfig]) -> Self: ...
    def targets(self, targets: list[Builder[Dataquery]]) -> Self: ...


P = TypeVar("P", bound=_Panel)


def selected(metric: str, *matchers: str) -> str:
    """A metric of the chosen clusters and agents."""
    return f"{metric}{{{', '.join((AGENT, *matchers))}}}"


def highest(metric: str, *by: str, where: Sequence[str] = ()) -> str:
    """The highest of all agents, by cluster and these labels."""
    return f"max by ({', '.join(('cluster', *by))}) ({selected(metric, *where)})"


def or_none(expr: str) -> str:
    """0 where the expression has no series although a cycle has succeeded; no value before that."""
    return f"{expr} or 0 * max({selected('rackwise_cycle_seconds')})"


def steps(*of: Step) -> Builder[model.ThresholdsConfig]:
    """Thresholds, each the least value of its colour."""
    colours = [model.Threshold(value=value, color=colour) for value, colour in of]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(colours)


def number(
    title: str, description: str, expr: str, *, unit: str = "short", of: Sequence[Step] = PLAIN, width: int = 4,
    height: int = 4, no_value: str = UNKNOWN,
) -> stat.Panel:  # fmt: skip
    """One number with its course."""
    panel = (
        stat.Panel().graph_mode(common_model.BigValueGraphMode.AREA).color_mode(common_model.BigValueColorMode.VALUE)
    )
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return _dressed(panel, title, description, [Query(expr)], unit, of, width, height, no_value)


def lines(
    title: str, description: str, *queries: Query, unit: str = "short", of: Sequence[Step] = (), width: int = 12,
    height: int = 8, stacked: bool = False, soft_max: float | None = None,
) -> timeseries.Panel:  # fmt: skip
    """Lines over time, with a table of the last and highest values; a gap stays a gap."""
    panel = (
        timeseries.Panel()
        .span_nulls(False)  # noqa: FBT003
        .line_width(1)
        .fill_opacity(30 if stacked else 8)
        .show_points(common_model.VisibilityMode.AUTO)
        .axis_soft_min(0)
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_model.TooltipDisplayMode.MULTI)
            .sort(common_model.SortOrder.DESCENDING)
        )
        .legend(
            common.VizLegendOptions()
            .display_mode(common_model.LegendDisplayMode.TABLE)
            .placement(common_model.LegendPlacement.BOTTOM)
            .show_legend(True)  # noqa: FBT003
            .calcs(["lastNotNull", "max"])
        )
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL).group("A"))
    if soft_max is not None:
        panel = panel.axis_soft_max(soft_max)
    if of:
        style = common.GraphThresholdsStyleConfig().mode(common_model.GraphThresholdsStyleMode.LINE)
        panel = panel.thresholds_style(style)
    return _dressed(panel, title, description, queries, unit, of or GOOD, width, height, UNKNOWN)


def bars(
    title: str, description: str, query: Query, *, unit: str = "short", of: Sequence[Step] = PLAIN, width: int = 8,
    height: int = 8, no_value: str = UNKNOWN,
) -> BarPanel:  # fmt: skip
    """One bar for each series, as it is now."""
    panel = (
        BarPanel()
        .orientation(common_model.VizOrientation.HORIZONTAL)
        .display_mode(common_model.BarGaugeDisplayMode.BASIC)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .min(0)
    )
    return _dressed(panel, title, description, [query], unit, of, width, height, no_value)


def states(
    title: str,
    description: str,
    query: Query,
    *,
    words: Sequence[tuple[str, str, str]],
    width: int = 12,
    height: int = 8,
) -> statetimeline.Panel:
    """One row for each series; words are (value, text, colour)."""
    mapping = model.ValueMap(
        options={
            value: model.ValueMappingResult(text=text, color=colour, index=index)
            for index, (value, text, colour) in enumerate(words)
        }
    )
    panel = (
        statetimeline.Panel()
        .merge_values(True)  # noqa: FBT003
        .show_value(common_model.VisibilityMode.AUTO)
        .row_height(0.8)
        .mappings([mapping])
    )
    return _dressed(panel, title, description, [query], "short", PLAIN, width, height, UNKNOWN)


class Column(NamedTuple):
    """A column of a table: its query (an instant one), its head, and how its values look."""

    expr: str
    head: str
    unit: str = "short"
    of: Sequence[Step] = ()
    decimals: int | None = None


def rows(
    title: str, description: str, columns: Sequence[Column], *, by: Sequence[str], sort: str, width: int = 24,
    height: int = 9, no_value: str = UNKNOWN,
) -> table.Panel:  # fmt: skip
    """A table: a row for each combination of labels, a column for each query; what is unknown is empty."""
    letters = [chr(ord("A") + index) for index in range(len(columns))]
    targets = [
        prometheus.Dataquery()
        .expr(column.expr)
        .instant()
        .format(PromQueryFormat.TABLE)
        .ref_id(letter)
        .datasource(SOURCE)
        for column, letter in zip(columns, letters, strict=True)
    ]
    named = ["Value"] if len(columns) == 1 else [f"Value #{letter}" for letter in letters]
    heads = {name: column.head for name, column in zip(named, columns, strict=True)}
    order = {name: index for index, name in enumerate((*by, *named))}
    panel = (
        dressed(table.Panel(), title, description, SOURCE, targets, width=width, height=height)
        .no_value(no_value)
        .filterable(True)  # noqa: FBT003
        .sort_by([common.TableSortByFieldState().display_name(sort).desc(True)])  # noqa: FBT003
        .transformations(
            [
                model.DataTransformerConfig(id_val="merge", options={}),
                model.DataTransformerConfig(
                    id_val="organize",
                    options={"excludeByName": {"Time": True}, "indexByName": order, "renameByName": heads},
                ),
            ]
        )
    )
    for column in columns:
        panel = panel.override_by_name(column.head, _look(column))
    return panel


def _look(column: Column) -> list[model.DynamicConfigValue]:
    look = [model.DynamicConfigValue(id_val="unit", value=column.unit)]
    if column.decimals is not None:
        look.append(model.DynamicConfigValue(id_val="decimals", value=column.decimals))
    if column.of:
        colours = {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in column.of]}
        look.append(model.DynamicConfigValue(id_val="thresholds", value=colours))
        look.append(model.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}))
    return look


def _dressed(  # noqa: PLR0917
    panel: P, title: str, description: str, queries: Sequence[Query], unit: str, of: Sequence[Step], width: int,
    height: int, no_value: str,
) -> P:  # fmt: skip
    targets: list[Builder[Dataquery]] = [
        prometheus.Dataquery()
        .expr(query.expr)
        .range()
        .legend_format(query.legend)
        .ref_id(chr(ord("A") + index))
        .datasource(SOURCE)
        for index, query in enumerate(queries)
    ]
    panel = panel.unit(unit).no_value(no_value).thresholds(steps(*of))
    return dressed(panel, title, description, SOURCE, targets, width=width, height=height)


def dressed(
    panel: P, title: str, description: str, source: model.DataSourceRef, targets: Sequence[Builder[Dataquery]], *,
    width: int, height: int,
) -> P:  # fmt: skip
    """The panel with what every panel has, its queries among it."""
    panel = panel.title(title).description(description).datasource(source).height(height).span(width)
    return panel.targets(list(targets))


def variable(name: str, label: str, query: str, description: str) -> dashboard.QueryVariable:
    """A variable with the values of a label; all of them at first."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(SOURCE)
        .query({"query": query, "refId": f"variable-{name}", "qryType": 5})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)  # noqa: FBT003
        .include_all(True)  # noqa: FBT003
        .all_value(".*")
        .current(model.VariableOption(selected=True, text="All", value="$__all"))
    )


Page = Literal["overview", "groups", "streams", "acting"]


def page(
    name: Page, title: str, description: str, *, variables: Sequence[dashboard.QueryVariable] = ()
) -> dashboard.Dashboard:
    """An empty dashboard with its variables, and links to the others."""
    others = (
        dashboard.DashboardLink("rackwise")
        .type(model.DashboardLinkType.DASHBOARDS)
        .tags(["rackwise"])
        .as_dropdown(False)  # noqa: FBT003
        .include_vars(True)  # noqa: FBT003
        .keep_time(True)  # noqa: FBT003
    )
    source = dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    whole = (
        dashboard.Dashboard(title)
        .uid(f"rackwise-{name}")
        .description(description)
        .tags(["rackwise", "kafka"])
        .timezone("browser")
        .time("now-6h", "now")
        .refresh("30s")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .editable()
        .link(others)
        .with_variable(source)
    )
    cluster = variable(
        "cluster", "Cluster", "label_values(rackwise_build_info, cluster)", "Label cluster of the agents' targets."
    )
    instance = variable(
        "instance", "Agent", 'label_values(rackwise_build_info{cluster=~"$cluster"}, instance)', "Address of an agent."
    )
    for one in (cluster, instance, *variables):
        whole = whole.with_variable(one)
    return whole
