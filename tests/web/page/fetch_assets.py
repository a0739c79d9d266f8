"""Fetches the browser libraries of the page and of its tests: python -m tests.web.page.fetch_assets

Each package of a vendor.lock.json is packed by npm at its pinned version, its archive must have the pinned SHA-512, and
its files are copied beside the lock. Page and tests use the files in git: this runs only when a version changes.
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
TEST_VENDOR = Path(__file__).parents[2] / "browser" / "vendor"
LOCK = "vendor.lock.json"


class LockedFile(NamedTuple):
    """A file of a package and its copy beside the lock."""

    package: str
    source: str
    """Its path in the package."""
    copy: str
    """Its name beside the lock."""
    sha256: str


def locked_files(vendor: Path = VENDOR) -> Iterator[LockedFile]:
    """Every file of the lock in that folder."""
    for package in json.loads((vendor / LOCK).read_text()):
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
        for vendor in (VENDOR, TEST_VENDOR):
            for package in json.loads((vendor / LOCK).read_text()):
                wrong += _fetched(npm, package, vendor, Path(directory))
    for sentence in wrong:
        sys.stderr.write(f"{sentence}\n")
    return 1 if wrong else 0


def _fetched(npm: str, locked: dict[str, str], vendor: Path, directory: Path) -> list[str]:
    package, version, integrity = locked["package"], locked["version"], locked["integrity"]
    command = [npm, "pack", f"{package}@{version}", "--silent", "--pack-destination", str(directory)]
    packed = subprocess.run(command, check=True, capture_output=True, text=True)
    archive = directory / packed.stdout.strip().splitlines()[-1]
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != integrity:
        return [f"{package} {version} has {found}, and the lock has {integrity}"]
    wrong = []
    with tarfile.open(archive) as files:
        for row in locked_files(vendor):
            if row.package != package:
                continue
            member = files.extractfile(f"package/{row.source}")
            content = member.read() if member is not None else b""
            if (digest := hashlib.sha256(content).hexdigest()) != row.sha256:
                wrong.append(f"{row.source} of {package} {version} has sha256 {digest}")
                continue
            (vendor / row.copy).write_bytes(content)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
