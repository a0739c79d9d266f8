"""Tables of every view beside their files: CSV has every column, and every figure that a cell shows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping

import pytest
from markupsafe import Markup

from agent.web.page import page_request
from agent.web.page.tables import TableShown, TableSource, as_csv, chosen_rows
from tests.web.page.test_operating_views import client
from tests.web.page.test_operating_views import every_page as operating_pages
from tests.web.page.test_views import every_page

ELSEWHERE = {
    "best_local_share": "unknown_share",
    "cross_rack_in_bytes_per_s": "unknown_parts",
    "cross_rack_out_bytes_per_s": "unknown_parts",
}
"""Column -> the column that says whether its figure is a bound."""


def test_csv_has_every_column_of_the_table_and_every_figure_of_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds too: what a cell shows beside its figure has a column of its own."""
    sources: dict[str, TableSource] = {}
    in_page = page_request.shown

    def seen(source: TableSource, asked: Mapping[str, str]) -> TableShown:
        sources[f"{source.title}: {', '.join(column.name for column in source.columns)}"] = source
        return in_page(source, asked)

    monkeypatch.setattr(page_request, "shown", seen)
    for world, path in (*every_page(), *operating_pages()):
        assert client(world).get(path).status_code == 200
    missing, checked = [], 0
    for name, source in sources.items():
        head, *rows = csv.reader(io.StringIO(as_csv(source, {})))
        fields = [list(column.fields) for column in source.columns]
        assert head == [field for of in fields for field in of], name
        assert len(set(head)) == len(head), name
        missing += [f"{source.title} has no {column.name}" for column in source.columns if column.name not in head]
        in_order = chosen_rows(source, {})
        for row, written in zip(in_order[:200], rows, strict=False):
            values = dict(zip(head, written, strict=True))
            for column in source.columns:
                shown_words = Markup(column.cell(row).words or "").striptags()  # noqa: S704 (it is read here)
                own = [values[field] for field in column.fields]
                if shown_words in own or len(shown_words) > 60:
                    continue  # a name or a sentence
                figures = [part for part in re.split(r",? of which | to | of ", shown_words) if re.search(r"\d", part)]
                is_bound = bool(re.search(r"[≥≤] .*\d|\d.* (to|of) [$\d]", shown_words))
                has_bound = len(own) > 1 or ELSEWHERE.get(column.name) in head
                if len([one for one in own if one]) < len(figures) or (is_bound and not has_bound):
                    missing.append(f"{source.title}: {column.name} shows {shown_words!r}, and CSV has {own}")
                checked += 1
    assert not missing, "\n".join(sorted({*missing})[:40])
    assert checked > 1_000
