"""schemathesis against the API of a real server: its own OpenAPI document, its writes answered by a real leader.

``make schemathesis``; SCHEMATHESIS_CASES is how many cases there are at least (10,000).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from agent.values.limits import Limits
from agent.web import commands
from tests.cli.documents import a_cluster
from tests.cli.execute.file_agent import MOVE, FileAgent
from tests.web.access.site import site
from tests.web.api.agents import cycle_of, view_of
from tests.web.desks import KEY, desk_of

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "negative_data_rejection", "ignored_auth", "unsupported_method",
)  # fmt: skip

PARAMETERS = {"proposal": MOVE.id, "group": "app", "topic": "orders", "subject": "topic/orders"}


class FuzzResult(NamedTuple):
    """How a run ended."""

    cases: int
    exit_code: int
    printed: str


def run(folder: Path, examples: int, *, known: bool = False, phases: str = "coverage,fuzzing") -> FuzzResult:
    """Every operation with so many examples; ``known``: of names that there are, else of any."""
    parameters = PARAMETERS if known else {}
    lines = (f'{name} = "{value}"' for name, value in parameters.items())
    (folder / "schemathesis.toml").write_text("\n".join(["[parameters]", *lines, ""]))
    commands._POLL_S = 0.02
    path = folder / "journal"
    agent = FileAgent(path, Limits(), witnesses=(KEY,))
    try:
        desk = desk_of(path, agent.journal.view)
        with site(folder, view=view_of(cycle_of(a_cluster().at())), desk=desk) as here:
            command = [
                sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run",
                f"http://{here.server.address}/api/v1/openapi.json",
                "--header", f"Authorization: {here.bearer('opa')['Authorization']}",
                "--checks", ",".join(CHECKS), "--max-examples", str(examples), "--seed", "1",
                "--exclude-path", "/events", "--phases", phases,
                "--generation-database", "none", "--request-timeout", "30", "--workers", "2", "--continue-on-failure",
                "--no-color",
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    finally:
        agent.close()
    printed = done.stdout + done.stderr
    found = re.search(r"(\d[\d,]*) (?:test cases )?generated", printed)
    return FuzzResult(int(found[1].replace(",", "")) if found else 0, done.returncode, printed)


if __name__ == "__main__":
    least = int(os.environ.get("SCHEMATHESIS_CASES", "10000"))
    results = []
    for known in (False, True):
        with tempfile.TemporaryDirectory() as made:
            results.append(run(Path(made), examples=max(1, least // 50), known=known))
        print(results[-1].printed, flush=True)
    cases = sum(result.cases for result in results)
    print(f"{cases:,} cases, exit codes {[result.exit_code for result in results]}")
    sys.exit(any(result.exit_code for result in results) or cases < least)
