"""What the pure stages are given of the settings."""

from __future__ import annotations

from dataclasses import fields

import pytest

from agent.daemon.limits_from_settings import to_limits, to_scope
from agent.observe.scope import Scope
from agent.values.limits import GroupLimits, Limits, Mode
from agent.values.observation import Part
from config.load import load_settings


def limits(*assignments: str) -> Limits:
    return to_limits(load_settings(assignments=assignments, environ={}).settings)


def test_without_settings_the_limits_are_their_own_defaults() -> None:
    assert limits() == Limits()


@pytest.mark.parametrize(
    ("assignment", "name", "value"),
    [
        ("mode=observe", "mode", Mode.OBSERVE),
        ("topics.prefix=rw", "own_prefix", "rw"),
        ("scope.include_own_topics=true", "include_own_topics", True),
        ("scope.exclude_topics=a*, b", "exclude_topics", ("a*", "b")),
        ("scope.exclude_groups=g", "exclude_groups", ("g",)),
        ("racks.stable_for=5s", "rack_stable_ms", 5_000),
        ("racks.stable_polls=7", "rack_stable_polls", 7),
        ("racks.flap_changes=8", "rack_flap_changes", 8),
        ("racks.flap_window=9m", "rack_flap_window_ms", 540_000),
        ("racks.broker_absent_for=15m", "broker_absent_ms", 900_000),
        ("detect.stuck_rebalance_after=1m", "stuck_rebalance_ms", 60_000),
        ("detect.leader_skew_share=0.5", "leader_skew_share", 0.5),
        ("detect.throttle_grace=1s", "throttle_grace_ms", 1_000),
        ("detect.shrink_share=0.5", "no_longer_shown_share", 0.5),
        ("gain.min_partitions=3", "min_gain_partitions", 3),
        ("gain.min_share=0.25", "min_gain_share", 0.25),
        ("gain.min_bytes_per_s=1e3", "min_gain_bytes_per_s", 1_000.0),
        ("price.usd_per_gb=none", "usd_per_gb", None),
        ("price.between.a -> b=0.5", "prices", {("a", "b"): 0.5}),
        ("proposals.move_bytes_per_s=1MB", "move_bytes_per_s", 1_000_000.0),
        ("proposals.max_per_cycle=5", "max_proposals", 5),
        ("proposals.max_moves=6", "max_moves_per_proposal", 6),
        ("proposals.ttl=1h", "proposal_ttl_ms", 3_600_000),
        ("proposals.trigger_cooldown=2m", "trigger_cooldown_ms", 120_000),
        ("num.standby.replicas=1", "default_group", GroupLimits(num_standby_replicas=1, known=True)),
        ("groups.a.num.standby.replicas=1", "groups", {"a": GroupLimits(num_standby_replicas=1, known=True)}),
    ],
)
def test_each_setting_reaches_its_limit_and_no_other(assignment: str, name: str, value: object) -> None:
    found = limits(assignment)
    changed = {
        f.name: getattr(found, f.name) for f in fields(Limits) if getattr(found, f.name) != getattr(Limits(), f.name)
    }
    assert changed == {name: value}


def test_an_application_takes_from_all_what_it_does_not_set() -> None:
    found = limits("acceptable.recovery.lag=5", "groups.a.max.warmup.replicas=1", "groups.a.topology.changelogs.0=x,y")
    assert found.group("a").acceptable_recovery_lag == 5
    assert found.group("a").max_warmup_replicas == 1
    assert found.group("a").topology.changelogs == {"0": ("x", "y")}
    assert found.group("b") == GroupLimits(acceptable_recovery_lag=5, known=True)
    assert limits("groups.a.topology.source_changelogs=t").group("a").known is False


def test_without_settings_a_look_has_its_own_defaults() -> None:
    assert to_scope(load_settings(environ={}).settings) == Scope()


def test_every_setting_of_a_look_reaches_it() -> None:
    assignments = [
        "observe.include_topics=a,b", "observe.exclude_topics=c", "observe.include_groups=d",
        "observe.exclude_groups=e",
        "observe.call_timeout=1s", "observe.deadline=9s", "observe.refresh_sizes=2s", "observe.refresh_configs=3s",
        "cluster.id=x", "detect.shrink_share=0.1",
        "groups.z.application.endpoints=http://z/", "groups.a.application.endpoints=http://a/,http://z/",
    ]  # fmt: skip
    assert to_scope(load_settings(assignments=assignments, environ={}).settings) == Scope(
        include_topics=("a", "b"),
        exclude_topics=("c",),
        include_groups=("d",),
        exclude_groups=("e",),
        call_timeout_ms=1_000,
        deadline_ms=9_000,
        refresh_ms={
            Part.LOG_DIRS: 2_000,
            Part.TOPIC_CONFIGS: 3_000,
            Part.BROKER_CONFIGS: 3_000,
            Part.GROUP_CONFIGS: 3_000,
        },
        expected_cluster_id="x",
        application_urls=("http://a/", "http://z/"),
        shrink_share=0.1,
    )
