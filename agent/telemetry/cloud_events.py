"""CloudEvents 1.0 in Kafka's binary mode: attributes are ``ce_`` headers, the value is the data alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

CONTENT_TYPE = "application/json"


def headers(
    *, event_id: str, source: str, kind: str, subject: str, time_ms: int, schema: str
) -> Sequence[tuple[str, bytes]]:
    """The headers of one event; ``schema`` is the URI of the data's JSON Schema."""
    attributes = {
        "ce_specversion": "1.0",
        "ce_id": event_id,
        "ce_source": source,
        "ce_type": kind,
        "ce_subject": subject,
        "ce_time": _timestamp(time_ms),
        "ce_dataschema": schema,
        "content-type": CONTENT_TYPE,
    }
    return tuple((name, value.encode("utf-8", "backslashreplace")) for name, value in attributes.items())


def source(cluster_id: str, agent: str) -> str:
    """The URI reference of an agent beside a cluster."""
    return f"/clusters/{quote(cluster_id, safe='')}/agents/{quote(agent, safe='')}"


def _timestamp(epoch_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds; whole numbers only, so that equal times give equal text."""
    seconds, millis = divmod(epoch_ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{millis:03d}Z"
