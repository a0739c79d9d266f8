"""The unit file: systemd's own tools accept it, and what it takes from the process the process can do without."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.tooling import TOP, needed, run

UNIT = TOP / "deploy" / "systemd" / "rackwise.service"
MOST_EXPOSED = 12
"""Tenths, of the ten that systemd counts to: below 2 it says OK."""
WITHOUT_WRITABLE_CODE = """
import ctypes, runpy, sys
process = ctypes.CDLL(None, use_errno=True)
if process.prctl(65, 1, 0, 0, 0) != 0:  # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN
    raise SystemExit(77)
import confluent_kafka, kafka, uvicorn
confluent_kafka.Producer({})
runpy.run_module("agent", run_name="__main__")
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit file with the program of this environment."""
    path = tmp_path / "rackwise.service"
    program = Path(sys.executable).with_name("rackwise")
    text = UNIT.read_text()
    assert text.count("/opt/rackwise/bin/rackwise") == 1
    path.write_text(text.replace("/opt/rackwise/bin/rackwise", str(program)))
    return path


def settings() -> dict[str, list[str]]:
    """Directive -> its values."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_systemd_verifies_it_without_a_word(installed: Path) -> None:
    done = run(needed("systemd-analyze", "systemd"), "verify", "--man=no", installed)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_systemd_finds_a_wrong_line(installed: Path) -> None:
    installed.write_text(installed.read_text().replace("PrivateTmp=yes", "PrivateTemp=yes"))
    done = run(needed("systemd-analyze", "systemd"), "verify", "--man=no", installed)
    assert "PrivateTemp" in done.stderr


def test_its_exposure_is_within_the_bound_and_the_bound_can_be_missed(installed: Path) -> None:
    command = (needed("systemd-analyze", "systemd"), "security", "--offline=yes", "--no-pager")
    done = run(*command, f"--threshold={MOST_EXPOSED}", installed)
    assert done.returncode == 0, done.stdout
    loose = installed.read_text().replace("RestrictNamespaces=yes\n", "").replace("PrivateUsers=yes\n", "")
    installed.write_text(loose)
    assert run(*command, f"--threshold={MOST_EXPOSED}", installed).returncode != 0


def test_it_speaks_the_notification_protocol_and_waits_as_long_as_the_agent_may_take() -> None:
    told = settings()
    assert told["Type"] == ["notify"]
    assert told["ExecStart"] == ["/opt/rackwise/bin/rackwise run -c /etc/rackwise/rackwise.yaml"]
    seconds = {name: int(told[name][0].removesuffix("s")) for name in ("TimeoutStartSec", "TimeoutStopSec")}
    assert seconds["TimeoutStartSec"] > 120  # process.stall_after
    assert seconds["TimeoutStopSec"] > 5
    assert told["RestartPreventExitStatus"] == ["2"]


def test_no_directive_is_given_twice_but_lists() -> None:
    assert {name for name, values in settings().items() if len(values) > 1} == {"SystemCallFilter"}
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(UNIT)
    assert parser.sections() == ["Unit", "Service", "Install"]


def test_nothing_that_the_agent_loads_needs_memory_that_is_writable_and_executable(tmp_path: Path) -> None:
    """MemoryDenyWriteExecute, by the kernel's own switch of that name."""
    problem = TOP / "tests" / "assignors" / "problems" / "t100c10.json.gz"
    result = tmp_path / "result.json"
    done = subprocess.run(
        [
            *(sys.executable, "-c", WITHOUT_WRITABLE_CODE, "optimize", str(problem)),
            *("--counts", "fixed", "--balance", "none", "-o", str(result)),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=TOP,
    )
    if done.returncode == 77:
        pytest.skip("a kernel before 6.3 has no such switch")
    assert done.returncode == 0, done.stderr
    assert result.exists()
