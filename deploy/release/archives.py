"""Archives whose bytes depend on their files alone: sorted names, one time, one owner, no rights but read."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path


def packed(files: Mapping[str, bytes], epoch: int) -> bytes:
    """A gzipped tar archive of these files by their names in it."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", filename="", mtime=epoch) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(files[name]), epoch, 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return buffer.getvalue()


def files_below(directory: Path, prefix: str, suffixes: frozenset[str] = frozenset()) -> dict[str, bytes]:
    """The files below a directory by their names in an archive, all or those with such a suffix."""
    return {
        f"{prefix}/{path.relative_to(directory)}": path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and (not suffixes or path.suffix in suffixes)
    }


def checksums(directory: Path) -> str:
    """Lines for ``sha256sum --check`` of the files of a directory."""
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
