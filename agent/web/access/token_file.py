"""File of tokens: who has which role, by the hash of a random token; read again when it changes.

A YAML list, one entry a line: ``- {name: ann, role: view, hash: "<salt>:<sha256>", expires: 2027-01-31}``. A token is
256 random bits, so there is nothing to guess and one round of SHA-256 is enough: a slow hash protects short passwords,
and would let anyone keep the server busy. The salt keeps equal tokens from showing as such. Invariant: a file that
cannot be read, or has one wrong entry, lets no one in.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
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
            at = datetime.combine(value, time(), UTC)
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
