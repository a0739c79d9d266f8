"""Kafka's sticky Streams assignors: legacy, its fallback for a round without lags, and the public one (KIP-924)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from assignors.cases.registry import AssignorCase
from assignors.cases.streams_sticky import RUNNERS
from assignors.kafka.exceptions import KafkaRefusal
from assignors.kafka.fallback_prior import fallback_prior
from assignors.kafka.legacy_sticky import legacy_sticky
from assignors.kafka.sticky_kip924 import sticky_kip924
from assignors.kafka.streams_problem import (
    RackFacts,
    RackStrategy,
    StreamsProblem,
    StreamsResult,
)
from assignors.kafka.task_assignment_utils import AssignmentError, validate_task_assignment
from assignors.problem import BadProblem, TopicPartition
from tests.assignors.kafka.golden import assert_as_kafka, golden, golden_cases
from tests.assignors.kafka.sticky_applications import (
    ALL,
    STICKY,
    Assignor,
    a_client,
    active_on,
    an_application,
    assert_valid,
    process_id,
    t,
    ts,
)


@pytest.mark.parametrize("case", golden_cases("streams.sticky_legacy", "streams.fallback_prior", "streams.sticky"))
def test_golden(case: AssignorCase) -> None:
    assert_as_kafka(case)


# --- small applications by hand ---------------------------------------------------------------------------------------


@STICKY
def test_tasks_stay_where_they_were_within_the_share(assign: Assignor) -> None:
    result = assign(an_application("0_0 0_1 0_2 0_3", a_client(1, "0_0 0_1 0_2 0_3"), a_client(2)))
    assert len(active_on(result, 1)) == len(active_on(result, 2)) == 2


def test_the_fallback_leaves_every_task_where_it_was_and_asks_for_another_rebalance() -> None:
    result = fallback_prior(an_application("0_0 0_1 0_2 0_3", a_client(1, "0_0 0_1 0_2 0_3"), a_client(2)))
    assert active_on(result, 1) == ts("0_0 0_1 0_2 0_3")
    assert result.followup_rebalance


@STICKY
def test_the_real_assignors_want_no_further_rebalance(assign: Assignor) -> None:
    assert not assign(an_application("0_0", a_client(1))).followup_rebalance


@STICKY
def test_a_lost_task_goes_to_its_standby(assign: Assignor) -> None:
    problem = an_application("0_0 0_1", a_client(1), a_client(2, "0_0", "0_1"), a_client(3, standby="0_1"))
    assert assign(problem).active[process_id(3)] == ts("0_1")


@STICKY
def test_standbys_of_one_process_are_spread_so_that_its_loss_burdens_many(assign: Assignor) -> None:
    problem = an_application("0_0 0_1 0_2 0_3", *(a_client(number) for number in range(1, 5)), num_standby_replicas=1)
    result = assign(problem)
    pairs = Counter(
        frozenset((active, standby))
        for process in result.active
        for active in result.active[process]
        for standby in result.standby[process]
    )
    assert set(pairs.values()) == {1}, "no two processes hold the same two tasks"


def test_of_equally_loaded_processes_the_legacy_assignor_prefers_more_threads_and_the_public_one_does_not() -> None:
    problem = an_application(
        "0_0 0_1 0_2 0_3 0_4 0_5 0_6", a_client(1, "0_0 0_1"), a_client(2, "0_2 0_3 0_4 0_5", capacity=2)
    )
    assert active_on(legacy_sticky(problem), 2) == ts("0_2 0_3 0_4 0_5 0_6")
    assert active_on(sticky_kip924(problem), 1) == ts("0_0 0_1 0_6")


@STICKY
def test_of_idle_processes_the_first_wins_however_many_threads_the_others_have(assign: Assignor) -> None:
    assert active_on(assign(an_application("0_0", a_client(1), a_client(2, capacity=9))), 1) == ts("0_0")


@ALL
def test_more_standbys_than_processes_are_a_warning_and_as_many_as_there_can_be(assign: Assignor) -> None:
    result = assign(an_application("0_0", a_client(1), a_client(2), num_standby_replicas=3))
    assert sum(map(len, result.standby.values())) == 1
    assert result.warnings == (
        "unable to assign 2 of 3 standby tasks for task 0_0: every process has a copy of it; add application instances",
    )


@ALL
def test_tasks_that_are_gone_and_the_owner_of_a_task_listed_twice_do_no_harm(assign: Assignor) -> None:
    problem = an_application("0_0 0_1", a_client(1, "0_0 9_9"), a_client(2, "0_0", "8_8"), num_standby_replicas=1)
    assert_valid(problem, assign(problem))


@ALL
def test_an_application_without_tasks_gives_everybody_nothing(assign: Assignor) -> None:
    assert assign(an_application("", a_client(1))).active == {process_id(1): ()}


@ALL
def test_tasks_without_a_process_are_refused_as_kafka_does(assign: Assignor) -> None:
    with pytest.raises(KafkaRefusal, match="totalCapacity") as refusal:
        assign(an_application("0_0"))
    assert refusal.value.kafka_name == "IllegalStateException"


@ALL
@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        pytest.param(an_application("0_0", a_client(1, capacity=0)), "has capacity 0", id="no threads"),
        pytest.param(an_application("0_0", a_client(1), a_client(1)), "is listed twice", id="a process twice"),
        pytest.param(an_application("0_0", a_client(1), stateful="0_1"), "stateful task 0_1", id="state of no task"),
        pytest.param(
            an_application("0_0", replace(a_client(1), assigned_active=ts("0_0"))),
            "has tasks assigned already",
            id="tasks placed before the call",
        ),
        pytest.param(
            an_application("0_0", a_client(1), rack_aware_assignment_traffic_cost=2**31),
            "traffic_cost is 2147483648",
            id="a cost beyond 32 bit",
        ),
        pytest.param(
            an_application("0_0", a_client(1), rack_aware_assignment_strategy="min-traffic"),
            "strategy is 'min-traffic'",
            id="a strategy misspelt",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named(assign: Assignor, problem: StreamsProblem, sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        assign(problem)


def test_a_malformed_switch_is_refused_with_the_field() -> None:
    case = dict(golden("streams.sticky")[0].input) | {"must_preserve_active": "yes"}
    with pytest.raises(BadProblem, match="must_preserve_active is 'yes'"):
        RUNNERS["streams.sticky"](case, "4.1.1")


# --- racks ------------------------------------------------------------------------------------------------------------


def rack_facts(
    processes: dict[int, tuple[str | None, ...]], sources: dict[str, str], changelogs: dict[str, str] | None = None
) -> RackFacts:
    """Process -> racks of its consumers; task -> rack of its only source, and of its only changelog."""
    changelogs = changelogs or {}
    return RackFacts(
        consumer_racks={
            process_id(number): {f"consumer-{index}": rack for index, rack in enumerate(racks)}
            for number, racks in processes.items()
        },
        cluster={f"in{task}": ((rack,),) for task, rack in sources.items()},
        described={f"log{task}": ((rack,),) for task, rack in changelogs.items()},
        task_partitions={t(task): (TopicPartition(f"in{task}", 0),) for task in sources},
        changelog_partitions={t(task): (TopicPartition(f"log{task}", 0),) for task in changelogs},
    )


def crossed(strategy: RackStrategy = "min_traffic", **configs: int | None) -> StreamsProblem:
    """Two processes in two racks, each with a task whose source is in the other's."""
    return an_application(
        "0_0 0_1",
        a_client(1, "0_0"),
        a_client(2, "0_1"),
        stateful="",
        racks=rack_facts({1: ("a",), 2: ("b",)}, {"0_0": "b", "0_1": "a"}),
        rack_aware_assignment_strategy=strategy,
        rack_aware_assignment_traffic_cost=configs.get("traffic_cost"),
        rack_aware_assignment_non_overlap_cost=configs.get("non_overlap_cost"),
    )


def test_kip_924_looks_at_racks_only_with_both_costs_configured() -> None:
    without = sticky_kip924(crossed(traffic_cost=1))
    assert active_on(without, 1) == ts("0_0")
    assert without.warnings == (
        "rack.aware.assignment.non_overlap_cost is not set; this assignor needs both costs to use racks",
    )
    assert without.flow == "not run"
    configured = sticky_kip924(crossed(traffic_cost=1, non_overlap_cost=10))
    assert active_on(configured, 1) == ts("0_1"), "stateless tasks move for nothing"
    assert configured.flow == "as Kafka"


def test_the_legacy_assignor_has_costs_of_its_own() -> None:
    assert active_on(legacy_sticky(crossed()), 1) == ts("0_1")
    stateful = replace(
        crossed(),
        stateful=ts("0_0 0_1"),
        racks=rack_facts({1: ("a",), 2: ("b",)}, {"0_0": "b", "0_1": "a"}, {"0_0": "a", "0_1": "b"}),
    )
    assert active_on(legacy_sticky(stateful), 1) == ts("0_0"), "state is dearer than traffic"
    cheap = replace(stateful, configs=replace(stateful.configs, rack_aware_assignment_non_overlap_cost=0))
    assert active_on(legacy_sticky(cheap), 1) == ts("0_1")


def test_in_kip_924_an_active_task_costs_for_its_changelog_too() -> None:
    problem = replace(
        crossed(traffic_cost=10, non_overlap_cost=1),
        stateful=ts("0_0 0_1"),
        racks=rack_facts({1: ("a",), 2: ("b",)}, {"0_0": "b", "0_1": "a"}, {"0_0": "a", "0_1": "b"}),
    )
    assert active_on(legacy_sticky(problem), 1) == ts("0_1"), "by sources alone a swap pays"
    assert active_on(sticky_kip924(problem), 1) == ts("0_0"), "the changelogs weigh against it"


def test_the_fallback_leaves_racks_alone() -> None:
    assert active_on(fallback_prior(crossed(traffic_cost=10, non_overlap_cost=0)), 1) == ts("0_0")


@pytest.mark.parametrize(
    ("racks", "enabled"),
    [
        pytest.param({1: ("a", "b"), 2: ("b",)}, False, id="consumers of a process in two racks"),
        pytest.param({1: ("a",), 2: ("b", None)}, False, id="a later consumer without a rack"),
    ],
)
def test_in_kip_924_the_first_consumer_speaks_for_the_process(
    racks: dict[int, tuple[str | None, ...]], enabled: bool
) -> None:
    problem = replace(crossed(traffic_cost=1, non_overlap_cost=0), racks=rack_facts(racks, {"0_0": "b", "0_1": "a"}))
    assert active_on(sticky_kip924(problem), 1) == ts("0_1")
    legacy = legacy_sticky(problem)
    assert (legacy.flow != "not run") is enabled
    assert len(legacy.warnings) == 1


@pytest.mark.parametrize(
    ("racks", "sentence"),
    [
        pytest.param(rack_facts({1: ("a",), 2: (None,)}, {"0_0": "b", "0_1": "a"}), "has no rack", id="a process"),
        pytest.param(
            replace(rack_facts({1: ("a",), 2: ("b",)}, {"0_0": "b", "0_1": "a"}), cluster={"in0_0": (("b",),)}),
            "racks of partition in0_1-0 of task 0_1",
            id="a partition that is not in the metadata",
        ),
        pytest.param(
            replace(
                rack_facts({1: ("a",), 2: ("b",)}, {"0_0": "b", "0_1": "a"}),
                cluster={"in0_0": ((),), "in0_1": (("a",),)},
            ),
            "racks of partition in0_0-0 of task 0_0",
            id="a partition without replicas whose topic cannot be described",
        ),
    ],
)
def test_where_racks_are_not_known_kip_924_says_so_and_leaves_tasks_where_they_are(
    racks: RackFacts, sentence: str
) -> None:
    problem = replace(crossed(traffic_cost=1, non_overlap_cost=0), racks=racks)
    result = sticky_kip924(problem)
    assert active_on(result, 1) == ts("0_0")
    assert sentence in result.warnings[0]


def standbys_in_need_of_a_swap(strategy: RackStrategy, **tags: str) -> StreamsProblem:
    """Four processes; the standbys of 0_0 and 0_1 lie crosswise to the racks of their changelogs."""
    sources = {"0_0": "c", "0_1": "c"}
    return an_application(
        "0_0 0_1",
        a_client(1, "0_0", **tags),
        a_client(2, "0_1", **tags),
        a_client(3, standby="0_0", **tags),
        a_client(4, standby="0_1", **({"zone": "z2"} if tags else {})),
        racks=rack_facts({1: ("c",), 2: ("c",), 3: ("a",), 4: ("b",)}, sources, {"0_0": "b", "0_1": "a"}),
        num_standby_replicas=1,
        rack_aware_assignment_strategy=strategy,
        rack_aware_assignment_traffic_cost=10,
        rack_aware_assignment_non_overlap_cost=1,
        rack_aware_assignment_tags=tuple(tags),
    )


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
@STICKY
def test_standbys_are_swapped_to_where_their_changelogs_are(assign: Assignor, strategy: RackStrategy) -> None:
    result = assign(standbys_in_need_of_a_swap(strategy))
    assert result.standby[process_id(3)] == ts("0_1")
    assert result.standby[process_id(4)] == ts("0_0")


def test_in_kip_924_tags_do_not_keep_a_standby_from_moving() -> None:
    # 0_1 is active in zone z1 and has its standby in z2, on process 4. Moved to process 3 both copies are in z1, which
    # the rule is there to forbid; but it compares process 4 with itself.
    result = sticky_kip924(standbys_in_need_of_a_swap("min_traffic", zone="z1"))
    assert result.standby[process_id(3)] == ts("0_1")


def test_in_kip_924_changelogs_that_cannot_be_described_switch_off_the_whole_step() -> None:
    problem = standbys_in_need_of_a_swap("min_traffic")
    assert problem.racks is not None
    result = sticky_kip924(replace(problem, racks=replace(problem.racks, described={})))
    assert result.standby[process_id(3)] == ts("0_0")
    assert "racks of partition log0_0-0" in result.warnings[0]


# --- the last check ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("active", "standby", "error"),
    [
        pytest.param({1: "0_0", 2: "0_1"}, {2: "0_0"}, AssignmentError.NONE, id="nothing wrong"),
        pytest.param({1: "0_0", 2: ""}, {}, AssignmentError.NONE, id="a task that no process runs is not looked for"),
        pytest.param({1: "0_0 7_7", 2: "0_1"}, {}, AssignmentError.UNKNOWN_TASK_ID, id="an unknown task"),
        pytest.param(
            {1: "0_0", 2: "0_0"}, {}, AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES, id="active on two processes"
        ),
        pytest.param(
            {1: "0_0", 2: "0_1"}, {1: "0_1"}, AssignmentError.INVALID_STANDBY_TASK, id="standby without state"
        ),
        pytest.param({1: "0_0 0_1"}, {}, AssignmentError.MISSING_PROCESS_ID, id="a process without an entry"),
        pytest.param({1: "0_0", 2: "0_1", 3: ""}, {}, AssignmentError.UNKNOWN_PROCESS_ID, id="an unknown process"),
        pytest.param({1: "7_7", 2: "7_7"}, {}, AssignmentError.UNKNOWN_TASK_ID, id="the first error counts"),
    ],
)
def test_kip_924_names_the_first_error_of_an_assignment(
    active: dict[int, str], standby: dict[int, str], error: AssignmentError
) -> None:
    problem = an_application("0_0 0_1", a_client(1), a_client(2), stateful="0_0")
    result = StreamsResult(
        active={process_id(number): ts(tasks) for number, tasks in active.items()},
        standby={process_id(number): ts(tasks) for number, tasks in standby.items()},
    )
    assert validate_task_assignment(problem, result) == error
