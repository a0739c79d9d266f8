"""Numbers of brokers as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.detect.detect_context import numbered


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], ""),
        ([4], "4"),
        ([2, 1], "1 and 2"),
        ([1, 2, 3], "1 to 3"),
        ([9, 1, 2, 4, 5, 6], "1, 2, 4 to 6 and 9"),
        (range(0, 60, 2), f"{', '.join(map(str, range(0, 40, 2)))} and 10 more"),
    ],
)
def test_numbers_in_words(numbers: list[int], words: str) -> None:
    assert numbered(numbers) == words


@given(st.sets(st.integers(0, 300), max_size=15))
def test_every_number_is_in_the_words(numbers: set[int]) -> None:
    told = {
        one
        for word in numbered(numbers).replace(" and ", ", ").split(", ")
        if word
        for one in range(int(word.split(" to ")[0]), int(word.split(" to ")[-1]) + 1)
    }
    assert told == numbers
