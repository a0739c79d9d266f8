"""Kafka's own answers (``tests/golden``) as test parameters, and the judgement of ours."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from assignors.cases.check import first_difference
from assignors.cases.registry import AssignorCase, read_cases, run_case

FOLDER = Path(__file__).parents[2] / "golden"


def golden(name: str) -> tuple[AssignorCase, ...]:
    """The cases of a golden file: ``streams.ha`` or ``4.3.1/group.streams_sticky``."""
    return read_cases(json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes())))


def golden_cases(*names: str) -> list[Any]:
    """All cases of these files for ``pytest.mark.parametrize("case", …)``; the id of a parameter is the case's."""
    return [pytest.param(case, id=f"{case.id} ({case.kafka_version})") for name in names for case in golden(name)]


def assert_as_kafka(case: AssignorCase) -> None:
    """Our answer is Kafka's, or one of those that Kafka may give where it is not deterministic."""
    difference = first_difference(case, run_case(case))
    assert difference is None, f"{case.id}: {difference}"
