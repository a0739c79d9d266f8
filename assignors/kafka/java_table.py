"""Iteration order of a Java ``HashMap`` with full buckets: from the ninth entry on a bucket becomes a tree.

Iteration follows the list of the tree's entries: a new entry is inserted behind its parent in the tree, the new root
moves to the front. Below 64 buckets the table doubles instead. Streams tasks with the same
``31 * subtopology + partition`` share one hash, so that every larger application has such buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_TREE_FROM = 9
"""Entries of a bucket that becomes a tree."""
_LIST_UP_TO = 6
"""Entries of a half that becomes a list again when the table doubles."""
_SMALLEST_WITH_TREES = 64


class _Node(Generic[T]):
    """An entry of a tree, red or black."""

    __slots__ = ("children", "item", "key", "parent", "red")

    def __init__(self, item: T, key: tuple[int, Any]) -> None:
        self.item, self.key = item, key
        self.parent: _Node[T] | None = None
        self.children: list[_Node[T] | None] = [None, None]
        self.red = True


class JavaHashTable(Generic[T]):
    """A hash table that only grows."""

    def __init__(self, size: int, order: Callable[[T], Any]) -> None:
        """``order``: what ``compareTo`` goes by; it decides between equal hashes in a tree."""
        self._order = order
        self._buckets: list[_Bucket[T]] = [_Bucket() for _ in range(size)]
        self._count = 0

    def add(self, item: T, spread: int) -> None:
        """Add an item that is not there yet, with its hash as the table mixes it (signed)."""
        bucket = self._buckets[spread & len(self._buckets) - 1]
        bucket.add(_Node(item, (spread, self._order(item))))
        if len(bucket.nodes) >= _TREE_FROM and bucket.root is None:
            if len(self._buckets) < _SMALLEST_WITH_TREES:
                self._double()
            else:
                bucket.make_tree()
        self._count += 1
        if 4 * self._count > 3 * len(self._buckets):
            self._double()

    def items(self) -> list[T]:
        """All items as Java visits them."""
        return [node.item for bucket in self._buckets for node in bucket.nodes]

    def _double(self) -> None:
        size = len(self._buckets)
        lower, upper = [], []
        for bucket in self._buckets:
            low, high = bucket.split(size)
            lower.append(low)
            upper.append(high)
        self._buckets = lower + upper


class _Bucket(Generic[T]):
    """The entries of one bucket in the order in which they are visited, and the root of their tree if it is one."""

    __slots__ = ("nodes", "root")

    def __init__(self, nodes: Iterable[_Node[T]] = ()) -> None:
        self.nodes = list(nodes)
        self.root: _Node[T] | None = None

    def add(self, node: _Node[T]) -> None:
        if self.root is None:
            self.nodes.append(node)
            return
        parent = self._hang(self.root, node)
        self.nodes.insert(self.nodes.index(parent) + 1, node)
        self._bring_to_front(self.root)

    def make_tree(self) -> None:
        for node in self.nodes:
            node.parent, node.children, node.red = None, [None, None], True
        self.root = root = self.nodes[0]
        root.red = False
        for node in self.nodes[1:]:
            self._hang(self.root, node)
        self._bring_to_front(self.root)

    def split(self, bit: int) -> tuple[_Bucket[T], _Bucket[T]]:
        lower = _Bucket(node for node in self.nodes if not node.key[0] & bit)
        upper = _Bucket(node for node in self.nodes if node.key[0] & bit)
        if self.root is not None:
            for half, other in ((lower, upper), (upper, lower)):
                if len(half.nodes) > _LIST_UP_TO:
                    if other.nodes:
                        half.make_tree()
                    else:
                        half.root = self.root
        return lower, upper

    def _bring_to_front(self, root: _Node[T]) -> None:
        self.nodes.remove(root)
        self.nodes.insert(0, root)

    def _hang(self, root: _Node[T], node: _Node[T]) -> _Node[T]:
        """Put a node into the tree; return the parent that it got before the tree was balanced again."""
        below: _Node[T] | None = root
        while below is not None:
            parent = below
            side = int(node.key > parent.key)
            below = parent.children[side]
        node.parent = parent
        parent.children[side] = node
        self._balance(node)
        return parent

    def _balance(self, node: _Node[T]) -> None:
        """Red-black insertion: no red node keeps a red child."""
        while (parent := node.parent) is not None and parent.red and (grandparent := parent.parent) is not None:
            side = _side(grandparent, parent)
            uncle = grandparent.children[1 - side]
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grandparent.red = True
                node = grandparent
                continue
            if _side(parent, node) != side:
                self._raise(node, parent)
                node, parent = parent, node
            parent.red = False
            grandparent.red = True
            self._raise(parent, grandparent)
        if node.parent is None:
            node.red = False

    def _raise(self, node: _Node[T], parent: _Node[T]) -> None:
        """Let a node and its parent change places, keeping the order (a rotation)."""
        side = _side(parent, node)
        inner = node.children[1 - side]
        parent.children[side] = inner
        if inner is not None:
            inner.parent = parent
        above = parent.parent
        node.parent = above
        if above is None:
            self.root = node
            node.red = False
        else:
            above.children[_side(above, parent)] = node
        node.children[1 - side] = parent
        parent.parent = node


def _side(parent: _Node[T], child: _Node[T]) -> int:
    return int(parent.children[1] is child)
