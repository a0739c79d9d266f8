"""The pipeline of the demo: tables from telemetry, weights for the agent, and a report.

Each command is a process of its own, started as a person would start it: the agent never imports the pipeline.
Invariant: after `close` none of them runs any more. A command is waited for as long as it makes progress; an
error names the command, what was waited for, its progress, and its log.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import psutil

from agent.errors import GaveUp, RackwiseError
from agent.values.cycle import Cycle, figures_rest_on
from agent.values.number_format import counted
from agent.values.proposal import Proposal
from agent.values.weights import FigureBasis
from testbed.demo.console import ConsoleLine, DemoConsole
from testbed.demo.requirements import DemoRequirementError
from testbed.demo.stall_timeout import NoProgressError, ProgressMark, StallTimeout

_MASTER = "local[2]"
_INGEST_EVERY = "15s"
_HISTORIES_EVERY = "1m"
_PATIENCE = "1m"
"""When the demo is killed and its brokers are gone, ingest ends by itself after this long."""
_BALANCE = "beside its counters"
"""In the notes of the report that compare the ledger with counters."""
_STILL_S = 150.0
"""So long a command may show no progress: no output, no file, no time of the processor."""
_CPU_STEP_S = 5.0
"""Less is what a Java process uses that only waits."""
_END_WITHIN_S = 30.0
_WANTED_TABLES = ("gold/partition_traffic", "gold/read_traffic", "gold/ledger")
_MARK = "bronze/telemetry/_rackwise.json"
"""Lies in every folder of tables that ingest has begun."""
_UNFINISHED = "the next start repeats it"
"""In the line of ingest about a batch that took too long to be waited for."""
_SHOWN_STEPS = ("gold:", "weights:")
"""Lines of ingest that are shown here; the others are in its log."""
_NAMES_A_RATE = re.compile(r"\d [kMGTP]?B/s")
_SHOWN = 3


class SparkStepError(GaveUp):
    """A step of the pipeline did not do what the demo promises."""


class SparkOptions(NamedTuple):
    """What the commands are given."""

    bootstrap_servers: str
    folder: Path
    """Logs; goes with the cluster."""
    report: Path
    """Folder of the report and of the tables below it; stays."""

    @property
    def tables(self) -> Path:
        """Root of the tables."""
        return self.report / "tables"


def check_spark(report: Path) -> str:
    """One sentence. Raises DemoRequirementError without the Spark extra, and when the tables' place is taken."""
    if find_spec("pyspark") is None:
        raise DemoRequirementError(
            "The demo with Spark needs the Spark extra",
            why="pyspark is not installed beside rackwise",
            todo="Run `make demo-spark`, or install it with `pip install 'rackwise[spark]'`.",
        )
    tables = report / "tables"
    if tables.exists() and not (tables / _MARK).exists() and any(tables.iterdir()):
        raise DemoRequirementError(
            f"{tables} is in the way",
            why="the demo keeps its tables there, and what is there now are no tables of rackwise",
            todo="Name another folder with --report.",
        )
    return f"the Spark extra is installed; tables and report go to {report.absolute()}"


class SparkPipeline:
    """A thread that runs the commands, one after another, while the agent looks."""

    def __init__(
        self,
        where: SparkOptions,
        screen: DemoConsole,
        last: Callable[[], Cycle | None],
        *,
        patience: StallTimeout | None = None,
        cpu_s: Callable[[int], float] | None = None,
    ) -> None:
        self._where = where
        self._screen = screen
        self._last = last
        self._ingest: subprocess.Popen[bytes] | None = None
        self._step: subprocess.Popen[bytes] | None = None
        self._leave = threading.Event()
        self._patience = patience or StallTimeout(_STILL_S, self._leave.wait)
        self._cpu_s = cpu_s or _cpu_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-spark", daemon=True)
        self.error: RackwiseError | None = None
        """What went wrong; None while nothing did."""
        self._first = ""
        self._balance: tuple[str, ...] = ()
        self._shown_lines = 0

    @property
    def over(self) -> bool:
        """Whether every step was done, or one went wrong."""
        return self._over.is_set()

    def summary(self) -> tuple[str, ...]:
        """The closing lines."""
        where = self._where
        tables = [one.parent for one in where.tables.glob("*/*/_delta_log")]
        layers = Counter(table.parent.name for table in tables)
        counts = ", ".join(f"{number} in {layer}" for layer, number in sorted(layers.items()))
        return (
            "",
            "What the report says first",
            f"  {self._first}",
            *(f"  {line}" for line in self._balance),
            f"  the report   {(where.report / 'report.html').absolute()}",
            f"  the tables   {where.tables.absolute()}  ({counts}; docs/tables.md says what is in them)",
            f"  again        rackwise spark report --tables {where.tables} --out {where.report}",
        )

    def start(self) -> None:
        """Begin; the agent is looking."""
        self._thread.start()

    def close(self) -> None:
        """End every command that runs, also when a signal comes meanwhile."""
        self._leave.set()
        try:
            if self._thread.is_alive():
                self._thread.join()
        finally:
            for process in (self._step, self._ingest):
                _end(process)
            if self._ingest is not None and not self._first:
                # Half a story is of no help; what explains a failure is in the logs.
                shutil.rmtree(self._where.tables, ignore_errors=True)

    def _run(self) -> None:
        try:
            self._play()
        except RackwiseError as error:
            self.error = error
            self._tell("problem", str(error))
        finally:
            self._over.set()

    def _play(self) -> None:
        began = time.monotonic()
        # Tables of an earlier demo are those of a cluster that is gone.
        shutil.rmtree(self._where.tables, ignore_errors=True)
        self._tell(
            "scene",
            "rackwise spark ingest --weights: telemetry, proposals and journal become tables, batch by batch, and "
            "bytes per second go back to the agent",
        )
        wanted = (f"interval={_INGEST_EVERY}", f"patience={_PATIENCE}", f"histories_every={_HISTORIES_EVERY}")
        pace = (word for one in wanted for word in ("--set", f"spark.{one}"))
        self._ingest = self._command("ingest", "--weights", "--bootstrap-servers", self._where.bootstrap_servers, *pace)
        self._wait("ingest", self._ingest, "the first gold tables", self._has_gold)
        took = time.monotonic() - began
        self._tell("spark", f"gold is there, {took:.0f} s after ingest was started (Spark's own start is part of it)")
        planned = "a proposal that names bytes/s by the weights"
        self._wait("ingest", self._ingest, planned, lambda: bool(self._weighted()), self._weights_progress)
        weighted = self._weighted()[:_SHOWN]
        self._tell("weights", *(proposal.sentence for proposal in weighted), figures_rest_on(weighted) or "")
        self._tell("scene", "rackwise spark report: what it costs, and what to do first")
        self._end_ingest()
        lines = self._finished("report", "--out", str(self._where.report))
        self._first = lines[0] if lines else ""
        notes = _lines(self._where.report / "report.md")
        self._balance = tuple(line.lstrip("- ").replace("\\", "") for line in notes if _BALANCE in line)

    def _end_ingest(self) -> None:
        """End it, and write the batch that it left: the report would lack its looks."""
        _end(self._ingest)
        if any(_UNFINISHED in line for line in _lines(self._log("ingest"))):
            self._finished("ingest", "--once", "--bootstrap-servers", self._where.bootstrap_servers)

    def _weighted(self) -> list[Proposal]:
        """Proposals of the last cycle that name bytes per second by the pipeline's weights."""
        cycle = self._last()
        return sorted(
            (
                proposal
                for proposal in (cycle.proposals if cycle is not None else ())
                if ("basis", FigureBasis.WEIGHTS.value) in proposal.evidence and _NAMES_A_RATE.search(proposal.sentence)
            ),
            key=lambda proposal: proposal.id,
        )

    def _has_gold(self) -> bool:
        """A table has a log once its first rows can be read."""
        return all(any((self._where.tables / name / "_delta_log").glob("*.json")) for name in _WANTED_TABLES)

    def _command(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """The command as a process in a session of its own, so that a Ctrl-C here does not reach it first.

        Nice, because brokers and clients are on the same cores, and a broker that is starved ends the show.
        """
        command = ["nice", "-n", "5", sys.executable, "-m", "agent", "spark", name, *arguments]
        command += ["--tables", str(self._where.tables), "--master", _MASTER]
        # What the environment sets is meant for the user's own cluster.
        environment = {key: value for key, value in os.environ.items() if not _is_setting(key)}
        with self._log(name).open("wb") as log, self._out(name).open("wb") as out:
            return subprocess.Popen(command, stdout=out, stderr=log, env=environment, start_new_session=True)

    def _finished(self, name: str, *arguments: str) -> list[str]:
        """What the command printed."""
        process = self._step = self._command(name, *arguments)
        self._wait(name, process, "the end", lambda: process.poll() is not None)
        if process.returncode:
            raise self._failed(name, f"rackwise spark {name} ended with exit code {process.returncode}")
        return _lines(self._out(name))

    def _wait(
        self,
        name: str,
        process: subprocess.Popen[bytes],
        wanted: str,
        there: Callable[[], bool],
        sign: Callable[[], ProgressMark] | None = None,
    ) -> None:
        """Wait until ``wanted`` of that command is there. Raises SparkStepError when it ended without it or stalls."""

        def check() -> None:
            self._tell_news()
            if self._leave.is_set():
                raise SparkStepError(
                    "The demo ended before the pipeline was through", todo="Give it more DEMO_SECONDS."
                )
            if process.poll() is not None and not there():
                what = f"rackwise spark {name} ended with exit code {process.returncode} before {wanted}"
                raise self._failed(name, what)

        try:
            self._patience.wait(there, sign or (lambda: self._progress(name, process)), check)
        except NoProgressError as still:
            raise self._failed(
                name, f"The demo waited in vain for {wanted} of rackwise spark {name}", str(still)
            ) from None

    def _progress(self, name: str, process: subprocess.Popen[bytes]) -> ProgressMark:
        """How far a command is, by what it writes and by the time that it has of the processor."""
        files = sum(len(found) for _, _, found in os.walk(self._where.report))
        written_bytes = sum(one.stat().st_size for one in (self._log(name), self._out(name)) if one.exists())
        cpu_s = self._cpu_s(process.pid)
        last = self._last_line(name)
        ending = f", and its last line is: {last}" if last else ""
        text = f"{counted(files, 'file')}, {cpu_s:.0f} s of CPU time{ending}"
        return ProgressMark((files, written_bytes, int(cpu_s / _CPU_STEP_S)), text)

    def _weights_progress(self) -> ProgressMark:
        """Weights are published, read by the agent, and then planned by. Ingest itself writes on and on."""
        published = [line for line in map(_said, _lines(self._log("ingest"))) if line.startswith("weights:")]
        cycle = self._last()
        state = cycle.snapshot.weights if cycle is not None else None
        if not published and self._ingest is not None:
            return self._progress("ingest", self._ingest)
        if state is not None and state.why_not is None:
            return ProgressMark("read", "weights are published, and the agent plans by them")
        why_not = f": {state.why_not}" if state is not None else ""
        return ProgressMark("published", f"weights are published, and the agent does not plan by them{why_not}")

    def _tell_news(self) -> None:
        """What ingest has worked out since."""
        lines = _lines(self._log("ingest"))
        new, self._shown_lines = lines[self._shown_lines :], len(lines)
        self._tell("spark", *(line for line in map(_said, new) if line.startswith(_SHOWN_STEPS)))

    def _failed(self, name: str, what: str, why: str = "") -> SparkStepError:
        last = self._last_line(name)
        return SparkStepError(
            what,
            why=why or (f"its last line is: {last}" if last else "it wrote no line"),
            todo=f"Its log is {self._keep_log(name)}.",
        )

    def _last_line(self, name: str) -> str:
        return _said(next(reversed(_lines(self._log(name))), ""))

    def _keep_log(self, name: str) -> Path:
        """The folder goes with the cluster; the logs of a failure stay next to the report."""
        self._where.report.mkdir(parents=True, exist_ok=True)
        kept = self._where.report / f"{name}.log"
        kept.write_bytes(self._log(name).read_bytes() if self._log(name).exists() else b"")
        return kept

    def _log(self, name: str) -> Path:
        return self._where.folder / f"spark-{name}.log"

    def _out(self, name: str) -> Path:
        return self._where.folder / f"spark-{name}.out"

    def _tell(self, mark: str, *sentences: str) -> None:
        self._screen.tell(*(ConsoleLine(mark, sentence) for sentence in sentences))


def _is_setting(name: str) -> bool:
    return name.startswith("RACKWISE_") and name not in {"RACKWISE_CACHE", "RACKWISE_STATE"}


def _cpu_s(pid: int) -> float:
    """Time of the processor that the process and all below it have used; 0 when it is gone."""
    try:
        own = psutil.Process(pid)
        times = [one.cpu_times() for one in (own, *own.children(recursive=True))]
    except psutil.Error:
        return 0.0
    return sum(one.user + one.system for one in times)


def _lines(file: Path) -> list[str]:
    text = file.read_text(errors="replace") if file.exists() else ""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _said(line: str) -> str:
    """The sentence of an event in a log; the line itself where it is none."""
    try:
        return str(json.loads(line)["sentence"])
    except (ValueError, TypeError, KeyError):
        return line


def _end(process: subprocess.Popen[bytes] | None) -> None:
    """Ask it to end, and end it."""
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_END_WITHIN_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
