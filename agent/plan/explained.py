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
    """It cannot be told."""


class Explained(NamedTuple):
    """A rule, what it was asked about, what it answered, and why."""

    about: str
    """``orders-0``, ``orders-0 on broker 3``, ``group/orders``, ``member m1``, a finding's or a proposal's id."""
    rule: str
    answer: Answer
    sentence: str


def yes_or_no(fine: bool) -> Answer:  # noqa: FBT001 (a truth is what it turns into a word)
    """The word for a truth."""
    return Answer.YES if fine else Answer.NO
