"""``rackwise spark ingest``: rackwise's topics into tables, once or until it is stopped."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from agent.errors import BadInput
from agent.process import StopSignal, on_ending
from agent.values.number_format import counted
from config.foreign_text import shortened
from config.secrets import hidden
from pipeline import options
from pipeline.owner_rules import owner_rules
from pipeline.session import small_batches
from pipeline.stream.pace import STOP_S

if TYPE_CHECKING:
    from config.settings import Settings
    from pipeline.options import SparkCommand
    from pipeline.stream.live import LiveRefresh
    from pipeline.stream.progress import BatchReport, IngestProgress


def ingest(
    spark: options.SparkOptions,
    kafka: options.KafkaOptions,
    once: Annotated[bool, typer.Option("--once", help="Read what the topics hold now, then exit.")] = False,
    bronze_only: Annotated[
        bool, typer.Option("--bronze-only", help="Write bronze only; silver and gold are left to refresh.")
    ] = False,
    weights: Annotated[
        bool, typer.Option("--weights", help="Publish weights after the first batch and every spark.histories_every.")
    ] = False,
    accept_data_loss: Annotated[
        bool,
        typer.Option(
            "--accept-data-loss",
            help="Continue over records that were deleted before they were read; the missing offsets are written "
            "to quarantine.",
        ),
    ] = False,
) -> None:
    """Read telemetry, proposals and the journal into tables, each record exactly once, and keep silver and gold up.

    Exit codes: 0 ended as asked, 1 records were lost or Spark failed, 2 settings or tables that do not fit, 5 no broker
    answers.
    """
    if weights and bronze_only:
        raise BadInput("--weights needs gold", why="--bronze-only computes none", todo="Leave one of them out.")
    loaded = options.settings(spark, kafka)
    from config.logging import set_up_logging
    from pipeline.stream.progress import IngestProgress

    settings = loaded.settings
    set_up_logging(level=settings.log.level, form=settings.log.format, secrets=loaded.secrets())
    stop = StopSignal()
    small = {} if bronze_only else small_batches(settings.spark.master)
    with options.job("ingest", loaded, small, _say) as job, _stopped_by_signal(stop):
        live = None if bronze_only else _live(job, weights=weights)
        task = _Task(live, IngestProgress(), once=once, accept_data_loss=accept_data_loss)
        records = _run(job, task, stop)
    _say(f"{counted(records, 'record')} in all")


class _Task(NamedTuple):
    """What is asked for."""

    live: LiveRefresh | None
    progress: IngestProgress
    once: bool
    accept_data_loss: bool


def _live(job: SparkCommand, *, weights: bool) -> LiveRefresh:
    from pipeline.jobs.owners import write_owners
    from pipeline.jobs.refresh import refresh_settings
    from pipeline.jobs.weights import publish_weights
    from pipeline.stream.live import LiveRefresh

    def publish() -> str:
        return publish_weights(job.tables, job.settings, now_ms=time.time_ns() // 1_000_000)

    write_owners(job.tables, owner_rules(job.settings.spark.owners))
    return LiveRefresh(
        job.tables,
        refresh_settings(job.settings),
        _say,
        histories_every_ms=job.settings.spark.histories_every_ms,
        publish=publish if weights else None,
    )


def _run(job: SparkCommand, task: _Task, stop: StopSignal) -> int:
    from pipeline.kafka import TopicClient, source_options
    from pipeline.schemas.bronze import BRONZE
    from pipeline.schemas.gold import GOLD
    from pipeline.schemas.silver import SILVER
    from pipeline.stream.ingest import IngestTopics, StreamRunner, plans, streams
    from pipeline.stream.topic import SourceSettings
    from pipeline.stream.vacuum import TableVacuum

    settings, spark, live = job.settings, job.settings.spark, task.live
    names = IngestTopics(
        telemetry=settings.telemetry_topic, proposals=settings.proposals_topic, journal=settings.journal_topic
    )
    reading = SourceSettings(
        options=source_options(settings.kafka),
        max_records=spark.max_records,
        interval_ms=spark.interval_ms,
        late_after_ms=spark.late_after_ms,
        busy_share=spark.busy_share,
        longest_s=spark.stalled_after_ms / 1_500,  # two thirds of it: Spark counts a pause as a part of its batch
        accept_data_loss=task.accept_data_loss,
    )
    made = streams(
        plans(names, live.on_telemetry) if live else plans(names),
        reading,
        tables=job.tables,
        brokers=TopicClient(settings.kafka),
        checkpoints=options.checkpoints(job),
        say=_say,
        on_batch=_reported(task.progress),
    )
    of = BRONZE if live is None else (*BRONZE, *SILVER, *GOLD)
    kept = spark.retention
    retention = {"bronze": kept.bronze_ms, "silver": kept.silver_ms, "gold": kept.gold_ms}
    runner = StreamRunner(
        made,
        expected_cluster=settings.cluster.id,
        patience_ms=spark.patience_ms,
        say=_say,
        vacuum=TableVacuum(job.tables, of, _say, retention=retention),
        on_lag=task.progress.set_lag if spark.metrics_port is not None else None,
    )
    with _metrics(settings, task.progress):
        if not task.once:
            return runner.run(stop)
        records = runner.run_once(stop)
    if live is not None and not stop.is_set():
        live.catch_up()
    return records


def _metrics(settings: Settings, progress: IngestProgress) -> AbstractContextManager[object]:
    """The server of /metrics, where the settings ask for one."""
    spark = settings.spark
    if spark.metrics_port is None:
        return nullcontext()
    from pipeline.stream.metrics import serve_metrics

    server = serve_metrics(progress, spark.metrics_bind, spark.metrics_port, settings.http.allowed_hosts)
    _say(f"metrics are at http://{server.address}/metrics")
    return server


def _say(line: str) -> None:
    """Progress of ingest, which runs for days, goes to the log."""
    import structlog

    structlog.get_logger("rackwise").info("ingest", sentence=shortened(hidden(line)))


def _reported(progress: IngestProgress) -> Callable[[BatchReport], None]:
    """Counts each batch for the metrics, and writes its line in the log."""
    import structlog

    def report(one: BatchReport) -> None:
        progress.add(one)
        structlog.get_logger("rackwise").info(
            "batch",
            sentence=one.sentence,
            stream=one.stream,
            topic=one.topic,
            batch=one.number,
            records=one.records,
            quarantined=one.quarantined,
            gap_offsets=one.gap_offsets,
            rows=dict(one.rows),
            seconds=one.seconds,
            lag_records=one.lag.records if one.lag else None,
            lag_seconds=one.lag.seconds if one.lag else None,
        )

    return report


@contextmanager
def _stopped_by_signal(stop: StopSignal) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the run after the current batch; the second one at once."""

    def on_signal(number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        # Not by `_say`: the interrupted code may be writing there itself.
        ending = f"{signal.Signals(number).name}: ending after the current batch, or in {STOP_S:.0f} s\n"
        os.write(sys.stderr.fileno(), ending.encode())

    with on_ending(on_signal):
        yield
