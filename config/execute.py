"""Settings of mode ``execute``, one model per concern, as in `config.sections`.

Defaults are safe: small batches, triggers of known-good groups only, every reassignment approved by a person. A
setting that would allow nothing at all is a mistake.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from config.kafka_client import KafkaClientOverrides
from config.setting_mistake import SettingMistake
from config.value_kinds import Bytes, Millis, Names, NoneWord, Text, WrittenNone, at_least, format_size
from config.windows import WindowKinds

_STRICT = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _not_zero(number: int) -> int:
    if number < 1:
        raise ValueError(f"{number} allows nothing; to stop acting set mode propose, or run: rackwise pause")
    return number


def _auto_word(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() in {"auto", "none", "null", ""} else value


def _counted(most: int) -> AfterValidator:
    """A budget that the journal can count: it keeps so many entries."""

    def check(number: int) -> int:
        if number > most:
            raise ValueError(f"{number} is above {most}, the most that the journal can count")
        return number

    return AfterValidator(check)


Budget = Annotated[int, AfterValidator(_not_zero)]
"""How often something may be done; zero is a mistake."""


def _yes_or_no(value: object) -> object:
    """YAML reads a bare yes or no as true or false."""
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


TriStateSetting = Annotated[Literal["unknown", "yes", "no"], BeforeValidator(_yes_or_no)]


class ExecuteSettings(BaseModel):
    """How mode execute acts: its journal, its connection, its limits and its throttles."""

    model_config = _STRICT

    journal: Literal["kafka", "file"] = "kafka"
    """``kafka`` is a compacted topic with one fenced writer, so agents can stand by; ``file`` is for a single host."""
    journal_file: Annotated[Text | None, NoneWord] = None
    """Path of the journal with ``journal: file``; its lock file is created beside it."""
    commands_dir: Annotated[Text | None, NoneWord] = None
    """Directory from which operators' commands are read with ``journal: file``; default ``<journal_file>.commands``."""
    journal_key_file: Annotated[Text | None, NoneWord] = None
    """File with the key by which the executors sign the journal in Kafka: the first line; former keys in further lines.
    """
    journal_unsigned_below: Annotated[int, Field(ge=0)] = 0
    """Offset below which unsigned records of the journal are accepted: once, when a journal gets its first key."""
    kafka: KafkaClientOverrides = Field(default_factory=lambda: KafkaClientOverrides({}))
    """Settings of the executor's own connection that differ from the kafka section, such as its user and password."""
    request_timeout_ms: Annotated[Millis, at_least("1s")] = Field(default=10_000, alias="request_timeout")
    """Hard deadline of one mutating request."""
    tick_ms: Annotated[Millis, at_least("100ms")] = Field(default=1_000, alias="tick")
    """Time between two steps of the executor while a plan is open."""
    include_topics: Names = ()
    """Shell-style patterns of topics that may be changed; empty: every topic with a proposal."""
    exclude_topics: Names = ()
    """Shell-style patterns of topics that may have proposals and are never changed."""
    include_groups: Names = ()
    """Shell-style patterns of groups that may be triggered; empty: every group with a proposal."""
    exclude_groups: Names = ()
    """Shell-style patterns of groups that may have proposals and are never triggered."""
    max_moves_per_broker: Budget = 5
    """Partitions that may move to or from one broker at the same time."""
    max_moves_per_cluster: Budget = 250
    """Partitions that may move in the whole cluster at the same time."""
    max_bytes_in_flight: Annotated[Annotated[Bytes, AfterValidator(_not_zero)] | None, WrittenNone] = 100_000_000_000
    """Bytes still to be copied at the same time; a single larger partition moves alone. none: no bound."""
    batch_partitions: Budget = 50
    """Partitions in one reassignment request."""
    throttle: Annotated[Annotated[Bytes, AfterValidator(_not_zero)] | None, BeforeValidator(_auto_word)] = None
    """Replication throttle per broker, such as ``50MB/s``; ``auto`` (or none): computed from the broker's headroom."""
    throttle_floor: Annotated[Bytes, AfterValidator(_not_zero)] = 1_000_000
    """Lowest throttle of ``auto``, ``throttle``, ``--throttle``; a lower one could keep a move from ever finishing."""
    throttle_ceiling: Annotated[Bytes, AfterValidator(_not_zero)] = 100_000_000
    """Highest throttle of ``auto``, ``throttle``, ``--throttle``; a move without progress is raised to it."""
    throttle_headroom_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Part of a broker's headroom (unused network rate) that moves may use."""
    broker_bandwidth: Annotated[Bytes, AfterValidator(_not_zero)] = 125_000_000
    """Network rate of a broker in each direction; headroom is the part of it that is unused."""
    min_isr_guard: bool = True
    """Whether a plan stops and is rolled back when one of its partitions falls below its min ISR."""
    stuck_after_ms: Annotated[Millis, at_least("30s")] = Field(default=300_000, alias="stuck_after")
    """A move without progress for this long gets a higher throttle once; after as long again it is cancelled."""
    grace_after_broker_loss_ms: Millis = Field(default=60_000, alias="grace_after_broker_loss")
    """Time for a lost broker to come back before moves to it are cancelled."""
    batches_per_hour: Annotated[Budget, _counted(200)] = 100
    """Reassignment requests per hour."""
    batches_per_day: Annotated[Budget, _counted(200)] = 200
    """Reassignment requests per day."""
    bytes_per_day: Annotated[Annotated[Bytes, AfterValidator(_not_zero)] | None, NoneWord] = None
    """Bytes whose copying may begin per day; none: no bound."""
    payback_days: Annotated[Annotated[float, Field(gt=0)] | None, WrittenNone] = 30.0
    """Days within which the saved money must exceed the price of copying; none: not required."""
    hysteresis_share: Annotated[float, Field(ge=0)] = 0.2
    """Extra gain that a topic or group changed within hysteresis_window must bring: 0.2 is 20 % above the least
    gain.
    """
    hysteresis_window_ms: Millis = Field(default=86_400_000, alias="hysteresis_window")
    """Time after a change in which hysteresis_share applies."""
    cooldown_ms: Millis = Field(default=600_000, alias="cooldown")
    """Least time between the end of a reassignment of a topic and the next one of the same topic."""

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        _check_journal(self)
        _check_pace(self)
        return self


class GroupTriggerSettings(BaseModel):
    """Which groups may be triggered to rebalance."""

    model_config = _STRICT

    allow_eager: bool = False
    """Whether groups with an eager assignor (all partitions are revoked in a rebalance) may be triggered."""
    allow_static: bool = False
    """Whether groups with static members (group.instance.id) may be triggered."""
    allow_long_poll: bool = False
    """Whether groups whose members take long between two polls may be triggered."""
    allow_rolling: bool = False
    """Whether groups whose members are being restarted may be triggered."""
    allow_transactional: bool = False
    """Whether groups whose members write in transactions may be triggered."""
    transactional: TriStateSetting = "unknown"
    """Whether members write in transactions; unknown counts as yes for plain consumers, as no for Streams."""
    long_poll: TriStateSetting = "unknown"
    """Whether members take long between two polls; unknown: learned from earlier rebalances."""
    rolling: TriStateSetting = "unknown"
    """Whether members are being restarted; unknown: inferred from members that joined or left."""
    long_poll_ms: Annotated[Millis, at_least("1s")] = Field(default=10_000, alias="long_poll_after")
    """A group whose recent rebalances lasted longer than this counts as a group with long polls."""
    rolling_window_ms: Millis = Field(default=300_000, alias="rolling_window")
    """Members that joined or left within this time count as a rolling restart."""


class TriggerSettings(GroupTriggerSettings):
    """When a rebalance is triggered; a group's exceptions are set in groups.<application.id>.trigger."""

    own_rebalance_wait_ms: Millis = Field(default=300_000, alias="own_rebalance_wait")
    """Time for a group to rebalance by itself after a rack change, before it is triggered: its
    ``metadata.max.age.ms``.
    """
    budget_per_group_per_hour: Budget = 6
    """Triggers of one group per hour; triggers for warm-ups have a budget of their own."""
    budget_per_cycle: Budget = 5
    """Triggers that one planning may propose to execute."""
    budget_per_hour: Annotated[Budget, _counted(1_000)] = 100
    """Triggers of all groups per hour."""
    budget_per_day: Annotated[Budget, _counted(1_000)] = 500
    """Triggers of all groups per day."""

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if self.budget_per_hour > self.budget_per_day:
            raise SettingMistake("budget_per_hour", "it is larger than budget_per_day, so it could never be reached")
        if self.budget_per_cycle > self.budget_per_hour:
            raise SettingMistake("budget_per_cycle", "it is larger than budget_per_hour, so it could never be reached")
        return self


class ProbingSettings(BaseModel):
    """Promoting warm-ups of Streams applications as soon as they have caught up (KIP-441)."""

    model_config = _STRICT

    enabled: bool = True
    """Whether a rebalance is triggered when warm-ups have caught up; if not, applications wait for their probing
    interval.
    """
    floor_ms: Annotated[Millis, at_least("6s")] = Field(default=10_000, alias="floor")
    """Least time between two triggers for warm-ups of one application."""
    backoff_factor: Annotated[float, Field(ge=1)] = 2.0
    """Factor by which that time grows after each trigger that promoted no warm-up."""
    backoff_max_ms: Millis = Field(default=300_000, alias="backoff_max")
    """Upper bound of that time."""
    near_deadline_ms: Millis = Field(default=15_000, alias="near_deadline")
    """No trigger when the application's own probing rebalance is due within this time."""
    share_ms: Millis = Field(default=5_000, alias="share_within")
    """Warm-ups that will have caught up within this time of each other share one trigger."""
    budget_per_group_per_hour: Budget = 60
    """Triggers for warm-ups of one application per hour."""
    standbys: bool = False
    """Whether a standby whose lag grows without bound may cause a trigger."""

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if self.backoff_max_ms < self.floor_ms:
            raise SettingMistake("backoff_max", "it is shorter than floor, from which it grows")
        return self


class RuleSettings(BaseModel):
    """One approval rule: it approves a proposal that is within every bound that the rule sets."""

    model_config = _STRICT

    kinds: WindowKinds = ("trigger", "leaders", "reassign")
    """Kinds of proposals that the rule may approve."""
    reasons: Names = ()
    """Reasons of proposals that the rule may approve, such as ``mend-rack-spread``; empty: any."""
    max_bytes: Annotated[Bytes | None, NoneWord] = None
    """Most bytes to be copied or restored; a proposal of unknown size is not approved."""
    max_moves: Annotated[Annotated[int, Field(ge=1)] | None, NoneWord] = None
    """Most moves in the proposal."""
    keep_leaders: bool = False
    """Whether only proposals that change no preferred leader are approved."""
    min_gain_usd_per_day: Annotated[Annotated[float, Field(gt=0)] | None, NoneWord] = None
    """Least saving in USD per day; a proposal of unknown saving is not approved."""
    min_gain_bytes_per_s: Annotated[Annotated[float, Field(gt=0)] | None, NoneWord] = None
    """Least saving in cross-rack bytes per second; a proposal of unknown saving is not approved."""
    topics: Names = ()
    """Shell-style patterns of topics; empty: any."""
    groups: Names = ()
    """Shell-style patterns of groups; empty: any."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if not self.kinds:
            raise SettingMistake("kinds", "it names no kind, so the rule approves nothing; leave it out or name one")
        bounds = (
            self.max_bytes, self.max_moves, self.min_gain_usd_per_day, self.min_gain_bytes_per_s,
            self.keep_leaders or None, self.topics or None, self.groups or None, self.reasons or None,
        )  # fmt: skip
        if all(bound is None for bound in bounds):
            raise SettingMistake(
                "", "a rule without a bound approves everything; add one, such as max_bytes: 10GB or topics: logs-*"
            )
        return self


class ApproveSettings(BaseModel):
    """Which proposals are approved by rule, and which need a person."""

    model_config = _STRICT

    triggers: bool = True
    """Whether triggers within their budget are approved by a default rule."""
    rules: dict[Text, RuleSettings] = Field(default_factory=dict)
    """Rules by name: a proposal within all bounds of one rule is approved, and the journal records the rule's name."""
    valid_ms: Annotated[Millis, at_least("1m")] = Field(default=3_600_000, alias="valid_for")
    """An approval expires when no change has begun within this time."""
    people: dict[Text, Text] = Field(default_factory=dict)
    """Name of a person -> file with that person's key; when set, only their signed commands approve, roll back, resume.
    """
    second_person: bool = False
    """Whether a reassignment needs two people of ``approve.people``: one to request it, another to approve it."""


class OperatorSettings(BaseModel):
    """The person that sends commands from here, where the agents know people by their keys (approve.people)."""

    model_config = _STRICT

    name: Annotated[Text | None, NoneWord] = None
    """Name of the person that sends commands from here, as in ``approve.people``."""
    key_file: Annotated[Text | None, NoneWord] = None
    """File with that person's key, by which commands are signed."""

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if (self.name is None) is not (self.key_file is None):
            missing = "name" if self.name is None else "key_file"
            raise SettingMistake(missing, "operator.name and operator.key_file go together; set both or none")
        return self


def _check_journal(execute: ExecuteSettings) -> None:
    if execute.journal == "file" and execute.journal_file is None:
        raise SettingMistake(
            "journal_file", "execute.journal file needs the path of its file; set it, or set execute.journal kafka"
        )
    if execute.journal == "kafka" and execute.journal_file is not None:
        raise SettingMistake(
            "journal_file", "it contradicts execute.journal kafka; set that to file, or leave this out"
        )
    if execute.journal == "file" and (execute.journal_key_file is not None or execute.journal_unsigned_below):
        raise SettingMistake(
            "journal_key_file", "it is for execute.journal kafka; a journal file is protected by its owner and mode"
        )
    if execute.journal_unsigned_below and execute.journal_key_file is None:
        raise SettingMistake("journal_unsigned_below", "it needs execute.journal_key_file")
    if execute.journal == "kafka" and execute.commands_dir is not None:
        raise SettingMistake(
            "commands_dir", "it contradicts execute.journal kafka, where commands are read from a topic"
        )


def _check_pace(execute: ExecuteSettings) -> None:
    floor, ceiling, rate = execute.throttle_floor, execute.throttle_ceiling, execute.throttle
    if floor > ceiling:
        raise SettingMistake("throttle_floor", f"it is above execute.throttle_ceiling ({format_size(ceiling)})")
    if rate is not None and not floor <= rate <= ceiling:
        bounds = f"execute.throttle_floor ({format_size(floor)}) and execute.throttle_ceiling ({format_size(ceiling)})"
        raise SettingMistake("throttle", f"it is not between {bounds}")
    if execute.batch_partitions > execute.max_moves_per_cluster:
        raise SettingMistake(
            "batch_partitions", "it is larger than execute.max_moves_per_cluster, so it could never be reached"
        )
    if execute.batches_per_hour > execute.batches_per_day:
        raise SettingMistake(
            "batches_per_hour", "it is larger than execute.batches_per_day, so it could never be reached"
        )
    if execute.tick_ms > execute.request_timeout_ms:
        raise SettingMistake(
            "tick", "it is longer than execute.request_timeout, so answers would wait for the next step"
        )
