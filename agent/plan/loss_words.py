"""What losing a rack costs, as one sentence: what stops first, what must restore, who carries the rest."""

from __future__ import annotations

from collections import Counter

from agent.plan.loss import RackLoss


def loss_sentence(loss: RackLoss) -> str:
    """Partitions that stop, tasks that restore, what cannot be told, and the load on the racks that are left."""
    parts = [
        f"{number} {what}"
        for number, what in (
            (len(loss.leaderless), _plural(len(loss.leaderless), "partition") + " without a leader"),
            (len(loss.under_min_isr), _plural(len(loss.under_min_isr), "partition") + " under min ISR"),
            (len(loss.tasks), _plural(len(loss.tasks), "stateful task") + " without a caught-up standby elsewhere"),
        )
        if number
    ] or ([] if loss.uncertain else ["everything goes on"])
    untold = len(loss.untold), len(loss.untold_tasks), len(loss.untold_groups)
    named = [
        f"{number} {_plural(number, word)}"
        for number, word in zip(untold, ("partition", "task", "whole group"), strict=True)
        if number
    ]
    if named:
        parts.append(f"not to be told of {' and '.join(named)}")
    return ", ".join(parts) + _load(loss)


def _load(loss: RackLoss) -> str:
    """Leaders, and bytes where all are known, of the racks that are left, now and afterwards."""
    leaders: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for survivor in loss.survivors:
        rack = survivor.rack or "(unknown)"
        leaders[rack] += survivor.leaders
        after[rack] += survivor.leaders_after
    told = [f"{rack} leads {leaders[rack]} -> {after[rack]}" for rack in sorted(after)]
    if not told:
        return "; no broker is left"
    now = [survivor.bytes_per_s for survivor in loss.survivors]
    then = [survivor.bytes_per_s_after for survivor in loss.survivors]
    if None not in then and any(then):
        most, least = max(value or 0 for value in then), max(value or 0 for value in now)
        told.append(f"the busiest broker takes {least:,.0f} -> {most:,.0f} bytes/s")
    return "; " + ", ".join(told)


def _plural(number: int, word: str) -> str:
    return word if number == 1 else f"{word}s"
