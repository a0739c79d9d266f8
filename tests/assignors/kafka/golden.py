"""Kafka's own answers (``tests/golden``): one test parameter for each case, its id the case's id."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "golden"


def golden(name: str) -> dict[str, Any]:
    """A golden file as it is: ``streams.ha`` or ``4.3.1/group.streams_sticky``."""
    data: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    return data


def golden_cases(*names: str) -> list[Any]:
    """The cases of these files for ``pytest.mark.parametrize("case", …)``."""
    return [
        pytest.param(case, id=f"{case['id']} ({case['kafka_version']})")
        for name in names
        for case in golden(name)["cases"]
    ]
