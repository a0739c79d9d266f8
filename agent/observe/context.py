"""What every question of one look needs: whom to ask, how far, how long, and what the last look knew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from agent.observe.scope import Scope
from agent.values.clock import Instant
from agent.values.observation import Gap, GapCause, Observation, Part, RawLocated
from agent.wire.client import WireClient
from agent.wire.cluster_calls import ClusterAnswer
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed
from agent.wire.fanout import gather
from config.kafka_client import KafkaClientConfig

# What the observer remembers from one look to the next.
#
# Nothing of it is needed for a look: it saves work, and it raises doubts when the world has shrunk.


@dataclass(slots=True)
class Recall:
    """Belongs to one observer and is updated at the end of each look. A new one knows nothing."""

    last: Observation | None = None
    known_topics: frozenset[str] = frozenset()
    """Shown in the last look, or hidden since; a caller that remembers more may fill it in."""
    known_groups: frozenset[str] = frozenset()
    taken_ms: dict[Part, int] = field(default_factory=dict)
    """Part -> monotonic time of its last complete answer."""
    rack_tables: dict[str, tuple[bytes, tuple[RawLocated, ...]]] = field(default_factory=dict)
    """Rack locator -> (digest of the text of its last good answer, the rows of it): not read twice."""
    asked_locators: set[str] = field(default_factory=set)
    """Rack locators whose question has not come back."""

    def age_ms(self, part: Part, now_ms: int) -> int | None:
        """How old the last complete answer to that part is; None when there is none."""
        taken = self.taken_ms.get(part)
        return None if taken is None or self.last is None else now_ms - taken

    def is_due(self, part: Part, now_ms: int, refresh_ms: Mapping[Part, int]) -> bool:
        """Whether that part is to be asked again now."""
        age = self.age_ms(part, now_ms)
        return age is None or age >= refresh_ms.get(part, 0)


@dataclass(frozen=True, slots=True)
class Clients:
    """What a look asks with; a context manager that closes all connections."""

    wire: WireClient

    @classmethod
    def open(cls, config: KafkaClientConfig) -> Self:
        """The client of that configuration; connects nothing yet. Raises ConfigError for what cannot be used."""
        return cls(WireClient(config.kafka_python()))

    def close(self) -> None:
        """Close all connections."""
        self.wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One look's surroundings."""

    clients: Clients
    scope: Scope
    recall: Recall
    began: Instant
    cluster: ClusterAnswer
    deadline: Deadline
    """Of the whole look."""

    @property
    def now_ms(self) -> int:
        """Monotonic clock when the look began."""
        return self.began.monotonic_ms

    @property
    def timeout_ms(self) -> int:
        """What the next call may take."""
        return max(1, min(self.scope.call_timeout_ms, int(self.deadline.left_s * 1000)))

    def wants(self, part: Part) -> bool:
        """Whether that part is asked for in this look."""
        return part in self.scope.parts

    def not_asked(self, part: Part) -> tuple[Gap, ...]:
        """The gap of a part that is not wanted; nothing for one that is wanted."""
        return () if self.wants(part) else (Gap(part, GapCause.NOT_ASKED, "", "not requested in this look"),)


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
