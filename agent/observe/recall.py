"""What the observer remembers from one look to the next.

Nothing of it is needed for a look: it saves work, and it raises doubts when the world has shrunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.values.observation import Observation, Part, RawLocated


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
