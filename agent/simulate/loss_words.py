"""What losing a rack costs, in words: what stops first, what must restore, what is not known, who carries the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.simulate.loss import RackLoss
from agent.values.words import counted, few, sized

SHOWN = 3
"""Partitions, tasks and parts that are named one by one; the rest is counted."""


def loss_label(loss: RackLoss) -> str:
    """The risk by its name, with the partitions: ``losing rack a leaves 2 partitions without a leader: t-0, t-1``."""
    tasks = [f"{one.group} {one.task}" for one in loss.tasks]
    parts = [
        f"{verb} {_named(names, noun, what)}"
        for verb, names, noun, what in (
            ("leaves", loss.leaderless, "partition", "without a leader"),
            ("leaves", loss.under_min_isr, "partition", "under min ISR"),
            ("makes", tasks, "task", "restore state"),
        )
        if names
    ]
    if parts:
        return f"losing rack {loss.rack} {'; '.join(parts)}"
    if loss.uncertain:
        return f"what losing rack {loss.rack} stops is not known"
    if loss.holds_nothing:
        return f"losing rack {loss.rack}"
    return f"losing rack {loss.rack} stops nothing"


def loss_details(loss: RackLoss) -> tuple[str, ...]:
    """What the label leaves open: for what the effect is unknown, and the load on the racks that are left."""
    if loss.holds_nothing and not loss.uncertain:
        return ("no replica and no task was seen in it",)
    return tuple([part for part in (", ".join(_unknown(loss)), _load(loss)) if part])


def loss_sentence(loss: RackLoss) -> str:
    """Partitions that stop, tasks that restore, what is unknown, and the load on the racks that are left."""
    parts = [
        f"{number} {what}"
        for number, what in (
            (len(loss.leaderless), _plural(len(loss.leaderless), "partition") + " without a leader"),
            (len(loss.under_min_isr), _plural(len(loss.under_min_isr), "partition") + " under min ISR"),
            (len(loss.tasks), _plural(len(loss.tasks), "stateful task") + " without a caught-up standby elsewhere"),
        )
        if number
    ]
    if loss.costs_nothing:
        parts = [
            "no replica and no task was seen in it" if loss.holds_nothing else "no partition stops and no task restores"
        ]
    return f"{', '.join([*parts, *_unknown(loss)])}; {_load(loss)}"


def _unknown(loss: RackLoss) -> list[str]:
    parts: list[str] = []
    untold = len(loss.untold), len(loss.untold_tasks), len(loss.untold_groups)
    named = [
        counted(number, word)
        for number, word in zip(untold, ("partition", "task", "whole group"), strict=True)
        if number
    ]
    if named:
        parts.append(f"the effect on {' and '.join(named)} is unknown ({_untold(loss)})")
    if loss.unseen:
        parts.append(f"not all was seen ({few(loss.unseen, SHOWN)})")
    return parts


def _untold(loss: RackLoss) -> str:
    """The first of each kind, what is not known of tasks, and how to see all where some are left out."""
    parts = [few(loss.untold, SHOWN)] if loss.untold else []
    if loss.untold_tasks:
        reasons = ", ".join(dict.fromkeys(one.why for one in loss.untold_tasks))
        parts.append(f"{few([f'{one.group} {one.task}' for one in loss.untold_tasks], SHOWN)}: {reasons}")
    if loss.untold_groups:
        parts.append(f"{_plural(len(loss.untold_groups), 'group')} {few(loss.untold_groups, SHOWN)}")
    cut = max(len(loss.untold), len(loss.untold_tasks), len(loss.untold_groups)) > SHOWN
    return "; ".join([*parts, "all: rackwise racks -o json"] if cut else parts)


def _load(loss: RackLoss) -> str:
    """Leaders, and bytes where all are known, of the racks that are left, now and afterwards."""
    leaders: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for survivor in loss.survivors:
        rack = survivor.rack or "(unknown)"
        leaders[rack] += survivor.leaders
        after[rack] += survivor.leaders_after
    if after and not leaders.total() and not after.total():
        return "no partition is led there" if len(after) == 1 else "no partition is led in the other racks"
    told = [f"rack {rack} leads {leaders[rack]} -> {counted(after[rack], 'partition')}" for rack in sorted(after)]
    if not told:
        return "the load on other racks is unknown" if loss.unseen else "no broker is left"
    now = [survivor.bytes_per_s for survivor in loss.survivors]
    then = [survivor.bytes_per_s_after for survivor in loss.survivors]
    if None not in then and any(then):
        most, least = max(value or 0 for value in then), max(value or 0 for value in now)
        told.append(f"the busiest remaining broker takes in {sized(least)}/s -> {sized(most)}/s")
    return ", ".join(told)


def _named(names: Sequence[object], noun: str, what: str) -> str:
    """``6 partitions without a leader: t-0, t-1, t-2 and 3 more``."""
    return f"{counted(len(names), noun)} {what}: {few(names, SHOWN)}"


def _plural(number: int, word: str) -> str:
    return word if number == 1 else f"{word}s"
