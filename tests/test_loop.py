"""The whole line in cycles: one sentence each, and the same again when a recorded look is lived through once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent.journal.entries import JournalState
from agent.loop import CycleStages, NoopExecutor, act, run_cycle
from agent.propose.codec import proposal_to_bytes
from agent.record.files import read_events
from agent.record.reader import RestoredMemory, newest_memory, restored_from
from agent.record.recorder import CycleRecorder, RecordPlan
from agent.simulate.evaluation import recorded_looks, replay, replay_look
from agent.telemetry.events import EventKind, TelemetryEvent, from_lines, to_lines
from agent.telemetry.looks import looks_in
from agent.values.clock import ClockReading
from agent.values.cycle import MOST_LOGGED, Cycle, finding_news, sentence
from agent.values.finding import FindingSeverity
from agent.values.limits import AgentMode, GainLimits, Limits, TriggerLimits, TriState
from agent.values.memory import Memory
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from agent.values.proposal import Hold, HoldReason, Outcome, Proposal, ProposalKind
from agent.values.snapshot import Snapshot
from tests.recorded_looks import observation_to_events
from tests.synthetic_cluster import next_look, synthetic_cluster

WORLD = synthetic_cluster(20, seed=3)


class Looker:
    """A cluster that answers with one observation after the other; a real one cannot be told what to answer."""

    def __init__(self, *observations: Observation) -> None:
        self.observations = list(observations)
        self.looks = 0

    def __call__(self) -> Observation:
        self.looks += 1
        return self.observations[min(self.looks, len(self.observations)) - 1]


def cycle(
    observation: Observation = WORLD,
    memory: Memory | None = None,
    *,
    limits: Limits | None = None,
    planning: bool = True,
) -> Cycle:
    line = CycleStages(limits or Limits())
    return run_cycle(
        line, lambda: observation, observation, memory or Memory(), number=1, name="l-1", planning=planning
    )


def partial(observation: Observation) -> Observation:
    gaps = (
        Gap.of_broker(ObservationPart.LOG_DIRS, GapCause.TIMED_OUT, 2, "no answer in 5 s"),
        Gap(ObservationPart.GROUPS, GapCause.NOT_ALLOWED, "payments", "GROUP_AUTHORIZATION_FAILED"),
    )
    return replace(observation, gaps=gaps)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        pytest.param(
            lambda: cycle(planning=False),
            "saw 12 brokers in 3 racks, 20 topics and 20 groups; 6 findings (6 new)",
            id="a look without planning",
        ),
        pytest.param(
            cycle,
            "saw 12 brokers in 3 racks, 20 topics and 20 groups; 6 findings (6 new); "
            "proposed 4 trigger: a dry run carries nothing out",
            id="a planning in a dry run",
        ),
        pytest.param(
            lambda: cycle(limits=Limits(mode=AgentMode.EXECUTE)),
            "saw 12 brokers in 3 racks, 20 topics and 20 groups; 7 findings (7 new); "
            "proposed 4 trigger: this agent does not lead",
            id="in mode execute the missing right to alter is one finding more",
        ),
        pytest.param(
            lambda: cycle(memory=cycle().after),
            "saw 12 brokers in 3 racks, 20 topics and 20 groups; 6 findings; "
            "proposed 4 trigger: a dry run carries nothing out",
            id="the same look again has nothing new",
        ),
        pytest.param(
            lambda: cycle(synthetic_cluster(1, improvable=0.0)),
            "saw 12 brokers in 3 racks, 1 topic and 1 group; no findings; no proposals",
            id="nothing wrong",
        ),
        pytest.param(
            lambda: cycle(partial(synthetic_cluster(1, improvable=0.0)), planning=False),
            "saw 12 brokers in 3 racks, 1 topic and 1 group; 2 findings (2 new); incomplete: groups, log dirs",
            id="parts that did not answer",
        ),
    ],
)
def test_a_cycle_says_in_one_sentence_what_happened(made: Callable[[], Cycle], told: str) -> None:
    assert sentence(made()) == told


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        pytest.param(AgentMode.PROPOSE, "proposed 1 advise, 3 trigger: a dry run carries nothing out", id="a dry run"),
        pytest.param(
            AgentMode.OBSERVE,
            "proposed 1 advise, 3 trigger: mode observe publishes nothing and carries nothing out",
            id="an agent that writes nothing",
        ),
        pytest.param(
            AgentMode.EXECUTE,
            "proposed 1 advise, 3 trigger: advise: only the owner of the client or broker can do it, "
            "trigger: the group is not stable now (and 1 other reason)",
            id="an agent that acts",
        ),
    ],
)
def test_each_kind_has_its_own_reason_unless_the_run_is_dry(mode: AgentMode, told: str) -> None:
    made = cycle(limits=Limits(mode=mode))
    first, *others = made.proposals
    proposals = (first._replace(kind=ProposalKind.ADVISE), *others)
    dry = mode is not AgentMode.EXECUTE
    held = [HoldReason.GROUP_NOT_STABLE, HoldReason.GROUP_NOT_STABLE, HoldReason.NOT_LEADING]
    reasons = [HoldReason.OWNER_ACTS, *([HoldReason.DRY_RUN] * 3 if dry else held)]
    verdicts = tuple(Hold(one.id, reason, "not now") for one, reason in zip(proposals, reasons, strict=True))
    assert sentence(replace(made, proposals=proposals, verdicts=verdicts)).endswith(told)


def test_new_findings_are_told_the_worst_first_and_not_without_end() -> None:
    made = cycle()
    of = (FindingSeverity.INFO, FindingSeverity.WARNING, FindingSeverity.CRITICAL)
    one = made.detection.findings[0]
    findings = tuple(replace(one, detail=str(n), severity=of[n % 3]) for n in range(30))
    known = findings[2].id
    new = tuple(finding.id for finding in findings if finding.id != known)
    told, more = finding_news(
        replace(made, detection=replace(made.detection, findings=findings), changes=made.changes._replace(new=new))
    )
    assert [finding.detail for finding in told] == [str(n) for n in range(5, 29, 3)]
    assert len(told) == MOST_LOGGED
    assert more == 1 + 10, "all that are left of the critical ones and every warning"


@pytest.mark.parametrize("mode", list(AgentMode))
def test_nothing_is_ever_done_in_this_release(mode: AgentMode) -> None:
    found = cycle(limits=Limits(mode=mode))
    assert len(found.verdicts) == len(found.proposals) > 0
    assert found.outcomes == ()


@pytest.mark.parametrize(
    ("planning", "observation", "looks"),
    [
        pytest.param(True, WORLD, 1, id="the guard is shown the cluster once more when something is proposed"),
        pytest.param(True, synthetic_cluster(1, improvable=0.0), 0, id="but not when nothing is"),
        pytest.param(False, WORLD, 0, id="nor when nothing is planned"),
    ],
)
def test_when_the_cluster_is_looked_at_again(planning: bool, observation: Observation, looks: int) -> None:
    looker = Looker(observation)
    run_cycle(CycleStages(Limits()), looker, observation, Memory(), number=1, name="l-1", planning=planning)
    assert looker.looks == looks


class RecordingExecutor:
    """Records the proposals that it gets; a real executor needs real brokers."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def carry_out(self, proposal: Proposal, fresh: Snapshot) -> Outcome:
        assert fresh.groups
        self.given.append(proposal.id)
        return Outcome(proposal.id, done=True, sentence="done")


def test_act_carries_out_what_is_allowed_in_order_and_nothing_else() -> None:
    executor, found = RecordingExecutor(), cycle()
    outcomes = act(executor, found.proposals[2:4], found.snapshot)
    assert [outcome.proposal_id for outcome in outcomes] == executor.given
    assert executor.given == [proposal.id for proposal in found.proposals[2:4]]
    assert act(executor, (), found.snapshot) == ()


@pytest.mark.parametrize(
    ("mode", "journal", "acts"),
    [
        pytest.param(AgentMode.OBSERVE, {}, False, id="nothing is done in mode observe"),
        pytest.param(AgentMode.PROPOSE, {}, False, id="nothing is done in a dry run"),
        pytest.param(AgentMode.EXECUTE, None, False, id="nothing is done by an agent that does not lead"),
        pytest.param(AgentMode.EXECUTE, {}, True, id="the leader does what may be done"),
    ],
)
def test_when_the_executor_is_called(mode: AgentMode, journal: JournalState | None, acts: bool) -> None:
    executor = RecordingExecutor()
    free = TriggerLimits(transactional=TriState.NO)
    found = run_cycle(
        CycleStages(Limits(mode=mode, trigger=free), executor),
        lambda: WORLD,
        WORLD,
        Memory(),
        number=1,
        name="l-1",
        planning=True,
        journal=lambda: journal,
    )
    assert found.proposals
    assert bool(executor.given) is acts
    assert len(found.outcomes) == len(executor.given)


def test_without_an_executor_an_allowed_proposal_is_not_done_and_says_so() -> None:
    found = cycle()
    (outcome,) = act(NoopExecutor(), found.proposals[:1], found.snapshot)
    assert (outcome.done, outcome.sentence) == (
        False,
        "not done: this agent observes and proposes, it does not act",
    )


def test_a_proposal_whose_ground_changed_between_the_looks_is_refused() -> None:
    fresh = next_look(WORLD, share=1.0)
    found = run_cycle(CycleStages(Limits()), Looker(fresh), WORLD, Memory(), number=1, name="l-1", planning=True)
    assert "the state that the proposal was made from has changed" in sentence(found)


def test_the_cycle_carries_how_long_each_stage_took() -> None:
    took = cycle().stages_ms
    assert list(took) == [
        "look", "decode", "model", "detect", "plan", "propose", "look_again", "guard", "act", "remember",
    ]  # fmt: skip
    assert took["look"] == WORLD.took_ms
    assert cycle().took_ms >= WORLD.took_ms


def test_memos_between_cycles_change_nothing() -> None:
    line, memory = CycleStages(Limits()), Memory()
    alone_memory = Memory()
    observation = WORLD
    for number in range(1, 5):
        kept = run_cycle(
            line, Looker(observation), observation, memory, number=number, name="l", planning=number % 2 == 1
        )
        alone = run_cycle(
            CycleStages(Limits()),
            Looker(observation),
            observation,
            alone_memory,
            number=number,
            name="l",
            planning=number % 2 == 1,
        )
        assert (kept.detection, kept.proposals, kept.verdicts) == (alone.detection, alone.proposals, alone.verdicts)
        memory, alone_memory = kept.after, alone.after
        observation = next_look(observation, share=0.2, seed=number)


def test_a_recorded_file_gives_byte_same_proposals(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    recorder = CycleRecorder(RecordPlan(file=path), {})
    line, memory, cycles = CycleStages(Limits(gain=GainLimits(min_partitions=2))), Memory(), []
    observation = WORLD
    for number in range(1, 4):
        done = run_cycle(
            line, Looker(observation), observation, memory, number=number, name=f"l-{number}", planning=True
        )
        assert recorder.record(done).problems == ()
        cycles.append(done)
        memory, observation = done.after, next_look(observation, share=0.2, seed=number)
    looks = list(recorded_looks(read_events(path)))
    assert [look.look for look in looks] == ["l-1", "l-2", "l-3"]
    for done, look in zip(cycles, looks, strict=True):
        assert (look.observation, look.memory, look.limits) == (done.observation, done.before, done.limits)
        again = replay_look(look)
        assert len(done.proposals) > 0
        assert list(map(proposal_to_bytes, again.proposals)) == list(map(proposal_to_bytes, done.proposals))
        assert again.detection == done.detection


def test_the_findings_of_the_recorded_look_are_not_new_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    first = cycle()
    CycleRecorder(RecordPlan(file=path), {}).record(first)
    assert first.changes.new
    later = replace(WORLD, taken_ms=WORLD.taken_ms + 35_000, monotonic_ms=5_000)
    restored = _restored(path, later)
    assert restored.sentence == ("restored the memory that went into look 1, 35 s ago, and the findings of that look")
    second = cycle(later, restored.memory)
    assert second.changes.new == ()
    assert {one.id: one.since_ms for one in second.detection.findings} == first.after.first_seen
    assert "new" not in sentence(second)
    # ... and one that ended with the recorded look keeps its age if it comes back soon.
    CycleRecorder(RecordPlan(file=path), {}).record(replace(second, after=replace(second.after, first_seen={})))
    latest = replace(later, taken_ms=later.taken_ms + 35_000, monotonic_ms=9_000)
    assert set(_restored(path, latest).memory.gone) == set(first.after.first_seen)


def _restored(path: Path, observation: Observation) -> RestoredMemory:
    found = newest_memory(path.read_bytes().splitlines(), observation.cluster_id, lambda _: None)
    assert found is not None
    return restored_from(*found, ClockReading(observation.taken_ms, observation.monotonic_ms))


def test_replay_takes_the_events_of_one_look() -> None:
    events = observation_to_events(WORLD, Memory(), Limits(), look="l-1")
    lines = [line for event in events for line in to_lines(event)]
    assert replay(from_lines(lines)) == cycle().proposals


F, C, R = "in full", "by changes", "report"


@pytest.mark.parametrize(
    ("every_ms", "full_every_ms", "plannings", "written"),
    [
        pytest.param(60_000, 90_000, [True, False, False, False], [F, R, R, R], id="a minute is not over"),
        pytest.param(20_000, 90_000, [True, False, False, False], [F, R, C, R], id="every twenty seconds"),
        pytest.param(0, 90_000, [True, False, False, False], [F, C, C, C], id="every look"),
        pytest.param(60_000, 90_000, [False, False, True, False], [F, R, C, R], id="a planning always is"),
        pytest.param(0, 20_000, [False] * 5, [F, C, F, C, F], id="in full every twenty seconds"),
        pytest.param(0, 0, [False] * 3, [F, F, F], id="always in full"),
    ],
)
def test_which_looks_are_recorded_in_full_and_which_by_changes(
    tmp_path: Path, every_ms: int, full_every_ms: int, plannings: list[bool], written: list[str]
) -> None:
    path = tmp_path / "telemetry.jsonl"
    recorder = CycleRecorder(RecordPlan(file=path, every_ms=every_ms, full_every_ms=full_every_ms), {})
    observation, found = synthetic_cluster(2), []
    for number, planning in enumerate(plannings):
        found.append(recorder.record(numbered(number, observation, planning=planning)).recorded)
        observation = next_look(observation)  # ten seconds later
    assert found == [how != R for how in written]
    assert [how_written(look) for look in looks_in(read_events(path))] == written
    whole = [f"l-{n}" for n, how in enumerate(written) if how != R]
    assert [look.look for look in recorded_looks(read_events(path))] == whole


def numbered(number: int, observation: Observation, *, planning: bool = False) -> Cycle:
    return run_cycle(
        CycleStages(Limits()), lambda: observation, observation, Memory(), number=number, name=f"l-{number}",
        planning=planning,
    )  # fmt: skip


def how_written(look: Sequence[TelemetryEvent]) -> str:
    kinds = {event.kind for event in look}
    return R if EventKind.LOOK not in kinds else C if EventKind.KEPT in kinds else F


def test_a_new_file_begins_with_a_look_in_full(tmp_path: Path) -> None:
    """What stands on a look of another file could not be replayed."""
    path = tmp_path / "telemetry.jsonl"
    recorder = CycleRecorder(RecordPlan(file=path, every_ms=0, file_max_bytes=300_000), {})
    observation, found = synthetic_cluster(20), []
    for number in range(12):
        if number == 2:
            path.unlink()  # or somebody moved it
        recorder.record(numbered(number, observation))
        found.append(how_written(list(looks_in(read_events(path)))[-1]))
        observation = next_look(observation, share=0.5, seed=number)
    assert found[:4] == [F, C, F, C]
    assert found[4:].count(F) > 0, "the file was never full"
    for file in (path, path.with_name(f"{path.name}.1")):
        assert how_written(next(iter(looks_in(read_events(file))))) == F
        assert len(list(recorded_looks(read_events(file)))) == len(list(looks_in(read_events(file))))


def test_after_a_record_was_lost_comes_a_look_in_full(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    path = folder / "telemetry.jsonl"
    recorder = CycleRecorder(RecordPlan(file=path, every_ms=0), {})
    observation, found = synthetic_cluster(2), []
    for number in range(5):
        if number == 1:
            path.rename(tmp_path / "kept")
            path.mkdir()  # nothing can be written there now
        if number == 2:
            path.rmdir()
            (tmp_path / "kept").rename(path)
        recorder.record(numbered(number, observation))
        if path.is_file():
            found.append(how_written(list(looks_in(read_events(path)))[-1]))
        observation = next_look(observation)
    assert found == [F, F, C, C]


def test_findings_that_no_log_record_names_are_counted() -> None:
    found = cycle(planning=False)
    first, *others = found.detection.findings
    mixed = replace(
        found, detection=replace(found.detection, findings=(replace(first, severity=FindingSeverity.INFO), *others))
    )
    assert sentence(mixed).endswith("6 findings (6 new, 1 info)")
