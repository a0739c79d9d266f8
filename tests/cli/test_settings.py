"""Settings that cannot be, and settings that are not read, on the command line."""

from __future__ import annotations

import pytest

from tests.builders import an_observation
from tests.cli.conftest import Record, Run

DIGITS = "9" * 400


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("execute.payback_days=0", "0 is out of range; rackwise accepts only more than 0.0"),
        (f"http.port={DIGITS * 20}", f"a smaller number is expected, not {DIGITS[:40]}…"),
    ],
)
def test_a_number_out_of_its_range_is_told_with_the_range(here: Run, setting: str, sentence: str) -> None:
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
