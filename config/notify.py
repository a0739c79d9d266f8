"""Settings of notifications: targets by name, the events that each gets, and how often.

A target's URL holds its token, so it is a secret as a whole: no sentence, document or record of a mistake shows it.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from config.setting_mistake import SettingMistake
from config.value_kinds import Millis, Names, NoneWord, Text, at_least, at_most

_STRICT = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
_EVENTS = ("finding", "proposal", "plan-failed", "plan-done", "rack", "sight", "leadership")
_SEVERITIES = ("info", "warning", "critical")


def _some_of(offered: tuple[str, ...]) -> AfterValidator:
    """Refuses a word that is not offered, and an empty list."""

    def check(names: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in offered]
        if unknown or not names:
            raise ValueError(f"one or more of {', '.join(offered)} are expected")
        return names

    return AfterValidator(check)


def _service_url(value: object) -> object:
    """Only its form, and without quoting it: the parts of a URL are secret."""
    if value is None:
        return None
    if not isinstance(value, str) or "://" not in value:
        raise ValueError("a URL of Apprise is expected, such as slack://... or mailtos://...")
    return value.strip()


class NotifyTargetSettings(BaseModel):
    """A place that notifications are sent to."""

    model_config = _STRICT

    url: Annotated[Annotated[str, BeforeValidator(_service_url)] | None, NoneWord] = None
    """Address in the form of Apprise, with its token, such as ``slack://...``; shown as stars. Better: url_file."""
    url_file: Annotated[Text | None, NoneWord] = None
    """File whose one line is that address; other users may not read it."""
    enabled: bool = True
    """Whether anything is sent to it."""
    events: Annotated[Names, _some_of(_EVENTS)] = ("finding", "proposal", "plan-failed", "rack", "sight")
    """Events that it gets: finding, proposal, plan-failed, plan-done, rack, sight, leadership."""
    severities: Annotated[Names, _some_of(_SEVERITIES)] = ("warning", "critical")
    """Severities of the findings that it gets: info, warning, critical."""
    topics: Names = ()
    """Shell-style patterns of topics; where topics or groups are set, it gets findings and proposals about these only.
    """
    groups: Names = ()
    """Shell-style patterns of groups; as topics."""

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if (self.url is None) is (self.url_file is None):
            raise SettingMistake("url_file", "one address is expected: set url_file, or url, and not both")
        return self


class NotifySettings(BaseModel):
    """Notifications to chats, pagers, mail and webhooks through Apprise; none without a target."""

    model_config = _STRICT

    targets: dict[Text, NotifyTargetSettings] = Field(default_factory=dict)
    """Targets by name, each with its address and the events that it gets."""
    group_for_ms: Annotated[Millis, at_most("1h")] = Field(default=30_000, alias="group_for")
    """Time after an event in which further ones join its message."""
    most_per_hour: Annotated[int, Field(ge=1, le=1_000)] = 20
    """Most messages per hour to one target; further events wait and share the next message."""
    give_up_after_ms: Annotated[Millis, at_least("1m"), at_most("1d")] = Field(default=3_600_000, alias="give_up_after")
    """A message that its target does not accept is tried again for this long; then it is counted as lost."""
