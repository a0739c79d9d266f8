"""Living through history: the same bytes as the live agent, no look ahead, and what acts would have changed."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from agent.propose.codec import proposal_to_bytes
from agent.simulate.evaluation import replay_look
from agent.telemetry.looks import CycleInputs
from agent.values.limits import Limits, ScopeLimits, TriggerLimits
from agent.values.memo import Memo
from agent.values.typed_json import to_json
from agent.values.weights import NOT_WEIGHED, FreshWeights, RestoreWeight
from assignors.problem import TopicPartition
from pipeline.backtest.costs import CostModel
from pipeline.backtest.effects import EffectEnd
from pipeline.backtest.look import HistoryLook, UnusableLook, whole_look
from pipeline.backtest.replay import StrategyResult, replay
from pipeline.backtest.slices import LookRebuilder, LookSlicer
from pipeline.backtest.strategies import chosen
from pipeline.backtest.strategy_replay import StrategyReplay, without_cluster_bounds
from tests.builders import Answers, reader
from tests.pipeline.histories import FREE, recorded, shop, strategy_limits, with_tasks

EVERY = "as-recorded,no-action,execute,eager-triggers,patient,by-bytes,min_traffic,balance_subtopology"


def whole(looks: list[CycleInputs]) -> list[HistoryLook]:
    decode, model = Memo(), Memo()
    return [whole_look(look, decode, model) for look in looks]


def by_name(looks: list[HistoryLook | UnusableLook], names: str) -> dict[str, StrategyResult]:
    return {result.strategy: result for result in replay(looks, chosen(names))}


def parts(looks: list[HistoryLook], buckets: int = 1) -> list[list[HistoryLook]]:
    """The same looks, cut by group and put together again, by bucket."""
    cutter = LookSlicer(buckets)
    rows = [list(cutter.rows(look)) for look in looks]
    there = sorted({row.bucket for of in rows for row in of})
    rebuilt = {bucket: LookRebuilder("test-cluster") for bucket in there}
    return [[rebuilt[bucket].look([row for row in of if row.bucket == bucket]) for of in rows] for bucket in there]


# --- as recorded ------------------------------------------------------------------------------------------------


def test_as_recorded_settings_give_what_the_live_agent_proposed_byte_for_byte() -> None:
    looks = recorded(lambda minute: with_tasks(shop(swapped=minute % 3 != 2)), 6)
    said = by_name(whole(looks), "as-recorded")["as-recorded"].published
    live = [(look.look, proposal_to_bytes(one)) for look in looks for one in replay_look(look).proposals]
    assert [(one.look, one.document) for one in said] == live
    assert len(live) > 6


def test_nothing_that_comes_later_changes_what_is_made_of_a_look() -> None:
    """Two histories that part at minute 4: until then every strategy sees, does and remembers the same."""
    quiet, loud = recorded(lambda _: shop(), 8), recorded(planted, 8)
    assert [look.observation for look in quiet[:4]] == [look.observation for look in loud[:4]]
    assert quiet[4].observation != loud[4].observation
    acts = 0
    for strategy in chosen(EVERY):
        lives = StrategyReplay(strategy), StrategyReplay(strategy)
        for looks in zip(whole(quiet)[:4], whole(loud)[:4], strict=True):
            one, other = (life.replay_look(look) for life, look in zip(lives, looks, strict=True))
            assert list(map(proposal_to_bytes, one.proposals)) == list(map(proposal_to_bytes, other.proposals))
            assert len(one.acts) == len(other.acts)
            assert len(one.shown.lasting) == len(other.shown.lasting)
            acts += len(one.acts)
    assert acts > 4


def test_each_group_can_be_put_together_alone_though_others_read_the_same_topics() -> None:
    def two_readers(_: int) -> Answers:
        answers = shop()
        return answers.group("too", reader("t1", "a", "orders-0"), reader("t2", "b", "orders-1"))

    looks = whole(recorded(two_readers, 3))
    cutter = LookSlicer(1)
    rows = [list(cutter.rows(look)) for look in looks]
    for name in ("readers", "too"):
        alone = LookRebuilder("test-cluster")
        for look, of in zip(looks, rows, strict=True):
            found = alone.look([row for row in of if row.subject in ("", name)]).snapshot
            assert found.groups == {name: look.snapshot.groups[name]}
            assert found.topics == {"orders": look.snapshot.topics["orders"]}


def planted(minute: int) -> Answers:
    """From minute 4 on everything is another: a broker's rack, the group's members, the replicas."""
    if minute < 4:
        return shop()
    answers = shop(swapped=False, generation=9)
    answers.broker(3, "b")
    return answers.topic("orders", (4, 2), (2, 4), (1, 3), (3, 1))


def test_what_is_known_of_who_serves_a_read_is_asked_again_when_a_broker_changes_its_rack() -> None:
    def scene(minute: int) -> Answers:
        home = shop(swapped=False)
        return home if minute < 3 else home.broker(1, "b").broker(3, "b")

    looks = whole(recorded(scene, 6))
    kept, crossing = CostModel(), []
    for look in looks:
        told = kept.by_group(look, look.snapshot, look.snapshot.groups)
        assert told == CostModel().by_group(look, look.snapshot, look.snapshot.groups)
        crossing.append(told["readers"].partitions)
        kept.turn()
    assert crossing == [0, 0, 0, 2, 2, 2], "brokers 1 and 3 hold partitions 0 and 1, and their reader is in rack a"


def test_a_strategy_that_does_nothing_plans_nothing_and_scores_what_it_saw() -> None:
    looks = whole(recorded(lambda _: shop(), 4))
    idle, acting = StrategyReplay(chosen("no-action")[0]), StrategyReplay(chosen("execute")[0])
    first = [life.replay_look(looks[0]) for life in (idle, acting)]
    assert first[0].detection == first[1].detection
    assert (first[0].proposals, first[0].acts) == ((), ())
    assert len(first[1].proposals) > 0
    scores = by_name(looks, "no-action")["no-action"].scores
    assert (scores.looks, scores.violation_minutes > 0, scores.triggers) == (4, True, 0)


def test_results_of_a_stretch_do_not_depend_on_looks_that_follow_it() -> None:
    looks = recorded(planted, 8)
    short = by_name(whole(looks[:4]), EVERY)
    acts = {
        name: [act for act in result.acts if act.at_ms < looks[3].observation.taken_ms]
        for name, result in by_name(whole(looks), EVERY).items()
    }
    for name, result in short.items():
        until = [act for act in result.acts if act.at_ms < looks[3].observation.taken_ms]
        assert [proposal_to_bytes(act.proposal) for act in until] == [
            proposal_to_bytes(act.proposal) for act in acts[name]
        ]
    assert sum(map(len, acts.values())) > 0


# --- what acts change -------------------------------------------------------------------------------------------


def test_a_rebalance_brings_reads_home_until_the_group_rebalances_by_itself() -> None:
    looks = recorded(lambda minute: shop(swapped=minute < 6, generation=4 if minute < 6 else 5), 10)
    found = by_name(whole(looks), "no-action,execute")
    (act,) = [act for act in found["execute"].acts if act.proposal.subject.kind == "group"]
    assert (act.ended, act.false) == (EffectEnd.REBALANCED, False)
    assert act.ended_ms - act.at_ms == 6 * 60_000
    assert act.saved_partition_s == 2 * 5 * 60, "two partitions come home, from the look after the act to minute 6"
    nothing, done = found["no-action"].scores, found["execute"].scores
    assert nothing.read_partition_s - done.read_partition_s == act.saved_partition_s
    assert nothing.read_partition_s == 2 * 6 * 60
    assert (done.triggers, done.false_triggers, nothing.triggers) == (1, 0, 0)
    assert (done.balanced_s, nothing.balanced_s) == ((60.0,), (360.0,))


def test_bytes_and_money_follow_reads_where_rates_are_known() -> None:
    looks = recorded(lambda _: shop(), 10)
    scores = by_name(whole(looks), "no-action")["no-action"].scores
    dark_minutes = scores.dark_group_s / 60
    assert 0 < dark_minutes < 4, "rates are learned within the first looks"
    assert scores.read_bytes == pytest.approx(2 * 1_000_000 * (9 - dark_minutes) * 60, rel=1e-6)
    assert scores.read_usd == pytest.approx(scores.read_bytes / 1e9 * FREE.price.usd_per_gb)


def test_a_rebalance_that_is_overtaken_at_once_was_for_nothing() -> None:
    looks = recorded(lambda minute: shop(generation=4 if minute < 1 else 5, swapped=minute < 1), 4)
    (act,) = [act for act in by_name(whole(looks), "execute")["execute"].acts if act.proposal.subject.kind == "group"]
    assert (act.ended, act.false, act.saved_partition_s) == (EffectEnd.REBALANCED, True, 0.0)


def test_replicas_that_share_a_rack_are_mended_at_the_price_of_their_copies() -> None:
    looks = recorded(lambda _: shop(swapped=False), 4)
    found = by_name(whole(looks), "no-action,execute")
    nothing, done = found["no-action"].scores, found["execute"].scores
    assert nothing.violation_minutes == 3, "one topic shares racks for three minutes"
    assert done.violation_minutes == 1, "it is mended after the first look"
    assert done.placements == 1
    assert done.copied_bytes == 4 * 60_000_000
    assert done.copied_usd == pytest.approx(done.copied_bytes / 1e9 * FREE.price.usd_per_gb)


def test_a_strategy_that_does_nothing_costs_what_history_cost() -> None:
    looks = recorded(lambda minute: with_tasks(shop(swapped=minute < 3)), 6)
    found = by_name(whole(looks), "as-recorded,no-action")
    recorded_scores, nothing = found["as-recorded"].scores, found["no-action"].scores
    assert nothing == recorded_scores
    assert not found["no-action"].acts


def test_tasks_move_where_the_application_may_look_at_racks() -> None:
    limits = replace(strategy_limits(), scope=ScopeLimits(exclude_topics=("*",)))
    found = by_name(whole(recorded(lambda _: with_tasks(shop(swapped=False)), 4, limits)), "execute,min_traffic")
    assert not found["execute"].acts
    (act,) = found["min_traffic"].acts
    assert (str(act.proposal.subject), act.ended, act.false) == ("group/app", EffectEnd.STANDS, False)
    assert act.saved_partition_s == 2 * 2 * 60


# --- gaps and looks that cannot be used -------------------------------------------------------------------------


def test_a_gap_is_scored_for_nobody() -> None:
    looks = recorded(lambda _: shop(), 40)
    looks = [look for number, look in enumerate(looks) if not 10 <= number < 30]
    scores = by_name(whole(looks), "no-action")["no-action"].scores
    assert (scores.seconds, scores.unseen_s) == (18 * 60, 21 * 60)
    assert scores.read_partition_s == 2 * scores.seconds


def test_a_look_that_cannot_be_used_is_left_out_and_told() -> None:
    looks: list[HistoryLook | UnusableLook] = list(whole(recorded(lambda _: shop(), 3)))
    looks.insert(1, UnusableLook(name="x-1", taken_ms=0, why="look x-1 lacks 2 of its 9 events"))
    result = by_name(looks, "no-action")["no-action"]
    assert [one.why for one in result.unusable] == ["look x-1 lacks 2 of its 9 events"]
    assert result.scores.looks == 3


def test_no_look_at_all_gives_empty_scores() -> None:
    (result,) = replay([], chosen("execute"))
    assert result.scores.looks == 0


# --- groups apart -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("buckets", [1, 3])
def test_groups_apart_hold_what_the_whole_look_holds(buckets: int) -> None:
    looks = whole(recorded(lambda minute: with_tasks(shop(swapped=minute < 2)), 4))
    for whole_one, *cut in zip(looks, *parts(looks, buckets), strict=True):
        groups = {name: group for one in cut for name, group in one.snapshot.groups.items()}
        assert groups == dict(whole_one.snapshot.groups)
        for one in cut:
            assert one.snapshot.brokers == whole_one.snapshot.brokers
            assert all(one.snapshot.topics[name] == whole_one.snapshot.topics[name] for name in one.snapshot.topics)
            assert one.limits == whole_one.limits
            assert one.memory.brokers == whole_one.memory.brokers


def test_budgets_over_all_groups_do_not_bind_a_part_of_them_and_all_other_limits_do() -> None:
    before, after = to_json(Limits, Limits()), to_json(Limits, without_cluster_bounds(Limits()))
    lifted = {
        f"{section}.{name}"
        for section, of in before.items()
        if isinstance(of, dict)
        for name, value in of.items()
        if value != after[section][name]
    }
    budgets = {f"trigger.{one.name}" for one in fields(TriggerLimits) if one.name.startswith("budget_per_")}
    assert lifted == {"proposals.max_per_cycle", *budgets} - {"trigger.budget_per_group_per_hour"}
    assert len(lifted) == 4


def test_groups_apart_have_the_weights_of_the_pipeline() -> None:
    restores = (RestoreWeight(0, 1.0, 2.0, 3.0, 4, None),)
    weighed = FreshWeights(
        topics={"clicks": (1.0, None), "orders": (5.0, 6.0, 7.0, 8.0)},
        groups={"readers": {TopicPartition("orders", 1): 60.0}},
        restores={"app": restores},
        bytes_per_s={
            TopicPartition("clicks", 0): 1.0,
            **{TopicPartition("orders", number): 5.0 + number for number in range(4)},
        },
    )
    looks = [
        replace(look, snapshot=replace(look.snapshot, weighed=weighed if number else NOT_WEIGHED))
        for number, look in enumerate(whole(recorded(lambda _: with_tasks(shop()), 3)))
    ]
    first, second, third = parts(looks)[0]
    assert first.snapshot.weighed is NOT_WEIGHED
    assert second.snapshot.weighed == weighed
    assert third.snapshot.weighed is second.snapshot.weighed
    assert second.snapshot.bytes_per_s == weighed.bytes_per_s


def test_groups_apart_do_and_cost_what_groups_in_whole_looks_do_and_cost() -> None:
    looks = whole(recorded(lambda minute: with_tasks(shop(swapped=minute < 5, generation=4 + (minute > 4))), 8))
    # Replicas are no matter of groups apart: they are left alone here.
    names = "no-action,execute,eager-triggers,patient"
    still = [
        replace(look, limits=replace(look.limits, scope=ScopeLimits(exclude_topics=("orders", "clicks"))))
        for look in looks
    ]
    exact = by_name(list(still), names)
    apart = by_name(list(parts(still)[0]), names)
    for name in names.split(","):
        assert [(act.at_ms, act.proposal.id, act.ended, act.false) for act in apart[name].acts] == [
            (act.at_ms, act.proposal.id, act.ended, act.false) for act in exact[name].acts
        ]
        one, other = exact[name].scores, apart[name].scores
        assert (other.read_partition_s, other.balanced_s) == (one.read_partition_s, one.balanced_s)
        assert other.read_bytes == pytest.approx(one.read_bytes, rel=1e-6)


def test_equal_arrangements_are_worked_out_once() -> None:
    looks = parts(whole(recorded(lambda minute: shop(swapped=minute < 5), 10)))[0]
    (result,) = replay(looks, chosen("no-action"))
    assert (result.scores.groups, result.fresh) == (10, 2)
