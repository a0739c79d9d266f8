"""Which tests run against a cluster that is not ours; pytest itself collects them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
HARMFUL = "tests/cluster/test_harm.py::test_a_killed_broker_leaves_the_cluster_and_comes_back_as_it_was"
OWN = "tests/cluster/test_harm.py::test_a_broker_can_lose_its_rack"


def collected(test: str, *, quiet: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("RACKWISE_TEST_")}
    short = ("-q",) if quiet else ()
    command = (sys.executable, "-m", "pytest", "--collect-only", *short, "-W", "ignore", "-p", "no:cacheprovider", test)
    return subprocess.run(
        command, cwd=TOP, env=ours | variables, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("test", "variables", "runs"),
    [
        pytest.param(HARMFUL, {}, True, id="our own cluster may be harmed"),
        pytest.param(HARMFUL, {"RACKWISE_TEST_BOOTSTRAP": "x:1"}, False, id="a foreign cluster is spared"),
        pytest.param(
            HARMFUL,
            {"RACKWISE_TEST_BOOTSTRAP": "x:1", "RACKWISE_TEST_DRIVER": "compose"},
            True,
            id="the compose file's cluster may be harmed",
        ),
        pytest.param(OWN, {"RACKWISE_TEST_BOOTSTRAP": "x:1"}, True, id="a cluster of our own may be beside it"),
    ],
)
def test_harm_is_done_only_where_it_may_be(test: str, variables: dict[str, str], runs: bool) -> None:
    done = collected(test, **variables)
    assert (test in done.stdout) is runs, done.stdout
    assert ("1 deselected" in done.stdout) is not runs


def test_the_header_says_why_tests_are_left_out() -> None:
    command = (sys.executable, "-m", "pytest", "--collect-only", "-W", "ignore", "-p", "no:cacheprovider", HARMFUL)
    done = subprocess.run(
        command,
        cwd=TOP,
        env={**os.environ, "RACKWISE_TEST_BOOTSTRAP": "x:1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cluster: x:1, which is only watched: tests marked harm are deselected" in done.stdout


def test_an_unknown_driver_is_refused_with_the_known_one() -> None:
    done = collected(HARMFUL, RACKWISE_TEST_BOOTSTRAP="x:1", RACKWISE_TEST_DRIVER="ssh")
    assert "RACKWISE_TEST_DRIVER=ssh is unknown: the only foreign driver is compose" in done.stdout + done.stderr
