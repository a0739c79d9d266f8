"""Cuts the limits of acting out of the settings, as `agent.cut` cuts the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from agent.values.limits import ApprovalRule, ExecuteLimits, JournalKind, Told, TriggerLimits
from agent.values.windows import Window, Windows
from config.acting import GroupTriggerSettings, RuleSettings
from config.settings import Settings
from config.windows import WindowSettings

_TRIGGER_FIELDS = tuple(GroupTriggerSettings.model_fields)


def to_execute_limits(settings: Settings) -> ExecuteLimits:
    """Everything that stages may know of how mode execute is set."""
    execute, trigger, probing, approve = settings.execute, settings.trigger, settings.probing, settings.approve
    own = {name: group.trigger for name, group in sorted(settings.groups.items()) if group.trigger.model_fields_set}
    return ExecuteLimits(
        cluster_id=settings.cluster.id,
        journal=JournalKind(execute.journal),
        request_timeout_ms=execute.request_timeout_ms,
        tick_ms=execute.tick_ms,
        include_topics=execute.include_topics,
        exclude_topics=execute.exclude_topics,
        include_groups=execute.include_groups,
        exclude_groups=execute.exclude_groups,
        windows=Windows(allow=_windows(settings.windows.allow), blackout=_windows(settings.windows.blackout)),
        max_moves_per_broker=execute.max_moves_per_broker,
        max_moves_per_cluster=execute.max_moves_per_cluster,
        max_bytes_in_flight=execute.max_bytes_in_flight,
        batch_partitions=execute.batch_partitions,
        throttle_bytes_per_s=execute.throttle,
        throttle_floor_bytes_per_s=execute.throttle_floor,
        throttle_ceiling_bytes_per_s=execute.throttle_ceiling,
        throttle_headroom_share=execute.throttle_headroom_share,
        broker_bytes_per_s=execute.broker_bandwidth,
        min_isr_guard=execute.min_isr_guard,
        stuck_after_ms=execute.stuck_after_ms,
        grace_after_broker_loss_ms=execute.grace_after_broker_loss_ms,
        trigger=_trigger(trigger, trigger),
        group_triggers=MappingProxyType({name: _trigger(trigger, given) for name, given in own.items()}),
        own_rebalance_wait_ms=trigger.own_rebalance_wait_ms,
        trigger_budget_per_group_per_hour=trigger.budget_per_group_per_hour,
        trigger_budget_per_cycle=trigger.budget_per_cycle,
        trigger_budget_per_hour=trigger.budget_per_hour,
        trigger_budget_per_day=trigger.budget_per_day,
        batch_budget_per_hour=execute.batches_per_hour,
        batch_budget_per_day=execute.batches_per_day,
        move_budget_bytes_per_day=execute.bytes_per_day,
        probing=probing.enabled,
        probing_floor_ms=probing.floor_ms,
        probing_backoff_factor=probing.backoff_factor,
        probing_backoff_max_ms=probing.backoff_max_ms,
        probing_near_deadline_ms=probing.near_deadline_ms,
        probing_share_ms=probing.share_ms,
        probing_budget_per_group_per_hour=probing.budget_per_group_per_hour,
        probing_standbys=probing.standbys,
        payback_max_days=execute.payback_days,
        hysteresis_share=execute.hysteresis_share,
        hysteresis_window_ms=execute.hysteresis_window_ms,
        move_cooldown_ms=execute.cooldown_ms,
        approve_triggers=approve.triggers,
        approval_rules=tuple(_rule(name, rule) for name, rule in sorted(approve.rules.items())),
        approval_valid_ms=approve.valid_ms,
        second_person=approve.second_person,
    )


def _trigger(for_all: GroupTriggerSettings, given: GroupTriggerSettings) -> TriggerLimits:
    """A group's own values; what it does not set, it takes from those for all groups."""
    values = {name: getattr(given if name in given.model_fields_set else for_all, name) for name in _TRIGGER_FIELDS}
    values |= {name: Told(values[name]) for name in ("transactional", "long_poll", "rolling")}
    return TriggerLimits(**values)


def _rule(name: str, rule: RuleSettings) -> ApprovalRule:
    return ApprovalRule(
        name=name,
        kinds=frozenset(rule.kinds),
        reasons=frozenset(rule.reasons),
        max_bytes=rule.max_bytes,
        max_moves=rule.max_moves,
        keep_leaders=rule.keep_leaders,
        min_gain_usd_per_day=rule.min_gain_usd_per_day,
        min_gain_bytes_per_s=rule.min_gain_bytes_per_s,
        topics=rule.topics,
        groups=rule.groups,
    )


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
