"""The table of threads in docs/flow.md, read off `agent.errors`. Write it anew: python -m tests.docs.threads"""

from __future__ import annotations

from pathlib import Path

from agent.errors import LIBRARY_THREADS, THREADS

FLOW = Path(__file__).parents[2] / "docs" / "flow.md"
BEGIN, END = "<!-- threads -->", "<!-- end of threads -->"


def table() -> str:
    """One row per kind of thread."""
    every = (*THREADS, *LIBRARY_THREADS)
    rows = ["| thread | work | errors that it expects | any other error |", "|---|---|---|---|"]
    return "\n".join([*rows, *(f"| `{one.name}` | {one.work} | {one.expected} | {one.other} |" for one in every)])


def written() -> str:
    """docs/flow.md with the table of today."""
    before, _, rest = FLOW.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    FLOW.write_text(written())
