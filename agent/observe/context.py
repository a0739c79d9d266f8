"""What every question of one look needs: whom to ask, how far, how long, and what the last look knew."""

from __future__ import annotations

from dataclasses import dataclass

from agent.observe.clients import Clients
from agent.observe.recall import Recall
from agent.observe.scope import Scope
from agent.values.clock import Instant
from agent.values.observation import Gap, GapCause, Part
from agent.wire.cluster_calls import ClusterAnswer
from agent.wire.deadline import Deadline


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
