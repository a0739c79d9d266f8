"""Outputs are compared with Kafka's: where they differ it is said where, and what cannot be compared is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from assignors.cases.check import first_difference
from assignors.cases.properties import broken_property
from assignors.cases.registry import AssignorCase
from assignors.problem import BadProblem
from tests.assignors.kafka.golden import golden


def exact(output: dict[str, Any]) -> AssignorCase:
    return AssignorCase(id="c", assignor="group.range", kafka_version="4.1.1", input={}, output=output)


@pytest.mark.parametrize(
    ("kafka", "own", "expected"),
    [
        pytest.param({"a": {"m": [1, 2]}}, {"a": {"m": [1, 2]}}, None, id="equal"),
        pytest.param({"a": {"m": [1, 2], "n": []}}, {"a": {"n": [], "m": [1, 2]}}, None, id="objects have no order"),
        pytest.param(
            {"a": {"m": {"t": [1, 2]}}}, {"a": {"m": {"t": [1, 3]}}}, "a.m.t is [1, 3]; Kafka has [1, 2]", id="a value"
        ),
        pytest.param({"a": {"m": []}}, {"a": {}}, "a.m is missing; Kafka has []", id="missing"),
        pytest.param({"a": {}}, {"a": {"m": [1]}}, "a.m is [1]; Kafka has nothing there", id="too much"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, "a is [2, 1]; Kafka has [1, 2]", id="arrays have an order"),
        pytest.param(
            {"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, "a[1].b is 3; Kafka has 2", id="inside an array"
        ),
        pytest.param({"a": [[1], [2]]}, {"a": [[1]]}, "a has 1 entries; Kafka has 2", id="an array cut short"),
        pytest.param({"a": True}, {"a": 1}, "a is 1; Kafka has true", id="one is not true"),
        pytest.param({"a": 0}, {"a": False}, "a is false; Kafka has 0", id="false is not nothing"),
        pytest.param({"a": None}, {}, "a is missing; Kafka has null", id="missing is not null"),
        pytest.param({"a": 1, "draws": [[2, 1]], "cost_before": 3, "branch": "general"}, {"a": 1}, None,
                     id="what only explains may be missing"),
        pytest.param({"a": 1}, {"a": 1, "cost_after": 3}, None, id="what only explains may be there"),
        pytest.param({"cost_before": 3}, {"cost_before": 4}, "cost_before is 4; Kafka has 3",
                     id="what only explains must be right where it is"),
        pytest.param({"total_cost": 3}, {}, "total_cost is missing; Kafka has 3", id="other costs are answers"),
        pytest.param({"error": "X", "message": "m"}, {"a": {}}, 'error is missing; Kafka has "X"', id="Kafka threw"),
        pytest.param({"a": list(range(99))}, {"a": list(range(98))}, "a has 98 entries; Kafka has 99", id="long"),
        pytest.param({"a": list(range(99))}, {"a": [*range(60), *range(61, 100)]}, "a[60] is 61; Kafka has 60",
                     id="inside a long array"),
        pytest.param({"a": "x" * 200}, {"a": ""}, 'a is ""; Kafka has "' + "x" * 116 + "...", id="long values are cut"),
    ],
)  # fmt: skip
def test_first_difference(kafka: dict[str, Any], own: dict[str, Any], expected: str | None) -> None:
    assert first_difference(exact(kafka), own) == expected


def test_without_kafkas_output_nothing_is_compared() -> None:
    with pytest.raises(ValueError, match="case c has no output to compare with"):
        first_difference(AssignorCase(id="c", assignor="group.range", kafka_version="4.1.1", input={}), {})


# --- where Kafka is not deterministic -------------------------------------------------------------------------

LOOSE = [case for name in ("streams.sticky", "group.streams_sticky") for case in golden(name) if case.other_outputs]


@pytest.mark.parametrize("case", LOOSE, ids=lambda case: case.id)
def test_every_answer_seen_has_the_properties(case: AssignorCase) -> None:
    """The properties are not stricter than Kafka: each recorded answer passes without being recognised."""
    assert case.output is not None
    for answer in case.other_outputs:
        assert broken_property(case, case.output, answer) is None
        assert broken_property(case, answer, case.output) is None
        assert first_difference(case, answer) is None


def streams_case(**more: Any) -> AssignorCase:
    """Two processes, stateful tasks 0_0 and 0_1 with a standby each, stateless 1_0; 0_0 stays with a."""
    output = {
        "followup_rebalance": False,
        "clients": {"a": {"active": ["0_0", "1_0"], "standby": ["0_1"]}, "b": {"active": ["0_1"], "standby": ["0_0"]}},
    }
    return AssignorCase(
        id="c",
        assignor="streams.sticky",
        kafka_version="4.1.1",
        compare="properties",
        input={
            "tasks": {"all": ["0_0", "0_1", "1_0"], "stateful": ["0_0", "0_1"]},
            "clients": [{"id": "a", "prev_active": ["0_0"]}, {"id": "b", "prev_active": []}],
        },
        output=output,
        **more,
    )


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(("0_0 1_0", "0_1"), ("0_1", "0_0"), None, id="Kafka's answer"),
        pytest.param(("0_0 0_1", ""), ("1_0", "0_0 0_1"), None, id="another that is as good"),
        pytest.param(("0_0", "0_1"), ("0_1", "0_0"), "task 1_0 is active 0 times", id="a task lost"),
        pytest.param(("0_0 1_0", "0_1"), ("0_1 1_0", "0_0"), "task 1_0 is active 2 times", id="a task run twice"),
        pytest.param(("0_0 1_0", "0_1"), ("0_1 9_9", "0_0"), "task 9_9 is unknown", id="a task that is none"),
        pytest.param(("0_0 1_0", "0_1"), ("0_1", "1_0"), "task 1_0 has a standby on b but no state", id="no state"),
        pytest.param(("0_0 1_0", "0_0"), ("0_1", "0_1"), "process a has 2 copies of task 0_0", id="copies together"),
        pytest.param(("0_0 1_0", "0_1"), ("0_1", ""), "task 0_0 has 0 standbys; Kafka gives it 1", id="a standby less"),
        pytest.param(
            ("0_0 1_0 0_1", ""),
            ("", "0_0 0_1"),
            "sorted numbers of active tasks per process are [0, 3]; Kafka has [1, 2], 0 apart are allowed",
            id="less even",
        ),
        pytest.param(("0_1 1_0", "0_0"), ("0_0", "0_1"), "0 active tasks stay where they were; with Kafka 1 do",
                     id="less sticky"),
    ],
)  # fmt: skip
def test_properties(a: tuple[str, str], b: tuple[str, str], expected: str | None) -> None:
    own = {
        "followup_rebalance": False,
        "clients": {
            name: {"active": active.split(), "standby": standby.split()}
            for name, (active, standby) in zip("ab", (a, b), strict=True)
        },
    }
    assert first_difference(streams_case(), own) == expected


def test_side_results_count() -> None:
    case = streams_case()
    assert case.output is not None
    own = deepcopy(dict(case.output)) | {"followup_rebalance": True}
    assert first_difference(case, own) == "followup_rebalance is True; Kafka has False"


def test_a_process_more_or_less_is_said() -> None:
    case = streams_case()
    assert case.output is not None
    clients = case.output["clients"]
    assert first_difference(case, {**case.output, "clients": {"a": clients["a"]}}) == "process b is missing"
    more = {**clients, "c": {"active": [], "standby": []}}
    assert first_difference(case, {**case.output, "clients": more}) == "process c is not one of Kafka's"


def test_active_tasks_that_never_vary_must_be_the_same() -> None:
    own = {
        "followup_rebalance": False,
        "clients": {
            "a": {"active": ["0_0", "0_1"], "standby": []},
            "b": {"active": ["1_0"], "standby": ["0_0", "0_1"]},
        },
    }
    assert first_difference(streams_case(active_part_exact=True), own) == (
        "active tasks of a are ['0_0', '0_1']; Kafka always has ['0_0', '1_0']"
    )


def test_an_answer_that_is_recorded_as_another_is_right() -> None:
    odd = {"clients": {"a": {"active": [], "standby": []}}, "followup_rebalance": True}
    assert first_difference(streams_case(other_outputs=(odd,)), odd) is None


def test_an_output_of_another_shape_is_named() -> None:
    case = streams_case()
    with pytest.raises(BadProblem, match=r"clients\.a\.standby is missing; it must be an array"):
        first_difference(case, {"clients": {"a": {"active": []}}})


GROUP = AssignorCase(
    id="g",
    assignor="group.streams_sticky",
    kafka_version="4.1.1",
    compare="properties",
    input={
        "subtopologies": [{"id": "s", "partitions": 4, "stateful": True}],
        "members": [
            {"id": "m1", "process_id": "p", "active": {"s": [0]}, "standby": {}},
            {"id": "m2", "process_id": "p", "active": {"s": [1]}, "standby": {}},
            {"id": "m3", "process_id": "q", "active": {"s": [2, 3]}, "standby": {}},
        ],
    },
    output={
        "members": {
            "m1": {"active": {"s": [0]}, "standby": {}},
            "m2": {"active": {"s": [1]}, "standby": {}},
            "m3": {"active": {"s": [2, 3]}, "standby": {}},
        }
    },
)


@pytest.mark.parametrize(
    ("m1", "m2", "m3", "expected"),
    [
        pytest.param([0, 1], [], [2, 3], None, id="members of one process count together"),
        pytest.param([0], [1, 3], [2], None, id="one task may sit elsewhere"),
        pytest.param(
            [0, 2], [1, 3], [],
            "sorted numbers of active tasks per process are [0, 4]; Kafka has [2, 2], 1 apart are allowed",
            id="two may not",
        ),
        pytest.param([2], [3], [0, 1], "0 active tasks stay where they were; with Kafka 4 do", id="hardly sticky"),
        pytest.param([0], [1], [2], "task s_3 is active 0 times", id="a task lost"),
    ],
)  # fmt: skip
def test_properties_of_a_streams_group(m1: list[int], m2: list[int], m3: list[int], expected: str | None) -> None:
    members = {
        name: {"active": {"s": tasks}, "standby": {}}
        for name, tasks in zip(("m1", "m2", "m3"), (m1, m2, m3), strict=True)
    }
    assert first_difference(GROUP, {"members": members}) == expected
