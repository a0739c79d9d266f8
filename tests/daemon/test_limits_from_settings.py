"""What the pure stages are given of the settings: limits that mirror them, section by section and name by name."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel

from agent.daemon.limits_from_settings import to_limits, to_scope
from agent.observe.context import ObserveScope
from agent.values.clock import TimeWindow
from agent.values.limits import ApprovalRule, GroupLimits, GroupTriggerLimits, Limits, TopologyHint, TriState
from agent.values.observation import ObservationPart
from config.execute import GroupTriggerSettings, RuleSettings
from config.load import load_settings
from config.settings import Settings
from config.streams_names import GroupSettings, StreamsSettings, TopologySettings
from config.windows import WindowSettings
from tests.limits import with_limits


def limits(*assignments: str) -> Limits:
    return to_limits(load_settings(assignments=assignments, environ={}).settings)


def test_without_settings_the_limits_are_their_own_defaults() -> None:
    assert limits() == Limits()


# --- the mirror --------------------------------------------------------------------------------------------------

NO_SETTINGS = {
    "default_group": "the Streams settings at the top, for groups without their own",
    "group_triggers": "groups.<id>.trigger, for groups that set any of it",
    "rack_locators": "rack_locator, as the model asks it",
    "execute.intent_valid_ms": "a constant that tests lengthen",
    "ApprovalRule.name": "the key of the rule",
    "GroupLimits.known": "whether any Streams setting is set",
    "Window.name": "the key of the window",
    "Window.start_minute": "start",
    "Window.end_minute": "end",
}
"""Limits that no setting of the same name has."""
OTHER_FORM = {
    "windows.allow": "in the order of their names",
    "windows.blackout": "in the order of their names",
    "price.between": "a pair of racks for from->to",
    "approve.rules": "in the order of their names",
    "proposals.move_bytes_per_s": "a divisor of floats",
    "Window.days": "Monday is 0",
}
"""Limits that have another type than the setting of their name; a test below or beside reads each."""
NO_LIMITS = {
    "settings that say what a process does, not how it judges": """
        dry_run kafka poll observe operator record http metrics notify log process spark plan.interval_ms plan.cron
        weights.enabled weights.window_ms detect.shrink_share topics.replication_factor topics.min_insync_replicas
        topics.telemetry topics.proposals topics.journal topics.leader topics.commands topics.weights""",
    "who may write and read the journal": """
        execute.journal execute.journal_file execute.commands_dir execute.journal_key_file
        execute.journal_unsigned_below execute.kafka approve.people""",
    "files of the pipeline": "price.table price.producers",
    "under another name, see above": "rack_locator GroupSettings.trigger WindowSettings.start WindowSettings.end",
    "where to ask, not how to judge": "GroupSettings.application_endpoints",
}
"""Settings that no pure stage reads."""


class Pair(NamedTuple):
    """A class of limits and the section of the settings that it mirrors."""

    at: str
    limits: type
    section: type[BaseModel]


def pairs(at: str, kind: type, section: type[BaseModel]) -> Iterator[Pair]:
    yield Pair(at, kind, section)
    theirs = typing.get_type_hints(section)
    for name, hint in typing.get_type_hints(kind).items():
        if is_dataclass(hint) and name in theirs:
            yield from pairs(f"{name}.", hint, theirs[name])


SECTIONS = [pair for pair in pairs("", Limits, Settings) if pair.limits is not TopologyHint]
PAIRS = [
    *SECTIONS,
    Pair("GroupLimits.", GroupLimits, GroupSettings),
    Pair("TopologyHint.", TopologyHint, TopologySettings),
    Pair("GroupTriggerLimits.", GroupTriggerLimits, GroupTriggerSettings),
    Pair("ApprovalRule.", ApprovalRule, RuleSettings),
    Pair("Window.", TimeWindow, WindowSettings),
]


def plain(hint: Any) -> Any:
    """A type as both sides have it: words of an enum or a literal, any collection, any mapping."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return frozenset(arguments)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return frozenset(member.value for member in hint)
    if origin in (typing.Union, types.UnionType):
        return frozenset(map(plain, arguments))
    if origin in (tuple, frozenset):
        return ("many", plain(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return ("by", *map(plain, arguments))
    return ("section",) if is_dataclass(hint) or (isinstance(hint, type) and issubclass(hint, BaseModel)) else hint


def alike(limit: Any, setting: Any) -> bool:
    """Whether the types are the same, words of settings being texts to some limits."""
    if limit is str and isinstance(setting, frozenset):
        return all(isinstance(word, str) for word in setting)
    if isinstance(limit, tuple) and isinstance(setting, tuple):
        return len(limit) == len(setting) and all(map(alike, limit, setting))
    return bool(limit == setting)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.at or "Limits")
def test_every_limit_is_the_setting_of_its_name_with_its_type(pair: Pair) -> None:
    theirs = typing.get_type_hints(pair.section)
    for name, hint in typing.get_type_hints(pair.limits).items():
        path = f"{pair.at}{name}"
        assert (name in pair.section.model_fields) is (path not in NO_SETTINGS), path
        if path not in NO_SETTINGS:
            same = alike(plain(hint), plain(theirs[name]))
            assert same is (path not in OTHER_FORM), f"{path}: {plain(hint)} and {plain(theirs[name])}"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.at or "Limits")
def test_every_setting_is_a_limit_or_listed_as_none(pair: Pair) -> None:
    listed = {name for names in NO_LIMITS.values() for name in names.split()}
    at = pair.at if pair in SECTIONS else f"{pair.section.__name__}."
    top = StreamsSettings.model_fields if pair.section is Settings else {}
    for name in pair.section.model_fields.keys() - top.keys():
        is_limit = name in typing.get_type_hints(pair.limits)
        assert is_limit is (f"{at}{name}" not in listed), f"{at}{name}"


def test_the_lists_name_only_what_there_is() -> None:
    ours = {f"{pair.at}{name}" for pair in PAIRS for name in typing.get_type_hints(pair.limits)}
    assert not {*NO_SETTINGS, *OTHER_FORM} - ours
    theirs = {f"{pair.at}{name}" for pair in SECTIONS for name in pair.section.model_fields}
    theirs |= {f"{pair.section.__name__}.{name}" for pair in PAIRS for name in pair.section.model_fields}
    assert not {name for names in NO_LIMITS.values() for name in names.split()} - theirs


OTHER = {bool: True, int: 7, float: 0.25, str: "x"}
LEAVES = [
    (pair.at[:-1], one.name, hint)
    for pair in SECTIONS
    if pair.at
    for one in fields(pair.limits)
    if not is_dataclass(hint := typing.get_type_hints(pair.limits)[one.name])
    and f"{pair.at}{one.name}" not in {*NO_SETTINGS, *OTHER_FORM}
]


def another(hint: Any, default: Any) -> Any:
    """A value that is not the default."""
    kind = next((one for one in (*typing.get_args(hint), hint) if one in OTHER or isinstance(one, type)), None)
    if typing.get_origin(hint) is tuple:
        return ("x",)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(member for member in kind if member is not default)
    return not default if kind is bool else OTHER[kind]  # type: ignore[index] # a setting of a new kind fails here


@pytest.mark.parametrize(("section", "name", "hint"), LEAVES, ids=lambda part: part if isinstance(part, str) else "")
def test_each_setting_reaches_its_limit_and_no_other(section: str, name: str, hint: Any) -> None:
    settings = load_settings(environ={}).settings
    of = getattr(settings, section)
    value = another(hint, getattr(getattr(Limits(), section), name))
    told = value.value if isinstance(value, Enum) else value
    changed = settings.model_copy(update={section: of.model_copy(update={name: told})})
    assert to_limits(changed) == with_limits(Limits(), **{f"{section}__{name}": value})


def test_settings_of_another_form_reach_their_limits() -> None:
    assert limits("price.between.a -> b=0.5") == with_limits(Limits(), price__between={("a", "b"): 0.5})
    moved = limits("proposals.move_bytes_per_s=1MB").proposals.move_bytes_per_s
    assert (moved, type(moved)) == (1_000_000.0, float)
    own = GroupLimits(num_standby_replicas=1, known=True)
    assert limits("num.standby.replicas=1") == with_limits(Limits(), default_group=own)
    assert limits("groups.a.num.standby.replicas=1") == with_limits(Limits(), groups={"a": own})
    trigger = limits("trigger.long_poll=yes", "groups.a.trigger.allow_eager=true").trigger_of("a")
    assert trigger == GroupTriggerLimits(long_poll=TriState.YES, allow_eager=True)


def test_an_application_takes_from_all_what_it_does_not_set() -> None:
    found = limits("acceptable.recovery.lag=5", "groups.a.max.warmup.replicas=1", "groups.a.topology.changelogs.0=x,y")
    assert found.group("a").acceptable_recovery_lag == 5
    assert found.group("a").max_warmup_replicas == 1
    assert found.group("a").topology.changelogs == {"0": ("x", "y")}
    assert found.group("b") == GroupLimits(acceptable_recovery_lag=5, known=True)
    assert limits("groups.a.topology.source_changelogs=t").group("a").known is False


def test_without_settings_a_look_has_its_own_defaults() -> None:
    assert to_scope(load_settings(environ={}).settings) == ObserveScope()


def test_every_setting_of_a_look_reaches_it() -> None:
    assignments = [
        "observe.include_topics=a,b", "observe.exclude_topics=c", "observe.include_groups=d",
        "observe.exclude_groups=e",
        "observe.call_timeout=1s", "observe.deadline=9s", "observe.refresh_sizes=2s", "observe.refresh_configs=3s",
        "cluster.id=x", "detect.shrink_share=0.1",
        "groups.z.application.endpoints=http://z/", "groups.a.application.endpoints=http://a/,http://z/",
    ]  # fmt: skip
    assert to_scope(load_settings(assignments=assignments, environ={}).settings) == ObserveScope(
        include_topics=("a", "b"),
        exclude_topics=("c",),
        include_groups=("d",),
        exclude_groups=("e",),
        call_timeout_ms=1_000,
        deadline_ms=9_000,
        refresh_ms={
            ObservationPart.LOG_DIRS: 2_000,
            ObservationPart.TOPIC_CONFIGS: 3_000,
            ObservationPart.BROKER_CONFIGS: 3_000,
            ObservationPart.GROUP_CONFIGS: 3_000,
        },
        expected_cluster_id="x",
        application_urls=("http://a/", "http://z/"),
        shrink_share=0.1,
    )
