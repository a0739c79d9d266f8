"""Each command that asks brokers x what they refuse: no TLS, TLS where there is none, a wrong password, no rights.

One secured broker for all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent.values.observation import GapCause
from testbed.cluster import ClusterSecurity, ClusterSpec, EmbeddedCluster
from tests.command import Done
from tests.errors.command_rows import ROWS, Command, row_id
from tests.errors.conftest import Run
from tests.errors.error_output import assert_clean, assert_one_error

pytestmark = pytest.mark.integration

ASKING = [command for command, row in ROWS.items() if row.asks]
LOOKING = [one for one in ASKING if one in {("run",), *((name,) for name in (
    "status", "racks", "groups", "topics", "top", "doctor", "plan", "explain", "simulate"
))}]  # fmt: skip
PARTIAL = ("reassign", "status")
"""What brokers report is an answer also where the journal is not."""
USER, PASSWORD = "newcomer", "newcomer-secret"


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    """One broker that asks for TLS and a password; its user has no right at all."""
    users = {"admin": "admin-secret", USER: PASSWORD}
    with EmbeddedCluster.start(
        ClusterSpec(racks=("a",), security=ClusterSecurity(users=users)), on_progress=print
    ) as started:
        yield started


class Asked:
    """Runs commands against the secured broker with connection settings of a test."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self._folder = run, folder

    def __call__(self, command: Command, servers: str, properties: Mapping[str, str]) -> Done:
        file = self._folder / "client.properties"
        written = {"bootstrap.servers": servers, **properties}
        file.write_text("".join(f"{name}={value}\n" for name, value in written.items()))
        return self._run(*command, *ROWS[command].given, "--properties", str(file), "--set", "record.file=none")


@pytest.fixture
def asked(run: Run, tmp_path: Path) -> Asked:
    return Asked(run, tmp_path)


def login(cluster: EmbeddedCluster, password: str = PASSWORD) -> dict[str, str]:
    known = {name: value for name, value in cluster.client_properties(USER).items() if name != "sasl.jaas.config"}
    return {**known, "sasl.username": USER, "sasl.password": password}


@pytest.mark.parametrize("command", ASKING, ids=row_id)
def test_a_wrong_password_ends_every_command_with_2(secured: EmbeddedCluster, asked: Asked, command: Command) -> None:
    done = asked(command, secured.bootstrap_servers, login(secured, "wrong"))
    assert_one_error(done, 2)
    assert f"refused user '{USER}'" in done.stderr
    assert "wrong" not in done.stderr, "a password is not shown"


@pytest.mark.parametrize("command", ASKING, ids=row_id)
def test_no_tls_where_brokers_want_it_ends_every_command_with_2(
    secured: EmbeddedCluster, asked: Asked, command: Command
) -> None:
    done = asked(command, secured.bootstrap_servers, {})
    assert_one_error(done, 2)
    assert "requires TLS" in done.stderr


@pytest.mark.parametrize("command", ASKING, ids=row_id)
def test_tls_where_brokers_have_none_ends_every_command_with_5_and_names_the_setting(
    secured: EmbeddedCluster, asked: Asked, command: Command
) -> None:
    """A listener in plain text hangs up on the greeting, as a broker does that ends just now."""
    plain = f"127.0.0.1:{secured._members.manifest.members[0].node.internal_port}"
    done = asked(command, plain, login(secured))
    assert_one_error(done, 5)
    assert "its listener may be one in plain text (security.protocol)" in done.stderr


@pytest.mark.parametrize("command", [one for one in ASKING if one not in (*LOOKING, PARTIAL)], ids=row_id)
def test_without_a_right_what_rests_on_a_topic_ends_with_2_and_names_it(
    secured: EmbeddedCluster, asked: Asked, command: Command
) -> None:
    done = asked(command, secured.bootstrap_servers, login(secured))
    assert_one_error(done, 2)
    assert "may not use topic rackwise." in done.stderr


@pytest.mark.parametrize("command", [*LOOKING, PARTIAL], ids=row_id)
def test_without_a_right_a_look_is_partial_and_names_what_is_not_seen(
    secured: EmbeddedCluster, asked: Asked, command: Command
) -> None:
    done = asked(command, secured.bootstrap_servers, login(secured))
    assert done.exit_code == 5
    assert_clean(done)
    assert GapCause.NOT_ALLOWED.value in done.stderr, done


@pytest.mark.parametrize("command", [("proposals",), ("proposals", "approve"), ("proposals", "history")], ids=row_id)
def test_a_topic_that_no_agent_has_made_is_named_and_is_not_an_empty_answer(
    secured: EmbeddedCluster, asked: Asked, command: Command
) -> None:
    done = asked(command, secured.bootstrap_servers, secured.client_properties("admin"))
    assert_one_error(done, 2)
    assert "rackwise: There is no topic rackwise." in done.stderr
