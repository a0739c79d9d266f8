"""One line of an explanation."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Answer(StrEnum):
    """What a rule says."""

    YES = "yes"
    NO = "no"
    WAIT = "wait"
    """Not now; it passes by itself."""
    UNKNOWN = "unknown"
    """What the rule needs is unknown."""
    FOUND = "found"
    """It is a finding."""
    FACT = "fact"
    """A figure, which answers no question."""


Value = str | int | float | bool | tuple[str | int, ...] | None
"""A figure, or names."""


class Explained(NamedTuple):
    """A rule, what it was asked about, what it answered, and the sentence with its figures."""

    about: str
    """``orders-0``, ``orders-0 on broker 3``, ``group/orders``, ``member m1``, a finding's or a proposal's id."""
    rule: str
    answer: Answer
    sentence: str
    value: Value = None
    """The figure of a fact, for machines; its unit is in ``rule``."""


def yes_or_no(fine: bool) -> Answer:  # noqa: FBT001 (a truth is what it turns into a word)
    """The word for a truth."""
    return Answer.YES if fine else Answer.NO
