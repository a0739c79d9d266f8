"""Which replicas a partition has before and after the reassignment that runs: the one count of findings and proposals.

While a reassignment runs, ``PartitionState.replicas`` is the union of old and new, and neither the old spread nor the
new one can be read off it. What is decided about a partition is decided by its target (KIP-455: the replicas without
those that are being removed); what may have been lost is judged by the replicas from before it (without those that are
being added), as Kafka counts under-replicated partitions (``Partition.isUnderReplicated``).
"""

from __future__ import annotations

from agent.values.snapshot import PartitionState, Reassignment

Replicas = tuple[int, ...]


def target_replicas(state: PartitionState, reassignment: Reassignment | None) -> Replicas:
    """The replicas once the running reassignment is through, in assignment order; as they are where none runs."""
    if reassignment is None:
        return state.replicas
    target = tuple([replica for replica in reassignment.replicas if replica not in reassignment.removing])
    return target or state.replicas


def original_replicas(state: PartitionState, reassignment: Reassignment | None) -> Replicas:
    """The replicas from before the running reassignment, in assignment order; as they are where none runs."""
    if reassignment is None or not reassignment.adding:
        return state.replicas
    return tuple(replica for replica in state.replicas if replica not in reassignment.adding)
