"""All settings as one frozen value; `config.load` builds it from flags, environment, files and defaults.

Names, defaults and limits are Kafka's wherever Kafka has the setting. The value does not read the environment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from config.execute import ApproveSettings, ExecuteSettings, OperatorSettings, ProbingSettings, TriggerSettings
from config.http_settings import HttpSettings
from config.kafka_client import KafkaClientConfig
from config.kafka_keys import SECURITY_PROTOCOL
from config.notify import NotifySettings
from config.rack_locators import RackLocatorSettings
from config.sections import (
    ClusterSettings,
    DetectSettings,
    GainSettings,
    LogSettings,
    MetricsSettings,
    ObserveSettings,
    PlanSettings,
    PollSettings,
    PriceSettings,
    ProcessSettings,
    ProposalSettings,
    RackSettings,
    RecordSettings,
    ScopeSettings,
    TopicSettings,
    TopicsSettings,
    WeightsSettings,
)
from config.setting_mistake import SettingMistake
from config.spark import SparkSettings
from config.streams_names import GroupSettings, StreamsSettings
from config.value_kinds import NoneWord, Text
from config.windows import WindowsSettings

DEFAULT_PLAN_INTERVAL_MS = 60_000


class Settings(StreamsSettings, BaseSettings):
    """All settings. The Streams settings at the top apply to every application without its own."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    mode: Literal["observe", "propose", "execute"] = "propose"
    """``observe`` writes no topic, ``propose`` is a dry run that publishes proposals, ``execute`` changes the
    cluster.
    """
    dry_run: Annotated[bool | None, NoneWord] = None
    """Another form of mode: true is mode propose; it contradicts mode execute."""
    kafka: KafkaClientConfig = Field(default_factory=lambda: KafkaClientConfig({}))
    """The connection, with the names of a Kafka client's properties file."""
    groups: dict[Text, GroupSettings] = Field(default_factory=dict)
    """Settings by application id, where they differ from those for all applications."""
    cluster: ClusterSettings = Field(default_factory=ClusterSettings)
    poll: PollSettings = Field(default_factory=PollSettings)
    plan: PlanSettings = Field(default_factory=PlanSettings)
    observe: ObserveSettings = Field(default_factory=ObserveSettings)
    scope: ScopeSettings = Field(default_factory=ScopeSettings)
    racks: RackSettings = Field(default_factory=RackSettings)
    rack_locator: RackLocatorSettings = Field(default_factory=RackLocatorSettings, alias="rack.locator")
    detect: DetectSettings = Field(default_factory=DetectSettings)
    gain: GainSettings = Field(default_factory=GainSettings)
    price: PriceSettings = Field(default_factory=PriceSettings)
    weights: WeightsSettings = Field(default_factory=WeightsSettings)
    proposals: ProposalSettings = Field(default_factory=ProposalSettings)
    execute: ExecuteSettings = Field(default_factory=ExecuteSettings)
    trigger: TriggerSettings = Field(default_factory=TriggerSettings)
    probing: ProbingSettings = Field(default_factory=ProbingSettings)
    approve: ApproveSettings = Field(default_factory=ApproveSettings)
    operator: OperatorSettings = Field(default_factory=OperatorSettings)
    windows: WindowsSettings = Field(default_factory=WindowsSettings)
    topics: TopicsSettings = Field(default_factory=TopicsSettings)
    record: RecordSettings = Field(default_factory=RecordSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)
    notify: NotifySettings = Field(default_factory=NotifySettings)
    log: LogSettings = Field(default_factory=LogSettings)
    process: ProcessSettings = Field(default_factory=ProcessSettings)
    spark: SparkSettings = Field(default_factory=SparkSettings)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 the library's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 the library's signature
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 the library's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 the library's signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed: `config.load` reads the other sources itself, so that every origin is known."""
        return (init_settings,)

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        _check_mode(self)
        _check_schedule(self)
        _check_topics(self)
        _check_locators(self)
        _check_executor(self)
        return self

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Nothing: values may hold secrets, and a traceback or a log line shows a value as this."""
        return ()

    @property
    def plan_interval_ms(self) -> int | None:
        """Time between two plannings in milliseconds; None with a cron expression."""
        return None if self.plan.cron else self.plan.interval_ms or max(DEFAULT_PLAN_INTERVAL_MS, self.poll.interval_ms)

    @property
    def telemetry_topic(self) -> str:
        """Name of the topic for what was seen."""
        return self.topics.telemetry.name or f"{self.topics.prefix}.telemetry"

    @property
    def proposals_topic(self) -> str:
        """Name of the topic for proposals."""
        return self.topics.proposals.name or f"{self.topics.prefix}.proposals"

    @property
    def journal_topic(self) -> str:
        """Name of the topic of the journal."""
        return self.topics.journal.name or f"{self.topics.prefix}.journal"

    @property
    def leader_topic(self) -> str:
        """Name of the topic whose assignee leads."""
        return self.topics.leader.name or f"{self.topics.prefix}.leader"

    @property
    def commands_topic(self) -> str:
        """Name of the topic for what operators ask."""
        return self.topics.commands.name or f"{self.topics.prefix}.commands"

    @property
    def weights_topic(self) -> str:
        """Name of the topic for what the pipeline has learned."""
        return self.topics.weights.name or f"{self.topics.prefix}.weights"

    @property
    def executor_kafka(self) -> KafkaClientConfig:
        """The connection of the executor: the observer's with the executor's own settings put over it."""
        return self.kafka.under(self.execute.kafka) if self.execute.kafka.root else self.kafka

    def publishes(self, topic: TopicSettings) -> bool:
        """Whether that topic of rackwise's own is created and written."""
        return topic.publish and self.mode != "observe"


def _check_mode(settings: Settings) -> None:
    if settings.dry_run is True and settings.mode == "execute":
        raise SettingMistake("dry_run", "true contradicts mode execute; give one of them")
    if settings.dry_run is False and settings.mode != "execute":
        raise SettingMistake(
            "dry_run", f"false contradicts mode {settings.mode}, which changes nothing; set mode execute"
        )
    for name, topic in (("telemetry", settings.topics.telemetry), ("proposals", settings.topics.proposals)):
        if settings.mode == "observe" and "publish" in topic.model_fields_set and topic.publish:
            raise SettingMistake(f"topics.{name}.publish", "true contradicts mode observe, which writes no topic")


def _check_schedule(settings: Settings) -> None:
    plan = settings.plan
    if plan.interval_ms is not None and plan.cron is not None:
        raise SettingMistake("plan.cron", "it contradicts plan.interval; give one of them")
    if plan.interval_ms is not None and plan.interval_ms < settings.poll.interval_ms:
        raise SettingMistake(
            "plan.interval",
            "it is shorter than poll.interval; proposals are made from looks, so they cannot change in between",
        )
    if settings.observe.call_timeout_ms > settings.observe.deadline_ms:
        raise SettingMistake("observe.call_timeout", "it is longer than observe.deadline, the deadline of a whole look")


def _check_locators(settings: Settings) -> None:
    for locator in settings.rack_locator.locators:
        key = f"{locator.name}.timeout"
        if key in settings.rack_locator.properties and locator.timeout_ms > settings.observe.call_timeout_ms:
            raise SettingMistake(f"rack.locator.properties.{key}", "it is longer than observe.call_timeout")


def _check_topics(settings: Settings) -> None:
    topics = settings.topics
    both_given = {"min_insync_replicas", "replication_factor"} <= topics.model_fields_set
    if both_given and topics.min_insync_replicas > topics.replication_factor:
        raise SettingMistake(
            "topics.min.insync.replicas", "it is larger than topics.replication.factor, so no record could be written"
        )
    names = {
        "telemetry": settings.telemetry_topic,
        "proposals": settings.proposals_topic,
        "journal": settings.journal_topic,
        "leader": settings.leader_topic,
        "commands": settings.commands_topic,
        "weights": settings.weights_topic,
    }
    for section, name in names.items():
        if not name.startswith(topics.prefix):
            raise SettingMistake(
                f"topics.{section}.name",
                f"it must begin with topics.prefix ({topics.prefix}), so that one ACL prefix covers all names",
            )
    taken: dict[str, str] = {}
    for section, name in names.items():
        if name in taken:
            raise SettingMistake(f"topics.{section}.name", f"it is the same as topics.{taken[name]}.name")
        taken[name] = section


def _check_executor(settings: Settings) -> None:
    """The executor's connection is whole once it is put over the observer's."""
    try:
        kafka = settings.executor_kafka
    except SettingMistake as mistake:
        raise SettingMistake(f"execute.kafka.{mistake.key}", mistake.sentence) from None
    if settings.mode != "execute" or settings.execute.journal != "kafka":
        return
    protocol = kafka.root.get(SECURITY_PROTOCOL, "PLAINTEXT")
    if protocol != "PLAINTEXT" and settings.execute.journal_key_file is None:
        raise SettingMistake(
            "execute.journal_key_file",
            f"mode execute with {SECURITY_PROTOCOL} {protocol} needs it, so that Write on the journal topic alone"
            " commands nothing; make a key with: openssl rand -hex 32 > FILE; chmod 600 FILE",
        )
    signs_in = settings.http.enabled and settings.http.pages and settings.http.auth.is_set
    if settings.approve.second_person and len(settings.approve.people) < 2 and not signs_in:
        raise SettingMistake(
            "approve.people",
            "approve.second_person needs at least two people, or a sign-in (http.auth): a record of the commands topic"
            " carries no principal",
        )
