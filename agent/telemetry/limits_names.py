"""Names of limits in telemetry and in strategies; format 1 is nearly flat and older than the settings' sections.

A limit without a name here is written under its section and its setting's name. Pure; `limits_from_record` of
`limits_to_record` gives equal limits.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache, reduce
from typing import Any

from agent.values.limits import Limits
from agent.values.typed_json import UnreadableError, from_json, to_json

_NAMES = """
mode groups default_group own_prefix=topics.prefix include_own_topics=scope.include_own_topics
exclude_topics=scope.exclude_topics exclude_groups=scope.exclude_groups keep_leaders=plan.keep_leaders rack_locators
rack_stable_ms=racks.stable_for_ms rack_stable_polls=racks.stable_polls rack_flap_changes=racks.flap_changes
rack_flap_window_ms=racks.flap_window_ms broker_absent_ms=racks.broker_absent_for_ms
stuck_rebalance_ms=detect.stuck_rebalance_after_ms min_gain_partitions=gain.min_partitions
min_gain_share=gain.min_share min_gain_bytes_per_s=gain.min_bytes_per_s leader_skew_share=detect.leader_skew_share
usd_per_gb=price.usd_per_gb prices=price.between predict_limit=plan.predict_limit
move_bytes_per_s=proposals.move_bytes_per_s max_proposals=proposals.max_per_cycle
max_moves_per_proposal=proposals.max_moves proposal_ttl_ms=proposals.ttl_ms
trigger_cooldown_ms=proposals.trigger_cooldown_ms throttle_grace_ms=detect.throttle_grace_ms
weights_max_age_ms=weights.max_age_ms

execute.cluster_id=cluster.id execute.request_timeout_ms execute.tick_ms execute.intent_valid_ms
execute.include_topics execute.exclude_topics execute.include_groups execute.exclude_groups execute.windows=windows
execute.max_moves_per_broker execute.max_moves_per_cluster execute.max_bytes_in_flight execute.batch_partitions
execute.throttle_bytes_per_s=execute.throttle execute.throttle_floor_bytes_per_s=execute.throttle_floor
execute.throttle_ceiling_bytes_per_s=execute.throttle_ceiling execute.throttle_headroom_share
execute.broker_bytes_per_s=execute.broker_bandwidth execute.min_isr_guard execute.stuck_after_ms
execute.grace_after_broker_loss_ms

execute.trigger.allow_eager=trigger.allow_eager execute.trigger.allow_static=trigger.allow_static
execute.trigger.allow_long_poll=trigger.allow_long_poll execute.trigger.allow_rolling=trigger.allow_rolling
execute.trigger.allow_transactional=trigger.allow_transactional execute.trigger.transactional=trigger.transactional
execute.trigger.long_poll=trigger.long_poll execute.trigger.rolling=trigger.rolling
execute.trigger.long_poll_ms=trigger.long_poll_ms execute.trigger.rolling_window_ms=trigger.rolling_window_ms
execute.group_triggers=group_triggers execute.own_rebalance_wait_ms=trigger.own_rebalance_wait_ms
execute.trigger_budget_per_group_per_hour=trigger.budget_per_group_per_hour
execute.trigger_budget_per_cycle=trigger.budget_per_cycle execute.trigger_budget_per_hour=trigger.budget_per_hour
execute.trigger_budget_per_day=trigger.budget_per_day execute.batch_budget_per_hour=execute.batches_per_hour
execute.batch_budget_per_day=execute.batches_per_day execute.move_budget_bytes_per_day=execute.bytes_per_day

execute.probing=probing.enabled execute.probing_floor_ms=probing.floor_ms
execute.probing_backoff_factor=probing.backoff_factor execute.probing_backoff_max_ms=probing.backoff_max_ms
execute.probing_near_deadline_ms=probing.near_deadline_ms execute.probing_share_ms=probing.share_ms
execute.probing_budget_per_group_per_hour=probing.budget_per_group_per_hour execute.probing_standbys=probing.standbys

execute.payback_max_days=execute.payback_days execute.hysteresis_share execute.hysteresis_window_ms
execute.move_cooldown_ms=execute.cooldown_ms execute.approve_triggers=approve.triggers
execute.approval_rules=approve.rules execute.approval_valid_ms=approve.valid_ms
execute.second_person=approve.second_person
"""
"""Name in a record, and the limit's path where that is another one; in the order in which they are written."""


@cache
def recorded_names() -> Mapping[str, tuple[str, ...]]:
    """Name in a record, dotted -> path of the limit. All limits, in the order in which they are written."""
    named = {name: path or name for name, _, path in (one.partition("=") for one in _NAMES.split())}
    named |= {path: path for path in _unnamed(Limits, frozenset(named.values()))}
    return {name: tuple(path.split(".")) for name, path in named.items()}


def limits_to_record(limits: Limits) -> dict[str, Any]:
    """The limits as telemetry has them: JSON-ready data."""
    data, record = to_json(Limits, limits), dict[str, Any]()
    for name, path in recorded_names().items():
        _put(record, tuple(name.split(".")), reduce(lambda section, key: section[key], path, data))
    return record


def limits_from_record(record: Mapping[str, Any]) -> Limits:
    """The limits; what the record leaves out keeps its default. Raises UnreadableError."""
    data: dict[str, Any] = {}
    for name, path in recorded_names().items():
        *sections, last = name.split(".")
        section: Any = record
        for key in sections:
            section = section.get(key, {})
            if not isinstance(section, dict):
                raise UnreadableError(f"no Limits: an object expected, {type(section).__name__} found")
        if last in section:
            _put(data, path, section[last])
    return from_json(Limits, data)


def _put(data: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data.setdefault(key, {})
    data[path[-1]] = value


def _unnamed(kind: Any, named: frozenset[str], section: str = "") -> Iterator[str]:
    """Paths of limits that have no other name."""
    for name, hint in typing.get_type_hints(kind).items():
        path = f"{section}{name}"
        if path not in named:
            yield from _unnamed(hint, named, f"{path}.") if is_dataclass(hint) else (path,)
