"""The file map of docs/flow.md, read off the modules' own first lines. Write it anew: python -m tests.docs.flow"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLOW = ROOT / "docs" / "flow.md"
BEGIN, END = "<!-- files -->", "<!-- end of files -->"

PIPELINE = (
    "pipeline",
    "pipeline/schemas",
    "pipeline/transforms",
    "pipeline/stream",
    "pipeline/jobs",
    "pipeline/commands",
    "pipeline/report",
    "pipeline/sql",
    "pipeline/backtest",
    "pipeline/fleet",
)

SECTIONS = (
    ("values", "pure; every stage may import them", ("agent/values",)),
    ("1. observe", "shell", ("agent/observe", "agent/wire")),
    ("2. decode", "pure", ("agent/decode",)),
    ("3. model", "pure", ("agent/model", "agent/memory")),
    ("4. detect", "pure", ("agent/detect",)),
    ("predict: the assignment that a group's own assignor will give", "pure", ("agent/predict",)),
    ("5. plan", "pure", ("agent/plan",)),
    ("6. propose", "pure", ("agent/propose",)),
    ("what it costs", "pure", ("agent/money",)),
    ("7. guard", "pure", ("agent/guard",)),
    (
        "8. act",
        "shell",
        (
            "agent/act",
            "agent/act/journal",
            "agent/act/reassign",
        ),
    ),
    (
        "what acting rests on",
        "pure",
        (
            "agent/execute",
            "agent/execute/reassign",
            "agent/execute/commands",
            "agent/journal",
        ),
    ),
    ("9. record", "shell", ("agent/record",)),
    ("what record writes, and what comes back from the pipeline", "pure", ("agent/telemetry",)),
    ("the stages outside of the loop", "pure", ("agent/simulate",)),
    ("explain and doctor", "pure", ("agent/explain",)),
    ("documents of command line and API", "pure", ("agent/documents",)),
    ("around the line", "", ("agent", "agent/daemon", "agent/web", "agent/web/access", "agent/web/api", "agent/cli")),
    ("notifications", "pure but for service and notifier", ("agent/notify",)),
    ("the page", "HTML of the running agent, fixed words in `templates/`; it asks no broker", ("agent/web/page",)),
    ("assignors", "pure, usable alone", ("assignors", "assignors/optimal")),
    ("Kafka's assignors", "pure, usable alone", ("assignors/kafka", "assignors/cases")),
    ("assignors for Python consumers", "each knows the client it is for", ("assignors/clients",)),
    (
        "pipeline",
        "on Spark; pure but for sources, sinks and runners",
        PIPELINE,
    ),
    ("settings", "", ("config",)),
    (
        "test bed: embedded cluster and demo",
        "the agent does not import it",
        ("testbed", "testbed/cluster", "testbed/demo", "testbed/demo/workload"),
    ),
)


def file_map() -> str:
    """One table per stage: module and what it answers."""
    listed: set[Path] = set()
    lines: list[str] = []
    for title, nature, places in SECTIONS:
        lines += [
            "",
            f"### {title}" + (f" ({nature})" if nature else ""),
            "",
            "| file | what it answers |",
            "|---|---|",
        ]
        for place in places:
            for module in modules(ROOT / place):
                if module not in listed:
                    listed.add(module)
                    lines.append(f"| `{module.relative_to(ROOT)}` | {first_line(module)} |")
    return "\n".join([*lines, ""])


def modules(place: Path) -> list[Path]:
    """A module, or the modules right inside a package that say something."""
    if place.suffix == ".py":
        return [place]
    return sorted(module for module in place.glob("*.py") if module.name != "__init__.py")


def first_line(module: Path) -> str:
    """The first paragraph of the module's docstring, as one line."""
    text = ast.get_docstring(ast.parse(module.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def with_file_map(document: str) -> str:
    """The document with the present map between its marks."""
    head, _, rest = document.partition(BEGIN)
    return f"{head}{BEGIN}\n{file_map()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    FLOW.write_text(with_file_map(FLOW.read_text()))
