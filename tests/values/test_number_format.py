"""How sizes, prices and lists are written: what is compared reads differently, and what is left out is counted."""

from __future__ import annotations

import pytest

from agent.values.number_format import few, sized, sized_apart, usd_per_gb


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


@pytest.mark.parametrize(
    ("price", "words"),
    [(0.02, "$0.02/GB"), (1e-7, "$0.0000001/GB"), (0.1, "$0.1/GB"), (12_345_678, "$12,345,678/GB"), (0, "$0/GB")],
)
def test_a_price_has_all_its_digits_and_no_exponent(price: float, words: str) -> None:
    assert usd_per_gb(price) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, ""), (1, "0"), (3, "0, 1, 2"), (4, "0, 1, 2 and 1 more"), (1_203, "0, 1, 2 and 1,200 more")],
)
def test_a_long_list_names_the_first_and_counts_the_others(number: int, words: str) -> None:
    assert few(range(number), 3) == words
