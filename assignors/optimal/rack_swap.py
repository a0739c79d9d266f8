"""Solve tasks whose processes keep their counts: racks swap tasks, and nothing else has to be decided.

A move inside a rack never helps, so the racks are the clients of a tiny network whose size has nothing to do with the
number of tasks. Tasks are only counted, by rack and kind; single ones are looked at where some of their kind leave.
"""

from __future__ import annotations

import numpy as np

from assignors.optimal.items import Bounds, Classes, Placement, Price, stable_order
from assignors.optimal.network import Ints
from assignors.optimal.placement import Placed, expand
from assignors.optimal.task_model import TaskModel
from assignors.optimal.wiring import wire


def swap_racks(model: TaskModel, prices: tuple[Price, ...]) -> Placed:
    """The process of every task at least cost when every process keeps its number of tasks; every task has an owner."""
    kinds, racks = len(model.misses), model.misses.shape[1]
    nothing = np.zeros(0, np.int64)
    home = model.rack[model.owner]
    key = home * kinds + model.kind
    count = np.bincount(key, minlength=racks * kinds)
    present = np.flatnonzero(count)
    here, pool = np.unique(present % kinds, return_inverse=True)
    classes = Classes(
        owned=nothing, loose=nothing, of_owned=nothing, group=np.zeros_like(present), owner=present // kinds,
        kind=present % kinds, size=count[present], pool=pool, of_item=nothing,
        pool_group=np.zeros_like(here), pool_kind=here,
    )  # fmt: skip
    size = count.reshape(racks, kinds).sum(axis=1)
    problem = Placement(
        group=np.zeros_like(model.kind), owner=home, kind=model.kind, rack=np.arange(racks), prices=prices,
        bounds=Bounds(size, np.full(racks, -1), nothing),
    )  # fmt: skip
    wiring = wire(problem, classes)
    flow = wiring.network.solve()
    bound = flow.bound + wiring.constant
    if bound == wiring.constant:
        # What runs now costs no more.
        return Placed(model.owner, bound)
    rank = np.full(racks * kinds, -1, np.int64)
    leaving = np.flatnonzero(flow.units[wiring.leave])
    rank[present[leaving]] = leaving
    of_task = rank[key]
    moving = np.flatnonzero(of_task >= 0)
    pool_of_kind = np.zeros(kinds, np.int64)
    pool_of_kind[here] = np.arange(len(here))
    classes = classes._replace(owned=moving, of_owned=of_task[moving], of_item=pool_of_kind[model.kind])
    return Placed(_fill(model.owner, home, expand(problem, classes, wiring, flow.units), racks), bound)


def _fill(owner: Ints, home: Ints, rack: Ints, racks: int) -> Ints:
    """Tasks that change their rack take the places that others left there, in the order of tasks."""
    client = owner.copy()
    movers = np.flatnonzero(rack != home)
    places = owner[movers[stable_order(home[movers], racks)]]
    client[movers[stable_order(rack[movers], racks)]] = places
    return client
