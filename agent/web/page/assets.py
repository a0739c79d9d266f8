"""Style sheet, scripts and fonts of the page: read once, named by a hash of their content, and compressed once."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

STATIC = Path(__file__).with_name("static")
PREFIX = "/static"
_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
_COMPRESSED = frozenset((".css", ".js", ".svg"))
_REFERENCE = re.compile(r'url\("([a-z0-9./-]+)"\)')
"""A file that a style sheet names, by its path in static/."""
_FOREVER = "public, max-age=31536000, immutable"


class StaticAsset(NamedTuple):
    """A file with the hash in its address."""

    content: bytes
    compressed: bytes | None
    """By gzip; None for a format that is compressed already."""
    media_type: str
    digest: str


@cache
def static_assets() -> Mapping[str, StaticAsset]:
    """Path in static/ -> the asset. A style sheet names other files by their addresses, so it is read after them."""
    paths = sorted(path for path in STATIC.rglob("*") if path.suffix in _MEDIA_TYPES)
    found: dict[str, StaticAsset] = {}
    for path in sorted(paths, key=lambda path: path.suffix == ".css"):
        content = path.read_bytes()
        if path.suffix == ".css":
            content = _REFERENCE.sub(lambda name: f'url("{_address(name[1], found)}")', content.decode()).encode()
        squeezed = gzip.compress(content, 9, mtime=0) if path.suffix in _COMPRESSED else None
        digest = hashlib.sha256(content).hexdigest()[:12]
        found[path.relative_to(STATIC).as_posix()] = StaticAsset(content, squeezed, _MEDIA_TYPES[path.suffix], digest)
    return found


def asset_url(name: str) -> str:
    """The address of a file of static/. Raises KeyError for one that is not there."""
    return _address(name, static_assets())


def _address(name: str, assets: Mapping[str, StaticAsset]) -> str:
    return f"{PREFIX}/{assets[name].digest}/{name}"


async def static_answer(request: Request) -> Response:
    """The file, for ever where its hash is asked for; another hash is of another version, so it is not kept."""
    asset = static_assets().get(request.path_params["name"])
    if asset is None:
        return Response("not found", status_code=404, media_type="text/plain")
    kept = _FOREVER if request.path_params["digest"] == asset.digest else "no-cache"
    headers = {"cache-control": kept, "x-content-type-options": "nosniff", "etag": f'"{asset.digest}"'}
    if asset.compressed is None:
        return Response(asset.content, media_type=asset.media_type, headers=headers)
    headers["vary"] = "accept-encoding"
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(asset.content, media_type=asset.media_type, headers=headers)
    headers["content-encoding"] = "gzip"
    return Response(asset.compressed, media_type=asset.media_type, headers=headers)
