"""The examples of docs/clients.md do what they show, on real brokers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.live import Lab

DOCUMENT = Path(__file__).parents[2] / "docs" / "clients.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
MOST_LINES = 10
RUN_READ = "\nimport asyncio\nasyncio.run(asyncio.wait_for(read(), 8))\n"


def test_examples_are_short_and_of_both_clients() -> None:
    lines = [len(example.strip().splitlines()) for example in EXAMPLES]
    assert len(lines) == 3
    assert max(lines) <= MOST_LINES
    assert sum("aiokafka" in example for example in EXAMPLES) == 1


@pytest.mark.integration
def test_examples_read(lab: Lab) -> None:
    """Side by side, each in a process and a group of its own."""
    running = []
    for number, example in enumerate(EXAMPLES):
        code = example.replace("localhost:9092", lab.bootstrap).replace('"clicks"', '"drop-in-clicks"')
        code = re.sub(r'group_id="\w+"', f'group_id="{lab.name(f"example{number}")}"', code)
        if "async def read" in code:
            code += RUN_READ
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        running.append((process, lab.records("drop-in-clicks")))
    for process, records in running:
        out, errors = process.communicate(timeout=60)
        assert len(out.splitlines()) == records, errors[-2_000:]
