"""Optimal tasks at fixed task counts per process: swaps between racks only.

A move inside a rack never helps, so the network has a client per rack, and tasks are counted by rack and kind.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from assignors.optimal.items import ClientBounds, ItemClasses, PlacementProblem, PriceLevel, stable_order
from assignors.optimal.placement import PlacementResult, expand
from assignors.optimal.task_model import TaskModel, cells
from assignors.optimal.tight_flow import Ints
from assignors.optimal.wiring import wire


def swap_racks(model: TaskModel, prices: tuple[PriceLevel, ...]) -> PlacementResult:
    """The process of every task at least cost when every process keeps its number of tasks; every task has an owner."""
    kinds, racks = model.misses.shape
    cell = cells(model, model.owner)
    problem, classes = _collapse(np.bincount(cell, minlength=racks * kinds).reshape(racks, kinds), prices)
    wiring = wire(problem, classes)
    flow = wiring.network.solve()
    bound = flow.bound + wiring.constant
    if bound == wiring.constant:
        # What runs now costs no more.
        return PlacementResult(model.owner, bound)

    leaving = np.flatnonzero(flow.units[wiring.leave])
    class_of_cell = np.full(racks * kinds, -1, np.int64)
    class_of_cell[classes.owner[leaving] * kinds + classes.kind[leaving]] = leaving
    some = np.flatnonzero((class_of_cell >= 0)[cell])
    of_class = class_of_cell[cell[some]]
    home = classes.owner[of_class]
    rack = expand(
        replace(problem, owner=home, kind=classes.kind[of_class]),
        classes._replace(owned=np.arange(len(some)), of_owned=of_class, of_item=classes.pool[of_class]),
        wiring,
        flow.units,
    )
    moving = np.flatnonzero(rack != home)
    return PlacementResult(_fill(model.owner, some[moving], (home[moving], rack[moving]), racks), bound)


def _collapse(count: Ints, prices: tuple[PriceLevel, ...]) -> tuple[PlacementProblem, ItemClasses]:
    """The placement of ``count[rack, kind]`` tasks on racks that keep their numbers; every class is one item."""
    owner, kind = np.nonzero(count)
    here, pool = np.unique(kind, return_inverse=True)
    nothing, one_group = np.zeros(0, np.int64), np.zeros_like(kind)
    classes = ItemClasses(
        owned=nothing, loose=nothing, of_owned=nothing, group=one_group, owner=owner, kind=kind,
        size=count[owner, kind], pool=pool, of_item=nothing, pool_group=np.zeros_like(here), pool_kind=here,
    )  # fmt: skip
    size = count.sum(axis=1)
    problem = PlacementProblem(
        group=one_group, owner=owner, kind=kind, rack=np.arange(len(size)), prices=prices,
        bounds=ClientBounds(size, np.full(len(size), -1), nothing),
    )  # fmt: skip
    return problem, classes


def _fill(owner: Ints, movers: Ints, way: tuple[Ints, Ints], racks: int) -> Ints:
    """Tasks that change their rack take the places that others left there, in the order of tasks."""
    home, rack = way
    client = owner.copy()
    client[movers[stable_order(rack, racks)]] = owner[movers[stable_order(home, racks)]]
    return client
