"""Settings: where each value comes from, and the sentence for every way to get one wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.memory.rack_history import CHANGES_KEPT
from config.catalogue import catalogue
from config.load import LoadedSettings, SettingsRefusedError, effective, load_settings
from config.sections import RackSettings
from config.sources import environment_name, environment_names


def loaded(*assignments: str, **sources: object) -> LoadedSettings:
    sources.setdefault("environ", {})
    return load_settings(assignments=assignments, **sources)  # type: ignore[arg-type] # a table's row


def mistakes(*assignments: str, **sources: object) -> list[str]:
    with pytest.raises(SettingsRefusedError) as refused:
        loaded(*assignments, **sources)
    return [str(mistake) for mistake in refused.value.mistakes]


@pytest.mark.parametrize(
    ("assignments", "sentences"),
    [
        pytest.param(
            ["probing.rebalance.interval.ms=59999"],
            ["probing.rebalance.interval.ms: 59999 is out of range; Kafka accepts at least 60000"],
            id="Kafka probes at most once a minute",
        ),
        pytest.param(
            ["max.warmup.replicas=0"],
            ["max.warmup.replicas: 0 is out of range; Kafka accepts at least 1"],
            id="Kafka takes at least one warm-up",
        ),
        pytest.param(
            ["acceptable.recovery.lag=-1", "num.standby.replicas=-1"],
            [
                "acceptable.recovery.lag: -1 is out of range; Kafka accepts at least 0",
                "num.standby.replicas: -1 is out of range; Kafka accepts at least 0",
            ],
            id="lags and standbys are never negative, and both mistakes are reported at once",
        ),
        pytest.param(
            ["groups.my.app.max.warmup.replicas=0"],
            ["groups.my.app.max.warmup.replicas: 0 is out of range; Kafka accepts at least 1"],
            id="the limits hold for one application too, also when its id has dots",
        ),
        pytest.param(
            ["rack.aware.assignment.strategy=min_cost"],
            [("rack.aware.assignment.strategy: min_cost is in KIP-925's text only; Kafka released it as min_traffic")],
            id="min_cost was released as min_traffic",
        ),
        pytest.param(
            ["rack.aware.assignment.strategy=balanced_min_cost"],
            [
                (
                    "rack.aware.assignment.strategy: balanced_min_cost is in KIP-925's text only; "
                    "Kafka released it as balance_subtopology"
                )
            ],
            id="balanced_min_cost was released as balance_subtopology",
        ),
        pytest.param(
            ["rack.aware.assignment.enabled=true"],
            [
                (
                    "rack.aware.assignment.enabled: it is in KIP-925's text only; Kafka released "
                    "rack.aware.assignment.strategy (none, min_traffic or balance_subtopology)"
                )
            ],
            id="rack.aware.assignment.enabled was released as a strategy",
        ),
        pytest.param(
            ["groups.orders.rack.aware.assignment.enabled=true"],
            [
                (
                    "groups.orders.rack.aware.assignment.enabled: it is in KIP-925's text only; Kafka released "
                    "rack.aware.assignment.strategy (none, min_traffic or balance_subtopology)"
                )
            ],
            id="rack.aware.assignment.enabled of one application was released as a strategy",
        ),
        pytest.param(
            ["groups.orders.max_task_migrations=2"],
            ["groups.orders.max_task_migrations: it is in KIP-441's text only; Kafka released max.warmup.replicas"],
            id="max_task_migrations was released as max.warmup.replicas",
        ),
        pytest.param(
            ["rack.aware.assignment.tags=a,b,c,d,e,f"],
            ["rack.aware.assignment.tags: Kafka takes at most 5 tags"],
            id="Kafka takes five tags",
        ),
        pytest.param(
            ["pol.interval=5s"], ["pol.interval: no such setting; did you mean poll.interval?"], id="a misspelt section"
        ),
        pytest.param(["foo=1"], ["foo: no such setting"], id="nothing near"),
        pytest.param(
            ["interval=5s"], ["interval: no such setting; did you mean poll.interval?"], id="a setting without section"
        ),
        pytest.param(
            ["bootstrap.servers=a:9092"],
            ["bootstrap.servers: no such setting here; did you mean kafka.bootstrap.servers?"],
            id="a Kafka client's name belongs below kafka",
        ),
        pytest.param(
            ["kafka.bootstrap.serverz=a:9092"],
            ["kafka.bootstrap.serverz: no such setting; did you mean bootstrap.servers?"],
            id="a misspelt name of a Kafka client",
        ),
        pytest.param(
            ["groups.orders.max.warmup=2"],
            ["groups.orders.max.warmup: no such setting; did you mean groups.orders.max.warmup.replicas?"],
            id="a misspelt name of one application",
        ),
        pytest.param(
            ["groups.orders=2"], ["groups.orders: it is a section: write its settings below it"], id="of a group's name"
        ),
        pytest.param(["poll=5s"], ["poll: it is a section: write its settings below it"], id="a value for a section"),
        pytest.param(["poll"], ["--set: 'poll' is no name=value, such as poll.interval=10s"], id="no assignment"),
        pytest.param(
            ["poll.interval=10"],
            ["poll.interval: a duration with its unit is expected, such as 500ms, 10s, 5m, 2h or 7d"],
            id="a duration without its unit",
        ),
        pytest.param(["poll.interval=10ms"], ["poll.interval: it must be at least 1s"], id="too short a poll"),
        pytest.param(
            ["dry_run=true", "mode=execute"],
            ["dry_run: true contradicts mode execute; give one of them"],
            id="a dry run that executes",
        ),
        pytest.param(
            ["dry_run=false"],
            ["dry_run: false contradicts mode propose, which changes nothing; set mode execute"],
            id="no dry run, but nothing that acts either",
        ),
        pytest.param(
            ["mode=observe", "topics.proposals.publish=true"],
            ["topics.proposals.publish: true contradicts mode observe, which writes no topic"],
            id="observing and publishing",
        ),
        pytest.param(
            ["plan.interval=1m", "plan.cron=* * * * *"],
            ["plan.cron: it contradicts plan.interval; give one of them"],
            id="two planning schedules",
        ),
        pytest.param(
            ["spark.format=parquet", "spark.retention.bronze=7d"],
            ["spark.retention.bronze: rows are deleted of Delta tables alone; set format delta"],
            id="a retention on Parquet",
        ),
        pytest.param(
            ["spark.retention.silver=1d"], ["spark.retention.silver: it must be at least 15d"], id="too short a memory"
        ),
        pytest.param(
            ["plan.cron=every day"], ["plan.cron: five fields are expected, such as */15 * * * *"], id="a cron"
        ),
        pytest.param(
            ["plan.interval=5s"],
            [
                (
                    "plan.interval: it is shorter than poll.interval; proposals are made from looks, so they cannot "
                    "change in between"
                )
            ],
            id="planning more often than looking",
        ),
        pytest.param(
            ["topics.replication.factor=2", "topics.min.insync.replicas=3"],
            ["topics.min.insync.replicas: it is larger than topics.replication.factor, so no record could be written"],
            id="more in-sync replicas than replicas",
        ),
        pytest.param(
            ["topics.telemetry.name=seen"],
            [
                (
                    "topics.telemetry.name: it must begin with topics.prefix (rackwise), so that one ACL prefix "
                    "covers all names"
                )
            ],
            id="a topic outside of the ACL prefix",
        ),
        pytest.param(
            ["topics.telemetry.name=rackwise.x", "topics.proposals.name=rackwise.x"],
            ["topics.proposals.name: it is the same as topics.telemetry.name"],
            id="one topic for two purposes",
        ),
        pytest.param(
            ["topics.telemetry.name=rackwise/x"],
            [
                (
                    "topics.telemetry.name: it is not a valid topic name: use letters, digits, '.', '_' or '-', "
                    "at most 249 characters"
                )
            ],
            id="no topic name",
        ),
        pytest.param(
            ["mode=dry-run"],
            ["mode: dry-run is not offered; use one of observe, propose or execute"],
            id="an unknown mode",
        ),
        pytest.param(["http.port=http"], ["http.port: a whole number is expected, not http"], id="no port"),
        pytest.param(
            ["http.enabled=perhaps"],
            ["http.enabled: true or false is expected, not perhaps"],
            id="neither true nor false",
        ),
        pytest.param(
            ["price.between.a=0.1"],
            ["price.between: 'a' is not a pair of racks: write it as from->to"],
            id="a price without a pair of racks",
        ),
        pytest.param(
            ["kafka.security.protocol=SASL_SSL", "kafka.sasl.mechanism=PLAIN"],
            ["kafka.security.protocol: SASL_SSL also needs sasl.username and sasl.password"],
            id="SASL without a login",
        ),
        pytest.param(
            ["groups.a.application.endpoints=ftp://x"],
            ["groups.a.application.endpoints: ftp://x is not an http:// or https:// URL"],
            id="an endpoint that is no URL",
        ),
        pytest.param(
            ["groups.a.application.endpoints=http://u:secret@x/"],
            ["groups.a.application.endpoints: a URL must not contain a user and a password: it would appear in logs"],
            id="an endpoint with a password",
        ),
    ],
)
def test_a_mistake_is_answered_with_its_sentence(assignments: list[str], sentences: list[str]) -> None:
    assert mistakes(*assignments) == [f"{s} (flag --set)" if not s.startswith("--set") else s for s in sentences]


def test_flag_wins_over_environment_over_file_over_properties_over_default(tmp_path: Path) -> None:
    properties = tmp_path / "app.properties"
    properties.write_text("acceptable.recovery.lag=1\nmax.warmup.replicas=1\nnum.standby.replicas=1\nclient.id=p\n")
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(
        "acceptable: {recovery: {lag: 2}}\nmax.warmup.replicas: 2\nnum.standby.replicas: 2\nkafka: {client.id: a}\n"
    )
    second.write_text("kafka.client.id: b\n")
    found = load_settings(
        files=[first, second],
        properties=[properties],
        environ={"RACKWISE_ACCEPTABLE_RECOVERY_LAG": "3", "RACKWISE_MAX_WARMUP_REPLICAS": "3"},
        flags={"mode": "observe", "kafka.bootstrap.servers": None},
        assignments=["acceptable.recovery.lag=4"],
    )
    settings = found.settings
    assert (settings.acceptable_recovery_lag, settings.max_warmup_replicas, settings.num_standby_replicas) == (4, 3, 2)
    origins = {name: (value, str(origin)) for name, value, origin in effective(found)}
    assert origins["acceptable.recovery.lag"] == (4, "flag --set")
    assert origins["max.warmup.replicas"] == (3, "environment RACKWISE_MAX_WARMUP_REPLICAS")
    assert origins["num.standby.replicas"] == (2, f"file {first}")
    assert origins["kafka.client.id"] == ("b", f"file {second}")
    assert origins["mode"] == ("observe", "command line")
    assert origins["probing.rebalance.interval.ms"] == (600_000, "default")


def test_config_files_can_be_named_by_the_environment_unless_flags_name_others(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("poll.interval: 11s")
    two.write_text("poll: {interval: 12s}")
    environ = {"RACKWISE_CONFIG": f"{one}:{two}"}
    assert loaded(environ=environ).settings.poll.interval_ms == 12_000
    assert loaded(environ=environ, files=[one]).settings.poll.interval_ms == 11_000


def test_a_streams_properties_file_sets_its_application_and_brings_no_strange_settings(tmp_path: Path) -> None:
    file = tmp_path / "orders.properties"
    file.write_text(
        "application.id=orders.app\nbootstrap.servers=h:9092\nacceptable.recovery.lag=${env:LAG}\n"
        "num.stream.threads=2\nclient.tag.zone=a\nmain.consumer.client.rack=a\nkey.deserializer=X\ngroup.id=g\n"
    )
    found = loaded(properties=[file], environ={"LAG": "7"})
    assert found.settings.groups["orders.app"].acceptable_recovery_lag == 7
    assert found.settings.acceptable_recovery_lag == 10_000
    assert found.settings.kafka.root == {"bootstrap.servers": "h:9092"}
    assert found.notes == (
        f"{file}: ignored, as they are settings of producers or consumers: group.id, key.deserializer",
        (
            f"{file}: ignored, as they are settings of the application itself: "
            "client.tag.zone, main.consumer.client.rack, num.stream.threads"
        ),
    )


def test_an_unknown_name_in_a_properties_file_is_refused_with_the_nearest_and_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.server=h:9092\nrack.aware.assignment.enabled=true\n")
    assert mistakes(properties=[file]) == [
        (
            "rack.aware.assignment.enabled: it is in KIP-925's text only; Kafka released "
            "rack.aware.assignment.strategy (none, min_traffic or balance_subtopology)"
        ),
        f"kafka.bootstrap.server: no such setting; did you mean bootstrap.servers? (properties {file})",
    ]


@pytest.mark.parametrize(
    ("environ", "outcome"),
    [
        pytest.param({"RACKWISE_HTTP_PORT": "1"}, 1, id="a setting"),
        pytest.param({"RACKWISE_HTTP_PORT": "tcp://10.0.0.1:9464"}, 9464, id="what Kubernetes sets for a service"),
        pytest.param({"RACKWISE_HTTP_PORT_9464_TCP_ADDR": "10.0.0.1"}, 9464, id="more of what Kubernetes sets"),
        pytest.param({"RACKWISE_SERVICE_HOST": "10.0.0.1"}, 9464, id="the host of a service named rackwise"),
        pytest.param({"RACKWISE_TEST_BOOTSTRAP": "x:1"}, 9464, id="a variable of the tests"),
        pytest.param({"RACKWISE_CACHE": "/x"}, 9464, id="a variable of the embedded cluster"),
        pytest.param(
            {"RACKWISE_HTP_PORT": "1"},
            "RACKWISE_HTP_PORT: no such setting; did you mean RACKWISE_HTTP_PORT?",
            id="a misspelt setting",
        ),
        pytest.param(
            {"RACKWISE_KAFKA_BOOTSTRAP": "x:1"},
            "RACKWISE_KAFKA_BOOTSTRAP: no such setting; did you mean RACKWISE_KAFKA_BOOTSTRAP_SERVERS?",
            id="half a name of a Kafka client",
        ),
    ],
)
def test_the_environment(environ: dict[str, str], outcome: int | str) -> None:
    if isinstance(outcome, int):
        found = loaded(environ=environ)
        assert (found.settings.http.port, found.notes) == (outcome, ())
    else:
        assert mistakes(environ=environ) == [outcome]


def test_an_unknown_variable_that_is_no_misspelling_is_noted_and_left_alone() -> None:
    assert loaded(environ={"RACKWISE_IMAGE_TAG": "v1"}).notes == (
        "the environment variable RACKWISE_IMAGE_TAG is not a setting and is ignored",
    )


def test_no_two_settings_share_an_environment_variable() -> None:
    names = [entry.name for entry in catalogue() if "<" not in entry.name]
    assert len({environment_name(name) for name in names}) == len(names)
    assert set(names) <= set(environment_names().values())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            "poll: {interval: 1s, interval: 2s}", "is not readable YAML: interval is written twice (line 1)", id="twice"
        ),
        pytest.param("poll: [", "is not readable YAML: did not find expected node content", id="broken"),
        pytest.param("- a\n", "holds no settings: write names and values, such as poll.interval: 10s", id="a list"),
        pytest.param(
            "x: !!python/object/apply:os.getcwd []", "could not determine a constructor for the tag", id="code"
        ),
        pytest.param("a: &a [1]\nb: [" + "*a, " * 101 + "]", "more than 100 aliases", id="an alias bomb"),
        pytest.param("[" * 5000, "it is nested too deeply", id="nested five thousand times"),
        pytest.param("#" * 1_048_577, "is larger than 1 MiB", id="too large"),
    ],
)
def test_a_file_that_is_no_settings_file_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    (found,) = mistakes(files=[file])
    assert sentence in found
    assert str(file) in found


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (found,) = mistakes(files=[tmp_path / "none.yaml"])
    assert found == f"{tmp_path / 'none.yaml'} cannot be read (No such file or directory)"


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("poll:\ngroups:\n# nothing\n")
    assert effective(loaded(files=[file])) == effective(loaded())


def test_every_mistake_of_every_source_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("poll: {intervall: 1s}\nhttp: {port: 70000}\n")
    found = mistakes("mode=x", files=[file], environ={"RACKWISE_LOG_LEVEL": "loud"})
    assert found == [
        f"poll.intervall: no such setting; did you mean poll.interval? (file {file})",
        "mode: x is not offered; use one of observe, propose or execute (flag --set)",
        f"http.port: 70000 is out of range; rackwise accepts at most 65535 (file {file})",
        "log.level: loud is not offered; use one of debug, info, warning or error (environment RACKWISE_LOG_LEVEL)",
    ]


SECRET = "canary-7c1d"


def test_secrets_are_masked_and_never_in_a_sentence(tmp_path: Path) -> None:
    login = ["kafka.security.protocol=SASL_SSL", "kafka.sasl.mechanism=PLAIN", "kafka.sasl.username=u"]
    found = loaded(*login, f"kafka.sasl.password={SECRET}")
    assert SECRET not in repr(found) + repr(effective(found)) + found.settings.model_dump_json()
    assert found.secrets() == (SECRET,)
    assert found.notes == (
        (
            "kafka.sasl.password: others on this machine can read the command line; "
            "use a file, ${env:NAME} or ${file:PATH}"
        ),
    )
    assert loaded(*login, "kafka.sasl.password=${env:HOME}").notes == ()
    for wrong in (
        [*login[1:], f"kafka.sasl.password={SECRET}"],
        [f"kafka.sasl.jaas.config={SECRET}"],
        [f"--{SECRET}x"],
    ):
        assert SECRET not in " ".join(mistakes(*wrong))


def test_a_rack_flaps_after_no_more_changes_than_are_remembered() -> None:
    assert RackSettings(flap_changes=CHANGES_KEPT).flap_changes == CHANGES_KEPT
    with pytest.raises(ValidationError, match="less than or equal to 16"):
        RackSettings(flap_changes=CHANGES_KEPT + 1)
