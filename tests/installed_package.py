"""An installed package that offers a rack locator as an entry point, made in a folder."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest


def offering(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, *, package: str = "acme_racks"
) -> None:
    """Offer class ``Racks`` of a module with that code, to this process and to those that it starts."""
    (folder / f"{package}.py").write_text(textwrap.dedent(code))
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rackwise.rack_locators]\n{name} = {package}:Racks\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    sys.modules.pop(package, None)
