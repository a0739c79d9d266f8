"""Services behind Apprise, with real requests: what they are sent, what their answer becomes, and no secret in it."""

from __future__ import annotations

import email
import email.policy
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest
import requests

from agent.errors import ConfigError
from agent.notify.notification import EventNotification, NotificationEvent, NotifyMessage, composed
from agent.notify.service import NotifyService
from agent.values.finding import FindingSeverity
from tests.notify.receivers import Receiver, mail_server, receiver

CANARY = "CANARYq7Zx2Wv9"
EVENT = EventNotification(
    NotificationEvent.FINDING, "k", "topic/a<!channel>@here: it is under its min ISR", FindingSeverity.CRITICAL
)


def a_message() -> NotifyMessage:
    return composed([EVENT], cluster="c1", page="https://page.example.org", left_out=0, most_chars=2_000)


HARMLESS = "topic/a\u2039!channel\u203a\uff20here: it is under its min ISR"
TITLE = f"rackwise on c1: {HARMLESS}"
BODY = f"critical: {HARMLESS}\nhttps://page.example.org/findings"


def test_a_webhook_gets_title_body_and_kind() -> None:
    with receiver() as held:
        answer = NotifyService("ops", f"json://{held.address}/{CANARY}").send(a_message())
    assert answer == (True, "accepted")
    [(path, body)] = held.requests
    assert path == f"/{CANARY}"
    document = json.loads(body)
    assert (document["title"], document["message"], document["type"]) == (TITLE, BODY, "failure")


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (500, "not accepted: HTTP 500 Internal Server Error"),
        (403, "not accepted: HTTP 403 Forbidden"),
        (429, "not accepted: HTTP 429 Too Many Requests"),
        (799, "not accepted: HTTP 799"),
        (307, "not accepted: HTTP 307 Temporary Redirect"),
        ("close", "not accepted: the connection was closed without an answer"),
        ("hang", "not accepted: no answer in time"),
    ],
)
def test_an_answer_that_is_no_success_is_said_without_the_address(told: int | str, sentence: str) -> None:
    with receiver(told) as held:
        answer = NotifyService("ops", f"json://u:{CANARY}@{held.address}/{CANARY}?cto=1&rto=1").send(a_message())
    assert answer == (False, sentence)
    assert len(held.requests) == 1  # a redirect is not followed: another host would get the token


def test_a_target_that_is_not_there() -> None:
    with receiver() as held:
        gone = held.address
    assert NotifyService("ops", f"json://{gone}/x").send(a_message()).sentence == (
        "not accepted: the connection was refused"
    )


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A server that gets the requests to every host."""
    real = requests.Session.request
    with receiver() as held:

        def request(self: requests.Session, method: str, url: str, **more: object) -> requests.Response:
            parts = urlsplit(url)
            return real(self, method, urlunsplit(("http", held.address, parts.path, parts.query, "")), **more)  # type: ignore[arg-type] # passed on

        monkeypatch.setattr(requests.Session, "request", request)
        yield held


FORMS = {
    "slack": f"slack://T1JJ3T3L2/A1BRTD4JD/{CANARY}TIiajkdnla/#ops",
    "pagerduty": f"pagerduty://{CANARY}A1BRTD4JD@{CANARY}T1JJ3T3L2",
    "teams": f"workflows://prod-1.example.org:443/{CANARY}WF/{CANARY}SIG",
    "discord": f"discord://4174296324183162/{CANARY}B4A2NJd",
    "telegram": f"tgram://123456789:{CANARY}abcdefghijklmnopq/12315544",
    "opsgenie": f"opsgenie://{CANARY}-1234-1234-123456789012",
}


@pytest.mark.parametrize("form", FORMS)
def test_chats_and_pagers_get_the_text_in_their_own_form_without_a_mention(form: str, local: Receiver) -> None:
    NotifyService("ops", FORMS[form]).send(a_message())
    assert local.requests, "it asked no server"
    body = local.requests[-1][1]
    assert "under its min ISR" in body
    for mark in ("<!channel>", "&lt;!channel&gt;", "@here"):
        assert mark not in body
    document = json.loads(body)
    match form:
        case "slack":
            assert document["attachments"][0]["text"] == BODY
            assert document["attachments"][0]["title"] == TITLE
        case "pagerduty":
            assert (document["event_action"], document["payload"]["severity"]) == ("trigger", "critical")
            assert document["payload"]["summary"].split() == f"{TITLE} {BODY}".split()
        case "teams":
            card = document["attachments"][0]
            assert card["contentType"] == "application/vnd.microsoft.card.adaptive"
            assert card["content"]["body"][0]["text"] == TITLE
            assert card["content"]["body"][1]["text"].replace("\\", "") == BODY
        case "discord":
            assert document.get("allowed_mentions", {}).get("parse", []) == []


def test_mail_is_plain_text_with_one_subject() -> None:
    with mail_server() as (mailbox, port):
        url = f"mailto://127.0.0.1:{port}?from=agent@example.org&to=ops@example.org&mode=insecure"
        assert NotifyService("ops", url).send(a_message()).accepted
    mail = email.message_from_string(mailbox.mails[0], policy=email.policy.default)
    assert mail["subject"] == TITLE
    assert [header for header in mail if header.lower() == "bcc"] == []
    parts = [part for part in mail.walk() if part.get_content_maintype() == "text"]
    text = parts[0].get_content()
    assert "under its min ISR" in text
    assert "https://page.example.org/findings" in text


@pytest.mark.parametrize("url", [f"foo://{CANARY}", f"slack://{CANARY}", f"mailto://{CANARY}", "json://", "://", "x"])
def test_an_address_that_is_none_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        NotifyService("ops", url)
    assert CANARY not in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("form", [*FORMS, "json", "mailto"])
@pytest.mark.parametrize("told", [200, 500, "close"])
def test_no_part_of_an_address_is_logged_raised_or_answered(
    form: str, told: int | str, local: Receiver, logged: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    others = {
        "json": f"json://user:{CANARY}@{local.address}/{CANARY}?+X-Token={CANARY}&-key={CANARY}",
        "mailto": f"mailto://user:{CANARY}@127.0.0.1:9?from=a@example.org&to=b@example.org&mode=insecure",
    }
    local.answer = told
    service = NotifyService("ops", {**FORMS, **others}[form])
    answer = service.send(a_message())
    logging.getLogger("apprise").error("after it: %s", CANARY)
    out = capfd.readouterr()
    for text in (logged.getvalue(), answer.sentence, service.kind, repr(service), out.out, out.err):
        assert CANARY not in text


def test_an_error_inside_of_apprise_becomes_an_answer_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    service = NotifyService("ops", f"json://127.0.0.1/{CANARY}")

    def fail(**_: object) -> bool:
        raise ValueError(f"cannot send to json://127.0.0.1/{CANARY}")

    monkeypatch.setattr(service._service, "notify", fail)
    assert service.send(a_message()) == (False, "not sent: ValueError in Apprise")


def test_apprise_is_not_imported_by_what_needs_no_target() -> None:
    asked = "import sys, agent.cli.app, agent.daemon.start, agent.cli.notify; print('apprise' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
