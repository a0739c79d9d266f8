"""A short run of schemathesis over the whole API; ``make schemathesis`` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.fuzz_api import run


@pytest.mark.parametrize("known", [False, True], ids=["any names", "names that there are"])
def test_no_answer_breaks_the_document_of_the_api(tmp_path: Path, known: bool) -> None:
    result = run(tmp_path, examples=4, known=known, phases="fuzzing")
    assert result.exit_code == 0, result.printed
    assert result.cases >= 80, result.printed
