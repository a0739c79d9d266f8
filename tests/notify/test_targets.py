"""Targets of the settings: where their addresses come from, and that no sentence, document or repr has one."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from agent.act.own_files import read_key_file
from agent.errors import ConfigError
from agent.notify import notifier
from agent.notify.notification import NotificationEvent
from agent.notify.notifier import addresses, outbox_limits, secrets_of
from agent.values.finding import FindingSeverity
from config import notify
from config.load import LoadedSettings, SettingsRefusedError, effective, load_settings

CANARY = "CANARYq7Zx2Wv9"
URL = f"slack://T1JJ3T3L2/A1BRTD4JD/{CANARY}"


def loaded(*assignments: str) -> LoadedSettings:
    return load_settings(assignments=[f"notify.{one}" for one in assignments], environ={})


def test_the_words_of_the_settings_are_those_of_the_code() -> None:
    assert tuple(NotificationEvent) == notify._EVENTS
    assert tuple(FindingSeverity) == notify._SEVERITIES


def test_a_target_has_what_its_settings_say(tmp_path: Path) -> None:
    file = tmp_path / "ops.url"
    file.write_text(f"{URL}\n")
    file.chmod(0o600)
    settings = loaded(
        f"targets.ops.url_file={file}", "targets.ops.events=rack,sight", "targets.ops.groups=bill*",
        f"targets.off.url={URL}", "targets.off.enabled=false", "most_per_hour=3",
    ).settings.notify  # fmt: skip
    [(target, url)] = addresses(settings, read_key_file)
    assert (target.name, url, target.groups) == ("ops", URL, ("bill*",))
    assert target.events == {NotificationEvent.RACK, NotificationEvent.SIGHT}
    assert target.severities == {FindingSeverity.WARNING, FindingSeverity.CRITICAL}
    assert [one.target.name for one in addresses(settings, read_key_file, ["off"])] == ["off"]
    assert outbox_limits(settings) == (30_000, 3, 3_600_000)


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        pytest.param(URL, 0o644, "other users may read or write it: chmod 600", id="others may read it"),
        pytest.param("", 0o600, "it has 0 lines, and one address is expected", id="empty"),
        pytest.param(f"{URL}\n{URL}", 0o600, "it has 2 lines, and one address is expected", id="two"),
        pytest.param(CANARY, 0o600, "its line is no URL of Apprise", id="no URL"),
        pytest.param(None, 0o600, "No such file or directory", id="absent"),
        pytest.param("ä", 0o600, "it is not ASCII text", id="not ASCII"),
    ],
)
def test_a_file_without_an_address_is_refused(tmp_path: Path, text: str | None, mode: int, why: str) -> None:
    file = tmp_path / "ops.url"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(ConfigError) as refused:
        addresses(loaded(f"targets.ops.url_file={file}").settings.notify, read_key_file)
    assert why in refused.value.why
    assert CANARY not in str(refused.value)


def test_a_name_that_is_no_target_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"notify.targets has no page: its names are: ops"):
        addresses(loaded(f"targets.ops.url={URL}").settings.notify, read_key_file, ["page"])


def test_without_apprise_a_target_is_refused_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(notifier, "find_spec", absent)
    assert addresses(loaded().settings.notify, read_key_file) == ()
    with pytest.raises(ConfigError, match=r"rackwise\[notify\]"):
        addresses(loaded(f"targets.ops.url={URL}").settings.notify, read_key_file)


FORMS = [
    URL, f"json://user:{CANARY}@127.0.0.1/x", f"json://127.0.0.1/{CANARY}?+H={CANARY}", f"tgram://123:{CANARY}/1",
    f"mailtos://u:{CANARY}@example.org?to=a@example.org", f"pagerduty://{CANARY}@{CANARY}2", f"{CANARY}://x",
]  # fmt: skip


@pytest.mark.parametrize("url", FORMS)
def test_no_document_of_the_settings_has_an_address(url: str) -> None:
    found = loaded(f"targets.ops.url={url}", "targets.ops.topics=a")
    rows = {name: value for name, value, _ in effective(found)}
    assert rows["notify.targets.ops.url"] == "******"
    assert url in found.secrets()
    shown = addresses(found.settings.notify, read_key_file)
    for text in (repr(rows), repr(found.settings), repr(shown), str(shown), "".join(found.notes)):
        assert CANARY not in text


MISTAKES: Mapping[str, typing.Sequence[str]] = {
    "both": (f"targets.ops.url={URL}", "targets.ops.url_file=/x"),
    "events": (f"targets.ops.url={URL}", "targets.ops.events=all"),
    "severities": (f"targets.ops.url={URL}", "targets.ops.severities="),
    "no URL": (f"targets.ops.url={CANARY}",),
    "misspelt": (f"targets.ops.ulr={URL}",),
    "no target": (f"targets.ops={URL}",),
    "no map": (f"targets=ops={URL}",),
    "page": (f"page=ftp://u:{CANARY}@example.org",),
    "neither": ("targets.ops.topics=a",),
    "too seldom": ("most_per_hour=0",),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_no_sentence_about_a_mistake_has_an_address(name: str) -> None:
    with pytest.raises(SettingsRefusedError) as refused:
        loaded(*MISTAKES[name])
    assert CANARY not in str(refused.value)


def test_the_log_is_told_the_parts_of_an_address_that_may_be_tokens_and_no_host_or_word() -> None:
    settings = loaded(f"targets.ops.url=json://user:{CANARY}@127.0.0.1:8080/rackwise-x/alertsroom/{CANARY}2").settings
    parts = set(secrets_of(addresses(settings.notify, read_key_file)))
    assert {CANARY, f"{CANARY}2"} < parts
    assert not {"127.0.0.1", "8080", "user", "alertsroom", "json"} & parts
