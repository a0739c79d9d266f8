"""rackwise is installed as the README, the start and install.md write it, from the clone and from a release.

Drills: they download every package anew.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from deploy.release import dist
from tests.command import ROOT
from tests.manual.howto_blocks import blocks

pytestmark = [pytest.mark.drill, pytest.mark.timeout(1_200)]

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
LINE = re.compile(r"^python3 -m venv venv && venv/bin/pip install PATH/TO/THE/CLONE$", re.MULTILINE)


def ran(text: str, folder: Path) -> str:
    """What a shell says to these commands, each of which has to succeed."""
    done = subprocess.run(["bash", "-e"], input=text, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_clone_is_installed_as_the_readme_and_the_start_write_it(tmp_path: Path) -> None:
    (first,) = LINE.findall((ROOT / "README.md").read_text())
    assert LINE.findall(blocks("start.md")[0].text) == [first]
    ran(first.replace("PATH/TO/THE/CLONE", str(ROOT)), tmp_path)
    assert VERSION in ran("venv/bin/rackwise --version", tmp_path)


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-notify.lock"])
def test_a_release_is_installed_as_install_md_writes_it(lock: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    (block,) = (one for one in re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
                if one.startswith("python3 -m venv venv\n"))  # fmt: skip
    assert f"`{lock}`" in text
    dist.build_twice(ROOT, tmp_path, 1_700_000_000)
    with tarfile.open(tmp_path / f"rackwise-{VERSION}.tar.gz") as sdist:
        file = sdist.extractfile(f"rackwise-{VERSION}/{lock}")
        assert file is not None
        (tmp_path / lock).write_bytes(file.read())
    ran(block.replace("requirements.lock", lock), tmp_path)
    assert VERSION in ran("venv/bin/rackwise --version && venv/bin/pip check >&2", tmp_path)
