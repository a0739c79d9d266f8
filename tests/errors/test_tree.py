"""The tree at the head of `agent.errors` has each class of error below its base, with its exit code."""

from __future__ import annotations

import re

from agent import errors

LINE = re.compile(r"^(?P<indent>[ │├└─]*)(?P<name>[A-Z]\w+)(?: +exit (?P<code>\d))?", re.MULTILINE)


def drawn() -> dict[str, tuple[str, int | None]]:
    """Class -> its base and its exit code as the tree draws them; None where it draws none."""
    above: dict[int, str] = {}
    found: dict[str, tuple[str, int | None]] = {}
    tree = (errors.__doc__ or "").partition("::\n\n")[2].partition("\n\n")[0]
    for line in LINE.finditer(tree):
        depth = len(line["indent"]) // 4
        above[depth] = line["name"]
        found[line["name"]] = above.get(depth - 1, ""), int(line["code"]) if line["code"] else None
    return found


def subclasses(of: type[errors.RackwiseError]) -> list[type[errors.RackwiseError]]:
    own = [one for one in of.__subclasses__() if one.__module__ == errors.__name__]
    return [one for child in own for one in (child, *subclasses(child))]


def test_the_tree_is_that_of_the_classes() -> None:
    """A class with subclasses has no exit code in it: each of them has its own."""
    defined = {
        one.__name__: (one.__bases__[0].__name__, None if subclasses(one) else one.exit_code)
        for one in subclasses(errors.RackwiseError)
    }
    assert drawn() == {"RackwiseError": ("", 1), **defined}
