"""The lists of the API: how each is searched and sorted, and the page that holds its rows."""

from __future__ import annotations

from typing import Generic, TypeVar

from typing_extensions import TypedDict

from agent.web.api.paging import ListKind

Item = TypeVar("Item")


class PageDocument(TypedDict, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    total: int
    """Rows that the search found, on all pages."""
    next: str | None
    """Cursor of the following page; null on the last one."""


_PRICED = ("cross_rack_bytes_per_s", "usd_per_day", "at_most_cross_rack_bytes_per_s", "at_most_usd_per_day")
RACKS = ListKind(
    ("rack",),
    ("rack",),
    ("rack", "replicas", "leaders", "members", "active_tasks", "standby_tasks", "cross_rack_in_bytes_per_s",
     "cross_rack_out_bytes_per_s", "usd_per_day"),
)  # fmt: skip
BROKERS = ListKind(
    ("broker",),
    ("broker", "host", "rack"),
    ("broker", "rack", "replicas", "leaders", "preferred_leaders", "in_bytes_per_s", "led_bytes"),
)
TOPICS = ListKind(
    ("topic",), ("topic",), ("topic", "partitions", "in_bytes_per_s", "replicate_bytes_per_s", "read_bytes_per_s",
    "read_usd_per_day", "replicate_usd_per_day", *_PRICED),
)  # fmt: skip
GROUPS = ListKind(
    ("group",),
    ("group", "assignor", "kind"),
    ("group", "kind", "state", "members", "local_share", "best_local_share", "unknown_share", "gap_partitions",
     "reads", "unknown_reads", "lag_records", "lag_worst_records", "max_task_lag_records", *_PRICED),
)  # fmt: skip
TASKS = ListKind(
    ("task", "role", "process"),
    ("task", "process", "rack", "role"),
    ("task", "role", "process", "rack", "lag_age_ms"),
)
FINDINGS = ListKind(
    ("id",), ("id", "finding", "subject", "sentence", "severity"), ("severity", "finding", "subject", "since_ms", "id")
)
PROPOSALS = ListKind(
    ("id",), ("id", "kind", "sentence", "subject", "reason_text"), ("id", "kind", "created_ms", "expires_ms")
)
VERDICTS = ListKind(("proposal",), ("proposal", "verdict", "reason", "sentence"), ("proposal", "verdict", "until_ms"))
HISTORY = ListKind(
    ("at_ms", "what", "about", "who", "state"),
    ("what", "about", "who", "state", "sentence"),
    ("at_ms", "what", "about", "who", "state"),
)
SETTINGS = ListKind(("setting",), ("setting", "origin"), ("setting", "origin"))
CHECKS = ListKind(
    ("check",), ("check", "sentence", "state"), ("state", "check", "cross_rack_bytes_per_s", "usd_per_day")
)
RULES = ListKind(("about", "rule", "sentence"), ("about", "rule", "answer", "sentence"), ("about", "rule", "answer"))
REPORTS = ListKind(("name",), ("name",), ("name", "bytes", "modified_ms"))
