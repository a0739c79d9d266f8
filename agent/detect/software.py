"""Which members run kafka-python or aiokafka: no version of theirs sends a rack, so no upgrade makes them.

Told by the client id that the libraries give themselves, or by what the settings say of the group. A subscription of
version 0 alone does not tell: old clients of all kinds send it. Their remedy is an assignor of `assignors.clients`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent.values.kafka import COOPERATIVE_STICKY, RANGE, STICKY
from agent.values.snapshot import Member

KAFKA_PYTHON = "kafka-python"
AIOKAFKA = "aiokafka"

_NAMED = tuple((name, re.compile(rf"(?i)\b{name}\b")) for name in (AIOKAFKA, KAFKA_PYTHON))
_BY_CLIENT_ID = tuple((name, re.compile(rf"{name}-.+")) for name in (AIOKAFKA, KAFKA_PYTHON))
_DROP_INS = {KAFKA_PYTHON: (RANGE, STICKY, COOPERATIVE_STICKY), AIOKAFKA: (RANGE, STICKY)}
"""Kafka's names under which `assignors.clients` has an assignor for a library; see docs/clients.md."""


def python_library(member: Member, software: str | None) -> str | None:
    """``kafka-python`` or ``aiokafka``, or None for another client, or one that is unknown.

    ``software`` is what the settings say that the group's members run.
    """
    if software is not None:
        return next((name for name, pattern in _NAMED if pattern.search(software)), None)
    return next((name for name, pattern in _BY_CLIENT_ID if pattern.fullmatch(member.client_id)), None)


def libraries_of(members: Iterable[Member], software: str | None) -> tuple[str, ...]:
    """The Python libraries that these members run, sorted; empty where none is known to run one."""
    return tuple(sorted({name for one in members if (name := python_library(one, software)) is not None}))


def drop_in(library: str, assignor: str | None, rack: str) -> str:
    """The arguments of a consumer of that library that make its group look at racks, with their import as a comment."""
    name = assignor if assignor in _DROP_INS[library] else _DROP_INS[library][0]
    module = library.replace("-", "_")
    return (
        f'client_rack="{rack}", partition_assignment_strategy=Strategy("{name}", client_rack="{rack}")'
        f"  # from assignors.clients.{module} import Strategy, see docs/clients.md"
    )
