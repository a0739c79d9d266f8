"""A part of the cluster that was not seen is unknown in every command: never zero, never none, never all there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from agent.simulate.evaluation import evaluate
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import GapCause, ObservationPart
from assignors.problem import TopicPartition
from tests.builders import Answers, an_observation, consumer, instance, reader
from tests.cli.conftest import Run
from tests.command import Done

HIDDEN: dict[ObservationPart, Callable[[Answers], None]] = {
    ObservationPart.TOPICS: lambda answers: (
        answers.topics.clear(),
        answers.topic_configs.clear(),
        answers.ends.clear(),
    ),  # type: ignore[func-returns-value,return-value]
    ObservationPart.GROUPS: lambda answers: (answers.groups.clear(), answers.listed.clear()),  # type: ignore[func-returns-value,return-value]
    ObservationPart.BROKERS: lambda answers: answers.brokers.clear(),
    ObservationPart.END_OFFSETS: lambda answers: answers.ends.clear(),
    ObservationPart.COMMITTED_OFFSETS: lambda answers: answers.committed.clear(),
    ObservationPart.LOG_DIRS: lambda answers: answers.sizes.clear(),
}
COMMANDS = (
    ("status",),
    ("racks",),
    ("groups",),
    ("groups", "classic"),
    ("topics",),
    ("topics", "orders"),
    ("doctor",),
    ("plan",),
    ("plan", "--groups"),
    ("simulate", "--remove-rack", "c"),
    ("explain", "group/classic"),
    ("explain", "topic/orders"),
    ("plan", "--new-topic", "more", "--partitions", "2", "--replication-factor", "2"),
)
OF_WHAT_IS_SEEN = (
    "proposals",  # what would be proposed now
    "parts",
    "unknown",  # these two count what is beside them
    "local_share",
    "kafka_local_share",
    "best_local_share",  # with the share that is unknown beside them
    "kafka_best_local_share",
    "crossing",
    "moved",
    "local",
    "cluster_replicas",
    "cluster_leaders",
    "evidence",
    "prediction",
    "lower_bound",
    "who",  # of a check, whose state is tested elsewhere
    "groups_with_hidden_reads",
    "loss",  # names its own gaps: see below
)


@pytest.fixture
def answers() -> Answers:
    """A cluster with all kinds of groups, where something is to be said in each command."""
    found = an_observation(a=(1, 4), b=(2, 5), c=(3, 6))
    found.topic("orders", (1, 2), (2, 3), (3, 1), (1, 4), min_insync_replicas="2")
    found.topic("store", (1, 2), (2, 3))
    found.sizes.update({(1, TopicPartition("orders", number)): 1_000 for number in range(4)})
    found.group("classic", reader("m1", "a", "orders-0 orders-1"), reader("m2", "b", "orders-2 orders-3"))
    found.committed["classic"] = {TopicPartition("orders", number): 5 for number in range(4)}
    found.kip848("new", consumer("n1", "a", "orders-0 orders-1"), consumer("n2", "z", "orders-2 orders-3"))
    held = ({"0_0": "orders-0", "0_1": "orders-1"}, {"0_2": "orders-2", "0_3": "orders-3"})
    found.streams("app", instance(1, "a", held[0], {"0_2": "orders-2"}), instance(2, "b", held[1], {"0_0": "orders-0"}))
    return found


def hidden(answers: Answers, part: ObservationPart) -> Answers:
    """The same cluster, where that part is not answered."""
    less = deepcopy(answers)
    HIDDEN[part](less)
    return less.gap(part, GapCause.NOT_ALLOWED)


@pytest.fixture
def shown(here: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Runs a command on a look at these answers."""

    def run(answers: Answers, *command: str) -> Done:
        look = evaluate(answers.at(), Memory(), Limits())
        monkeypatch.setattr("agent.cli.session.replayed", lambda _path: look)
        monkeypatch.setenv("COLUMNS", "1000")
        return here(*command, "--replay", "look")

    return run


def leaves(document: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value of a document that is no object and no list with something in it, by its path, with rows by names."""
    if isinstance(document, dict) and document:
        for name, value in document.items():
            yield from leaves(value, (*path, name))
    elif isinstance(document, list) and document and isinstance(document[0], dict):
        for number, row in enumerate(document):
            names = (row.get(name) for name in ("group", "rack", "topic", "check", "id", "broker", "rule"))
            yield from leaves(row, (*path, str(next((name for name in names if name is not None), number))))
    else:
        yield path, document


def vanished(full: Any, less: Any) -> list[str]:
    """The numbers and names that were there, and are zero or none now."""
    before = dict(leaves(full))
    return [
        f"{'.'.join(path)}: {before[path]} -> {value}"
        for path, value in leaves(less)
        if value in (0, [], {}) and value is not False and before.get(path) not in (0, [], {}, None)
        if not set(path) & set(OF_WHAT_IS_SEEN)
    ]


@pytest.mark.parametrize("command", [one for one in COMMANDS if "--new-topic" not in one], ids=" ".join)
@pytest.mark.parametrize("part", HIDDEN)
def test_what_is_hidden_is_never_zero(
    shown: Callable[..., Done], answers: Answers, part: ObservationPart, command: tuple[str, ...]
) -> None:
    less = shown(hidden(answers, part), *command, "-o", "json")
    if less.stdout:
        assert vanished(shown(answers, *command, "-o", "json").json, less.json) == []


@pytest.mark.parametrize("part", [ObservationPart.TOPICS, ObservationPart.GROUPS, ObservationPart.BROKERS])
def test_the_loss_of_a_rack_names_the_answers_that_are_missing(
    shown: Callable[..., Done], answers: Answers, part: ObservationPart
) -> None:
    full, less = (shown(one, "racks", "-o", "json").json for one in (answers, hidden(answers, part)))
    assert [row["loss"]["not_seen"] for row in full if row["loss"]] == [[], [], []]
    told = [row["loss"]["not_seen"] for row in less if row["loss"]]
    assert told
    assert all(part.value in names[0] for names in told)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("part", HIDDEN)
def test_an_answer_without_a_part_is_partial_and_names_it(
    shown: Callable[..., Done], answers: Answers, part: ObservationPart, command: tuple[str, ...], form: str
) -> None:
    done = shown(hidden(answers, part), *command, "-o", form)
    if done.exit_code == 2 and command[-1] in {"classic", "orders"}:
        return  # names that may not have been read end with an error of their own
    if done.exit_code == 2:
        assert (part, command[1]) == (ObservationPart.BROKERS, "--new-topic"), "nothing can be placed on no broker"
        return
    assert done.exit_code == 5
    names_it = done.stdout if (command, form) == (("status",), "table") else done.stderr  # status: among its findings
    assert part.value in " ".join(names_it.split())


NOTHING = ("no topics", "no groups", "no group assigns partitions", "no group is affected")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("part", HIDDEN)
def test_no_sentence_denies_what_is_hidden(
    shown: Callable[..., Done], answers: Answers, part: ObservationPart, command: tuple[str, ...]
) -> None:
    told = shown(hidden(answers, part), *command, "-o", "table")
    lines = [line.strip() for line in f"{told.stdout}\n{told.stderr}".splitlines()]
    assert [line for line in lines if line in NOTHING] == []
    if part is ObservationPart.BROKERS:
        assert "no broker is left" not in told.stdout
        assert "in no broker's rack" not in told.stdout
        assert "there is no rack" not in told.stderr
    if part is ObservationPart.TOPICS:
        assert "leads 0 partitions" not in told.stdout
    if part is ObservationPart.GROUPS:
        assert "by followers and readers" not in told.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_where_all_is_seen_nothing_is_partial(
    shown: Callable[..., Done], answers: Answers, command: tuple[str, ...]
) -> None:
    done = shown(answers, *command, "-o", "table")
    assert done.exit_code == 0
    assert "as far as was seen" not in done.stderr


@pytest.mark.parametrize("command", [("topics",), ("groups",)], ids=" ".join)
def test_a_cluster_that_is_empty_says_so(shown: Callable[..., Done], command: tuple[str, ...]) -> None:
    done = shown(an_observation(a=(1,)), *command, "-o", "table")
    assert done.exit_code == 0
    assert f"no {command[0]}" in done.stderr.splitlines()


def test_one_group_that_did_not_answer_makes_every_sum_a_lower_bound(
    shown: Callable[..., Done], answers: Answers
) -> None:
    full = shown(answers, "status", "-o", "json").json["money"]["consume"]
    less = deepcopy(answers).without_group("app").gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, "app")
    assert shown(less, "status", "-o", "json").json["money"]["consume"]["unknown"] > 0
    assert full["parts"] > 0
