"""Which subjects get series of their own? The largest, and the rest summed up: a label never grows with the cluster.

Pure. Label values are foreign text: they are cut and freed of control characters before they leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from config.foreign_text import safe_text
from config.secrets import without_url_secrets

OTHER = "other"
_MAX_LABEL = 200
Item = TypeVar("Item")


def split_top(
    items: Mapping[str, Item], most: int, weight: Callable[[Item], float]
) -> tuple[dict[str, Item], tuple[Item, ...]]:
    """The heaviest ``most`` items by name, and all others; one that is itself named ``other`` is among the others."""
    order = sorted(items, key=lambda name: (name == OTHER, -weight(items[name]), name))
    kept = {name for name in order[:most] if name != OTHER}
    return {name: items[name] for name in sorted(kept)}, tuple(items[name] for name in order if name not in kept)


def label(text: str) -> str:
    """A label value that is safe to write and short."""
    return safe_text(without_url_secrets(text), _MAX_LABEL)


def unique_labels(names: Iterable[str]) -> dict[str, str]:
    """Name -> its label; names that would share one get a number, as two equal series make a whole page invalid."""
    taken: set[str] = set()
    labels: dict[str, str] = {}
    for name in names:
        wanted = shown = label(name)
        number = 2
        while shown in taken:
            shown = f"{wanted} ({number})"
            number += 1
        taken.add(shown)
        labels[name] = shown
    return labels
