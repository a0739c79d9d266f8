"""``assign`` and ``optimize``: Kafka's assignors and the optimizer on files, without a cluster."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.options import read_json, write_json
from agent.cli.output import OutputFormat, emit_line, say
from agent.errors import BadInput
from agent.values.number_format import counted

if TYPE_CHECKING:
    from agent.documents.config import AssignedCase, OptimizeDocument

FAILED = 1
_FORMS = frozenset(form.value for form in OutputFormat)


class CountsMode(StrEnum):
    """How many tasks a client may run."""

    FIXED = "fixed"
    FREE = "free"


class BalanceMode(StrEnum):
    """Whether clients are bounded per subtopology too."""

    NONE = "none"
    SUBTOPOLOGY = "subtopology"


def _file(path: Path | None) -> Path | None:
    """The file for the result. Raises BadInput for the name of a format, which ``-o`` of other commands takes."""
    if path is not None and str(path) in _FORMS:
        raise BadInput(
            f"-o {path} is an output format of other commands, not a file",
            why="the result of this command is always JSON, and its -o is the file for it",
            todo=f"Leave out -o for standard output, or name a file such as result-{path}.json.",
        )
    return path


Result = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File for the result as JSON; default: standard output.",
        callback=_file,
    ),
]


def assign(
    cases: Annotated[
        Path, typer.Argument(metavar="FILE", help="File of cases, JSON with or without gzip; - is standard input.")
    ],
    output: Result = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with the outputs in the file; exit code 1 when one differs.")
    ] = False,
) -> None:
    """Run Kafka's own assignors and replica placers on the cases of a file."""
    from assignors.cases.check import first_difference
    from assignors.cases.registry import read_cases, run_case
    from assignors.problem import BadProblem

    passed = failed = skipped = 0
    results: list[AssignedCase] = []
    try:
        for case in read_cases(read_json(cases)):
            own = run_case(case)
            results.append({"id": case.id, "output": own})
            if not check:
                continue
            if case.output is None:
                skipped += 1
            elif (different := first_difference(case, own)) is None:
                passed += 1
            else:
                failed += 1
                emit_line(f"{case.id}: {different}")
    except BadProblem as error:
        raise BadInput(f"{cases}: {error}") from error
    if output is not None or not check:
        write_json(output, {"results": results})
    if check:
        emit_line(f"{passed} passed, {failed} failed, {skipped} skipped")
        raise typer.Exit(FAILED if failed or skipped else 0)


def optimize(
    problem: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="File of a problem, JSON with or without gzip; - is standard input."),
    ],
    counts: Annotated[
        CountsMode,
        typer.Option(
            help="fixed: clients keep their numbers of tasks; free: floor or ceiling of the share by capacity."
        ),
    ] = CountsMode.FREE,
    balance: Annotated[BalanceMode, typer.Option(help="subtopology: the bounds hold per subtopology too.")] = (
        BalanceMode.SUBTOPOLOGY
    ),
    traffic_cost: Annotated[
        int, typer.Option(metavar="N", help="Cost of a source partition without a replica in the rack.")
    ] = 10,
    non_overlap_cost: Annotated[int, typer.Option(metavar="N", help="Cost of a task that moves.")] = 1,
    output: Result = None,
    timings: Annotated[bool, typer.Option("--timings", help="Print the CPU time of each step on stderr.")] = False,
) -> None:
    """The cheapest assignment of Kafka Streams tasks, with the proof that none costs less."""
    from assignors.optimal.columns import column_model, optimal_columns, read_columns
    from assignors.problem import BadProblem

    clock = _Clock()
    try:
        columns = read_columns(read_json(problem))
        clock.mark("read")
        model = column_model(columns)
        clock.mark("model")
        best = optimal_columns(model, counts.value, balance.value, traffic_cost, non_overlap_cost)
        clock.mark("solve")
    except BadProblem as error:
        raise BadInput(f"{problem}: {error}") from error
    document: OptimizeDocument = {
        "client": best.client.tolist(),
        "cost": best.cost,
        "cross_rack": best.cross_rack,
        "moved": best.moved,
        "lower_bound": best.lower_bound,
        "optimal": best.optimal,
        "seconds": clock.seconds,
    }
    clock.mark("expand")
    write_json(output, document)
    proof = "the least possible" if best.optimal else f"at least {best.lower_bound} is needed"
    crossing, moved = counted(best.cross_rack, "source partition"), counted(best.moved, "task")
    say(f"cost {best.cost} ({proof}): {crossing} across racks, {moved} moved")
    if timings:
        spent = ", ".join(f"{name} {seconds:.4f}" for name, seconds in clock.seconds.items())
        say(f"seconds of CPU: {spent}, the whole command {time.process_time():.4f}")


class _Clock:
    """CPU time between marks: another process on the machine does not count."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.process_time()

    def mark(self, name: str) -> None:
        now = time.process_time()
        self.seconds[name] = round(now - self._last, 6)
        self._last = now
