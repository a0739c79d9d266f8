"""Files for people, in a folder of this machine: written next to their places and moved there, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent.errors import BadInput


@contextmanager
def written_whole(what: str, folder: Path, names: Iterable[str]) -> Iterator[Mapping[str, Path]]:
    """Name -> the place to write it to, which is moved to its name in the folder when all are written.

    A reader never sees half of a file. ``what`` is what they are, such as ``the report``. Raises BadInput where the
    folder cannot be written to.
    """
    # The ending stays, as some formats go by it.
    beside = {name: folder / f".new.{name}" for name in names}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield beside
        for name, file in beside.items():
            file.replace(folder / name)
    except OSError as error:
        raise BadInput(
            f"{what} cannot be written to {folder}",
            why=error.strerror or str(error),
            todo="Give --out a folder that can be written to.",
        ) from error
