"""Settings of the server: nothing that would let strangers in is taken, and the sentence says what to do."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from config.http_settings import HttpSettings, is_loopback
from config.load import SettingsRefusedError, load_settings
from config.setting_mistake import SettingMistake

OIDC = {"issuer": "https://login.example", "client_id": "rackwise", "view": ["*"]}


def of(**given: Any) -> HttpSettings:
    return HttpSettings.model_validate(given)


@pytest.mark.parametrize(
    "bind",
    ["0.0.0.0", "::", "10.0.0.1", "agent.example", "localhost.example", "127.evil.example"],  # noqa: S104
)
def test_what_other_machines_reach_needs_a_sign_in_or_no_pages(bind: str) -> None:
    with pytest.raises((SettingMistake, ValidationError), match=r"http\.auth\.tokens_file"):
        of(bind=bind)
    assert of(bind=bind, pages=False).pages is False
    assert of(bind=bind, enabled=False).enabled is False
    assert of(bind=bind, auth={"tokens_file": "/x"}).auth.is_set
    assert of(bind=bind, auth={"oidc": OIDC}, url="https://x.example").auth.is_set
    assert of(bind=bind, auth={"proxy": {"networks": ["10.0.0.0/8"], "view": ["*"]}}).auth.is_set


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_this_machine_needs_none(bind: str) -> None:
    assert is_loopback(bind)
    assert not of(bind=bind).auth.is_set


MISTAKES: list[tuple[str, str]] = [
    ("http.tls.cert_file=x", "http.tls.key_file: http.tls.cert_file and http.tls.key_file go together"),
    ("http.tls.client_ca_file=x", "http.tls.client_ca_file: client certificates need"),
    ("http.auth.certificates.view=CN=a", "http.tls.client_ca_file: http.auth.certificates needs"),
    ("http.auth.oidc.issuer=https://login.example", "http.auth.oidc.client_id"),
    ("http.auth.oidc.issuer=http://login.example", "http.auth.oidc.issuer: it is plain http"),
    ("http.auth.oidc.issuer=https://u:p@login.example", "http.auth.oidc.issuer: it is no URL of an issuer"),
    ("http.auth.oidc.issuer=https://login.example?x=1", "http.auth.oidc.issuer: it is no URL of an issuer"),
    ("http.auth.oidc.issuer=file:///etc/passwd", "http.auth.oidc.issuer: it is no URL of an issuer"),
    ("http.auth.oidc.client_id=x", "http.auth.oidc.issuer: sign-in over OIDC needs it"),
    ("http.auth.proxy.networks=10.0.0.0/8", "http.auth.proxy.view: no group of the proxy has a role"),
    ("http.auth.proxy.networks=10.0.0.1/8", "http.auth.proxy.networks: it is an address inside a network"),
    ("http.auth.proxy.networks=proxy.example", "http.auth.proxy.networks: it is not a network"),
    ("http.auth.proxy.networks=0.0.0.0/0", "http.auth.proxy.networks: it covers every address"),
    ("http.auth.proxy.networks=::/0", "http.auth.proxy.networks: it covers every address"),
    ("http.auth.proxy.view=staff", "http.auth.proxy.networks: it is empty"),
    ("http.auth.proxy.name_header=Cookie", "http.auth.proxy.name_header: it is no header"),
    ("http.auth.proxy.name_header=X User", "http.auth.proxy.name_header: it is no header"),
    ("http.auth.proxy.role_header=x-forwarded-user", "http.auth.proxy.role_header: it is the same"),
    ("http.url=https://a.example/path", "http.url: scheme and host are expected"),
    ("http.url=javascript:alert(1)", "http.url: scheme and host are expected"),
    ("http.url=https://a.example:port", "http.url: scheme and host are expected"),
    ("http.url=https://u@a.example", "http.url: scheme and host are expected"),
    ("http.auth.session_idle=1s", "http.auth.session_idle: it must be at least 1m"),
    ("http.auth.session_max=30d", "http.auth.session_max: it must be at most 7d"),
]


@pytest.mark.parametrize(("assign", "sentence"), MISTAKES, ids=[assign for assign, _ in MISTAKES])
def test_a_mistake_is_named_with_its_setting(assign: str, sentence: str) -> None:
    with pytest.raises(SettingsRefusedError) as error:
        load_settings(assignments=[assign], environ={})
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://A.example", "https://a.example"), ("https://a.example/", "https://a.example"),
        ("https://a.example:443", "https://a.example"), ("http://a.example:80", "http://a.example"),
        ("https://a.example:8443", "https://a.example:8443"), ("http://[::1]:9464", "http://[::1]:9464"),
    ],
)  # fmt: skip
def test_a_url_is_kept_as_browsers_write_an_origin(url: str, origin: str) -> None:
    assert of(url=url).url == origin


def test_both_secrets_of_a_client_contradict_each_other() -> None:
    oidc = {**OIDC, "client_secret": "x", "client_secret_file": "y"}
    with pytest.raises((SettingMistake, ValidationError), match="contradicts"):
        of(auth={"oidc": oidc}, url="https://x.example")
