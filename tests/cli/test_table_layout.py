"""Tables in little room: ids stay whole, what is the same in all rows gives way first, then sentences."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli import tables
from agent.cli.plan import WITH_PLUGIN
from agent.cli.table_layout import LEAST, TableLayout, lay_out, paragraph, text_width, wrap

COLUMNS = ("group", "kind", "state", "assignor", "members", "racks", "local_kafka", "gap")
ROWS = [
    [f"shop-orders-{number}", "classic", "Stable", assignor, str(number), "(unknown), a, b", f"{number} %", "3"]
    for number, assignor in enumerate(("cooperative-sticky", "range", "cooperative-sticky", "roundrobin"))
]
RIGHT = [name in {"members", "gap"} for name in COLUMNS]
MEMBER = "consumer-orders-app-1-0123abcd-0123-0123-0123-0123456789ab"


def lines(laid: TableLayout) -> list[str]:
    return [*laid.same, *laid.heads, *laid.body]


def test_a_table_that_fits_stays_as_it_is() -> None:
    laid = lay_out(("id", "members", "sentence"), [["a", "1", "x y"], ["b-long", "12", "z"]], (False, True, False), 80)
    assert laid == TableLayout((), ("id      members  sentence",), ("a             1  x y", "b-long       12  z"))


@pytest.mark.parametrize("width", [160, 120, 100, 80, 60, LEAST])
def test_no_line_is_wider_than_the_room_and_every_id_is_whole(width: int) -> None:
    found = lines(lay_out(COLUMNS, ROWS, RIGHT, width))
    assert max(map(text_width, found)) <= width
    for row in ROWS:
        assert sum(row[0] in line for line in found) == 1


def test_heads_fold_before_anything_else_gives_way() -> None:
    laid = lay_out(("id", "bytes_across_racks"), [["x" * 70, "12"], ["y" * 70, "13"]], (False, True), 80)
    assert laid.heads == ("id" + " " * 73 + "bytes", " " * 74 + "across", " " * 75 + "racks")
    assert laid.body == ("x" * 70 + " " * 8 + "12", "y" * 70 + " " * 8 + "13")


def test_a_head_does_not_fold_where_another_column_that_folds_anyway_can_give_the_room() -> None:
    rows = [["legacy-reports", "classic consumer", "3.2 MB/s"], ["shop", "classic streams", "1 B/s"]]
    columns = ("group", "kind", "across racks")
    for width in (40, 41):
        laid = lay_out(columns, rows, [False, False, False], width)
        assert len(laid.heads) == 1, (width, laid.heads)
        assert max(map(len, (*laid.heads, *laid.body))) <= width


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (
            ("topic", *tables.TOPICS[1:-1]),
            ["shop-app-store-changelog-v2", "120 MB/s", "≥ 120 MB/s", "≤ 3.2 MB/s", "$27.65 to $33.18"],
        ),
        (
            tables.GROUPS,
            ["legacy-reports", "classic consumer", "120", "57 %", "100 %", "≤ 3.2 MB/s", "≤ $5.53", "489,000"],
        ),
        (
            ("group", "kind", "now", "own", WITH_PLUGIN, "optimum", "waiting"),
            ["shop", "classic streams", "3 of 7 cross", "1 of 10", "0 of 3", "0 of 10", "30"],
        ),
    ],
    ids=["topics", "groups", "simulate"],
)
def test_heads_of_tables_are_one_line_on_a_terminal_of_eighty_columns(columns: Sequence[str], row: list[str]) -> None:
    """Of the tables with most columns."""
    laid = lay_out(columns, [row, ["orders", *row[1:]]], [False] * len(columns), 80)
    assert len(laid.heads) == 1, laid.heads


def test_a_column_with_one_value_folds_before_a_sentence_does() -> None:
    rows = [[f"g{number}", "the same in every row", f"this differs, as it is number {number}"] for number in range(3)]
    laid = lay_out(("id", "state", "sentence"), rows, (False,) * 3, 52)
    assert laid.body[:2] == ("g0  the same in      this differs, as it is number 0", "    every row")


def test_what_is_the_same_in_all_rows_is_told_once_where_it_has_no_room() -> None:
    laid = lay_out(COLUMNS, ROWS, RIGHT, 80)
    assert laid.same == ("in every row: racks (unknown), a, b",)
    assert laid.heads[0].split() == ["group", "kind", "state", "assignor", "members", "local", "kafka", "gap"]
    assert laid.body[0] == "shop-orders-0  classic  Stable  cooperative-sticky        0  0 %            3"


def test_the_widest_sentence_gives_way_first() -> None:
    rows = [["1", "a short reason", "a sentence that is a good deal longer than the reason beside it is"]] * 1
    laid = lay_out(("id", "reason", "sentence"), rows, (False,) * 3, 60)
    assert laid.body == (
        "1   a short reason  a sentence that is a good deal longer",
        "                    than the reason beside it is",
    )


def test_an_id_is_whole_in_a_block_of_its_own_where_ids_leave_no_room_for_columns() -> None:
    rows = [[MEMBER, MEMBER.upper(), "10.0.0.1", "a"], [MEMBER[::-1], "", "10.0.0.2", "b"]]
    laid = lay_out(("member", "client_id", "host", "rack"), rows, (False,) * 4, 80)
    assert laid.heads == ()
    assert laid.body == (
        f"member     {MEMBER}",
        f"client id  {MEMBER.upper()}",
        "host       10.0.0.1",
        "rack       a",
        "",
        f"member     {MEMBER[::-1]}",
        "host       10.0.0.2",
        "rack       b",
    )


def test_an_id_that_is_longer_than_the_room_folds_and_leaves_the_others_their_table() -> None:
    rows = [[f"orders-{number}", "Empty", "a sentence of some words that has to fold somewhere"] for number in range(4)]
    rows[2] = ["x" * 200, "Stable", "ok"]
    laid = lay_out(("group", "state", "sentence"), rows, (False,) * 3, 80)
    assert laid.body == (
        "orders-0  Empty   a sentence of some words that has to fold somewhere",
        "orders-1  Empty   a sentence of some words that has to fold somewhere",
        "x" * 80,
        "x" * 80,
        "x" * 40,
        "          Stable  ok",
        "orders-3  Empty   a sentence of some words that has to fold somewhere",
    )


def test_an_id_that_has_no_room_in_its_column_breaks_its_row_and_stays_whole() -> None:
    rows = [["abcab"[number], f"m-{number}", f"a sentence of some words, and number {number}"] for number in range(5)]
    rows[1][1] = MEMBER
    laid = lay_out(("rack", "member", "sentence"), rows, (False,) * 3, 64)
    assert laid.same == ()
    assert laid.body[:4] == (
        "a     m-0     a sentence of some words, and number 0",
        "b",
        f"      {MEMBER}",
        "              a sentence of some words, and number 1",
    )


def test_numbers_stand_at_the_right_and_wide_letters_count_twice() -> None:
    laid = lay_out(("id", "n"), [["注文", "1"], ["ab", "10"]], (False, True), 80)
    assert laid.body == ("注文   1", "ab    10")


def test_the_other_rows_are_laid_out_as_if_the_long_id_were_not_there() -> None:
    names = ("group", "kind", "members", "across racks", "$/day", "lag")
    rows = [[f"orders-{number}", "classic consumer", "2", "78.2 kB/s", "$0.14", "1,234,567"] for number in range(4)]
    right = [name == "members" for name in names]
    usual = lay_out(names, rows, right, 69)
    assert len(usual.heads) == 1
    long = lay_out(
        names, [*rows, ["x" * 240, "classic consumer", "2", "78.2 to 156 kB/s", "$0.14 to $0.28", "1"]], right, 69
    )
    assert (long.heads, long.body[:4]) == (usual.heads, usual.body)
    after = long.body[-3:]
    assert (after[0].split()[:3], after[1].split()) == (["classic", "consumer", "2"], ["156", "kB/s", "to"])


def test_an_id_that_folds_is_indented_below_the_row_that_it_breaks() -> None:
    rows = [["warning", f"group/{name}", "a sentence of words"] for name in ("norack", "wrong", "x" * 240)]
    laid = lay_out(("severity", "subject", "sentence"), rows, (False,) * 3, 80)
    first = laid.body.index("warning", 1)
    assert laid.body[first + 1] == "    group/" + "x" * 70 or laid.body[first + 1] == "    group/"
    assert all(line.startswith("    ") for line in laid.body[first + 1 :])


@pytest.mark.parametrize("size", range(60, 100))
def test_no_line_begins_with_the_comma_that_ends_a_long_name(size: int) -> None:
    lines = wrap(f"no bound is known of a, {'x' * size}, hostile", 40)
    assert not [line for line in lines if line[0] in ",;:.)"]
    assert "".join("".join(lines).split()) == f"noboundisknownofa,{'x' * size},hostile"


@pytest.mark.parametrize(
    ("text", "width", "folded"),
    [
        pytest.param("one two three", 7, ["one two", "three"], id="at blanks"),
        pytest.param("a  b", 3, ["a ", "b"], id="a second blank is kept"),
        pytest.param("about 55 % of it", 8, ["about", "55 % of", "it"], id="a number keeps its per cent"),
        pytest.param("consumer-orders-1", 12, ["consumer-", "orders-1"], id="a long word at its punctuation"),
        pytest.param("xxxxxxxxxx", 4, ["xxxx", "xxxx", "xx"], id="a long word without any"),
        pytest.param("注文注文", 5, ["注文", "注文"], id="wide letters"),
        pytest.param("", 5, [""], id="nothing"),
    ],
)
def test_a_text_folds(text: str, width: int, folded: list[str]) -> None:
    assert wrap(text, width) == folded


def test_a_paragraph_is_indented_on_all_its_lines() -> None:
    assert paragraph("word " * 12 + "end", 40, indent="    ") == [
        "    word word word word word word word",
        "    word word word word word end",
    ]


TEXTS = st.text("abc -_注é", max_size=60)


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(TEXTS, min_size=n, max_size=n), min_size=1, max_size=5)),
       st.integers(LEAST, 120), st.data())  # fmt: skip
def test_any_table_fits_and_shows_every_letter(rows: list[list[str]], width: int, data: st.DataObject) -> None:
    names = ("group", "sentence", "state", "rack", "bytes_per_s", "host")[: len(rows[0])]
    right = [data.draw(st.booleans()) for _ in names]
    laid = lay_out(names, rows, right, width)
    assert all(text_width(line) <= width for line in lines(laid))
    shown = "".join(laid.body).replace(" ", "") + "".join(laid.same) * len(rows)
    for letter in "注é":
        assert shown.count(letter) >= sum(cell.count(letter) for row in rows for cell in row)


@pytest.mark.parametrize(
    "figure",
    ["53.7 kB/s", "≥ 53.7 kB/s", "≤ $0.09", "12 s", "40 %", "< 1 %", "9,000,000 bytes/s", "7 min", "2 days", "416 kB"],
)
@pytest.mark.parametrize("width", range(LEAST, 90, 7))
def test_a_number_and_its_unit_never_part(figure: str, width: int) -> None:
    columns = ("topic", "written", "read", "copied", "seen", "$/day", "readers")
    rows = [[f"orders-{number}-by-region", *([figure] * 5), "shop, billing-service"] for number in range(3)]
    rows[1][1:4] = ["0 B/s", "?", f"{figure} to {figure}"]
    found = lines(lay_out(columns, rows, (False,) * 7, width))
    told = sum(line.count(figure) for line in found)
    assert told >= sum(cell.count(figure) for row in rows for cell in row) or "in every row" in found[0]
    halves = figure.split(" ")
    assert not any(line.endswith((halves[0] + " ", f"≥ {halves[0]}")) for line in found if len(halves) > 1)
    assert max(map(text_width, found)) <= width


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        pytest.param("it takes ≥ 12 s", ["it takes", "≥ 12 s"], id="seconds"),
        pytest.param("reads 9,000 bytes/s", ["reads", "9,000 bytes/s"], id="a rate"),
        pytest.param("costs ≥ $4.10/day", ["costs", "≥ $4.10/day"], id="a bound"),
        pytest.param("12 streams run", ["12 streams", "run"], id="a word that begins like a unit is none"),
    ],
)
def test_a_sentence_folds_before_a_number_and_not_behind_it(text: str, folded: list[str]) -> None:
    assert wrap(text, 13) == folded


def test_a_sentence_without_room_has_the_lines_below_its_row() -> None:
    sentence = "this says at some length what is wrong with the group, and what its owner can do about it"
    rows = [[f"p-0123456789a{n}", "reassign", f"topic/orders-by-region-{n}", "$1.20", sentence] for n in range(2)]
    laid = lay_out(("id", "kind", "subject", "saves $/day", "sentence"), rows, (False,) * 5, 80)
    assert laid.heads == ("id              kind      subject                   saves $/day",)
    assert laid.body[:3] == (
        "p-0123456789a0  reassign  topic/orders-by-region-0  $1.20",
        "    this says at some length what is wrong with the group, and what its owner",
        "    can do about it",
    )
    assert len(lay_out(("id", "kind", "subject", "saves $/day", "sentence"), rows, (False,) * 5, 200).body) == 2


def test_a_long_list_below_its_row_has_its_name_and_an_empty_one_is_not_there() -> None:
    rows = [
        ["orders", "1.0 MB/s", "billing-service-prod, shop-frontend-prod, search-indexer-prod"],
        ["b", "0 B/s", "-"],
    ]
    laid = lay_out(("topic", "written", "readers"), rows, (False,) * 3, 52)
    assert laid.body == (
        "orders  1.0 MB/s",
        "    readers: billing-service-prod,",
        "    shop-frontend-prod, search-indexer-prod",
        "b       0 B/s",
    )


SPREAD = (
    "at most 1 replica of a partition in one rack; per broker: 2 of the topic's replicas "
    "(as preferred leader: 0 to 1), 16 to 18 of all topics (as preferred leader: 5 to 6)"
)
PLACED = "kafka-topics.sh places it so that each rack has one replica, by the striped placer of KRaft"


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_a_long_text_is_never_folded_to_a_column_of_single_words(width: int) -> None:
    rows = [["kafka", PLACED, SPREAD], ["optimum", "", SPREAD]]
    laid = lay_out(("placement", "sentence", "spread"), rows, (False,) * 3, width)
    assert len(laid.body) <= 10
    joined = " ".join(line.strip() for line in lines(laid))
    if laid.heads[0] == "placement":
        assert joined.count(f"spread: {SPREAD}") == 2
    else:
        assert min(sum(part in line for line in laid.body) for part in ("at most 1 replica", "16 to 18 of all")) == 2


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_text_that_is_the_same_in_all_rows_does_not_fold_to_one_word_a_line(width: int) -> None:
    finding = "part of the cluster did not answer"
    sentence = (
        "broker 3 did not answer DescribeLogDirs within 10 s, so the sizes of its replicas are unknown in this look"
    )
    rows = [["warning", finding, f"broker/{number}", sentence] for number in (3, 4)]
    laid = lay_out(("severity", "finding", "subject", "sentence"), rows, (False,) * 4, width)
    assert any("part of the cluster did" in line for line in lines(laid))


def test_three_short_texts_are_not_squeezed_beside_a_long_word() -> None:
    cost = "{} of 6 cross, 15.3 kB/s, $0.03/day"
    rows = [
        [f"shop-app-{n}", "HighAvailabilityTaskAssignor" if n else "range", *[cost.format(n)] * 3] for n in range(3)
    ]
    laid = lay_out(("group", "assignor", "now", "own", "optimum"), rows, (False,) * 5, 80)
    assert laid.heads[0].split() == ["group", "now", "own", "optimum"]
    assert [line.split() for line in laid.body[:3]] == [
        ["shop-app-0", *["0", "of", "6", "cross,"] * 3],
        ["15.3", "kB/s,", "$0.03/day"] * 3,
        ["assignor:", "range"],
    ]


def test_a_list_that_is_longer_than_the_width_folds_between_its_items() -> None:
    servers = [f"127.0.0.1:1{number}831" for number in range(6)]
    laid = lay_out(("name", "bootstrap_servers"), [["default", ",".join(servers)]], (False, False), 80)
    for server in servers:
        assert sum(server in line for line in lines(laid)) == 1


def test_a_time_and_an_age_stay_in_one_piece() -> None:
    at = "2026-11-23T15:04:32Z"
    names = ("at", "what", "about", "who", "state", "sentence")
    row = [
        at,
        "command approve",
        "p-0123456789ab",
        "alice@workstation (self-declared)",
        "done",
        "the plan was approved",
    ]
    found = lines(lay_out(names, [row, row], [False] * 6, 80))
    assert all(sum(word in line for line in found) for word in (at, "(self-declared)"))
    assert wrap("figures of 29 s ago", 10) == ["figures of", "29 s ago"]
