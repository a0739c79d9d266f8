"""What a look asks for, how long it may take and how old its slow parts may get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType

from agent.observe.locators.question import LocatorQuestion
from agent.values.observation import Part

SLOW_PARTS_REFRESH_MS: Mapping[Part, int] = MappingProxyType({
    Part.LOG_DIRS: 30_000,
    Part.TOPIC_CONFIGS: 60_000,
    Part.BROKER_CONFIGS: 60_000,
    Part.GROUP_CONFIGS: 60_000,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The limits of a look; the defaults see everything."""

    include_topics: tuple[str, ...] = ()
    """Shell-style patterns, case-sensitive; empty sees all. What is left out here is not seen at all."""
    exclude_topics: tuple[str, ...] = ()
    include_groups: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    call_timeout_ms: int = 5_000
    """Hard deadline of one call, connection set-up included."""
    deadline_ms: int = 30_000
    """Hard deadline of a whole look."""
    parts: frozenset[Part] = frozenset(Part)
    """Parts that are asked for; any other is a gap that says so. Brokers are always asked for."""
    refresh_ms: Mapping[Part, int] = field(default_factory=lambda: SLOW_PARTS_REFRESH_MS)
    """Part -> how old its answer may get before it is asked again; a part that is absent is asked at every look."""
    expected_cluster_id: str | None = None
    """The look is refused when the brokers tell another cluster id."""
    application_urls: tuple[str, ...] = ()
    """Where applications tell their own lags."""
    application_max_bytes: int = 4 * 1024 * 1024
    rack_locators: tuple[LocatorQuestion, ...] = ()
    """Rack locators outside of the process, in the order of ``rack.locator.class``."""
    shrink_share: float = 0.2
    """Part of the known topics or groups that may vanish unexplained before the smaller world is doubted."""
    names_asked: int = 1_000
    """Vanished names that are asked about one by one, at most, in one look."""

    def takes_topic(self, name: str) -> bool:
        """Whether that topic is seen."""
        return _takes(name, self.include_topics, self.exclude_topics)

    def takes_group(self, name: str) -> bool:
        """Whether that group is seen."""
        return _takes(name, self.include_groups, self.exclude_groups)

    @property
    def takes_all_topics(self) -> bool:
        """True when no pattern leaves a topic out."""
        return not self.include_topics and not self.exclude_topics


def _takes(name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    if include and not any(fnmatchcase(name, pattern) for pattern in include):
        return False
    return not any(fnmatchcase(name, pattern) for pattern in exclude)
