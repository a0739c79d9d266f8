"""What ``assign`` and ``optimize`` write: JSON, on standard output or into a file."""

from __future__ import annotations

from typing import Any, TypedDict


class AssignedCase(TypedDict):
    """The output for one case."""

    id: str
    output: Any
    """In the form of the file's assignor, as tests/golden/README.md describes it."""


class Assigned(TypedDict):
    """What Kafka's own assignors and replica placers give for the cases of a file."""

    results: list[AssignedCase]


class Optimized(TypedDict):
    """The assignment of Kafka Streams tasks that costs least."""

    client: list[int]
    """For each task of the problem, in its order: the number of the client that runs it, from 0."""
    cost: int
    """By --traffic-cost and --non-overlap-cost."""
    cross_rack: int
    """Source partitions without a replica in the rack of the client that reads them."""
    moved: int
    """Tasks on another client than before."""
    lower_bound: int
    """No assignment within the bounds costs less."""
    optimal: bool
    """Whether cost is the lower bound."""
    seconds: dict[str, float]
    """Seconds of CPU by step: read, model, solve and expand."""
