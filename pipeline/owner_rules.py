"""Owners of topics and groups: a CSV file of patterns, each with a team and a cost centre; the first that fits counts.

A group that no pattern names has the owner of the topic that it reads. The same rules are the table gold.owners, whose
``matches`` is a regular expression for SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pipeline.csv_files import csv_rows

TOPIC, GROUP = "topic", "group"
_ONE_OF = re.compile(r"\[(!?)(\][^]]*|[^]]+)\]")
_SPECIAL_INSIDE = re.compile(r"([][^&~|\\])")
_ANY = {"*": ".*", "?": "."}


class OwnerRule(NamedTuple):
    """Topics or groups of one owner."""

    kind: str
    """``topic`` or ``group``."""
    pattern: str
    """Name, with ``*`` for any characters, ``?`` for one, and ``[ab]``, ``[!ab]`` for one of these or none of them."""
    team: str
    cost_centre: str | None = None


class OwnerBook:
    """The rules, with the answers that they gave."""

    def __init__(self, rules: Sequence[OwnerRule]) -> None:
        self._rules = [(rule, re.compile(f"(?s:{regex_of(rule.pattern)})")) for rule in rules]
        self._known: dict[tuple[str, str], OwnerRule | None] = {}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def of(self, topic: str, group: str = "") -> OwnerRule | None:
        """The owner of what the group reads of the topic, or of the topic; None where no pattern fits."""
        found = self._of(GROUP, group) if group else None
        return found or (self._of(TOPIC, topic) if topic else None)

    def _of(self, kind: str, name: str) -> OwnerRule | None:
        key = kind, name
        if key not in self._known:
            fitting = (rule for rule, matches in self._rules if rule.kind == kind and matches.fullmatch(name))
            self._known[key] = next(fitting, None)
        return self._known[key]


def regex_of(pattern: str) -> str:
    """The pattern as a regular expression that Python and Java read alike. It fits a whole name.

    Raises ValueError for a pattern with a range that ends before it begins.
    """
    out: list[str] = []
    at = 0
    while at < len(pattern):
        one_of = _ONE_OF.match(pattern, at)
        if one_of is None:
            out.append(_ANY.get(pattern[at]) or re.escape(pattern[at]))
            at += 1
        else:
            inside = _SPECIAL_INSIDE.sub(r"\\\1", one_of[2])
            out.append(f"[{'^' if one_of[1] else ''}{inside}]")
            at = one_of.end()
    regex = "".join(out)
    try:
        re.compile(regex)
    except re.error as error:
        raise ValueError(f"pattern {pattern!r} is none: {error.msg}") from None
    return regex


def whole_name(pattern: str) -> str:
    """The pattern for Spark's RLIKE, which searches in a text and takes ``$`` for the place before a last newline too.

    Raises ValueError as `regex_of`, and for half a surrogate pair, which Py4J cannot send to Spark.
    """
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"pattern {pattern!r} is none: {error.reason}") from None
    return rf"^(?s:{regex_of(pattern)})\z"


def owner_rules(file: str | None) -> tuple[OwnerRule, ...]:
    """The rules of the file that ``spark.owners`` names, in its order. Raises ConfigError with what is wrong."""
    return csv_rows(file, "spark.owners", OwnerRule._fields, _owner_rule) if file else ()


def _owner_rule(row: Mapping[str, str]) -> OwnerRule:
    if row["kind"] not in {TOPIC, GROUP}:
        raise ValueError(f"kind {row['kind']!r} is neither {TOPIC} nor {GROUP}")
    if not row["pattern"] or not row["team"]:
        raise ValueError("an owner needs a pattern and a team")
    regex_of(row["pattern"])
    return OwnerRule(row["kind"], row["pattern"], row["team"], row["cost_centre"] or None)


def teams(owners: Iterable[OwnerRule | None]) -> str:
    """``payments, search``: each team once, in the order given; empty where no owner is known."""
    return ", ".join(dict.fromkeys(owner.team for owner in owners if owner is not None))
