"""Propose: each part of the plan as a value that says everything a reader needs to decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.propose.make import propose as propose

__all__ = ["propose"]


def __getattr__(name: str) -> Any:
    # The plan's contract names proposals and proposals are made from plans: loaded on demand, neither comes first.
    if name == "propose":
        from agent.propose.make import propose  # noqa: PLC0415 (the circle is why this function exists)

        return propose
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
