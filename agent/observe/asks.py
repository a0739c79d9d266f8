"""A part of a look as a value: the question, the value in place of no answer; and several of them side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from agent.observe.context import Context
from agent.values.observation import Gap, Part
from agent.wire import CallFailed
from agent.wire.deadline import Deadline
from agent.wire.fanout import gather

T = TypeVar("T")

_MARGIN_MS = 1_000
"""So that a question that ends at its own deadline, with what came by then, is never cut off by this one."""


class Ask(Generic[T]):
    """One question; ``answer`` is the empty value until `ask_together` has run it, and stays so when it failed."""

    def __init__(self, part: Part, question: Callable[[], T], empty: T, *, subject: str = "") -> None:
        self.part = part
        self.subject = subject
        self.question = question
        self.answer = empty


def ask_together(context: Context, asks: Sequence[Ask[Any]], *, name: str) -> tuple[Gap, ...]:
    """Run the questions that are wanted, side by side, and be back by the deadline; returns the gaps of the others."""
    wanted = [ask for ask in asks if context.wants(ask.part)]
    jobs = {number: ask.question for number, ask in enumerate(wanted)}
    gaps = [gap for part in dict.fromkeys(ask.part for ask in asks) for gap in context.not_asked(part)]
    for number, result in gather(jobs, Deadline.after_ms(context.timeout_ms + _MARGIN_MS), name=name).items():
        ask = wanted[number]
        if isinstance(result, CallFailed):
            gaps.append(Gap(ask.part, result.cause, ask.subject, result.detail))
        else:
            ask.answer = result
    return tuple(gaps)
