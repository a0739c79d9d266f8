"""The log of this process as the agent sets it up."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
import structlog

from config.logging import set_up_logging


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the log of this process has at its lowest level, as `config.logging` sets it up."""
    stream, root = io.StringIO(), logging.getLogger()
    before, level = root.handlers[:], root.level
    set_up_logging(level="debug", form="json", stream=stream)
    root.info("the log is written")
    yield stream
    assert "the log is written" in stream.getvalue()
    root.handlers[:] = before
    root.setLevel(level)
    structlog.reset_defaults()
