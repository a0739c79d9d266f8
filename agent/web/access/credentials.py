"""Credentials of people: the file of tokens, and the sessions that a sign-in begins.

The file is a YAML list, one entry a line, read again when it changes:
``- {name: ann, role: view, hash: "<salt>:<sha256>", expires: 2027-01-31}``. A token is 256 random bits, so there is
nothing to guess and one round of SHA-256 is enough: a slow hash protects short passwords, and would let anyone keep the
server busy. The salt keeps equal tokens from showing as such. Invariant: a file that cannot be read, or has one wrong
entry, lets no one in.

Sessions are kept in the server: a cookie holds a random name alone. It is made at sign-in and never taken from a
request, so none can be fixed beforehand. Each has an idle and an absolute end. A person has at most `MOST_EACH`, all
together `MOST`; the one unused for longest goes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from pathlib import Path
from typing import Any, NamedTuple

from agent.act.own_files import check_secret, reason_of
from agent.errors import BadInput, ConfigError
from agent.web.access.person import AccessRole, SignedInPerson, SignInWay, person_name, up_to
from config.plain_file import open_plain
from config.yaml_file import yaml_value

PREFIX = "rackwise_"
"""Tokens begin with it, so that scanners for leaked secrets find them."""
MOST_TOKEN = 200
"""Characters of what is looked at as a token."""
_MOST_BYTES = 1_048_576
_MOST_ENTRIES = 2_000
_HASH = re.compile(r"[0-9a-f]{32}:[0-9a-f]{64}")
_FIELDS = {"name", "role", "hash", "expires"}
_MODE = 0o600


class TokenEntry(NamedTuple):
    """One line of the file."""

    name: str
    role: AccessRole
    hashed: str
    """Salt and hash, ``<32 hex digits>:<64 hex digits>``; also names the entry."""
    expires_ms: int | None = None
    """Epoch milliseconds from which it counts no more; None: it does not expire."""

    @property
    def person(self) -> SignedInPerson:
        """The person of this token."""
        return SignedInPerson(self.name, up_to(self.role), SignInWay.TOKEN)

    def line(self) -> str:
        """The entry as a line of the file."""
        until = "" if self.expires_ms is None else f", expires: {_day(self.expires_ms)}"
        return f'- {{name: "{self.name}", role: {self.role.value}, hash: "{self.hashed}"{until}}}'


def new_token(name: str, role: AccessRole, expires_ms: int | None) -> tuple[str, TokenEntry]:
    """A token and its entry. Raises BadInput for what is no name."""
    known = person_name(name)
    if known is None or known != name or not re.fullmatch(r"[^\s\"\\,{}\[\]]+", name):
        raise BadInput(
            "The name cannot be used",
            why="it is empty, too long, or has spaces, quotes, brackets, commas or characters that are not visible",
            todo="Give a name such as ann or ann@example.org.",
        )
    token = PREFIX + secrets.token_urlsafe(32)
    return token, TokenEntry(name, role, _hashed(token, secrets.token_hex(16)), expires_ms)


def append_entry(path: Path, entry: TokenEntry) -> None:
    """Add an entry to the file, which is made with mode 600. Raises ConfigError where others may read it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, _MODE)
        with os.fdopen(file, "r+b") as opened:
            check_secret(os.fstat(opened.fileno()))
            text = opened.read(_MOST_BYTES + 1)
            entries_in(text)
            ends = b"" if not text or text.endswith(b"\n") else b"\n"
            opened.write(ends + entry.line().encode() + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise _unusable(path, reason_of(error)) from error
    except ValueError as error:
        raise _unusable(path, str(error)) from error


def read_entries(path: Path) -> tuple[TokenEntry, ...]:
    """The entries of the file. Raises ConfigError where it cannot be used."""
    try:
        with open_plain(path) as opened:
            check_secret(os.fstat(opened.fileno()))
            return entries_in(opened.read(_MOST_BYTES + 1))
    except OSError as error:
        raise _unusable(path, reason_of(error)) from error
    except ValueError as error:
        raise _unusable(path, str(error)) from error


def entries_in(content: bytes) -> tuple[TokenEntry, ...]:
    """The entries of a file's text. Raises ValueError with a sentence that names the entry, never its hash."""
    if len(content) > _MOST_BYTES:
        raise ValueError("it is larger than 1 MiB")
    rows = yaml_value(content)
    if rows is None:
        return ()
    if not isinstance(rows, list) or len(rows) > _MOST_ENTRIES:
        raise ValueError(f"it is no list of at most {_MOST_ENTRIES:,} entries")
    found = tuple(_entry(row, number) for number, row in enumerate(rows, 1))
    if len({entry.hashed for entry in found}) < len(found):
        raise ValueError("two entries have the same hash")
    return found


class TokenDirectory:
    """The tokens of a file, which is read again when it changes; callable from any thread."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigError where the file cannot be used."""
        self._path = path
        self._lock = threading.Lock()
        self._seen = self._stamp()
        self._entries: Mapping[str, TokenEntry] = _by_hash(read_entries(path))
        self.problem: str | None = None
        """Why no token counts now."""

    def entry_of(self, token: str, now_ms: int) -> TokenEntry | None:
        """The entry of a token that counts; None for any other text."""
        found = None
        if not token.isascii() or len(token) > MOST_TOKEN:
            return None
        for entry in self._present().values():  # all of them: the time says nothing of which one it is
            salt, _, _ = entry.hashed.partition(":")
            if hmac.compare_digest(_hashed(token, salt), entry.hashed):
                found = entry
        return None if found is None or _is_over(found, now_ms) else found

    def still(self, hashed: str, now_ms: int) -> TokenEntry | None:
        """The entry with that hash as it is now; None once it was removed or has expired."""
        entry = self._present().get(hashed)
        return None if entry is None or _is_over(entry, now_ms) else entry

    def _present(self) -> Mapping[str, TokenEntry]:
        stamp = self._stamp()
        with self._lock:
            if stamp != self._seen:
                self._seen = stamp
                try:
                    self._entries, self.problem = _by_hash(read_entries(self._path)), None
                except ConfigError as error:
                    self._entries, self.problem = {}, str(error)
            return self._entries

    def _stamp(self) -> tuple[int, ...]:
        try:
            status = self._path.stat()
        except OSError:
            return ()
        return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _by_hash(entries: tuple[TokenEntry, ...]) -> Mapping[str, TokenEntry]:
    return {entry.hashed: entry for entry in entries}


def _is_over(entry: TokenEntry, now_ms: int) -> bool:
    return entry.expires_ms is not None and now_ms >= entry.expires_ms


def _hashed(token: str, salt: str) -> str:
    return f"{salt}:{hashlib.sha256(f'rackwise.token.v1:{salt}:{token}'.encode()).hexdigest()}"


def _entry(row: Any, number: int) -> TokenEntry:
    if not isinstance(row, dict) or not {"name", "role", "hash"} <= row.keys() <= _FIELDS:
        raise ValueError(f"entry {number} is not {{name, role, hash, expires}}")
    name = person_name(row["name"])
    if name is None or name != row["name"]:
        raise ValueError(f"the name of entry {number} is no short visible text")
    if row["role"] not in [*AccessRole]:
        raise ValueError(f"the role of entry {number} is none of {', '.join(AccessRole)}")
    if not isinstance(row["hash"], str) or not _HASH.fullmatch(row["hash"]):
        raise ValueError(f"the hash of entry {number} is none that rackwise token new writes")
    return TokenEntry(name, AccessRole(row["role"]), row["hash"], _expiry(row.get("expires"), number))


def _expiry(value: Any, number: int) -> int | None:
    """A day counts to its beginning, in UTC."""
    match value:
        case None:
            return None
        case datetime():
            at = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        case date():
            at = datetime.combine(value, time_of_day(), UTC)
        case _:
            raise ValueError(f"expires of entry {number} is no day such as 2027-01-31")
    return round(at.timestamp() * 1_000)


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _unusable(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"http.auth.tokens_file: {path} cannot be used",
        why=why,
        todo="Make it with: rackwise token new NAME --role approve --file FILE",
    )


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
_MOST_STATES_EACH = 20
"""Of one address."""


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
            for key in own[: max(0, len(own) - _MOST_STATES_EACH + 1)]:
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
