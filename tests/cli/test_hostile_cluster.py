"""One hostile world through every command in every form: what is written is scanned byte by byte.

The commands are those of the application: a new one without a case here fails.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
import yaml

from agent.cli.app import full_application
from agent.cli.table_layout import text_width
from agent.journal.commands import LeaderAnswer
from agent.simulate.evaluation import evaluate
from agent.telemetry.events import to_lines
from agent.values.clock import system_clock
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from assignors.problem import TopicPartition
from testbed.cluster.errors import ClusterError
from tests.builders import an_observation, consumer
from tests.cli.conftest import Run
from tests.command import Done
from tests.foreign_texts import POISONS, formulas, spelled
from tests.hostile_cluster import (
    FORGED,
    MOVE_ID,
    Name,
    evaluated,
    journal_of,
    local_clusters,
    observation,
    poisoned,
    twin,
)
from tests.jvm.building import packaged_jar
from tests.recorded_looks import observation_to_events

FORMS = ("table", "json", "jsonl", "yaml", "csv")
ESC, LINE, FORMULA, LONG = "a screen that is cleared", "a line feed", "a formula", "5,000 characters"
EMPTY_JOURNAL = ("-b", "127.0.0.1:1", "--set", "mode=execute", "--set", "observe.call_timeout=200ms")
WIDE = 100_000


class World(NamedTuple):
    """Where the files of a world are."""

    name: Name
    replay: str
    folder: Path


class Case(NamedTuple):
    """A command as it is typed."""

    command: str
    more: Callable[[World], tuple[str, ...]]
    forms: tuple[str, ...] = FORMS
    code: tuple[int, ...] = (0, 5)


def replay(*more: str) -> Callable[[World], tuple[str, ...]]:
    return lambda world: (*more, "--replay", world.replay)


def live(*more: str) -> Callable[[World], tuple[str, ...]]:
    return lambda _world: (*more, *EMPTY_JOURNAL)


def of(name: str, form: str) -> Callable[[World], tuple[str, ...]]:
    return lambda world: (form.format(world.name(name)), "--replay", world.replay)


def explained(name: str, form: str) -> Callable[[World], tuple[str, ...]]:
    return lambda world: (form.format(world.name(name)), *EMPTY_JOURNAL)


def spark(name: str) -> Callable[[World], tuple[str, ...]]:
    needed = ("--out", "x") if name == "report" else ()
    return lambda world: ("--conf", world.name(ESC), *needed)


NO_FORMS = ("",)
BAD = (1, 2, 4, 5)
CASES = [
    Case("status", replay()),
    Case("status", replay("--all")),
    Case("racks", replay()),
    Case("groups", replay()),
    *(Case("groups", of(name, f"{{}}-{kind}"))
      for kind in ("classic", "rebalancing", "kip848", "streams", "app", "other") for name in (ESC, LINE)),
    *(Case("groups", of(name, "{}-kip848"), ("table", "csv")) for name in POISONS),
    Case("topics", replay()),
    *(Case("topics", of(name, "{}.t")) for name in (ESC, LINE)),
    Case("top", replay("--count", "1"), NO_FORMS),
    Case("doctor", replay()),
    Case("plan", replay()),
    Case("plan", replay("--groups")),
    Case("plan", replay("--new-topic", "orders-2", "--partitions", "3", "--replication-factor", "3")),
    # Rack b: what is left once it is gone is the same in whatever order assignors take the names.
    Case("simulate", lambda world: ("--add-member", f"{world.name(ESC)}-classic=a", "--remove-rack", "b",
                                    "--replay", world.replay)),
    *(Case("explain", of(name, form))
      for form in ("group/{}-classic", "group/{}-app", "topic/{}.t", "broker/100") for name in (ESC, LINE)),
    Case("proposals", live()),
    Case("proposals list", live()),
    Case("proposals history", live()),
    Case("proposals approve", live(MOVE_ID, "--yes")),
    Case("proposals apply", live(MOVE_ID, "--yes"), NO_FORMS),
    Case("proposals cancel", live(MOVE_ID, "--yes")),
    Case("reassign status", live()),
    Case("reassign verify", live(MOVE_ID), code=(0, 1)),
    Case("reassign cancel", live(MOVE_ID, "--yes")),
    Case("reassign rollback", live(MOVE_ID, "--yes")),
    Case("pause", live()),
    Case("resume", live()),
    Case("config check", lambda world: ("-c", str(world.folder / "settings.yaml")), NO_FORMS),
    Case("notify test", lambda world: ("-c", str(world.folder / "settings.yaml"))),
    Case("config show", lambda world: ("--origin", "-c", str(world.folder / "settings.yaml"))),
    Case("config schema", lambda _world: (), ("json", "yaml")),
    Case("config docs", lambda _world: (), NO_FORMS),
    Case("config example", lambda _world: (), NO_FORMS),
    Case("plugin jar", lambda world: ("-o", str(world.folder))),
    Case("plugin jar", lambda _world: ()),
    *(Case("plugin jar", lambda world, name=name: ("-o", world.name(name)), NO_FORMS, BAD) for name in POISONS),
    Case("cluster status", lambda _world: ()),
    Case("cluster up", lambda world: ("-n", world.name(ESC))),
    Case("cluster down", lambda world: ("-n", world.name(ESC)), NO_FORMS),
    Case("cluster logs", lambda world: ("-n", world.name(ESC)), NO_FORMS),
    Case("cluster broker", lambda world: ("1", "restart", "--rack", world.name(ESC)), NO_FORMS),
    Case("cluster fault", lambda _world: ("pass",), NO_FORMS),
    Case("cluster tools", lambda world: ("--version", world.name(ESC)), NO_FORMS, BAD),
    Case("optimize", lambda world: (str(world.folder / "bad.json"),), NO_FORMS, BAD),
    Case("assign", lambda world: (str(world.folder / "bad.json"), "--check"), NO_FORMS, BAD),
    Case("spark backtest", lambda _world: ("--list",), NO_FORMS),
    *(Case(f"spark {name}", spark(name), NO_FORMS, BAD)
      for name in ("ingest", "status", "refresh", "report", "sql", "backtest", "fleet", "weights")),
    Case("run", lambda world: ("--set", f"mode={world.name(LINE)}"), NO_FORMS, BAD),
    Case("demo", lambda world: ("--seconds", world.name(LINE)), NO_FORMS, BAD),
]  # fmt: skip
UNKNOWN = [
    Case("groups", of(LINE, "no{}"), NO_FORMS, BAD),
    Case("explain", of(LINE, "group/no{}"), NO_FORMS, BAD),
    Case("plan", of(LINE, "--add-partitions=no{}=9"), NO_FORMS, BAD),
    Case("simulate", of(LINE, "--remove-rack=no{}"), NO_FORMS, BAD),
    Case("proposals approve", explained(LINE, "{}"), NO_FORMS, BAD),
    Case("reassign status", explained(LINE, "{}"), NO_FORMS, BAD),
    Case("reassign verify", explained(LINE, "{}"), NO_FORMS, BAD),
    Case("status", lambda world: ("--replay", world.name(LINE)), NO_FORMS, BAD),
    Case("status", lambda world: ("-c", world.name(LINE)), NO_FORMS, BAD),
    Case("status", lambda world: ("--set", f"{world.name(LINE)}={world.name(ESC)}"), NO_FORMS, BAD),
    Case("status", lambda world: ("-b", world.name(LINE)), NO_FORMS, BAD),
    Case("status", lambda world: ("-o", world.name(LINE)), NO_FORMS, BAD),
    Case("config check", lambda world: ("--set", f"log.level={world.name(LINE)}"), NO_FORMS, BAD),
]


def leaves() -> list[str]:
    """Every command of the application, by the words that are typed."""

    def below(command: Any, words: tuple[str, ...]) -> Iterator[str]:
        children: dict[str, Any] = getattr(command, "commands", {})
        if not children or (words and command.invoke_without_command):
            yield " ".join(words)
        for name, child in children.items():
            yield from below(child, (*words, name))

    return sorted(below(typer.main.get_command(full_application(loaded=True)), ()))


def test_every_command_has_a_case() -> None:
    about_no_cluster = {"token check", "token new"}
    assert sorted({case.command for case in CASES}) == [one for one in leaves() if one not in about_no_cluster]


@pytest.fixture(scope="module", autouse=True)
def jar() -> None:
    """What `rackwise plugin jar` writes out."""
    packaged_jar()


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Name], World]:
    """Puts a world where commands look for one: in files, in the journal, in the topics and on this machine."""

    def put(name: Name) -> World:
        text = name(ESC)
        found = local_clusters(name, tmp_path)
        log = tmp_path / "broker.log"
        log.write_text("\tat orders\n" + "\n".join(map(name, POISONS)), encoding="utf-8", errors="surrogatepass")
        (tmp_path / "bad.json").write_text(json.dumps({name(LINE): [name(ESC)], "assignor": name(LINE)}))
        values = {"client.id": text, "client.rack": name("text that runs backwards")}
        targets = {text: {"url": "json://127.0.0.1:1/x"}}
        settings = {"kafka": {"bootstrap.servers": "127.0.0.1:1", **values}, "topics": {"prefix": "x."}}
        settings["notify"] = {"targets": targets}
        (tmp_path / "settings.yaml").write_text(json.dumps(settings))
        monkeypatch.setattr("agent.observe.observe_cluster.reach_cluster", lambda *_, **__: "cluster")
        monkeypatch.setattr("agent.daemon.start.read_proposals", lambda _loaded, _tell: published(name))
        monkeypatch.setattr("agent.observe.observe_cluster.reach_cluster", lambda *_, **__: None)
        monkeypatch.setattr("agent.cli.running_agents.journal", lambda _plan: journal_of(name))
        monkeypatch.setattr("agent.cli.running_agents.ask", lambda *_: LeaderAnswer(True, name(LINE), 0))
        monkeypatch.setattr("agent.observe.observe_cluster.observe", lambda *_: observation(name))
        monkeypatch.setattr("agent.cli.session.look", lambda *_, **__: evaluated(name))
        monkeypatch.setattr("testbed.cluster.find_clusters", lambda: found)
        monkeypatch.setattr("testbed.cluster.find_cluster", lambda _name: found[0])
        monkeypatch.setattr("testbed.cluster.clear_cluster", lambda _directory: None)
        monkeypatch.setattr("testbed.cluster.EmbeddedCluster", _Local(text, log))
        return World(name, recorded(name), tmp_path)

    return put


@cache
def recorded(name: Name) -> str:
    """The telemetry of one look."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        events = observation_to_events(observation(name), Memory(), Limits(), look="l-1")
        file.writelines(f"{line}\n" for event in events for line in to_lines(event))
    return file.name


@cache
def published(name: Name) -> tuple[Any, ...]:
    """The records of the proposals topic; one has the id that the journal knows."""
    now_ms = system_clock().wall_ms
    first, *others = (
        one._replace(created_ms=now_ms, expires_ms=now_ms + 86_400_000) for one in evaluated(name).proposals
    )
    return (first._replace(id=MOVE_ID), *others)


class _Local:
    """Clusters on this machine: none is started."""

    def __init__(self, text: str, log: Path) -> None:
        self._broker = _Broker(text, log)
        self._text = text

    def open(self, _name: str) -> _Local:
        return self

    def start(self, *_: object, **__: object) -> None:
        raise ClusterError(f"cluster {self._text} does not start", why=self._text)

    def broker(self, _number: int) -> _Broker:
        return self._broker

    @property
    def brokers(self) -> tuple[_Broker, ...]:
        return (self._broker,)

    def inject(self, *_: object) -> None:
        return None


class _Broker:
    id, alive = 1, True

    def __init__(self, text: str, log: Path) -> None:
        self.rack, self.log_path = text, log

    def restart(self, _rack: object) -> None:
        return None


def run(here: Run, case: Case, world: World, form: str, *more: str) -> Done:
    asked = ("-o", form) if form else ()
    done = here(*case.command.split(), *case.more(world), *asked, *more)
    assert done.exit_code in case.code, done
    return done


def rows_of(form: str, text: str) -> Any:
    match form:
        case "json":
            return json.loads(text)
        case "jsonl":
            return [json.loads(line) for line in text.split("\n") if line]
        case "yaml":
            return yaml.safe_load(text)
    csv.field_size_limit(2**24)
    return list(csv.reader(io.StringIO(text)))


def scan(done: Done, form: str) -> None:
    """Raises when a byte, a line or a cell of an answer could do harm."""
    for text in (done.stdout, done.stderr):
        text.encode("utf-8")
        kept = [one for one in spelled(text) if not (form in {"json", "jsonl", "yaml"} and one.startswith("marks"))]
        assert kept == []
        assert [line for line in text.split("\n") if line.strip().startswith(FORGED)] == []
    if form == "csv":
        records = rows_of("csv", done.stdout)
        assert len(done.stdout.split("\n")) == len(records) + 1
        assert len(set(map(len, records))) <= 1
        assert formulas([cell for record in records for cell in record]) == []


IDS = [f"{number} {case.command}" for number, case in enumerate(CASES)]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_byte_of_any_answer_does_harm(
    here: Run, world: Callable[[Name], World], monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    there = world(poisoned)
    for form in case.forms:
        done = run(here, case, there, form)
        scan(done, "jsonl" if case.command == "top" else form)
        assert done.stdout or not form
        if form in {"json", "jsonl"}:
            assert rows_of(form, done.stdout) is not None
        if form == "table":
            copied = "          > "  # a line to be copied is in one piece
            lines = [line for line in done.stdout.split("\n") if not line.startswith(copied)]
            assert max(map(text_width, lines)) <= 80


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_hostile_names_make_as_many_lines_as_harmless_ones(
    here: Run, world: Callable[[Name], World], monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDE))
    for form in {*case.forms} - {"json", "jsonl"}:
        lines: list[list[int]] = []
        for name in (poisoned, twin):
            there = world(name)
            monkeypatch.setattr("agent.cli.session.replayed", lambda _path, name=name: evaluated(name))
            lines.append([len(text.split("\n")) for text in run(here, case, there, form)[1:]])
        assert lines[0] == lines[1]


@pytest.mark.parametrize("name", [LONG, "5,000 controls", "marks over marks"])
@pytest.mark.parametrize("kind", ["classic", "kip848", "streams"])
def test_an_id_of_many_characters_takes_a_few_lines(
    here: Run, world: Callable[[Name], World], monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = run(here, Case("groups", of(name, f"{{}}-{kind}")), world(poisoned), "table")
    assert len(done.stdout.split("\n")) < 120, "four tables with four ids of four lines in each"


@pytest.mark.parametrize("case", UNKNOWN, ids=[f"{number} {case.command}" for number, case in enumerate(UNKNOWN)])
def test_an_error_that_repeats_what_was_asked_for_is_harmless(
    here: Run, world: Callable[[Name], World], case: Case
) -> None:
    done = run(here, case, world(poisoned), "")
    scan(done, "")
    assert done.exit_code in {0, 5} or len(done.stderr.split("\n")) <= 4


@pytest.mark.parametrize("words", leaves())
@pytest.mark.parametrize("text", [POISONS[ESC], POISONS[LINE], POISONS["text that runs backwards"]])
def test_an_option_that_no_command_has_is_told_without_harm(here: Run, words: str, text: str) -> None:
    done = here(*words.split(), f"--{text}")
    assert done.exit_code == 2
    scan(done, "")
    assert len(done.stderr.split("\n")) <= 4


@pytest.mark.parametrize("form", ["json", "jsonl", "yaml"])
def test_what_a_machine_reads_gives_back_every_name(here: Run, world: Callable[[Name], World], form: str) -> None:
    there = world(poisoned)
    groups = rows_of(form, run(here, Case("groups", replay()), there, form).stdout)
    assert {row["group"] for row in groups} == set(evaluated(poisoned).snapshot.groups)
    for name in (ESC, LINE, LONG, "a lone surrogate", "a tag character"):
        shown = rows_of(form, run(here, Case("groups", of(name, "{}-kip848")), there, form).stdout)
        (document,) = shown if form == "jsonl" else (shown,)
        text = POISONS[name]
        members = [(row["member"], row["client_id"], row["host"]) for row in document["member_list"]]
        assert members == [(f"{text}-{number}", f"{text}-c", text) for number in (1, 2)]


@pytest.mark.parametrize(
    "case",
    [
        Case("groups", replay("many")), Case("explain", replay("group/many")), Case("explain", replay("topic/wide")),
        Case("plan", replay()), Case("status", replay()), Case("racks", replay()), Case("doctor", replay()),
        Case("simulate", replay("--remove-rack", "a")),
    ],
    ids=lambda case: f"{case.command} {' '.join(case.more(World(poisoned, '', Path())))}",
)  # fmt: skip
def test_a_group_of_many_partitions_fills_no_page_and_its_json_has_all_of_them(
    here: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: Case
) -> None:
    monkeypatch.setattr("agent.cli.session.look", lambda *_, **__: evaluate(many(), Memory(), Limits()))
    monkeypatch.setattr("agent.cli.running_agents.journal", lambda _plan: {})
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "many.jsonl"
    events = observation_to_events(many(), Memory(), Limits(), look="l-1")
    path.write_text("".join(f"{line}\n" for event in events for line in to_lines(event)))
    there = World(poisoned, str(path), tmp_path)
    done = run(here, case, there, "table")
    assert len(done.stdout.split("\n")) + len(done.stderr.split("\n")) < 600
    if "many" in case.more(there):
        (first, _) = run(here, case, there, "json").json["member_list"]
        assert len(first["assigned"]) == MANY // 2
        whole = run(here, case, there, "table", "--all").stdout
        assert f"wide-{MANY - 4}," in whole


MANY = 4_000


@cache
def many() -> Observation:
    """Two members that read so many partitions."""
    answers = an_observation(a=(1,), b=(2,), c=(3,))
    answers.topic("wide", *((1 + number % 3, 1 + (number + 1) % 3) for number in range(MANY)))
    held = [tuple(TopicPartition("wide", number) for number in range(begin, MANY, 2)) for begin in (0, 1)]
    members = [
        consumer(f"m-{rack}", rack, "wide-0")._replace(assignment=mine, target=mine)
        for rack, mine in zip("ab", held, strict=True)
    ]
    return answers.kip848("many", *members).at()
