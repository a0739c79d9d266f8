"""What the agent makes of the settings of its server: keys that vouch, and a warning where tokens travel in clear."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog

from agent.act.own_files import command_witness, witness_keys
from agent.daemon.start import _warn_of_clear_text
from agent.journal.entries import JournalKey
from config.http_settings import HttpSettings


def test_agents_vouch_with_the_journals_key_else_with_one_of_the_process(tmp_path: Path) -> None:
    file = tmp_path / "journal.key"
    file.touch(0o600)
    file.write_text("the new key of the executors\nthe former key of the executors\n")
    keys = witness_keys(str(file))
    assert keys == (JournalKey(b"the new key of the executors"), JournalKey(b"the former key of the executors"))
    (own,) = witness_keys(None)
    assert len(own.secret) == 32
    assert command_witness("rw-1", None).keys == (own,), "the desk and the leader have the same one"


@pytest.mark.parametrize(
    ("given", "warns"),
    [
        ({"bind": "0.0.0.0", "auth": {"tokens_file": "/x"}}, True),  # noqa: S104
        ({"bind": "0.0.0.0", "auth": {"tokens_file": "/x"}, "url": "http://a.example"}, True),  # noqa: S104
        ({"bind": "0.0.0.0", "auth": {"tokens_file": "/x"}, "url": "https://a.example"}, False),  # noqa: S104
        ({"bind": "0.0.0.0", "auth": {"tokens_file": "/x"}, "tls": {"cert_file": "c", "key_file": "k"}}, False),  # noqa: S104
        ({"bind": "0.0.0.0", "pages": False}, False),  # noqa: S104
        ({"auth": {"tokens_file": "/x"}}, False),
        ({}, False),
    ],
)
def test_tokens_in_clear_text_are_warned_of(given: dict[str, object], warns: bool) -> None:
    with structlog.testing.capture_logs() as logs:
        _warn_of_clear_text(HttpSettings.model_validate(given))
    assert [one["event"] for one in logs] == (["sign_in_in_clear_text"] if warns else [])
