"""Names in PromQL expressions: metrics with their matchers, and labels to aggregate or match by."""

from __future__ import annotations

import re
from typing import NamedTuple


class Matcher(NamedTuple):
    """One label matcher of a selector, such as `state="alive"`."""

    label: str
    operator: str
    value: str


class Selector(NamedTuple):
    """A metric, or a recorded series, with its matchers."""

    metric: str
    matchers: tuple[Matcher, ...]


class Names(NamedTuple):
    """The names in one expression."""

    selectors: tuple[Selector, ...]
    labels: frozenset[str]
    """Labels after by, without, on, ignoring and group_left."""


_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<duration>\[[^\]]*\])
    |(?P<number>0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?[smhdwy]?)
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<mark>=~|!~|!=|==|<=|>=|[-+*/%^=<>(){},@])""",
    re.VERBOSE,
)
_GROUPERS = frozenset(("by", "without", "on", "ignoring", "group_left", "group_right"))
_WORDS = frozenset(("and", "or", "unless", "offset", "bool"))
_Token = tuple[str, str]


def names(expr: str) -> Names:
    """The names in an expression; ValueError at what is no PromQL."""
    tokens = _tokens(expr)
    selectors: list[Selector] = []
    labels: set[str] = set()
    position = 0
    while position < len(tokens):
        kind, text = tokens[position]
        following = tokens[position + 1][1] if position + 1 < len(tokens) else ""
        position += 1
        if kind != "name" or text in _WORDS:
            continue
        if text in _GROUPERS:
            if following == "(":
                inside, position = _until(tokens, position + 1, ")")
                labels |= {one for of, one in inside if of == "name"}
        elif following == "{":
            inside, position = _until(tokens, position + 1, "}")
            selectors.append(Selector(text, _matchers(inside)))
        elif following != "(" and not (following in _GROUPERS and text in _AGGREGATIONS):
            selectors.append(Selector(text, ()))
    return Names(tuple(selectors), frozenset(labels))


_AGGREGATIONS = frozenset(("sum", "min", "max", "avg", "count", "topk", "bottomk", "quantile", "group", "stddev"))


def _tokens(expr: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while position < len(expr):
        match = _TOKEN.match(expr, position)
        if match is None:
            raise ValueError(f"no PromQL at {expr[position : position + 20]!r}")
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match[0]))
        position = match.end()
    return found


def _until(tokens: list[_Token], begin: int, mark: str) -> tuple[list[_Token], int]:
    end = next(index for index in range(begin, len(tokens)) if tokens[index] == ("mark", mark))
    return tokens[begin:end], end + 1


def _matchers(tokens: list[_Token]) -> tuple[Matcher, ...]:
    texts = [text for _, text in tokens if text != ","]
    if len(texts) % 3:
        raise ValueError(f"no matchers: {texts}")
    return tuple(
        Matcher(label, operator, value[1:-1])
        for label, operator, value in zip(texts[::3], texts[1::3], texts[2::3], strict=True)
    )
