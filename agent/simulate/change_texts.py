"""Simulated changes as texts, as the command line and the page's form take them: ``GROUP=RACK`` of ``add-member``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.errors import BadInput
from agent.simulate.what_if import (
    AddBroker,
    AddMember,
    AddRack,
    AddReplica,
    RemoveBroker,
    RemoveMember,
    RemoveRack,
    RemoveReplica,
    SetReplicationFactor,
    SetStandbys,
    SetStrategy,
    SimulatedChange,
)
from assignors.problem import TopicPartition

_MOST_DIGITS = 18


class ChangeQuestion(NamedTuple):
    """A kind of change that can be asked for."""

    name: str
    """Of the option, without its dashes."""
    form: str
    """How its text is written."""
    sentence: str
    """What it does, as the beginning of a sentence."""


QUESTIONS = (
    ChangeQuestion("add-member", "GROUP=RACK", "Add a consumer or an instance; GROUP alone: without a rack"),
    ChangeQuestion("remove-member", "GROUP=MEMBER", "Remove a member, by member, client, instance or process id"),
    ChangeQuestion("strategy", "GROUP=NAME", "Change the assignor, or rack.aware.assignment.strategy of Streams"),
    ChangeQuestion("standbys", "GROUP=N", "Change num.standby.replicas of Streams"),
    ChangeQuestion("remove-rack", "RACK", "Remove a rack with all its brokers and readers"),
    ChangeQuestion("remove-broker", "ID", "Take a broker offline, with its replicas"),
    ChangeQuestion("add-rack", "RACK=ID,ID", "Add a rack with new brokers"),
    ChangeQuestion("add-broker", "ID=RACK", "Add a broker, in that rack"),
    ChangeQuestion("add-replica", "TOPIC-PARTITION=ID", "Add a replica on that broker"),
    ChangeQuestion("remove-replica", "TOPIC-PARTITION=ID", "Remove the replica on that broker"),
    ChangeQuestion("replication-factor", "TOPIC=N", "Give each partition N replicas"),
)
"""Every kind, in the order in which `changes_of` puts them."""


def changes_of(texts: Mapping[str, Sequence[str]]) -> tuple[SimulatedChange, ...]:
    """The changes of these texts, by the names of `QUESTIONS`. Raises BadInput for one that cannot be read."""

    def of(name: str) -> Sequence[str]:
        return texts.get(name, ())

    changes: list[SimulatedChange] = [*_members(of("add-member"), of("remove-member"))]
    changes += _settings(of("strategy"), of("standbys"))
    changes += [RemoveRack(rack) for rack in of("remove-rack")]
    changes += [RemoveBroker(_signed("--remove-broker", one)) for one in of("remove-broker")]
    changes += _places(of("add-rack"), of("add-broker"))
    changes += _replicas(of("add-replica"), of("remove-replica"), of("replication-factor"))
    return tuple(changes)


def named_number(text: str, option: str) -> tuple[str, int]:
    """``NAME=N`` as its two parts. Raises ``BadInput``."""
    name, _, number = text.rpartition("=")
    if not name or not _is_whole(number.strip().removeprefix("-")):
        raise BadInput(f"{option} {text} cannot be read", why="it is not NAME=NUMBER", todo=f"Write {option} NAME=N.")
    return name, int(number)


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number of a size that anything here can have."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def _members(add: Sequence[str], remove: Sequence[str]) -> list[SimulatedChange]:
    changes: list[SimulatedChange] = []
    for text in add:
        group, _, rack = text.rpartition("=") if "=" in text else (text, "", None)
        if not group or rack == "":
            raise _unreadable("--add-member", text, "GROUP=RACK", "GROUP=RACK, or GROUP alone for no rack")
        changes.append(AddMember(group, rack))
    return changes + [RemoveMember(*_pair("--remove-member", text, "GROUP=MEMBER")) for text in remove]


def _places(racks: Sequence[str], brokers: Sequence[str]) -> list[SimulatedChange]:
    changes: list[SimulatedChange] = []
    for text in racks:
        rack, ids = _pair("--add-rack", text, "RACK=ID,ID")
        changes.append(AddRack(rack, tuple(_number("--add-rack", text, one, "RACK=ID,ID") for one in ids.split(","))))
    for text in brokers:
        broker, rack = _pair("--add-broker", text, "ID=RACK")
        changes.append(AddBroker(_number("--add-broker", text, broker, "ID=RACK"), rack))
    return changes


def _replicas(add: Sequence[str], remove: Sequence[str], factors: Sequence[str]) -> list[SimulatedChange]:
    changes: list[SimulatedChange] = []
    for option, kind, texts in (("--add-replica", AddReplica, add), ("--remove-replica", RemoveReplica, remove)):
        form = "TOPIC-PARTITION=ID"
        for text in texts:
            partition, broker = _pair(option, text, form)
            topic, _, number = partition.rpartition("-")
            if not topic:
                raise _unreadable(option, text, form)
            changes.append(
                kind(TopicPartition(topic, _number(option, text, number, form)), _number(option, text, broker, form))
            )
    return changes + [SetReplicationFactor(*named_number(text, "--replication-factor")) for text in factors]


def _settings(strategies: Sequence[str], standbys: Sequence[str]) -> list[SimulatedChange]:
    changes: list[SimulatedChange] = [SetStrategy(*_pair("--strategy", text, "GROUP=NAME")) for text in strategies]
    return changes + [SetStandbys(*named_number(text, "--standbys")) for text in standbys]


def _pair(option: str, text: str, form: str) -> tuple[str, str]:
    left, _, right = text.rpartition("=")
    if not left or not right:
        raise _unreadable(option, text, form)
    return left, right


def _number(option: str, text: str, number: str, form: str) -> int:
    if not _is_whole(number.strip()):
        raise _unreadable(option, text, form)
    return int(number)


def _signed(option: str, text: str) -> int:
    """Also below zero: the change itself refuses a broker that does not exist."""
    sign = -1 if text.startswith("-") else 1
    return sign * _number(option, text, text.removeprefix("-"), "ID")


def _unreadable(option: str, text: str, form: str, todo: str | None = None) -> BadInput:
    return BadInput(f"{option} {text} cannot be read", why=f"it is not {form}", todo=f"Write {option} {todo or form}.")
