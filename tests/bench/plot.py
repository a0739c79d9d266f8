"""Draw the growth of ``bench_assignors`` as SVG and print its table: ``python -m tests.bench.plot LINES.jsonl docs``.

LINES.jsonl is what ``python -m tests.bench assignors -o LINES.jsonl`` writes. Both axes are logarithmic, so a power
of the size is a straight line and its slope the exponent.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, LEGEND = 860, 470, 70, 50, 20, 400
COLOURS = ("#1f5fbf", "#c0392b", "#2e8b57", "#8e44ad", "#d68910", "#16818f", "#7f5539", "#444444", "#d6336c")


def main() -> int:
    lines = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    rows = [line for line in lines if line["bench"] == "assignors"]
    series = {row["case"]: row["points"] for row in rows if "points" in row}
    (Path(sys.argv[2]) / "growth-assignors.svg").write_text(drawn(series))
    print("\n".join(table(rows)))
    return 0


def table(rows: list[dict[str, Any]]) -> list[str]:
    found = [
        "| work | figure | goal | exponent | memory beyond input | Kafka's Java | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        kafka = f"{shown(row['kafka_cpu_s'])} ({row.get('kafka', 'run')})" if "kafka_cpu_s" in row else row["kafka"]
        figure, goal = shown(row["cpu_s"]), shown(row["goal"]) if "goal" in row else ""
        if "times_faster" in row:
            figure, goal = f"{figure}: {row['times_faster']:.3g} times faster", f"{row['goal_times_faster']:.0e} times"
        if "times_kafka" in row:
            figure, goal = f"{figure}: {row['times_kafka']} x Java", f"{row['goal_times_kafka']} x Java"
        memory = f"{row['more_mib']:.0f} MiB" if "more_mib" in row else ""
        verdict = "met" if row["ok"] else "missed"
        found.append(
            f"| {row['case']} | {figure} | {goal} | {row.get('exponent', '')} | {memory} | {kafka} | {verdict} |"
        )
    return found


def shown(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def drawn(series: dict[str, list[list[float]]]) -> str:
    sizes = [size for points in series.values() for size, _ in points]
    times = [took for points in series.values() for _, took in points]
    low_x, high_x = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes)))
    low_y, high_y = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def at(size: float, took: float) -> tuple[float, float]:
        across = (math.log10(size) - low_x) / (high_x - low_x)
        up = (math.log10(took) - low_y) / (high_y - low_y)
        return LEFT + across * (WIDTH - LEFT - LEGEND), HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - TOP)

    box = f"0 0 {WIDTH} {HEIGHT}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for power in range(low_x, high_x + 1):
        (x, bottom), (_, top) = at(10**power, 10**low_y), at(10**power, 10**high_y)
        parts.append(f'<path d="M{x:.1f} {bottom:.1f}V{top:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{10**power:,}</text>')
    for power in range(low_y, high_y + 1):
        (left, y), (right, _) = at(10**low_x, 10**power), at(10**high_x, 10**power)
        parts.append(f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{shown(10**power)}</text>')
    middle = LEFT + (WIDTH - LEFT - LEGEND) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">tasks, partitions or replicas</text>')
    for number, (name, points) in enumerate(series.items()):
        colour, dash = COLOURS[number % len(COLOURS)], ' stroke-dasharray="5 3"' if name.startswith("Kafka") else ""
        places = [at(*point) for point in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = TOP + 14 + 20 * number
        parts.append(f'<path d="M{WIDTH - LEGEND + 14} {y - 4}h18" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{WIDTH - LEGEND + 38}" y="{y}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    sys.exit(main())
