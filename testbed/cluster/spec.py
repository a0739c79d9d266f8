"""The specification of an embedded cluster, and of faults of connections to it.

Invariant: a spec is a plain value; nothing is started, written or looked up by making one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from testbed.cluster.errors import BadSpec

DEFAULT_VERSION = "4.3.1"
_RACK_OR_NONE = re.compile(r"[^\s,=]+")


class KafkaVersion(NamedTuple):
    """A Kafka release, so that 3.10 counts as newer than 3.9."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> KafkaVersion:
        """The version in a text such as `4.3.1`. Raises BadSpec when it is none, or too old for KRaft."""
        found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", text.strip())
        if found is None:
            raise BadSpec(f"{text!r} is no Kafka version", todo=f"Give three numbers, for example {DEFAULT_VERSION}.")
        version = cls(*(int(part) for part in found.groups()))
        if version < OLDEST:
            raise BadSpec(
                f"Kafka {text} is too old for the embedded cluster",
                why="it runs KRaft with SCRAM users",
                todo="Give 3.5.0 or newer.",
            )
        return version


OLDEST = KafkaVersion(3, 5, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecurity:
    """TLS and SCRAM-SHA-512 on the client listeners, and Kafka's StandardAuthorizer behind them.

    The brokers among themselves stay in plain text on 127.0.0.1. The first user is the super user.
    """

    users: Mapping[str, str] = field(default_factory=lambda: {"admin": "admin-secret", "rackwise": "rackwise-secret"})
    """User name -> password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """An embedded cluster: one combined broker and controller per rack."""

    version: str = DEFAULT_VERSION
    racks: tuple[str | None, ...] = ("a", "b", "c")
    """One broker each, ids from 1; None is a broker without `broker.rack`."""
    broker_properties: Mapping[str, str] = field(default_factory=dict)
    """Kafka's dotted names; they win over the settings of `testbed.cluster.settings`."""
    rack_aware_selector: bool = True
    """False leaves `replica.selector.class` out, as a cluster without follower fetching has it."""
    jmx: bool = False
    """Each broker serves its byte counters over HTTP."""
    proxied: bool = False
    """Each broker has a second client listener, which advertises the recording proxy."""
    security: ClusterSecurity | None = None
    plugins: tuple[str, ...] = ()
    """Paths of jars that the brokers load beside Kafka's own."""
    heap: str = "512m"

    def __post_init__(self) -> None:
        KafkaVersion.parse(self.version)
        if not self.racks:
            raise BadSpec("A cluster needs at least one broker", todo="Give at least one rack.")
        for rack in self.racks:
            if rack is not None and not _RACK_OR_NONE.fullmatch(rack):
                raise BadSpec(f"{rack!r} is no rack name", todo="Give a name without blanks, commas or equals signs.")
        if not re.fullmatch(r"\d+[mgMG]", self.heap):
            raise BadSpec(f"{self.heap!r} is no heap size", todo="Give a number with m or g, for example 512m.")

    @property
    def kafka(self) -> KafkaVersion:
        """The version as numbers."""
        return KafkaVersion.parse(self.version)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of the brokers, in the order of `racks`."""
        return tuple(range(1, len(self.racks) + 1))


class ConnectionFaultKind(StrEnum):
    """What happens to the connections of one broker."""

    PASS = "pass"  # noqa: S105 a mode, no password
    DELAY = "delay"
    """Each request waits before it is passed on."""
    BLACKHOLE = "blackhole"
    """Connections are taken and stay open; nothing passes either way until the fault is lifted."""
    MUTE = "mute"
    """Requests reach the broker and are done; answers do not come back until the fault is lifted."""
    RESET = "reset"
    """Open connections are reset, new ones as soon as they are made."""
    REFUSE = "refuse"
    """Open connections are reset, and no port is open."""
    NO_BROKERS = "no-brokers"
    """Answers pass, but those that list brokers list none, as from a cluster that is still forming."""


class ConnectionFault(NamedTuple):
    """A mode and, for `DELAY`, how long."""

    kind: ConnectionFaultKind = ConnectionFaultKind.PASS
    delay_ms: int = 0


PASS = ConnectionFault()
