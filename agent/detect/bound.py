"""How many partitions can be read locally at best? For groups whose members all subscribe to the same topics.

Answers without an assignment, in microseconds, so that the many groups that are already as good as they can be cost
nothing. It is exact, not an estimate: with N partitions and M members a balanced assignment gives each member floor or
ceil of N / M, so the racks' loads are the bases of a polymatroid whose rank is f(S) = q * members(S) + min(r,
members(S)) for q, r = divmod(N, M), and by Hall's theorem for polymatroids the most partitions that can be local is the
least, over all sets S of racks, of f(S) plus the partitions that have a replica outside S.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

MAX_RACKS = 8
"""All subsets of the members' racks are tried; with more racks than this the solver is asked instead."""


def most_local(histogram: Iterable[tuple[int, int]], members: Mapping[int, int], member_count: int) -> int | None:
    """The largest number of local partitions at equal balance, or None when there are too many racks to say at once.

    ``histogram`` has (mask of racks, partitions), ``members`` the number of members by the bit of their rack;
    ``member_count`` counts those of unknown rack as well, to whom nothing is local.
    """
    bits = [bit for bit in members if bit]
    if len(bits) > MAX_RACKS:
        return None
    everywhere = sum(bits)
    masks: dict[int, int] = {}
    total = 0
    for mask, count in histogram:
        total += count
        masks[mask & everywhere] = masks.get(mask & everywhere, 0) + count
    if not total or not member_count:
        return 0
    share, rest = divmod(total, member_count)
    rows = tuple(masks.items())
    least = total
    for racks, size in _subsets(bits, members):
        outside = ~racks
        reachable = share * size + min(rest, size)
        for mask, count in rows:
            if mask & outside:
                reachable += count
        least = min(least, reachable)
    return least


def _subsets(bits: Sequence[int], members: Mapping[int, int]) -> list[tuple[int, int]]:
    """(union of racks, members in them) for every subset of the racks."""
    subsets = [(0, 0)]
    for bit in bits:
        subsets += [(racks | bit, size + members[bit]) for racks, size in subsets]
    return subsets
