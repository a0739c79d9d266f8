"""Which fragments could be put together with others, and what tells them apart."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from pipeline.transforms.parse import MAX_PARTS, fragment_problem, fragment_suffix, piece_of

CASES: list[tuple[str, str | None, bool, str | None]] = [
    ("the first of two", '{"part":0,"parts":2,"text":"x"}', True, "/0"),
    ("the last of two", '{"part":1,"parts":2,"text":"x"}', True, "/1"),
    ("the third of two", '{"part":2,"parts":2,"text":"x"}', False, "/2"),
    ("one before the first", '{"part":-1,"parts":2,"text":"x"}', False, "/-1"),
    ("one of as many as are believed", f'{{"part":7,"parts":{MAX_PARTS},"text":"x"}}', True, "/7"),
    ("one of more than that", f'{{"part":7,"parts":{MAX_PARTS + 1},"text":"x"}}', False, "/7"),
    ("a number beyond all numbers", '{"part":99999999999,"parts":2,"text":"x"}', False, None),
    ("a number and a half", '{"part":0.5,"parts":2,"text":"x"}', False, None),
    ("a word for a number", '{"part":"one","parts":2,"text":"x"}', False, None),
    ("no number", '{"parts":2,"text":"x"}', False, None),
    ("no count is given", '{"part":0,"text":"x"}', False, "/0"),
    ("an empty text", '{"part":0,"parts":2,"text":""}', False, "/0"),
    ("null for a text", '{"part":0,"parts":2,"text":null}', False, "/0"),
    ("a list", "[0,2]", False, None),
    ("no JSON", "{", False, None),
    ("nothing", None, False, None),
]


def test_what_is_a_fragment(spark: SparkSession) -> None:
    given = spark.createDataFrame([(case, data) for case, data, _, _ in CASES], "case string, data string")
    piece = given.select("case", piece_of(F.col("data")).alias("piece"))
    found = piece.select(
        "case",
        fragment_problem(F.col("piece")).isNull().alias("is_one"),
        fragment_suffix(F.col("piece")).alias("suffix"),
    )
    expected = spark.createDataFrame(
        [(case, is_one, suffix) for case, _, is_one, suffix in CASES],
        "case string, is_one boolean, suffix string",
    )
    assertDataFrameEqual(found, expected)
