"""The chart: helm accepts it, Kubernetes' own schemas accept what it makes, and rackwise accepts the settings in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from config.secrets import is_secret_name
from config.settings import Settings
from deploy.release import values_schema
from tests.deploy.tooling import KUBERNETES, TOP, run, schemas, tool

CHART = TOP / "deploy" / "helm" / "rackwise"
VALUES = sorted((TOP / "tests" / "deploy" / "values").glob("*.yaml"))
SERVERS = '{"config": {"kafka": {"bootstrap.servers": "kafka:9092"}}}'


def rendered(*options: str | Path) -> list[Any]:
    """The resources that the chart makes."""
    done = run(tool("helm"), "template", "racks", CHART, "--namespace", "kafka", *options)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one is not None]


def of_kind(resources: list[Any], kind: str) -> Any:
    (one,) = (resource for resource in resources if resource["kind"] == kind)
    return one


def refusal(values: str) -> str:
    """Why helm makes nothing of these values."""
    done = run(tool("helm"), "template", "racks", CHART, "--set-json", _assignments(values))
    assert done.returncode != 0, done.stdout
    return done.stderr


def _assignments(values: str) -> str:
    return ",".join(f"{name}={json.dumps(value)}" for name, value in json.loads(values).items())


def conforming(resources: str, version: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Kubeconform's judgement of the resources, without any schema from elsewhere."""
    path = tmp_path / "resources.yaml"
    path.write_text(resources)
    return run(
        tool("kubeconform"), "-strict", "-summary", "-kubernetes-version", f"{version}.0", "-schema-location",
        f"{schemas()}/v{version}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json", path,
    )  # fmt: skip


@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.stem if path else "defaults")
def test_helm_lints_it(values: Path | None) -> None:
    done = run(tool("helm"), "lint", "--strict", CHART, *(("--values", values) if values else ()))
    assert done.returncode == 0, done.stdout
    assert "1 chart(s) linted, 0 chart(s) failed" in done.stdout


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_kubernetes_takes_what_it_makes(values: Path, version: str, tmp_path: Path) -> None:
    made = run(tool("helm"), "template", "racks", CHART, "--values", values, "--kube-version", version)
    assert made.returncode == 0, made.stderr
    done = conforming(made.stdout, version, tmp_path)
    count = sum(1 for one in yaml.safe_load_all(made.stdout) if one is not None)
    assert done.returncode == 0, done.stdout
    assert f"Valid: {count}, Invalid: 0, Errors: 0, Skipped: 0" in done.stdout
    assert count >= 5


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("readOnlyRootFilesystem: true", "readOnlyRootFileSystem: true"),
        ("publishNotReadyAddresses: true", "publishNotReadyAddresses: 1"),
        ("maxUnavailable: 1\n", "mostUnavailable: 1\n"),
        ("port: http\n      path", "port: http\n      pathh"),
        ("automountServiceAccountToken: false", "automountServiceAccountToken: never"),
    ],
)
def test_a_wrong_field_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    values = next(path for path in VALUES if path.stem == "execute")
    made = run(tool("helm"), "template", "racks", CHART, "--values", values).stdout
    assert right in made
    assert conforming(made.replace(right, wrong), KUBERNETES[-1], tmp_path).returncode != 0


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_rackwise_accepts_the_settings_of_the_config_map(values: Path, tmp_path: Path) -> None:
    resources = rendered("--values", values)
    config = of_kind(resources, "ConfigMap")["data"]["rackwise.yaml"]
    (container,) = of_kind(resources, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["run", "--config", "/etc/rackwise/config/rackwise.yaml"]
    asked = yaml.safe_load(values.read_text())["config"]
    assert yaml.safe_load(config) == {"mode": "propose", "kafka": {}, **asked}
    path, secret = tmp_path / "rackwise.yaml", tmp_path / "etc"
    authority = (TOP / "tests" / "deploy" / "values" / "ca.crt").read_text()
    for name, text in {
        "kafka/password": "hunter2",
        "journal/key": "0123456789abcdef" * 4,
        "ca/ca.crt": authority,
    }.items():
        file = secret / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
        file.chmod(0o440)  # as a Secret is mounted
    path.write_text(config.replace("/etc/rackwise", str(secret)))
    variables = {one["name"]: one.get("value", "hunter2") for one in container["env"]}
    checked = subprocess.run(
        [sys.executable, "-m", "agent", "config", "check", "-c", str(path), "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=TOP,
        env={"PATH": os.environ["PATH"], **variables},
    )
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["mode"] == asked.get("mode", "propose")


@pytest.mark.parametrize(
    ("mode", "replicas", "budget"), [("observe", 1, 0), ("propose", 1, 0), ("execute", 2, 1)], ids=str
)
def test_agents_that_act_have_a_standby_and_a_budget(mode: str, replicas: int, budget: int) -> None:
    resources = rendered("--set", f"config.mode={mode}")
    assert of_kind(resources, "Deployment")["spec"]["replicas"] == replicas
    assert sum(one["kind"] == "PodDisruptionBudget" for one in resources) == budget


def test_a_pod_has_no_right_that_it_does_not_need() -> None:
    resources = rendered()
    assert {one["kind"] for one in resources} == {
        *("ServiceAccount", "ConfigMap", "Deployment", "Service", "NetworkPolicy")
    }  # no role, no secret
    pod = of_kind(resources, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert of_kind(resources, "ServiceAccount")["automountServiceAccountToken"] is False
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
    assert pod["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert [container[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")] == [
        "/livez", "/livez", "/readyz",
    ]  # fmt: skip
    assert set(container["resources"]) == {"requests", "limits"}


@pytest.mark.parametrize(
    "tls",
    ['{"http": {"tls": {"cert_file": "/c", "key_file": "/k"}}}',
     '{"http.tls.cert_file": "/c", "http.tls.key_file": "/k"}'],
)  # fmt: skip
def test_probes_and_prometheus_speak_tls_where_the_agent_does(tls: str) -> None:
    named = json.dumps({"ca": {"secret": {"name": "rackwise-tls", "key": "ca.crt"}}})
    resources = rendered(
        "--set-json", f"config={tls}", "--set", "serviceMonitor.enabled=true", "--set-json",
        f"serviceMonitor.tlsConfig={named}",
    )  # fmt: skip
    assert schemes(resources) == ["HTTPS"] * 3
    (endpoint,) = of_kind(resources, "ServiceMonitor")["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]) == ("https", json.loads(named))


def schemes(resources: list[Any]) -> list[str]:
    (container,) = of_kind(resources, "Deployment")["spec"]["template"]["spec"]["containers"]
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    return [container[probe]["httpGet"]["scheme"] for probe in probes]


def test_probes_and_prometheus_speak_plain_http_otherwise() -> None:
    resources = rendered("--set", "serviceMonitor.enabled=true")
    assert schemes(resources) == ["HTTP"] * 3
    (endpoint,) = of_kind(resources, "ServiceMonitor")["spec"]["endpoints"]
    assert "scheme" not in endpoint
    assert "tlsConfig" not in endpoint


@pytest.mark.parametrize("pages", [True, False])
def test_a_person_stays_with_the_agent_that_knows_the_session(pages: bool) -> None:
    service = of_kind(rendered("--set", f"http.pages={str(pages).lower()}", "--set", "config.mode=execute"), "Service")
    assert service["spec"].get("sessionAffinity") == ("ClientIP" if pages else None)


def test_the_user_is_the_one_of_the_image() -> None:
    dockerfile = (TOP / "Dockerfile").read_text()
    assert "USER 10001:10001" in dockerfile
    assert "EXPOSE 9464" in dockerfile


def test_secrets_are_mounted_for_the_user_alone_and_never_written() -> None:
    values = next(path for path in VALUES if path.stem == "execute")
    pod = of_kind(rendered("--values", values), "Deployment")["spec"]["template"]["spec"]
    assert [volume["secret"] for volume in pod["volumes"] if "secret" in volume] == [
        {"secretName": "rackwise-kafka", "defaultMode": 0o440},
        {"secretName": "rackwise-journal", "defaultMode": 0o440},
    ]
    (container,) = pod["containers"]
    assert all(one.get("readOnly") for one in container["volumeMounts"] if one["name"] != "tmp")
    (variable,) = (one for one in container["env"] if "valueFrom" in one)
    assert variable["valueFrom"] == {"secretKeyRef": {"name": "rackwise-executor", "key": "password"}}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ('{"config": {"pol": {"interval": "10s"}}}', "pol"),
        ('{"config": {"poll": {"intervall": "10s"}}}', "intervall"),
        ('{"config": {"mode": "wild"}}', "mode"),
        ('{"config": {"metrics": {"top_groups": "many"}}}', "top_groups"),
        ('{"replica": 2}', "replica"),
        ('{"replicas": 200}', "replicas"),
        ('{"mounts": [{"secret": "a", "configMap": "b", "path": "/x"}]}', "mounts"),
        ('{"mounts": [{"secret": "a", "path": "relative"}]}', "mounts"),
        ('{"mounts": [{"secret": "a", "path": "/etc/rackwise/config"}]}', "mounts"),
        ('{"env": [{"name": "PASSWORD", "value": "hunter2"}]}', "env"),
        ('{"image": {"digest": "latest"}}', "digest"),
        ('{"networkPolicy": {"kafkaPorts": []}}', "kafkaPorts"),
        ('{"serviceMonitor": {"interval": "often"}}', "interval"),
        ('{"config": {"http": {"port": 9000}}}', "config.http.port is always 9464"),
        ('{"config": {"http.bind": "127.0.0.1"}}', "config.http.bind is http.bind of the chart"),
    ],
)
def test_bad_values_are_refused(values: str, why: str) -> None:
    assert why in refusal(values)


SECRETS = [
    '{"kafka": {"sasl.password": "hunter2"}}',
    '{"kafka": {"sasl": {"password": "hunter2"}}}',
    '{"kafka.sasl.password": "hunter2"}',
    '{"kafka": {"ssl.key.pem": "hunter2"}}',
    '{"kafka": {"ssl.key.password": "hunter2"}}',
    '{"kafka": {"sasl.jaas.config": "hunter2"}}',
    '{"execute": {"kafka": {"sasl.password": "hunter2"}}}',
    '{"rack.locator": {"properties": {"inventory.token": "hunter2"}}}',
    '{"spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "hunter2"}}}',
    '{"kafka": {"sasl.password": "${file:/x}hunter2"}}',
    '{"kafka": {"sasl.password": "hunter2${env:X}"}}',
]


@pytest.mark.parametrize("config", SECRETS)
def test_a_secret_that_is_written_out_is_refused_and_not_repeated(config: str) -> None:
    why = refusal(f'{{"config": {config}}}')
    assert "holds a secret" in why or "additional properties 'sasl' not allowed" in why
    assert "hunter2" not in why


def test_paths_and_names_beside_a_secret_are_no_secrets() -> None:
    harmless = {
        "kafka": {"ssl.keystore.location": "/k/ks.pem", "ssl.key.location": "/k/key.pem", "sasl.username": "rackwise"},
        "operator": {"name": "ann", "key_file": "/k/ann.key"},
        "execute": {"journal_key_file": "/k/journal.key"},
        "approve": {"people": {"ann": "/k/ann.key"}},
    }
    assert rendered("--set-json", f"config={json.dumps(harmless)}")


def test_the_chart_takes_for_secret_what_rackwise_takes_for_secret(tmp_path: Path) -> None:
    """Each setting of text under a name that says so is refused in the chart, and no other is."""
    names = {
        *("kafka.sasl.password", "kafka.ssl.key.pem", "a.passwd", "a.pass-phrase", "a.passphrase", "x.private-key"),
        *("x.access_key", "x.sas", "x.sig", "x.auth", "x.author", "x.keys", "x.key", "key", "x.apikey", "x.monkey"),
        *("x.credentials", "x.Authorization", "x.TOKEN", "x.tokens", "x.keyfile", "x.pwd", "x.secretary", "x.plain"),
        *(f"{section}.{name}" for section, field in Settings.model_fields.items()
          for name in getattr(field.annotation, "model_fields", {})),
    }  # fmt: skip
    template = tmp_path / "chart"
    (template / "templates").mkdir(parents=True)
    (template / "Chart.yaml").write_text("apiVersion: v2\nname: names\nversion: 0.1.0\n")
    helpers = (CHART / "templates" / "_helpers.tpl").read_text()
    marked = helpers.replace('{{- fail (printf "config.%s holds a secret', '{{- (printf "%s\\n" $name) }}{{- /*')
    head, _, rest = marked.partition("{{- /*")
    (template / "templates" / "_helpers.tpl").write_text(head + rest.partition("}}")[2])
    call = '{{ include "rackwise.refuseSecrets" (dict "name" "" "value" .Values.names) }}'
    (template / "templates" / "names.yaml").write_text(f"text: |\n  {call.replace('}}', '| nindent 2 }}')}\n")
    values = tmp_path / "values.json"
    values.write_text(json.dumps({"names": dict.fromkeys(sorted(names), "hunter2")}))
    done = run(tool("helm"), "template", "names", template, "--values", values)
    assert done.returncode == 0, done.stderr
    refused = set(yaml.safe_load(done.stdout)["text"].split())
    assert refused == {name for name in names if is_secret_name(name)} | {"kafka.ssl.key.pem"}
    assert len(refused) > 10


def test_the_schema_of_the_values_is_the_present_one() -> None:
    assert values_schema.SCHEMA.read_text() == values_schema.text(), "python -m deploy.release.values_schema"


def test_the_schema_names_each_value_and_the_defaults_conform() -> None:
    schema = values_schema.values_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.validate(defaults, schema)
    assert set(defaults) == set(schema["properties"]) - {"global"}
    for name, value in defaults.items():
        if (
            isinstance(value, dict)
            and name not in {"config", "resources"}
            and "properties" in schema["properties"][name]
        ):
            assert set(value) == set(schema["properties"][name]["properties"]), name


def test_one_values_file_of_the_tests_changes_each_value() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    changed = yaml.safe_load(next(path for path in VALUES if path.stem == "all").read_text())
    assert set(changed) | {"env"} == set(defaults)


def test_the_version_is_the_one_of_the_package() -> None:
    version = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_large_numbers_and_awkward_texts_reach_the_settings_as_they_were() -> None:
    given = {"groups": {"a:b #c": {"acceptable.recovery.lag": 12_345_678_901}}, "topics": {"prefix": "{{ .Values }}"}}
    config = of_kind(rendered("--set-json", f"config={json.dumps(given)}"), "ConfigMap")["data"]["rackwise.yaml"]
    told = yaml.safe_load(config)
    assert (told["groups"], told["topics"]) == (given["groups"], given["topics"])


@pytest.mark.parametrize("mode", ["propose", "execute"])
def test_the_notes_name_the_release_and_what_it_may_change(mode: str, tmp_path: Path) -> None:
    """Helm shows them after an installation alone, so a copy of the chart has them as a resource."""
    chart = shutil.copytree(CHART, tmp_path / "rackwise")
    given = (chart / "templates" / "NOTES.txt").read_text()
    (chart / "templates" / "_notes.tpl").write_text(f'{{{{- define "notes" }}}}{given}{{{{ end }}}}')
    (chart / "templates" / "notes.yaml").write_text('text: {{ include "notes" . | quote }}\n')
    options = ("--namespace", "kafka", "--set", f"config.mode={mode}", "--show-only", "templates/notes.yaml")
    done = run(tool("helm"), "template", "racks", chart, *options)
    assert done.returncode == 0, done.stderr
    notes = yaml.safe_load(done.stdout)["text"]
    assert f"mode {mode}" in notes
    assert ("It changes nothing in this mode" in notes) is (mode == "propose")
    assert "No brokers are set" in notes
    assert "port-forward service/racks-rackwise 9464" in notes


def test_the_packed_chart_is_the_chart(tmp_path: Path) -> None:
    packed = run(tool("helm"), "package", CHART, "--destination", tmp_path)
    assert packed.returncode == 0, packed.stderr
    (archive,) = tmp_path.glob("*.tgz")
    with tarfile.open(archive) as files:
        names = {name.removeprefix("rackwise/") for name in files.getnames()}
    assert names == {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}
