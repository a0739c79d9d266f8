"""Rack locators of installed packages: asked in a process of their own, whatever they do wrong."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from agent.observe.ask_locators import ask_locator
from agent.observe.context import ObserverState
from agent.values.observation import GapCause
from tests.installed_package import offering
from tests.observe.rack_locators import ROWS, SECRET, alive_children, an_entry_point, failure

INVENTORY = """
import os, sys

class Racks:
    def __init__(self, properties):
        self._racks = properties
        print("this is no answer", os.getpid())
        os.write(1, b"neither is this")

    def get_rack_info(self):
        return {1: self._racks["one"], "2": "b", "client.id.x": None}
"""


def test_an_entry_point_is_given_its_properties_and_asked_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offering(tmp_path, monkeypatch, "inventory", INVENTORY)
    assert ask_locator(an_entry_point(properties={"one": "a"}), ObserverState(), 10_000) == ROWS
    assert "acme_racks" not in sys.modules


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param(
            f"raise RuntimeError('{SECRET}')",
            "loading acme_racks:Racks raised RuntimeError in line 1 of",
            id="raises when loaded",
        ),
        pytest.param(
            "import no_such_module", "loading acme_racks:Racks raised ModuleNotFoundError", id="lacks a module"
        ),
        pytest.param("Other = 1", "loading acme_racks:Racks raised AttributeError", id="lacks its class"),
        pytest.param("Racks = 1", "making the locator raised TypeError", id="is no class"),
        pytest.param(
            f"class Racks:\n    def __init__(self, properties):\n        raise KeyError('{SECRET}')",
            "making the locator raised KeyError in line 3 of acme_racks.py",
            id="raises when made",
        ),
        pytest.param(
            "def Racks(properties):\n    return 1", "get_rack_info raised AttributeError", id="lacks the method"
        ),
        pytest.param(
            f"class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n"
            f"        raise OSError('{SECRET}')",
            "get_rack_info raised OSError in line 4 of acme_racks.py",
            id="raises when asked",
        ),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n        raise SystemExit(0)",
            "get_rack_info raised SystemExit",
            id="wants to leave",
        ),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n        return [(1, 'a')]",
            "get_rack_info gave list, and a mapping from broker id to rack is expected",
            id="gives a list",
        ),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n        return {1: 2}",
            "row 1 of its answer is no row",
            id="gives a number for a rack",
        ),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n        return {}",
            "its answer names no broker",
            id="gives nothing",
        ),
        pytest.param("import os\nos._exit(0)", "its process gave no answer", id="ends its process"),
        pytest.param("import os\nos.kill(os.getpid(), 9)", "it was ended by signal 9", id="kills its process"),
    ],
)
def test_an_entry_point_that_fails_is_a_sentence_that_quotes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, sentence: str
) -> None:
    offering(tmp_path, monkeypatch, "inventory", code)
    failed = failure(an_entry_point())
    assert failed.cause is GapCause.UNUSABLE
    assert sentence in failed.detail
    assert SECRET not in failed.detail


@pytest.mark.parametrize(
    ("code", "limits", "cause"),
    [
        pytest.param("import time\ntime.sleep(600)", {"timeout_ms": 1_500}, GapCause.TIMED_OUT, id="never answers"),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n"
            "        return {n: 'a' * 200 for n in range(10_000)}",
            {"max_bytes": 10_000},
            GapCause.TOO_LARGE,
            id="answers too much",
        ),
        pytest.param(
            "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self): return {1: 'a', 2: 'b'}",
            {},
            None,
            id="leaves a thread, which holds nothing up",
        ),
    ],
)
def test_an_entry_point_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, limits: dict[str, int], cause: GapCause | None
) -> None:
    offering(tmp_path, monkeypatch, "inventory", code)
    began = time.monotonic()
    if cause is None:
        assert ask_locator(an_entry_point(**limits), ObserverState(), 10_000) == ROWS
    else:
        assert failure(an_entry_point(**limits)).cause is cause
    assert time.monotonic() - began < 8
    assert not alive_children()


def test_an_entry_point_that_nobody_or_more_than_one_package_offers_is_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = failure(an_entry_point("inventory"))
    assert missing.detail == "no installed package offers an entry point inventory of group rackwise.rack_locators"
    offering(tmp_path, monkeypatch, "inventory", "")
    offering(tmp_path, monkeypatch, "inventory", "", package="other_racks")
    twice = failure(an_entry_point("inventory"))
    assert twice.detail == "2 installed packages offer an entry point inventory of group rackwise.rack_locators"


def test_a_package_whose_entry_points_cannot_be_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "aa_broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: aa_broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_bytes(b"[a]\n\xff = x\n")
    offering(tmp_path, monkeypatch, "elsewhere", "")
    assert failure(an_entry_point("inventory")).detail == (
        "no installed package offers an entry point inventory of group rackwise.rack_locators,"
        " and entry_points.txt of aa_broken cannot be read"
    )
    offering(
        tmp_path,
        monkeypatch,
        "inventory",
        """
        class Racks:
            def __init__(self, properties): pass
            def get_rack_info(self): return {1: "a", 2: "b"}
        """,
        package="good_racks",
    )
    assert ask_locator(an_entry_point(), ObserverState(), 10_000) == ROWS
