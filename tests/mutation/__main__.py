"""``make mutants``: draw mutants of what acts by a seed, run the tests against each, and name every one that survives.

mutmut makes the mutants, has their types checked and runs the tests that reach them (``[tool.mutmut]`` in
pyproject.toml); this draws the sample and judges it. A survivor that behaves like the original stands in
``survivors.txt`` with the reason. Exit 1: less than 95 % of the others were killed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants
from mutmut.mutation.data import MutantLineSpans, SourceFileMutationData
from mutmut.mutation.diff_apply import generated_function_names
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

from .drawing import Mutant, drawn, explained, mutant

LEAST_KILLED = 0.95
_MADE = Path("mutants")
_EXPLAINED = Path(__file__).with_name("survivors.txt")
_MOST_BYTES = 6 << 30
"""A mutant that collects without end fails by this much address space, and takes no other process along."""
_NOT_DRAWN = 34
"""mutmut's exit code of a mutant that it skips."""
_VERDICTS = ("tests", "types", "explained", "survived")
_BY_TESTS = frozenset({"killed", "timeout", "segfault"})


def main() -> int:
    """Run the sample and print its table; 1 where it falls short."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--children", type=int, default=2, help="so many mutants are run side by side")
    parser.add_argument("-o", "--output", type=Path, help="write a line of JSON for each mutant there")
    asked = parser.parse_args()
    _make(asked.children)
    sample = drawn(_all_mutants(), asked.seed, asked.count)
    _skip_all_but({each.name for each in sample})
    _run(asked.children)
    return _judge(sample, asked.output)


def _make(children: int) -> None:
    """Write the mutants of the code as it is now, none of an earlier run among them."""
    shutil.rmtree(_MADE, ignore_errors=True)
    with redirect_stdout(StringIO()):
        copy_src_dir()
        copy_also_copy_files()
        create_mutants(children)


def _all_mutants() -> Iterator[Mutant]:
    for data in _files():
        spans = MutantLineSpans.load(data.path)
        lines = (_MADE / data.path).read_text().splitlines()
        for name in data.exit_code_by_key:
            old, new = (
                "\n".join(lines[span.start - 1 : span.end])
                for span in map(spans.span_by_function_name.__getitem__, generated_function_names(name))
            )
            if found := mutant(name, old, new):
                yield found


def _skip_all_but(names: set[str]) -> None:
    for data in _files():
        data.exit_code_by_key = {name: None if name in names else _NOT_DRAWN for name in data.exit_code_by_key}
        data.save()


def _run(children: int) -> None:
    """In a process of its own, which knows no module of the original code."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where mypy is
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(children)]
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    subprocess.run(command, check=True, env={**os.environ, "PATH": path})


def _judge(sample: list[Mutant], output: Path | None) -> int:
    codes = {name: code for data in _files() for name, code in data.exit_code_by_key.items()}
    equal = explained(_EXPLAINED.read_text())
    verdicts = {
        each: _verdict(status_by_exit_code[codes[each.name]], is_explained=each.change in equal) for each in sample
    }
    if output:
        output.write_text(
            "".join(json.dumps({**each._asdict(), "verdict": verdict}) + "\n" for each, verdict in verdicts.items())
        )
    by_module: dict[str, Counter[str]] = {}
    for each, verdict in verdicts.items():
        by_module.setdefault(each.name.rpartition(".")[0].removeprefix("agent."), Counter())[verdict] += 1
    counts = Counter(verdicts.values())
    print("\n| module | mutants | killed by tests | by types | explained | survived |\n|---|---|---|---|---|---|")
    for module, row in [*sorted(by_module.items()), ("all", counts)]:
        print(f"| {module} | {row.total()} | {' | '.join(str(row[verdict]) for verdict in _VERDICTS)} |")
    for each, verdict in verdicts.items():
        if verdict == "survived":
            print(f"SURVIVED {each.name}\n  {each.change}")
    left = counts["tests"] + counts["survived"]
    killed = (counts["tests"] + counts["types"]) / max(1, left + counts["types"])
    print(f"{killed:.1%} of the mutants that behave otherwise were killed")
    print(f"{counts['tests'] / max(1, left):.1%} of those whose types are right")
    return 1 if killed < LEAST_KILLED else 0


def _verdict(status: str, *, is_explained: bool) -> str:
    """Which of ``_VERDICTS`` mutmut's word and the explanations come to."""
    if status in _BY_TESTS:
        return "tests"
    if status == "caught by type check":
        return "types"
    return "explained" if is_explained else "survived"


def _files() -> Iterator[SourceFileMutationData]:
    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        yield data


if __name__ == "__main__":
    sys.exit(main())
