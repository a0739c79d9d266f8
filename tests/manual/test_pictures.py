"""The pictures of the manual are what their code draws, and can be read without colours."""

from __future__ import annotations

import re

import pytest

from deploy.manual.pictures import FOLDER, PICTURES


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_is_the_one_that_its_code_draws(name: str) -> None:
    assert (FOLDER / name).read_text() == PICTURES[name]().text(), "draw it: python -m deploy.manual.pictures"


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_stays_on_its_paper_and_says_what_it_shows(name: str) -> None:
    picture = PICTURES[name]()
    text = picture.text()
    assert len(re.findall(r"<desc[^>]*>([^<]{100,})</desc>", text)) == 1
    for tag in re.findall(r"<rect\b[^>]*>", text):
        x, y, width, height = (
            float(found[1]) if (found := re.search(rf' {key}="([\d.]+)"', tag)) else 0.0
            for key in ("x", "y", "width", "height")
        )
        assert x + width <= picture.width
        assert y + height <= picture.height


def test_no_picture_asks_another_host() -> None:
    assert [
        name for name in PICTURES if re.search(r"(?:href|src|url)\s*[=(][\"']?https?:", (FOLDER / name).read_text())
    ] == []
