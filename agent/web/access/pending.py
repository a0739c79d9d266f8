"""Sign-ins that went to an issuer and have not come back; a state is used once. Apart from what is slow to import."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from typing import NamedTuple

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
