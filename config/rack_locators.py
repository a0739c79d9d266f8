"""Rack locators (KIP-36's two settings): sources of racks besides ``broker.rack`` and ``client.rack``.

``rack.locator.class`` lists locators in order, and ``rack.locator.properties`` has their properties under their names.
A locator may be listed more than once with a label, as ``file:brokers`` and ``file:clients``. Other names are Python
entry points; their properties may hold secrets and are never shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from importlib.metadata import entry_points
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_serializer, model_validator

from config.locator_properties import BUILT_IN, WIRE, LocatorSettings, locator_settings
from config.setting_mistake import SettingMistake, nearest
from config.value_kinds import Names, Text

ENTRY_POINTS = "rackwise.rack_locators"


def _property(value: Any) -> Any:
    """Text, or a list of texts; numbers are read as they are written."""
    if isinstance(value, list | tuple):
        return tuple(_property(item) for item in value)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError("a text or a list of texts is expected; put a bare yes, no or ~ in quotes, as YAML reads it anew")


Property = Annotated[
    str | tuple[str, ...],
    BeforeValidator(_property),
    WithJsonSchema({"type": ["string", "number", "object", "array"]}),
]


class RackLocatorSettings(BaseModel):
    """Where the racks of brokers and clients come from (KIP-36's RackLocator)."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    classes: Names = Field(default=(WIRE,), alias="class")
    """Rack locators in order, the first that knows a rack wins: ``wire`` (broker.rack and client.rack), ``file``,
    ``command``, ``regex``, ``cidr``, ``alias`` or a Python entry point.
    """
    properties: dict[Text, Property] = Field(default_factory=dict, repr=False)
    """Properties of the locators: ``file.path``, ``command.argv``, ``regex.client.id.PATTERN``, ``cidr.NETWORK``,
    ``alias.NAME``.
    """

    @model_validator(mode="after")
    def _usable(self) -> Self:
        _ = self.locators
        return self

    @field_serializer("properties", when_used="json")
    def _masked(self, properties: dict[str, Any]) -> dict[str, Any]:
        return {key: value if _built_in(key) else "******" for key, value in properties.items()}

    @cached_property
    def locators(self) -> tuple[LocatorSettings, ...]:
        """Every locator in its order. Raises SettingMistake."""
        _check_names(self.classes)
        given = self._given()
        return tuple(locator_settings(name, given[name]) for name in self.classes)

    def secrets(self) -> tuple[str, ...]:
        """What entry points are given, for the log's redaction."""
        return tuple(value for locator in self.locators for value in locator.properties.values())

    def notes(self) -> tuple[str, ...]:
        """What can be used and may not be meant."""
        found: list[str] = []
        if WIRE not in [name.partition(":")[0] for name in self.classes]:
            sentence = "leaves out wire, so broker.rack and client.rack are ignored"
            found.append(f"rack.locator.class {sentence}")
        unused = [key for key in self.properties if _owner(key, self.classes) is None]
        if unused:
            kinds = ", ".join(sorted({key.partition(".")[0] for key in unused}))
            found.append(f"rack.locator.properties has properties of {kinds}, but rack.locator.class does not list it")
        return tuple(found)

    def _given(self) -> dict[str, dict[str, str | tuple[str, ...]]]:
        """Locator -> its properties, without its name."""
        given: dict[str, dict[str, str | tuple[str, ...]]] = {name: {} for name in self.classes}
        for key, value in self.properties.items():
            owner = _owner(key, self.classes)
            if owner is not None:
                given[owner][key[len(owner) + 1 :]] = value
            elif not _built_in(key):
                raise _no_owner(key, self.classes)
        return given


def _owner(key: str, names: Iterable[str]) -> str | None:
    return max((name for name in names if key.startswith(f"{name}.")), key=len, default=None)


def _built_in(key: str) -> bool:
    return key.partition(".")[0].partition(":")[0] in BUILT_IN


def _no_owner(key: str, names: tuple[str, ...]) -> SettingMistake:
    first = key.partition(".")[0]
    near = nearest(first, (*names, *BUILT_IN))
    hint = f"; did you mean {near}{key[len(first) :]}?" if near else ""
    return SettingMistake(f"properties.{key}", f"no locator of rack.locator.class has this prefix{hint}")


def _check_names(names: tuple[str, ...]) -> None:
    if not names:
        raise SettingMistake("class", f"it lists no locator; {WIRE} uses broker.rack and client.rack")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingMistake("class", f"{twice} is listed twice; give the second a label, such as {twice}:second")
    for name in names:
        kind, colon, label = name.partition(":")
        if colon and not label:
            raise SettingMistake("class", f"{name} has an empty label")
        if kind not in BUILT_IN and not entry_points(group=ENTRY_POINTS, name=kind):
            raise _no_locator(kind)


def _no_locator(kind: str) -> SettingMistake:
    installed = sorted({point.name for point in entry_points(group=ENTRY_POINTS)})
    near = nearest(kind, (*BUILT_IN, *installed))
    if near:
        return SettingMistake("class", f"{kind} is not a rack locator; did you mean {near}?")
    offered = ", ".join((*BUILT_IN, *installed))
    others = f"Python entry points of group {ENTRY_POINTS}" + (" that are installed" if not installed else "")
    return SettingMistake("class", f"{kind} is not a rack locator; use one of {offered}, or {others}")
