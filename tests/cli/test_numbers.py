"""Numbers that settings cannot have: every one is refused with a sentence, and none reaches a document."""

from __future__ import annotations

import pytest

from tests.builders import an_observation
from tests.cli.conftest import Record, Run

DIGITS = "9" * 400


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("price.usd_per_gb=inf", "a finite number is expected, not inf"),
        ("price.usd_per_gb=1e999", "a finite number is expected, not 1e999"),
        ("price.usd_per_gb=nan", "a finite number is expected, not nan"),
        ("execute.payback_days=inf", "a finite number is expected, not inf"),
        ("execute.payback_days=0", "0 is out of range; rackwise accepts only more than 0.0"),
        (f"observe.call_timeout={DIGITS}s", "it must be at most 36500d"),
        ("observe.call_timeout=99999999999d", "it must be at most 36500d"),
        (f"execute.max_bytes_in_flight={DIGITS}GiB", "it must be less than 2^63 bytes, the most that Kafka counts"),
        (f"http.port={DIGITS * 20}", f"a smaller number is expected, not {DIGITS[:40]}…"),
    ],
)
def test_a_number_that_is_none_is_refused(here: Run, setting: str, sentence: str) -> None:
    done = here("config", "check", "-b", "127.0.0.1:1", "--set", setting)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[0] == f"rackwise: {setting.partition('=')[0]}: {sentence} (flag --set)"


def test_settings_beside_a_recorded_look_are_said_not_to_be_read(here: Run, record: Record) -> None:
    path = record(an_observation(a=(1,)))
    done = here("status", "--set", "price.usd_per_gb=5", "--replay", str(path))
    assert done.exit_code == 0
    assert done.stderr.splitlines()[0].startswith(f"note: {path} brings its own settings: ")
    assert "note: " not in here("status", "--replay", str(path)).stderr
    assert "note: " not in here("plan", "--keep-leaders", "--replay", str(path)).stderr
