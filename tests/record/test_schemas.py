"""The schemas in docs/schemas are those of the code, and every event keeps to its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from agent.loop import CycleStages, run_cycle
from agent.telemetry.derived import derived_events
from agent.telemetry.events import EventKind, to_lines
from agent.values.limits import Limits
from agent.values.memory import Memory
from tests.docs.schemas import kinds_table, life_schema, telemetry_schema
from tests.record.test_telemetry import SMALL
from tests.recorded_looks import observation_to_events
from tests.synthetic_cluster import synthetic_cluster

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"


@pytest.mark.parametrize(
    ("name", "schema"), [("telemetry.v1.json", telemetry_schema()), ("proposal-life.v1.json", life_schema())]
)
def test_the_committed_schema_is_the_one_of_the_code(name: str, schema: dict[str, object]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads((SCHEMAS / name).read_text()) == schema, "a change here is one for every reader of telemetry"


def test_every_event_of_a_cycle_keeps_to_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(telemetry_schema())
    world = synthetic_cluster(4, improvable=1.0)
    cycle = run_cycle(CycleStages(Limits()), lambda: world, world, Memory(), number=1, name="l-1", planning=True)
    events = [
        *observation_to_events(world, Memory(), Limits(), look="l-1"),
        *derived_events(cycle, 0, full=True),
        *observation_to_events(SMALL, Memory(), Limits(), look="l-2"),
    ]
    for event in events:
        for line in to_lines(event):
            validator.validate(json.loads(line))
    assert {EventKind.FINDING, EventKind.ASSESSMENT, EventKind.REPORT, EventKind.GROUP} <= {
        event.kind for event in events
    }


def test_the_kinds_in_the_docs_are_those_of_the_code() -> None:
    assert kinds_table() in (SCHEMAS.parent / "telemetry.md").read_text()


def test_the_log_events_in_the_docs_are_those_of_the_code() -> None:
    source = "".join((SCHEMAS.parents[1] / "agent" / "daemon" / name).read_text() for name in ("daemon.py", "start.py"))
    logged = set(re.findall(r'\.(?:info|warning|error)\(\s*"(\w+)"', source))
    documented = (SCHEMAS.parent / "telemetry.md").read_text().partition("## The log")[2]
    assert logged == set(re.findall(r"`(\w+)`(?=[^|]*\|[^|]*\|[^|]*\|$)", documented, re.MULTILINE)) - {"sentence"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"kind": "nothing"}, id="an unknown kind"),
        pytest.param({"n": "1"}, id="a text for a number"),
        pytest.param({"data": {"id": "one", "host": "h", "port": 1, "rack": None, "fenced": None}}, id="other data"),
    ],
)
def test_the_schema_refuses_what_is_no_event(change: dict[str, object]) -> None:
    broker = next(
        event for event in observation_to_events(SMALL, Memory(), Limits(), look="l") if event.kind == "broker"
    )
    (line,) = to_lines(broker)
    validator = jsonschema.Draft202012Validator(telemetry_schema())
    assert validator.is_valid(json.loads(line))
    assert not validator.is_valid({**json.loads(line), **change})
