"""Bytes in and out of a broker, by its own JMX counters.

Invariant: counters only, no rates; the difference of two readings is exact. A counter the broker has not made yet,
because nothing has flowed, is absent from `by_topic` and zero in the totals, as Kafka itself makes the totals at start.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from testbed.cluster.errors import ClusterError

_TIMEOUT_S = 5.0


class TopicBytes(NamedTuple):
    """Bytes of one topic on one broker since the broker started."""

    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteCounters:
    """Bytes through one broker since it started."""

    bytes_in: int
    """From producers."""
    bytes_out: int
    """To consumers; followers are not counted."""
    replication_bytes_in: int
    """From other brokers, as a follower."""
    replication_bytes_out: int
    """To other brokers, as a leader."""
    by_topic: Mapping[str, TopicBytes]


def read_counters(url: str, timeout_s: float = _TIMEOUT_S) -> ByteCounters:
    """The counters at a broker's `jmx_url`. Raises ClusterError when it does not answer."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:  # noqa: S310 the address is our own broker's
            text = answer.read().decode("utf-8", "replace")
    except (OSError, urllib.error.URLError) as error:
        raise ClusterError(
            f"{url} does not answer", why=str(error), todo="Start the broker, or start with jmx."
        ) from error
    return parse_counters(text)


def parse_counters(text: str) -> ByteCounters:
    """The counters in a page of the Prometheus text format."""
    samples = tuple(one for family in text_string_to_metric_families(text) for one in family.samples)
    totals = {one.name: int(one.value) for one in samples if not one.labels}
    taken = {one.labels["topic"]: int(one.value) for one in samples if one.name == "broker_topic_bytesinpersec_total"}
    given = {one.labels["topic"]: int(one.value) for one in samples if one.name == "broker_topic_bytesoutpersec_total"}
    return ByteCounters(
        bytes_in=totals.get("broker_bytesinpersec_total", 0),
        bytes_out=totals.get("broker_bytesoutpersec_total", 0),
        replication_bytes_in=totals.get("broker_replicationbytesinpersec_total", 0),
        replication_bytes_out=totals.get("broker_replicationbytesoutpersec_total", 0),
        by_topic={topic: TopicBytes(taken.get(topic, 0), given.get(topic, 0)) for topic in sorted(taken | given)},
    )
