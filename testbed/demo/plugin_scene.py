"""The scene of the plug-in: brokers have it from the start, and the KIP-848 group comes to use it.

At first its members name `uniform`, as a group is assigned without the plug-in. In the scene they are restarted one
after the other and name no assignor, so that they get the broker's first. The agent's own looks say what it brought.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from agent.cli.plugin import BROKER_LINES, packaged_jar
from agent.errors import BadInput
from agent.money.traffic import bytes_words
from agent.values.assessment import LocalityMeasure
from agent.values.cycle import Cycle
from agent.values.number_format import counted
from testbed.cluster.spec import ClusterSpec, KafkaVersion
from testbed.demo.console import ConsoleLine, DemoConsole
from testbed.demo.workload import ClusterFacts, ClusterWorkload, WorkloadPlan, demo_plan
from testbed.demo.workload.placement import spread
from testbed.demo.workload.readiness import partitions

GROUP = "search"
_PARTITIONS = 18
OLDEST = KafkaVersion(4, 1, 0)
"""The first release whose interface for assignors is public."""


class CrossingReads(NamedTuple):
    """What a group reads across racks in one look, as read: from the leader, or a follower in the reader's rack."""

    partitions: int
    of: int
    bytes_per_s: float | None
    """None where a rate is unknown."""

    def __str__(self) -> str:
        rate = "" if self.bytes_per_s is None else f", {bytes_words(self.bytes_per_s)}"
        return f"{self.partitions} of {counted(self.of, 'partition')}{rate}"


class PluginFigures(NamedTuple):
    """What the group reads across racks before the scene and after it; None: no look had it."""

    before: CrossingReads | None = None
    after: CrossingReads | None = None

    def summary(self) -> tuple[str, ...]:
        """The figures, as closing lines."""
        return (
            "",
            f"Reads across racks of {GROUP}, before -> with the plug-in for brokers (as read)",
            f"  {self.before or 'unknown'} -> {self.after or 'unknown'}",
        )

    def lacking(self) -> tuple[str, ...]:
        """One sentence where they did not fall."""
        if self.before is None or self.after is None:
            return (f"reads across racks of {GROUP} were not seen both before and with the plug-in",)
        if self.after.partitions and self.after.partitions >= self.before.partitions:
            return (f"reads across racks of {GROUP} did not fall with the plug-in",)
        return ()


def with_plugin(spec: ClusterSpec) -> ClusterSpec:
    """Brokers that have the jar and its setting. Raises GaveUp without a jar, BadInput for a Kafka that is too old."""
    if spec.kafka < OLDEST:
        raise BadInput(
            f"Kafka {spec.version} has no plug-in for assignors", todo="Give 4.1.0 or newer, or no --plugin."
        )
    lines = dict(line.split("=", 1) for line in BROKER_LINES)
    return replace(spec, plugins=(str(packaged_jar().path),), broker_properties={**spec.broker_properties, **lines})


def plan_with_plugin(facts: ClusterFacts) -> WorkloadPlan:
    """The demo's workload, whose KIP-848 group is assigned at first as without the plug-in.

    Of its few partitions `uniform` may find a local reader for each by chance, so its topic has more of them here.
    """
    plan = demo_plan(facts)
    (group,) = (one for one in plan.librdkafka_groups if one.group == GROUP)
    wider = spread(facts.racks, _PARTITIONS, 2)
    return replace(
        plan,
        topics=tuple(replace(one, replicas=wider) if one.name == group.topic else one for one in plan.topics),
        librdkafka_groups=tuple(
            replace(one, remote_assignor="uniform") if one is group else one for one in plan.librdkafka_groups
        ),
    )


def crossing_reads(cycle: Cycle | None, group: str = GROUP) -> CrossingReads | None:
    """What it reads across racks; None where that look does not know it of every partition."""
    assessment = None if cycle is None else cycle.detection.assessments.get(group)
    if assessment is None:
        return None
    rows = {row.unit: row for row in assessment.current if row.measure is LocalityMeasure.READ_LOCAL}
    if "partitions" not in rows or rows["partitions"].unknown:
        return None
    whole, rates = rows["partitions"], rows.get("bytes_per_s")
    known = rates is not None and not rates.unknown
    return CrossingReads(
        round(whole.total - whole.local), round(whole.total), rates.total - rates.local if rates and known else None
    )


class PluginScene:
    """Restarts the members of the group, and keeps its figures before and after."""

    def __init__(self, work: ClusterWorkload, screen: DemoConsole, looks: Callable[[], Cycle | None]) -> None:
        self._group, self._screen, self._looks = work.groups[GROUP], screen, looks
        self._all = partitions(work.plan, self._group.plan.topic)
        self._restarted_at: int | None = None
        self.figures = PluginFigures()

    def is_ready(self) -> bool:
        """Whether a look has the figures before it, with the rate."""
        found = self._whole()
        return found is not None and found.bytes_per_s is not None

    def begin(self) -> None:
        """Restart the members; returns when all of them have left and joined again."""
        self.figures = PluginFigures(self._whole())
        self._screen.tell(
            ConsoleLine(
                "scene",
                f"restarting the members of {GROUP}, which named the assignor uniform, so that they name none and get "
                f"the broker's first, rackwise; reads across racks until now: {self.figures.before or 'unknown'}",
            )
        )
        self._group.restart(replace(self._group.plan, remote_assignor=None))
        cycle = self._looks()
        self._restarted_at = 0 if cycle is None else cycle.number

    def is_over(self) -> bool:
        """Whether a look after it has the figures; tells them once."""
        cycle, now = self._looks(), self._whole()
        if self._restarted_at is None or cycle is None or cycle.number < self._restarted_at + 2 or now is None:
            return False
        if self.figures.after is None:
            self._screen.tell(ConsoleLine("scene", f"reads across racks of {GROUP} with the plug-in: {now}"))
        self.figures = self.figures._replace(after=now)
        return True

    def look_again(self) -> None:
        """Take the figures of the last look where no earlier one had them."""
        if self.figures.after is None:
            self.is_over()

    def _whole(self) -> CrossingReads | None:
        """The figures of the newest look, where its members hold all partitions."""
        found = crossing_reads(self._looks())
        return found if found is not None and found.of == self._all else None
