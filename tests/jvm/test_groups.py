"""The golden file of the Java assignor is what its generator writes, and has groups of every sort."""

from __future__ import annotations

import json

from tests.jvm.groups import GOLDEN, golden_lines


def test_the_golden_file_is_as_the_generator_writes_it() -> None:
    assert GOLDEN.read_text("utf-8").splitlines() == golden_lines(), "python -m tests.jvm.groups writes it anew"


def test_the_golden_file_has_groups_of_every_sort() -> None:
    groups = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
    assert len(groups) >= 400
    different = [len({tuple(sorted(each["topics"])) for each in group["members"]}) for group in groups]
    assert min(sum(count == 1 for count in different), sum(count > 1 for count in different)) > 150
    optima = [group["optimum"] for group in groups]
    for figure in ("crossing", "moved"):
        assert min(sum(each[figure] == 0 for each in optima), sum(each[figure] > 0 for each in optima)) > 50
    assert sum(max(each["loads"]) - min(each["loads"]) > 1 for each in optima) > 50, "unequal by their subscriptions"
