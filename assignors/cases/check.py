"""Comparison of a port's output with Kafka's: exact, or by properties where Kafka is not deterministic.

The result is the first difference, or None. Fields that explain the way to the answer (``draws``, ``branch``,
``cost_…``) count only where both outputs have them; all others must exist in both and be equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from assignors.cases.properties import broken_property
from assignors.cases.registry import AssignorCase, Output

_LONGEST = 120
"""Characters of a value in a sentence."""
_GLANCE = 20
"""Entries of an array that a sentence shows as a whole."""


def first_difference(case: AssignorCase, output: Output) -> str | None:
    """The first difference from Kafka's own output; None without any. Raises ValueError when the case has no output."""
    if case.output is None:
        raise ValueError(f"case {case.id} has no output to compare with")
    different = next(_differences(case.output, output), None)
    if different is None or case.compare == "exact":
        return different
    if any(next(_differences(other, output), None) is None for other in case.other_outputs):
        return None
    return broken_property(case, case.output, output)


def _differences(expected: Output, got: Output) -> Iterator[str]:
    either = expected.keys() ^ got.keys()
    optional = {name for name in either if name in {"draws", "branch"} or name.startswith("cost_")}
    yield from _differing(
        {name: value for name, value in expected.items() if name not in optional},
        {name: value for name, value in got.items() if name not in optional},
        "",
    )


def _differing(expected: Any, got: Any, where: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for name in [*expected, *(name for name in got if name not in expected)]:
            inside = f"{where}.{name}" if where else name
            if name not in got:
                yield f"{inside} is missing; Kafka has {_shown(expected[name])}"
            elif name not in expected:
                yield f"{inside} is {_shown(got[name])}; Kafka has nothing there"
            else:
                yield from _differing(expected[name], got[name], inside)
    elif isinstance(expected, list) and isinstance(got, list) and _one_by_one(expected, got):
        for place, (one, other) in enumerate(zip(expected, got, strict=False)):
            yield from _differing(one, other, f"{where}[{place}]")
        if len(expected) != len(got):
            yield f"{where} has {len(got)} entries; Kafka has {len(expected)}"
    elif expected != got or isinstance(expected, bool) is not isinstance(got, bool):
        yield f"{where} is {_shown(got)}; Kafka has {_shown(expected)}"


def _one_by_one(expected: list[Any], got: list[Any]) -> bool:
    """Whether two arrays are too deep or too long for their difference to be seen at a glance."""
    deep = any(isinstance(value, Mapping | list) for value in expected)
    return deep or max(len(expected), len(got)) > _GLANCE


def _shown(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= _LONGEST else f"{written[: _LONGEST - 3]}..."
