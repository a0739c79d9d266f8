"""The plan of a workload: topics, load, groups and Streams applications, with their intended faults.

Invariant: a plan is a plain value; making one touches nothing. `fitted` is the only place that leaves a part out, and
it names the part and the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from testbed.demo.workload.facts import ClusterFacts


class WorkloadFaultKind(StrEnum):
    """A fault that the workload puts into the cluster on purpose."""

    REPLICAS_SHARE_RACK = "replicas of a partition share a rack while another is free"
    LEADERS_IN_ONE_RACK = "all preferred leaders of a topic are in one rack"
    MEMBER_WITHOUT_RACK = "members of a group send no rack"
    GROUP_IGNORES_RACKS = "the group's protocol does not look at racks"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFault:
    """One fault put in on purpose, so that a search for faults can be checked against it."""

    kind: WorkloadFaultKind
    subject: str
    """The topic or group that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic with an explicit replica assignment."""

    name: str
    replicas: tuple[tuple[int, ...], ...]
    """Partition -> brokers, the preferred leader first."""
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """Records written to a topic as long as the workload runs."""

    topic: str
    records_per_s: float
    value_bytes: int
    skew: float = 1.0
    """Exponent of Zipf's law over the partitions; 0 is even."""
    keys: int = 20_000
    preload_records: int = 0
    """Written as fast as possible before any group starts, evenly over the partitions."""


class GroupProtocol(StrEnum):
    """How members of a librdkafka group agree."""

    RANGE = "range"
    COOPERATIVE_STICKY = "cooperative-sticky"
    CONSUMER = "consumer"
    """KIP-848: the broker assigns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """A consumer group; one member per rack."""

    group: str
    topic: str
    racks: tuple[str | None, ...]
    """`client.rack` of each member; None sends none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrdkafkaGroupPlan(GroupPlan):
    """A group whose members are librdkafka consumers in this process."""

    protocol: GroupProtocol
    remote_assignor: str | None = None
    """Assignor of the broker that members of a KIP-848 group name; None: none, so that they get the broker's first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaGroupPlan(GroupPlan):
    """A classic cooperative-sticky group whose members are Java consumers."""

    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyPlan:
    """Which parts the Streams application has; the optional ones are absent when None."""

    input: str
    region_partitions: int = 3
    forward_every: int = 2
    """Subtopology 0 sends every n-th record through the repartition topic to subtopology 1."""
    restore_records_per_s: int = 0
    """Upper bound for restoring the store `customers`, per stream thread; 0 is no bound.

    It holds for actives, standbys and warm-ups alike, so a group that starts over changelogs of an earlier run waits.
    """
    stateless_input: str | None = None
    stateless_output: str | None = None
    table_input: str | None = None
    """Topic whose store has this very topic as its changelog."""
    unlogged_input: str | None = None
    """Topic whose store has no changelog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPlan:
    """A Streams application; one instance per rack to begin with."""

    application: str
    topology: TopologyPlan
    racks: tuple[str | None, ...]
    """`client.rack`, and the client tag `zone`, of each instance."""
    streams_protocol: bool = False
    """KIP-1071 instead of the classic protocol."""
    settings: Mapping[str, str] = field(default_factory=dict)
    group_configs: Mapping[str, str] = field(default_factory=dict)
    """Configs of the group itself (KIP-1071), set before the first instance starts."""
    newcomer_restore_records_per_s: int = 0
    """As in the topology, but for instances started later: the first ones settle fast, later ones are to be watched."""
    tagged: bool = True
    """Whether instances carry the client tag `zone`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPlan:
    """All the work of one cluster."""

    topics: tuple[TopicPlan, ...] = ()
    loads: tuple[LoadPlan, ...] = ()
    linger_ms: int = 500
    """How long records are gathered into a batch. Few and larger batches: each costs a request to the leader and one
    from every follower. To measure gaps, less is better."""
    librdkafka_groups: tuple[LibrdkafkaGroupPlan, ...] = ()
    java_groups: tuple[JavaGroupPlan, ...] = ()
    streams: tuple[StreamsPlan, ...] = ()
    faults: tuple[WorkloadFault, ...] = ()
    left_out: tuple[str, ...] = ()
    """One sentence for each part that this cluster cannot have."""


def fitted(plan: WorkloadPlan, facts: ClusterFacts) -> WorkloadPlan:
    """The plan without what these brokers do not serve, and the reasons in `left_out`."""
    groups = tuple(
        group
        for group in plan.librdkafka_groups
        if facts.consumer_protocol or group.protocol is not GroupProtocol.CONSUMER
    )
    streams = tuple(app for app in plan.streams if facts.streams_protocol or not app.streams_protocol)
    kept = {group.group for group in (*groups, *plan.java_groups)} | {app.application for app in streams}
    topics = {topic.name for topic in plan.topics}
    return replace(
        plan,
        librdkafka_groups=groups,
        streams=streams,
        faults=tuple(fault for fault in plan.faults if fault.subject in kept or fault.subject in topics),
        left_out=(*plan.left_out, *_reasons(plan, groups, streams)),
    )


def _reasons(
    plan: WorkloadPlan, groups: tuple[LibrdkafkaGroupPlan, ...], streams: tuple[StreamsPlan, ...]
) -> Iterator[str]:
    """Why groups and applications of the plan are not among those that are kept."""
    for group in plan.librdkafka_groups:
        if group not in groups:
            yield f"Group {group.group} is left out: the brokers do not serve KIP-848 groups (feature group.version)."
    for app in plan.streams:
        if app not in streams:
            yield (
                f"Application {app.application} is left out: the brokers do not serve KIP-1071 groups "
                "(feature streams.version)."
            )
