"""What ``spark backtest --output json`` prints and writes into ranking.json."""

from __future__ import annotations

from typing import TypedDict


class BacktestScores(TypedDict):
    """Sums over the stretch of history."""

    looks: int
    groups: int
    """Groups of all looks: group snapshots."""
    seconds: float
    """Time that looks cover."""
    unseen_s: float
    """Time that no look covers."""
    read_partition_s: float
    """Partitions read across racks, times seconds."""
    unknown_partition_s: float
    """Partitions of which it is not known whether they are read across racks, times seconds."""
    read_bytes: float
    """Bytes read across racks, where rates are known."""
    read_usd: float
    dark_group_s: float
    """Groups whose bytes are not known in full, times seconds."""
    copied_bytes: float
    """Bytes copied by moves, within and across racks."""
    copied_usd: float
    replication_bytes: float
    """Bytes by which moves changed what followers fetch across racks."""
    replication_usd: float
    moves: int
    """Partitions, tasks and replicas that were moved."""
    placements: int
    """Reassignments and changes of preferred leaders."""
    triggers: int
    false_triggers: int
    """Triggers that brought nothing."""
    unjudged_triggers: int
    violation_minutes: float
    """Broken rules, times minutes."""
    balanced_s: list[float]
    """Seconds to balance of each group that came to be balanced."""
    unbalanced_s: list[float]
    """Seconds without balance of each group that did not come to be balanced."""


class BacktestRow(TypedDict):
    """One strategy, and what it would have come to."""

    rank: int
    strategy: str
    scores: BacktestScores
    usd_per_day: float | None
    """Reads, copies and changed replication; null where no byte is known, or none has a price."""
    saved_usd_per_day: float | None
    """Against what was recorded; null where that was not lived through, or bytes are not known."""
    crossing: float
    """Partitions read across racks at a time, on average."""
    balance_s: float | None
    """Median of the seconds to balance; null where no group needed any."""
