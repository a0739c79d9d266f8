"""Cuts the small values that stages are given out of the settings, as Kafka cuts its `AssignmentConfigs`.

The only place that knows both sides. Pure: the same settings give the same limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from agent.observe.locators.question import (
    CommandQuestion,
    EntryPointQuestion,
    FileQuestion,
    LocatorQuestion,
    TableForm,
)
from agent.observe.scope import Scope
from agent.values.limits import (
    ApprovalRule,
    ExecuteLimits,
    GroupLimits,
    JournalKind,
    Limits,
    LocatorKind,
    Mode,
    RackLocator,
    RackPattern,
    Told,
    TopologyHint,
    TriggerLimits,
)
from agent.values.observation import Part
from agent.values.windows import Window, Windows
from config import locator_properties as locators
from config.acting import GroupTriggerSettings, RuleSettings
from config.locator_properties import LocatorSettings
from config.rack_locators import RackLocatorSettings
from config.settings import Settings
from config.streams_names import GroupSettings, StreamsSettings
from config.windows import WindowSettings

_KINDS = {
    locators.WIRE: LocatorKind.WIRE,
    locators.REGEX: LocatorKind.REGEX,
    locators.CIDR: LocatorKind.CIDR,
    locators.ALIAS: LocatorKind.ALIAS,
}
_STREAMS_FIELDS = tuple(StreamsSettings.model_fields)


def to_limits(settings: Settings) -> Limits:
    """Everything that the pure stages may know of the settings."""
    default = _group_limits(settings, settings)
    return Limits(
        mode=Mode(settings.mode),
        groups={name: _group_limits(settings, group) for name, group in sorted(settings.groups.items())},
        default_group=default,
        own_prefix=settings.topics.prefix,
        include_own_topics=settings.scope.include_own_topics,
        exclude_topics=settings.scope.exclude_topics,
        exclude_groups=settings.scope.exclude_groups,
        keep_leaders=settings.plan.keep_leaders,
        rack_locators=_rules(settings.rack_locator),
        rack_stable_ms=settings.racks.stable_for_ms,
        rack_stable_polls=settings.racks.stable_polls,
        rack_flap_changes=settings.racks.flap_changes,
        rack_flap_window_ms=settings.racks.flap_window_ms,
        broker_absent_ms=settings.racks.broker_absent_for_ms,
        stuck_rebalance_ms=settings.detect.stuck_rebalance_after_ms,
        min_gain_partitions=settings.gain.min_partitions,
        min_gain_share=settings.gain.min_share,
        min_gain_bytes_per_s=settings.gain.min_bytes_per_s,
        leader_skew_share=settings.detect.leader_skew_share,
        usd_per_gb=settings.price.usd_per_gb,
        prices={_pair(name): price for name, price in sorted(settings.price.between.items())},
        predict_limit=settings.plan.predict_limit,
        move_bytes_per_s=float(settings.proposals.move_bytes_per_s),
        max_proposals=settings.proposals.max_per_cycle,
        max_moves_per_proposal=settings.proposals.max_moves,
        proposal_ttl_ms=settings.proposals.ttl_ms,
        trigger_cooldown_ms=settings.proposals.trigger_cooldown_ms,
        throttle_grace_ms=settings.detect.throttle_grace_ms,
        weights_max_age_ms=settings.weights.max_age_ms,
        no_longer_shown_share=settings.detect.shrink_share,
        execute=to_execute_limits(settings),
    )


def to_scope(settings: Settings) -> Scope:
    """What a look asks for and how long it may take."""
    observe = settings.observe
    configs = dict.fromkeys((Part.TOPIC_CONFIGS, Part.BROKER_CONFIGS, Part.GROUP_CONFIGS), observe.refresh_configs_ms)
    urls = (url for _, group in sorted(settings.groups.items()) for url in group.application_endpoints)
    return Scope(
        **_alike(observe, Scope),
        refresh_ms={**configs, Part.LOG_DIRS: observe.refresh_sizes_ms},
        expected_cluster_id=settings.cluster.id,
        application_urls=tuple(dict.fromkeys(urls)),
        rack_locators=tuple(q for one in settings.rack_locator.locators if (q := _question(one)) is not None),
        shrink_share=settings.detect.shrink_share,
    )


def _rules(settings: RackLocatorSettings) -> tuple[RackLocator, ...]:
    """The locators as the model asks them; none where the wire alone is asked, which is what a model does anyway."""
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
    """How it is asked in every look; None for one that the model asks."""
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


def _group_limits(for_all: Settings, given: StreamsSettings) -> GroupLimits:
    """A group's own values; what it does not set, it takes from those given for all applications."""
    sources = {name: given if name in given.model_fields_set else for_all for name in _STREAMS_FIELDS}
    values = {name: getattr(source, name) for name, source in sources.items()}
    known = any(name in source.model_fields_set for name, source in sources.items())
    hint = _hint(given) if isinstance(given, GroupSettings) else TopologyHint()
    software = given.client_software_name if isinstance(given, GroupSettings) else None
    return GroupLimits(**values, topology=hint, client_software_name=software, known=known)


def _hint(group: GroupSettings) -> TopologyHint:
    topology = group.topology
    return TopologyHint(
        source_changelogs=topology.source_changelogs,
        stateless_subtopologies=topology.stateless_subtopologies,
        no_changelog_subtopologies=topology.no_changelog_subtopologies,
        changelogs=dict(sorted(topology.changelogs.items())),
    )


def _pair(name: str) -> tuple[str, str]:
    source, _, target = name.partition("->")
    return source.strip(), target.strip()


def _alike(section: BaseModel, limits: type[Any], before: str = "") -> dict[str, Any]:
    """Values that a section of the settings and the limits (``before`` put before the setting's) name alike."""
    names = [name for name in type(section).model_fields if f"{before}{name}" in limits.__dataclass_fields__]
    return {f"{before}{name}": getattr(section, name) for name in names}


_TRIGGER_FIELDS = tuple(GroupTriggerSettings.model_fields)


def to_execute_limits(settings: Settings) -> ExecuteLimits:
    """Everything that stages may know of how mode execute is set."""
    execute, trigger, probing, approve = settings.execute, settings.trigger, settings.probing, settings.approve
    own = {name: group.trigger for name, group in sorted(settings.groups.items()) if group.trigger.model_fields_set}
    alike = _alike(execute, ExecuteLimits) | _alike(probing, ExecuteLimits, "probing_")
    alike |= _alike(trigger, ExecuteLimits) | _alike(trigger, ExecuteLimits, "trigger_")
    alike |= _alike(approve, ExecuteLimits) | {"journal": JournalKind(execute.journal)}
    return ExecuteLimits(
        **alike,
        cluster_id=settings.cluster.id,
        windows=Windows(allow=_windows(settings.windows.allow), blackout=_windows(settings.windows.blackout)),
        throttle_bytes_per_s=execute.throttle,
        throttle_floor_bytes_per_s=execute.throttle_floor,
        throttle_ceiling_bytes_per_s=execute.throttle_ceiling,
        broker_bytes_per_s=execute.broker_bandwidth,
        trigger=_trigger(trigger, trigger),
        group_triggers=MappingProxyType({name: _trigger(trigger, given) for name, given in own.items()}),
        batch_budget_per_hour=execute.batches_per_hour,
        batch_budget_per_day=execute.batches_per_day,
        move_budget_bytes_per_day=execute.bytes_per_day,
        probing=probing.enabled,
        payback_max_days=execute.payback_days,
        move_cooldown_ms=execute.cooldown_ms,
        approve_triggers=approve.triggers,
        approval_rules=tuple(_rule(name, rule) for name, rule in sorted(approve.rules.items())),
        approval_valid_ms=approve.valid_ms,
    )


def _trigger(for_all: GroupTriggerSettings, given: GroupTriggerSettings) -> TriggerLimits:
    """A group's own values; what it does not set, it takes from those for all groups."""
    values = {name: getattr(given if name in given.model_fields_set else for_all, name) for name in _TRIGGER_FIELDS}
    values |= {name: Told(values[name]) for name in ("transactional", "long_poll", "rolling")}
    return TriggerLimits(**values)


def _rule(name: str, rule: RuleSettings) -> ApprovalRule:
    sets = {"kinds": frozenset(rule.kinds), "reasons": frozenset(rule.reasons)}
    return ApprovalRule(name=name, **_alike(rule, ApprovalRule) | sets)


def _windows(settings: Mapping[str, WindowSettings]) -> tuple[Window, ...]:
    return tuple(
        Window(
            name=name,
            zone=window.zone,
            start_minute=window.start_minute,
            end_minute=window.end_minute,
            days=frozenset(window.day_numbers),
            first=window.first,
            last=window.last,
            kinds=frozenset(window.kinds),
        )
        for name, window in sorted(settings.items())
    )
