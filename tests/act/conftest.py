"""Journals in files that do not wait for the disk."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def disk_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """These crashes are cut files, not lost power: waiting for the disk would show nothing more."""
    monkeypatch.setattr(os, "fsync", lambda _file: None)
