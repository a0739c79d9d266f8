"""Java's orders of iteration and ``java.util.Random``, by which Kafka's assignors break ties.

``HashMap``, ``HashSet`` and ``PriorityQueue`` as Java's library has them. A hash is a signed 32-bit integer.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from functools import lru_cache
from itertools import islice
from operator import mul
from struct import unpack
from typing import Any, Generic, TypeVar
from uuid import UUID

from assignors.kafka.java_table import JavaHashTable

T = TypeVar("T")

# --- keys and hashes ----------------------------------------------------------------------------------------


def utf16_key(text: str) -> bytes:
    """Sort key of ``String.compareTo``: UTF-16 code units, so that U+1F600 comes before U+FF5E."""
    return text.encode("utf-16-be", "surrogatepass")


def string_hash(text: str) -> int:
    """``String.hashCode``: base 31 over the UTF-16 code units."""
    units: Sequence[int]
    if text.isascii():
        units = text.encode()
    else:
        data = utf16_key(text)
        units = unpack(f">{len(data) // 2}H", data)
    return signed_32(sum(map(mul, units, _powers_of_31(len(units)))))


@lru_cache(maxsize=256)
def _powers_of_31(count: int) -> tuple[int, ...]:
    """31 to the power of count - 1, …, 1, 0 as 32-bit numbers: a sum of products is three times as fast as a loop."""
    return tuple(pow(31, power, 2**32) for power in range(count - 1, -1, -1))


def topic_partition_hash(partition: tuple[str, int]) -> int:
    """Hash of a (topic, partition), Kafka's ``TopicPartition``."""
    return signed_32(31 * (31 + partition[1]) + string_hash(partition[0]))


def task_hash(task: tuple[int, int]) -> int:
    """Hash of a (subtopology, partition), the ``TaskId`` of Streams without a named topology."""
    return signed_32(31 * (31 * (31 + task[0]) + task[1]))


def uuid_halves(text: str) -> tuple[int, int]:
    """The signed 64-bit halves of ``xxxxxxxx-xxxx-…``: the sort key of ``UUID.compareTo``, where ``ffff…`` is first.

    Raises ``ValueError`` for anything but a UUID.
    """
    number = UUID(text).int
    return signed_64(number >> 64), signed_64(number)


def topic_id_halves(text: str) -> tuple[int, int]:
    """The signed 64-bit halves of a Kafka ``Uuid`` (22 characters of URL-safe base64), which sorts by them.

    Raises ``ValueError`` for anything else.
    """
    try:
        data = urlsafe_b64decode(text + "==")
    except ValueError:
        data = b""
    if len(data) != 16 or len(text) != 22:
        raise ValueError(f"{text!r} is not a topic id: 22 characters of URL-safe base64 are expected")
    return int.from_bytes(data[:8], signed=True), int.from_bytes(data[8:], signed=True)


def halves_hash(halves: tuple[int, int]) -> int:
    """Hash of a ``UUID``, a ``ProcessId`` or a Kafka ``Uuid`` from its 64-bit halves."""
    mixed = halves[0] ^ halves[1]
    return signed_32(mixed >> 32 ^ mixed)


def signed_32(value: int) -> int:
    """The low 32 bits as Java's ``int``."""
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def signed_64(value: int) -> int:
    """The low 64 bits as Java's ``long``."""
    return (value & (1 << 64) - 1 ^ 1 << 63) - (1 << 63)


# --- hash order ---------------------------------------------------------------------------------------------

DEFAULT_TABLE = 16
"""``new HashMap()``, ``new HashSet()``, ``Collectors.toMap`` and ``toSet``: grown from here, entry by entry."""


def sized_table(capacity: int) -> int:
    """Table of ``new HashMap(capacity)`` and ``new HashSet(capacity)``: the next power of two."""
    return 1 << max(0, capacity - 1).bit_length()


def copied_set_table(count: int) -> int:
    """Table of ``new HashSet(collection)`` by the number of elements: 12 elements get 32 buckets, not 16."""
    return sized_table(max(count * 4 // 3 + 1, DEFAULT_TABLE))


def grown_table(count: int, initial: int = DEFAULT_TABLE) -> int:
    """Table by the number of entries: doubled whenever they are more than three quarters of it. It never shrinks."""
    while 4 * count > 3 * initial:
        initial *= 2
    return initial


def hash_order(
    items: Iterable[T],
    hash_of: Callable[[T], int],
    initial: int = DEFAULT_TABLE,
    order: Callable[[T], Any] = lambda item: item,
) -> list[T]:
    """The items, given in order of insertion, in the order in which a ``HashMap`` or ``HashSet`` visits them.

    ``initial`` is the table that it starts from, see the functions above. Removals leave the order of the others as it
    is (but for buckets of nine and more); a table that once held more is given as ``initial=grown_table(most)``.
    ``order`` is what ``compareTo`` of the items goes by: it decides between equal hashes in such a bucket.
    """
    keys = list(dict.fromkeys(items))
    spreads = [(value := hash_of(key)) ^ (value & 0xFFFFFFFF) >> 16 for key in keys]
    if _gets_crowded(spreads, initial):
        table = JavaHashTable(initial, order)
        for key, spread in zip(keys, spreads, strict=True):
            table.add(key, signed_32(spread))
        return table.items()
    mask = grown_table(len(keys), initial) - 1
    places = sorted(range(len(keys)), key=[spread & mask for spread in spreads].__getitem__)
    return [keys[place] for place in places]  # within a bucket as inserted, which growth keeps


def _gets_crowded(spreads: Sequence[int], initial: int) -> bool:
    """Whether on the way some bucket gets nine entries, which changes more than its own order."""
    table, count = initial, len(spreads)
    while True:
        # The entry that makes a table too full is still in it for a moment.
        entries = min(count, table * 3 // 4 + 1)
        mask = table - 1
        if entries > 8 and max(Counter([spread & mask for spread in islice(spreads, entries)]).values()) > 8:
            return True
        if entries == count and 4 * count <= 3 * table:
            return False
        table *= 2


# --- java.util.Random ---------------------------------------------------------------------------------------


class JavaRandom:
    """``java.util.Random`` of a seed: a 48-bit linear congruential generator."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def next(self, bits: int) -> int:
        """The top ``bits`` of the next state, as a signed 32-bit integer for 32 of them."""
        self._state = self._state * 0x5DEECE66D + 0xB & (1 << 48) - 1
        return signed_32(self._state >> 48 - bits)

    def next_int(self, bound: int) -> int:
        """Uniform in ``[0, bound)``; raises ``ValueError`` unless the bound is positive."""
        return bounded(self.next, bound)


def bounded(next_bits: Callable[[int], int], bound: int) -> int:
    """``Random.nextInt(bound)``, without bias, of any generator of bits. Raises ValueError for a bound below 1."""
    if bound <= 0:
        raise ValueError(f"a bound must be positive, not {bound}")
    drawn = next_bits(31)
    if bound & bound - 1 == 0:
        return bound * drawn >> 31
    while drawn - drawn % bound + bound - 1 >= 1 << 31:
        drawn = next_bits(31)
    return drawn % bound


def shuffle(items: MutableSequence[Any], next_int: Callable[[int], int]) -> None:
    """``Collections.shuffle`` in place: draws with bounds n, n-1, …, 2."""
    for size in range(len(items), 1, -1):
        other = next_int(size)
        items[size - 1], items[other] = items[other], items[size - 1]


# --- PriorityQueue ------------------------------------------------------------------------------------------


class JavaHeap(Generic[T]):
    """``PriorityQueue`` with Java's layout, which shows when keys tie and when the array itself is visited.

    The key is computed at each comparison, as by Java's comparator: a key may change while its item is outside.
    """

    def __init__(self, items: Iterable[T] = (), key: Callable[[T], Any] = lambda item: item) -> None:
        """Built from a collection at once; one item after the other is ``push``."""
        self._key = key
        self._heap = list(items)
        for at in range(len(self._heap) // 2 - 1, -1, -1):
            self._sift_down(at, self._heap[at])

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[T]:
        """In the order of the array, not of the keys."""
        return iter(self._heap)

    def __contains__(self, item: object) -> bool:
        return item in self._heap

    def push(self, item: T) -> None:
        """Add one item."""
        self._heap.append(item)
        self._sift_up(len(self._heap) - 1, item)

    def pop(self) -> T:
        """Take the smallest; raises ``IndexError`` when empty."""
        smallest = self._heap[0]
        last = self._heap.pop()
        if self._heap:
            self._sift_down(0, last)
        return smallest

    def discard(self, item: T) -> None:
        """Take out the first equal item of the array, if there is one."""
        if item not in self._heap:
            return
        at = self._heap.index(item)
        moved = self._heap.pop()
        if at == len(self._heap):
            return
        self._sift_down(at, moved)
        if self._heap[at] is moved:
            self._sift_up(at, moved)

    def _sift_up(self, at: int, item: T) -> None:
        key = self._key(item)
        while at > 0:
            above = at - 1 >> 1
            if key >= self._key(self._heap[above]):
                break
            self._heap[at] = self._heap[above]
            at = above
        self._heap[at] = item

    def _sift_down(self, at: int, item: T) -> None:
        key, size = self._key(item), len(self._heap)
        while at < size >> 1:
            below = 2 * at + 1
            if below + 1 < size and self._key(self._heap[below]) > self._key(self._heap[below + 1]):
                below += 1
            if key <= self._key(self._heap[below]):
                break
            self._heap[at] = self._heap[below]
            at = below
        self._heap[at] = item
