"""Java's hashes, orders, draws and heaps: known values, and the library itself as the judge."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from assignors.kafka.java import (
    JavaHeap,
    JavaRandom,
    bounded,
    copied_set_table,
    grown_table,
    halves_hash,
    hash_order,
    shuffle,
    signed_32,
    sized_table,
    string_hash,
    task_hash,
    topic_id_halves,
    topic_partition_hash,
    utf16_key,
    uuid_halves,
)
from pipeline.maven import java

SOURCE = Path(__file__).parents[2] / "java" / "LibraryOracle.java"
Ask = Callable[[Iterable[str]], list[list[int]]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 0, id="nothing"),
        pytest.param("consumer", -567770122, id="ascii that overflows"),
        pytest.param("Aa", 2112, id="a text with the hash of BB"),
        pytest.param("BB", 2112, id="a text with the hash of Aa"),
        pytest.param("größe", 98762257, id="umlauts"),
        pytest.param("\U0001f600", 1772899, id="a surrogate pair counts as two units"),
    ],
)
def test_strings_hash_as_in_java(text: str, expected: int) -> None:
    assert string_hash(text) == expected


def test_strings_sort_by_utf16_units() -> None:
    assert sorted(["\uff5e", "\U0001f600", "z", ""], key=utf16_key) == ["", "z", "\U0001f600", "\uff5e"]


def test_ids_hash_and_sort_as_in_java() -> None:
    assert topic_partition_hash(("orders", 7)) == -1008769153
    assert task_hash((3, 11)) == 33015
    low, high, zero = (
        uuid_halves(text)
        for text in (
            "7fffffff-ffff-ffff-ffff-ffffffffffff",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "00000000-0000-0000-0000-000000000000",
        )
    )
    assert sorted([low, zero, high]) == [high, zero, low], "the halves are signed"
    assert topic_id_halves("AAAAAAAAAAEAAAAAAAAAAg") == (1, 2)


@pytest.mark.parametrize(
    "text", ["", "AAAA", "AAAAAAAAAAEAAAAAAAAAAg==", "not a topic id at all!", "AAAAAAAAAAEAAAAAAAAA é"]
)
def test_what_is_no_topic_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a topic id"):
        topic_id_halves(text)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        pytest.param(grown_table(12), 16, id="twelve entries still fit sixteen buckets"),
        pytest.param(grown_table(13), 32, id="the thirteenth doubles them"),
        pytest.param(copied_set_table(12), 32, id="a copied set leaves more room"),
        pytest.param(copied_set_table(3), 16, id="a copied set has sixteen buckets at least"),
        pytest.param(sized_table(17), 32, id="a capacity is rounded up to a power of two"),
    ],
)
def test_tables_have_the_size_of_java(table: int, expected: int) -> None:
    assert table == expected


@pytest.mark.parametrize("bound", [0, -5])
def test_a_bound_that_is_not_positive_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        JavaRandom(1).next_int(bound)


def test_a_remainder_that_would_be_favoured_is_drawn_again() -> None:
    draws = iter([(1 << 31) - 1, 12])
    assert bounded(lambda _bits: next(draws), 10) == 2


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    directory = tmp_path_factory.mktemp("library")
    runner = java()
    subprocess.run(["javac", "-d", str(directory), str(SOURCE)], check=True)

    def answers(questions: Iterable[str]) -> list[list[int]]:
        command = [str(runner), "-XX:TieredStopAtLevel=1", "-cp", str(directory), "LibraryOracle"]
        done = subprocess.run(
            command, input="".join(f"{q}\n" for q in questions), stdout=subprocess.PIPE, text=True, check=True
        )
        return [list(map(int, line.split())) for line in done.stdout.splitlines()]

    return answers


def key_sets() -> list[list[tuple[int, int]]]:
    """Keys as (hash, rank): scattered, crowded into few buckets, and those of Streams tasks; ranks decide ties."""
    rng = Random(441)
    sets = []
    for size in (0, 1, 3, 8, 9, 12, 13, 24, 48, 49, 100, 400, 1000):
        for spread in (1, 7, 64, 1 << 16, 1 << 32):
            hashes = [signed_32(rng.randrange(spread) * rng.choice((1, 16, 64, 4096))) for _ in range(size)]
            sets.append(list(zip(hashes, rng.sample(range(size), size), strict=True)))
    for subtopologies, partitions in ((3, 20), (12, 40), (20, 150)):
        tasks = [(s, p) for s in range(subtopologies) for p in range(partitions)]
        keys = [(task_hash(task), task[0] * 1000 + task[1]) for task in tasks]
        sets += [keys, rng.sample(keys, len(keys))]
    return sets


@pytest.mark.parametrize(
    ("collection", "table"),
    [
        pytest.param("set", lambda _count: 16, id="a set that grew"),
        pytest.param("map", lambda _count: 16, id="a map that grew"),
        pytest.param("set-copy", copied_set_table, id="a set made of a collection"),
        pytest.param("sized 5", lambda _count: sized_table(5), id="a set made for five"),
        pytest.param("sized 700", lambda _count: sized_table(700), id="a set made for seven hundred"),
    ],
)
def test_java_visits_in_this_order(ask: Ask, collection: str, table: Callable[[int], int]) -> None:
    cases = key_sets()
    answers = ask(f"{collection} {' '.join(f'{value}/{rank}' for value, rank in keys)}" for keys in cases)
    for keys, answer in zip(cases, answers, strict=True):
        got = hash_order(
            range(len(keys)), lambda i, k=keys: k[i][0], initial=table(len(keys)), order=lambda i, k=keys: k[i][1]
        )
        assert got == answer, keys


def test_java_draws_these_numbers(ask: Ask) -> None:
    rng = Random(36)
    seeds = [0, 1, -1, 42, 2**63 - 1, -(2**63), *(rng.getrandbits(63) for _ in range(20))]
    bounds = [rng.choice((1, 2, 3, 10, 1 << 30, (1 << 30) + 1, 1_610_612_737, 2**31 - 1)) for _ in range(200)]
    answers = ask(f"random {seed} {' '.join(map(str, bounds))}" for seed in seeds)
    for seed, answer in zip(seeds, answers, strict=True):
        generator = JavaRandom(seed)
        assert [generator.next_int(bound) for bound in bounds] == answer


def test_java_shuffles_like_this(ask: Ask) -> None:
    counts = (0, 1, 2, 5, 6, 100)
    for count, answer in zip(counts, ask(f"shuffle 925 {count}" for count in counts), strict=True):
        items = list(range(count))
        shuffle(items, JavaRandom(925).next_int)
        assert items == answer


def test_java_keeps_heaps_like_this(ask: Ask) -> None:
    rng = Random(708)
    questions, ours = [], []
    for _ in range(200):
        heap: JavaHeap[tuple[int, int]] = JavaHeap(key=lambda entry: entry[0])
        steps, pushed = [], []
        for _ in range(rng.randrange(1, 60)):
            match rng.randrange(6):
                case 0 if len(heap):
                    heap.pop()
                    steps.append("pop")
                case 1 if pushed:
                    entry = rng.choice(pushed)
                    heap.discard(entry)
                    steps.append(f"drop:{entry[1]}")
                case _:
                    entry = rng.randrange(8), len(pushed)
                    pushed.append(entry)
                    heap.push(entry)
                    steps.append(f"push:{entry[0]}")
        questions.append(f"heap {' '.join(steps)}")
        ours.append([number for _, number in heap])
    assert ours == ask(questions)


def test_java_makes_heaps_like_this(ask: Ask) -> None:
    rng = Random(709)
    lists = [[rng.randrange(50) for _ in range(size)] for size in (1, 2, 3, 7, 8, 50, 333)]
    answers = ask(f"heapify {' '.join(map(str, keys))}" for keys in lists)
    assert [list(JavaHeap(keys)) for keys in lists] == answers


def test_java_hashes_and_sorts_texts_like_this(ask: Ask) -> None:
    rng = Random(1071)
    alphabet = "abcXYZ019-._äß\uff5e�\ud7ff\ue000\U00010000\U0001f600\U0010ffff"
    texts = ["", *("".join(rng.choices(alphabet, k=rng.randrange(6, 40))) for _ in range(500))]
    (answer,) = ask([f"strings {' '.join(text.encode('utf-16-be').hex() or '-' for text in texts)}"])
    in_order = [texts.index(text) for text in sorted(texts, key=utf16_key)]
    assert [*map(string_hash, texts), *in_order] == answer


def test_java_hashes_and_sorts_uuids_like_this(ask: Ask) -> None:
    rng = Random(848)
    texts = [str(UUID(int=rng.getrandbits(128))) for _ in range(500)]
    (answer,) = ask([f"uuids {' '.join(texts)}"])
    in_order = [texts.index(text) for text in sorted(texts, key=uuid_halves)]
    assert [*(halves_hash(uuid_halves(text)) for text in texts), *in_order] == answer
