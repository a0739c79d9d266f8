"""The clusters that tables have rows of, and the error for one that they have none of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.errors import BadInput
from agent.plan.new_partitions import did_you_mean
from config.foreign_text import listed
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.gold import PARTITION_TRAFFIC
from pipeline.schemas.silver import LOOKS
from pipeline.schemas.table import TableSpec
from pipeline.tables import TableStore

_LISTED = 5


def check_clusters(roots: Sequence[TableStore], names: Iterable[str]) -> None:
    """Raises BadInput for a name that no root has rows of."""
    wanted = set(names)
    if not wanted:
        return
    known = clusters_of(roots, (LOOKS, PARTITION_TRAFFIC))
    if wanted - known:  # bronze is by far the largest, and may have what no refresh has seen
        known |= clusters_of(roots, (TELEMETRY,))
    missing = sorted(wanted - known)
    if missing and known:  # without any rows the command itself says what it lacks
        raise BadInput(
            f"There is no cluster {missing[0]} in {', '.join(root.root for root in roots)}",
            why=f"the tables have rows of {listed(sorted(known), _LISTED)}",
            todo=f"{did_you_mean(missing[0], known)}Check --cluster and spark.tables.",
        )


def clusters_of(roots: Iterable[TableStore], specs: Iterable[TableSpec]) -> set[str]:
    """All clusters that the tables of the roots have rows of."""
    known = (root.read(spec).select("cluster") for root in roots for spec in specs if root.exists(spec))
    return {row.cluster for rows in known for row in rows.distinct().collect() if row.cluster is not None}
