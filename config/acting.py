"""What mode ``execute`` is set to: one model per concern, as in `config.sections`.

Defaults are safe: small batches, triggers of known-good groups only, every reassignment approved by a person. A
setting that would allow nothing at all is a mistake with a sentence, because nobody means it.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from config.kafka_client import KafkaClientOverrides
from config.kinds import Bytes, Millis, Names, NoneWord, Text, at_least, format_size
from config.mistake import SettingMistake
from config.windows import Kinds

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
            raise ValueError(f"{number} is more than the journal keeps to count by; give {most} at most")
        return number

    return AfterValidator(check)


Budget = Annotated[int, AfterValidator(_not_zero)]
"""How often something may be done; zero is a mistake."""
Told = Literal["unknown", "yes", "no"]


def _told(value: object) -> object:
    """YAML reads a bare yes or no as true or false."""
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


ToldWord = Annotated[Told, BeforeValidator(_told)]


class ExecuteSettings(BaseModel):
    """How mode execute acts: where it keeps its journal, who it is, and how fast it moves."""

    model_config = _STRICT

    journal: Literal["kafka", "file"] = "kafka"
    """``kafka`` is a topic with a fenced writer, so that agents can stand by; ``file`` is for a single host."""
    journal_file: Annotated[Text | None, NoneWord] = None
    """File of the journal, when it is kept in one; its lock lies beside it."""
    commands_dir: Annotated[Text | None, NoneWord] = None
    """Directory for operators' commands when the journal is a file; ``<journal_file>.commands`` when not given."""
    kafka: KafkaClientOverrides = Field(default_factory=lambda: KafkaClientOverrides({}))
    """The executor's own connection, where it differs from the observer's, such as its user and password."""
    request_timeout_ms: Annotated[Millis, at_least("1s")] = Field(default=10_000, alias="request_timeout")
    """Hard deadline of one request that changes something."""
    tick_ms: Annotated[Millis, at_least("100ms")] = Field(default=1_000, alias="tick")
    """Time between two steps while a plan is open."""
    include_topics: Names = ()
    """Shell-style patterns of topics that may be acted upon; with none, all that are proposed."""
    exclude_topics: Names = ()
    """Shell-style patterns of topics that are proposed for and never acted upon."""
    include_groups: Names = ()
    """Shell-style patterns of groups that may be acted upon; with none, all that are proposed."""
    exclude_groups: Names = ()
    """Shell-style patterns of groups that are proposed for and never acted upon."""
    max_moves_per_broker: Budget = 5
    """Partitions that a broker may receive or give away at once."""
    max_moves_per_cluster: Budget = 250
    """Partitions that move at once."""
    max_bytes_in_flight: Annotated[Annotated[Bytes, AfterValidator(_not_zero)] | None, NoneWord] = 100_000_000_000
    """Bytes still to be copied at once; a single partition above it moves alone. None sets no bound."""
    batch_partitions: Budget = 50
    """Partitions of one request."""
    throttle: Annotated[Annotated[Bytes, AfterValidator(_not_zero)] | None, BeforeValidator(_auto_word)] = None
    """Replication rate per broker, such as ``50MB/s``; none is ``auto``: worked out from headroom."""
    throttle_floor: Annotated[Bytes, AfterValidator(_not_zero)] = 1_000_000
    """Least rate that ``auto`` sets; a slower one would never end."""
    throttle_ceiling: Annotated[Bytes, AfterValidator(_not_zero)] = 100_000_000
    """Highest rate that ``auto``, or a move that is stuck, is given."""
    throttle_headroom_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Part of a broker's unused network rate that moves may take."""
    broker_bandwidth: Annotated[Bytes, AfterValidator(_not_zero)] = 125_000_000
    """What a broker's network carries each way; headroom is what is left of it."""
    min_isr_guard: bool = True
    """Whether a plan stops, and is undone, when one of its partitions falls under its min ISR."""
    stuck_after_ms: Annotated[Millis, at_least("30s")] = Field(default=300_000, alias="stuck_after")
    """A move without progress for this long is given a higher rate once, then cancelled."""
    grace_after_broker_loss_ms: Millis = Field(default=60_000, alias="grace_after_broker_loss")
    """How long a lost broker is waited for before its moves are cancelled."""
    batches_per_hour: Annotated[Budget, _counted(200)] = 100
    """Requests for reassignments within an hour."""
    batches_per_day: Annotated[Budget, _counted(200)] = 200
    """Requests for reassignments within a day."""
    bytes_per_day: Annotated[Annotated[Bytes, AfterValidator(_not_zero)] | None, NoneWord] = None
    """Bytes whose copying may begin within a day; none sets no bound."""
    payback_days: Annotated[Annotated[float, Field(gt=0)] | None, NoneWord] = 30.0
    """Days within which what is saved must pay for what is copied; none does not ask."""
    hysteresis_share: Annotated[float, Field(ge=0)] = 0.2
    """What was acted upon lately must gain this much more than the least gain ..."""
    hysteresis_window_ms: Millis = Field(default=86_400_000, alias="hysteresis_window")
    """... and lately is this long."""
    cooldown_ms: Millis = Field(default=600_000, alias="cooldown")
    """Least time between the end of a reassignment of a topic and the next of the same topic."""

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        _check_journal(self)
        _check_pace(self)
        return self


class GroupTriggerSettings(BaseModel):
    """Which groups may be asked to rebalance."""

    model_config = _STRICT

    allow_eager: bool = False
    """Whether groups may be triggered that give up every partition in a rebalance."""
    allow_static: bool = False
    """Whether groups with static members may be triggered."""
    allow_long_poll: bool = False
    """Whether groups may be triggered that take long to come back to a poll."""
    allow_rolling: bool = False
    """Whether groups may be triggered whose members are being restarted."""
    allow_transactional: bool = False
    """Whether groups may be triggered whose members write in transactions."""
    transactional: ToldWord = "unknown"
    """Whether members write in transactions; unknown counts as yes for plain consumers, as no for Streams."""
    long_poll: ToldWord = "unknown"
    """Whether members take long to come back to a poll; unknown is learned from earlier rebalances."""
    rolling: ToldWord = "unknown"
    """Whether members are being restarted; unknown is told by those that came and went."""
    long_poll_ms: Annotated[Millis, at_least("1s")] = Field(default=10_000, alias="long_poll_after")
    """A group whose last rebalances took longer than this counts as one with long polls."""
    rolling_window_ms: Millis = Field(default=300_000, alias="rolling_window")
    """Members that came or went within this time count as a rolling restart."""


class TriggerSettings(GroupTriggerSettings):
    """When a rebalance is triggered; what groups differ in is said below them (groups.<application.id>.trigger)."""

    own_rebalance_wait_ms: Millis = Field(default=300_000, alias="own_rebalance_wait")
    """How long a group's own rebalance after a rack change is waited for: its ``metadata.max.age.ms``."""
    budget_per_group_per_hour: Budget = 6
    """Triggers of one group within an hour; those for warm-ups have a budget of their own."""
    budget_per_cycle: Budget = 5
    """Triggers that may come out of one planning."""
    budget_per_hour: Annotated[Budget, _counted(1_000)] = 100
    """Triggers of all groups within an hour."""
    budget_per_day: Annotated[Budget, _counted(1_000)] = 500
    """Triggers of all groups within a day."""

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if self.budget_per_hour > self.budget_per_day:
            raise SettingMistake("budget_per_hour", "it is larger than budget_per_day, so it would never count")
        if self.budget_per_cycle > self.budget_per_hour:
            raise SettingMistake("budget_per_cycle", "it is larger than budget_per_hour, so it would never count")
        return self


class ProbingSettings(BaseModel):
    """Promoting warm-ups of Streams applications as soon as they have caught up (KIP-441)."""

    model_config = _STRICT

    enabled: bool = True
    """Whether a trigger may be spent on warm-ups; without it, applications wait for their probing interval."""
    floor_ms: Annotated[Millis, at_least("6s")] = Field(default=10_000, alias="floor")
    """Least time between two triggers for warm-ups of one application."""
    backoff_factor: Annotated[float, Field(ge=1)] = 2.0
    """By what that time grows each time that nothing was promoted."""
    backoff_max_ms: Millis = Field(default=300_000, alias="backoff_max")
    """Longest that it grows to."""
    near_deadline_ms: Millis = Field(default=15_000, alias="near_deadline")
    """No trigger when the application is going to ask by itself within this time."""
    share_ms: Millis = Field(default=5_000, alias="share_within")
    """Warm-ups that will be caught up within this time of each other share one trigger."""
    budget_per_group_per_hour: Budget = 60
    """Triggers for warm-ups of one application within an hour."""
    standbys: bool = False
    """Whether a standby whose lag grows without bound may be answered by a trigger."""

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if self.backoff_max_ms < self.floor_ms:
            raise SettingMistake("backoff_max", "it is shorter than floor, from which it grows")
        return self


class RuleSettings(BaseModel):
    """One approval rule: it approves what is within every bound that it sets."""

    model_config = _STRICT

    kinds: Kinds = ("trigger", "leaders", "reassign")
    """Kinds of proposals that it may approve."""
    reasons: Names = ()
    """Reasons of proposals that it may approve, such as ``mend-rack-spread``; with none, any."""
    max_bytes: Annotated[Bytes | None, NoneWord] = None
    """Most bytes that are copied or restored; what is unknown is above every bound."""
    max_moves: Annotated[Annotated[int, Field(ge=1)] | None, NoneWord] = None
    """Most moves."""
    keep_leaders: bool = False
    """Only what changes no preferred leader."""
    min_gain_usd_per_day: Annotated[Annotated[float, Field(gt=0)] | None, NoneWord] = None
    """Least money that it saves a day; what is unknown is below every bound."""
    min_gain_bytes_per_s: Annotated[Annotated[float, Field(gt=0)] | None, NoneWord] = None
    """Least cross-rack bytes per second that it saves; what is unknown is below every bound."""
    topics: Names = ()
    """Shell-style patterns of topics; with none, any."""
    groups: Names = ()
    """Shell-style patterns of groups; with none, any."""

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
                "", "a rule without a bound approves everything; give it one, such as max_bytes: 10GB or topics: logs-*"
            )
        return self


class ApproveSettings(BaseModel):
    """What needs a person before it is done."""

    model_config = _STRICT

    triggers: bool = True
    """Whether triggers within budget are approved by a default rule."""
    rules: dict[Text, RuleSettings] = Field(default_factory=dict)
    """Rules by name: what is within all bounds of one is approved by it, and recorded with its name."""
    valid_ms: Annotated[Millis, at_least("1m")] = Field(default=3_600_000, alias="valid_for")
    """An approval is void when nothing was begun for this long."""
    second_person: bool = False
    """Whether somebody else must approve than the person who asked for it."""


def _check_journal(execute: ExecuteSettings) -> None:
    if execute.journal == "file" and execute.journal_file is None:
        raise SettingMistake("journal_file", "execute.journal file needs the path of its file; give it, or set kafka")
    if execute.journal == "kafka" and execute.journal_file is not None:
        raise SettingMistake(
            "journal_file", "it contradicts execute.journal kafka; set that to file, or leave this out"
        )
    if execute.journal == "kafka" and execute.commands_dir is not None:
        raise SettingMistake("commands_dir", "it contradicts execute.journal kafka, where commands come by a topic")


def _check_pace(execute: ExecuteSettings) -> None:
    floor, ceiling, rate = execute.throttle_floor, execute.throttle_ceiling, execute.throttle
    if floor > ceiling:
        raise SettingMistake("throttle_floor", f"it is above execute.throttle_ceiling ({format_size(ceiling)})")
    if rate is not None and not floor <= rate <= ceiling:
        bounds = f"execute.throttle_floor ({format_size(floor)}) and execute.throttle_ceiling ({format_size(ceiling)})"
        raise SettingMistake("throttle", f"it is not between {bounds}")
    if execute.batch_partitions > execute.max_moves_per_cluster:
        raise SettingMistake("batch_partitions", "it is larger than execute.max_moves_per_cluster, so never reached")
    if execute.batches_per_hour > execute.batches_per_day:
        raise SettingMistake("batches_per_hour", "it is larger than execute.batches_per_day, so it would never count")
    if execute.tick_ms > execute.request_timeout_ms:
        raise SettingMistake("tick", "it is longer than execute.request_timeout, so an answer would wait for it")
