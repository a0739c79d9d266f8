"""The golden file of the Java assignor of tasks is what its generator writes, with applications of every sort."""

from __future__ import annotations

import json
from typing import Any

from tests.jvm.applications import GOLDEN, golden_lines


def test_the_golden_file_is_as_the_generator_writes_it() -> None:
    assert GOLDEN.read_text("utf-8").splitlines() == golden_lines(), "python -m tests.jvm.applications writes it anew"


def test_the_golden_file_has_applications_of_every_sort() -> None:
    applications = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
    assert len(applications) >= 300
    optima = [each["optimum"] for each in applications]

    def enough(figures: list[Any]) -> bool:
        return min(sum(not each for each in figures), sum(bool(each) for each in figures)) > 40

    assert enough([each["crossing"] for each in optima])
    assert enough([each["moved"] for each in optima])
    assert enough([each["unique"] for each in optima])
    copied = [each["optimum"]["standbys"] for each in applications if each["settings"]["standbys"]]
    assert enough([each["one_flow"] for each in copied])
    assert enough([each["shared"] for each in copied])
    assert enough([each["imbalance"] for each in copied])
    threads = [len({process["threads"] for process in each["processes"].values()}) > 1 for each in applications]
    assert enough(threads)
