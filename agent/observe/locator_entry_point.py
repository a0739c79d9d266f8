"""Main module of the process that asks a rack locator of an installed package, and does nothing else.

The entry point of group ``rackwise.rack_locators`` is a class, or any callable, that takes the properties of
``rack.locator.properties`` and returns an object with ``get_rack_info`` (KIP-36)::

    class Inventory:
        def __init__(self, properties: Mapping[str, str]) -> None: ...
        def get_rack_info(self) -> Mapping[int | str, str]:
            return {1: "a", "host.10.0.2.7": "b", "client.id.orders-1": "a"}

A numeric key is a broker id; every other is written as in a rack table. Properties come as JSON on stdin, the answer
goes as JSON to stdout, and the entry point's own output is discarded. No sentence quotes its errors, because they may
hold secrets. Only the standard library is imported, so that the process starts fast.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from typing import Any

GROUP = "rackwise.rack_locators"


def main() -> None:
    """Print the rows, or one sentence on the failure."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # its own output is no answer
    answer = _answer(sys.argv[1], json.load(sys.stdin))
    answers.write(json.dumps(answer))
    answers.close()
    os._exit(0)  # its threads would keep the process


def _answer(name: str, properties: Mapping[str, str]) -> dict[str, Any]:
    found, unread = _offered(name)
    if not found:
        but = f", and entry_points.txt of {', '.join(unread)} cannot be read" if unread else ""
        return {"failed": f"no installed package offers an entry point {name} of group {GROUP}{but}"}
    if len(found) > 1:
        return {"failed": f"{len(found)} installed packages offer an entry point {name} of group {GROUP}"}
    step = f"loading {found[0].value}"
    try:
        made = found[0].load()
        step = "making the locator"
        locator = made(dict(properties))
        step = "get_rack_info"
        racks = locator.get_rack_info()
        step = "reading what get_rack_info gave"
        if not isinstance(racks, Mapping):
            kind = type(racks).__name__
            return {"failed": f"get_rack_info gave {kind}, and a mapping from broker id to rack is expected"}
        return {"rows": [_row(key, rack) for key, rack in racks.items() if rack is not None]}
    except BaseException as error:  # noqa: BLE001 it is foreign code, and even its exit is only a failed answer
        return {"failed": f"{step} raised {type(error).__name__}{_place(error)}"}


def _offered(name: str) -> tuple[list[EntryPoint], list[str]]:
    """Entry points of that name, one for each package, and packages whose entry points cannot be read."""
    found: dict[str, list[EntryPoint]] = {}
    unread: list[str] = []
    for package in distributions():
        try:
            offered = [one for one in package.entry_points if one.group == GROUP and one.name == name]
        except Exception:  # noqa: BLE001 the library raises what its parser happens to, and other packages count
            unread.append(str(package.name))
            continue
        if offered:
            found.setdefault(package.name, offered)  # the first on the path is the one that Python imports
    return [one for offered in found.values() for one in offered], unread


def _row(key: object, rack: object) -> list[object]:
    is_id = isinstance(key, int) and not isinstance(key, bool)
    return [str(key) if is_id or isinstance(key, str) else None, rack if isinstance(rack, str) else None]


def _place(error: BaseException) -> str:
    """The line of the entry point's own code that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next((frame for frame in reversed(frames) if frame.filename != __file__), None)
    return f" in line {last.lineno} of {Path(last.filename).name}" if last is not None else ""


if __name__ == "__main__":
    main()
