"""The pipeline's part of the demo, as far as no cluster is needed: whose folder it takes, and what it leaves."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.demo.console import DemoConsole
from testbed.demo.requirements import DemoRequirementError
from testbed.demo.spark import SparkOptions, SparkPipeline, SparkStepError, check_spark
from testbed.demo.stall_timeout import StallTimeout

SENTENCES = Path(__file__).parents[1] / "golden" / "sentences.txt"


def side(report: Path) -> SparkPipeline:
    where = SparkOptions("127.0.0.1:1", report.parent / "logs", report)
    return SparkPipeline(where, DemoConsole(io.StringIO()), lambda: None)


def tables_of_an_earlier_demo(report: Path) -> Path:
    folder = report / "tables" / "bronze" / "telemetry"
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_rackwise.json").write_text("{}")
    return report / "tables"


def test_it_takes_a_folder_that_is_new_or_empty_or_holds_tables_of_rackwise(tmp_path: Path) -> None:
    (tmp_path / "empty" / "tables").mkdir(parents=True)
    tables_of_an_earlier_demo(tmp_path / "earlier")
    for name in ("none", "empty", "earlier"):
        assert str(tmp_path / name) in check_spark(tmp_path / name)


def test_it_leaves_a_folder_alone_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "thesis.md").write_text("years of work")
    with pytest.raises(DemoRequirementError, match="are no tables of rackwise") as refused:
        check_spark(tmp_path)
    assert "--report" in refused.value.todo
    assert (tmp_path / "tables" / "thesis.md").exists()


def test_it_says_where_report_and_tables_are_and_one_that_never_began_takes_nothing_away(tmp_path: Path) -> None:
    tables = tables_of_an_earlier_demo(tmp_path / "report")
    told = "\n".join(side(tmp_path / "report").summary())
    assert str(tmp_path / "report" / "report.html") in told
    assert f"{tables}  (1 in bronze; docs/tables.md" in told
    side(tmp_path / "report").close()
    assert tables.exists()


class Clock:
    """Moves on with each pause; what happens meanwhile is done then."""

    def __init__(self, happens: Callable[[float], None]) -> None:
        self.now = 0.0
        self._happens = happens

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self._happens(self.now)


class Process:
    """A command that ends when a test says so."""

    pid = 0

    def __init__(self) -> None:
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self.returncode


class Played:
    """A pipeline's side whose report is a `Process`, with what it writes and uses told by a test."""

    def __init__(self, tmp_path: Path, happens: Callable[[Played, float], None]) -> None:
        self.process, self.cpu_s = Process(), 0.0
        self.clock = Clock(lambda now: happens(self, now))
        self.report = tmp_path / "report"
        self.logs = tmp_path / "logs"
        self.logs.mkdir()
        self.side = SparkPipeline(
            SparkOptions("127.0.0.1:1", self.logs, self.report),
            DemoConsole(io.StringIO()),
            lambda: None,
            patience=StallTimeout(100, self.clock.pause, lambda: self.clock.now),
            cpu_s=lambda _pid: self.cpu_s,
        )
        self.side._command = lambda *_: self.process  # type: ignore[assignment, method-assign, return-value]

    def say(self, line: str) -> None:
        with (self.logs / "spark-report.log").open("a") as log:
            log.write(f"{line}\n")

    def finished(self) -> list[str]:
        return self.side._finished("report", "--out", str(self.report))


@pytest.mark.parametrize("sign", ["lines", "files", "processor"])
def test_a_slow_report_is_waited_for_as_long_as_it_makes_progress(tmp_path: Path, sign: str) -> None:
    def happens(played: Played, now: float) -> None:
        if now % 90 == 0:
            if sign == "lines":
                played.say(f"page {now:.0f}")
            elif sign == "files":
                played.report.mkdir(exist_ok=True)
                (played.report / f"{now:.0f}.csv").touch()
            else:
                played.cpu_s += 6
        if now == 1_000:
            (played.logs / "spark-report.out").write_text("what it says first\n")
            played.process.returncode = 0

    played = Played(tmp_path, happens)
    assert played.finished() == ["what it says first"]
    assert played.clock.now == 1_000, "ten times as long as it may stand still"


def test_one_that_stands_still_is_named_with_what_it_did_last(tmp_path: Path) -> None:
    def happens(played: Played, now: float) -> None:
        played.cpu_s += 0.01  # as Java does that only waits
        if now == 60:
            played.say("reading gold/ledger")

    (tmp_path / "ingest").mkdir()
    played = Played(tmp_path, happens)
    (played.logs / "spark-ingest.log").write_text("1157 records in all\n")
    with pytest.raises(SparkStepError) as failed:
        played.finished()
    assert failed.value.what == "The demo waited in vain for the end of rackwise spark report"
    assert failed.value.why == (
        "no progress for 100 s of the 160 s that it was waited for; at last progress: "
        "0 files, 1 s of CPU time, and its last line is: reading gold/ledger"
    )
    assert failed.value.todo == f"Its log is {played.report / 'report.log'}."
    assert (played.report / "report.log").read_text() == "reading gold/ledger\n"


def test_one_that_dies_is_named_with_its_exit_code_and_its_last_line(tmp_path: Path) -> None:
    def happens(played: Played, now: float) -> None:
        if now == 30:
            played.say("no space left")
            played.process.returncode = 1

    with pytest.raises(SparkStepError) as failed:
        Played(tmp_path, happens).finished()
    assert (failed.value.what, failed.value.why) == (
        "rackwise spark report ended with exit code 1",
        "its last line is: no space left",
    )


def test_what_dies_before_it_gave_what_is_wanted_is_named_with_that(tmp_path: Path) -> None:
    def happens(played: Played, now: float) -> None:
        played.process.returncode = 5

    played = Played(tmp_path, happens)
    with pytest.raises(SparkStepError) as failed:
        played.side._wait("ingest", played.process, "the first gold tables", played.side._has_gold)  # type: ignore[arg-type]
    assert failed.value.what == "rackwise spark ingest ended with exit code 5 before the first gold tables"
    assert failed.value.why == "it wrote no line"


def test_weights_that_the_agent_never_plans_by_are_named(tmp_path: Path) -> None:
    def happens(played: Played, now: float) -> None:
        with (played.logs / "spark-ingest.log").open("a") as log:
            log.write(f"gold: batch {now:.0f}\n")  # it writes on and on
            if now == 200:
                log.write('{"event": "ingest", "sentence": "weights: 12 records written"}\n')

    played = Played(tmp_path, happens)
    played.side._ingest = played.process  # type: ignore[assignment]
    wanted = "a proposal that names bytes/s by the weights"
    with pytest.raises(SparkStepError) as failed:
        played.side._wait("ingest", played.process, wanted, lambda: False, played.side._weights_progress)  # type: ignore[arg-type]
    assert failed.value.what == f"The demo waited in vain for {wanted} of rackwise spark ingest"
    assert "weights are published, and the agent does not plan by them" in failed.value.why
    assert played.clock.now == pytest.approx(300, abs=2)


def test_a_batch_that_ingest_left_is_written_before_the_report(tmp_path: Path) -> None:
    """By the sentence that ingest ends with."""
    sentence = next(line for line in SENTENCES.read_text().splitlines() if "a batch did not end within" in line)
    played = Played(tmp_path, lambda _played, _now: None)
    played.process.returncode = 0
    commands: list[tuple[str, ...]] = []
    played.side._command = lambda *words: commands.append(words) or played.process  # type: ignore[assignment, func-returns-value, method-assign, return-value]
    log = played.logs / "spark-ingest.log"
    log.write_text("1157 records in all\n")
    played.side._end_ingest()
    assert commands == []
    log.write_text(f"{sentence.partition(': ')[2]}\n1157 records in all\n")
    played.side._end_ingest()
    assert commands == [("ingest", "--once", "--bootstrap-servers", "127.0.0.1:1")]
