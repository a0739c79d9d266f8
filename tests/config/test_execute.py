"""Settings of mode execute: the sentence for every way to get one wrong, and what stages are given of them."""

from __future__ import annotations

import pytest

from agent.daemon.limits_from_settings import to_limits
from agent.journal.plan_entries import KEEP_BATCHES
from agent.journal.triggers import KEPT
from agent.values.limits import AgentMode, TriState
from config.load import SettingsRefusedError, effective, load_settings
from config.settings import Settings


def settings_of(*assignments: str) -> Settings:
    return load_settings(assignments=assignments, environ={}).settings


@pytest.mark.parametrize(
    ("assignments", "sentence"),
    [
        pytest.param(
            ["mode=act"], "mode: act is not offered; use one of observe, propose or execute", id="an unknown mode"
        ),
        pytest.param(
            ["mode=execute", "kafka.bootstrap.servers=a:1", "kafka.security.protocol=SSL"],
            "execute.journal_key_file: mode execute with security.protocol SSL needs it, so that Write on the journal"
            " topic alone commands nothing; make a key with: openssl rand -hex 32 > FILE; chmod 600 FILE",
            id="a journal that every writer could forge",
        ),
        pytest.param(
            ["mode=execute", "kafka.bootstrap.servers=a:1", "approve.second_person=true", "approve.people.ann=/a.key"],
            "approve.people: approve.second_person needs at least two people, or a sign-in (http.auth): a record of the"
            " commands topic carries no principal",
            id="two persons of whom one is known",
        ),
        pytest.param(
            ["operator.name=ann"],
            "operator.key_file: operator.name and operator.key_file go together; set both or none",
            id="a person without a key",
        ),
        pytest.param(
            ["execute.journal_unsigned_below=7"],
            "execute.journal_unsigned_below: it needs execute.journal_key_file",
            id="unsigned records where none is signed",
        ),
        pytest.param(
            ["execute.journal=file", "execute.journal_file=/j", "execute.journal_key_file=/k"],
            "execute.journal_key_file: it is for execute.journal kafka; a journal file is protected by its owner and"
            " mode",
            id="a key for a file",
        ),
        pytest.param(
            ["execute.journal=zookeeper"],
            "execute.journal: zookeeper is not offered; use one of kafka or file",
            id="an unknown journal",
        ),
        pytest.param(
            ["execute.journal=file"],
            "execute.journal_file: execute.journal file needs the path of its file; set it, or set "
            "execute.journal kafka",
            id="a file journal without a path",
        ),
        pytest.param(
            ["execute.journal_file=/var/lib/rackwise/journal"],
            "execute.journal_file: it contradicts execute.journal kafka; set that to file, or leave this out",
            id="a path for a journal that is a topic",
        ),
        pytest.param(
            ["execute.commands_dir=/run/rackwise"],
            "execute.commands_dir: it contradicts execute.journal kafka, where commands are read from a topic",
            id="a directory for commands that come by a topic",
        ),
        *(
            pytest.param(
                [f"{name}=0"],
                f"{name}: 0 allows nothing; to stop acting set mode propose, or run: rackwise pause",
                id=f"{name} of nothing",
            )
            for name in (
                "trigger.budget_per_cycle",
                "trigger.budget_per_hour",
                "trigger.budget_per_day",
                "trigger.budget_per_group_per_hour",
                "probing.budget_per_group_per_hour",
                "execute.batches_per_hour",
                "execute.batches_per_day",
                "execute.bytes_per_day",
                "execute.max_moves_per_broker",
                "execute.max_moves_per_cluster",
                "execute.max_bytes_in_flight",
                "execute.batch_partitions",
                "execute.throttle",
            )
        ),
        pytest.param(
            ["trigger.budget_per_hour=600"],
            "trigger.budget_per_hour: it is larger than budget_per_day, so it could never be reached",
            id="a budget for an hour that is larger than that for the day",
        ),
        pytest.param(
            ["execute.batches_per_day=201"],
            "execute.batches_per_day: 201 is above 200, the most that the journal can count",
            id="a budget that cannot be counted",
        ),
        pytest.param(
            ["execute.throttle=200MB/s"],
            "execute.throttle: it is not between execute.throttle_floor (1MB) and execute.throttle_ceiling (100MB)",
            id="a rate above its ceiling",
        ),
        pytest.param(
            ["execute.throttle_floor=1GB"],
            "execute.throttle_floor: it is above execute.throttle_ceiling (100MB)",
            id="a floor above the ceiling",
        ),
        pytest.param(
            ["execute.batch_partitions=300"],
            "execute.batch_partitions: it is larger than execute.max_moves_per_cluster, so it could never be reached",
            id="a batch that the cluster's cap never lets be full",
        ),
        pytest.param(
            ["probing.backoff_max=7s"],
            "probing.backoff_max: it is shorter than floor, from which it grows",
            id="a back-off that ends before it begins",
        ),
        pytest.param(
            ["groups.orders.trigger.transactional=sometimes"],
            "groups.orders.trigger.transactional: sometimes is not offered; use one of unknown, yes or no",
            id="neither transactional nor not",
        ),
        pytest.param(
            ["approve.rules.any.kinds=reassign"],
            "approve.rules.any: a rule without a bound approves everything; add one, such as max_bytes: 10GB "
            "or topics: logs-*",
            id="a rule that approves everything",
        ),
        pytest.param(
            ["windows.allow.nights.zone=Europe/Berlln"],
            "windows.allow.nights.zone: 'Europe/Berlln' is not an IANA time zone; did you mean Europe/Berlin?",
            id="a zone that is no zone",
        ),
        pytest.param(
            ["windows.allow.nights.start=25:00"],
            "windows.allow.nights.start: a time of day is expected, such as 22:00",
            id="a time that no clock shows",
        ),
        pytest.param(
            ["windows.allow.nights.days=mon-fry"],
            "windows.allow.nights.days: 'mon-fry' is not a day: use mon, tue, wed, thu, fri, sat, sun, or a range such "
            "as mon-fri",
            id="a day of no week",
        ),
        pytest.param(
            ["windows.allow.once.first=2026-12-20", "windows.allow.once.last=2026-12-19"],
            "windows.allow.once.last: it is before first, 2026-12-20, so the window never opens",
            id="a window that ends before it begins",
        ),
        pytest.param(
            [
                "windows.allow.once.first=2026-12-21",
                "windows.allow.once.last=2026-12-22",
                "windows.allow.once.days=sun",
            ],
            "windows.allow.once.days: none of these days is between first and last, so the window never opens",
            id="a window on a day that does not come",
        ),
        pytest.param(
            ["windows.blackout.always.days=mon-sun"],
            "windows.blackout: it leaves no minute of the week for a trigger",
            id="a blackout without end",
        ),
        pytest.param(
            [
                "windows.allow.nights.start=22:00",
                "windows.allow.nights.end=06:00",
                "windows.blackout.backups.start=21:00",
                "windows.blackout.backups.end=07:00",
                "windows.blackout.backups.kinds=reassign",
            ],
            "windows.blackout: it leaves no minute of the week for a reassign",
            id="a blackout over all that is allowed",
        ),
        pytest.param(
            ["execute.kafka.sasl.username=executor"],
            "execute.kafka.sasl.username: it has no effect with security.protocol PLAINTEXT; use SASL_SSL",
            id="an executor's name without authentication",
        ),
        pytest.param(
            ["topics.journal.name=rackwise.telemetry"],
            "topics.journal.name: it is the same as topics.telemetry.name",
            id="a journal in the telemetry's topic",
        ),
    ],
)
def test_a_mistake_is_answered_with_its_sentence(assignments: list[str], sentence: str) -> None:
    with pytest.raises(SettingsRefusedError) as refused:
        settings_of(*assignments)
    assert [str(mistake).removesuffix(" (flag --set)") for mistake in refused.value.mistakes] == [sentence]


def test_budgets_are_not_larger_than_what_the_journal_keeps_to_count_by() -> None:
    assert settings_of(f"execute.batches_per_day={KEEP_BATCHES}").execute.batches_per_day == KEEP_BATCHES
    assert settings_of(f"trigger.budget_per_day={KEPT}").trigger.budget_per_day == KEPT
    for name, most in (("execute.batches_per_day", KEEP_BATCHES), ("trigger.budget_per_day", KEPT)):
        with pytest.raises(SettingsRefusedError):
            settings_of(f"{name}={most + 1}")


def test_what_is_set_reaches_the_stages() -> None:
    limits = to_limits(
        settings_of(
            "mode=execute",
            "cluster.id=abc",
            "execute.throttle=50MB/s",
            "trigger.allow_eager=true",
            "groups.orders.trigger.transactional=yes",
            "approve.rules.small.max_bytes=10GB",
            "windows.allow.nights.start=22:00",
            "windows.allow.nights.end=06:00",
            "windows.allow.nights.zone=Europe/Berlin",
            "windows.allow.nights.days=fri-mon",
        )
    )
    assert (limits.mode, limits.cluster.id, limits.execute.throttle) == (AgentMode.EXECUTE, "abc", 50_000_000)
    assert limits.trigger_of("orders").transactional is TriState.YES
    assert limits.trigger_of("orders").allow_eager, "what a group does not set, it takes from those for all"
    assert limits.trigger_of("others").transactional is TriState.UNKNOWN
    assert [(rule.name, rule.max_bytes) for rule in limits.approve.rules] == [("small", 10_000_000_000)]
    (window,) = limits.windows.allow
    assert (window.zone, window.start_minute, window.end_minute) == ("Europe/Berlin", 1_320, 360)
    assert window.days == {4, 5, 6, 0}


def test_the_executor_has_its_own_login_and_shares_the_rest() -> None:
    loaded = load_settings(
        assignments=[
            "kafka.bootstrap.servers=a:1",
            "kafka.security.protocol=SASL_SSL",
            "kafka.sasl.mechanism=SCRAM-SHA-512",
            "kafka.sasl.username=observer",
            "kafka.sasl.password=seen",
            "execute.kafka.sasl.username=executor",
        ],
        environ={"RACKWISE_EXECUTE_KAFKA_SASL_PASSWORD": "done"},
    )
    observer, executor = loaded.settings.kafka.confluent(), loaded.settings.executor_kafka.confluent()
    assert (executor["sasl.username"], executor["sasl.password"]) == ("executor", "done")
    assert {k: v for k, v in executor.items() if "sasl.user" not in k and "password" not in k} == {
        k: v for k, v in observer.items() if "sasl.user" not in k and "password" not in k
    }
    assert {"seen", "done"} <= set(loaded.secrets())
    assert "done" not in str(effective(loaded)), "a secret is shown as stars"


def test_without_its_own_login_the_executor_is_the_observer() -> None:
    settings = settings_of("kafka.bootstrap.servers=a:1")
    assert settings.executor_kafka is settings.kafka


@pytest.mark.parametrize(
    "assignments",
    [
        pytest.param(["kafka.security.protocol=SSL"], id="a dry run"),
        pytest.param(["mode=execute"], id="brokers without authentication"),
        pytest.param(["mode=execute", "kafka.security.protocol=SSL", "execute.journal_key_file=/k"], id="a key"),
        pytest.param(
            [
                "mode=execute", "kafka.security.protocol=SSL", "execute.journal=file", "execute.journal_file=/j",
                "approve.second_person=true",
            ],
            id="a file",
        ),
        pytest.param(
            ["mode=execute", "approve.second_person=true", "approve.people.ann=/a", "approve.people.bob=/b"], id="two"
        ),
    ],
)  # fmt: skip
def test_keys_are_asked_for_where_somebody_could_act_in_anothers_name_and_only_there(assignments: list[str]) -> None:
    assert settings_of("kafka.bootstrap.servers=a:1", *assignments)


def test_the_topics_of_acting_have_the_prefix() -> None:
    settings = settings_of("topics.prefix=rw", "topics.journal.name=rw.diary")
    assert (settings.journal_topic, settings.leader_topic, settings.commands_topic) == (
        "rw.diary",
        "rw.leader",
        "rw.commands",
    )
