"""How sizes are written: three digits, never four, and never the same words for two figures that are compared."""

from __future__ import annotations

import pytest

from agent.values.words import sized, sized_apart


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"), (999, "999 B"), (999.6, "1.0 kB"), (1_820, "1.8 kB"), (99_960, "100 kB"), (999_999, "1.0 MB"),
        (416_000_000, "416 MB"), (-150_000, "-150 kB"), (3e18, "3000 PB"),
    ],
)  # fmt: skip
def test_a_size_has_at_most_three_digits_before_its_unit(size: float, words: str) -> None:
    assert sized(size) == words


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        pytest.param(1_500, 2_500, ("1.5 kB", "2.5 kB"), id="they differ anyway"),
        pytest.param(1_000, 1_000, ("1.0 kB", "1.0 kB"), id="they are the same"),
        pytest.param(1_000_001, 1_000_000, ("1,000,001 B", "1,000,000 B"), id="by one byte"),
    ],
)
def test_a_figure_and_its_bound_read_the_same_only_where_they_are(
    one: float, other: float, words: tuple[str, str]
) -> None:
    assert sized_apart(one, other) == words
