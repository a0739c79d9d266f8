"""Every table of group kinds names the same kinds, and the contributors' page names files that exist."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

from agent.observe.observe_cluster import interned_observation
from agent.predict.predict import PREDICTED_ASSIGNORS
from agent.telemetry.events import GROUP_SHAPES
from agent.values.observation import DescribedKind, RawConsumerGroup, RawGroup
from agent.values.snapshot import CLASSIC_KINDS, COORDINATOR_KINDS, ONLY_ASSIGNORS, GroupKind
from agent.wire.group_calls import DESCRIBE_CALLS
from tests.builders import Answers, consumer, reader

ROOT = Path(__file__).resolve().parents[2]


def test_each_kind_of_described_group_has_its_call_and_its_event() -> None:
    kinds = set(get_args(RawGroup))
    assert set(DescribedKind.__constraints__) == kinds
    assert set(GROUP_SHAPES.values()) == kinds
    assert len(DESCRIBE_CALLS) == len(GROUP_SHAPES)


def test_a_kind_is_assigned_by_a_member_or_by_the_coordinator() -> None:
    assert CLASSIC_KINDS.isdisjoint(COORDINATOR_KINDS)
    assert CLASSIC_KINDS | set(COORDINATOR_KINDS) == set(GroupKind) - {GroupKind.SHARE, GroupKind.OTHER}
    assert set(PREDICTED_ASSIGNORS) | set(ONLY_ASSIGNORS) == set(GroupKind) - {
        GroupKind.CLASSIC_STREAMS, GroupKind.SHARE, GroupKind.OTHER
    }  # fmt: skip


def test_a_group_that_changed_its_kind_is_the_group_that_was_described_now() -> None:
    classic = Answers().group("g", reader("m", "a", "t-0")).at(0)
    newer = Answers().kip848("g", consumer("m", "a", "t-0")).at(1)
    kept = interned_observation(newer, replace(classic, taken_ms=newer.taken_ms))
    assert kept == newer
    assert [type(group) for group in kept.groups] == [RawConsumerGroup]


def test_the_files_of_a_new_group_kind_exist_and_are_at_most_twelve() -> None:
    section = (ROOT / "docs" / "contributing.md").read_text().partition("## A new group kind")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(agent/[\w/]+\.py)`", section))
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
    assert 0 < len(named) <= 12
