"""Random histories of small clusters, as rows of silver, with what really flowed in them.

A broker's racks are renamed, the selector is rolled out, replicas fall behind, lose their log and are moved, the agent
restarts, misses looks and has its clock set, topics are made again and groups reset their offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.pipeline.silver_rows import Row, look, partition, read

RECORD_BYTES = 100
KINDS = (
    "nothing", "relabel", "roll", "behind", "wipe", "move", "gap", "restart", "ahead", "back", "again", "reset",
    "rebalance", "no answer",
)  # fmt: skip
_FOLLOWERS = {"orders": 2, "side": 1}


class Step(NamedTuple):
    """What happens before a look, which is so long after the one before; records are appended meanwhile."""

    kind: str
    seconds: int
    records: int


def _steps(without: tuple[str, ...]) -> st.SearchStrategy[list[Step]]:
    kinds = st.sampled_from([kind for kind in KINDS if kind not in without])
    return st.lists(st.builds(Step, kinds, st.integers(20, 600), st.integers(0, 5_000)), min_size=8, max_size=16)


HISTORIES = st.one_of(_steps(("ahead", "back")), _steps(("restart",)))
"""Where a clock is set and the agent restarts on the same day, which look comes first may be unknown."""


class RandomHistory:
    """One cluster. ``flowed`` are bytes by path and topic, or group, between the first look and the last."""

    def __init__(self, cluster: str, steps: list[Step]) -> None:
        self.steps = steps
        self.looks: list[Row] = []
        self.partitions: list[Row] = []
        self.reads: list[Row] = []
        self.flowed: dict[tuple[str, str], int] = defaultdict(int)
        self._cluster = cluster
        self._second, self._ahead_s, self._instance, self._began_s = 0, 0, 0, 0
        self._racks = {1: "a", 2: "b", 3: "c", 4: "a"}
        self._selectors = dict.fromkeys(self._racks, True)
        self._ends = {"orders": 0, "side": 0}
        self._made = 0
        self._held = {"orders": {1: 0, 2: 0, 3: 0}, "side": {1: 0, 2: 0}}
        self._adding: set[int] = set()
        self._behind = False
        self._committed = {"members": 0, "flink": 0}
        self._known = dict(self._committed)
        self._look("nothing")
        kind = ""
        for step in steps:
            # An answer that is missing in the very last look before a restart is missing for good.
            kind = "gap" if (kind, step.kind) == ("no answer", "restart") else step.kind
            self._play(step._replace(kind=kind))

    def _play(self, step: Step) -> None:
        seconds = step.seconds + (3_600 if step.kind == "gap" else 0)
        self._second += seconds
        if step.kind == "restart":
            self._instance, self._began_s = self._instance + 1, self._second
        self._ahead_s += {"ahead": 1, "back": -1}.get(step.kind, 0) * (1_000 + 5 * step.seconds)
        if step.kind == "relabel":
            self._racks[2] = "c" if self._racks[2] == "b" else "b"
        if step.kind == "roll":
            later = min((broker for broker, has in self._selectors.items() if has), default=None)
            self._selectors = dict.fromkeys(self._racks, True) if later is None else self._selectors | {later: False}
        if step.kind == "again":
            self._made += 1
            self._ends["orders"] = 0
            self._held["orders"], self._adding = dict.fromkeys((1, 2, 3), 0), set()
        for topic, records in (("orders", step.records), ("side", step.records // 2)):
            self._ends[topic] += records
            self.flowed["produce", topic] += records * RECORD_BYTES
            self.flowed["replicate", topic] += records * RECORD_BYTES * _FOLLOWERS[topic]
        self._replicate(step)
        self._commit(step)
        self._look(step.kind)

    def _replicate(self, step: Step) -> None:
        """Followers hold what the leader holds, but for one that is behind, and new ones."""
        held, full = self._held["orders"], self._ends["orders"] * RECORD_BYTES
        self._held["side"] = dict.fromkeys(self._held["side"], self._ends["side"] * RECORD_BYTES)
        last = max(broker for broker in held if broker != 1)
        behind_before, self._behind = self._behind, step.kind in ("behind", "wipe")
        for broker in held:
            if broker not in self._adding and not (self._behind and broker == last):
                held[broker] = full
        if step.kind == "wipe" and not behind_before and not self._adding:
            self.flowed["lost", "orders"] += held[last]
            held[last] = 0
        self._move(step, full)

    def _move(self, step: Step, full: int) -> None:
        """A replica is added to broker 4 in one look, and is there in the next one, in the place of broker 3."""
        held = self._held["orders"]
        if self._adding:
            (new,) = self._adding
            self.flowed["move", "orders"] += full - held[new]
            self._adding = set()
            held[new] = full
            del held[3 if new == 4 else 4]
        elif step.kind == "move":
            new = 4 if 4 not in held else 3
            self._adding = {new}
            held[new] = full // 3
            self.flowed["move", "orders"] += held[new]

    def _commit(self, step: Step) -> None:
        """What a reset read before, or of a topic that was deleted, is unknown; what it reads again it reads."""
        for group, topic in (("members", "orders"), ("flink", "side")):
            now = max(0, self._committed[group] - 1_000) if step.kind == "reset" else self._ends[topic]
            self._committed[group] = now
            if step.kind == "no answer" and group == "members":
                continue
            if step.kind != "again" or topic != "orders":
                self.flowed["consume", group] += max(0, now - self._known[group]) * RECORD_BYTES
            self._known[group] = now

    def _look(self, kind: str) -> None:
        of = look(
            f"{self._instance:08x}",
            len(self.looks),
            second=self._second + self._ahead_s,
            monotonic=self._second - self._began_s,
            cluster=self._cluster,
            racks=len(set(self._racks.values())),
            known_racks=len(set(self._racks.values())),
        )
        self.looks.append(of)
        self.partitions += self._rows(of)
        self.reads += self._readers(of, kind)

    def _rows(self, of: Row) -> Iterator[Row]:
        for topic, held in self._held.items():
            adding = sorted(self._adding) if topic == "orders" else []
            behind = [max(held)] if self._behind and topic == "orders" else []
            yield partition(
                of,
                topic,
                self._ends[topic],
                self._ends[topic] * RECORD_BYTES,
                topic_id=f"{topic}-{self._made if topic == 'orders' else 0}",
                replicas=list(held),
                isr=[broker for broker in held if broker not in (*adding, *behind)],
                broker_racks=self._racks,
                replica_bytes=list(held.values()),
                adding=adding or None,
                leader_selector=self._selectors[1],
                learned_bytes_per_record=float(RECORD_BYTES),
            )

    def _readers(self, of: Row, kind: str) -> Iterator[Row]:
        more: dict[str, Any] = {"member": "", "role": "hidden"} if kind == "rebalance" else {}
        told = None if kind == "no answer" else self._committed["members"]
        yield read(of, "members", "orders", None if more else "c", told, **more)
        yield read(of, "flink", "side", None, self._committed["flink"], member="", role="unassigned")
