"""Two recorded looks of a cluster whose bytes cost money, and the rows that a command prints of them.

Two brokers in two racks, no rack-aware selector; each of four partitions takes in 1 MB/s, which is $1.728 a day at
$0.02 a gigabyte for each time that it crosses.
"""

from __future__ import annotations

from typing import Any

from tests.builders import Answers, an_observation, reader
from tests.cli.conftest import Run
from tests.snapshots import tp

A_DAY = 1.728


def priced_cluster() -> Answers:
    answers = an_observation(a=(1,), b=(2,)).selector(None)
    answers.topic("orders", (1, 2), (2, 1), (1, 2), (2, 1), ends=[0] * 4).topic("audit", (1,), (2,), ends=[0] * 2)
    answers.group(
        "shop", reader("m1", "a", "orders-1 orders-3 audit-1"), reader("m2", "b", "orders-0 orders-2 audit-0")
    )
    answers.group("near", reader("n1", "a", "orders-0"), reader("n2", "b", "orders-1"))
    answers.group("old", state="Empty")
    answers.committed = {
        "shop": {tp("orders-0"): 9_000, tp("orders-1"): 10_000, tp("orders-2"): 10_000, tp("orders-3"): 9_999,
                 tp("audit-0"): 0, tp("audit-1"): 0},
        "near": {tp("orders-0"): 10_000},
    }  # fmt: skip
    return sized(answers)


def sized(answers: Answers) -> Answers:
    answers.sizes = {(b, partition): end * 1_000 for partition, end in answers.ends.items() for b in (1, 2)}
    return answers


def rows(here: Run, *arguments: str) -> Any:
    done = here(*arguments, "-o", "json")
    assert (done.exit_code, done.stderr) == (0, done.stderr)
    return done.json
