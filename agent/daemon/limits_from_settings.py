"""Limits of the stages and the leadership plan, made from the settings, as Kafka's `AssignmentConfigs`. Pure.

A limit is the setting of its name, section by section (`section_limits`); the few of another form are made in
`to_limits`.
"""

from __future__ import annotations

import typing
from collections.abc import Hashable, Mapping
from dataclasses import is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel

from agent.observe.context import (
    CommandQuestion,
    EntryPointQuestion,
    FileQuestion,
    LocatorQuestion,
    ObserveScope,
    TableForm,
)
from agent.values.clock import TimeWindow, TimeWindowSet
from agent.values.limits import (
    ApprovalRule,
    ApproveLimits,
    GroupLimits,
    GroupTriggerLimits,
    Limits,
    LocatorKind,
    PriceLimits,
    RackLocator,
    RackPattern,
)
from agent.values.observation import ObservationPart
from config import locator_properties as locators
from config.kafka_client import KafkaClientConfig
from config.locator_properties import LocatorSettings
from config.rack_locators import RackLocatorSettings
from config.settings import Settings
from config.streams_names import StreamsSettings
from config.windows import WindowSettings

if TYPE_CHECKING:
    from agent.act.lease import LeadershipPlan

_KINDS = {
    locators.WIRE: LocatorKind.WIRE,
    locators.REGEX: LocatorKind.REGEX,
    locators.CIDR: LocatorKind.CIDR,
    locators.ALIAS: LocatorKind.ALIAS,
}
SectionT = TypeVar("SectionT")


def section_limits(kind: type[SectionT], section: BaseModel, **other: Any) -> SectionT:
    """The limits of that class: each field is the setting of its name, or given in ``other``.

    A field that names neither keeps its default; a test compares the two sides, so that none is forgotten.
    """
    shared = [(name, hint) for name, hint in _shared(cast("Hashable", kind), type(section)) if name not in other]
    return kind(**{name: _typed(hint, getattr(section, name)) for name, hint in shared}, **other)


@cache
def _shared(kind: Hashable, section: type[BaseModel]) -> tuple[tuple[str, Any], ...]:
    """Fields of limits that a section of the settings has under the same name, with their types."""
    hints = typing.get_type_hints(kind)
    return tuple((name, hint) for name, hint in hints.items() if name in section.model_fields)


def _typed(hint: Any, value: Any) -> Any:
    """A setting's value in the limits: enum members for their words, limits for sections, others unchanged."""
    if is_dataclass(hint):
        return section_limits(cast("type[Any]", hint), value)
    if hint is float or (isinstance(hint, type) and issubclass(hint, Enum)):
        return hint(value)
    if typing.get_origin(hint) is frozenset:
        return frozenset(value)
    return dict(sorted(value.items())) if isinstance(value, Mapping) else value


def to_limits(settings: Settings) -> Limits:
    """The limits of these settings."""
    groups = sorted(settings.groups.items())
    default = section_limits(GroupLimits, settings, known=_is_known(settings))
    trigger = section_limits(GroupTriggerLimits, settings.trigger)
    own = {name: group.trigger for name, group in groups if group.trigger.model_fields_set}
    rules = sorted(settings.approve.rules.items())
    return section_limits(
        Limits,
        settings,
        default_group=default,
        groups={name: replace(own_limits(default, group), known=_is_known(settings, group)) for name, group in groups},
        group_triggers=MappingProxyType({name: own_limits(trigger, given) for name, given in own.items()}),
        rack_locators=_rules(settings.rack_locator),
        price=section_limits(
            PriceLimits,
            settings.price,
            between={_pair(name): price for name, price in sorted(settings.price.between.items())},
        ),
        approve=section_limits(
            ApproveLimits,
            settings.approve,
            rules=tuple(section_limits(ApprovalRule, rule, name=name) for name, rule in rules),
        ),
        windows=TimeWindowSet(allow=_windows(settings.windows.allow), blackout=_windows(settings.windows.blackout)),
    )


def own_limits(for_all: SectionT, given: BaseModel) -> SectionT:
    """The limits of one group: what it does not set, it takes from those for all groups."""
    made = section_limits(type(for_all), given)
    own = {name: getattr(made, name) for name, _ in _shared(cast("Hashable", type(for_all)), type(given))}
    changed: SectionT = replace(for_all, **{name: own[name] for name in own if name in given.model_fields_set})  # type: ignore[type-var] # limits are dataclasses
    return changed


def _is_known(*given: StreamsSettings) -> bool:
    """Whether any of them sets anything of Streams applications."""
    return any(one.model_fields_set & StreamsSettings.model_fields.keys() for one in given)


def _pair(name: str) -> tuple[str, str]:
    source, _, target = name.partition("->")
    return source.strip(), target.strip()


def _windows(settings: Mapping[str, WindowSettings]) -> tuple[TimeWindow, ...]:
    return tuple(
        section_limits(
            TimeWindow,
            window,
            name=name,
            start_minute=window.start_minute,
            end_minute=window.end_minute,
            days=frozenset(window.day_numbers),
        )
        for name, window in sorted(settings.items())
    )


def to_scope(settings: Settings) -> ObserveScope:
    """The parts and deadlines of a look."""
    observe = settings.observe
    configs = dict.fromkeys(
        (ObservationPart.TOPIC_CONFIGS, ObservationPart.BROKER_CONFIGS, ObservationPart.GROUP_CONFIGS),
        observe.refresh_configs_ms,
    )
    urls = (url for _, group in sorted(settings.groups.items()) for url in group.application_endpoints)
    return ObserveScope(
        **{name: value for name, value in observe if name in ObserveScope.__dataclass_fields__},
        refresh_ms={**configs, ObservationPart.LOG_DIRS: observe.refresh_sizes_ms},
        expected_cluster_id=settings.cluster.id,
        application_urls=tuple(dict.fromkeys(urls)),
        rack_locators=tuple(q for one in settings.rack_locator.locators if (q := _question(one)) is not None),
        shrink_share=settings.detect.shrink_share,
    )


def _rules(settings: RackLocatorSettings) -> tuple[RackLocator, ...]:
    """The model's locators; none for the wire alone, which is the model's default."""
    rules = tuple(
        RackLocator(
            name=one.name,
            kind=_KINDS.get(one.kind, LocatorKind.TABLE),
            patterns=tuple(RackPattern(*pattern) for pattern in one.patterns),
            networks=one.networks,
            aliases=one.aliases,
        )
        for one in settings.locators
    )
    return () if [rule.kind for rule in rules] == [LocatorKind.WIRE] else rules


def _question(one: LocatorSettings) -> LocatorQuestion | None:
    """The question of a locator in every look; None for one of the model."""
    form = TableForm(one.form)
    match one.kind:
        case locators.FILE:
            return FileQuestion(name=one.name, path=one.path, form=form, max_bytes=one.max_bytes)
        case locators.COMMAND:
            return CommandQuestion(
                name=one.name, argv=one.argv, form=form, timeout_ms=one.timeout_ms, max_bytes=one.max_bytes
            )
        case locators.ENTRY_POINT:
            return EntryPointQuestion(
                name=one.name,
                entry_point=one.entry_point,
                timeout_ms=one.timeout_ms,
                max_bytes=one.max_bytes,
                properties=one.properties,
            )
        case _:
            return None


# Keys of commands are no settings: `agent.act.own_files` reads them.


def to_leadership_plan(settings: Settings, kafka: KafkaClientConfig, agent: str) -> LeadershipPlan:
    """The leadership plan: ``kafka`` is the executor's connection for an agent, the user's own for a command."""
    from agent.act.lease import LeadershipPlan  # noqa: PLC0415 what only looks at a cluster has no use for the journal

    execute, topics = settings.execute, settings.topics
    return LeadershipPlan(
        config=kafka.confluent(),
        observer=settings.kafka.confluent() if settings.execute.kafka.root and kafka is not settings.kafka else None,
        agent=agent,
        file=Path(execute.journal_file) if execute.journal_file is not None else None,
        spool=Path(execute.commands_dir) if execute.commands_dir is not None else None,
        prefix=topics.prefix,
        journal_topic=settings.journal_topic,
        leader_topic=settings.leader_topic,
        commands_topic=settings.commands_topic,
        replication_factor=topics.replication_factor,
        min_insync_replicas=topics.min_insync_replicas,
        unsigned_below=execute.journal_unsigned_below,
    )
