"""An unread part is reported once, by a row of the findings or a line of its own, for all parts that a broker owes."""

from __future__ import annotations

from agent.cli.session import gap_lines
from agent.values.observation import Gap, GapCause, ObservationPart
from tests.builders import Answers, an_observation
from tests.cli.conftest import Record, Run

REFUSED = (
    ObservationPart.BROKER_CONFIGS,
    ObservationPart.END_OFFSETS,
    ObservationPart.LOG_DIRS,
    ObservationPart.COMMITTED_OFFSETS,
)


def refused() -> Answers:
    answers = an_observation().topic("t", (1, 2, 3))
    for part in REFUSED:
        answers.gap(part, GapCause.UNREACHABLE, "broker 2")
    return answers


def test_all_parts_that_a_broker_owes_are_one_line() -> None:
    gaps = [Gap.of_broker(part, GapCause.UNREACHABLE, 2, "h:2: refused") for part in REFUSED]
    gaps += [Gap.of_broker(ObservationPart.LOG_DIRS, GapCause.TIMED_OUT, 3, "nothing in 5 s")]
    gaps += [
        Gap(ObservationPart.TOPICS, GapCause.NOT_ALLOWED, "", "no"),
        Gap(ObservationPart.GROUPS, GapCause.NOT_ALLOWED, "", "other"),
    ]
    assert gap_lines(gaps) == [
        f"not seen: {', '.join(REFUSED[:3])} and {REFUSED[3]} of broker 2: could not be reached (h:2: refused)",
        "not seen: log dirs of broker 3: no answer in time (nothing in 5 s)",
        "not seen: topics: not authorized (no)",
        "not seen: groups: not authorized (other)",
    ]


def test_status_names_a_broker_that_refused_once(here: Run, record: Record) -> None:
    path = str(record(refused()))
    shown = here("status", "--replay", path, "-o", "table")
    text = " ".join(shown.stdout.split())
    assert "could not be reached" in text
    assert text.count("could not be reached") == 1
    assert "so it is unknown whether reads go to the nearest replica;" in text
    assert "not seen:" not in shown.stderr
    told = here("status", "--replay", path, "-o", "json")
    assert told.stderr.count("not seen:") == 1
    assert len([one for one in told.json["findings"] if one["evidence"].get("cause") == "could not be reached"]) == 4


def test_what_no_finding_names_keeps_its_line(here: Run, record: Record) -> None:
    path = str(record(refused().gap(ObservationPart.WEIGHTS, GapCause.VANISHED, "weights")))
    assert here("status", "--replay", path, "-o", "table").stderr.count("not seen: weights") == 1
