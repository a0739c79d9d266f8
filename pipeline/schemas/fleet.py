"""Fleet: problems of many clusters, and what is planned for each. Times are epoch milliseconds."""

from __future__ import annotations

from pipeline.schemas.table import BINARY, BOOLEAN, DOUBLE, INT, LONG, STRING, STRINGS, TableSpec, column, columns

_OF = (
    column("cluster", STRING, "Cluster id.", required=True),
    column("subject", STRING, "Group; for replicas the topic, or whatever the problem is called.", required=True),
    column("kind", STRING, "consumer, tasks or replicas.", required=True),
)

PROBLEMS = TableSpec(
    "fleet.problems",
    "Problems to be solved: who reads what, who runs what, where replicas are.",
    columns(
        *_OF,
        column("size", LONG, "Partitions, tasks or replicas; work is divided by it.", required=True),
        column("made_ms", LONG, "When the state was observed, epoch milliseconds.", required=True),
        column("problem", BINARY, "The problem, as pipeline.fleet.compact writes it.", required=True),
    ),
    key=("cluster", "subject", "kind"),
)

PLANS = TableSpec(
    "fleet.plans",
    "Plans for each group, application and topic of a fleet.",
    columns(
        column("run", STRING, "The run that planned it.", required=True),
        *_OF,
        column("look", STRING, "Id of the look that it was planned from; null for a problem of a table."),
        column("made_ms", LONG, "When the look was taken, or the problem made.", required=True),
        column("size", LONG, "Partitions, tasks or replicas.", required=True),
        column("readers", INT, "Members, processes or brokers.", required=True),
        column("crossing", LONG, "Cross-rack reads now; null for replicas, or where it cannot be planned."),
        column("optimal_crossing", LONG, "The same under the exact optimum."),
        column("lower_bound", LONG, "No plan costs less."),
        column("moved", LONG, "Partitions, tasks or replicas that the optimum moves."),
        column("optimal", BOOLEAN, "Whether the bound is proven to be met.", required=True),
        column("why_not", STRING, "Why nothing can be planned; null otherwise."),
        column("cpu_s", DOUBLE, "Seconds that planning took."),
        column("proposals", STRINGS, "Documents of the proposals, as a proposals topic has them; empty for none."),
    ),
    key=("run", "cluster", "subject", "kind"),
)
