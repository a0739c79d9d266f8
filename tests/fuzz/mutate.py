"""Makes broken inputs out of whole ones: the same seed, the same inputs."""

from __future__ import annotations

import json
from random import Random
from typing import Any

_EDGES = (0x00, 0x01, 0x7F, 0x80, 0xBF, 0xC0, 0xE0, 0xED, 0xF0, 0xFE, 0xFF)
_NUMBERS = tuple(
    value.to_bytes(size, "big", signed=True)
    for size in (2, 4, 8)
    for value in (-1, 0, 1, 2 ** (8 * size - 1) - 1, -(2 ** (8 * size - 1)))
)
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**62, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e-320, 1e300,
    float("inf"), float("nan"), "", "\0", "\ud800", "\udfff\ud800", "9" * 400, "x" * 2_000, "é😀\u2028", "[", [], {},
    [[]], [None], {"": None}, {"a": {"a": {"a": []}}}, ["t", 0], [0, 0], "t-0", "p-1", "__class__", -(10**400),
)  # fmt: skip
"""Values of a made-up JSON document."""


def mutated(r: Random, seeds: tuple[bytes, ...]) -> bytes:
    """One of the seeds with one to four changes: flipped, cut, repeated, spliced, with numbers at their edges."""
    rand = r.random
    data = bytearray(seeds[int(rand() * len(seeds))])
    for _ in range(1 + int(rand() * 4)):
        size = len(data)
        at = int(rand() * (size + 1))
        kind = int(rand() * 8)
        if kind <= 1 and size:
            data[at % size] = int(rand() * 256)
        elif kind == 2 and size:
            data[at % size] = _EDGES[int(rand() * len(_EDGES))]
        elif kind == 3:
            number = _NUMBERS[int(rand() * len(_NUMBERS))]
            data[at : at + len(number)] = number
        elif kind == 4:
            del data[at : at + 1 + int(rand() * 8)]
        elif kind == 5:
            data[at:at] = data[at : at + 1 + int(rand() * 16)] * (1 + int(rand() * 3))
        elif kind == 6:
            other = seeds[int(rand() * len(seeds))]
            data[at:] = other[int(rand() * (len(other) + 1)) :]
        else:
            del data[at:]
    return bytes(data)


def mutated_json(r: Random, documents: tuple[Any, ...], seeds: tuple[bytes, ...]) -> bytes:
    """One of the documents with a value of it replaced, taken away or written twice; now and then broken as bytes."""
    if r.random() < 0.3:
        return mutated(r, seeds)
    document = documents[int(r.random() * len(documents))]
    for _ in range(1 + int(r.random() * 3)):
        document = _changed(r, document)
    text = json.dumps(document, ensure_ascii=r.random() < 0.5, separators=(",", ":"))
    if r.random() < 0.02:
        text = text.replace("{", '{"v":1,"v":1,', 1)
    return text.encode("utf-8", "surrogatepass")


def _changed(r: Random, value: Any) -> Any:
    """A copy in which one place, drawn on the way down, is another."""
    rand = r.random
    if not value or not isinstance(value, dict | list) or rand() < 0.15:
        return HOSTILE[int(rand() * len(HOSTILE))]
    if isinstance(value, dict):
        copy = dict(value)
        name = list(copy)[int(rand() * len(copy))]
        if rand() < 0.1:
            copy[str(HOSTILE[int(rand() * len(HOSTILE))])] = copy.pop(name)
        elif rand() < 0.1:
            del copy[name]
        else:
            copy[name] = _changed(r, copy[name])
        return copy
    row = list(value)
    at = int(rand() * len(row))
    if rand() < 0.1:
        row.insert(at, HOSTILE[int(rand() * len(HOSTILE))])
    elif rand() < 0.1:
        del row[at]
    else:
        row[at] = _changed(r, row[at])
    return row
