"""Pace: long batches come seldom, and everything else is as if there were none."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from pipeline.schemas.bronze import TELEMETRY
from pipeline.stream import pace
from pipeline.stream.ingest import checkpoint_of
from pipeline.stream.pace import BatchPace
from pipeline.tables import TableStore
from testbed.cluster import EmbeddedCluster
from tests.observe.live import wait_for
from tests.pipeline.topics import Counted, Topics, counted, runner

ENDS_WITHIN_S = 15.0


def pauses(share: float, *took_s: float) -> list[float]:
    stream = BatchPace(share, longest_s=600.0)
    return [round(stream.pause_s(seconds), 3) for seconds in took_s]


def test_batches_that_take_long_take_the_share_of_the_time() -> None:
    assert pauses(0.4, 40, 40, 40, 44, 48) == [0, 0, 60, 56, 52]


def test_short_batches_are_not_kept_from_beginning() -> None:
    assert pauses(0.1, 29, 29, 29, 29) == [0, 0, 0, 0]


def test_one_long_batch_among_short_ones_is_followed_at_once() -> None:
    assert pauses(0.1, 90, 20, 20, 90, 20, 90, 90, 90) == [0, 0, 0, 0, 0, 0, 0, 510]


def test_a_share_of_all_the_time_is_no_pause() -> None:
    assert pauses(1.0, 100, 100, 100, 100) == [0, 0, 0, 0]


def test_a_batch_that_took_longer_than_its_share_is_followed_at_once() -> None:
    assert pauses(0.5, 40, 40, 100) == [0, 0, 0]


def test_a_pause_ends_before_its_batch_seems_stalled() -> None:
    assert pauses(0.1, 60, 60, 60, 590, 600, 700) == [0, 0, 540, 10, 0, 0]


@pytest.mark.integration
def test_a_stream_pauses_once_no_batch_is_full_ends_at_once_and_its_rows_are_there_once(
    broker: EmbeddedCluster, delta_tables: TableStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "_COMPARED_BATCHES", 1)
    monkeypatch.setattr(pace, "_LONG_BATCH_S", 0.0)
    topics, lines, stop = Topics(broker), list[str](), threading.Event()
    topics.make(topics.names.telemetry)
    topics.events(50)
    seen: list[int] = []
    pausing = runner(
        topics.kafka, topics.names, delta_tables, tmp_path, say=lines.append,
        on_batch=lambda one: seen.append(one.records), busy_share=0.001, longest_s=600.0, max_records=20,
    )  # fmt: skip
    thread = threading.Thread(target=pausing.run, args=(stop,), daemon=True)
    thread.start()
    wait_for(lambda: any("the next one begins in 5" in line for line in lines), "the stream pauses", 120)
    assert seen == [20, 20, 10], "what waits longest is not made to wait longer"
    topics.events(50)
    began = time.monotonic()
    stop.set()
    thread.join(60)
    assert time.monotonic() - began < ENDS_WITHIN_S
    assert not thread.is_alive()
    assert counted(delta_tables, TELEMETRY) == Counted(50, 50)
    # The pause is within the batch: whether Spark still notes its end is a matter of moments, and decides on the rest.
    is_noted = (tmp_path / "checkpoints" / checkpoint_of("telemetry") / "commits" / "2").exists()
    read_again = 0 if is_noted else 10
    assert topics.ingest(delta_tables, tmp_path, busy_share=0.001).run_once(threading.Event()) == read_again + 50
    assert counted(delta_tables, TELEMETRY) == Counted(100, 100)
