"""Settings of Kafka Streams applications that group bytes do not carry: Kafka's names, defaults and limits.

Given for all applications, or for one (``groups.<application.id>.<name>``). Names and values that are in a KIP's text
but were released otherwise are mistakes that name the released ones.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from config.execute import GroupTriggerSettings
from config.secrets import masked
from config.value_kinds import Names, NoneWord, Text

RackAwareStrategy = Literal["none", "min_traffic", "balance_subtopology"]

RELEASED_VALUES = {"min_cost": "min_traffic", "balanced_min_cost": "balance_subtopology"}
"""Values of ``rack.aware.assignment.strategy`` in the text of KIP-925, and what Kafka released."""

RELEASED_NAMES = {
    "rack.aware.assignment.enabled": (
        "it is in KIP-925's text only; Kafka released rack.aware.assignment.strategy (none, min_traffic or "
        "balance_subtopology)"
    ),
    "max_task_migrations": "it is in KIP-441's text only; Kafka released max.warmup.replicas",
    "max.task.migrations": "it is in KIP-441's text only; Kafka released max.warmup.replicas",
    "num.standbys": "it is in KIP-441's text only; Kafka released num.standby.replicas",
    "num_standbys": "it is in KIP-441's text only; Kafka released num.standby.replicas",
    "balance.factor": "it is in KIP-441's text only, and Kafka released no such setting",
    "balance_factor": "it is in KIP-441's text only, and Kafka released no such setting",
    "standby.task.assignor": (
        "it is in KIP-708's text only; Kafka spreads standbys by tags as soon as rack.aware.assignment.tags is set"
    ),
}
"""Setting names in the text of a KIP, and what Kafka released."""

FOREIGN_NAMES = (
    "application.server", "auto.include.jmx.reporter", "buffered.records.per.partition", "built.in.metrics.version",
    "cache.max.bytes.buffering", "commit.interval.ms", "enable.metrics.push",
    "ensure.explicit.internal.resource.naming", "log.summary.interval.ms", "max.task.idle.ms", "metrics.num.samples",
    "metrics.recording.level", "metrics.sample.window.ms", "num.stream.threads", "poll.ms", "processing.guarantee",
    "repartition.purge.interval.ms", "replication.factor", "state.cleanup.delay.ms", "state.dir",
    "statestore.cache.max.bytes", "task.timeout.ms", "topology.optimization", "upgrade.from", "window.size.ms",
    "windowstore.changelog.additional.retention.ms",
)  # fmt: skip
"""Kafka Streams settings that an imported properties file brings along and rackwise has no use for."""

FOREIGN_PREFIXES = (
    "admin.", "client.tag.", "consumer.", "default.", "global.consumer.", "main.consumer.", "producer.",
    "restore.consumer.", "rocksdb.", "topic.",
)  # fmt: skip


def _released_value(value: object) -> object:
    if value is None:  # YAML reads a bare null, Kafka's word is none
        return "none"
    released = RELEASED_VALUES.get(str(value))
    if released:
        raise ValueError(f"{value} is in KIP-925's text only; Kafka released it as {released}")
    return value


class StreamsSettings(BaseModel):
    """Settings that decide how an application's tasks are assigned, where its group does not show them."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    acceptable_recovery_lag: int = Field(10_000, ge=0, alias="acceptable.recovery.lag")
    """Lag in records up to which a copy of a task counts as caught up (KIP-441)."""
    max_warmup_replicas: int = Field(2, ge=1, alias="max.warmup.replicas")
    """Most warm-ups that the application has at once (KIP-441)."""
    num_standby_replicas: int = Field(0, ge=0, alias="num.standby.replicas")
    """Standbys of each stateful task."""
    probing_rebalance_interval_ms: int = Field(600_000, ge=60_000, alias="probing.rebalance.interval.ms")
    """Time between two probing rebalances, in which the application checks whether warm-ups have caught up
    (KIP-441).
    """
    rack_aware_assignment_strategy: Annotated[RackAwareStrategy, BeforeValidator(_released_value)] = Field(
        default="none", alias="rack.aware.assignment.strategy"
    )
    """How the application's assignor uses racks (KIP-925)."""
    rack_aware_assignment_traffic_cost: Annotated[int | None, NoneWord] = Field(
        default=None, alias="rack.aware.assignment.traffic_cost"
    )
    """Cost of one partition read across racks; none: the assignor's default (KIP-925)."""
    rack_aware_assignment_non_overlap_cost: Annotated[int | None, NoneWord] = Field(
        default=None, alias="rack.aware.assignment.non_overlap_cost"
    )
    """Cost of moving a task away from its process; none: the assignor's default (KIP-925)."""
    rack_aware_assignment_tags: Names = Field(default=(), alias="rack.aware.assignment.tags")
    """Client tags over which standbys are spread, the most important first (KIP-708)."""

    task_assignor_class: Annotated[Text | None, NoneWord] = Field(default=None, alias="task.assignor.class")
    """Class of the task assignor; none: Kafka's default, the HighAvailabilityTaskAssignor (KIP-924)."""

    @field_validator("rack_aware_assignment_tags")
    @classmethod
    def _few_short_tags(cls, tags: tuple[str, ...]) -> tuple[str, ...]:
        if len(tags) > 5:
            raise ValueError("Kafka takes at most 5 tags")
        if any(len(tag) > 20 for tag in tags):
            raise ValueError("Kafka takes tag keys of at most 20 characters")
        return tags


class TopologySettings(BaseModel):
    """State stores of the application; overrides what rackwise infers from assignments."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    source_changelogs: Names = ()
    """Source topics that serve as changelog (tables read with topology optimisation)."""
    stateless_subtopologies: Names = ()
    """Subtopologies without state."""
    no_changelog_subtopologies: Names = ()
    """Subtopologies whose stores have logging disabled, so no changelog topic."""
    changelogs: dict[Text, Names] = Field(default_factory=dict)
    """Subtopology number -> its changelog topics."""


class GroupSettings(StreamsSettings):
    """One application. A setting that is left out here is taken from the settings for all applications."""

    topology: TopologySettings = Field(default_factory=TopologySettings)
    application_endpoints: Names = Field(default=(), alias="application.endpoints")
    """URLs at which the application's instances publish the lags of their tasks (docs/application-lags.md)."""
    client_software_name: Annotated[Text | None, NoneWord] = Field(default=None, alias="client.software.name")
    """Client library of the members of a consumer group, such as apache-kafka-java or librdkafka (KIP-511)."""
    trigger: GroupTriggerSettings = Field(default_factory=GroupTriggerSettings)
    """Settings of trigger that differ for this group."""

    @field_validator("application_endpoints")
    @classmethod
    def _plain_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"{masked(url)} is not an http:// or https:// URL")
            if "@" in url.split("/")[2]:
                raise ValueError("a URL must not contain a user and a password: it would appear in logs")
        return urls
