"""All connections go out under the configured ``client.id``, and no client of librdkafka writes to stderr by itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from config.kafka_client import KafkaClientConfig
from pipeline.kafka import java_properties, source_options
from tests.command import ROOT
from tests.errors.command_rows import ROWS, Command, row_id
from tests.errors.conftest import Run
from tests.errors.error_output import assert_clean
from tests.wire.fake_broker import FakeBroker

ASKING = [command for command, row in ROWS.items() if row.asks]
CLIENTS = {"Producer", "Consumer", "AdminClient", "SerializingProducer", "DeserializingConsumer"}
WORKLOAD = ROOT / "testbed" / "demo" / "workload"
"""Plays the clients of other people, each with a name of its own."""


@pytest.mark.parametrize(
    ("command", "name"),
    [*((one, "team-7.rack watch") for one in ASKING), *((one, None) for one in ASKING[:1] + ASKING[-1:])],
    ids=lambda one: row_id(one) if isinstance(one, tuple) else one or "by default",
)
def test_every_request_of_a_command_goes_out_under_the_client_id(
    run: Run, command: Command, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.daemon.start._READ_MS", 300)
    monkeypatch.setattr("agent.cli.running_agents.READ_MS", 300)
    monkeypatch.setattr("agent.record.weights.FIRST_WAIT_MS", 300)
    given = () if name is None else ("--set", f"kafka.client.id={name}")
    with FakeBroker({}) as broker:
        done = run(*command, *ROWS[command].given, "--bootstrap-servers", f"127.0.0.1:{broker.port}", *given)
        seen = list(broker.client_ids)
    assert_clean(done)
    assert seen, "it has asked"
    assert set(seen) == {name or "rackwise"}


def test_so_do_those_of_spark() -> None:
    configured = KafkaClientConfig.of({"bootstrap.servers": "a:1", "client.id": "team-7"})
    assert source_options(configured)["kafka.client.id"] == "team-7"
    assert java_properties(KafkaClientConfig.of({"bootstrap.servers": "a:1"}))["client.id"] == "rackwise"


def test_every_client_of_librdkafka_is_made_of_the_one_set_of_settings() -> None:
    """Read from the code: a client that is made otherwise would have another name, or lines of its own on stderr."""
    made = [
        (path.relative_to(ROOT), call)
        for package in ("agent", "assignors", "config", "pipeline", "testbed")
        for path in sorted((ROOT / package).rglob("*.py"))
        if WORKLOAD not in path.parents
        for call in _clients_made(path)
    ]
    assert len(made) > 10, "they are found"
    others = [f"{path}:{call.lineno}" for path, call in made if not _of_the_one_set(call)]
    assert others == []


def _clients_made(path: Path) -> list[ast.Call]:
    found = ast.walk(ast.parse(path.read_text()))
    return [one for one in found if isinstance(one, ast.Call) and _name(one.func) in CLIENTS]


def _of_the_one_set(call: ast.Call) -> bool:
    return len(call.args) == 1 and isinstance(call.args[0], ast.Call) and _name(call.args[0].func) == "client_settings"


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
