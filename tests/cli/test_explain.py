"""``explain``: by the running agent's settings, by recorded ones, or by those given; and what is no subject of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.cli import running_agents
from agent.errors import JournalUnavailable
from agent.journal.entries import JournalState
from agent.loop import CycleStages, run_cycle
from agent.telemetry.derived import derived_events
from agent.telemetry.events import EventKind, TelemetryEvent, to_lines
from agent.values.cycle import AgentIdentity
from agent.values.finding import SubjectId
from agent.values.limits import AgentMode, Limits, ProbingLimits, ScopeLimits
from agent.values.memory import Memory
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from agent.values.proposal import LifecycleStep
from agent.values.reassignment import PlanState
from tests.builders import Answers, an_observation, reader
from tests.cli.conftest import Record, Run
from tests.cli.execute.file_agent import MOVE, options, plan, write_journal
from tests.recorded_looks import observation_to_events

QUICK = ("--set", "weights.enabled=false")
"""No topic of weights is waited for where there is no broker."""
EXECUTE = Limits(mode=AgentMode.EXECUTE)
UNREAD = "approvals, budgets, pauses and earlier attempts are unknown"
JUDGED = "judged with the settings of agent rw-1 on host kafka-host"


def world() -> Answers:
    return an_observation(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 4), (2, 3), min_insync_replicas="1")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the journal is; a cluster of one topic whose replicas share a rack."""
    monkeypatch.setattr("agent.observe.observe_cluster.observe", lambda *_: world().at())
    monkeypatch.setattr(running_agents, "READ_MS", 100)
    return tmp_path / "journal"


def told(observation: Observation, limits: Limits, look: str, teller: AgentIdentity) -> Iterable[TelemetryEvent]:
    """What an agent writes of one cycle."""
    cycle = run_cycle(
        CycleStages(limits), lambda: observation, observation, Memory(), number=1, name=look, planning=True
    )
    inputs = list(observation_to_events(observation, cycle.before, limits, look=look))
    return *inputs, *derived_events(cycle, len(inputs), full=True, agent=teller)


def telemetry(
    path: Path,
    limits: Limits = EXECUTE,
    *,
    age_s: int = 8,
    teller: AgentIdentity | None = None,
    look: str = "i-1",
    **of: str,
) -> tuple[str, ...]:
    """The options that name a telemetry file which an agent wrote that long ago; below zero, with a fast clock."""
    observation = world().at()
    before = replace(observation, taken_ms=observation.taken_ms - age_s * 1_000, **of)  # type: ignore[arg-type] # a row
    file = path.with_name("telemetry.jsonl")
    events = told(before, limits, look, teller or AgentIdentity("rw-1", "kafka-host"))
    with file.open("a") as out:
        out.writelines(f"{line}\n" for event in events for line in to_lines(event))
    return *QUICK, "--set", f"record.file={file}"


# --- by whose settings ------------------------------------------------------------------------------------------


def test_it_says_what_the_running_agent_would_do_and_not_what_the_shell_would(here: Run, path: Path) -> None:
    write_journal(path, *plan(PlanState.DONE))
    agent = telemetry(path)
    done = here("explain", "topic/t", "-o", "json", *agent, *options(path))
    assert f"{JUDGED}, last report 8 s ago, mode execute" in done.stderr.splitlines()
    assert re.search(r"^figures of \d\d:\d\d:\d\dZ, this look$", done.stderr, re.MULTILINE)
    rules = {row["rule"]: row["answer"] for row in done.json}
    assert rules["approved"] == "wait"
    assert "mode execute" not in rules

    shell = here("explain", "topic/t", "-o", "json", "--as-configured-here", *agent, *options(path))
    assert "judged with the settings given here, mode propose" in shell.stderr.splitlines()
    told = {row["rule"]: (row["answer"], row["sentence"]) for row in shell.json}
    assert told["mode execute"] == ("no", "mode is propose, a dry run: nothing is changed")
    assert shell.json[-1]["rule"] == "journal"
    assert told["journal"][0] == "unknown", "approvals and budgets are not passed over in silence"


def test_its_limits_hold_for_what_is_found_and_planned_too(here: Run, path: Path) -> None:
    write_journal(path, *plan(PlanState.DONE))
    agent = telemetry(path, Limits(scope=ScopeLimits(exclude_topics=("t",))))
    done = here("explain", "topic/t", "-o", "json", *agent, *options(path))
    assert [row["sentence"] for row in done.json if row["rule"] == "not excluded by settings"] == [
        "excluded by the settings"
    ]


@pytest.mark.parametrize(
    ("age_s", "of", "says"),
    [
        pytest.param(3_600, {}, "the newest is 60 min old", id="it has stopped"),
        pytest.param(8, {"cluster_id": "another"}, "shows no", id="it looks at another cluster"),
        pytest.param(None, {}, "No such file or directory", id="there is none"),
    ],
)
def test_where_no_agent_runs_that_is_said(
    here: Run, path: Path, age_s: int | None, of: dict[str, str], says: str
) -> None:
    missing = (*QUICK, "--set", f"record.file={path.with_name('nothing')}")
    agent = missing if age_s is None else telemetry(path, age_s=age_s, **of)
    done = here("explain", "topic/t", "-o", "json", *agent, *options(path))
    note = next(line for line in done.stderr.splitlines() if "judged" in line)
    assert note.startswith("no running agent's telemetry (")
    assert note.endswith("judged with the settings given here, mode propose")
    assert says in note


def test_the_leader_is_judged_by_though_a_dry_run_wrote_last(here: Run, path: Path) -> None:
    write_journal(path, *plan(PlanState.DONE))
    agent = telemetry(path)
    observation = world().at()
    now = replace(observation, taken_ms=observation.taken_ms - 1_000)
    with path.with_name("telemetry.jsonl").open("a") as out:
        events = told(now, Limits(), "j-1", AgentIdentity("rw-1", "kafka-host", 12))
        out.writelines(f"{line}\n" for event in events for line in to_lines(event))
    done = here("explain", "topic/t", "-o", "json", *agent, *options(path))
    (note,) = [line for line in done.stderr.splitlines() if line.startswith("judged with")]
    assert note == (
        f"{JUDGED}, last report 8 s ago, mode execute; agents with different settings write to the same telemetry; "
        "also agent rw-1 on host kafka-host, process 12, mode propose, 1 s ago"
    )
    assert "mode execute" not in {row["rule"] for row in done.json}, "it is no dry run"


@pytest.mark.parametrize(
    ("ages_s", "leader", "dry"),
    [
        pytest.param((8, -300), "8 s ago", "0 s ago", id="the clock of the dry run is 5 min fast"),
        pytest.param((8, -400), "8 s ago", "of 6 min in the future", id="or faster"),
        pytest.param((130, 1), "2 min ago", "1 s ago", id="the leader looks every three minutes"),
    ],
)
def test_a_dry_run_takes_no_leaders_place(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch, *, ages_s: tuple[int, int], leader: str, dry: str
) -> None:
    monkeypatch.setattr("agent.record.running_agent.wall_ms", lambda: world().at().taken_ms)
    write_journal(path, *plan(PlanState.DONE))
    telemetry(path, age_s=ages_s[0], teller=AgentIdentity("rw-1", "kafka-host", 11, 180_000))
    agent = telemetry(path, Limits(), age_s=ages_s[1], teller=AgentIdentity("rw-dry", "laptop", 12), look="j-1")
    done = here("explain", "topic/t", "-o", "json", *agent, *options(path))
    (note,) = [line for line in done.stderr.splitlines() if line.startswith("judged with")]
    assert note.startswith(f"{JUDGED}, process 11, last report {leader}, mode execute;")
    assert note.endswith(f"also agent rw-dry on host laptop, process 12, mode propose, {dry}")


def test_an_agent_that_stopped_with_its_clock_in_the_future_is_not_taken_for_running(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.record.running_agent.wall_ms", lambda: world().at().taken_ms)
    agent = telemetry(path, age_s=-10 * 365 * 86_400)
    done = here("explain", "topic/t", "-o", "json", *agent, *options(path))
    (note,) = [line for line in done.stderr.splitlines() if "judged with" in line]
    assert note == (
        "no running agent's telemetry (the newest is 3,650 days in the future, so its age is unknown: check its host's "
        "clock): judged with the settings given here, mode propose"
    )


def test_a_leader_whose_settings_were_not_read_is_named_and_no_other_agent_judged_by(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last look in full may be too far back to be found in time."""
    telemetry(path)
    agent = telemetry(path, Limits(), age_s=1, teller=AgentIdentity("rw-dry", "laptop", 12), look="j-1")
    file = path.with_name("telemetry.jsonl")
    lines = [
        line for line in file.read_text().splitlines() if '"kind":"limits"' not in line or '"look":"i-1"' not in line
    ]
    file.write_text("".join(f"{line}\n" for line in lines))
    done = here("explain", "topic/t", "-o", "json", *agent, *options(path))
    (note,) = [line for line in done.stderr.splitlines() if "judged with" in line]
    unread = f"agent rw-1 on host kafka-host writes it, but {file} shows no limits"
    assert note.startswith(f"no running agent's telemetry ({unread}")
    assert note.endswith("judged with the settings given here, mode propose")


def test_a_proposal_that_only_the_agent_makes_is_explained(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_journal(path)
    (own,) = here("plan", "-o", "json", *telemetry(path), *options(path)).json
    published = MOVE._replace(id="p-0123456789ab", created_ms=world().at().taken_ms - 180_000)
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda *_: (published,))
    done = here("explain", published.id, "-o", "json", *telemetry(path), *options(path))
    assert done.exit_code == 0, done.stderr
    then = "3 min ago for topic/t, with sentence and figures as published then"
    assert f"{published.id} is open: the agent proposed it {then}" in done.stderr
    assert f"this look proposes {own['id']} (" in done.stderr
    assert done.json[0]["about"] == published.id
    assert done.json[0]["sentence"] == f"as published: {MOVE.sentence}", "it may say anything"
    assert "approved" in {row["rule"] for row in done.json if row["about"] == published.id}, "its checks are there"
    unknown = here("explain", "p-fedcba987654", *telemetry(path), *options(path))
    assert (unknown.exit_code, "no proposal has this id now" in unknown.stderr) == (2, True)


def test_a_published_proposal_that_expired_is_not_called_open(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_journal(path)
    now_ms, day_ms = world().at().taken_ms, 86_400_000
    gone = MOVE._replace(id="p-0123456789ab", created_ms=now_ms - 8 * day_ms, expires_ms=now_ms - 7 * day_ms)
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda *_: (gone,))
    done = here("explain", gone.id, "-o", "json", *telemetry(path), *options(path))
    assert "is open" not in done.stderr
    assert f"{gone.id} was proposed 8 days ago for topic/t" in done.stderr
    assert "and expired 7 days ago: no agent proposes it now; this look proposes " in done.stderr


def test_an_id_that_was_replaced_names_the_open_proposals_of_its_subject(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_journal(path)
    (own,) = here("plan", "-o", "json", *telemetry(path), *options(path)).json
    newer = MOVE._replace(id="p-0123456789ab")
    other = MOVE._replace(id="p-aaaaaaaaaaaa", subject=SubjectId("topic", "u"))
    old = LifecycleStep("p-fedcba987654", "reassign", "topic/t", "void", "another proposal replaced it", 1)
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda *_: (newer, other, old))
    done = here("explain", old.id, *telemetry(path), *options(path))
    assert done.exit_code == 2
    said = next(line for line in done.stderr.splitlines() if line.startswith(f"{old.id} was"))
    assert said.startswith(f"{old.id} was a proposal for topic/t: another proposal replaced it; open for topic/t: ")
    assert (own["id"] in said, newer.id in said, other.id in said) == (True, True, False)


def test_another_leader_than_the_one_that_is_heard_is_named(here: Run, path: Path) -> None:
    write_journal(path, *plan(PlanState.DONE))
    done = here("explain", "topic/t", "-o", "json", *telemetry(path), *options(path))
    assert "note: agent rw-1 on host here leads, and its settings may differ" in done.stderr.splitlines()


def test_without_a_journal_what_it_would_tell_is_unknown(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_plan: object) -> JournalState:
        raise JournalUnavailable("The journal could not be read", why="no answer in time")

    monkeypatch.setattr(running_agents, "journal", refused)
    done = here("explain", "topic/t", "-o", "json", *telemetry(path), *options(path))
    assert (done.json[-1]["rule"], done.json[-1]["answer"]) == ("journal", "unknown")
    assert done.json[-1]["sentence"] == f"the journal could not be read: {UNREAD}"
    assert "note: the journal cannot be read: The journal could not be read: no answer in time" in done.stderr


def test_beside_a_dry_run_no_journal_is_read_and_the_answer_says_so(here: Run, path: Path) -> None:
    write_journal(path, *plan(PlanState.DONE))
    done = here("explain", "topic/t", "-o", "json", *telemetry(path, Limits(mode=AgentMode.PROPOSE)), *options(path))
    why = "the journal is read in mode execute only, and the mode is propose"
    assert (done.json[-1]["rule"], done.json[-1]["sentence"]) == ("journal", f"{why}: {UNREAD}")


def test_a_recorded_look_is_judged_with_the_recorded_settings(here: Run, record: Record) -> None:
    file = record(world(), Limits(mode=AgentMode.OBSERVE))
    done = here("explain", "topic/t", "--replay", str(file), "-o", "json")
    assert done.exit_code == 0
    assert f"judged with the settings recorded in {file}, mode observe; the look is of " in done.stderr
    assert "mode is observe, a dry run: nothing is changed" in [row["sentence"] for row in done.json]
    assert (done.json[-1]["rule"], done.json[-1]["answer"]) == ("journal", "unknown")
    assert done.json[-1]["sentence"] == f"a telemetry file holds no journal: {UNREAD}"
    both = here("explain", "topic/t", "--replay", str(file), "--as-configured-here")
    assert (both.exit_code, "contradict each other" in both.stderr) == (2, True)


# --- what is a subject ------------------------------------------------------------------------------------------


def rich() -> Answers:
    orders = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", (1, 2), (2, 3)).topic("payments", (1, 2))
    return orders.group("billing", reader("m1", "a", "orders-0"))


@pytest.mark.parametrize(
    ("subject", "why", "near"),
    [
        pytest.param("topic/ordres", "there is no topic ordres", "topic/orders", id="a letter is wrong"),
        pytest.param("group/biling", "there is no group biling", "group/billing", id="a letter is missing"),
        pytest.param("broker/99", "there is no broker 99; brokers: 1, 2, 3", None, id="no such broker"),
        pytest.param("broker/x", "there is no broker x", None, id="no number"),
        pytest.param("orders", "it is no subject", "topic/orders", id="a name without its kind"),
        pytest.param("billing", "it is no subject", "group/billing", id="a group without its kind"),
        pytest.param("topics/orders", "it is no subject", "topic/orders", id="a kind that there is not"),
        pytest.param("group/orders", "there is no group orders", "topic/orders", id="the name of something else"),
        pytest.param("topic/orders/7", "topic orders has 2 partitions, and no partition 7", "topic/orders", id="part"),
        pytest.param("topic/orders/x", "topic orders has 2 partitions, and no partition x", "topic/orders", id="text"),
        pytest.param("p-0123456789ab", "no proposal has this id now", None, id="no such proposal"),
        pytest.param("", "it is no subject", None, id="nothing"),
        pytest.param("topic/", "there is no topic ", None, id="nothing of a kind"),
        pytest.param("//", "it is no subject", None, id="slashes"),
    ],
)  # fmt: skip
def test_an_unknown_subject_ends_with_2_and_the_nearest_name(
    here: Run, record: Record, subject: str, why: str, near: str | None
) -> None:
    done = here("explain", "--replay", str(record(rich())), "-o", "json", "--", subject)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"rackwise: {subject} is unknown" in done.stderr
    assert f"why: {why}" in done.stderr
    assert (f"Did you mean {near}?" in done.stderr) is (near is not None)
    forms = "A subject is topic/NAME, topic/NAME/PARTITION, group/NAME, broker/ID, or the id of a proposal."
    assert (forms in done.stderr) is not subject.startswith("p-")


@pytest.mark.parametrize("subject", ["topic/orders", "topic/orders/1", "group/billing", "broker/1"])
def test_what_there_is_is_explained(here: Run, record: Record, subject: str) -> None:
    done = here("explain", "--replay", str(record(rich())), "-o", "json", subject)
    assert done.exit_code == 0
    assert done.json


def test_what_may_only_not_have_been_seen_is_no_mistake(here: Run, record: Record) -> None:
    answers = rich()
    answers.gaps.append(Gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, "", "no answer"))
    done = here("explain", "--replay", str(record(answers)), "-o", "json", "group/other")
    assert done.exit_code == 5
    assert done.stderr.splitlines()[-3:-1] == [
        "rackwise: group/other was not found",
        "  why: not all groups could be read (no answer in time), so it may exist",
    ]
    of_a_proposal = here("explain", "--replay", str(record(answers)), "p-0123456789ab")
    assert of_a_proposal.exit_code == 5
    assert "p-0123456789ab was not found\n  why: not all groups could be read" in of_a_proposal.stderr
    assert here("explain", "--replay", str(record(answers)), "topic/other").exit_code == 2, "of topics all were seen"


def test_the_beginning_of_an_id_brings_those_that_begin_like_it(here: Run, record: Record) -> None:
    file = str(record(an_observation(a=(1, 4), b=(2,), c=(3,)).topic("orders", (1, 4)).topic("payments", (4, 1))))
    first, *others = [one["id"] for one in here("plan", "--replay", file, "-o", "json").json]
    assert others
    done = here("explain", "--replay", file, first[:8])
    assert done.exit_code == 2
    assert "why: the id of a proposal is p- and 12 hex digits" in done.stderr
    assert f"Open proposals that begin with {first[:8]}: {first} (" in done.stderr
    assert not any(one in done.stderr for one in others)
    none = here("explain", "--replay", file, "p-fedcba9876")
    assert all(one in none.stderr for one in (first, *others)), "all are named where none begins like it"


def test_an_unknown_id_brings_the_open_proposals_with_their_subjects(here: Run, record: Record) -> None:
    file = str(record(an_observation(a=(1, 4), b=(2,), c=(3,)).topic("orders", (1, 4)).topic("payments", (4, 1))))
    known = {row["id"]: (row["kind"], row["subject"]) for row in here("plan", "--replay", file, "-o", "json").json}
    assert known
    error = here("explain", "--replay", file, "p-0123456789ab")
    assert error.exit_code == 2
    assert "Did you mean" not in error.stderr, "ids are hashes, and none is near another"
    for name, (kind, subject) in known.items():
        assert f"{name} ({kind} {subject['kind']}/{subject['name']})" in error.stderr


def test_a_plan_that_ended_is_told_of_by_its_id(here: Run, path: Path) -> None:
    write_journal(path, *plan(PlanState.CANCELLED, "cancel requested by ann@desk"))
    old = "p-aaaaaaaaaaaa"
    first, _ = plan(PlanState.ROLLED_BACK)
    write_journal(path, first._replace(proposal_id=old))
    done = here("explain", old, "-o", "json", *QUICK, *options(path))
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])
    assert f"{old} is not proposed now; attempt 1 rolled back" in done.stderr
    assert here("explain", MOVE.id, "-o", "json", *QUICK, *options(path)).exit_code == 0


def test_the_newest_events_are_found_at_the_end_of_a_long_file(path: Path) -> None:
    from agent.record.running_agent import newest_in_file  # noqa: PLC0415 (the only test that reads a file itself)

    telemetry(path)
    file = path.with_name("telemetry.jsonl")
    whole = file.read_text()
    other = json.dumps({**json.loads(whole.splitlines()[2]), "look": "x-1"})
    file.write_text(whole + f"{other}\n" * 20_000 + '{"v":1,"kind":"limits"')
    assert file.stat().st_size > 2 << 20
    found = newest_in_file(file, None, deadline=float("inf"))
    assert (found.why_not, set(found.events)) == (None, {EventKind.LIMITS, EventKind.MEMORY, EventKind.REPORT})
    assert newest_in_file(file, "other", deadline=float("inf")).why_not == f"{file} shows no limits, memory, report"


def test_limits_of_the_agent_that_no_settings_have_are_no_fault_of_rackwise(here: Run, path: Path) -> None:
    """The right to write the telemetry topic is the right to write any limits."""
    write_journal(path, *plan(PlanState.DONE))
    agent = telemetry(path, Limits(probing=ProbingLimits(budget_per_group_per_hour=-1)))
    done = here("explain", "topic/t", *agent, *options(path))
    assert "its telemetry cannot be read (the limit execute.probing_budget_per_group_per_hour is -1" in done.stderr


# --- what a yes is a yes to -------------------------------------------------------------------------------------


def test_a_group_that_reads_nothing_locally_is_as_local_as_possible_and_not_called_local(
    here: Run, record: Record
) -> None:
    answers = an_observation().topic("orders", (1, 2), (2, 1)).group("far", reader("m", "c", "orders-0 orders-1"))
    rows = here("explain", "group/far", "--replay", str(record(answers)), "-o", "json").json
    found = [row for row in rows if row["sentence"] == "0 of 2 reads are local now, 0 at best"]
    assert len(found) == 2
    assert {(row["answer"], row["rule"].partition(" by ")[0].partition(" as read")[0]) for row in found} == {
        ("yes", "as local as possible")
    }


def test_a_topic_of_which_nothing_changes_is_not_said_to_be_covered_by_a_plan(here: Run, record: Record) -> None:
    answers = an_observation(a=(1, 4), b=(2,), c=(3,)).topic("good", (1, 2), (2, 3)).topic("crowded", (1, 4), (2, 3))
    file = str(record(answers))
    told = {
        row["about"]: row["sentence"]
        for topic in ("good", "crowded")
        for row in here("explain", f"topic/{topic}", "--replay", file, "-o", "json").json
        if row["rule"] == "not excluded by settings"
    }
    assert told == {
        "topic/good": "planning includes the topic, and changes 0 of 2 partitions",
        "topic/crowded": "planning includes the topic, and changes 1 of 2 partitions",
    }
