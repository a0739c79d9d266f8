"""``ConstrainedAssignmentBuilder`` of Kafka's ``AbstractStickyAssignor``: all members subscribe to the same topics.

Priorities: balance (loads differ by one at most), racks, stickiness. Members keep local partitions up to their quota;
free ones go to members in the right rack, then to any. The hash order of member ids decides which get the larger share.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import compress, islice
from operator import itemgetter

from assignors.kafka.java import hash_order, string_hash, utf16_key
from assignors.kafka.numbered_group import NumberedGroup, RackInfo
from assignors.kafka.sticky_claims import StickyClaims


def assign_constrained(
    group: NumberedGroup, claims: StickyClaims, racks: RackInfo
) -> tuple[list[list[int]], dict[int, int]]:
    """Return member -> partitions, and the partitions that another may still hold -> their new member."""
    builder = _Builder(group, claims, racks)
    builder.keep_owned()
    kept = list(map(len, builder.given))
    left = builder.unassigned()
    if left and racks.followed:
        left = builder.fill_in_racks(left)
    if left:
        builder.fill(left)
    return builder.given, builder.transferring(kept)


class _Builder:
    def __init__(self, group: NumberedGroup, claims: StickyClaims, racks: RackInfo) -> None:
        self._group, self._claims, self._racks = group, claims, racks
        self._least, self._with_more = divmod(group.total, len(group.ids))
        self._most = self._least + (self._with_more > 0)
        self._filled = 0
        """Members that have more than the least."""
        self._under: list[int] = []
        """Members below the least, and in ``_exact`` those that may still get one more."""
        self._exact: list[int] = []
        self._revoked: dict[int, int] = {}
        self.given: list[list[int]] = [[] for _ in group.ids]

    def keep_owned(self) -> None:
        """Let every member keep what is local to it, up to its quota."""
        self.given = self._local()
        if self._with_more:
            self._keep_uneven()
        else:
            self._keep_even()
        rank = self._group.rank.__getitem__
        self._under.sort(key=rank)
        self._exact.sort(key=rank)

    def _local(self) -> list[list[int]]:
        """Member -> what it alone claims, without what is not local to it."""
        owned, contested, racks = self._claims.owned, self._claims.contested, self._racks
        if not racks.followed:
            given = list(map(list, owned))
        else:
            set_of = racks.set_of
            local = [racks.local[rack] for rack in racks.of_member]
            given = [[each for each in own if near[set_of[each]]] for own, near in zip(owned, local, strict=True)]
            for member, (own, near) in enumerate(zip(owned, local, strict=True)):
                if len(given[member]) < len(own):
                    self._revoked.update([(each, member) for each in own if not near[set_of[each]]])
        if contested:
            given = [[each for each in own if each not in contested] for own in given]
        return given

    def _keep_even(self) -> None:
        """All members have the same quota."""
        for member, own in enumerate(self.given):
            if len(own) < self._least:
                self._under.append(member)
            else:
                self._cut(member, self._least)

    def _keep_uneven(self) -> None:
        """Some may have one more than the others: the first that have as many."""
        for member in self._visited():
            count = len(self.given[member])
            if count < self._least:
                self._under.append(member)
                continue
            more = count >= self._most and self._filled < self._with_more
            if more:
                self._count_filled()
            elif self._filled < self._with_more:
                self._exact.append(member)
            self._cut(member, self._most if more else self._least)

    def _visited(self) -> Iterable[int]:
        """The members as a hash map has them."""
        ids = {name: member for member, name in enumerate(self._group.ids)}
        return map(ids.__getitem__, hash_order(ids, string_hash, order=utf16_key))

    def _cut(self, member: int, quota: int) -> None:
        own = self.given[member]
        if len(own) > quota:
            own.sort(key=self._group.by_number)
            self._revoked.update(dict.fromkeys(own[quota:], member))
            del own[quota:]

    def _count_filled(self) -> None:
        self._filled += 1
        if self._filled == self._with_more:
            self._exact.clear()

    def unassigned(self) -> list[int]:
        """Partitions that no member keeps, by topic and number; those near the fewest members first."""
        free = bytearray(b"\1") * self._group.total
        for own in self.given:
            for partition in own:
                free[partition] = 0
        left = list(compress(range(self._group.total), free))
        if nearby := self._racks.nearby:  # Kafka sorts also where it does not follow racks
            set_of = self._racks.set_of
            left.sort(key=lambda partition: nearby[set_of[partition]])
        return left

    def fill_in_racks(self, left: list[int]) -> list[int]:
        """Give partitions to members in their racks, in turn; return those that found none."""
        racks = self._racks
        circle = _Circle(racks.sets, [racks.of_member[member] for member in self._under])
        # Without larger shares no member ever queues.
        queue = _Queue(racks.sets if self._with_more else (), racks.of_member, self._exact)
        nowhere = []
        for partition in left:
            place = circle.next(racks.set_of[partition])
            if place is not None:
                member = self._under[place]
                count = len(self.given[member]) + 1
                if count >= self._least:
                    circle.drop(place)
                    if count < self._most and self._filled < self._with_more:
                        queue.append(member)
                self.given[member].append(partition)
            elif (first := queue.take(racks.set_of[partition])) is not None:
                self.given[first].append(partition)
                self._filled += 1
                if self._filled == self._with_more:
                    queue.clear()
            else:
                nowhere.append(partition)
        self._under = [member for place, member in enumerate(self._under) if place in circle]
        self._exact = queue.members()
        return nowhere

    def fill(self, left: list[int]) -> None:
        """Deal the rest to the members below the least in turn, then one each to those that may have one more."""
        under, given, dealt = self._under, self.given, 0
        while under and dealt < len(left):
            # As many rounds at once as no member leaves the circle before.
            rounds = min(self._least - len(given[member]) for member in under)
            until = dealt + rounds * len(under)
            for place, member in enumerate(under, dealt):
                given[member] += left[place : until : len(under)]
            dealt = until
            self._exact += [member for member in under if len(given[member]) == self._least]
            under = [member for member in under if len(given[member]) < self._least]
        for member, partition in zip(self._exact, left[dealt:], strict=False):
            given[member].append(partition)

    def transferring(self, kept: list[int]) -> dict[int, int]:
        """Partitions given anew that another member had, or that several claimed -> their new member."""
        revoked, contested = self._revoked, self._claims.contested
        if not revoked and not contested:
            return {}
        return {
            partition: member
            for member, given in enumerate(self.given)
            for partition in islice(given, kept[member], None)
            if revoked.get(partition, member) != member or partition in contested
        }


class _Circle:
    """Members in a circle, for the next one in a set of racks after the last answer."""

    def __init__(self, sets: Iterable[frozenset[str]], racks: Sequence[str | None]) -> None:
        self._size, self._racks = len(racks), racks
        self._after = 0
        self._gone: set[int] = set()
        self._in_rack: defaultdict[str, list[int]] = defaultdict(list)
        for place, rack in enumerate(racks):
            if rack is not None:
                self._in_rack[rack].append(place)
        self._lines = [[self._in_rack[rack] for rack in each if rack in self._in_rack] for each in sets]

    def next(self, rack_set: int) -> int | None:
        """The place of the next member in the set, None when there is none."""
        size = self._size
        best = unowned = 2 * size
        for line in self._lines[rack_set]:
            if line:
                at = bisect_left(line, self._after)
                place = line[at] if at < len(line) else line[0] + size
                best = min(best, place)
        if best == unowned:
            return None
        place = best % size
        self._after = place + 1
        return place

    def drop(self, place: int) -> None:
        """Take a member with a rack out of the circle."""
        self._gone.add(place)
        line = self._in_rack[self._racks[place] or ""]
        del line[bisect_left(line, place)]

    def __contains__(self, place: int) -> bool:
        return place not in self._gone


class _Queue:
    """Members in a queue, of which the first in a set of racks can be taken."""

    def __init__(self, sets: Iterable[frozenset[str]], racks: Sequence[str | None], members: Iterable[int]) -> None:
        self._racks = racks
        self._members: dict[int, int] = {}
        """Place in the queue -> member."""
        self._in_rack: defaultdict[str | None, deque[int]] = defaultdict(deque)
        self._lines = [[self._in_rack[rack] for rack in each] for each in sets]
        self._joined = 0
        for member in members:
            self.append(member)

    def append(self, member: int) -> None:
        """Join the queue."""
        self._members[self._joined] = member
        self._in_rack[self._racks[member]].append(self._joined)
        self._joined += 1

    def take(self, rack_set: int) -> int | None:
        """Take out the first member in the set; None when there is none."""
        if not self._members:
            return None
        line = min(filter(None, self._lines[rack_set]), key=itemgetter(0), default=None)
        return None if line is None else self._members.pop(line.popleft())

    def clear(self) -> None:
        """Empty the queue."""
        self._members.clear()
        for line in self._in_rack.values():
            line.clear()

    def members(self) -> list[int]:
        """Who is left, in order."""
        return list(self._members.values())
