"""The Host header: only known hosts are answered, against DNS rebinding; addresses are always known."""

from __future__ import annotations

import ipaddress
import re

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.web.access.refusals import AccessRefused, refusal_answer

_HOST = re.compile(r"(\[(?P<bracketed>[0-9a-f:.]+)\]|(?P<plain>[^\[\]:@/\s]*))(:[0-9]*)?")
"""A host with or without a port; nothing may follow either."""


class AllowedHosts:
    """Answers 421 to a request for a host name that is not known; addresses are always known."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and not self._knows(Headers(scope=scope).getlist("host")):
            what, todo = "the Host header names an unknown host", "Add it to http.allowed_hosts, or use the address."
            refused = AccessRefused(421, what, todo=todo)
            await refusal_answer(Request(scope), refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, hosts: list[str]) -> bool:
        if len(hosts) != 1:
            return False
        found = _HOST.fullmatch(hosts[0].strip().lower())
        if found is None:
            return False
        bracketed, plain = found["bracketed"], found["plain"]
        return _is_address(bracketed) if bracketed is not None else plain in self._hosts or _is_address(plain)


def _is_address(name: str) -> bool:
    try:
        return not getattr(ipaddress.ip_address(name), "scope_id", None)  # a scope may be any text
    except ValueError:
        return False
