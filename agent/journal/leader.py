"""Who leads, since when? The entry ``leader``, the first that each leadership writes.

Invariant: an epoch is greater than every epoch that the journal has ever shown, so that no two leaderships share one.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.errors import WrongCluster
from agent.values.journal import View, Write
from agent.values.typed_json import UnreadableError, from_json, to_json

LEADER = "leader"
KIND = "leader"


class Leader(NamedTuple):
    """An agent that leads. Its epoch is that of the entry."""

    agent: str
    """Its name among the agents of the cluster."""
    host: str
    pid: int
    cluster: str
    """Id of the cluster whose journal this is."""
    since_ms: int
    """Epoch milliseconds of its clock at which it began to lead."""


def leader_write(leader: Leader) -> Write:
    """What a leadership says of itself."""
    return Write(LEADER, KIND, to_json(Leader, leader))


def leader_in(view: View) -> Leader | None:
    """Who wrote last; None when no agent ever led, or when a newer rackwise says it in another way."""
    entry = view.get(LEADER)
    if entry is None:
        return None
    try:
        return from_json(Leader, entry.value)
    except UnreadableError:
        return None


def check_cluster(view: View, cluster: str, where: str) -> None:
    """Raises WrongCluster for a journal that another cluster's agents wrote, such as a mirrored topic."""
    leader = leader_in(view)
    if leader is not None and leader.cluster != cluster:
        raise WrongCluster(
            f"The journal {where} is that of cluster {leader.cluster}",
            why=f"this is cluster {cluster}",
            todo="Give this cluster a journal of its own.",
        )


def newest_epoch(view: View) -> int:
    """The greatest epoch of any entry; 0 when no agent ever led."""
    return max((entry.epoch for entry in view.values()), default=0)
