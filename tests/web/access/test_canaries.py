"""No secret of the server's settings, no token and no hash of one is in any answer, header, log line or error."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from agent.errors import ConfigError
from agent.web.access.gate import make_gate
from config.load import LoadedSettings, load_settings
from config.logging import set_up_logging
from tests.docs.openapi import committed
from tests.web.access.issuer import running_issuer
from tests.web.access.site import FORM, PLAN, Answer, Site, fresh_address, site
from tests.web.api.agents import view_of
from tests.web.test_metrics import CYCLE

CANARY = "canary-51fe"
PATHS = [f"/api/v1{path}" for path, of in committed()["paths"].items() if "get" in of and path != "/events"]
PAGES = [
    "/",
    "/sign-in",
    "/nothing",
    "/sign-in/oidc",
    "/sign-in/oidc/callback?state=x&code=y",
    "/livez",
    "/readyz",
    "/metrics",
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, LoadedSettings, io.StringIO]]:
    """A server with a secret in every setting that may have one, and what it logs."""
    folder = tmp_path_factory.mktemp("canaries")
    with running_issuer() as issuer:
        given = {
            "http.url": "http://localhost", "http.port": "0", "http.auth.tokens_file": str(folder / "tokens.yaml"),
            "http.auth.oidc.issuer": issuer.url, "http.auth.oidc.client_id": "rackwise",
            "http.auth.oidc.client_secret": CANARY, "http.auth.oidc.view": "*",
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.username": "u", "kafka.sasl.password": CANARY,
            "kafka.bootstrap.servers": "h:1",
            "notify.targets.ops.url": f"json://user:{CANARY}@127.0.0.1:9/{CANARY}?+X-Token={CANARY}",
            "execute.kafka.security.protocol": "SASL_PLAINTEXT", "execute.kafka.sasl.mechanism": "PLAIN",
            "execute.kafka.sasl.username": "e", "execute.kafka.sasl.password": CANARY,
        }  # fmt: skip
        loaded = load_settings(assignments=[f"{name}={value}" for name, value in given.items()], environ={})
        stream = io.StringIO()
        set_up_logging(form="json", secrets=loaded.secrets(), stream=stream)
        http = loaded.settings.http
        view = view_of(CYCLE)
        view.settings = loaded
        try:
            with site(folder, http.model_dump(mode="json", by_alias=True), view=view) as here:
                yield here, loaded, stream
        finally:
            structlog.reset_defaults()


def assert_clean(answer: Answer, here: Site) -> None:
    text = answer.raw.decode("utf-8", "replace")
    assert answer.status != 500
    assert CANARY not in text
    assert not [name for name, token in here.tokens.items() if token in text]
    assert not re.search(r"[0-9a-f]{32}:[0-9a-f]{64}", text)


@pytest.mark.parametrize("path", [*PATHS, *PAGES])
def test_no_answer_holds_a_secret(world: tuple[Site, LoadedSettings, io.StringIO], path: str) -> None:
    here = world[0]
    path = re.sub(r"\{\w+\}", "x", path)
    asked = [{}, {"Accept": "text/html"}, here.bearer("opa"), {"Authorization": f"Bearer {CANARY}"}]
    for headers in asked:
        assert_clean(here.ask("GET", path, {**headers}, source=fresh_address()), here)


def test_the_settings_in_force_show_stars(world: tuple[Site, LoadedSettings, io.StringIO]) -> None:
    here = world[0]
    answer = here.ask("GET", "/api/v1/settings?limit=1000&q=secret", here.bearer("vic"))
    assert answer.status == 200, answer
    assert "http.auth.oidc.client_secret" in answer.text
    assert "******" in answer.text
    assert_clean(answer, here)


def test_a_write_and_a_failed_sign_in_leave_no_secret_in_the_log(
    world: tuple[Site, LoadedSettings, io.StringIO],
) -> None:
    here, _, stream = world
    here.signed_in("ann")
    for headers in (here.bearer("ann"), {"Authorization": f"Bearer {CANARY}"}, {"Cookie": CANARY}):
        assert_clean(here.ask("POST", PLAN, {**headers, "Content-Type": FORM}, f"csrf={CANARY}"), here)
    logged = stream.getvalue()
    assert "signed_in" in logged
    assert "sign_in_failed" in logged
    assert CANARY not in logged
    assert not [name for name, token in here.tokens.items() if token in logged]


def test_what_the_gate_is_made_of_shows_no_secret(world: tuple[Site, LoadedSettings, io.StringIO]) -> None:
    here, loaded, _ = world
    assert CANARY not in repr((here.gate, loaded.settings, loaded.settings.http))


def test_the_file_of_a_client_s_secret_is_its_owner_s_alone(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{CANARY}\n")
    secret.chmod(0o644)
    given = ("http.url=http://localhost", "http.auth.oidc.issuer=http://127.0.0.1:1", "http.auth.oidc.client_id=x",
             "http.auth.oidc.view=*", f"http.auth.oidc.client_secret_file={secret}")  # fmt: skip
    settings = load_settings(assignments=given, environ={}).settings.http
    with pytest.raises(ConfigError, match="chmod 600") as error:
        make_gate(settings)
    assert CANARY not in str(error.value)
