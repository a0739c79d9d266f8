"""Strategies of a backtest: named changes of the limits that were in force.

A strategy changes nothing but limits, by the names that telemetry gives them (``min_gain_share``,
``execute.trigger_budget_per_group_per_hour``); ``group.…`` and ``trigger.…`` name the settings of every group. All
strategies but ``as-recorded`` and ``no-action`` act: mode is execute, and every approval that a person gives is given.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import typing
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.errors import BadInput, reason
from agent.telemetry.looks import checked, recorded_names
from agent.values.kafka import BALANCE_SUBTOPOLOGY, MIN_TRAFFIC, RACK_AWARE_STRATEGY
from agent.values.limits import AgentMode, ApprovalRule, GroupLimits, GroupTriggerLimits, Limits
from agent.values.typed_json import UnreadableError, from_json
from config.value_kinds import Text
from config.yaml_file import yaml_value

APPROVED = ApprovalRule(name="backtest")
"""Every act that the guard allows is assumed to be approved at once."""
READ_IN_A_LOOK = (
    ("rack_locators",), ("topics", "prefix"), ("scope", "include_own_topics"), ("weights", "max_age_ms"),
    ("default_group",), ("groups",), ("group", "topology"), ("group", "acceptable_recovery_lag"),
)  # fmt: skip
"""Limits that the snapshot of a look rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestStrategy:
    """A way to set the agent."""

    name: str
    about: str
    """What it does, in one sentence."""
    changes: tuple[tuple[str, Any], ...] = ()
    """(name of a limit, its value as JSON has it), in order."""
    acts: bool = True
    """False: no proposal is carried out."""

    @property
    def digest(self) -> str:
        """Changes when the strategy does; its words are no part of it."""
        text = json.dumps([self.name, self.changes, self.acts], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def reads_otherwise(self) -> bool:
        """Whether it changes what a look shows, not only what is made of it."""
        paths = [_path(tuple(name.split("."))) for name, _ in self.changes]
        return any(path[: len(read)] == read for path in paths for read in READ_IN_A_LOOK)


AS_RECORDED = BacktestStrategy(
    name="as-recorded",
    about="Settings and memory as they were: what the agent proposed, and what really happened.",
    acts=False,
)
_UNTRIED = (("execute.trigger.allow_transactional", True),)
_FREE = (("execute.payback_max_days", None),)
"""What an application restores is often not known, and would hold everything that has to pay for it."""
BUILT_IN: tuple[BacktestStrategy, ...] = (
    AS_RECORDED,
    BacktestStrategy(
        name="no-action", about="Nothing is ever changed: the baseline that savings are measured against.", acts=False
    ),
    BacktestStrategy(name="execute", about="The recorded settings in mode execute, every approval given."),
    BacktestStrategy(
        name="eager-triggers",
        about="Every gain of one partition is worth a rebalance at once, whatever the group's assignor or members.",
        changes=(
            *_UNTRIED,
            *_FREE,
            ("execute.trigger.allow_eager", True),
            ("execute.trigger.allow_static", True),
            ("execute.trigger.allow_long_poll", True),
            ("execute.trigger.allow_rolling", True),
            ("execute.own_rebalance_wait_ms", 0),
            ("execute.hysteresis_share", 0.0),
            ("min_gain_partitions", 1),
            ("min_gain_share", 0.0),
            ("trigger_cooldown_ms", 0),
        ),
    ),
    BacktestStrategy(
        name="patient",
        about="A rebalance must make a fifth of the partitions rack-local, and a group is triggered once an "
        "hour at most.",
        changes=(
            *_UNTRIED,
            ("min_gain_share", 0.2),
            ("rack_stable_ms", 600_000),
            ("trigger_cooldown_ms", 3_600_000),
            ("execute.trigger_budget_per_group_per_hour", 1),
        ),
    ),
    BacktestStrategy(
        name="by-bytes",
        about="Bytes count: a rebalance must make 100 kB/s rack-local, however few partitions that is.",
        changes=(*_UNTRIED, ("min_gain_partitions", 1), ("min_gain_share", 0.0), ("min_gain_bytes_per_s", 100_000.0)),
    ),
    BacktestStrategy(
        name=MIN_TRAFFIC,
        about=f"Applications have {RACK_AWARE_STRATEGY}={MIN_TRAFFIC}, and a rebalance needs no pay-back.",
        changes=(*_UNTRIED, *_FREE, ("group.rack_aware_assignment_strategy", MIN_TRAFFIC)),
    ),
    BacktestStrategy(
        name=BALANCE_SUBTOPOLOGY,
        about=f"As {MIN_TRAFFIC}, with {RACK_AWARE_STRATEGY}={BALANCE_SUBTOPOLOGY}.",
        changes=(*_UNTRIED, *_FREE, ("group.rack_aware_assignment_strategy", BALANCE_SUBTOPOLOGY)),
    ),
)
"""Strategies that need no description by the user, in the order in which they are shown."""


def chosen(
    names: str, *, changes: Iterable[str] = (), described: str | None = None, source: str = "the description"
) -> tuple[BacktestStrategy, ...]:
    """The strategies of a comma-separated list, in its order.

    ``changes`` are texts ``NAME:LIMIT=VALUE``, which change a strategy or make a new one out of ``execute``;
    ``described`` is YAML: ``strategies``, a list of ``name``, ``about``, ``base`` and ``set``; ``source`` is
    what it is called. Raises BadInput.
    """
    known = {strategy.name: strategy for strategy in BUILT_IN}
    known |= _described(described, known, source) if described is not None else {}
    for text in changes:
        name, limit, value = _change(text)
        base = known.get(name) or replace(known["execute"], name=name, about="Set on the command line.")
        known[name] = _changed(base, {limit: value})
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise BadInput("No strategy is named", todo=f"Name some of: {', '.join(known)}.")
    for name in wanted:
        if name not in known:
            raise BadInput(
                f"There is no strategy {name!r}", todo=f"{_nearest(name, known)}Known strategies: {', '.join(known)}."
            )
    return tuple(known[name] for name in dict.fromkeys(wanted))


def limits_under(strategy: BacktestStrategy, recorded: Limits) -> Limits:
    """The limits of a strategy, given those that were in force."""
    limits = recorded
    for name, value in strategy.changes:
        limits = _set(limits, tuple(name.split(".")), value)
    if not strategy.acts:
        return limits
    approve = replace(limits.approve, triggers=True, rules=(*limits.approve.rules, APPROVED))
    return replace(limits, mode=AgentMode.EXECUTE, approve=approve)


# --- what the user gives ----------------------------------------------------------------------------------------


class _DescribedStrategy(BaseModel):
    """A strategy of the user's file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Text
    about: Text | None = None
    base: Text = "execute"
    set: dict[str, Any] | None = None


class _DescribedStrategies(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    strategies: list[_DescribedStrategy]


def _described(text: str, known: Mapping[str, BacktestStrategy], source: str) -> dict[str, BacktestStrategy]:
    try:
        rows = _DescribedStrategies.model_validate(yaml_value(text)).strategies
    except ValidationError as error:
        raise _undescribed(source, _first_mistake(error)) from None
    except ValueError as error:
        raise _undescribed(source, reason(error)) from error
    found: dict[str, BacktestStrategy] = {}
    for row in rows:
        base = found.get(row.base) or known.get(row.base)
        if base is None:
            raise _undescribed(source, f"{row.name} has the base {row.base}, and there is no strategy of that name")
        found[row.name] = _changed(replace(base, name=row.name, about=row.about or base.about), row.set or {})
    return found


def _first_mistake(error: ValidationError) -> str:
    """Where in the file, and what."""
    first = error.errors(include_url=False)[0]
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]).lstrip(".")
    match first["type"]:
        case "missing":
            return f"{place} is missing"
        case "extra_forbidden":
            return f"{place} is none of the names that are expected"
        case "model_type" | "dict_type":
            return f"{place or 'the document'} is not a mapping"
        case kind:
            return f"{place} is not a {kind.partition('_')[0]}"


def _undescribed(source: str, why: str) -> BadInput:
    return BadInput(
        f"The strategies of {source} cannot be read",
        why=why,
        todo="Give YAML with a list named strategies, whose rows have name, about, base and set.",
    )


def _change(text: str) -> tuple[str, str, Any]:
    name, colon, rest = text.partition(":")
    limit, equals, value = rest.partition("=")
    if not (name.strip() and colon and limit.strip() and equals):
        raise BadInput(f"{text!r} changes no strategy", todo="Write NAME:LIMIT=VALUE, as patient:min_gain_share=0.1.")
    try:
        return name.strip(), limit.strip(), yaml_value(value)
    except ValueError as error:
        raise BadInput(f"The value of {limit.strip()} cannot be read", why=str(error)) from error


def _changed(strategy: BacktestStrategy, values: Mapping[str, Any]) -> BacktestStrategy:
    for name, value in values.items():
        try:
            checked(_set(Limits(), tuple(name.split(".")), value))
        except UnreadableError as error:
            raise BadInput(f"{value!r} is not a value of the limit {name}", why=str(error)) from error
    return replace(strategy, changes=(*strategy.changes, *values.items()))


def _nearest(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"Did you mean {near[0]}? " if near else ""


# --- into the limits --------------------------------------------------------------------------------------------


def _set(limits: Limits, path: tuple[str, ...], value: Any) -> Limits:
    """The limits with one changed. Raises BadInput for a name, UnreadableError for a value that cannot be."""
    match path:
        case ("group", *rest) if rest:
            return replace(
                limits,
                default_group=_with(limits.default_group, rest, value, path),
                groups={name: _with(of, rest, value, path) for name, of in limits.groups.items()},
            )
        case ("trigger",) | ("execute", "trigger"):
            changed = _with(limits, ("trigger",), value, path)
            of_a_group = {name: getattr(changed.trigger, name) for name in _hints(GroupTriggerLimits)}
            return replace(
                changed, group_triggers={name: GroupTriggerLimits(**of_a_group) for name in limits.group_triggers}
            )
        case ("trigger", *rest) | ("execute", "trigger", *rest) if rest[0] in _hints(GroupTriggerLimits):
            every = {name: _with(of, rest, value, path) for name, of in limits.group_triggers.items()}
            return replace(limits, trigger=_with(limits.trigger, rest, value, path), group_triggers=every)
        case _:
            return _with(limits, _path(path), value, path)


def _path(name: tuple[str, ...]) -> tuple[str, ...]:
    """Where the limit of that name in a record is, or a part of it."""
    for end in range(len(name), 0, -1):
        if (found := recorded_names().get(".".join(name[:end]))) is not None:
            return (*found, *name[end:])
    return name


_Of = typing.TypeVar("_Of")


def _with(of: _Of, path: Sequence[str], value: Any, whole: Sequence[str]) -> _Of:
    name, *rest = path
    hints = _hints(cast("Hashable", type(of)))
    if name not in hints or (rest and not is_dataclass(hints[name])):
        known = [
            *recorded_names(),
            *(f"group.{n}" for n in _hints(GroupLimits)),
            *(f"trigger.{n}" for n in _hints(GroupTriggerLimits)),
        ]
        raise BadInput(f"There is no limit {'.'.join(whole)}", todo=_nearest(".".join(whole), known).strip())
    new = _with(getattr(of, name), rest, value, whole) if rest else from_json(hints[name], _plain(hints[name], value))
    changed: _Of = replace(of, **{name: new})  # type: ignore[type-var]  # settings are dataclasses, all of them
    return changed


def _plain(hint: Any, value: Any) -> Any:
    """The name of an enum's member as people write it; YAML takes yes and no for booleans."""
    if not (isinstance(hint, type) and issubclass(hint, Enum)):
        return value
    word = {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    return word.upper().replace("-", "_").replace(" ", "_")


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
