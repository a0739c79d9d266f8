"""Many random groups: the Java assignor's figures beside those of ``optimal_consumer``, judged here.

    python -m tests.jvm.compare --groups 20000 --seed 1

Ends with exit code 1 and the first groups that differ. A third of the groups run with a limit of moves: they must be as
balanced, and equal to the optimum where that needs no more moves than the limit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assignors import TopicPartition
from testbed.cluster.jars import kafka_jars
from testbed.cluster.spec import DEFAULT_VERSION
from tests.jvm.building import run_maven
from tests.jvm.groups import figures, optimum, problem_of, random_groups

Question = dict[str, Any]
Ask = Callable[[Question], dict[str, Any]]
MAIN = "rackwise.assignor.CompareMain"
LIMITS = (None, None, 3)
SHOWN = 5


@contextmanager
def assignor(directory: Path, main_class: str = MAIN) -> Iterator[Ask]:
    """The Java assignor as a function from a question to its answer; compiled into the directory."""
    run_maven("test-compile", f"-Dbuild.home={directory}")
    jars = kafka_jars(DEFAULT_VERSION)
    classpath = f"{directory / 'classes'}:{directory / 'test-classes'}:{jars.classpath}"
    command = (str(jars.java), "-cp", classpath, main_class)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        to, from_ = process.stdin, process.stdout

        def ask(question: dict[str, Any]) -> dict[str, Any]:
            to.write(json.dumps(question) + "\n")
            to.flush()
            answer: dict[str, Any] = json.loads(from_.readline())
            return answer

        yield ask
        to.close()
    assert process.returncode == 0, f"Java ended with {process.returncode}"


def difference(group: dict[str, Any], limit: int | None, ask: Ask) -> str | None:
    """What is wrong with the answer to a group; None when nothing is."""
    answer = ask(group if limit is None else {**group, "max_moves": limit})
    if answer["fallback"]:
        return f"fell back: {answer['fallback']}"
    assignment = {
        member: tuple(TopicPartition(topic, number) for topic, numbers in topics.items() for number in numbers)
        for member, topics in answer["assignment"].items()
    }
    found, best = figures(problem_of(group), assignment), optimum(group)
    if found == best:
        return None
    limited = limit is not None and best["moved"] > limit and found["crossing"] >= best["crossing"]
    return None if limited and found["loads"] == best["loads"] else f"{found} where {best} is possible"


def compared(  # noqa: PLR0917 (what is compared, then how)
    title: str,
    cases: str,
    count: int,
    made: Callable[[int, int], Iterable[Question]],
    differs: Callable[[int, Question, Ask], str | None],
    main_class: str,
) -> int:
    """Compare as many cases as asked for on the command line; the exit code. ``made`` makes them of seed and count."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument(f"--{cases}", dest="count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as directory, assignor(Path(directory), main_class) as ask:
        for number, case in enumerate(made(asked.seed, asked.count)):
            if why := differs(number, case, ask):
                wrong += 1
                if wrong <= SHOWN:
                    print(f"number {number} of seed {asked.seed}: {why}\n{json.dumps(case)}")
    print(f"{asked.count:,} {cases} of seed {asked.seed}: {wrong} differ from the optimum")
    return 1 if wrong else 0


def _with_a_limit(number: int, group: Question, ask: Ask) -> str | None:
    limit = LIMITS[number % len(LIMITS)]
    why = difference(group, limit, ask)
    return why and f"limit {limit}: {why}"


def main() -> int:
    """Compare as many groups as asked for."""
    return compared(__doc__ or "", "groups", 20_000, random_groups, _with_a_limit, MAIN)


if __name__ == "__main__":
    sys.exit(main())
