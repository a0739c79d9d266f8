"""Prometheus metrics of ingest, and the server for them; docs/pipeline.md has `INGEST_METRICS`.

The server is that of the agent, with its bounds and its check of the Host header. An unknown has no sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.errors import ConfigError
from agent.web.access.request_checks import AllowedHosts
from agent.web.app import WebServer, version
from pipeline.stream.progress import IngestProgress, StreamProgress

_Sample = tuple[tuple[str, ...], float]


class IngestMetric(NamedTuple):
    """A metric as it is documented. The name is the exported one, with its ``_total``."""

    name: str
    kind: str
    labels: tuple[str, ...]
    sentence: str


INGEST_METRICS: tuple[IngestMetric, ...] = (
    IngestMetric("rackwise_build_info", "gauge", ("version",), "Always 1; the version is a label."),
    IngestMetric("rackwise_ingest_batches_total", "counter", ("stream",), "Batches written."),
    IngestMetric(
        "rackwise_ingest_records_total", "counter", ("stream", "outcome"),
        "Records read, by outcome: accepted or quarantined.",
    ),
    IngestMetric(
        "rackwise_ingest_gap_offsets_total", "counter", ("stream",),
        "Offsets that were deleted before they were read (--accept-data-loss).",
    ),
    IngestMetric(
        "rackwise_ingest_rows_total", "counter", ("table",),
        "Rows written to bronze and silver; rows of gold are not counted.",
    ),
    IngestMetric("rackwise_ingest_batch_seconds", "gauge", ("stream",), "Duration of the last batch."),
    IngestMetric("rackwise_ingest_busy_seconds_total", "counter", ("stream",), "Duration of all batches."),
    IngestMetric(
        "rackwise_ingest_last_batch_timestamp_seconds", "gauge", ("stream",),
        "Unix time at which the last batch was written.",
    ),
    IngestMetric(
        "rackwise_ingest_lag_records", "gauge", ("stream",),
        "Offsets of the topic that are not read yet; no sample while no broker answers.",
    ),
    IngestMetric(
        "rackwise_ingest_lag_seconds", "gauge", ("stream",),
        "Greatest possible age of the oldest record that is not read yet; 0 when all are read.",
    ),
)  # fmt: skip


class IngestCollector(Collector):
    """Reads the progress of the streams at each scrape."""

    def __init__(self, progress: IngestProgress) -> None:
        self._progress = progress

    def describe(self) -> Iterable[Metric]:
        """Nothing: names are not checked at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Every metric that has a sample now."""
        found = self._samples()
        for described in INGEST_METRICS:
            samples = found.get(described.name, ())
            if samples:
                yield _family(described, samples)

    def _samples(self) -> dict[str, Sequence[_Sample]]:
        streams = self._progress.streams()
        return {
            "rackwise_build_info": [((version(),), 1)],
            "rackwise_ingest_batches_total": [((name,), one.batches) for name, one in streams.items()],
            "rackwise_ingest_records_total": [
                sample for name, one in streams.items() for sample in _records(name, one)
            ],
            "rackwise_ingest_gap_offsets_total": [((name,), one.gap_offsets) for name, one in streams.items()],
            "rackwise_ingest_rows_total": [((table,), number) for table, number in self._progress.rows().items()],
            "rackwise_ingest_batch_seconds": _known({name: one.last_s for name, one in streams.items()}),
            "rackwise_ingest_busy_seconds_total": [((name,), one.busy_s) for name, one in streams.items()],
            "rackwise_ingest_last_batch_timestamp_seconds": [
                ((name,), one.written_ms / 1_000) for name, one in streams.items() if one.written_ms is not None
            ],
            "rackwise_ingest_lag_records": [
                ((name,), one.lag.records) for name, one in streams.items() if one.lag is not None
            ],
            "rackwise_ingest_lag_seconds": _known(
                {name: one.lag.seconds for name, one in streams.items() if one.lag is not None}
            ),
        }


def serve_metrics(progress: IngestProgress, bind: str, port: int, allowed_hosts: Iterable[str] = ()) -> WebServer:
    """A server of ``/metrics``, which answers once it is started. Raises ConfigError for an address it cannot have."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(IngestCollector(progress))
    for of_process in (ProcessCollector, PlatformCollector, GCCollector):
        of_process(registry=registry)

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        headers = {"content-type": content_type, "cache-control": "no-store", "x-content-type-options": "nosniff"}
        return Response(encode(registry), media_type=None, headers=headers)

    hosts = frozenset(host.lower() for host in allowed_hosts) | {"localhost"}
    app = Starlette(routes=[Route("/metrics", metrics)], middleware=[Middleware(AllowedHosts, hosts=hosts)])
    app.router.redirect_slashes = False
    try:
        return WebServer(app, bind, port)
    except ConfigError as error:
        todo = "Set spark.metrics_bind and spark.metrics_port to a free address, or spark.metrics_port to none."
        raise ConfigError(error.what, why=error.why, todo=todo) from error


def _family(described: IngestMetric, samples: Iterable[_Sample]) -> Metric:
    kind = CounterMetricFamily if described.kind == "counter" else GaugeMetricFamily
    family = kind(described.name.removesuffix("_total"), described.sentence, labels=described.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _records(name: str, one: StreamProgress) -> list[_Sample]:
    return [((name, "accepted"), one.records - one.quarantined), ((name, "quarantined"), one.quarantined)]


def _known(values: dict[str, float | None]) -> list[_Sample]:
    return [((name,), value) for name, value in values.items() if value is not None]
