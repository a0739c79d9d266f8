"""One hostile world in what is no command: HTTP, metrics, the log, the screen of the demo, reports of the pipeline."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints
from xml.etree import ElementTree as ET

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from agent.daemon.daemon import AgentDaemon, LoopPace
from agent.errors import RackwiseError, error_lines
from agent.loop import CycleStages, run_cycle
from agent.record.librdkafka import RecordCounts
from agent.record.recorder import CycleRecorder, RecordingResult, RecordPlan
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.web.agent_view import CycleFailure, LoopState
from agent.web.app import make_app
from agent.web.metrics import SeriesCaps
from config.foreign_text import shortened
from config.logging import MAX_VALUE_BYTES, set_up_logging
from pipeline import options
from pipeline.report.compose import compose
from pipeline.report.csvs import to_csvs
from pipeline.report.document import ReportDocument
from pipeline.report.facts import ReportFacts
from pipeline.report.html import to_html
from pipeline.report.markdown import to_markdown
from testbed.demo.console import ConsoleLine as Shown
from testbed.demo.console import DemoConsole
from testbed.demo.events import CycleEvents
from testbed.demo.results import DemoProposals, summary
from tests.foreign_texts import POISONS, formulas, spelled
from tests.hostile_cluster import FORGED, Name, observation, poisoned, twin

NOW = ClockReading(1_760_000_010_000, 10_000)
MOST_LABEL = 200 + 20


@cache
def cycle_of(name: Name) -> Cycle:
    of = observation(name)
    return run_cycle(CycleStages(Limits()), lambda: of, of, Memory(), number=1, name="l-1", planning=True)


def state_of(name: Name) -> LoopState:
    cycle = cycle_of(name)
    problems = tuple(map(name, POISONS))
    return LoopState(
        started=ClockReading(0, 0),
        cycle=cycle,
        planned=cycle,
        recording=RecordingResult(True, RecordCounts(5, 1, 2), 3, problems),
        last_success=NOW,
        last_end=NOW,
        succeeded=1,
        failure=CycleFailure(2, name("a line feed"), 0),
    )


def scan(text: str, lines: int | None = None) -> None:
    """Raises when a character could do harm, or a line is forged."""
    text.encode("utf-8")
    assert spelled(text) == []
    assert [line for line in text.splitlines() if line.strip().startswith(FORGED)] == []
    if lines is not None:
        assert len(text.splitlines()) == lines


# --- HTTP and metrics -------------------------------------------------------------------------------------------


def pages(name: Name) -> dict[str, str]:
    app = make_app(lambda: state_of(name), lambda: NOW, fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps(groups=500))
    with TestClient(app, base_url="http://localhost") as client:
        return {path: client.get(path).text for path in ("/livez", "/readyz", "/metrics")}


def test_http_answers_are_harmless_and_short() -> None:
    for path, text in pages(poisoned).items():
        scan(text, len(pages(twin)[path].splitlines()))
        if path != "/metrics":
            values = [value for value in _texts(json.loads(text)) if len(value.encode()) > MOST_LABEL]
            assert values == []


def test_no_label_is_harmful_long_or_told_twice() -> None:
    samples = [one for family in text_string_to_metric_families(pages(poisoned)["/metrics"]) for one in family.samples]
    assert len({one.labels["group"] for one in samples if "group" in one.labels}) > 100
    for one in samples:
        for value in one.labels.values():
            scan(value)
            assert len(value.encode()) <= MOST_LABEL
    series = Counter((one.name, tuple(sorted(one.labels.items()))) for one in samples)
    assert max(series.values()) == 1


def _texts(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        yield from (text for pair in document.items() for of in pair for text in _texts(of))
    elif isinstance(document, list):
        yield from (text for of in document for text in _texts(of))


# --- the log ----------------------------------------------------------------------------------------------------


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.mark.parametrize("form", ["json", "console"])
def test_the_log_of_a_cycle_and_of_a_failure_is_one_harmless_line_each(
    out: io.StringIO, tmp_path: Path, form: Any
) -> None:
    set_up_logging(form=form, stream=out)
    faults = [
        ValueError(POISONS["a C1 control"]),
        RackwiseError(POISONS["a line feed"], why=POISONS["5,000 controls"], todo=POISONS["text that runs backwards"]),
    ]

    def look() -> Any:
        if agent.watch.state.succeeded:
            raise faults.pop()
        return observation(poisoned)

    recorder = CycleRecorder(RecordPlan(file=tmp_path / "t.jsonl"), {})
    agent = AgentDaemon(
        look=look, stages=CycleStages(Limits()), recorder=recorder, pace=LoopPace(poll_ms=60_000, plan_ms=60_000)
    )
    for _ in range(3):
        agent._run()
    agent.close()
    assert faults == []
    for text in POISONS.values():
        structlog.get_logger("rackwise").warning("executor_says", sentence=text, names=[text, {text: text}])
    lines = out.getvalue().splitlines()
    scan(out.getvalue(), len(lines))
    assert len(lines) >= 3 + len(POISONS)
    if form == "json":
        events = [json.loads(line) for line in lines]
        assert [event["event"] for event in events].count("cycle_failed") == 2
        values = [
            value for event in events for name, one in event.items() if name != "traceback" for value in _texts(one)
        ]
        assert max(len(value.encode()) for value in values) <= MAX_VALUE_BYTES


# --- the demo ---------------------------------------------------------------------------------------------------


def shown(name: Name) -> str:
    out = io.StringIO()
    screen, cycle = DemoConsole(out), cycle_of(name)
    lines = CycleEvents().of(cycle)
    screen.tell(*lines, *(Shown("scene", name(poison)) for poison in POISONS))
    screen.setup(f"waiting: {name('a line feed')}")
    screen.plain("", *summary(DemoProposals(len(cycle.proposals), cycle.proposals), name("a line feed"), cycle))
    return out.getvalue()


def test_the_demos_screen_is_harmless_and_tells_each_thing_on_its_line() -> None:
    text = shown(poisoned)
    scan(text, len(shown(twin).splitlines()))
    assert max(map(len, text.splitlines())) < 2_200


# --- reports of the pipeline ------------------------------------------------------------------------------------

OWN = {
    "day": "2025-11-21", "path": "consume", "zone": "CROSS_ZONE", "kind": "advise", "reason": "set_client_rack",
    "price_date": "2025-10-01", "state": "done", "outcome": "promoted", "quantity": "moves",
}  # fmt: skip
"""Words of the pipeline itself: no name of a stranger's gets there."""


def rows(kind: Any, name: Name) -> tuple[Any, ...]:
    """A row for each poison, with it in every field that a stranger chooses."""
    hints = get_type_hints(kind)
    return tuple(
        kind(**{field: _value(field, hint, name(poison), number) for field, hint in hints.items()})
        for number, poison in enumerate(POISONS)
    )


def _value(field: str, hint: Any, text: str, number: int) -> Any:
    if field in OWN:
        return OWN[field]
    if field.endswith("_ms"):
        return 1_763_683_200_000
    kinds = [*get_args(hint)] or [hint]
    if bool in kinds:
        return True
    if str in kinds:
        return f"topic/{text}" if field == "subject" else text
    return (text,) if any(kind is not type(None) and get_args(kind) for kind in kinds) else 2 + number


def report(name: Name) -> ReportDocument:
    hints = get_type_hints(ReportFacts)
    told = {field: rows(get_args(hint)[0], name) for field, hint in hints.items()
            if get_args(hint) and hasattr(get_args(hint)[0], "_fields")}  # fmt: skip
    left = {"left_out": ((name("a line feed"), 3),), "absent": (name("a line feed"),)}
    return compose(ReportFacts(**told, **left))


def test_a_report_is_harmless_in_every_form_and_has_as_many_lines_as_of_harmless_names() -> None:
    found, other = report(poisoned), report(twin)
    assert len(found.sections) >= 8
    for write in (to_markdown, to_html):
        text = write(found)
        scan(text)
        assert max(map(len, text.splitlines())) < 40_000
    scan(to_markdown(found), len(to_markdown(other).splitlines()))


def test_a_report_in_html_has_no_element_that_a_name_made() -> None:
    def elements(name: Name) -> Counter[str]:
        return Counter(one.tag for one in ET.fromstring(to_html(report(name))).iter())  # noqa: S314 our own

    assert elements(poisoned) == elements(twin)
    assert not any(tag.endswith("script") for tag in elements(poisoned))


def test_a_report_in_markdown_has_no_cell_that_a_name_made() -> None:
    def cells(name: Name) -> list[int]:
        lines = to_markdown(report(name)).splitlines()
        return [len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) for line in lines if line.startswith("|")]

    assert cells(poisoned) == cells(twin)


def test_a_report_in_csv_is_one_line_per_record_and_has_no_formula() -> None:
    csv.field_size_limit(2**24)
    others = to_csvs(report(twin))
    for file, text in to_csvs(report(poisoned)).items():
        scan(text.replace("\r\n", "\n"))
        records = list(csv.reader(io.StringIO(text)))
        assert len(records) == len(list(csv.reader(io.StringIO(others[file])))) == len(text.splitlines())
        assert len({len(record) for record in records}) == 1
        assert formulas([cell for record in records for cell in record]) == []


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in POISONS.items()])
def test_what_the_pipeline_says_is_harmless(capsys: pytest.CaptureFixture[str], text: str) -> None:
    options.say(f"reading {text}")
    options.answer(f"| {text} |".replace("\n", " "))
    error = RackwiseError(text, why=text, todo=text)
    assert len(error_lines(error, shortened).splitlines()) == 3
    scan(error_lines(error, shortened), 3)
    heard = capsys.readouterr()
    scan(heard.out, 1)
    scan(heard.err, 1)


def test_a_gap_is_told_by_the_health_page_even_where_its_name_is_hostile() -> None:
    document = json.loads(pages(poisoned)["/readyz"])
    assert len(document["not_seen"]) == len(cycle_of(poisoned).snapshot.gaps)
    assert replace(state_of(poisoned), failure=None).cycle is cycle_of(poisoned)
