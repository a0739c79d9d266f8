"""Templates, addresses and files of the page.

Values are escaped and made harmless in a template, and an unknown one reads ``unknown``. Style sheet, scripts and fonts
are read once, named by a hash of their content, and compressed once.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from agent.money.traffic import bytes_between, bytes_words, usd_between, usd_words
from agent.values.kafka import STREAM_THREAD
from agent.values.number_format import counted, lasted, sized, usd
from config.foreign_text import shortened

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


TEMPLATES = Path(__file__).with_name("templates")
UNKNOWN = Markup('<span class="unknown">unknown</span>')
_NAME_SHOWN = 64
_STREAMS_CLIENT = re.compile(
    rf".*?([0-9a-f]{{8}})(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}(?:{STREAM_THREAD}(\d+)-consumer)?"
)
_LEAST_ROOM = 32
"""Below this the number of characters that are left out would be most of what is shown."""


@cache
def environment() -> Environment:
    """The templates with their filters; made once."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        rate=lambda value: _or_unknown(bytes_words(value)),
        dollars=lambda value: _or_unknown(usd_words(value)),
        size=lambda value: _or_unknown(None if value is None else sized(value)),
        count=lambda value: _or_unknown(None if value is None else f"{value:,}"),
        percent=lambda value: _or_unknown(None if value is None else percent(value)),
        lasted=lambda value: _or_unknown(None if value is None else lasted(value)),
        name=lambda value: _or_unknown(None if value is None else short_name(value)),
        counted=counted,
        utc=utc_words,
        usd=usd,
    )
    made.globals.update(
        address=address,
        asset_url=asset_url,
        rate_between=lambda low, high: _or_unknown(bytes_between(low, high)),
        dollars_between=lambda low, high: _or_unknown(usd_between(low, high)),
    )
    return made


def percent(share: float) -> str:
    """``58 %``; below one and above 99 per cent one digit more, as 0 and 100 are exact."""
    value = 100 * share
    if 0 < value < 1 or 99 < value < 100:
        return f"{min(max(value, 0.1), 99.9):.1f} %"
    return f"{value:.0f} %"


def utc_words(epoch_ms: float) -> str:
    """``2026-11-24 03:20:00 UTC`` of epoch milliseconds."""
    try:
        return datetime.fromtimestamp(epoch_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return f"{epoch_ms:.0f} ms since 1970"


def short_name(text: object, room: int = _NAME_SHOWN) -> str:
    """A foreign name on one line, without its middle where it is longer than ``room``."""
    shown = shortened(str(text), run=max(room, _LEAST_ROOM))
    return shown if len(shown) <= room else f"{shown[: room - 1]}…"


def short_client(client: str, room: int) -> str:
    """A client, in ``room`` characters; of the long names that Streams gives, what tells them apart."""
    found = _STREAMS_CLIENT.fullmatch(client)
    return short_process(client, room) + (f", thread {found[2]}" if found is not None and found[2] else "")


def short_process(client: str, room: int) -> str:
    """The process of a client, in the same way: without the thread."""
    found = _STREAMS_CLIENT.fullmatch(client)
    return short_name(client, room) if found is None else f"{found[1]}…"


def address(path: str, **values: object) -> Markup:
    """A path of the page with its query, escaped and never cut; values that are None or empty are left out."""
    return Markup(path) + query(values)  # noqa: S704 (paths are this package's own)


def query(values: Mapping[str, object]) -> Markup:
    """A query string with its question mark, in the same way."""
    left = {key: value for key, value in values.items() if value is not None and value != ""}
    return escape(f"?{urlencode(left, errors='surrogatepass')}") if left else Markup()


def rendered(template: str, **values: Any) -> Markup:
    """The template with its values. Raises jinja2.UndefinedError for one that is missing."""
    return Markup(environment().get_template(template).render(**values))  # noqa: S704 (the template escapes)


def _finalized(value: object) -> object:
    """What a template prints: foreign text made harmless, None as ``unknown``."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return "unknown"
    return shortened(value) if isinstance(value, str) else value


def _or_unknown(words: str | None) -> Markup:
    return UNKNOWN if words is None else escape(words)


_COPY_OF_TASK = re.compile(r"(task/.+/[^/]*\d+_\d+)/[^/]+", re.DOTALL)


def group_link(name: str) -> Markup:
    """The page of one group."""
    return address("/groups/group", id=name)


def rack_link(name: str) -> Markup:
    """The rack map with the loss of one rack."""
    return address("/racks", rack=name) + Markup("#loss")


def finding_link(finding_id: str) -> Markup:
    """One finding."""
    return address("/findings", id=finding_id)


def proposal_link(proposal_id: str) -> Markup:
    """One proposal."""
    return address("/proposals/proposal", id=proposal_id)


def subject_words(subject: str) -> str:
    """What a finding is about, without the id of the process that holds the copy of a task."""
    found = _COPY_OF_TASK.fullmatch(subject)
    return subject if found is None else found[1]


def subject_link(kind: str, name: str) -> Markup | None:
    """The page of what a finding or a proposal is about; None where it has none of its own."""
    if kind == "group":
        return group_link(name)
    return address("/warmups", q=name.rsplit("/", 2)[0]) if kind == "task" else None
