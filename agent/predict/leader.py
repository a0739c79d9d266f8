"""Whose code assigns the partitions of a classic group: Java's, librdkafka's or a Python client's.

The leader is one of the members, and brokers do not tell which. So a group has a known leader only when all its members
run the same client: by what the user says of the group, else by the client ids that clients give themselves.
"""

from __future__ import annotations

import re
from enum import StrEnum

from agent.values.snapshot import ConsumerGroup


class Leader(StrEnum):
    """The client software of a group's leader."""

    JAVA = "Java"
    LIBRDKAFKA = "librdkafka"
    PYTHON = "a Python client"
    UNKNOWN = "unknown"


_BY_SOFTWARE = (
    (re.compile(r"(?i)kafka-python|aiokafka"), Leader.PYTHON),
    (re.compile(r"(?i)librdkafka|confluent-kafka|rdkafka"), Leader.LIBRDKAFKA),
    (re.compile(r"(?i)java"), Leader.JAVA),
)
"""Names as clients send them in ``client.software.name`` (KIP-511)."""
_BY_CLIENT_ID = (
    (re.compile(r"consumer-.+-\d+"), Leader.JAVA),
    (re.compile(r"rdkafka"), Leader.LIBRDKAFKA),
    (re.compile(r"kafka-python-.+|aiokafka-.+"), Leader.PYTHON),
)
"""What clients call themselves unless they are given a ``client.id``."""


def leader_of(group: ConsumerGroup, software: str | None) -> Leader:
    """The leader's client, as far as it can be told."""
    if software is not None:
        return next((leader for name, leader in _BY_SOFTWARE if name.search(software)), Leader.UNKNOWN)
    first = _by_client_id(group.members[0].client_id) if group.members else Leader.UNKNOWN
    others = () if first is Leader.UNKNOWN else group.members[1:]
    return first if all(_by_client_id(member.client_id) is first for member in others) else Leader.UNKNOWN


def _by_client_id(client_id: str) -> Leader:
    return next((leader for name, leader in _BY_CLIENT_ID if name.fullmatch(client_id)), Leader.UNKNOWN)
