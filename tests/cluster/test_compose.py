"""The compose file and the Dockerfile, read as data: no engine is needed."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.web.health_probe import PORT
from config.sources import environment_names
from testbed.cluster.settings import BrokerNode, broker_settings
from testbed.cluster.spec import DEFAULT_VERSION, ClusterSpec
from tests.cluster.driver import COMPOSE_PORTS, COMPOSE_RACKS
from tests.deploy.tooling import compose_spec

TOP = Path(__file__).resolve().parents[2]
BROKERS = tuple(COMPOSE_PORTS)
# What tells where a broker is; its shape is checked below.
PLACES = {
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "controller.quorum.voters",
    "log.dirs",
    "broker.rack",
}
# Read by the image's start script, not by the broker.
NOT_SETTINGS = {"KAFKA_HEAP_OPTS"}


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((TOP / "docker-compose.yml").read_text())


def compose_read(file: Path, folder: Path = TOP) -> subprocess.CompletedProcess[str]:
    """As ``docker compose config`` reads it, with every profile."""
    return subprocess.run([compose_spec(), str(file)], cwd=folder, capture_output=True, text=True, check=False)


def test_compose_takes_the_file_with_every_profile(compose: Any) -> None:
    done = compose_read(TOP / "docker-compose.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(yaml.safe_load(done.stdout)["services"]) == set(compose["services"])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("cap_drop: [ALL]", "cap_dropp: [ALL]"), ("  prometheus: {}\n  tables", "  tables"), ("{condition:", "{when:"),
     ("kafka-3: {condition: service_healthy}", "kafka-4: {condition: service_healthy}")],
)  # fmt: skip
def test_a_mistake_in_the_file_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    text = (TOP / "docker-compose.yml").read_text()
    assert right in text
    (tmp_path / "docker-compose.yml").write_text(text.replace(right, wrong))
    assert compose_read(tmp_path / "docker-compose.yml", tmp_path).returncode != 0


def environment_of(compose: Any, broker_id: int) -> dict[str, str]:
    return {name: str(value) for name, value in compose["services"][f"kafka-{broker_id}"]["environment"].items()}


def compose_settings(compose: Any, broker_id: int) -> dict[str, str]:
    """As the image's start script turns variables into settings."""
    return {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in environment_of(compose, broker_id).items()
        if name.startswith("KAFKA_") and name not in NOT_SETTINGS
    }


def embedded_settings(broker_id: int) -> dict[str, str]:
    node = BrokerNode(
        id=broker_id,
        rack=COMPOSE_RACKS[broker_id],
        internal_port=9094,
        controller_port=9095,
        client_port=COMPOSE_PORTS[broker_id],
        data_directory="data",
    )
    return broker_settings(ClusterSpec(), node, "", {})


EMBEDDED_NAMES = sorted(set(embedded_settings(1)) - PLACES)


@pytest.mark.parametrize("broker_id", BROKERS)
@pytest.mark.parametrize("name", EMBEDDED_NAMES)
def test_a_broker_setting_is_the_same_embedded_and_in_compose(compose: Any, broker_id: int, name: str) -> None:
    assert compose_settings(compose, broker_id).get(name) == embedded_settings(broker_id)[name]


@pytest.mark.parametrize("broker_id", BROKERS)
def test_compose_sets_nothing_that_the_embedded_cluster_does_not(compose: Any, broker_id: int) -> None:
    assert set(compose_settings(compose, broker_id)) == set(embedded_settings(broker_id))


@pytest.mark.parametrize("broker_id", BROKERS)
def test_listeners_have_the_same_names_and_ports_and_tell_clients_of_this_machine_its_address(
    compose: Any, broker_id: int
) -> None:
    ours, embedded = compose_settings(compose, broker_id), embedded_settings(broker_id)
    assert ours["listeners"] == embedded["listeners"].replace("127.0.0.1", "")
    assert ours["advertised.listeners"] == embedded["advertised.listeners"].replace(
        "127.0.0.1:9094", f"kafka-{broker_id}:9094"
    )
    assert sorted(ours["listener.security.protocol.map"].split(",")) == sorted(
        embedded["listener.security.protocol.map"].split(",")
    )


@pytest.mark.parametrize("broker_id", BROKERS)
def test_the_published_port_and_the_rack_are_those_the_driver_knows(compose: Any, broker_id: int) -> None:
    port = COMPOSE_PORTS[broker_id]
    assert compose["services"][f"kafka-{broker_id}"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert (
        environment_of(compose, broker_id)["KAFKA_BROKER_RACK"] == f"${{RACK_{broker_id}:-{COMPOSE_RACKS[broker_id]}}}"
    )


def test_brokers_form_one_quorum_and_keep_their_data_apart(compose: Any) -> None:
    settings = [compose_settings(compose, broker_id) for broker_id in BROKERS]
    assert {one["controller.quorum.voters"] for one in settings} == {"1@kafka-1:9095,2@kafka-2:9095,3@kafka-3:9095"}
    assert [one["node.id"] for one in settings] == ["1", "2", "3"]
    assert len({environment_of(compose, broker_id)["CLUSTER_ID"] for broker_id in BROKERS}) == 1
    volumes = [compose["services"][f"kafka-{broker_id}"]["volumes"][0] for broker_id in BROKERS]
    assert volumes == [f"kafka-{broker_id}:{settings[0]['log.dirs']}" for broker_id in BROKERS]
    assert set(compose["volumes"]) == {volume.partition(":")[0] for volume in volumes} | {"prometheus", "tables"}


def test_brokers_run_the_default_version_and_nobody_restarts_one_that_a_test_has_killed(compose: Any) -> None:
    for broker_id in BROKERS:
        service = compose["services"][f"kafka-{broker_id}"]
        assert service["image"] == f"apache/kafka:{DEFAULT_VERSION}"
        assert "restart" not in service


def test_the_agent_cannot_write_to_its_image_nor_gain_rights(compose: Any) -> None:
    agent = compose["services"]["agent"]
    assert agent["read_only"] is True
    assert agent["cap_drop"] == ["ALL"]
    assert agent["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in agent["ports"])


WATCHING = ("prometheus", "grafana")


@pytest.mark.parametrize("service", WATCHING)
def test_what_watches_comes_only_when_asked_for_and_cannot_write_to_its_image_nor_gain_rights(
    compose: Any, service: str
) -> None:
    watching = compose["services"][service]
    assert watching["profiles"] == ["watch"]
    assert watching["read_only"] is True
    assert watching["cap_drop"] == ["ALL"]
    assert watching["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in watching["ports"])
    assert re.fullmatch(r"[a-z]+/[a-z]+:v?\d+\.\d+\.\d+", watching["image"])
    assert all(volume.endswith(":ro") for volume in watching["volumes"] if volume.startswith("."))


def test_grafana_holds_no_password_and_shows_without_a_right_to_write(compose: Any) -> None:
    environment = compose["services"]["grafana"]["environment"]
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert not [name for name in environment if "PASSWORD" in name or "SECRET" in name]


def test_what_is_mounted_exists_and_each_name_in_it_is_one_of_the_services(compose: Any) -> None:
    services = compose["services"]
    for service in WATCHING:
        sources = [volume.split(":")[0] for volume in services[service]["volumes"] if volume.startswith(".")]
        assert sources
        assert [source for source in sources if not (TOP / source).is_dir()] == []
    (config,) = (one for one in services["prometheus"]["command"] if one.startswith("--config.file="))
    prometheus = yaml.safe_load((TOP / "deploy" / "prometheus" / Path(config.partition("=")[2]).name).read_text())
    (job,) = (job for job in prometheus["scrape_configs"] if job["job_name"] == "rackwise")
    targets = [target for group in job["static_configs"] for target in group["targets"]]
    assert targets == ["agent:9464"]
    assert services["agent"]["environment"]["RACKWISE_HTTP_ALLOWED_HOSTS"].split(",") == ["agent"]
    provisioning = TOP / "deploy" / "grafana" / "provisioning"
    (source,) = (yaml.safe_load(path.read_text()) for path in (provisioning / "datasources").iterdir())
    assert [one["url"] for one in source["datasources"]] == ["http://prometheus:9090"]
    (dashboards,) = (yaml.safe_load(path.read_text()) for path in (provisioning / "dashboards").iterdir())
    mounted = [volume.split(":")[1] for volume in services["grafana"]["volumes"]]
    assert [one["options"]["path"] in mounted for one in dashboards["providers"]] == [True]


@pytest.mark.parametrize("service", ["agent", "pipeline"])
def test_variables_are_settings_and_whoever_reads_them_waits_for_every_broker(compose: Any, service: str) -> None:
    told = compose["services"][service]
    assert set(told["environment"]) <= set(environment_names())
    assert set(told["depends_on"]) == {f"kafka-{broker_id}" for broker_id in BROKERS}


def test_the_pipeline_comes_only_when_asked_for_and_writes_nowhere_but_to_its_tables(compose: Any) -> None:
    pipeline = compose["services"]["pipeline"]
    assert pipeline["profiles"] == ["spark"]
    assert pipeline["cap_drop"] == ["ALL"]
    (volume,) = pipeline["volumes"]
    assert pipeline["environment"]["RACKWISE_SPARK_TABLES"].startswith(volume.partition(":")[2] + "/")


def stages() -> dict[str, list[tuple[str, str]]]:
    """Dockerfile: stage -> its instructions."""
    text = re.sub(r"\\\n", " ", (TOP / "Dockerfile").read_text())
    found: dict[str, list[tuple[str, str]]] = {"": []}
    name = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            name = rest.split(" AS ")[1]
            found[name] = []
        found[name].append((instruction, re.sub(r"\s+", " ", rest.strip())))
    return found


def test_every_instruction_is_one_docker_knows() -> None:
    names = "ARG FROM ENV COPY LABEL RUN USER WORKDIR EXPOSE HEALTHCHECK ENTRYPOINT CMD"
    assert {instruction for stage in stages().values() for instruction, _ in stage} <= {*names.split()}


def test_every_stage_and_every_file_that_is_copied_exists() -> None:
    named = set(stages())
    for stage in stages().values():
        for instruction, rest in stage:
            if instruction == "FROM":
                base = rest.split(" AS ")[0]
                assert base.startswith("python:") or base in named
            if instruction == "COPY" and (source := re.match(r"--from=(\w+)", rest)):
                assert source.group(1) in named
            elif instruction == "COPY":
                assert [name for name in rest.split()[:-1] if not (TOP / name).exists()] == []


@pytest.mark.parametrize("target", ["agent", "pipeline", "workload"])
def test_an_image_runs_as_a_user_without_rights(target: str) -> None:
    users = [rest for instruction, rest in stages()[target] if instruction == "USER"]
    assert users[-1] == "10001:10001"


def test_the_agents_image_is_made_in_stages_that_stay_behind_and_says_what_it_is() -> None:
    """Build tools, lock files and sources are in stages of which the image takes the installed environment alone."""
    agent = stages()["agent"]
    assert [rest for instruction, rest in agent if instruction == "COPY"] == [
        "--from=installed /opt/rackwise /opt/rackwise"
    ]
    assert not [rest for instruction, rest in agent if instruction == "RUN" and "install" in rest]
    (labels,) = (rest for instruction, rest in agent if instruction == "LABEL")
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    assert f'org.opencontainers.image.version="{project["version"]}"' in labels
    assert f'org.opencontainers.image.licenses="{project["license"]}"' in labels
    assert f'org.opencontainers.image.description="{project["description"]}"' in labels


def test_nothing_is_installed_without_a_hash() -> None:
    installs = [rest for stage in stages().values() for instruction, rest in stage if "pip install" in rest]
    assert len(installs) == 4
    assert all("--require-hashes" in one or "--no-deps --no-index" in one for one in installs)


def test_the_health_of_the_agents_image_is_its_own_answer() -> None:
    checks = [rest for instruction, rest in stages()["agent"] if instruction == "HEALTHCHECK"]
    assert len(checks) == 1
    assert json.loads(checks[0].partition(" CMD ")[2]) == ["python", "-m", "agent.web.health_probe"]
    assert f"EXPOSE {PORT}" in (TOP / "Dockerfile").read_text()


def test_compose_builds_targets_that_the_dockerfile_has(compose: Any) -> None:
    targets = {service["build"]["target"] for service in compose["services"].values() if "build" in service}
    assert targets == {"agent", "pipeline", "workload"}
    assert targets <= set(stages())


def test_the_build_context_lets_in_what_is_copied_and_nothing_else() -> None:
    lines = (TOP / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        name
        for stage in stages().values()
        for instruction, rest in stage
        if instruction == "COPY" and not rest.startswith("--from")
        for name in rest.split()[:-1]
    }
    assert "*" in lines
    assert allowed == copied


def copied_in(dockerfile: Path) -> set[str]:
    """The names at the top of the checkout that a Dockerfile copies."""
    return {
        name
        for line in re.findall(r"^COPY (?!--from)(.*)", dockerfile.read_text(), re.MULTILINE)
        for name in line.split()[:-1]
    }


def test_the_image_has_every_package_of_the_wheel() -> None:
    packages = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "packages"
    ]
    assert "testbed" in packages
    assert {*packages} <= copied_in(TOP / "Dockerfile")


def test_the_image_has_every_jar_of_the_wheel() -> None:
    artifacts = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["artifacts"]
    assert len(artifacts) == 2
    copied = [rest.split() for instruction, rest in stages()["wheel"] if rest.startswith("--from=jar")]
    assert {to + Path(jar).name for _, jar, to in copied} == {*artifacts}
    assert {"RUN", "COPY"} <= {instruction for instruction, _ in stages()["jar"]}
    (built,) = (rest for _, rest in stages()["jar"] if "mvn " in rest)
    poms = [Path(jar).parents[1] / "pom.xml" for _, jar, _ in copied]
    assert all(f"-f {pom} package" in built for pom in poms)
