"""Sessions of signed-in people and pending sign-ins, kept in the server: a cookie holds a random name alone.

Invariants: a session's cookie is made at sign-in and never taken from a request, so none can be fixed beforehand. Each
has an idle and an absolute end. A person has at most `MOST_EACH`, all together `MOST`; the one unused for longest goes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import OrderedDict
from typing import NamedTuple

from agent.web.access.person import SignedInPerson

MOST = 1_000
MOST_EACH = 20
_COOKIE_CHARS = 43
"""Of 32 random bytes in base64."""


class WebSession(NamedTuple):
    """One sign-in of a person in one browser."""

    person: SignedInPerson
    credential: str
    """Hash of the token entry that it rests on; empty for a sign-in elsewhere."""
    began_ms: int
    """Milliseconds of a clock that does not jump, as are the others."""
    used_ms: int


class SessionStore:
    """All sessions; callable from any thread."""

    def __init__(self, *, idle_ms: int, max_ms: int) -> None:
        self._idle_ms = idle_ms
        self._max_ms = max_ms
        self._lock = threading.Lock()
        self._sessions: OrderedDict[bytes, WebSession] = OrderedDict()
        """Hash of a cookie -> its session; the latest used last."""

    def begin(self, person: SignedInPerson, credential: str, now_ms: int) -> str:
        """A new session; the value of its cookie."""
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_old(now_ms)
            own = [key for key, one in self._sessions.items() if one.person.name == person.name]
            for key in own[: max(0, len(own) - MOST_EACH + 1)]:
                del self._sessions[key]
            while len(self._sessions) >= MOST:
                self._sessions.popitem(last=False)
            self._sessions[_key(cookie)] = WebSession(person, credential, now_ms, now_ms)
        return cookie

    def find(self, cookie: str, now_ms: int, *, used: bool = True) -> WebSession | None:
        """The session of a cookie, which is ``used`` now; None where there is none, or it has ended."""
        if len(cookie) != _COOKIE_CHARS or not cookie.isascii():
            return None
        key = _key(cookie)
        with self._lock:
            found = self._sessions.get(key)
            if found is None:
                return None
            if self._is_over(found, now_ms):
                del self._sessions[key]
                return None
            if used:
                self._sessions[key] = found = found._replace(used_ms=now_ms)
                self._sessions.move_to_end(key)
            return found

    def end(self, cookie: str) -> None:
        """Sign out; of an unknown cookie it does nothing."""
        with self._lock:
            self._sessions.pop(_key(cookie), None)

    @property
    def count(self) -> int:
        """Number of open sessions."""
        return len(self._sessions)

    def _is_over(self, session: WebSession, now_ms: int) -> bool:
        return now_ms - session.used_ms >= self._idle_ms or now_ms - session.began_ms >= self._max_ms

    def _drop_old(self, now_ms: int) -> None:
        for key in [key for key, one in self._sessions.items() if self._is_over(one, now_ms)]:
            del self._sessions[key]


def _key(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()


class FormTokens:
    """CSRF tokens: an HMAC over the browser's cookie and the person, which no page of another site can make.

    By a key of this process: a form that was loaded before a restart is loaded again.
    """

    def __init__(self) -> None:
        self._key = os.urandom(32)

    def of(self, cookie: str, person: SignedInPerson) -> str:
        """The token for forms that this browser is shown while this person is signed in."""
        text = f"{cookie}\0{person.via.value}\0{person.name}"
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    def holds(self, token: str, cookie: str, person: SignedInPerson) -> bool:
        """Whether that is the token."""
        return bool(cookie) and token.isascii() and hmac.compare_digest(token, self.of(cookie, person))


OIDC = "/sign-in/oidc"
CALLBACK = "/sign-in/oidc/callback"
STATE_S = 600.0
"""So long a sign-in may take."""
_MOST_STATES = 1_000
_MOST_EACH = 20
"""States of one address."""


class PendingSignIn(NamedTuple):
    """A sign-in that went to the issuer and has not come back."""

    nonce: str
    verifier: str
    next: str
    address: str
    until_s: float


class PendingSignIns:
    """The states that are out; callable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, PendingSignIn] = OrderedDict()

    def begin(self, following: str, address: str) -> tuple[str, PendingSignIn]:
        """A new one, with its state; the oldest ones of an address give way to it."""
        state, until_s = secrets.token_urlsafe(32), time.monotonic() + STATE_S
        began = PendingSignIn(secrets.token_urlsafe(32), secrets.token_urlsafe(48), following, address, until_s)
        with self._lock:
            own = [key for key, one in self._waiting.items() if one.address == address]
            for key in own[: max(0, len(own) - _MOST_EACH + 1)]:
                del self._waiting[key]
            if len(self._waiting) >= _MOST_STATES:
                self._waiting.popitem(last=False)
            self._waiting[state] = began
        return state, began

    def end(self, state: str) -> PendingSignIn | None:
        """The one of that state, which counts no more; None for one that is used, unknown or too old."""
        with self._lock:
            found = self._waiting.pop(state, None)
        return found if found is not None and time.monotonic() < found.until_s else None
