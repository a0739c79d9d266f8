"""One target's service behind Apprise: the only module that imports it, and the fence around its addresses.

An address holds its token in any of its parts. Apprise and its HTTP client write addresses into their logs and errors,
so neither reaches ours: of what they log, only a kind of failure from a list of our own is kept.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from apprise import Apprise, AppriseAsset
from apprise.common import NotifyFormat, NotifyType, OverflowMode, PersistentStoreMode
from apprise.plugins.base import NotifyBase

from agent.errors import ConfigError
from agent.notify.notification import NotifyMessage, TargetAnswer
from agent.values.finding import FindingSeverity

_LOGGERS = ("apprise", "urllib3", "requests", "requests_oauthlib", "oauthlib", "charset_normalizer")
_STATUS = re.compile(r"error=(\d{3})\b")
_CLUES = (
    ("timed out", "no answer in time"),
    ("refused", "the connection was refused"),
    ("certificate", "its certificate is not accepted"),
    ("name or service not known", "its host name is unknown"),
    ("name resolution", "its host name is unknown"),
    ("nodename nor servname", "its host name is unknown"),
    ("getaddrinfo failed", "its host name is unknown"),
    ("connection aborted", "the connection was closed without an answer"),
    ("remote end closed", "the connection was closed without an answer"),
    ("unreachable", "its network is unreachable"),
    ("authentication", "it refused the user or password"),
)
"""What a failure's own text has, in lower case -> what is shown of it."""
_TYPES = {
    FindingSeverity.CRITICAL: NotifyType.FAILURE,
    FindingSeverity.WARNING: NotifyType.WARNING,
    FindingSeverity.INFO: NotifyType.INFO,
    None: NotifyType.INFO,
}


class NotifyService:
    """A target that can be sent to; one message at a time."""

    def __init__(self, name: str, url: str, page: str | None = None) -> None:
        """Raises ConfigError for an address that is none of Apprise's; the address is not in its sentence."""
        self.name = name
        with _quiet():
            service = _opened(url, page)
        if service is None:
            raise ConfigError(
                f"notify.targets.{name}: its address cannot be used",
                why="Apprise knows no service of that form, or a part of the address is missing",
                todo="Write it as docs/notifications.md shows; the address is not repeated here, as it holds secrets.",
            )
        self._service = service

    @property
    def kind(self) -> str:
        """The name of the service, such as ``Slack``."""
        return str(self._service.service_name)

    @property
    def most_chars(self) -> int:
        """Characters of a message's body that the service takes."""
        return int(self._service.body_maxlen)

    def send(self, message: NotifyMessage) -> TargetAnswer:
        """Send it, within Apprise's timeouts of each socket call. Raises nothing."""
        with _quiet() as heard:
            try:
                accepted = self._service.notify(
                    body=message.body,
                    title=message.title,
                    notify_type=_TYPES[message.severity],
                    body_format=NotifyFormat.TEXT,
                    overflow=OverflowMode.TRUNCATE,
                )
            except Exception as error:  # noqa: BLE001 its text may hold the address
                return TargetAnswer(accepted=False, sentence=f"not sent: {type(error).__name__} in Apprise")
        return TargetAnswer(accepted=bool(accepted), sentence="accepted" if accepted else heard.sentence)


def _opened(url: str, page: str | None) -> NotifyBase | None:
    asset = AppriseAsset(
        app_id="rackwise",
        app_desc="rackwise",
        app_url=page or "",
        image_url_mask="",
        image_url_logo="",
        async_mode=False,
        secure_logging=True,
        http_redirects=False,  # another host would get the token
        interpret_emojis=False,
        storage_mode=PersistentStoreMode.MEMORY,
        allow_templates=False,
    )
    try:
        return Apprise.instantiate(url, asset=asset)
    except Exception:  # noqa: BLE001 its text may hold the address
        return None


class AnswerReader(logging.Handler):
    """Reads what Apprise logs in one thread, and keeps the kind of a failure alone."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._thread = threading.get_ident()
        self._status = ""
        self._clue = ""

    @property
    def sentence(self) -> str:
        """Why the message was not accepted."""
        return f"not accepted: {self._status or self._clue or 'Apprise gives no reason that is fit to be shown'}"

    def emit(self, record: logging.LogRecord) -> None:
        """Read one record."""
        if record.thread != self._thread:
            return
        try:
            text = record.getMessage().lower()
        except Exception:  # noqa: BLE001 a record that cannot be written is none of ours
            return
        found = _STATUS.search(text)
        if found is not None:
            self._status = _status_words(int(found[1]))
        self._clue = next((shown for clue, shown in _CLUES if clue in text), self._clue)


def _status_words(code: int) -> str:
    try:
        return f"HTTP {code} {HTTPStatus(code).phrase}"
    except ValueError:
        return f"HTTP {code}"


@contextmanager
def _quiet() -> Iterator[AnswerReader]:
    """Nothing that Apprise and what it uses log gets to a handler of ours, here or later."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    reader = AnswerReader()
    logger = logging.getLogger("apprise")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(reader)
    try:
        yield reader
    finally:
        logger.removeHandler(reader)
