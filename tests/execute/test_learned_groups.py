"""What looks teach of a group: who came and went, and how long its rebalances last."""

from __future__ import annotations

from zlib import crc32

import pytest

from agent.execute.trigger_judgement import (
    KEPT_REBALANCES,
    learn,
    offsets_partition,
    transactional,
    transactions_of,
)
from agent.journal.entries import Entry, JournalState, JournalWrite
from agent.journal.triggers import LearnedGroup, learned, learned_of
from agent.values.memory import Memory
from agent.values.snapshot import TaskCopy, TaskRole
from assignors.problem import TaskId, TopicPartition
from tests.act.triggers import a_proposal
from tests.snapshots import NOW_MS, Builder, a_cluster, member, process, task


def a_group(*names: str, **changes: object) -> Builder:
    members = [member(name, "a", f"t-{at}") for at, name in enumerate(names)]
    return a_cluster().topic("t", (1,), (2,)).group("g", *members, **changes)  # type: ignore[arg-type]


def after(writes: tuple[JournalWrite, ...], view: JournalState | None = None) -> JournalState:
    changed = dict(view or {})
    for at, write in enumerate(writes):
        if write.value is None:
            changed.pop(write.key)
        else:
            changed[write.key] = Entry(write.key, write.kind, write.value, NOW_MS, 1, at)
    return changed


def looks(*worlds: Builder, memory: Memory | None = None) -> LearnedGroup | None:
    view: JournalState = {}
    for at, world in enumerate(worlds):
        snapshot = world.snapshot(taken_ms=NOW_MS + at)
        view = after(learn(view, snapshot, memory or Memory(), [a_proposal("g")]), view)
    return learned_of(view, "g")


@pytest.mark.parametrize(
    ("worlds", "came_ms", "went_ms"),
    [
        pytest.param([a_group("m1", "m2")], None, None, id="the first look knows no newcomer"),
        pytest.param([a_group("m1"), a_group("m1", "m2")], NOW_MS + 1, None, id="one came"),
        pytest.param([a_group("m1", "m2"), a_group("m1")], None, NOW_MS + 1, id="one went"),
        pytest.param([a_group("m1"), a_group("m2")], NOW_MS + 1, NOW_MS + 1, id="one went and one came"),
        pytest.param(
            [a_group("m1"), a_group("m1", "m2", state="PreparingRebalance", hidden=True), a_group("m1")], None, None,
            id="who is there while it rebalances is not known",
        ),
    ],
)  # fmt: skip
def test_who_came_and_went(worlds: list[Builder], came_ms: int | None, went_ms: int | None) -> None:
    known = looks(*worlds)
    assert known is not None
    assert (known.came_ms, known.went_ms) == (came_ms, went_ms)


@pytest.mark.parametrize(
    ("since_ms", "lasted_ms"),
    [
        pytest.param(None, (), id="it was stable in the look before"),
        pytest.param(99_500, (), id="it had only just begun then"),
        pytest.param(80_000, (20_000,), id="it had lasted twenty seconds then"),
    ],
)
def test_how_long_a_rebalance_lasted_at_least(since_ms: int | None, lasted_ms: tuple[int, ...]) -> None:
    rebalancing = {} if since_ms is None else {"g": since_ms}
    known = looks(a_group("m1"), memory=Memory(rebalancing=rebalancing, monotonic_ms=100_000))
    assert known is not None
    assert known.slow_rebalances_ms == lasted_ms


def test_only_the_last_rebalances_are_kept() -> None:
    memory = Memory(rebalancing={"g": 0}, monotonic_ms=5_000)
    known = looks(*[a_group("m1")] * (KEPT_REBALANCES + 5), memory=memory)
    assert known is not None
    assert len(known.slow_rebalances_ms) == KEPT_REBALANCES


def test_a_quiet_group_costs_no_entry_and_others_are_not_followed() -> None:
    built = a_group("m1").group("other", member("x", "a", "t-1"))
    snapshot = built.snapshot()
    view = after(learn({}, snapshot, Memory(), [a_proposal("g")]))
    assert list(view) == ["learned/group/g"]
    assert learn(view, snapshot, Memory(), []) == ()


def test_applications_with_warm_ups_are_followed_before_anything_is_proposed() -> None:
    copy = TaskCopy("g", "p2", TaskId(0, 0), TaskRole.WARMUP, True, None, None, None, None, None, None, None)
    built = a_cluster().topic("t", (1,)).streams("g", process("p1", "a", "0_0"), topology=(task("0_0", "t-0"),),
                                                  copies=(copy,))  # fmt: skip
    assert [write.key for write in learn({}, built.snapshot(), Memory(), [])] == ["learned/group/g"]


def test_a_group_that_is_gone_is_forgotten() -> None:
    view = after((learned(LearnedGroup(group_id="g", members=(1,))),))
    writes = learn(view, a_cluster().snapshot(vanished_groups=("g",)), Memory(), [])
    assert after(writes, view) == {}


def test_transactions_are_added_to_what_is_known() -> None:
    known = LearnedGroup(group_id="g", members=(crc32(b"m1"),), came_ms=7)
    view = after((transactional(known, "g", "a transaction includes its offsets"),))
    found = learned_of(view, "g")
    assert found is not None
    assert (found.transactional, found.came_ms) == (True, 7)


# --- transactions -----------------------------------------------------------------------------------------------

OFFSETS = TopicPartition("__consumer_offsets", 7)
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize(
    ("ids", "ongoing", "streams", "says"),
    [
        pytest.param([f"shop-{UUID}-1"], {}, True, f"such as shop-{UUID}-1", id="an application of exactly-once v2"),
        pytest.param(["shop-0_1"], {}, True, "such as shop-0_1", id="an application of the first exactly-once"),
        pytest.param([f"shop-next-{UUID}-1"], {}, True, None, id="another application whose name begins alike"),
        pytest.param(["shop-writer"], {}, True, None, id="an id that Streams would not make"),
        pytest.param([f"shop-{UUID}-1"], {}, False, None, id="a plain group of that name"),
        pytest.param(["x"], {"x": (OFFSETS,)}, False, "the transaction x", id="a transaction with the group's offsets"),
        pytest.param(
            ["x"], {"x": (TopicPartition("__consumer_offsets", 8), TopicPartition("t", 7))}, False, None,
            id="a transaction with others' offsets",
        ),
    ],
)  # fmt: skip
def test_transactions_of_a_group(
    ids: list[str], ongoing: dict[str, tuple[TopicPartition, ...]], streams: bool, says: str | None
) -> None:
    how = transactions_of("shop", ids, ongoing, OFFSETS, streams=streams)
    assert (how is None) is (says is None)
    if says is not None and how is not None:
        assert says in how


@pytest.mark.parametrize(
    ("group", "java_hash"),
    [
        pytest.param("", 0, id="the empty name"),
        pytest.param("orders", -1008770331, id="a name whose hash is negative"),
        pytest.param("polygenelubricants", -(2**31), id="the name whose hash has no absolute value"),
        pytest.param("caf\u00e9", 3045921, id="a letter beyond ASCII"),
        pytest.param("\ud800", 0xD800, id="half a letter, which Java takes as it is"),
    ],
)
def test_the_partition_of_a_groups_offsets_is_javas(group: str, java_hash: int) -> None:
    expected = 0 if java_hash == -(2**31) else abs(java_hash) % 50
    assert offsets_partition(group, 50) == expected
