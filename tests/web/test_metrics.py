"""Metrics: named as documented, well-formed, bounded whatever the cluster holds, and silent about what is unknown."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

from agent.loop import CycleStages, run_cycle
from agent.record.librdkafka import RecordCounts
from agent.record.recorder import RecordingResult
from agent.simulate.evaluation import StageEvaluation
from agent.values.assessment import Assessment, DetectionResult, Locality, LocalityMeasure
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle
from agent.values.last_known import last_known
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.plan import ExecuteFault, ExecuteState, Unplanned
from agent.values.proposal import Outcome
from agent.values.rates import UNKNOWN_RATES
from agent.values.snapshot import LagSource, Range, TaskCopy, TaskRole
from agent.web import money_metrics
from agent.web.agent_view import FinishedLook, LoopMonitor, LoopState
from agent.web.metrics import METRICS, RackwiseCollector, SeriesCaps
from agent.web.page.look_documents import LookDocuments
from agent.web.page.page_documents import shared_costs
from assignors.problem import TaskId
from tests.synthetic_cluster import synthetic_cluster

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
WORLD = synthetic_cluster(6, improvable=1.0)
HOSTILE = ['a"b', "new\nline", "back\\slash", "\x1b[31m", "\ud800", "\u2028", "x" * 5_000, "", "other", "other (2)"]


def a_cycle() -> Cycle:
    return run_cycle(CycleStages(Limits()), lambda: WORLD, WORLD, Memory(), number=1, name="l-1", planning=True)


CYCLE = a_cycle()
TASK, CAPS = TaskId(0, 1), SeriesCaps()


def a_copy(group: str = "app", task: TaskId = TASK, role: TaskRole = TaskRole.STANDBY, **figures: object) -> TaskCopy:
    values: dict[str, object] = {
        "group_id": group, "process_id": "p", "task": task, "role": role, "role_certain": True, "end_offset_sum": 100,
        "lag": Range(5, 10, 20), "lag_source": LagSource.MODEL, "lag_age_ms": 0, "rate_per_s": Range(1, 2, 3),
        "eta_s": Range(4, 5, 6), "caught_up": False, **figures,
    }  # fmt: skip
    return TaskCopy(**values)  # type: ignore[arg-type] # a builder's keywords


def with_copies(*copies: TaskCopy) -> LoopState:
    by_group: dict[str, tuple[TaskCopy, ...]] = {}
    for copy in copies:
        by_group[copy.group_id] = (*by_group.get(copy.group_id, ()), copy)
    return state(replace(CYCLE, snapshot=replace(CYCLE.snapshot, copies=by_group)))


def state(cycle: Cycle | None = CYCLE) -> LoopState:
    recording = RecordingResult(True, RecordCounts(5, 1, 2), 3, ())
    done = ClockReading(1_760_000_000_500, 7)
    return LoopState(
        started=ClockReading(0, 0), cycle=cycle, planned=cycle,
        known=None if cycle is None else last_known(None, cycle), recording=recording, last_success=done, last_end=done,
        succeeded=4, failed=1, skipped=2, overran=3, seconds={"detect": 1.5}, acts={("trigger", "not done"): 3},
        notifications={"sent": 2},
        acting=ExecuteState(leads=True, plans=2, waiting=0, partitions_left=7, throttles=4, records_ignored=3),
    )  # fmt: skip


def page(seen: LoopState, caps: SeriesCaps = CAPS) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RackwiseCollector(lambda: seen, "1.2.3", caps))
    return generate_latest(registry).decode()


def series(seen: LoopState, caps: SeriesCaps = CAPS) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Name and labels -> value, as a Prometheus server reads them; two equal series would be an error there."""
    samples = [one for family in text_string_to_metric_families(page(seen, caps)) for one in family.samples]
    names = Counter((one.name, tuple(sorted(one.labels.items()))) for one in samples)
    assert max(names.values()) == 1, names.most_common(1)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for one in samples}


def values(seen: LoopState, name: str, caps: SeriesCaps = CAPS) -> dict[tuple[str, ...], float]:
    return {tuple(v for _, v in labels): value for (one, labels), value in series(seen, caps).items() if one == name}


def test_the_table_in_the_docs_is_the_one_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert rows == [
        (one.name, one.kind, ", ".join(f"`{label}`" for label in one.labels), one.sentence) for one in METRICS
    ]


def test_every_documented_metric_is_exported_with_its_labels_and_kind_and_no_other() -> None:
    full = with_copies(a_copy(), a_copy(role=TaskRole.WARMUP), a_copy(lag=None))
    bytes_known = Assessment(
        group_id="g", current=(Locality(LocalityMeasure.READ_LOCAL, "bytes_per_s", 1.0, 4.0, 1.0),),
        optimal=(Locality(LocalityMeasure.READ_LOCAL, "bytes_per_s", 3.0, 4.0, 1.0),),
    )  # fmt: skip
    assert full.cycle is not None
    gaps = (Gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, "g", "late"),)
    rates = {row.id: 1.0 for topic in full.cycle.snapshot.topics.values() for row in topic.partitions}
    cycle = replace(
        full.cycle,
        snapshot=replace(full.cycle.snapshot, gaps=gaps, bytes_per_s=rates),
        detection=replace(full.cycle.detection, assessments={"g": bytes_known}),
    )
    every = page(replace(full, cycle=cycle), SeriesCaps(consumer_lag="partition"))
    families = {one.name: one for one in text_string_to_metric_families(every)}
    exported = {one.name.removesuffix("_total") for one in METRICS if one.name != "rackwise_unplanned"}
    assert set(families) - {"rackwise_unplanned"} == exported
    for described in METRICS:
        family = families.get(described.name.removesuffix("_total"))
        if family is not None:
            assert family.type == described.kind
            assert all(set(one.labels) == set(described.labels) for one in family.samples)
            assert all(one.name == described.name for one in family.samples)
            assert family.documentation == described.sentence


def test_before_the_first_look_only_the_loop_is_counted() -> None:
    assert {name for name, _ in series(LoopState(started=ClockReading(0, 0)))} == {
        "rackwise_build_info",
        "rackwise_cycles_total",
        "rackwise_looks_skipped_total",
        "rackwise_cycles_overrun_total",
    }


def test_the_figures_of_the_loop_and_the_cluster() -> None:
    seen = state()
    assert values(seen, "rackwise_build_info") == {("1.2.3",): 1}
    assert values(seen, "rackwise_cycles_total") == {("succeeded",): 4, ("failed",): 1}
    assert values(seen, "rackwise_looks_skipped_total") == {(): 2}
    assert values(seen, "rackwise_cycles_overrun_total") == {(): 3}
    assert values(seen, "rackwise_last_success_timestamp_seconds") == {(): 1_760_000_000.5}
    assert values(seen, "rackwise_records_total") == {("written",): 5, ("failed",): 1, ("dropped",): 2}
    assert values(seen, "rackwise_records_waiting") == {(): 3}
    assert values(seen, "rackwise_stage_seconds_total") == {("detect",): 1.5}
    assert sum(values(seen, "rackwise_brokers").values()) == 12
    assert values(seen, "rackwise_partitions") == {(): 60}
    assert values(seen, "rackwise_groups") == {("classic consumer",): 6}
    assert sum(values(seen, "rackwise_findings").values()) == len(CYCLE.detection.findings) > 0
    assert values(seen, "rackwise_proposals") == {("trigger",): 4}
    held_back = {key: count for key, count in values(seen, "rackwise_unplanned").items() if count}
    assert held_back == {(Unplanned.OWN_ASSIGNOR.value,): 2}, "range itself would not bring these two home"


def test_what_mode_execute_does_is_told_by_the_one_that_leads() -> None:
    seen = state()
    assert values(seen, "rackwise_leads") == {(): 1}
    assert values(seen, "rackwise_acts_total") == {("trigger", "not done"): 3}
    assert values(seen, "rackwise_plans_open") == {(): 2}
    assert values(seen, "rackwise_plan_partitions_left") == {(): 7}
    assert values(seen, "rackwise_throttles_set") == {(): 4}
    assert values(seen, "rackwise_journal_records_ignored") == {(): 3}
    held = Counter(type(one).__name__.lower() for one in CYCLE.verdicts)
    assert held == {"hold": 4}
    assert {key[-1]: n for key, n in values(seen, "rackwise_verdicts").items()} == held, "labels are sorted by name"
    assert values(seen, "rackwise_acting_fails") == dict.fromkeys([("journal",), ("lead",), ("look",), ("plans",)], 0)
    assert values(seen, "rackwise_plans_waiting") == {(): 0}
    held_up = ExecuteState(leads=True, plans=2, troubles={ExecuteFault.LOOK: "no answer"}, waiting=1)
    assert values(replace(seen, acting=held_up), "rackwise_plans_waiting") == {(): 1}
    assert values(replace(seen, acting=held_up), "rackwise_acting_fails")["look",] == 1
    unread = ExecuteState(leads=True, troubles={ExecuteFault.JOURNAL: "unreadable"})
    assert values(replace(seen, acting=unread), "rackwise_plans_waiting") == {}, "unknown is not zero"
    by_standing = series(replace(seen, acting=ExecuteState(leads=False)))
    assert {name: n for (name, _), n in by_standing.items() if name in _OF_ACTING} == {
        "rackwise_leads": 0, "rackwise_acting_fails": 0
    }  # fmt: skip
    assert not {name for name, _ in series(replace(seen, acting=None))} & _OF_ACTING, "a dry run tells none of it"


_OF_ACTING = {
    "rackwise_leads", "rackwise_plans_open", "rackwise_plan_partitions_left", "rackwise_throttles_set",
    "rackwise_plans_waiting", "rackwise_acting_fails", "rackwise_journal_records_ignored",
}  # fmt: skip


def test_acts_are_counted_by_kind_and_outcome() -> None:
    watch, done = LoopMonitor(ClockReading(0, 0)), ClockReading(1, 1)
    acted = [Outcome(one.id, done=number == 0, sentence="") for number, one in enumerate(CYCLE.proposals)]
    for _ in range(2):
        watch.succeeded(
            replace(CYCLE, outcomes=tuple(acted)), RecordingResult(True, RecordCounts(0, 0, 0), 0, ()), done
        )
    assert watch.state.acts == {("trigger", "done"): 2, ("trigger", "not done"): 6}


def test_the_shares_of_a_group_are_of_what_is_known() -> None:
    found = Assessment(
        group_id="g",
        current=(
            Locality(LocalityMeasure.KAFKA, "partitions", 2.0, 10.0, 2.0),
            Locality(LocalityMeasure.READ_LOCAL, "partitions", 0, 4, 4),
        ),
        optimal=(Locality(LocalityMeasure.KAFKA, "partitions", 8.0, 10.0, 2.0),),
    )
    seen = state(replace(CYCLE, detection=DetectionResult(assessments={"g": found})))
    assert values(seen, "rackwise_group_cross_rack_share") == {("g", "kafka", "partitions"): 0.75}
    assert values(seen, "rackwise_group_optimal_cross_rack_share") == {("g", "kafka", "partitions"): 0.0}
    assert values(seen, "rackwise_group_unknown_rack_share") == {
        ("g", "kafka", "partitions"): 0.2,
        ("g", "read-local", "partitions"): 1.0,
    }


def test_the_lag_of_a_task_is_that_of_its_worst_copy() -> None:
    seen = with_copies(
        a_copy(lag=Range(0, 3, 9)),
        a_copy(lag=Range(0, 70, 90), rate_per_s=Range(-3, -2, -1), eta_s=None),
        a_copy(role=TaskRole.WARMUP, caught_up=True),
        a_copy(role=TaskRole.WARMUP, caught_up=None, task=TaskId("s", 0)),
        a_copy(role=TaskRole.ACTIVE, lag=None, caught_up=None, rate_per_s=None, eta_s=None),
    )
    assert values(seen, "rackwise_task_lag_records") == {
        ("app", "standby", "0_1"): 70,
        ("app", "warm-up", "0_1"): 10,
        ("app", "warm-up", "s_0"): 10,
    }
    assert values(seen, "rackwise_task_lag_trend_records_per_second")["app", "standby", "0_1"] == -2
    assert ("app", "standby", "0_1") not in values(seen, "rackwise_task_caught_up_eta_seconds")
    assert values(seen, "rackwise_task_promotable") == {("app", "0_1"): 1.0}
    assert values(seen, "rackwise_task_copies_lag_unknown") == {("app",): 1}


def test_series_are_bounded_over_a_hundred_thousand_random_names() -> None:
    draw = random.Random(1)
    names = [f"{draw.getrandbits(64):x}" for _ in range(50_000)] + HOSTILE
    one = Locality(LocalityMeasure.KAFKA, "partitions", 1.0, 2.0, 0.0)
    assessments = {name: Assessment(group_id=name, current=(one,), optimal=(one,)) for name in names}
    copies = {
        name: (a_copy(name, TaskId(name, 0)), a_copy(name, role=TaskRole.WARMUP, caught_up=True)) for name in names
    }
    cycle = replace(
        CYCLE,
        detection=replace(CYCLE.detection, assessments=assessments),
        snapshot=replace(CYCLE.snapshot, copies=copies),
    )
    seen = state(cycle)
    found = series(seen)
    assert len(found) <= 5_000
    shares = values(seen, "rackwise_group_cross_rack_share")
    assert len(shares) == 101
    assert shares["other", "kafka", "partitions"] == 0.5
    assert values(seen, "rackwise_task_series_left_out") == {(): 2 * len(names) - 1_000}
    assert max(len(value) for _, labels in found for _, value in labels) <= 300


@pytest.mark.parametrize("name", HOSTILE)
def test_a_foreign_name_never_breaks_the_page(name: str) -> None:
    one = Locality(LocalityMeasure.KAFKA, "partitions", 1.0, 2.0, 0.0)
    assessments = {each: Assessment(group_id=each, current=(one,), optimal=(one,)) for each in (name, "plain")}
    seen = with_copies(a_copy(name), a_copy(name, role=TaskRole.WARMUP, caught_up=False))
    assert seen.cycle is not None
    seen = replace(seen, cycle=replace(seen.cycle, detection=DetectionResult(assessments=assessments)))
    text = page(seen)
    assert len(values(seen, "rackwise_group_cross_rack_share")) == 2
    assert not any(ord(sign) < 32 and sign != "\n" for sign in text)


def test_series_vanish_with_their_subjects() -> None:
    assert values(with_copies(a_copy("gone")), "rackwise_task_lag_records")
    assert not values(with_copies(), "rackwise_task_lag_records")


def looked(number: int, *, after_s: float) -> LoopState:
    """The look of `CYCLE` once more, so much later."""
    taken_ms = CYCLE.snapshot.taken_ms + round(1_000 * after_s)
    return state(replace(CYCLE, number=number, snapshot=replace(CYCLE.snapshot, taken_ms=taken_ms)))


def age_s(collector: RackwiseCollector) -> float:
    """Seconds between `CYCLE` and the look that the samples are of."""
    ((_, at),) = collector.samples()["rackwise_samples_timestamp_seconds"]
    return at - CYCLE.snapshot.taken_ms / 1_000


class TestSamplesOfALook:
    """A scrape waits for those of few groups only."""

    def test_with_few_groups_every_answer_is_of_the_last_look(self) -> None:
        seen = looked(1, after_s=0)
        collector = RackwiseCollector(lambda: seen, "1", CAPS)
        assert (age_s(collector), collector.is_behind) == (0, False)
        seen = looked(2, after_s=10)
        assert (age_s(collector), collector.is_behind) == (10, False)

    def test_with_many_groups_those_of_the_last_look_are_made_after_the_answer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(money_metrics, "MOST_AT_ONCE", len(CYCLE.snapshot.groups) - 1)
        seen = LoopState(started=ClockReading(0, 0))
        collector = RackwiseCollector(lambda: seen, "1", CAPS)
        assert "rackwise_samples_timestamp_seconds" not in collector.samples()
        assert not collector.is_behind
        seen = looked(1, after_s=0)
        assert (age_s(collector), collector.is_behind) == (0, False), "the first one waits"
        seen = looked(2, after_s=10)
        assert (age_s(collector), collector.is_behind) == (0, True)
        collector.catch_up()
        assert (age_s(collector), collector.is_behind) == (10, False)

    @pytest.mark.parametrize(("after_s", "shown_s"), [(180, 0), (180.001, 180.001)])
    def test_an_old_look_is_not_shown(self, monkeypatch: pytest.MonkeyPatch, after_s: float, shown_s: float) -> None:
        monkeypatch.setattr(money_metrics, "MOST_AT_ONCE", 0)
        seen = looked(1, after_s=0)
        collector = RackwiseCollector(lambda: seen, "1", CAPS)
        collector.samples()
        seen = looked(2, after_s=after_s)
        assert age_s(collector) == pytest.approx(shown_s, abs=1e-6)

    def test_the_figures_of_a_former_look_are_all_of_that_look(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(money_metrics, "MOST_AT_ONCE", 0)
        seen = with_copies(a_copy(lag=Range(1, 2, 3)))
        collector = RackwiseCollector(lambda: seen, "1", CAPS)
        before = collector.samples()["rackwise_task_lag_records"]
        seen = with_copies(a_copy(lag=Range(7, 8, 9)))
        assert collector.samples()["rackwise_task_lag_records"] == before == [(("app", "0_1", "standby"), 2)]
        collector.catch_up()
        assert collector.samples()["rackwise_task_lag_records"] == [(("app", "0_1", "standby"), 8)]

    def test_samples_that_could_not_be_made_are_made_for_the_next_scrape(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(money_metrics, "MOST_AT_ONCE", 0)
        seen = looked(1, after_s=0)
        collector = RackwiseCollector(lambda: seen, "1", CAPS)
        collector.samples()
        seen = looked(2, after_s=10)
        with monkeypatch.context() as broken:
            broken.setattr(money_metrics.SampledLooks, "_make_of", _fails)
            with pytest.raises(RuntimeError):
                collector.catch_up()
        assert (age_s(collector), collector.is_behind) == (0, True)
        collector.catch_up()
        assert age_s(collector) == 10

    def test_metrics_and_page_work_the_costs_of_a_look_out_once(self) -> None:
        snapshot = replace(CYCLE.snapshot)
        evaluation = StageEvaluation(
            limits=CYCLE.limits, before=CYCLE.before, snapshot=snapshot, detection=CYCLE.detection, plan=None,
            proposals=(), took_ms=1, rates=UNKNOWN_RATES, agent=None,
        )  # fmt: skip
        shown = LookDocuments(FinishedLook(1, "look-1", snapshot.taken_ms, evaluation, {}, None))
        assert shared_costs(shown) is money_metrics.look_costs(snapshot)


def _fails(*_: object) -> None:
    raise RuntimeError("no samples")
