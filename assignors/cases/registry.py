"""Files of recorded cases, and the port that runs each case.

A file with a malformed case or an unknown assignor is refused as a whole; the sentence names the case and the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from assignors.cases.fields import an_array, an_object, one_of, release, text, truth
from assignors.kafka.exceptions import KafkaRefusal
from assignors.problem import BadProblem

Output = Mapping[str, Any]
Runner = Callable[[Mapping[str, Any], str], dict[str, Any]]

SCHEMA = 1
COMPARE = ("exact", "properties")

_FAMILIES = {
    "consumer": ("consumer.range", "consumer.roundrobin", "consumer.sticky", "consumer.cooperative_sticky"),
    "streams": ("streams.ha", "streams.rack_optimize", "streams.standby", "streams.min_cost_flow"),
    "streams_sticky": (
        "streams.sticky_legacy", "streams.sticky", "streams.fallback_prior", "streams.thread_assignment",
        "group.streams_sticky",
    ),
    "group": ("group.range", "group.uniform"),
    "broker": ("broker.admin_utils", "broker.striped_placer"),
}  # fmt: skip
_FAMILY_OF = {assignor: family for family, assignors in _FAMILIES.items() for assignor in assignors}

ASSIGNORS = tuple(sorted(_FAMILY_OF))
"""Every assignor that a case may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorCase:
    """One input of an assignor, and what Kafka gave for it when that is known."""

    id: str
    assignor: str
    kafka_version: str
    input: Mapping[str, Any]
    output: Output | None = None
    compare: str = "exact"
    other_outputs: tuple[Output, ...] = ()
    """Further answers of the same class to the same input, where it is not deterministic."""
    active_part_exact: bool = False
    """Whether only standbys differ among those answers."""


def read_cases(document: Any) -> tuple[AssignorCase, ...]:
    """The cases of a parsed file; raises ``BadProblem`` with a sentence naming the field."""
    file = an_object(document, "the file")
    if file.get("schema", SCHEMA) != SCHEMA:
        raise BadProblem(f"schema is {file['schema']!r}; schema {SCHEMA} is known")
    return tuple(
        _case(an_object(value, f"cases[{place}]"), f"cases[{place}]", file)
        for place, value in enumerate(an_array(file.get("cases"), "cases"))
    )


def _case(case: Mapping[str, Any], field: str, file: Mapping[str, Any]) -> AssignorCase:
    version = text(case.get("kafka_version", file.get("kafka_version")), f"{field}.kafka_version")
    release(version)
    output = case.get("output")
    return AssignorCase(
        id=text(case.get("id"), f"{field}.id"),
        assignor=one_of(case.get("assignor", file.get("assignor")), f"{field}.assignor", ASSIGNORS),
        kafka_version=version,
        input=an_object(case.get("input"), f"{field}.input"),
        output=None if output is None else an_object(output, f"{field}.output"),
        compare=one_of(case.get("compare", "exact"), f"{field}.compare", COMPARE),
        other_outputs=tuple(
            an_object(other, f"{field}.other_outputs")
            for other in an_array(case.get("other_outputs", []), f"{field}.other_outputs")
        ),
        active_part_exact=truth(case.get("active_part_exact", False), f"{field}.active_part_exact"),
    )


def run_case(case: AssignorCase) -> dict[str, Any]:
    """The port's output for a case, or what Kafka throws; raises ``BadProblem`` naming the case and the wrong field."""
    try:
        return _runner(case.assignor)(case.input, case.kafka_version)
    except KafkaRefusal as refusal:
        return refusal.output()
    except BadProblem as error:
        raise BadProblem(f"case {case.id}: {error}") from error


def _runner(assignor: str) -> Runner:
    # Each family comes with its ports only when one of its cases is met.
    runners: Mapping[str, Runner] = import_module(f"assignors.cases.{_FAMILY_OF[assignor]}").RUNNERS
    return runners[assignor]
