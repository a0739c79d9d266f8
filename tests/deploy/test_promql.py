"""Names are read off PromQL as Prometheus reads them."""

from __future__ import annotations

import pytest

from tests.deploy.promql import Matcher, Selector, names


@pytest.mark.parametrize(
    ("expr", "metrics", "labels"),
    [
        ("up", ("up",), ()),
        ("rate(a_total[5m]) > ignoring (x) 0.2 * sum without (y) (b)", ("a_total", "b"), ("x", "y")),
        ("sum by (a, b) (c) unless on (d) e offset 15m", ("c", "e"), ("a", "b", "d")),
        ("sum(c) by (a) and max(d)", ("c", "d"), ("a",)),
        ("x:y:z > 5e6 or vector(1)", ("x:y:z",), ()),
        ("a # by (b)\n+ c", ("a", "c"), ()),
    ],
)
def test_metrics_and_labels_of_an_expression(expr: str, metrics: tuple[str, ...], labels: tuple[str, ...]):
    found = names(expr)
    assert tuple(one.metric for one in found.selectors) == metrics
    assert found.labels == frozenset(labels)


def test_matchers_with_braces_and_commas_in_their_values():
    found = names('a{b="c,}", d=~"e|\\"f", g!=""}[5m]')
    assert found.selectors == (
        Selector("a", (Matcher("b", "=", "c,}"), Matcher("d", "=~", 'e|\\"f'), Matcher("g", "!=", ""))),
    )


@pytest.mark.parametrize("expr", ["a{b}", "a ; b", "a{b=c d}"])
def test_what_is_no_promql_is_an_error(expr: str):
    with pytest.raises((ValueError, StopIteration)):
        names(expr)
