"""Documents of ``config``, ``assign``, ``optimize``, ``plugin jar``, ``notify test``; rows of settings in force."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class SettingRow(TypedDict):
    """A setting in force."""

    setting: str
    """Its public name, dotted."""
    value: Any
    """As it may be written in a settings file; secrets are stars, null is no value."""
    origin: NotRequired[str]
    """Where it was set; with --origin."""


class LocatorRow(TypedDict):
    """What a rack locator answered."""

    locator: str
    names: int
    """Names of hosts, brokers or clients that it knows."""


class SourceRow(TypedDict):
    """A file, an environment variable or an option that settings were read from."""

    kind: Literal["flag", "environment", "file", "properties"]
    name: str
    """The option, the variable or the path."""
    settings: int
    """How many settings it has; a stronger source may override them."""
    named_by: str | None
    """The environment variable that names the file; null where the command line does, or it is no file."""


class CheckedSettings(TypedDict):
    """Settings that can be used; mistakes end with exit code 2 and sentences on stderr instead."""

    mode: Literal["observe", "propose", "execute"]
    sources: list[SourceRow]
    """Everything that was read, the strongest first; what none of them sets has its default."""
    bootstrap_servers: list[str]
    """The brokers that the settings point to; empty where none is named."""
    bootstrap_servers_from: str | None
    """Where they were set; null where none is named."""
    executor_bootstrap_servers: list[str]
    """The brokers of the executor (mode execute), which are the same unless execute.kafka names others."""
    locators: list[LocatorRow]


class AssignedCase(TypedDict):
    """The output for one case."""

    id: str
    output: Any
    """In the form of the file's assignor, as tests/golden/README.md describes it."""


class AssignDocument(TypedDict):
    """What Kafka's own assignors and replica placers give for the cases of a file."""

    results: list[AssignedCase]


class OptimizeDocument(TypedDict):
    """The assignment of Kafka Streams tasks that costs least."""

    client: list[int]
    """For each task of the problem, in its order: the number of the client that runs it, from 0."""
    cost: int
    """By --traffic-cost and --non-overlap-cost."""
    cross_rack: int
    """Source partitions without a replica in the rack of the client that reads them."""
    moved: int
    """Tasks on another client than before."""
    lower_bound: int
    """No assignment within the bounds costs less."""
    optimal: bool
    """Whether cost is the lower bound."""
    seconds: dict[str, float]
    """Seconds of CPU by step: read, model, solve and expand."""


def setting_rows(effective: Iterable[tuple[str, Any, object]]) -> list[SettingRow]:
    """One row for each setting; ``effective``: name, value (secrets are masked already) and origin."""
    return [{"setting": name, "value": value, "origin": str(where)} for name, value, where in effective]


class PluginJar(TypedDict):
    """The jar of the plug-in for brokers."""

    path: str
    """Where it is now: in the directory, or in this installation where none was named."""
    sha256: str
    """Hexadecimal digits."""
    bytes: int
    written: bool
    """Whether it was written now; false also where the directory had the same jar."""
    broker_lines: list[str]
    """Settings for every broker, once all of them have the jar."""


class TargetRow(TypedDict):
    """A target of notifications, and what it answered to a test message."""

    target: str
    """Its name in notify.targets."""
    service: str
    """The service behind its address, as Apprise names it; the address itself is a secret."""
    accepted: bool
    answer: str
    """As a sentence."""
    took_ms: int
