"""Fetches the browser libraries of the page as pinned in vendor.lock.json: python -m tests.web.page.fetch_assets

Each package is packed by npm at its pinned version, its archive must have the pinned SHA-512, and its files are copied
to static/vendor. The page is built from the files in git: this runs only when a version changes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VENDOR = Path(__file__).parents[3] / "agent" / "web" / "page" / "static" / "vendor"
LOCK = VENDOR / "vendor.lock.json"


class LockedFile(NamedTuple):
    """A file of a package and its copy in static/vendor."""

    package: str
    source: str
    """Its path in the package."""
    copy: str
    """Its name in static/vendor."""
    sha256: str


def locked_files() -> Iterator[LockedFile]:
    """Every file of the lock."""
    for package in json.loads(LOCK.read_text()):
        for row in package["files"]:
            yield LockedFile(package["package"], row["source"], row["copy"], row["sha256"])


def main() -> int:
    """Fetch every package; 1 where an archive or a file has another hash than the lock."""
    npm = shutil.which("npm")
    if npm is None:
        sys.stderr.write("npm is missing: install Node.js, or use the files that are in git\n")
        return 1
    wrong = []
    with tempfile.TemporaryDirectory() as directory:
        for package in json.loads(LOCK.read_text()):
            wrong += _fetched(npm, package["package"], package["version"], package["integrity"], Path(directory))
    for sentence in wrong:
        sys.stderr.write(f"{sentence}\n")
    return 1 if wrong else 0


def _fetched(npm: str, package: str, version: str, integrity: str, directory: Path) -> list[str]:
    command = [npm, "pack", f"{package}@{version}", "--silent", "--pack-destination", str(directory)]
    packed = subprocess.run(command, check=True, capture_output=True, text=True)
    archive = directory / packed.stdout.strip().splitlines()[-1]
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != integrity:
        return [f"{package} {version} has {found}, and the lock has {integrity}"]
    wrong = []
    with tarfile.open(archive) as files:
        for row in locked_files():
            if row.package != package:
                continue
            member = files.extractfile(f"package/{row.source}")
            content = member.read() if member is not None else b""
            if (digest := hashlib.sha256(content).hexdigest()) != row.sha256:
                wrong.append(f"{row.source} of {package} {version} has sha256 {digest}")
                continue
            (VENDOR / row.copy).write_bytes(content)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
