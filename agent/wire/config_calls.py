"""Configs in force, only the keys that are asked for: a topic has forty, and six of them matter here.

confluent-kafka cannot name keys: at twenty thousand topics that is a gigabyte of unread entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from agent.values.observation import Gap, Part
from agent.wire.connection import Connection
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed, from_error_name
from agent.wire.fanout import gather
from agent.wire.pool import Pool
from agent.wire.protocol import DESCRIBE_CONFIGS, error_name

_RESOURCES_PER_CALL = 2_000


class _Kind(IntEnum):
    """Kafka's numbers of what has configs."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Configs(NamedTuple):
    """Resource name -> key -> value in force; a key without a value is absent."""

    values: Mapping[str, Mapping[str, str]]
    gaps: tuple[Gap, ...]


def describe_topic_configs(pool: Pool, topics: Sequence[str], keys: Sequence[str], deadline: Deadline) -> Configs:
    """Those configs of each topic, from any broker; a topic that failed is a gap."""
    return _anywhere(pool, Part.TOPIC_CONFIGS, partial(_ask, _Kind.TOPIC, keys), topics, deadline)


def describe_group_configs(pool: Pool, groups: Sequence[str], deadline: Deadline) -> Configs:
    """All configs of each group, from any broker (KIP-848 and KIP-1071 groups have them); a failure is a gap."""
    return _anywhere(pool, Part.GROUP_CONFIGS, partial(_ask, _Kind.GROUP, None), groups, deadline)


def describe_broker_configs(pool: Pool, keys: Sequence[str], deadline: Deadline) -> Configs:
    """Those configs of every broker that serves, each from the broker itself; a broker that failed is a gap."""
    asks = {broker: partial(_ask, _Kind.BROKER, keys, (str(broker),)) for broker in pool.broker_ids}
    answers = pool.ask_each(asks, deadline, name="broker configs")
    named = [((str(broker),), answer) for broker, answer in answers.items()]
    return _collected(Part.BROKER_CONFIGS, named, prefix="broker ")


_Answers = Iterable[tuple[Sequence[str], list[Any] | CallFailed]]


def _anywhere(
    pool: Pool, part: Part, ask: Callable[..., list[Any]], names: Sequence[str], deadline: Deadline
) -> Configs:
    slices = [names[at : at + _RESOURCES_PER_CALL] for at in range(0, len(names), _RESOURCES_PER_CALL)]
    jobs = {number: partial(_ask_any, pool, partial(ask, some), deadline) for number, some in enumerate(slices)}
    answers = gather(jobs, deadline, name=str(part))
    return _collected(part, [(slices[number], answer) for number, answer in answers.items()], prefix="")


def _ask_any(pool: Pool, ask: Callable[[Connection, Deadline], list[Any]], deadline: Deadline) -> list[Any]:
    return pool.ask_any(ask, deadline)[1]


def _ask(
    kind: _Kind, keys: Sequence[str] | None, names: Sequence[str], connection: Connection, until: Deadline
) -> list[Any]:
    resource = DESCRIBE_CONFIGS.request.DescribeConfigsResource
    wanted = None if keys is None else list(keys)
    message = DESCRIBE_CONFIGS.request(
        resources=[resource(resource_type=int(kind), resource_name=name, configuration_keys=wanted) for name in names]
    )
    version = connection.version(DESCRIBE_CONFIGS, oldest=1)
    return list(connection.call(DESCRIBE_CONFIGS, message, until, version=version).results)


def _collected(part: Part, answers: _Answers, *, prefix: str) -> Configs:
    values: dict[str, Mapping[str, str]] = {}
    gaps: list[Gap] = []
    for names, answer in answers:
        if isinstance(answer, CallFailed):
            subject = f"{prefix}{names[0]}" if len(names) == 1 else f"{len(names)} of them"
            gaps.append(Gap(part, answer.cause, subject, answer.detail))
            continue
        for row in answer:
            refusal = error_name(row.error_code)
            if refusal is None:
                values[row.resource_name] = {one.name: one.value for one in row.configs if one.value is not None}
            else:
                failure = from_error_name(refusal, row.error_message)
                gaps.append(Gap(part, failure.cause, f"{prefix}{row.resource_name}", failure.detail))
    return Configs(values, tuple(gaps))
