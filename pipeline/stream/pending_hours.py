"""Hours whose histories are still to be worked out, kept beside the tables, so that no kill forgets them.

Invariant: an hour is written down before the batch that touched it counts as done, and crossed out only when its
histories stand in gold. What is worked out twice gives the same rows.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable

from agent.errors import RackwiseError
from pipeline.files import HadoopFiles
from pipeline.jobs.work import ClusterHour


class PendingHours:
    """The hours in the folder ``path``, a file for each batch that brought new ones."""

    def __init__(self, files: HadoopFiles, path: str) -> None:
        self._files = files
        self._path = path
        self._names = [name for name in files.names(path) if name.endswith(".json")]
        self.hours: frozenset[ClusterHour] = frozenset(hour for name in self._names for hour in self._read(name))

    def add(self, hours: Iterable[ClusterHour]) -> None:
        """These as well."""
        new = sorted(set(hours) - self.hours)
        if not new:
            return
        name = f"{uuid.uuid4().hex}.json"
        self._files.write(f"{self._path}/{name}", json.dumps(new))
        self._names.append(name)
        self.hours |= set(new)

    def settle(self) -> None:
        """None of them any more."""
        self.hours = frozenset()
        while self._names:
            self._files.delete(f"{self._path}/{self._names[-1]}")
            self._names.pop()

    def _read(self, name: str) -> list[ClusterHour]:
        text = self._files.read(f"{self._path}/{name}")
        try:
            return [ClusterHour(str(cluster), int(hour_ms)) for cluster, hour_ms in json.loads(text or "[]")]
        except (ValueError, TypeError) as error:
            raise RackwiseError(
                f"{self._path}/{name} cannot be read",
                why=f"it should list the hours whose histories are not computed yet: {error!r}",
                todo="Delete it, and compute everything again with: rackwise spark refresh",
            ) from error
