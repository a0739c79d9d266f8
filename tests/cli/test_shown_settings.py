"""``config show`` and ``config check`` in every form, with canaries where secrets are: not one is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

CANARY = "canary-8e07"
SETTINGS = {
    "kafka.bootstrap.servers": "127.0.0.1:1",
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.username": "rackwise",
    "kafka.sasl.password": CANARY,
    "execute.kafka.sasl.password": f"{CANARY}-too",
    "spark.tables": f"s3a://AKIA:{CANARY}/x@bucket/tables",
    "spark.checkpoints": f"https://account.blob.example/c?sig={CANARY}",
    "spark.conf": {
        "spark.hadoop.fs.s3a.secret.key": CANARY,
        "spark.driver.extraJavaOptions": f"-Xss2m -Dstore.password={CANARY}",
    },
    "groups": {"app": {"application.endpoints": [f"http://127.0.0.1:1/lags?token={CANARY}"]}},
    "rack.locator.class": ["wire", "command"],
    "rack.locator.properties": {"command.argv": ["/bin/false", "--token", CANARY, f"--key={CANARY}", CANARY]},
    "observe.call_timeout": "200ms",
    "rack.locator.properties.command.timeout": "100ms",
}
FORMS = ("table", "json", "jsonl", "yaml", "csv")


@pytest.fixture
def settings(tmp_path: Path) -> str:
    file = tmp_path / "rackwise.yaml"
    file.write_text(json.dumps(SETTINGS))
    return str(file)


@pytest.mark.parametrize("form", FORMS)
def test_config_show_has_stars_for_every_secret(
    here: Run, settings: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # the path of the settings file is a cell of each row
    done = here("config", "show", "--origin", "-c", settings, "-o", form)
    assert done.exit_code == 0, done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert "******" in done.stdout
    assert "-Xss2m -Dstore.password=******" in done.stdout
    assert "bucket/tables" in done.stdout


def test_config_show_has_the_program_and_its_options(here: Run, settings: str) -> None:
    rows = here("config", "show", "-c", settings, "-o", "json").json
    values = {row["setting"]: row["value"] for row in rows}
    assert values["rack.locator.properties.command.argv"] == [
        "/bin/false",
        "--token",
        "******",
        "--key=******",
        "******",
    ]
    assert values["spark.tables"] == "s3a://******@bucket/tables"
    assert values["groups.app.application.endpoints"] == ["http://127.0.0.1:1/lags?******"]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("config", "check"), id="config check"),
        pytest.param(("config", "check", "-o", "json"), id="config check as JSON"),
        pytest.param(("doctor",), id="doctor"),
        pytest.param(("status", "-o", "json"), id="status"),
        pytest.param(("config", "check", "--set", f"rack.locator.class=x://u:{CANARY}@h"), id="a wrong value"),
        pytest.param(("config", "check", "--set", f"kafka.client.id=x://u:{CANARY}@h"), id="a note"),
    ],
)
def test_a_command_that_fails_tells_no_secret(here: Run, settings: str, command: tuple[str, ...]) -> None:
    done = here(*command, "-c", settings)
    assert done.exit_code != 0
    assert CANARY not in done.stdout + done.stderr


def test_a_setting_that_is_not_set_is_none(here: Run) -> None:
    table = here("config", "show", "-o", "table").stdout
    assert "?" not in [line.split()[-1] for line in table.splitlines()]
    assert any(line.split()[-1] == "none" for line in table.splitlines())
