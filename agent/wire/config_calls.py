"""Configs of topics in force, only the keys that are asked for: a topic has forty, and four of them matter here.

confluent-kafka cannot name keys; at twenty thousand topics that is a gigabyte of entries nobody reads. It serves for
the configs of brokers and groups (`agent.observe.admin`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from agent.observation import Gap, Part
from agent.wire.connection import Connection
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed, from_error_name
from agent.wire.fanout import gather
from agent.wire.pool import Pool
from agent.wire.protocol import DESCRIBE_CONFIGS, error_name

_TOPICS_PER_CALL = 2_000
_TOPIC = 2


class TopicConfigs(NamedTuple):
    """Topic -> key -> value in force; a key without a value is absent."""

    values: dict[str, dict[str, str]]
    gaps: tuple[Gap, ...]


def describe_topic_configs(pool: Pool, names: Sequence[str], keys: Sequence[str], deadline: Deadline) -> TopicConfigs:
    """Those configs of each topic, from any broker; a topic that failed is a gap."""
    slices = [names[at : at + _TOPICS_PER_CALL] for at in range(0, len(names), _TOPICS_PER_CALL)]
    jobs = {number: partial(pool.ask_any, partial(_ask, some, keys), deadline) for number, some in enumerate(slices)}
    values: dict[str, dict[str, str]] = {}
    gaps: list[Gap] = []
    for number, answer in gather(jobs, deadline, name="topic configs").items():
        if isinstance(answer, CallFailed):
            subject = "" if len(slices) == 1 else f"{len(slices[number])} topics"
            gaps.append(Gap(Part.TOPIC_CONFIGS, answer.cause, subject, answer.detail))
            continue
        for row in answer[1]:
            refusal = error_name(row.error_code)
            if refusal is None:
                values[row.resource_name] = {one.name: one.value for one in row.configs if one.value is not None}
            else:
                failure = from_error_name(refusal, row.error_message)
                gaps.append(Gap(Part.TOPIC_CONFIGS, failure.cause, row.resource_name, failure.detail))
    return TopicConfigs(values, tuple(gaps))


def _ask(names: Sequence[str], keys: Sequence[str], connection: Connection, until: Deadline) -> list[Any]:
    resource = DESCRIBE_CONFIGS.request.DescribeConfigsResource
    message = DESCRIBE_CONFIGS.request(
        resources=[resource(resource_type=_TOPIC, resource_name=name, configuration_keys=list(keys)) for name in names]
    )
    version = connection.version(DESCRIBE_CONFIGS, oldest=1)
    return list(connection.call(DESCRIBE_CONFIGS, message, until, version=version).results)
