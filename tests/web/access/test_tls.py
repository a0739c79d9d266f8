"""TLS of the server and client certificates, with a CA of the test."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent.errors import ConfigError
from agent.web.access.person import certified, tls_context
from agent.web.access.request_checks import AccessRefused
from agent.web.health_probe import is_alive
from config.http_settings import CertificateSettings, TlsSettings
from tests.web.access.site import FORM, PLAN, Answer, Site, csrf_in, site

NOW = dt.datetime.now(dt.UTC)
Key = ec.EllipticCurvePrivateKey
SERVED = {"approve": ["CN=ann"], "operate": ["email:opa@example.org"], "view": ["CN=vic,OU=ops"]}


class Authority:
    """A CA that issues what a test asks for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a CA")])
        self.file = self._write(
            "ca", self._certificate(self.name, self.key, x509.BasicConstraints(ca=True, path_length=None))
        )

    def issue(
        self, name: str, *parts: tuple[x509.ObjectIdentifier, str], emails: tuple[str, ...] = (), **more: Any
    ) -> tuple[Path, Path]:
        """Certificate and key of that subject."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in parts])
        names: list[x509.GeneralName] = [x509.DNSName("localhost"), *(x509.RFC822Name(email) for email in emails)]
        certificate = self._certificate(subject, key, x509.SubjectAlternativeName(names), **more)
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return self._write(name, certificate), self._private(f"{name}.key", secret)

    def _certificate(
        self, subject: x509.Name, key: Key, extension: x509.ExtensionType, days: int = 2, signed_by: Key | None = None
    ) -> bytes:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - dt.timedelta(days=3))
            .not_valid_after(NOW + dt.timedelta(days=days))
            .add_extension(extension, critical=False)
        )
        return builder.sign(signed_by or self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _write(self, name: str, data: bytes) -> Path:
        file = self.folder / f"{name}.pem"
        file.write_bytes(data)
        return file

    def _private(self, name: str, data: bytes) -> Path:
        file = self.folder / name
        file.touch(0o600)
        file.write_bytes(data)
        return file


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def here(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with over_tls(authority, tmp_path_factory.mktemp("tls")) as it:
        yield it


@contextmanager
def over_tls(authority: Authority, folder: Path) -> Iterator[Site]:
    certificate, key = authority.issue("server", (NameOID.COMMON_NAME, "localhost"))
    tls = {"cert_file": str(certificate), "key_file": str(key), "client_ca_file": str(authority.file)}
    auth = {"tokens_file": str(folder / "tokens.yaml"), "certificates": SERVED}
    with site(folder, {"tls": tls, "auth": auth}) as it:
        it.tls = trusting(authority)
        yield it


def trusting(authority: Authority, own: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.file))
    if own is not None:
        context.load_cert_chain(*own)
    return context


def asked(  # noqa: PLR0917
    here: Site,
    context: ssl.SSLContext,
    method: str = "GET",
    path: str = "/api/v1/whoami",
    headers: dict[str, str] | None = None,
    body: str = "",
) -> Answer:
    before, here.tls = here.tls, context
    try:
        return here.ask(method, path, headers, body)
    finally:
        here.tls = before


def test_over_tls_cookies_are_secure_and_of_this_host_alone(here: Site) -> None:
    form = here.ask("GET", "/sign-in")
    assert form.headers["strict-transport-security"].startswith("max-age=31536000")
    (name,) = form.cookies
    assert name.startswith("__Host-")
    cookie = next(line for line in form.raw.decode().split("\r\n") if line.lower().startswith("set-cookie"))
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Domain" not in cookie


def test_the_health_check_of_the_image_knows_a_server_that_answers_to_tls_alone(here: Site, tmp_path: Path) -> None:
    port = int(here.server.address.rpartition(":")[2])
    asked_by = [sys.executable, "-m", "agent.web.health_probe", str(port)]
    assert subprocess.run(asked_by, capture_output=True, check=False, timeout=60).returncode == 0
    with site(tmp_path) as plain:
        assert is_alive(int(plain.server.address.rpartition(":")[2]))


def test_the_health_check_fails_where_nothing_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert not is_alive(port)
    assert not is_alive(port)


def test_people_sign_in_with_tokens_over_tls(here: Site) -> None:
    ann = here.signed_in("ann")
    assert ann.cookie.startswith("__Host-")
    assert here.ask("GET", "/api/v1/whoami", {"Cookie": ann.cookie}).status == 200
    plain = ann.cookie.removeprefix("__Host-")
    assert here.ask("GET", "/api/v1/whoami", {"Cookie": plain}).status == 401, "another cookie"


@pytest.mark.parametrize(
    ("parts", "emails", "name", "path", "status"),
    [
        ([(NameOID.COMMON_NAME, "ann")], (), "ann", PLAN, 200),
        ([(NameOID.COMMON_NAME, "opa")], ("opa@example.org",), "opa", PLAN, 200),
        ([(NameOID.COMMON_NAME, "vic"), (NameOID.ORGANIZATIONAL_UNIT_NAME, "ops")], (), "vic", PLAN, 403),
        ([(NameOID.COMMON_NAME, "vic")], (), "vic", "/api/v1/whoami", 403),
        ([(NameOID.COMMON_NAME, "vic,OU=ops")], (), "vic,OU=ops", "/api/v1/whoami", 403),
        ([(NameOID.COMMON_NAME, "CN=ann")], (), "CN=ann", "/api/v1/whoami", 403),
        ([(NameOID.COMMON_NAME, "email:opa@example.org")], (), "", "/api/v1/whoami", 403),
        ([(NameOID.ORGANIZATIONAL_UNIT_NAME, "CN=ann")], (), "localhost", "/api/v1/whoami", 403),
        ([(NameOID.COMMON_NAME, "ann\u202e")], (), "", "/api/v1/whoami", 401),
    ],
    ids=[
        "by CN",
        "by email",
        "by the whole subject",
        "a part of it",
        "a subject in a CN",
        "a CN in a CN",
        "an email in a CN",
        "a CN in an OU",
        "a right-to-left mark",
    ],
)
def test_a_certificate_of_the_ca_has_the_roles_of_its_names(  # noqa: PLR0917
    here: Site, authority: Authority, parts: Any, emails: tuple[str, ...], name: str, path: str, status: int
) -> None:
    context = trusting(authority, authority.issue("client", *parts, emails=emails))
    here.done.clear()
    if path == PLAN:
        answer = asked(here, context, "POST", path, {"Content-Type": "application/json"}, "{}")
    else:
        answer = asked(here, context, path=path)
    assert answer.status == status, answer
    assert here.done == ([(name, PLAN)] if status == 200 else [])


def test_a_browser_with_a_certificate_needs_the_form_that_it_was_shown(here: Site, authority: Authority) -> None:
    context = trusting(authority, authority.issue("client", (NameOID.COMMON_NAME, "ann")))
    page = asked(here, context, path="/")
    cookie = {"Cookie": "; ".join(f"{key}={value}" for key, value in page.cookies.items()), "Content-Type": FORM}
    assert asked(here, context, "POST", PLAN, cookie, "a=b").status == 403
    assert asked(here, context, "POST", PLAN, cookie, f"csrf={csrf_in(page)}").status == 200
    cross = {"Content-Type": "application/json", "Origin": "https://evil.example"}
    assert asked(here, context, "POST", PLAN, cross, "{}").status == 403


@pytest.mark.parametrize("made", ["by another CA", "that has ended"])
def test_a_certificate_is_not_let_in(here: Site, authority: Authority, made: str) -> None:
    more: dict[str, Any] = {"signed_by": ec.generate_private_key(ec.SECP256R1())} if "CA" in made else {"days": -1}
    context = trusting(authority, authority.issue("bad", (NameOID.COMMON_NAME, "ann"), **more))
    assert asked(here, context).status == 0


def test_a_certificate_that_ends_while_its_connection_is_open_counts_no_more() -> None:
    scope = {"rackwise.certificate": {"subject": ((("commonName", "ann"),),), "notAfter": "Jan  1 00:00:00 2026 GMT"}}
    rules = CertificateSettings(approve=("CN=ann",))
    ends = ssl.cert_time_to_seconds("Jan  1 00:00:00 2026 GMT")
    assert (person := certified(scope, rules, ends - 1)) is not None
    assert person.name == "ann"
    with pytest.raises(AccessRefused, match="expired"):
        certified(scope, rules, ends)


def test_a_handshake_that_never_comes_is_ended(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.web.access.person.HANDSHAKE_S", 0.3)
    with over_tls(authority, tmp_path) as here:
        host, port = here.server.address.split(":")
        with socket.create_connection((host, int(port)), 20) as raw:
            assert raw.recv(1) == b"", "long before the library's own minute"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_tls_is_not_spoken(here: Site, authority: Authority) -> None:
    context = trusting(authority)
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(OSError, match=r"(?i)version|protocol|alert"):
        asked(here, context)


@pytest.mark.parametrize("wrong", ["no key", "a key of another", "a key that others read", "a key with a password"])
def test_files_that_cannot_be_used_are_named(authority: Authority, wrong: str, tmp_path: Path) -> None:
    certificate, key = authority.issue("one", (NameOID.COMMON_NAME, "localhost"))
    _, other = authority.issue("two", (NameOID.COMMON_NAME, "localhost"))
    chosen = tmp_path / "key"
    if wrong == "a key with a password":
        secret = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
        )
        chosen.touch(0o600)
        chosen.write_bytes(secret)
    elif wrong != "no key":
        chosen.touch(0o600)
        chosen.write_bytes((other if wrong == "a key of another" else key).read_bytes())
        chosen.chmod(0o644 if "others" in wrong else 0o600)
    with pytest.raises(ConfigError, match=r"http\.tls") as error:
        tls_context(TlsSettings(cert_file=str(certificate), key_file=str(chosen)))
    assert error.value.why
    assert error.value.todo
