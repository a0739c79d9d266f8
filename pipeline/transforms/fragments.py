"""Is a fragment a whole fragment, and which one? An event that was too large for a record travels in several.

A fragment tells its number and how many there are; one that does not, or that holds no text, can never be put together
with the others. Whether the others arrived is known where looks are rebuilt.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

MAX_PARTS = 10_000
"""Four gigabytes of text; what claims more is not believed."""


def piece_of(data: Column) -> Column:
    """The fields of a fragment's data as text; null when it is no JSON object."""
    return F.from_json(data, "map<string,string>")


def fragment_problem(piece: Column) -> Column:
    """Why this is no fragment that could be put together with others; null when it is one."""
    number, parts, text = piece["part"].try_cast("int"), piece["parts"].try_cast("int"), piece["text"]
    fits = (number >= 0) & (number < parts) & (parts <= MAX_PARTS) & (F.length(text) > 0)
    return F.when(
        ~F.coalesce(fits, F.lit(False)),  # noqa: FBT003 a literal of SQL
        F.lit(f"fragment: part, parts (at most {MAX_PARTS}) and text do not make a piece of an event"),
    )


def fragment_suffix(piece: Column) -> Column:
    """What tells the fragments of one event apart: a slash and the number."""
    return F.concat(F.lit("/"), piece["part"].try_cast("int").cast("string"))
