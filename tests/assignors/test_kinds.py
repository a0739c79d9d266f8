"""Rows of numbers by their bytes: the order and the positions that NumPy finds number by number."""

from __future__ import annotations

import random

import numpy as np
import pytest

from assignors.optimal.kinds import unique_rows


@pytest.mark.parametrize("highest", [1, 3, 256, 70_000, 1 << 40, (1 << 62) - 1])
@pytest.mark.parametrize("shape", [(1, 1), (40, 1), (60, 3), (300, 51)])
def test_rows_are_in_the_order_of_their_numbers(shape: tuple[int, int], highest: int) -> None:
    rng = random.Random(highest + shape[0])
    rows = np.array([[rng.randint(0, highest) for _ in range(shape[1])] for _ in range(shape[0])], np.int64)
    rows = np.vstack([rows, rows[::2]])
    found, which = unique_rows(rows)
    expected, positions = np.unique(rows, axis=0, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert which.tolist() == positions.ravel().tolist()


@pytest.mark.parametrize("shape", [(0, 3), (0, 0)])
def test_no_rows_are_no_rows(shape: tuple[int, int]) -> None:
    found, which = unique_rows(np.zeros(shape, np.int64))
    assert found.shape == shape
    assert which.tolist() == []


def test_rows_without_columns_are_all_the_same() -> None:
    found, which = unique_rows(np.zeros((4, 0), np.int64))
    assert found.shape == (1, 0)
    assert which.tolist() == [0, 0, 0, 0]
