"""Pages of a list: nothing twice and nothing missed within one look, searches and sorts, and cursors that are none."""

from __future__ import annotations

from typing import Any

import pytest

from agent.web.api.answers import ListKind, ListQuery, page_of
from agent.web.api.problems import ApiProblem

KIND = ListKind(("name",), ("name", "tags"), ("name", "size"))
ROWS: list[dict[str, Any]] = [
    {"name": f"g-{number:03}", "size": None if number % 7 == 0 else number % 5, "tags": [f"t{number % 3}"]}
    for number in range(100)
]


def asked(limit: int = 10, cursor: str | None = None, q: str = "", sort: str = "") -> ListQuery:
    return ListQuery(limit, cursor, q, sort)


def walk(rows: list[dict[str, Any]], q: str = "", sort: str = "", limit: int = 7) -> list[str]:
    names: list[str] = []
    cursor = None
    while True:
        page = page_of(rows, KIND, asked(limit, cursor, q, sort))
        names += [row["name"] for row in page.rows]
        cursor = page.next
        if cursor is None:
            return names


@pytest.mark.parametrize("limit", [1, 7, 100, 1_000])
@pytest.mark.parametrize("sort", ["", "name", "-name", "size", "-size"])
def test_the_pages_of_one_look_are_the_whole_list(sort: str, limit: int) -> None:
    names = walk(ROWS, sort=sort, limit=limit)
    assert sorted(names) == [row["name"] for row in ROWS]


@pytest.mark.parametrize("sort", ["size", "-size"])
def test_what_is_unknown_comes_last_both_ways(sort: str) -> None:
    sizes = [next(row["size"] for row in ROWS if row["name"] == name) for name in walk(ROWS, sort=sort)]
    known = [size for size in sizes if size is not None]
    assert sizes == [*known, *[None] * (len(sizes) - len(known))]
    assert known == sorted(known, reverse=sort.startswith("-"))


@pytest.mark.parametrize(("q", "number"), [("G-09", 10), ("t1", 33), ("nothing", 0), ("", 100)])
def test_a_search_is_of_any_case_and_also_in_lists(q: str, number: int) -> None:
    page = page_of(ROWS, KIND, asked(5, q=q))
    assert (page.total, len(walk(ROWS, q=q))) == (number, number)


def test_a_list_that_grows_while_it_is_read_repeats_no_row() -> None:
    """Such as the journal, the latest first: it grows within one look."""
    first = page_of(ROWS, KIND, asked(10, sort="-name"))
    grown = [*ROWS, {"name": "g-100", "size": 1, "tags": []}]
    page = page_of(grown, KIND, asked(10, first.next, sort="-name"))
    assert [row["name"] for row in page.rows][:2] == ["g-089", "g-088"]


def test_rows_that_are_equal_in_every_field_are_each_sent_once() -> None:
    twins = [{"name": "a", "size": 1, "tags": []}] * 5
    assert len(walk(twins, limit=1)) == 5


def test_in_a_newer_look_a_page_begins_after_the_same_row() -> None:
    first = page_of(ROWS, KIND, asked(10, sort="name"))
    newer = [{"name": "a-new", "size": 1, "tags": []}, *ROWS]
    page = page_of(newer, KIND, asked(10, first.next, sort="name"))
    assert [row["name"] for row in page.rows][:2] == ["g-010", "g-011"]


def test_where_the_row_is_gone_a_page_begins_with_the_one_that_came_after_it() -> None:
    first = page_of(ROWS, KIND, asked(10, sort="name"))
    newer = [row for row in ROWS if row["name"] != "g-009"]
    page = page_of(newer, KIND, asked(10, first.next, sort="name"))
    assert page.rows[0]["name"] == "g-010"
    assert page_of(ROWS[:3], KIND, asked(10, first.next, sort="name")).rows == []


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "e30",
        "W10",
        "AAAA",
        "=",
        "%00",
        "é",
        "[" * 500,
        "W1tbW1tbXQ",
        "WzEsLTUsIngiLCIiXQ",
        "WzEsMiwzLDRd",
        "Wy01LCJ4IiwiXG4iXQ",
        "WzEsMiwiXG4iXQ",
        "WzFlNDAwLCJ4IiwiXG4iXQ",
    ],
)
def test_a_cursor_that_is_none_is_a_problem(cursor: str) -> None:
    with pytest.raises(ApiProblem) as raised:
        page_of(ROWS, KIND, asked(cursor=cursor))
    assert raised.value.status == 422


def test_a_cursor_of_another_search_or_sort_is_a_problem() -> None:
    cursor = page_of(ROWS, KIND, asked(sort="name")).next
    for query in (asked(cursor=cursor), asked(cursor=cursor, sort="-name"), asked(cursor=cursor, sort="name", q="g")):
        with pytest.raises(ApiProblem, match="another search or sort"):
            page_of(ROWS, KIND, query)


@pytest.mark.parametrize("sort", ["tags", "--name", "-", "__class__", "name desc"])
def test_only_named_fields_can_be_sorted_by(sort: str) -> None:
    with pytest.raises(ApiProblem) as raised:
        page_of(ROWS, KIND, asked(sort=sort))
    assert (raised.value.status, raised.value.todo) == (422, "Sort by one of: name, size")
