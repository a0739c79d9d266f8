"""``make bench-spark``: run every ``spark_*.py`` beside this file in a fresh process and print one Markdown table.

Each prints JSON lines: ``{"bench", "case", "value", "unit"}`` and, where a figure has a bound, ``"goal"`` and ``"ok"``;
``"note"`` says what it was measured on, and the other fields of a line follow. Exit 1 tells of a missed bound
or of a bench that failed. ``--into FILE`` puts the table between the file's two comments that name this bench.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BEGIN, END = "<!-- bench-spark: begin -->", "<!-- bench-spark: end -->"
_TOLD = ("bench", "case", "value", "unit", "goal", "ok", "note")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="names of benches, as in spark_NAME.py")
    parser.add_argument("-o", "--output", type=Path, help="write the lines there as well")
    parser.add_argument("--into", type=Path, help="a file of documentation; the table there is replaced by this one")
    arguments = parser.parse_args()
    names = arguments.only or sorted(path.stem.removeprefix("spark_") for path in HERE.glob("spark_*.py"))
    lines: list[dict[str, Any]] = []
    failed: list[str] = []
    print(f"Python {platform.python_version()} on {platform.machine()}", file=sys.stderr)
    for name in names:
        print(f"--- {name}", file=sys.stderr, flush=True)
        began = time.monotonic()
        run = subprocess.run(
            [sys.executable, "-m", f"tests.bench.spark_{name}"], stdout=subprocess.PIPE, text=True, check=False
        )
        lines += [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        took_s = round(time.monotonic() - began)
        lines.append({"bench": name, "case": "all of it, its input made up included", "value": took_s, "unit": "s"})
        if run.returncode:
            failed.append(f"{name} ended with {run.returncode}")
    if arguments.output:
        arguments.output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print("\n".join(table(lines)))
    if arguments.into:
        arguments.into.write_text(with_table(arguments.into.read_text(), table(lines)))
    failed += [f"{line['bench']}: {line['case']}" for line in lines if line.get("ok") is False]
    for sentence in failed:
        print(f"MISSED {sentence}", file=sys.stderr)
    return 1 if failed else 0


def with_table(text: str, rows: list[str]) -> str:
    """The text with these rows between the two comments."""
    head, begun, rest = text.partition(BEGIN)
    _, ended, tail = rest.partition(END)
    if not (begun and ended):
        raise SystemExit(f"there is no {BEGIN} followed by {END} to put the table between")
    return "\n".join((f"{head}{BEGIN}", "", *rows, "", f"{END}{tail}"))


def table(lines: list[dict[str, Any]]) -> list[str]:
    """One row per line."""
    return [
        "| what | figure | bound | | measured on |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(_cells(line))} |" for line in lines),
    ]


def _cells(line: dict[str, Any]) -> tuple[str, ...]:
    unit = str(line.get("unit", ""))
    figure = _with_unit(line["value"], unit) if "value" in line else ""
    goal = _with_unit(line["goal"], unit) if line.get("goal") is not None else ""
    verdict = {True: "met", False: "missed"}.get(line.get("ok"), "")
    rest = [f"{key} {_shown(value)}" for key, value in line.items() if key not in _TOLD]
    return (
        f"{line['bench']}: {line['case']}",
        figure,
        goal,
        verdict,
        ", ".join([*filter(None, [line.get("note")]), *rest]),
    )


def _with_unit(value: object, unit: str) -> str:
    return f"{_shown(value)} {unit}".rstrip()


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    sys.exit(main())
