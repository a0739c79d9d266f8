"""``make mutants``: draw mutants of what acts by a seed, run the tests against each, and name every one that survives.

mutmut makes the mutants and runs the tests that reach them (``[tool.mutmut]`` in pyproject.toml). This draws the sample
and judges it. A mutant that changes the text of a sentence only is not drawn: the golden list of sentences guards those.
A survivor that cannot be killed because it behaves alike stands in ``survivors.txt`` with the reason; exit 1 tells of
others, or of a sample of which less than 95 % is killed.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MADE = Path("mutants")
EXPLAINED = Path(__file__).with_name("survivors.txt")
LEAST_KILLED = 0.95
_OF_EACH_CALL = 200
"""Names in one command line of mutmut."""
_SURVIVED = frozenset({0, 33, None})
"""mutmut's exit codes of a mutant that all tests pass, that no test reaches, and that has not been run."""
_TIMED_OUT = frozenset({24, 36, 152, 255, -24})


class Mutant(NamedTuple):
    """One changed line."""

    name: str
    """As mutmut calls it: module, function, number."""
    change: str
    """``function: old line -> new line``, which stays the same when other lines of the function change."""


def main() -> int:
    """Run the sample and print its table; 1 where it falls short."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--children", type=int, default=2, help="tests of so many mutants run side by side")
    parser.add_argument("-o", "--output", type=Path, help="write a line of JSON for each mutant there")
    asked = parser.parse_args()
    _mutmut("run", "nothing.but.the.making")
    names = sorted(_results())
    drawn = list(_drawn(names, random.Random(asked.seed), asked.count))
    for start in range(0, len(drawn), _OF_EACH_CALL):
        _mutmut("run", "--max-children", str(asked.children), *(each.name for each in drawn[start : start + _OF_EACH_CALL]))
    return _judge(drawn, _results(), asked.output)


def _judge(drawn: list[Mutant], results: dict[str, int | None], output: Path | None) -> int:
    explained = set(_explained())
    verdicts = {each: _verdict(results[each.name], each.change in explained) for each in drawn}
    if output:
        output.write_text("".join(json.dumps({**each._asdict(), "verdict": said}) + "\n" for each, said in verdicts.items()))
    by_module: dict[str, Counter[str]] = {}
    for each, said in verdicts.items():
        by_module.setdefault(each.name.rpartition(".")[0], Counter())[said] += 1
    for module, counts in sorted(by_module.items()):
        print(f"{module}: " + ", ".join(f"{number} {said}" for said, number in sorted(counts.items())))
    counts = Counter(verdicts.values())
    killed = (counts["killed"] + counts["timed out"]) / (len(drawn) - counts["explained"])
    print(f"{len(drawn)} mutants: " + ", ".join(f"{number} {said}" for said, number in sorted(counts.items())))
    print(f"{killed:.1%} of those that can be killed are")
    for each, said in verdicts.items():
        if said == "survived":
            print(f"SURVIVED {each.name}\n  {each.change}")
    return 1 if killed < LEAST_KILLED or not drawn else 0


def _verdict(code: int | None, explained: bool) -> str:
    if code in _SURVIVED:
        return "explained" if explained else "survived"
    return "timed out" if code in _TIMED_OUT else "killed"


def _drawn(names: list[str], chance: random.Random, count: int) -> Iterator[Mutant]:
    """Yield mutants in an order that the seed decides, without those that change a text alone."""
    chance.shuffle(names)
    found = 0
    for name in names:
        if found == count:
            return
        old, new = _lines(name)
        if _without_text(old) != _without_text(new):
            found += 1
            yield Mutant(name, f"{_function(name)}: {' '.join(old.split())} -> {' '.join(new.split())}")


def _lines(name: str) -> tuple[str, str]:
    """Return the lines that the mutant takes out and those that it puts in."""
    shown = _mutmut("show", name, quiet=True).splitlines()
    diff = [line for line in shown if not line.startswith(("---", "+++", "#"))]
    return tuple("\n".join(line[1:] for line in diff if line.startswith(sign)) for sign in "-+")  # type: ignore[return-value]


def _without_text(source: str) -> list[str]:
    """Return the tokens of some lines, every string alike."""
    tokens = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.strip()).readline):
            if token.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                tokens.append("text" if token.type == tokenize.STRING else token.string)
    except (tokenize.TokenError, IndentationError):
        pass  # part of a statement: what was read is compared
    return tokens


def _function(name: str) -> str:
    return name.rpartition("__mutmut_")[0].replace(".x_", ".", 1)


def _results() -> dict[str, int | None]:
    """Return each mutant's exit code; None for one that was not run."""
    return {
        name: code
        for path in sorted(MADE.rglob("*.meta"))
        for name, code in json.loads(path.read_text())["exit_code_by_key"].items()
    }


def _explained() -> Iterator[str]:
    """Yield the changes of ``survivors.txt``: two lines each, the change and, indented, why it changes nothing."""
    for line in EXPLAINED.read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            yield line


def _mutmut(*arguments: str, quiet: bool = False) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments], stdout=subprocess.PIPE if quiet else None, text=True, check=False
    )
    return run.stdout or ""


if __name__ == "__main__":
    sys.exit(main())
