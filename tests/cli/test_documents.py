"""What commands print for machines keeps to its schema, in every form; numbers are numbers; no command is left out."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from agent.cli import follow, running_agents
from agent.cli.output import OutputFormat
from agent.values.limits import GroupLimits, Limits
from pipeline.commands import backtest, status
from pipeline.jobs.backtest import BacktestSummary as Lived
from pipeline.stream.status import StreamState, StreamStatus
from testbed.cluster.leftovers import ClusterState, FoundCluster
from testbed.cluster.manifest import ClusterManifest, ManifestBroker
from testbed.cluster.processes import ProcessId
from testbed.cluster.settings import BrokerNode
from testbed.cluster.spec import ClusterSpec
from tests.cli.conftest import Record, Run
from tests.cli.documents import (
    ALONE,
    ASKS,
    ELSEWHERE,
    FILES,
    LOOKS,
    MOVE,
    NAMES,
    STRUCTURED,
    TELLS,
    a_cluster,
    answering,
    commands,
    formatted_numbers,
    journal_of,
    validate,
)
from tests.cli.execute.file_agent import FileAgent, options
from tests.docs.document_schemas import (
    DOCUMENTS,
    NOT_YET,
    SCHEMA_OF_SETTINGS,
    CommandDocument,
    command_name,
    document_schema,
    documents_table,
    file_name,
    schema_text,
)
from tests.pipeline.test_backtest_command import unit

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "docs" / "schemas"
RUNS = {**LOOKS, **ASKS, **ALONE}


def the(typed: str) -> CommandDocument:
    """The document of a command as it is typed in the catalogue."""
    return next(document for document in DOCUMENTS if typed in document.commands)


def read(text: str, form: str) -> list[Any]:
    """What was printed: one document, or each line of jsonl."""
    match form:
        case "json":
            return [json.loads(text)]
        case "jsonl":
            return [json.loads(line) for line in text.splitlines()]
        case _:
            return [yaml.safe_load(text)]


@pytest.fixture
def world(tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Brokers that answer, a proposal that is published, a journal, and a cluster on this machine."""
    file = record(a_cluster(), Limits(groups={"app": GroupLimits(known=True)}))
    journal_of(tmp_path / "journal")
    monkeypatch.setattr("agent.observe.observe_cluster.observe", lambda *_: a_cluster().at())
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda _loaded, _tell: (MOVE,))
    found = a_local_cluster(tmp_path)
    monkeypatch.setattr("testbed.cluster.find_cluster", lambda _name: found[0])
    monkeypatch.setattr("testbed.cluster.find_clusters", lambda: found)
    for module in (running_agents, follow):
        monkeypatch.setattr(module, "POLL_S", 0.02)
    return file


def a_local_cluster(directory: Path) -> tuple[FoundCluster, FoundCluster]:
    """One that runs and one whose manifest cannot be read."""
    me = ProcessId.of(1)
    node = BrokerNode(
        id=1, rack="a", internal_port=1, controller_port=2, client_port=3, jmx_port=4, data_directory=str(directory)
    )
    bare = BrokerNode(id=2, rack=None, internal_port=5, controller_port=6, client_port=7, data_directory=str(directory))
    manifest = ClusterManifest(
        name="default", cluster_id="c", spec=ClusterSpec(), owner=None, starter=me, ready=True,
        members=(ManifestBroker(node=node, process=me), ManifestBroker(node=bare)),
    )  # fmt: skip
    return (
        FoundCluster(directory=directory / "default", state=ClusterState.RUNNING, why="it runs", manifest=manifest),
        FoundCluster(directory=directory / "odd", state=ClusterState.PARTLY_RUNNING, why="it is odd", manifest=None),
    )


def typed(name: str, file: Path) -> tuple[str, ...]:
    """What is typed for it."""
    if name in LOOKS:
        return (*LOOKS[name], "--replay", str(file))
    alone = ("--set", "weights.enabled=false")
    return (*ASKS[name], *alone, *options(file.with_name("journal"))) if name in ASKS else ALONE[name]


# --- every command ----------------------------------------------------------------------------------------------


def documents_of(command: str) -> tuple[CommandDocument, ...]:
    """The documents of a command, by its name without options."""
    return tuple(document for document in DOCUMENTS if command in map(command_name, document.commands))


def test_every_command_with_an_output_has_its_documents() -> None:
    missing = [name for name in answering() if not documents_of(name) and name not in {*NOT_YET, SCHEMA_OF_SETTINGS}]
    assert missing == [], "give it a TypedDict in agent/documents, and a line in its catalogue"


def test_the_catalogue_names_commands_that_exist_and_each_is_printed_by_a_test() -> None:
    named = {one for document in DOCUMENTS for one in document.commands}
    assert {command_name(one) for one in named} <= {name for name, _ in commands()}
    assert named == {*RUNS, *TELLS, *FILES, *ELSEWHERE}


def test_what_has_a_schema_is_not_said_to_have_none() -> None:
    assert [name for name in NOT_YET if documents_of(name)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_committed_schema_is_the_one_of_the_type(document: CommandDocument) -> None:
    jsonschema.Draft202012Validator.check_schema(document_schema(document))
    assert (SCHEMAS / file_name(document)).read_text() == schema_text(document), "write it anew: make schemas"


def test_no_schema_is_left_of_a_document_that_is_gone() -> None:
    assert {path.name for path in SCHEMAS.glob("command-*.json")} == {file_name(document) for document in DOCUMENTS}


def test_the_documents_in_the_docs_are_those_of_the_code() -> None:
    assert documents_table() in (ROOT / "docs" / "operations.md").read_text()


@pytest.mark.parametrize("form", STRUCTURED)
@pytest.mark.parametrize("name", RUNS)
def test_what_a_command_prints_keeps_to_its_schema(here: Run, world: Path, name: str, form: str) -> None:
    done = here(*typed(name, world), "-o", form)
    assert done.stdout, done.stderr
    told = read(done.stdout, form)
    assert told
    assert told != [[]]
    names = NAMES | {"sentence"} if name == "explain" else NAMES  # what a proposal rests on is a number, told as one
    for one in told:
        validate(the(name), one, form)
        assert list(formatted_numbers(one, names)) == []


@pytest.mark.parametrize("form", STRUCTURED)
@pytest.mark.parametrize("name", TELLS)
def test_what_an_agent_answers_keeps_to_its_schema(
    here: Run, world: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: str
) -> None:
    monkeypatch.setattr(follow, "follow", lambda *_: 0)
    journal = world.with_name("journal" if name.startswith("reassign") else "another")
    agent = FileAgent(journal, Limits())
    try:
        for words in TELLS[name]:
            done = here(*words, "-o", form, *options(journal))
    finally:
        agent.close()
    (told,) = read(done.stdout, form)
    validate(the(name), told, form)
    assert list(formatted_numbers(told)) == []


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_as_a_file_keeps_to_its_schema(here: Run, tmp_path: Path, name: str) -> None:
    target = tmp_path / "result.json"
    assert here(*FILES[name], "-o", str(target)).exit_code == 0
    told = json.loads(target.read_text())
    validate(the(name), told)
    assert json.loads(here(*FILES[name]).stdout).keys() == told.keys()


def test_what_a_backtest_prints_keeps_to_its_schema(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [unit("a", 0, 0, read_bytes=1e9, read_usd=2.0), unit("b", 0, 0, dark_group_s=60.0)]
    lived = Lived(rows=tuple({**row, "fresh": 1} for row in rows))
    backtest._tell(lived, {}, tmp_path, "json")
    told = json.loads(capsys.readouterr().out)
    validate(the("spark backtest"), told)
    assert json.loads((tmp_path / "ranking.json").read_text()) == told


def test_what_the_status_of_ingest_prints_keeps_to_its_schema() -> None:
    at = {"topic": "rackwise.telemetry", "cluster": "c", "batch": 3, "written_ms": 5, "records": 7, "newest_ms": 4}
    streams = [
        StreamStatus("telemetry", StreamState.STALLED, behind_s=1.5, why="no batch for 20 min", **at),
        StreamStatus("journal", StreamState.NOT_STARTED),
        *(StreamStatus("proposals", state) for state in StreamState),
    ]
    told = json.loads(status.document(streams))
    validate(the("spark status"), told)
    assert (told[0]["behind_s"], told[1]["batch"]) == (1.5, None)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_schema_of_settings_is_a_schema(here: Run, form: str) -> None:
    (told,) = read(here(*SCHEMA_OF_SETTINGS.split(), "-o", form).stdout, form)
    jsonschema.Draft202012Validator.check_schema(told)


# --- the checks themselves --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param("plan --groups", {"worth": 1}, id="a number for a sentence"),
        pytest.param("plan --groups", {"now": {"crossing": "2"}}, id="a text for a number"),
        pytest.param("plan --groups", {"more": 1}, id="a field without a type"),
        pytest.param("proposals history", {"at_ms": "2026-01-01T00:00:00Z"}, id="a text for a time"),
        pytest.param("reassign verify", {"state": "fine"}, id="a word that is none of them"),
    ],
)
def test_a_schema_refuses_what_is_not_of_its_type(here: Run, world: Path, name: str, change: dict[str, object]) -> None:
    rows = here(*typed(name, world), "-o", "json").json
    validate(the(name), rows)
    rows[0] |= change
    with pytest.raises(jsonschema.ValidationError):
        validate(the(name), rows)


@pytest.mark.parametrize(
    "text",
    [
        "1,234", "12 %", "3.4 MB", "5,227 (288 to 1,633)", "8 of 12", "29 % (3 % unknown)", "7 to 9", "12 s", "$3.20",
        "50MB/s", "416 kB", "-3", "12",
    ],
)  # fmt: skip
def test_a_number_in_a_text_is_seen(text: str) -> None:
    assert list(formatted_numbers({"rows": [{"lag": text}]})) == [f".rows[].lag: {text!r}"]


@pytest.mark.parametrize(
    "text", ["2 of 6 partitions share a rack.", "orders-0", "kafka-1:9092", "p-12", "a", "", "0_1"]
)
def test_a_sentence_or_a_name_is_no_number(text: str) -> None:
    assert list(formatted_numbers({"sentence": text})) == []


@pytest.mark.parametrize("name", ["plan --groups", "simulate"])
def test_csv_has_every_number_in_a_field_of_its_own(here: Run, world: Path, name: str) -> None:
    rows = list(csv.DictReader(io.StringIO(here(*typed(name, world), "-o", OutputFormat.CSV.value).stdout)))
    told = [row["now_crossing"] for row in rows]
    assert any(one.isdecimal() for one in told)
    assert all(one.isdecimal() or one == "" for one in told)
    assert {"now_crossing_bytes_per_s", "optimum_moved", "optimum_unknown"} <= {*rows[0]}


def test_the_command_line_loads_no_type_of_a_document_when_it_starts() -> None:
    asked = "import sys, agent.cli.app; print([name for name in sys.modules if name.startswith('agent.documents')])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
