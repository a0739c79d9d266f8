"""What the demo says of a warm-up: how far it is behind, and whether it comes closer or falls back."""

from __future__ import annotations

import pytest

from agent.values.snapshot import LagSource, Range, TaskCopy, TaskRole
from assignors.problem import TaskId
from testbed.demo.events import warmup_sentence
from tests.snapshots import a_cluster


@pytest.mark.parametrize(
    ("rate", "eta", "caught_up", "told"),
    [
        pytest.param(
            Range(288, 730, 1_633), Range(3, 6, 15), False,
            "catching up by 730 (288 to 1,633) records/s, expected to catch up in 6 (3 to 15) s",
            id="it comes closer",
        ),
        pytest.param(
            Range(650, 668, 690), Range(0.2, 0.4, 0.9), False,
            "catching up by 668 (650 to 690) records/s, expected to catch up within a second",
            id="it has as good as caught up",
        ),
        pytest.param(
            Range(667.7, 668.0, 668.2), Range(7.7, 8.0, 8.2), False,
            "catching up by 668 records/s, expected to catch up in 8 s",
            id="bounds that read the same are said once",
        ),
        pytest.param(
            Range(-64, -39, -20), None, False, "falling behind by 39 (20 to 64) records/s", id="it falls behind"
        ),
        pytest.param(
            Range(-58, -31, 0.3), None, False, "falling behind by 31 (0 to 58) records/s", id="at most not at all"
        ),
        pytest.param(Range(-0.2, 0.4, 3), None, False, "neither catching up nor falling behind", id="neither"),
        pytest.param(Range(-64, -39, -20), None, True, "caught up: promotable now", id="it has caught up"),
    ],
)  # fmt: skip
def test_the_pace_of_a_warm_up_is_told_as_a_person_would(
    rate: Range, eta: Range | None, caught_up: bool, told: str
) -> None:
    copy = TaskCopy(
        group_id="shop",
        process_id="p",
        task=TaskId(0, 2),
        role=TaskRole.WARMUP,
        role_certain=True,
        end_offset_sum=9_000,
        lag=Range(5_227, 5_227, 5_227),
        lag_source=LagSource.APPLICATION,
        lag_age_ms=0,
        rate_per_s=rate,
        eta_s=eta,
        caught_up=caught_up,
    )
    sentence = warmup_sentence(copy, a_cluster(a=(1,)).snapshot())
    assert sentence == f"shop 0_2, 5,227 records behind, {told}, source: application endpoint"
