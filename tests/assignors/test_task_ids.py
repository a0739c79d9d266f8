"""Task ids as integers: sorted, found and refused exactly as names are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.optimal.task_ids import _by_name, _by_number, number_ids
from assignors.problem import BadProblem, TaskId
from tests.assignors.strategies import examples

FAR = 1 << 62
NUMBERS = st.sampled_from((0, 1, 2, 3, 7))


@examples(300)
@given(
    ids=st.lists(st.builds(TaskId, NUMBERS, NUMBERS), max_size=8, unique=True),
    claims=st.lists(st.lists(st.builds(TaskId, NUMBERS, NUMBERS), max_size=4, unique=True), max_size=4),
    far=st.booleans(),
)
def test_integers_and_names_agree(ids: list[TaskId], claims: list[list[TaskId]], *, far: bool) -> None:
    quick = _by_number(ids, claims)
    assert quick is not None
    named = _by_name(ids, claims)
    assert sorted(ids) == [ids[place] for place in (range(len(ids)) if quick.order is None else quick.order)]
    assert quick.subtopology.tolist() == named.subtopology.tolist()
    assert quick.owner.tolist() == named.owner.tolist()
    if far:
        spread = [*ids, TaskId(FAR, 1), TaskId(-FAR, 1)]
        assert _by_number(spread, claims) is None
        assert len(number_ids(spread, claims).owner) == len(spread)


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param([TaskId("1", 0), TaskId("2", 0)], id="strings that look like numbers"),
        pytest.param([TaskId(1 << 70, 0), TaskId(2, 0)], id="more than 64 bits"),
    ],
)
def test_what_is_no_small_number_goes_the_way_of_names(ids: list[TaskId]) -> None:
    assert _by_number(ids, [[ids[1]]]) is None
    assert number_ids(ids, [[ids[1]], [TaskId(9, 9)]]).owner.tolist().count(0) == 1


@pytest.mark.parametrize("ids", [[TaskId(0, 1), TaskId(2, 0), TaskId(0, 1)], [TaskId("a", 1), TaskId("a", 1)]])
def test_an_id_that_occurs_twice_is_named(ids: list[TaskId]) -> None:
    with pytest.raises(BadProblem, match=f"task {ids[0]} occurs twice"):
        number_ids(ids, [])
