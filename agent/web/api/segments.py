"""Names in paths: any bytes, percent-encoded, slashes among them."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send


class RawSegments:
    """Routes by the path as it was sent: a percent-encoded slash is part of a name, not a separator.

    Every segment reaches the application in one spelling, percent-encoded; `name_of` is its text.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        raw = scope.get("raw_path")
        if scope["type"] == "http" and isinstance(raw, bytes):
            path = raw.partition(b"?")[0].decode("ascii", "replace")
            scope = {**scope, "path": "/".join(quote(unquote_to_bytes(one), safe="") for one in path.split("/"))}
        await self._app(scope, receive, send)


def name_of(segment: str) -> str:
    """The name in a segment; of bytes that are no UTF-8, lone surrogates are kept as the decoders keep them."""
    raw = unquote_to_bytes(segment)
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape")
