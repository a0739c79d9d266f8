"""``rackwise assign`` and ``optimize`` as a person runs them: results, exit codes, one sentence for bad files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cli.output import OutputFormat
from tests.assignors.kafka.golden import FOLDER as GOLDEN
from tests.assignors.problem_files import FOLDER as PROBLEMS
from tests.assignors.problem_files import bounds_broken, expected_costs, price
from tests.cli.conftest import Run
from tests.command import RACKWISE, ROOT, Done, environment, rackwise


def packed(path: Path, document: Any) -> str:
    """Write a document as a gzip'ed file and return its name."""
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return str(path)


def unpacked(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


# --- assign -----------------------------------------------------------------------------------------------------

FILES = sorted(GOLDEN.glob("**/*.json.gz"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(GOLDEN)))
def test_every_golden_file_passes_and_gives_the_same_without_its_outputs(file: Path, tmp_path: Path, here: Run) -> None:
    document = unpacked(file)
    whole = here("assign", str(file), "--check", "-o", str(tmp_path / "whole.json"))
    assert whole.stdout == f"{document['count']} passed, 0 failed, 0 skipped\n"
    assert whole.exit_code == 0

    for case in document["cases"]:
        for name in ("output", "other_outputs", "compare", "active_part_exact", "distinct_outputs_seen", "origin"):
            case.pop(name, None)
    stripped = here("assign", packed(tmp_path / "stripped.json.gz", document), "-o", str(tmp_path / "stripped.json"))
    assert (stripped.exit_code, stripped.stdout) == (0, "")
    results = json.loads((tmp_path / "stripped.json").read_text())
    assert results == json.loads((tmp_path / "whole.json").read_text())
    assert [result["id"] for result in results["results"]] == [case["id"] for case in document["cases"]]


RANGE = GOLDEN / "group.range.json.gz"


def test_a_case_that_differs_is_told_by_its_id_and_first_difference(tmp_path: Path) -> None:
    document = unpacked(RANGE)
    document["cases"] = document["cases"][:3]
    wrong = document["cases"][1]
    member, topics = next((name, mine) for name, mine in wrong["output"]["assignment"].items() if mine)
    topic, partitions = next(iter(topics.items()))
    topics[topic] = [*partitions, 77]
    done = rackwise("assign", packed(tmp_path / "wrong.json.gz", document), "--check")
    assert done.stdout.splitlines() == [
        f"{wrong['id']}: assignment.{member}.{topic} is {partitions}; Kafka has {[*partitions, 77]}",
        "2 passed, 1 failed, 0 skipped",
    ]
    assert (done.exit_code, done.stderr) == (1, "")


def test_a_case_without_output_is_skipped_and_keeps_the_check_from_passing(tmp_path: Path, here: Run) -> None:
    document = unpacked(RANGE)
    document["cases"] = document["cases"][:3]
    del document["cases"][2]["output"]
    done = here("assign", packed(tmp_path / "some.json.gz", document), "--check")
    assert (done.exit_code, done.stdout) == (1, "2 passed, 0 failed, 1 skipped\n")


def test_results_go_to_standard_output_and_cases_may_come_from_standard_input() -> None:
    done = subprocess.run(
        [*RACKWISE, "assign", "-"], input=RANGE.read_bytes(), capture_output=True, check=False, timeout=90,
        cwd=ROOT, env=environment(),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    results = json.loads(done.stdout)["results"]
    assert [result["output"] for result in results] == [case["output"] for case in unpacked(RANGE)["cases"]]


def test_json_without_gzip_is_read_too(tmp_path: Path, here: Run) -> None:
    (tmp_path / "cases.json").write_text(json.dumps(unpacked(RANGE)))
    assert here("assign", str(tmp_path / "cases.json"), "--check").stdout.endswith(" 0 failed, 0 skipped\n")


def assert_one_sentence(done: Done, *parts: str) -> None:
    """Bad input: exit code 2, nothing on standard output, one line on standard error."""
    assert (done.exit_code, done.stdout) == (2, ""), done
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("rackwise: ")
    for part in parts:
        assert part in done.stderr


def assert_three_sentences(done: Done, what: str, why: str = "") -> None:
    """Bad input that is reported by what, why and what to do."""
    assert (done.exit_code, done.stdout) == (2, ""), done
    first, reason, todo = done.stderr.splitlines()
    assert first.startswith("rackwise: ")
    assert what in first
    assert reason.startswith(f"  why: {why}")
    assert todo.startswith("  do:  ")


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


def sparse(folder: Path) -> Path:
    with (folder / "sparse.json").open("wb") as file:
        file.truncate(10_000_000_000)
    return folder / "sparse.json"


def bad_files(folder: Path) -> dict[str, tuple[str, str, str]]:
    """Mistake -> file, what is reported, and why; the same for both commands."""
    whole = gzip.compress(b'{"cases": []}' * 99)
    contents = {
        "a directory": (folder, None, "cannot be read", "it is a directory, and a regular file is expected"),
        "a named pipe": (pipe(folder), None, "cannot be read", "it is a named pipe"),
        "a device": (Path("/dev/zero"), None, "cannot be read", "it is a device"),
        "a sparse file of 10 GB": (sparse(folder), None, "cannot be read", "it is larger than 256 MiB"),
        "not there": (folder / "nowhere.json.gz", None, "cannot be read", "No such file or directory"),
        "not gzip": (folder / "plain.json.gz", b'{"cases": []}', "is not a whole gzip file", "Not a gzipped file"),
        "cut gzip": (folder / "cut.json.gz", whole[:-20], "is not a whole gzip file", ""),
        "flipped gzip": (
            folder / "flip.json.gz",
            whole[:15] + b"\xff\xff" + whole[17:],
            "is not a whole gzip file",
            "",
        ),
        "not JSON": (folder / "text.json", b"cases: []", "cannot be used", "it is not JSON: Expecting value"),
        "not JSON in gzip": (folder / "text.json.gz", gzip.compress(b"cases: []"), "cannot be used", "it is not JSON"),
        "nothing": (folder / "empty.json", b"", "cannot be used", "it is not JSON: Expecting value"),
        "not text": (folder / "binary.json", b'{"\xff": 1}', "cannot be used", "it is not UTF-8 text at byte 2"),
        "too deep": (folder / "deep.json", b"[" * 100_000, "cannot be used", "it is nested more than 64 deep"),
        "a number of 400 digits": (folder / "long.json", b"9" * 400, "cannot be used", "a number in it has more than"),
        "infinity": (folder / "inf.json", b"[1e999]", "cannot be used", "a number in it is too large"),
        "half a character": (folder / "half.json", b'["\\ud800"]', "cannot be used", "a text in it holds half a"),
        "a name that comes twice": (folder / "twice.json", b'{"a":1,"a":2}', "cannot be used", "a name comes twice"),
    }
    for path, content, *_ in contents.values():
        if content is not None:
            path.write_bytes(content)
    return {name: (str(path), what, why) for name, (path, _, what, why) in contents.items()}


def test_a_gzip_file_that_unfolds_without_end_is_refused(
    tmp_path: Path, here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.cli.options._MOST_BYTES", 10_000)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 1_000_000))
    done = here("assign", str(tmp_path / "bomb.json.gz"))
    assert_three_sentences(done, "bomb.json.gz cannot be used", "it has 10,001 bytes, and at most 10,000 are read")


@pytest.mark.parametrize("command", ["assign", "optimize"])
def test_a_file_that_cannot_be_read_is_told_with_the_reason(command: str, tmp_path: Path, here: Run) -> None:
    for path, what, why in bad_files(tmp_path).values():
        assert_three_sentences(here(command, path), f"{path} {what}", why)


def test_a_bad_file_is_one_sentence_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = packed(
        tmp_path / "odd.json.gz", {"assignor": "consumer.fair", "kafka_version": "4.1.1", "cases": [{"id": "a"}]}
    )
    assert_one_sentence(
        rackwise("assign", path, "--check"), path, "cases[0].assignor is 'consumer.fair'; it is one of "
    )


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["run", "check"])
def test_a_malformed_case_refuses_the_file_and_is_named(options: tuple[str, ...], tmp_path: Path, here: Run) -> None:
    document = unpacked(RANGE)
    del document["cases"][2]["input"]["members"][0]["topics"]
    done = here("assign", packed(tmp_path / "odd.json.gz", document), *options)
    assert_one_sentence(done, f"case {document['cases'][2]['id']}: members[0].topics is missing")


@pytest.mark.parametrize("command", ["assign", "optimize"])
def test_a_result_that_cannot_be_written_is_told_with_the_reason(command: str, tmp_path: Path, here: Run) -> None:
    file = RANGE if command == "assign" else PROBLEMS / "t100c10.json.gz"
    done = here(command, str(file), "-o", str(tmp_path))
    assert_three_sentences(done, f"{tmp_path} cannot be written", "Is a directory")


# --- optimize ---------------------------------------------------------------------------------------------------

EXPECTED = expected_costs()
SHARES = {"min_traffic": "none", "balance_subtopology": "subtopology"}


@pytest.fixture(scope="module")
def problems() -> Callable[[str], Any]:
    kept: dict[str, Any] = {}
    return lambda name: kept.setdefault(name, unpacked(PROBLEMS / f"{name}.json.gz"))


@pytest.mark.parametrize(("name", "variant"), EXPECTED, ids=[f"{name} {variant}" for name, variant in EXPECTED])
def test_every_problem_costs_what_is_proven(
    name: str, variant: str, tmp_path: Path, here: Run, problems: Callable[[str], Any]
) -> None:
    cost = EXPECTED[name, variant]
    counts, balance, traffic, move = variant.split("/")
    balance = SHARES.get(balance, balance)
    path = tmp_path / "result.json"
    arguments = (str(PROBLEMS / f"{name}.json.gz"), "--counts", counts, "--balance", balance,
                 "--traffic-cost", traffic, "--non-overlap-cost", move, "-o", str(path))  # fmt: skip
    done = here("optimize", *arguments)
    result = json.loads(path.read_text())
    assert (done.exit_code, done.stdout) == (0, "")
    assert (result["cost"], result["lower_bound"], result["optimal"]) == (cost, cost, True)

    problem = problems(name)
    assert price(problem, result["client"], (int(traffic), int(move))) == (cost, result["cross_rack"], result["moved"])
    assert bounds_broken(problem, result["client"], counts, balance) == []
    assert sorted(result["seconds"]) == ["expand", "model", "read", "solve"]

    here("optimize", *arguments)
    again = json.loads(path.read_text())
    del result["seconds"], again["seconds"]
    assert again == result


def test_by_default_counts_are_free_and_subtopologies_balanced(here: Run) -> None:
    done = here("optimize", str(PROBLEMS / "t400c10.json.gz"))
    assert (done.exit_code, done.json["cost"]) == (0, EXPECTED["t400c10", "free/subtopology/10/1"])
    assert done.stderr == (
        f"cost 132 (the least possible): {done.json['cross_rack']} source partitions across racks, "
        f"{done.json['moved']} tasks moved\n"
    )


def test_a_problem_is_solved_alike_packed_plain_and_from_standard_input(tmp_path: Path, here: Run) -> None:
    file = PROBLEMS / "t180c50_racks50.json.gz"
    (tmp_path / "plain.json").write_bytes(gzip.decompress(file.read_bytes()))
    arguments = ("--counts", "fixed", "--balance", "none")
    done = subprocess.run(
        [*RACKWISE, "optimize", "-", *arguments], input=file.read_bytes(), capture_output=True, check=False,
        timeout=90, cwd=ROOT, env=environment(),
    )  # fmt: skip
    results = [
        json.loads(done.stdout),
        here("optimize", str(file), *arguments).json,
        here("optimize", str(tmp_path / "plain.json"), *arguments).json,
    ]
    for result in results:
        del result["seconds"]
    assert results[0] == results[1] == results[2]
    assert results[0]["cost"] == EXPECTED["t180c50_racks50", "fixed/min_traffic/10/1"]


def test_timings_are_told_in_order_on_standard_error() -> None:
    done = rackwise("optimize", str(PROBLEMS / "t100c10.json.gz"), "--timings")
    assert done.exit_code == 0
    told = done.stderr.splitlines()[-1]
    assert told.startswith("seconds of CPU: read 0.")
    assert [part.split()[0] for part in told.removeprefix("seconds of CPU: ").split(", ")][:4] == list(
        done.json["seconds"]
    )


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        pytest.param(lambda p: p["tasks"].pop("owner"), (), "tasks.owner is missing", id="a missing column"),
        pytest.param(
            lambda p: p["tasks"]["partition"].pop(), (), "tasks.partition has 99 entries", id="unequal lengths"
        ),
        pytest.param(
            lambda p: p["clients"]["rack"].__setitem__(4, 3),
            (),
            "clients.rack[4] is 3; it is a whole number from 0 to 2",
            id="a rack out of range",
        ),
        pytest.param(
            lambda p: p["sources"]["mask"].__setitem__(0, 8), (), "sources.mask[0] is 8", id="a mask out of range"
        ),
        pytest.param(
            lambda p: p["tasks"]["owner"].__setitem__(7, -1),
            ("--counts", "fixed"),
            "tasks.owner[7] is -1; fixed counts need an owner for every task",
            id="fixed counts and an owner who is gone",
        ),
        pytest.param(lambda _: None, ("--traffic-cost", "-1"), "the traffic cost is -1", id="a negative cost"),
        pytest.param(
            lambda _: None,
            ("--non-overlap-cost", str(2**31)),
            "the non-overlap cost is 2147483648",
            id="a cost too large",
        ),
    ],
)
def test_a_bad_problem_is_one_sentence_naming_the_field(
    change: Callable[[Any], Any], options: tuple[str, ...], sentence: str, tmp_path: Path, here: Run
) -> None:
    problem = unpacked(PROBLEMS / "t100c10.json.gz")
    change(problem)
    path = packed(tmp_path / "bad.json.gz", problem)
    assert_one_sentence(here("optimize", path, *options, "-o", str(tmp_path / "result.json")), path, sentence)
    assert not (tmp_path / "result.json").exists()


def test_a_bad_problem_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = packed(tmp_path / "bad.json.gz", {"racks": 3})
    assert_one_sentence(rackwise("optimize", path), f"{path}: clients is missing; it is an object of columns")


@pytest.mark.parametrize("options", [("--counts", "some"), ("--balance", "rack"), ("--traffic-cost", "much")])
def test_an_option_misspelt_is_a_usage_error(options: tuple[str, ...], here: Run) -> None:
    done = here("optimize", str(PROBLEMS / "t100c10.json.gz"), *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert options[0] in done.stderr


# --- beside the other commands ------------------------------------------------------------------------------------


def test_both_are_listed() -> None:
    listed = rackwise("--help").stdout
    assert "  assign " in listed
    assert "  optimize " in listed


def test_the_help_loads_no_solver() -> None:
    """It has to answer at once: numpy and OR-Tools alone take as long as all the rest."""
    asked = "import agent.cli.assign, agent.cli.app, sys; agent.cli.app.command_line('--help'); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=90, cwd=ROOT,
    ).stdout.split()  # fmt: skip
    assert "agent.cli.assign" in loaded
    assert [name for name in loaded if name.partition(".")[0] in {"numpy", "ortools", "networkx", "assignors"}] == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("rackwise opt", "optimize", id="a command"),
        pytest.param("rackwise optimize --coun", "--counts", id="an option"),
        pytest.param("rackwise optimize --counts f", "fixed free", id="a word of few"),
    ],
)
def test_the_shell_completes(words: str, expected: str, monkeypatch: pytest.MonkeyPatch, here: Run) -> None:
    monkeypatch.setenv("_RACKWISE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert here().stdout.split() == expected.split()


@pytest.mark.parametrize("form", [*OutputFormat])
@pytest.mark.parametrize("command", ["assign", "optimize"])
def test_the_name_of_an_output_format_is_no_file(
    command: str, form: OutputFormat, tmp_path: Path, here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = here(command, str(FILES[0]), "-o", form.value)
    assert (done.exit_code, f"-o {form.value} is an output format of other commands" in done.stderr) == (2, True), (
        done.stderr
    )
    assert "Leave out -o for standard output" in done.stderr
    assert [*tmp_path.iterdir()] == []
