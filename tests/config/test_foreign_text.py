"""Foreign text: nothing steers, hides, forges or fills a page, and JSON and YAML lose nothing of it."""

from __future__ import annotations

import csv
import io
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from config.foreign_text import (
    MOST_RUN,
    MOST_TEXT,
    csv_text,
    harmless,
    is_unsafe,
    json_text,
    listed,
    safe_text,
    shortened,
    yaml_text,
)
from tests.foreign_texts import POISONS, formulas, spelled

EVERY = [pytest.param(text, id=name) for name, text in POISONS.items()]
ANY_TEXT = st.text(st.characters(codec=None) | st.sampled_from("".join(POISONS.values())[:400]))


@pytest.mark.parametrize("text", EVERY)
def test_poison_is_shown_on_one_line_without_an_unsafe_character(text: str) -> None:
    for shown in (harmless(text), shortened(text), safe_text(text, 200), csv_text(text)):
        assert spelled(shown) == []
        assert len(shown.splitlines()) == 1
        shown.encode()


@given(ANY_TEXT)
def test_any_text_becomes_harmless_and_stays_so(text: str) -> None:
    for shown in (harmless(text), shortened(text), safe_text(text, 100)):
        assert spelled(shown) == []
        assert "\n" not in shown
    assert harmless(harmless(text)) == harmless(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\x1b[2J", "\\x1b[2J", id="a control"),
        pytest.param("a\nb\r\tc", "a\\nb\\r\\tc", id="white space has its own names"),
        pytest.param("\u202eabc", "\\u202eabc", id="a bidirectional override"),
        pytest.param("\U000e0041", "\\U000e0041", id="a character beyond the first plane"),
        pytest.param("\ud800", "\\ud800", id="half a pair"),
        pytest.param("Größe 注文 заказы 🚀", "Größe 注文 заказы 🚀", id="letters of any script stay"),
        pytest.param("कां हिंदी กำลังที่ 한국어", "कां हिंदी กำลังที่ 한국어", id="marks of scripts stay"),
        pytest.param("Größe", "Größe", id="a mark over a letter stays"),
        pytest.param("[red]x[/red] \\n", "[red]x[/red] \\n", id="what is only text stays"),
    ],
)
def test_a_text_reads(text: str, shown: str) -> None:
    assert harmless(text) == shown


UNSEEN = (
    *range(0x20), *range(0x7F, 0xA1), 0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
    *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xFE00, 0xFE10), *range(0xD800, 0xE000),
    *range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0), 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800, 0x16FE4, 0x1D159,
)  # fmt: skip


def test_every_code_point_that_shows_nothing_is_unsafe() -> None:
    assert [f"U+{code:04X}" for code in UNSEEN if not is_unsafe(chr(code))] == []


def test_no_letter_and_no_sign_of_ascii_is_unsafe() -> None:
    assert [chr(code) for code in range(0x20, 0x7F) if is_unsafe(chr(code))] == []


def test_a_long_id_is_cut_in_the_middle_and_tells_how_much_is_left_out() -> None:
    text = "begin" + "x" * 4_990 + "end-7"
    shown = shortened(f"member {text} waits")
    assert shown.startswith("member beginxxx")
    assert shown.endswith("xxxend-7 waits")
    (left_out,) = [int(part.replace(",", "")) for part in shown.split("(")[1].split(" ")[:1]]
    assert len(shown) <= len("member  waits") + MOST_RUN
    head, tail = shown.removeprefix("member ").removesuffix(" waits").split(f"…({left_out:,} characters)…")
    assert len(head) + left_out + len(tail) == 5_000
    assert text.startswith(head)
    assert text.endswith(tail)


@pytest.mark.parametrize("text", ["x" * MOST_RUN, "x " * (MOST_TEXT // 2 - 1)])
def test_what_fits_is_not_cut(text: str) -> None:
    assert shortened(text) == text


def test_a_long_text_is_cut_at_its_end_and_tells_how_much_is_left_out() -> None:
    shown = shortened("word " * 1_000)
    assert shown == "word " * (MOST_TEXT // 5) + "… (3,000 more characters)"


@given(ANY_TEXT, st.integers(min_value=40, max_value=300))
def test_a_word_takes_no_more_room_than_it_may(text: str, run: int) -> None:
    assert all(len(word) <= run for word in shortened(text, run=run).replace(" characters)", "_characters)").split(" "))


def test_a_list_names_the_first_and_counts_the_rest() -> None:
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert listed(["a", "b"], 2) == "a, b"
    assert listed([str(number) for number in range(24_963)]).endswith("8, 9 and 24,953 more")
    assert listed(["a", "b", "c"], None) == "a, b, c"


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_loses_nothing_and_escapes_every_unsafe_character(text: str, indent: int | None) -> None:
    document = {"text": text, text: [text, {"deep": text}]}
    written = json_text(document, indent)
    assert json.loads(written) == document
    assert [one for one in spelled(written) if not one.startswith("marks")] == []
    assert len(written.splitlines()) == len(json.dumps(document, indent=indent).splitlines())


def test_json_keeps_letters_that_are_safe() -> None:
    assert json_text({"a": "Größe 注文"}) == '{"a": "Größe 注文"}'


@pytest.mark.parametrize("text", EVERY)
def test_yaml_loses_nothing_and_writes_one_line_per_value(text: str) -> None:
    document = [{"text": text, "more": [text, None, 3]}, {"text": "plain"}]
    written = yaml_text(document)
    assert yaml.safe_load(written) == document
    assert [one for one in spelled(written) if not one.startswith("marks")] == []
    assert len(written.splitlines()) == 6


@given(st.dictionaries(ANY_TEXT, ANY_TEXT))
def test_json_and_yaml_give_back_any_text(document: dict[str, str]) -> None:
    assert yaml.safe_load(yaml_text(document)) == document
    pairs = any("\ud800" <= char <= "\udbff" for text in (*document, *document.values()) for char in text)
    if not pairs:  # two halves of a pair that stand side by side are one character in JSON
        assert json.loads(json_text(document)) == document


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        pytest.param("=1+1", "'=1+1", id="a formula"),
        pytest.param("  =1+1", "'  =1+1", id="a formula behind blanks"),
        pytest.param("+cmd", "'+cmd", id="a plus"),
        pytest.param("-cmd", "'-cmd", id="a minus"),
        pytest.param("@SUM(A1)", "'@SUM(A1)", id="an at sign"),
        pytest.param("\t=1", "'\\t=1", id="a tab"),
        pytest.param("\uff1d1+1", "'\uff1d1+1", id="a full-width equals sign"),
        pytest.param("\ufe661+1", "'\ufe661+1", id="a small equals sign"),
        pytest.param("\u207a1+1", "'\u207a1+1", id="a raised plus"),
        pytest.param("-5", "-5", id="a negative number"),
        pytest.param("-1,234.5", "-1,234.5", id="a large negative number"),
        pytest.param("-12 %", "-12 %", id="a negative share"),
        pytest.param("-", "-", id="the mark of none"),
        pytest.param("orders", "orders", id="a name"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_a_cell_of_csv_is_no_formula(text: str, cell: str) -> None:
    assert csv_text(text) == cell


@given(st.lists(ANY_TEXT, min_size=1))
def test_any_record_of_csv_is_one_line_without_a_formula(texts: list[str]) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([csv_text(text) for text in texts])
    assert out.getvalue().count("\n") == 1
    ((*cells,),) = csv.reader(io.StringIO(out.getvalue()))
    assert len(cells) == len(texts) or texts == [""]
    assert formulas(cells) == []
