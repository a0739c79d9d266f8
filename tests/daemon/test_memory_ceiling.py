"""The memory ceiling where no setting names one."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from agent.daemon.start import default_ceiling_bytes
from config.load import load_settings

GIB = 1 << 30
BASE = ["kafka.bootstrap.servers=h:1"]


@pytest.mark.parametrize(
    ("files", "ceiling"),
    [
        pytest.param({}, 8 * GIB, id="no groups: half of the machine"),
        pytest.param({"memory.max": "max\n"}, 8 * GIB, id="a group without a limit"),
        pytest.param({"memory.max": "1000000000\n"}, 900_000_000, id="a limit"),
        pytest.param({"memory/memory.limit_in_bytes": "1000000000\n"}, 900_000_000, id="a limit of version 1"),
        pytest.param({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8 * GIB, id="none of version 1"),
        pytest.param({"memory.max": "99999999999999\n"}, 8 * GIB, id="a limit beyond the machine"),
        pytest.param({"memory.max": "0\n"}, 8 * GIB, id="nothing at all"),
        pytest.param({"memory.max": "9" * 5_000}, 8 * GIB, id="a number without end"),
        pytest.param({"memory.max": "\xff"}, 8 * GIB, id="no number"),
    ],
)
def test_it_is_below_the_container_s_limit_or_half_of_the_machine(
    files: dict[str, str], ceiling: int, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "latin-1")
    assert default_ceiling_bytes(tmp_path, 16 * GIB) == ceiling


def test_here_it_is_something_that_this_machine_has() -> None:
    assert 0 < default_ceiling_bytes() < psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("told", "ceiling"), [([], "auto"), (["auto"], "auto"), (["none"], None), (["1GiB"], GIB), (["500MB"], 500_000_000)]
)
def test_the_setting_is_a_size_a_word_or_none(told: list[str], ceiling: object) -> None:
    loaded = load_settings(assignments=[*BASE, *(f"process.memory_ceiling={one}" for one in told)], environ={})
    assert loaded.settings.process.memory_ceiling_bytes == ceiling
