"""``make bench``: run every ``bench_*.py`` beside this file in a fresh process and print one table.

Each bench prints JSON lines: ``{"bench", "case", "size", "cpu_s", ...}``. A line with ``goal`` names the bound that
``docs/benchmarks.md`` promises; the table shows figure, bound and growth, and exit 1 tells of a missed bound.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="names of benches, as in bench_NAME.py")
    parser.add_argument("-o", "--output", type=Path, help="write the lines there as well")
    arguments = parser.parse_args()
    names = arguments.only or sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    lines: list[dict[str, object]] = []
    failed = []
    print(f"Python {platform.python_version()} on {platform.machine()}", file=sys.stderr)
    for name in names:
        print(f"--- {name}", file=sys.stderr, flush=True)
        run = subprocess.run(
            [sys.executable, "-m", f"tests.bench.bench_{name}"], stdout=subprocess.PIPE, text=True, check=False
        )
        found = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        lines += found
        for line in found:
            print("  " + "  ".join(f"{key}={_shown(value)}" for key, value in line.items() if key != "bench"))
        if run.returncode:
            failed.append(f"{name} ended with {run.returncode}")
    if arguments.output:
        arguments.output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    failed += [f"{line['bench']}: {line['case']}" for line in lines if line.get("ok") is False]
    for sentence in failed:
        print(f"MISSED {sentence}", file=sys.stderr)
    return 1 if failed else 0


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
