"""The golden files of the Java assignors are what their generators write, and have groups of every sort."""

from __future__ import annotations

import json

from tests.jvm import classic_groups
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


def test_the_golden_file_of_classic_groups_is_as_the_generator_writes_it() -> None:
    lines = classic_groups.GOLDEN.read_text("utf-8").splitlines()
    assert lines == classic_groups.golden_lines(), "python -m tests.jvm.classic_groups writes it anew"


def test_the_golden_file_of_classic_groups_has_groups_of_every_sort() -> None:
    groups = [json.loads(line) for line in classic_groups.GOLDEN.read_text("utf-8").splitlines()]
    assert len(groups) >= 400
    assert sum(each["assignment"] is not None for each in groups) > 100, "where nothing has to move"
    assert sum(bool(each["waiting"]) for each in groups) > 50, "where a member holds what another is to read"
    assert sum(any(m["owned"] for m in g["members"]) and any(not m["owned"] for m in g["members"]) for g in groups) > 50
    assert sum(m["understood"] is not None for each in groups for m in each["members"]) > 100, "foreign user data"
