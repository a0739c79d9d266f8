"""Fleet: what is planned for each group, application and topic of many clusters. Times are epoch milliseconds."""

from __future__ import annotations

from pipeline.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, STRINGS, TableSpec, column, columns

PLANS = TableSpec(
    "fleet.plans",
    "Plans for each group, application and topic of a fleet.",
    columns(
        column("run", STRING, "The run that planned it.", required=True),
        column("cluster", STRING, "Cluster id.", required=True),
        column("subject", STRING, "Group; for replicas the topic.", required=True),
        column("kind", STRING, "consumer, tasks or replicas.", required=True),
        column("look", STRING, "Id of the look that it was planned from."),
        column("made_ms", LONG, "When the look was taken.", required=True),
        column("size", LONG, "Partitions, tasks or replicas.", required=True),
        column("readers", INT, "Members or brokers.", required=True),
        column("crossing", LONG, "Cross-rack reads now; null for replicas, or where it cannot be planned."),
        column("optimal_crossing", LONG, "The same under the exact optimum."),
        column("lower_bound", LONG, "No plan costs less."),
        column("moved", LONG, "Partitions, tasks or replicas that the optimum moves."),
        column("optimal", BOOLEAN, "Whether the bound is proven to be met.", required=True),
        column("why_not", STRING, "Why nothing can be planned; null otherwise."),
        column("cpu_s", DOUBLE, "CPU seconds, shared equally by groups that are planned together; null for replicas."),
        column("proposals", STRINGS, "Documents of the proposals, as a proposals topic has them; empty for none."),
    ),
    key=("run", "cluster", "subject", "kind"),
)
