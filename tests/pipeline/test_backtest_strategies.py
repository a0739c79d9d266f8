"""Strategies: changes of limits by name, and what is said about names and values that cannot be."""

from __future__ import annotations

import pytest

from agent.errors import BadInput
from agent.values.limits import AgentMode, GainLimits, GroupLimits, GroupTriggerLimits, Limits, TriState
from pipeline.backtest.replay import LONGEST_MS
from pipeline.backtest.strategies import BUILT_IN, READ_IN_A_LOOK, chosen, limits_under
from pipeline.backtest.units import WHOLE, BacktestPart, unit_id

RECORDED = Limits(
    mode=AgentMode.PROPOSE,
    gain=GainLimits(min_share=0.07),
    groups={"app": GroupLimits(known=True, max_warmup_replicas=5)},
    group_triggers={"readers": GroupTriggerLimits(long_poll=TriState.NO)},
)


def one(names: str, *changes: str, described: str | None = None) -> Limits:
    (strategy,) = chosen(names, changes=changes, described=described)
    return limits_under(strategy, RECORDED)


@pytest.mark.parametrize("name", ["as-recorded", "no-action"])
def test_strategies_that_do_nothing_have_the_recorded_limits(name: str) -> None:
    assert one(name) == RECORDED


def test_a_strategy_that_acts_runs_in_mode_execute_with_every_approval_given() -> None:
    limits = one("execute")
    assert limits.mode is AgentMode.EXECUTE
    assert limits.gain.min_share == RECORDED.gain.min_share
    assert limits.approve.triggers
    assert [rule.name for rule in limits.approve.rules] == ["backtest"]


@pytest.mark.parametrize("strategy", BUILT_IN, ids=lambda strategy: strategy.name)
def test_every_built_in_strategy_says_what_it_does_and_can_be_applied(strategy) -> None:
    assert strategy.about.endswith(".")
    assert limits_under(strategy, RECORDED).groups["app"].max_warmup_replicas == 5


def test_what_holds_for_every_group_reaches_groups_with_settings_of_their_own() -> None:
    limits = one("eager-triggers")
    assert limits.trigger.allow_eager
    assert limits.group_triggers["readers"].allow_eager
    assert limits.group_triggers["readers"].long_poll is TriState.NO
    limits = one("min_traffic")
    assert limits.default_group.rack_aware_assignment_strategy == "min_traffic"
    assert limits.groups["app"].rack_aware_assignment_strategy == "min_traffic"


@pytest.mark.parametrize("name", ["trigger", "execute.trigger"])
def test_all_trigger_limits_at_once_reach_groups_with_settings_of_their_own(name: str) -> None:
    limits = one("mine", f"mine:{name}={{allow_eager: true, budget_per_day: 3}}")
    assert (limits.trigger.allow_eager, limits.trigger.budget_per_day) == (True, 3)
    assert limits.group_triggers["readers"] == GroupTriggerLimits(allow_eager=True)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        pytest.param("patient:min_gain_share=0.5", lambda limits: limits.gain.min_share == 0.5, id="a built-in one"),
        pytest.param("mine:min_gain_partitions=3", lambda limits: limits.gain.min_partitions == 3, id="a new one"),
        pytest.param("mine:trigger.rolling=yes", lambda limits: limits.trigger.rolling is TriState.YES, id="a word"),
        pytest.param("mine:trigger.budget_per_day=7", lambda limits: limits.trigger.budget_per_day == 7, id="a budget"),
        pytest.param(
            "mine:execute.payback_max_days=null", lambda limits: limits.execute.payback_days is None, id="no bound"
        ),
    ],
)
def test_the_command_line_changes(change: str, read) -> None:
    assert read(one(change.partition(":")[0], change))


def test_a_file_describes_strategies_that_build_on_each_other() -> None:
    text = """
    strategies:
      - {name: calm, about: As patient but calmer., base: patient, set: {min_gain_share: 0.4}}
      - {name: calmest, base: calm, set: {execute.trigger_budget_per_group_per_hour: 0}}
    """
    limits = one("calmest", described=text)
    assert (limits.gain.min_share, limits.trigger.budget_per_group_per_hour) == (0.4, 0)


@pytest.mark.parametrize(
    ("names", "changes", "described", "told"),
    [
        pytest.param("patiet", (), None, "Did you mean patient?", id="a name with a slip"),
        pytest.param(" , ", (), None, "No strategy is named", id="no name"),
        pytest.param("patient", ("patient:min_gain_shar=1",), None, "Did you mean min_gain_share?", id="a limit"),
        pytest.param("patient", ("patient:execute.trigger.allow_eger=true",), None, "allow_eager", id="a deep slip"),
        pytest.param("patient", ("patient:min_gain_share=much",), None, "float expected", id="a value of another kind"),
        pytest.param("a", ("a:execute.throttle_bytes_per_s=auto",), None, "no int or none: int", id="a word for none"),
        pytest.param("a", ("a:min_gain_share=-1",), None, "min_gain_share is -1.0, and no limit", id="below nothing"),
        pytest.param(
            "a", ("a:trigger={long_poll_ms: -1}",), None, "long_poll_ms is -1, and no", id="deep below nothing"
        ),
        pytest.param("patient", ("patient",), None, "NAME:LIMIT=VALUE", id="no change at all"),
        pytest.param("patient", (), "strategies: 3", "strategies is not a list", id="a file of another shape"),
        pytest.param("patient", (), "3", "the document is not a mapping", id="no mapping"),
        pytest.param("patient", (), "strategies: [1]", "strategies[0] is not a mapping", id="a row of another shape"),
        pytest.param("patient", (), "strategies: [{base: patient}]", "strategies[0].name is missing", id="no name"),
        pytest.param("a", (), "strategies: [{name: a, bse: x}]", "strategies[0].bse is none of", id="another column"),
        pytest.param("a", (), "strategies: [{name: a, set: 3}]", "strategies[0].set is not a mapping", id="a set"),
        pytest.param("patient", (), "{", "cannot be read", id="a file that is no YAML"),
        pytest.param("a", (), "strategies: [{name: a, base: b}]", "a has the base b", id="a base that is not there"),
    ],
)
def test_what_cannot_be_is_told(names: str, changes: tuple[str, ...], described: str | None, told: str) -> None:
    with pytest.raises(BadInput) as raised:
        chosen(names, changes=changes, described=described)
    assert told in str(raised.value)
    assert raised.value.exit_code == 2


def test_the_digest_follows_settings_and_not_words() -> None:
    (patient,) = chosen("patient")
    (changed,) = chosen("patient", changes=("patient:min_gain_share=0.21",))
    (worded,) = chosen("p", described="strategies: [{name: p, about: other, base: patient}]")
    assert patient.digest != changed.digest
    assert patient.changes == worded.changes
    assert len({strategy.digest for strategy in BUILT_IN}) == len(BUILT_IN)


@pytest.mark.parametrize(
    ("change", "otherwise"),
    [
        ("weights_max_age_ms=1", True), ("weights.max_age_ms=1", True), ("own_prefix=mine", True),
        ("topics.prefix=mine", True), ("group.acceptable_recovery_lag=5", True), ("group.max_warmup_replicas=3", False),
        ("min_gain_share=0.1", False), ("racks.stable_for_ms=5", False),
    ],
)  # fmt: skip
def test_a_limit_that_a_snapshot_rests_on_has_recorded_looks_read_anew(change: str, otherwise: bool) -> None:
    """By the limit's own name and by that in records: else the recorded snapshot would hide the change."""
    (strategy,) = chosen("other", changes=[f"other:{change}"])
    assert strategy.reads_otherwise is otherwise


@pytest.mark.parametrize("path", READ_IN_A_LOOK, ids=".".join)
def test_each_limit_that_a_snapshot_rests_on_is_there(path: tuple[str, ...]) -> None:
    at: object = {"group": GroupLimits()}.get(path[0], Limits())
    for name in path[path[0] == "group" :]:
        at = getattr(at, name)


def test_units_keep_their_names_so_that_what_is_finished_is_found_again() -> None:
    part = BacktestPart("c", 86_400_000, WHOLE)
    assert unit_id(chosen("as-recorded")[0], part, "3/17", LONGEST_MS) == "8510cc66a32fffe96bb47220b7d41c31"
