"""The JSON lines of benches of Spark, as `tests.bench.spark` reads them."""

from __future__ import annotations

import json


def tell(
    bench: str, case: str, value: float, unit: str, goal: float | None = None, *, note: str = "", **more: object
) -> None:
    """Print one figure; ``goal`` is the most that it should be."""
    line: dict[str, object] = {
        "bench": bench,
        "case": case,
        "value": round(value, 3 if value < 10 else 1),
        "unit": unit,
    }
    line |= {} if goal is None else {"goal": goal, "ok": value <= goal}
    line |= {"note": note} if note else {}
    print(json.dumps(line | more), flush=True)
