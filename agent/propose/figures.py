"""Sizes, traffic and money of a proposal: they change while its plan, its id and its approval's hash do not. Pure."""

from __future__ import annotations

from typing import NamedTuple

from agent.values.proposal import Proposal

MATERIAL_SHARE = 0.2
"""A figure that differs by more than this part of what it was is another one for a person who decides by it."""


class Figures(NamedTuple):
    """What changes from look to look. None is unknown, never zero."""

    bytes_to_move: int | None = None
    cross_rack_bytes_per_s_before: float | None = None
    cross_rack_bytes_per_s_after: float | None = None
    usd_per_day_before: float | None = None
    usd_per_day_after: float | None = None

    def adds_to(self, before: Figures) -> bool:
        """Whether something that was unknown is known."""
        return any(old is None and new is not None for old, new in zip(before, self, strict=True))


def figures_of(proposal: Proposal) -> Figures:
    """The figures of the look that it was made from, which is of its ``created_ms``."""
    told = proposal.predicted
    return Figures(
        told.bytes_to_move,
        told.cross_rack_bytes_per_s_before,
        told.cross_rack_bytes_per_s_after,
        told.usd_per_day_before,
        told.usd_per_day_after,
    )


def differ(before: Figures, after: Figures) -> bool:
    """Whether a figure that both know differs materially; what is no longer known leaves the older figure in place."""
    pairs = zip(before, after, strict=True)
    return any(old is not None and new is not None and abs(new - old) > MATERIAL_SHARE * abs(old) for old, new in pairs)
