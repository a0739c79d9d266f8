"""What is reported of the changes between cycles: once each, with its end, and never for what a gap hides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.journal.entries import Entry
from agent.journal.plan_entries import change_writes
from agent.loop import CycleStages, run_cycle
from agent.notify.changes import (
    HANDOVER_MS,
    CycleFacts,
    NotificationState,
    PlanEntry,
    after_cycle,
    after_silence,
    facts_of,
)
from agent.notify.notification import EventNotification, NotificationEvent
from agent.notify.notifier import plans_in
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.last_known import last_known
from agent.values.limits import AgentMode, Limits
from agent.values.memory import Memory
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.plan import ExecuteFault, ExecuteState
from agent.values.proposal import Hold, HoldReason
from agent.values.reassignment import ENDED, PlanState, ReassignmentPlan
from tests.synthetic_cluster import synthetic_cluster

STALL_MS = 120_000
POLL_MS = 10_000
WORLD = synthetic_cluster(6, improvable=1.0)
SEVERITY = {"i": FindingSeverity.INFO, "w": FindingSeverity.WARNING, "c": FindingSeverity.CRITICAL}


def finding(name: str, severity: FindingSeverity = FindingSeverity.WARNING) -> Finding:
    return Finding(
        reason=FindingReason.UNDER_MIN_ISR,
        subject=SubjectId("topic", name),
        sentence=f"{name} is under its min ISR",
        evidence=(),
        severity=severity,
        since_ms=0,
    )


def findings(words: str) -> Mapping[str, Finding]:
    """``"a:c b"`` has a critical finding about a, and a warning about b."""
    found = [finding(name, SEVERITY[mark or "w"]) for name, _, mark in (word.partition(":") for word in words.split())]
    return {one.id: one for one in found}


def facts(number: int = 0, words: str = "", **others: object) -> CycleFacts:
    at_ms = number * POLL_MS
    made = CycleFacts(at_ms=at_ms, monotonic_ms=at_ms, findings=findings(words))
    return replace(made, **others)  # type: ignore[arg-type] # a builder's keywords


def lived(*cycles: CycleFacts) -> list[list[str]]:
    """What each cycle reports, after a first look at a cluster without anything."""
    state, _ = after_cycle(NotificationState(), facts(), STALL_MS)
    told = []
    for one in cycles:
        state, found = after_cycle(state, one, STALL_MS)
        told.append([said(notification) for notification in found])
    return told


def said(one: EventNotification) -> str:
    return f"{one.event.value} {'-' if one.over else '+'}{one.key.rpartition('/')[2]}"


@pytest.mark.parametrize(
    ("cycles", "told"),
    [
        pytest.param([facts(1, "a")], [["finding +a"]], id="begun"),
        pytest.param([facts(1, "a"), facts(2, "a"), facts(3, "a")], [["finding +a"], [], []], id="lasts: once"),
        pytest.param([facts(1, "a"), facts(2)], [["finding +a"], ["finding -a"]], id="ended"),
        pytest.param(
            [facts(1, "a"), facts(2), facts(3, "a")], [["finding +a"], ["finding -a"], ["finding +a"]], id="again"
        ),
        pytest.param([facts(1, "a:w"), facts(2, "a:c")], [["finding +a"], ["finding +a"]], id="becomes worse"),
        pytest.param(
            [facts(1, "a:c"), facts(2, "a:w"), facts(3, "a:c")], [["finding +a"], [], []], id="milder and back: once"
        ),
    ],
)
def test_a_finding_is_reported_when_it_begins_becomes_worse_and_ends(
    cycles: list[CycleFacts], told: list[list[str]]
) -> None:
    assert lived(*cycles) == told


def test_targets_choose_a_finding_about_a_task_by_its_group() -> None:
    task = replace(finding("x"), subject=SubjectId("task", "shop/eu/0_1/p-1"), task_of="shop/eu")
    _, (told,) = after_cycle(NotificationState(looked=True), facts(1, findings={task.id: task}), STALL_MS)
    assert told.about == SubjectId("group", "shop/eu")


def test_what_is_there_at_the_first_look_is_marked_as_early() -> None:
    _, told = after_cycle(NotificationState(), facts(0, "a b:c"), STALL_MS)
    assert [(said(one), one.early) for one in told] == [("finding +a", True), ("finding +b", True)]


def test_a_restart_repeats_no_finding_that_the_run_before_knew() -> None:
    state, told = after_cycle(NotificationState(), facts(0, "a b", remembered=findings("a gone").keys()), STALL_MS)
    assert [said(one) for one in told] == ["finding +b", "finding -gone"]
    state, told = after_cycle(state, facts(1, "a b"), STALL_MS)
    assert told == ()
    assert [said(one) for one in after_cycle(state, facts(2, "b"), STALL_MS)[1]] == ["finding -a"]


def test_a_finding_of_the_run_before_ends_at_the_first_look_without_a_gap() -> None:
    before = findings("a").keys()
    state, told = after_cycle(NotificationState(), facts(0, remembered=before, whole=False), STALL_MS)
    assert told == ()
    state, told = after_cycle(state, facts(1, whole=False), STALL_MS)
    assert told == ()
    state, told = after_cycle(state, facts(2), STALL_MS)
    assert [(said(one), one.severity, one.early) for one in told] == [("finding -a", None, True)]
    assert after_cycle(state, facts(3), STALL_MS)[1] == ()


BOTH = {1: ("a", True), 2: ("a", True), 3: ("b", True)}


@pytest.mark.parametrize(
    ("brokers", "told"),
    [
        pytest.param([{**BOTH, 3: ("b", False)}], [["rack +b"]], id="its only broker is absent"),
        pytest.param([{**BOTH, 1: ("a", False)}], [[]], id="one of two"),
        pytest.param(
            [{**BOTH, 1: ("a", False)}, {**BOTH, 1: ("a", False), 2: ("a", False)}, BOTH],
            [[], ["rack +a"], ["rack -a"]],
            id="one after the other, and back",
        ),
        pytest.param([{1: ("a", True), 2: ("a", True)}], [["rack +b"]], id="no longer listed"),
        pytest.param([{**BOTH, 3: ("c", True)}], [[]], id="renamed: not lost"),
        pytest.param(
            [{**BOTH, 3: ("b", False)}, {**BOTH, 3: ("c", True)}], [["rack +b"], ["rack -b"]], id="back in another"
        ),
        pytest.param([None, {**BOTH, 3: ("b", False)}, None], [[], ["rack +b"], []], id="unknown changes nothing"),
    ],
)
def test_a_rack_is_lost_with_its_last_broker_and_back_with_its_first(
    brokers: list[Mapping[int, tuple[str, bool]] | None], told: list[list[str]]
) -> None:
    assert lived(facts(1, brokers=BOTH), *(facts(2 + n, brokers=one) for n, one in enumerate(brokers)))[1:] == told


def test_a_rack_that_was_lost_before_the_start_is_reported_unless_the_run_before_knew_it() -> None:
    lost = facts(brokers={**BOTH, 3: ("b", False)})
    assert [said(one) for one in after_cycle(NotificationState(), lost, STALL_MS)[1]] == ["rack +b"]
    state, told = after_cycle(NotificationState(), replace(lost, absent_before=[3]), STALL_MS)
    assert told == ()
    assert [said(one) for one in after_cycle(state, facts(1, brokers=BOTH), STALL_MS)[1]] == ["rack -b"]


OPEN, DONE = PlanEntry(None, ""), PlanEntry(PlanState.DONE, "3 partitions moved as planned")
FAILED = PlanEntry(PlanState.FAILED, "a broker was lost")


@pytest.mark.parametrize(
    ("plans", "told"),
    [
        pytest.param([{"p": OPEN}, {"p": DONE}, {"p": DONE}], [[], ["plan-done +p"], []], id="done"),
        pytest.param([{"p": OPEN}, {"p": FAILED}], [[], ["plan-failed +p"]], id="failed"),
        pytest.param([{"p": FAILED}], [[]], id="ended before this agent led: the former leader reported it"),
        pytest.param([{}, {"p": FAILED}], [[], ["plan-failed +p"]], id="begun and ended between two looks"),
        pytest.param([{"p": OPEN}, {}], [[], []], id="dropped by the journal"),
    ],
)
def test_the_end_of_a_plan_is_reported_once(plans: list[Mapping[str, PlanEntry]], told: list[list[str]]) -> None:
    leading = [facts(number, leads=True, plans=one) for number, one in enumerate(plans, 1)]
    assert lived(facts(0, leads=True), *leading)[1:] == told


@pytest.mark.parametrize("end", [PlanState.FAILED, PlanState.CANCELLED, PlanState.ROLLED_BACK])
def test_a_plan_that_did_not_do_what_it_should_is_no_done_one(end: PlanState) -> None:
    told = lived(facts(1, leads=True, plans={"p": OPEN}), facts(2, leads=True, plans={"p": PlanEntry(end, "why")}))
    assert told[1] == ["plan-failed +p"]


def test_the_plans_of_the_journal_are_read_without_their_partitions() -> None:
    journal = {
        "plan/p-1": Entry("plan/p-1", "rolled back", {"sentence": "an operator asked for it"}, 5, 1, 1),
        "plan/p-2": Entry("plan/p-2", "open", {}, 5, 1, 2),
        "targets/p-1/0": Entry("targets/p-1/0", "targets", {}, 5, 1, 3),
    }
    assert plans_in(journal) == {"p-1": PlanEntry(PlanState.ROLLED_BACK, "an operator asked for it"), "p-2": OPEN}


@pytest.mark.parametrize("end", sorted(ENDED))
def test_a_plan_is_read_as_the_executor_writes_it(end: PlanState) -> None:
    plan = ReassignmentPlan("p-1", (), sentence="a broker was lost")
    for state, expected in ((PlanState.OPEN, None), (end, end)):
        [write, *_] = change_writes(plan._replace(state=state))
        assert write.value is not None
        journal = {write.key: Entry(write.key, write.kind, write.value, 5, 1, 1)}
        assert plans_in(journal) == {"p-1": PlanEntry(expected, "a broker was lost")}


def test_a_part_is_lost_from_sight_after_the_stall_time_and_seen_again_at_once() -> None:
    missing = {"groups": "no answer in time"}
    looks = [facts(number, missing=missing) for number in range(1, 15)]
    told = lived(*looks, facts(15))
    assert [number for number, one in enumerate(told, 1) if one] == [13, 15]
    assert told[12] == ["sight +groups"]
    assert told[14] == ["sight -groups"]


def test_a_part_that_fails_now_and_then_is_not_lost() -> None:
    looks = [facts(n, missing={"groups": "no answer in time"} if n % 5 else {}) for n in range(1, 60)]
    assert not any(lived(*looks))


def test_silence_is_reported_once_and_ended_by_the_next_cycle() -> None:
    state, _ = after_cycle(NotificationState(), facts(), STALL_MS)
    silence = {"blind_after_ms": STALL_MS, "why": "no broker answered", "at_ms": 7}
    state, told = after_silence(state, silent_ms=STALL_MS - 1, **silence)
    assert told == ()
    state, told = after_silence(state, silent_ms=STALL_MS, **silence)
    assert [one.sentence for one in told] == ["the agent has not observed the cluster for 2 min: no broker answered"]
    assert after_silence(state, silent_ms=STALL_MS * 9, **silence)[1] == ()
    assert [said(one) for one in after_cycle(state, facts(20), STALL_MS)[1]] == ["sight -the cluster"]


def test_leadership_is_reported_when_it_is_taken_and_lost() -> None:
    told = lived(facts(1, leads=False), facts(2, leads=True), facts(3, leads=True), facts(4, leads=False))
    assert [len(one) for one in told] == [0, 1, 0, 1]


def test_a_standby_agent_reports_nothing_of_the_cluster() -> None:
    standby = {"leads": False, "reports": False}
    assert lived(facts(1, "a", **standby), facts(2, "", **standby), facts(3, "b", **standby)) == [[], [], []]


def test_an_agent_that_takes_over_reports_what_began_shortly_before() -> None:
    standby = {"leads": False, "reports": False}
    last = HANDOVER_MS // POLL_MS
    quiet = [facts(n, "old new" if n == last else "old", **standby) for n in range(1, last + 1)]
    told = lived(*quiet, facts(last + 1, "old new", leads=True))
    assert told[-1] == ["finding +new", "leadership +"]
    assert not any(told[:-1])


def test_a_standby_agent_that_loses_sight_says_so_itself() -> None:
    standby = {"leads": False, "reports": False, "missing": {"groups": "no answer in time"}}
    assert ["sight +groups"] in lived(*(facts(n, "a", **standby) for n in range(1, 15)))


ARBITRARY = st.lists(
    st.tuples(
        st.sets(st.sampled_from(["a:c", "b:w", "c:i", "d:w"])),
        st.dictionaries(st.integers(1, 4), st.tuples(st.sampled_from("xy"), st.booleans())) | st.none(),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


@given(ARBITRARY, st.sets(st.sampled_from(["a", "b", "z"])))
def test_nothing_is_reported_twice_without_its_end_between(
    cycles: list[tuple[set[str], dict[int, tuple[str, bool]] | None, bool, bool]], remembered: set[str]
) -> None:
    before = findings(" ".join(remembered)).keys()
    state = NotificationState()
    begun = Counter((NotificationEvent.FINDING, name) for name in before)  # by the run before
    for number, (words, brokers, whole, missing) in enumerate(cycles):
        one = facts(
            number, " ".join(sorted(words)), brokers=brokers, whole=whole, remembered=before,
            missing={"groups": "no answer in time"} if missing else {},
        )  # fmt: skip
        state, told = after_cycle(state, one, 3 * POLL_MS)
        for notification in told:
            key = (notification.event, notification.key)
            begun[key] += -1 if notification.over else 1
            assert 0 <= begun[key] <= 1
        reported = {name for (event, name), times in begun.items() if event is NotificationEvent.FINDING and times}
        assert one.findings.keys() <= reported  # nothing is lost
        assert reported == one.findings.keys() | state.carried  # and each end is reported


def test_the_facts_of_a_real_cycle_are_its_findings_racks_and_proposals_that_wait() -> None:
    limits = Limits(mode=AgentMode.EXECUTE)
    cycle = run_cycle(CycleStages(limits), lambda: WORLD, WORLD, Memory(), number=1, name="l-1", planning=True)
    held = tuple(Hold(one.id, HoldReason.NEEDS_APPROVAL, "it is not approved") for one in cycle.proposals)
    cycle = replace(cycle, verdicts=held, acting=ExecuteState(leads=True))
    read = facts_of(cycle, plans={}, planning=cycle)
    assert read.findings.keys() == {one.id for one in cycle.detection.findings}
    assert {rack for rack, _ in (read.brokers or {}).values()} == {one.rack.name for one in cycle.snapshot.brokers}
    assert len(read.waiting or {}) == len(cycle.proposals) > 0
    assert (read.leads, read.reports, read.whole, read.plans) == (True, True, True, {})
    _, told = after_cycle(NotificationState(), read, STALL_MS)
    counts = Counter(one.event for one in told)
    assert counts[NotificationEvent.PROPOSAL] == len(cycle.proposals)
    assert counts[NotificationEvent.FINDING] == len(cycle.detection.findings)


@pytest.mark.parametrize(
    ("mode", "acting", "reports"),
    [
        (AgentMode.PROPOSE, None, True),
        (AgentMode.OBSERVE, None, True),
        (AgentMode.EXECUTE, ExecuteState(leads=True), True),
        (AgentMode.EXECUTE, ExecuteState(leads=False), False),
        (AgentMode.EXECUTE, ExecuteState(leads=False, troubles={ExecuteFault.LEAD: "no journal"}), True),
        (AgentMode.EXECUTE, None, False),
    ],
)
def test_who_reports_in_which_mode(mode: AgentMode, acting: ExecuteState | None, reports: bool) -> None:
    cycle = run_cycle(
        CycleStages(Limits(mode=mode)), lambda: WORLD, WORLD, Memory(), number=1, name="l-1", planning=False
    )
    assert facts_of(replace(cycle, acting=acting), plans=None, planning=None).reports is reports


def test_a_finding_that_a_gap_hides_has_not_ended() -> None:
    first = run_cycle(CycleStages(Limits()), lambda: WORLD, WORLD, Memory(), number=1, name="l-1", planning=False)
    gaps = (Gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, "", "no answer in 5 s"),)
    blind = replace(WORLD, groups=(), gaps=gaps)
    second = run_cycle(
        CycleStages(Limits()), lambda: blind, blind, first.after, number=2, name="l-2", planning=False,
        known=last_known(None, first),
    )  # fmt: skip
    state, _ = after_cycle(NotificationState(), facts_of(first, plans=None, planning=None), STALL_MS)
    _, told = after_cycle(state, facts_of(second, plans=None, planning=None), STALL_MS)
    assert [said(one) for one in told if one.over] == []
