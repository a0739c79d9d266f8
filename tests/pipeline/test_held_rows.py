"""Folders of held rows below the tables: those of killed sessions go, those of running ones stay."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.files import StoredFiles
from pipeline.held_rows import clear, shared_folder

DAY_MS = 86_400_000
NOW_MS = time.time_ns() // 1_000_000


def session(tables: Path, name: str, file_ms: int | None, folder_ms: int = NOW_MS) -> None:
    """A session's folder with a file deep in it, as Spark lays them out; the times are those of the file system."""
    folder = tables / "_held" / name
    rows = folder / "4f0c" / "rdd-7"
    rows.mkdir(parents=True)
    if file_ms is not None:
        (rows / "part-00000").write_text("rows")
        os.utime(rows / "part-00000", (file_ms / 1000, file_ms / 1000))
    os.utime(folder, (folder_ms / 1000, folder_ms / 1000))


def left(tables: Path) -> set[str]:
    return {folder.name for folder in (tables / "_held").iterdir()}


@pytest.mark.parametrize(
    ("days", "stays"),
    [
        pytest.param((3, 3, 0), False, id="killed, in a store that has no time of a folder"),
        pytest.param((3, None, 0), False, id="killed before it held anything"),
        pytest.param((3, 3, 3), False, id="killed"),
        pytest.param((30, 0, 30), True, id="running for a month"),
        pytest.param((1, None, 3), True, id="holds nothing yet"),
        pytest.param((30, 1, 30), True, id="idle for a day"),
    ],
)
def test_folders_of_killed_sessions_go_and_those_of_running_ones_stay(
    spark: SparkSession, tmp_path: Path, days: tuple[int, int | None, int], stays: bool
) -> None:
    begun_days, file_days, folder_days = days
    name = f"{NOW_MS - begun_days * DAY_MS}-0123456789abcdef"
    file_ms = None if file_days is None else NOW_MS - file_days * DAY_MS
    session(tmp_path, name, file_ms, NOW_MS - folder_days * DAY_MS)
    own = shared_folder(str(tmp_path))
    session(tmp_path, Path(own).name, NOW_MS)
    clear(StoredFiles(spark), str(tmp_path), own)
    assert left(tmp_path) == ({name} if stays else set())


def test_the_name_of_a_folder_begins_with_its_time(tmp_path: Path) -> None:
    name = Path(shared_folder(f"{tmp_path}/")).name
    assert 0 <= int(name.partition("-")[0]) - NOW_MS < DAY_MS
    assert shared_folder(str(tmp_path)) != shared_folder(str(tmp_path))
