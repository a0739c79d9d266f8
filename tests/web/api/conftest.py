"""The command line in this process, beside the API."""

from __future__ import annotations

from tests.cli.conftest import here

__all__ = ["here"]
