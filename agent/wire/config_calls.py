"""Configs in force, only the keys that are asked for: a topic has forty, and four of them matter here.

confluent-kafka cannot name keys; at twenty thousand topics that is a gigabyte of entries nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from agent.observation import Gap, Part
from agent.wire.connection import Connection
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed, from_error_name
from agent.wire.fanout import gather
from agent.wire.pool import Pool
from agent.wire.protocol import DESCRIBE_CONFIGS, error_name

_RESOURCES_PER_CALL = 2_000


class ResourceKind(IntEnum):
    """Kafka's numbers of what has configs."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class Configs(NamedTuple):
    """Resource -> key -> value in force; a key without a value is absent."""

    values: Mapping[str, Mapping[str, str]]
    gaps: tuple[Gap, ...]


def describe_configs(
    pool: Pool, kind: ResourceKind, names: Sequence[str], keys: Sequence[str] | None, deadline: Deadline
) -> Configs:
    """Configs of topics or groups, from any broker; ``keys`` None asks for all. A resource that failed is a gap."""
    part = Part.TOPIC_CONFIGS if kind is ResourceKind.TOPIC else Part.GROUP_CONFIGS
    batches = [names[at : at + _RESOURCES_PER_CALL] for at in range(0, len(names), _RESOURCES_PER_CALL)]
    jobs: dict[tuple[str, ...], Callable[[], list[Any]]] = {
        tuple(batch): partial(_ask_anyone, pool, partial(_ask, kind, batch, keys), deadline) for batch in batches
    }
    return _collect(part, gather(jobs, deadline, name="configs"), str)


def describe_broker_configs(pool: Pool, keys: Sequence[str], deadline: Deadline) -> Configs:
    """Configs of every broker that serves, each from the broker itself; a broker that failed is a gap."""
    asks = {broker: partial(_ask, ResourceKind.BROKER, (str(broker),), keys) for broker in pool.broker_ids}
    answers = pool.ask_each(asks, deadline, name="broker configs")
    named: dict[tuple[str, ...], list[Any] | CallFailed] = {
        (str(broker),): answer for broker, answer in answers.items()
    }
    return _collect(Part.BROKER_CONFIGS, named, lambda name: f"broker {name}")


def _ask_anyone(pool: Pool, ask: Callable[[Connection, Deadline], list[Any]], deadline: Deadline) -> list[Any]:
    return pool.ask_any(ask, deadline)[1]


def _ask(
    kind: ResourceKind, names: Sequence[str], keys: Sequence[str] | None, connection: Connection, until: Deadline
) -> list[Any]:
    resource = DESCRIBE_CONFIGS.request.DescribeConfigsResource
    wanted = None if keys is None else list(keys)
    message = DESCRIBE_CONFIGS.request(
        resources=[resource(resource_type=int(kind), resource_name=name, configuration_keys=wanted) for name in names]
    )
    version = connection.version(DESCRIBE_CONFIGS, oldest=1)
    return list(connection.call(DESCRIBE_CONFIGS, message, until, version=version).results)


def _collect(
    part: Part, answers: Mapping[tuple[str, ...], list[Any] | CallFailed], subject: Callable[[str], str]
) -> Configs:
    values: dict[str, dict[str, str]] = {}
    gaps: list[Gap] = []
    for names, answer in answers.items():
        if isinstance(answer, CallFailed):
            whole = subject(names[0]) if len(names) == 1 else ""
            gaps.append(Gap(part, answer.cause, whole, _with_count(answer.detail, names)))
            continue
        for row in answer:
            refusal = error_name(row.error_code)
            if refusal is None:
                values[row.resource_name] = {
                    entry.name: entry.value for entry in row.configs if entry.value is not None
                }
            else:
                failure = from_error_name(refusal, row.error_message)
                gaps.append(Gap(part, failure.cause, subject(row.resource_name), failure.detail))
    return Configs(values, tuple(gaps))


def _with_count(detail: str, names: Iterable[str]) -> str:
    count = len(list(names))
    return detail if count == 1 else f"{detail} (asked about {count})"
