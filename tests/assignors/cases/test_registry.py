"""Files of cases are read or refused as a whole, with the case and the field named."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.cases.registry import ASSIGNORS, AssignorCase, read_cases, run_case
from assignors.problem import BadProblem
from tests.assignors.kafka.golden import FOLDER, golden
from tests.assignors.strategies import examples

CASE = {"id": "c1", "input": {"subscription_type": "homogeneous", "topics": [], "members": []}}
FILE = {"schema": 1, "assignor": "group.range", "kafka_version": "4.1.1", "cases": [CASE]}


def test_a_case_takes_assignor_and_version_from_its_file_unless_it_has_its_own() -> None:
    own = CASE | {"assignor": "group.uniform", "kafka_version": "4.3.1"}
    assert [(case.assignor, case.kafka_version) for case in read_cases(FILE | {"cases": [CASE, own]})] == [
        ("group.range", "4.1.1"),
        ("group.uniform", "4.3.1"),
    ]


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        pytest.param([], "the file is an array; it must be an object", id="no object"),
        pytest.param({}, "cases is missing; it must be an array", id="no cases"),
        pytest.param(FILE | {"schema": 2}, "schema is 2; schema 1 is known", id="another schema"),
        pytest.param(FILE | {"cases": [3]}, r"cases\[0\] is 3; it must be an object", id="a case that is none"),
        pytest.param(
            FILE | {"assignor": "group.ranges"},
            r"cases\[0\].assignor is 'group.ranges'; it is one of broker.admin_utils, ",
            id="an unknown assignor",
        ),
        pytest.param(FILE | {"assignor": ["group.range"]}, r"cases\[0\].assignor is an array", id="an odd assignor"),
        pytest.param(FILE | {"kafka_version": None}, r"cases\[0\].kafka_version is missing", id="no version"),
        pytest.param(
            FILE | {"kafka_version": "4.x"}, "kafka_version is '4.x'; it is written like 4.1.1", id="odd version"
        ),
        pytest.param(FILE | {"cases": [CASE | {"id": 1}]}, r"cases\[0\].id is 1; it must be text", id="an odd id"),
        pytest.param(FILE | {"cases": [{"id": "c1"}]}, r"cases\[0\].input is missing", id="no input"),
        pytest.param(
            FILE | {"cases": [CASE | {"compare": "roughly"}]},
            r"compare is 'roughly'; it is one of exact, properties",
            id="an odd way to compare",
        ),
        pytest.param(FILE | {"cases": [CASE | {"output": []}]}, r"cases\[0\].output is an array", id="an odd output"),
        pytest.param(
            FILE | {"cases": [CASE | {"other_outputs": [1]}]},
            r"other_outputs is 1; it must be an object",
            id="odd others",
        ),
    ],
)
def test_a_file_that_is_none_is_refused(document: Any, sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        read_cases(document)


@pytest.mark.parametrize(
    ("assignor", "more", "sentence"),
    [
        pytest.param("group.range", {"subscription_type": "mixed"}, "subscription_type is 'mixed'", id="subscriptions"),
        pytest.param("group.range", {"topics": [{"id": "t"}]}, r"topics\[0\].partitions is missing", id="partitions"),
        pytest.param("group.range", {"topics": [{"id": "t", "partitions": 10**9}]}, "between 1 and", id="too many"),
        pytest.param("group.uniform", {"members": [{"id": "m"}]}, r"members\[0\].topics is missing", id="topics"),
        pytest.param(
            "group.uniform",
            {"members": [{"id": "m", "topics": [], "assigned": {"t": ["0"]}}]},
            r"members\[0\].assigned.t\[0\] is '0'; it must be a whole number",
            id="a partition as text",
        ),
        pytest.param("broker.admin_utils", {"brokers": [{"id": True}]}, r"brokers\[0\].id is true", id="a true broker"),
        pytest.param("broker.striped_placer", {"rng": "dice", "topics": []}, "rng is 'dice'", id="a generator"),
        pytest.param(
            "broker.striped_placer", {"brokers": [{"id": 1, "fenced": 0}]}, r"brokers\[0\].fenced is 0", id="fenced"
        ),
    ],
)
def test_a_case_that_is_none_is_named(assignor: str, more: dict[str, Any], sentence: str) -> None:
    case = {"subscription_type": "homogeneous", "topics": [], "members": [], "brokers": []}
    with pytest.raises(BadProblem, match=f"^case odd: .*{sentence}"):
        run_case(AssignorCase(id="odd", assignor=assignor, kafka_version="4.1.1", input=case | more))


def test_what_kafka_throws_is_an_output() -> None:
    case = {"subscription_type": "homogeneous", "topics": [], "members": [{"id": "m", "topics": ["t"]}]}
    assert run_case(AssignorCase(id="c", assignor="group.range", kafka_version="4.1.1", input=case)) == {
        "error": "PartitionAssignorException",
        "message": "Member is subscribed to a non-existent topic",
    }


def test_every_golden_file_has_a_port() -> None:
    assert {path.name.removesuffix(".json.gz") for path in FOLDER.glob("**/*.json.gz")} == set(ASSIGNORS)


SMALL = {name: min(golden(name), key=lambda case: abs(len(json.dumps(case.input)) - 600)) for name in ASSIGNORS}
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 20),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.just([[]]),
    st.just({"id": 1}),
    st.just(2**70),
)


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(picks=st.lists(st.integers(0, 10**6), min_size=1, max_size=4), junk=JUNK)
@examples(100)
def test_whatever_an_input_holds_it_is_answered_or_refused(assignor: str, picks: list[int], junk: Any) -> None:
    """One value anywhere is replaced by something else: a BadProblem or an output, never anything else."""
    case = SMALL[assignor]
    odd: Any = json.loads(json.dumps(case.input))
    at = odd
    for depth, pick in enumerate(picks):
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            break
        key = keys[pick % len(keys)]
        if depth == len(picks) - 1 or not isinstance(at[key], dict | list):
            at[key] = junk
            break
        at = at[key]
    output: Any = None
    with suppress(BadProblem):
        output = run_case(AssignorCase(id="odd", assignor=case.assignor, kafka_version="4.1.1", input=odd))
    assert json.loads(json.dumps(output)) == output
