"""Money where one looks: ``status``, ``racks``, ``topics``, ``doctor`` and ``plan`` over a recorded look."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from agent.cli.plan import _saves
from agent.values.limits import Limits, PriceLimits
from agent.values.observation import ObservationPart
from agent.values.proposal import PredictedEffect
from tests.builders import SELECTOR, Answers, an_observation, consumer, reader
from tests.cli.conftest import Record, Run
from tests.cli.money.recorded import A_DAY, priced_cluster, rows, sized
from tests.snapshots import tp


class TestTopics:
    def test_the_dearest_topic_comes_first_with_copies_and_reads(self, file: str, here: Run) -> None:
        orders, audit = rows(here, "topics", "--replay", file)
        assert (orders["topic"], audit["topic"]) == ("orders", "audit")
        led = [{"rack": "a", "partitions": 2}, {"rack": "b", "partitions": 2}]
        assert (orders["in_bytes_per_s"], orders["leaders"]) == (4_000_000.0, led)
        assert orders["replicate_usd_per_day"] == pytest.approx(4 * A_DAY)
        assert orders["read_usd_per_day"] == pytest.approx(4 * A_DAY)
        assert orders["usd_per_day"] == pytest.approx(8 * A_DAY)
        assert [(row["group"], row["rack"]) for row in orders["readers"]] == [
            ("shop", "a"), ("shop", "b"), ("near", "a"), ("near", "b"),
        ]  # fmt: skip

    def test_one_topic_shows_its_partitions_with_leader_replicas_and_readers(self, file: str, here: Run) -> None:
        orders = rows(here, "topics", "orders", "--replay", file)
        assert orders["partition_list"][0] == {
            "partition": 0, "leader": 1, "leader_rack": "a", "replicas": [1, 2], "replica_racks": ["a", "b"],
            "in_bytes_per_s": 1_000_000.0,
            "readers": [{"group": "near", "rack": "a"}, {"group": "shop", "rack": "b"}],
        }  # fmt: skip
        assert "near (a), shop (b)" in here("topics", "orders", "--replay", file, "-o", "table").stdout

    def test_an_unknown_topic_is_a_mistake_of_the_person(self, file: str, here: Run) -> None:
        done = here("topics", "nosuch", "--replay", file)
        assert done.exit_code == 2
        assert "there is no topic 'nosuch'" in done.stderr

    @pytest.mark.parametrize(
        ("asked", "sentence", "remedy"),
        [
            (
                ("topics", "ordres"),
                "there is no topic 'ordres'",
                "Did you mean orders? List all topics: rackwise topics",
            ),
            (("topics", "xyz"), "there is no topic 'xyz'", "  List all topics: rackwise topics"),
            (
                ("groups", "shp"),
                "there is no group 'shp'",
                "Did you mean shop? List all groups: rackwise groups {} --all",
            ),
            (("groups", "xyz"), "there is no group 'xyz'", "  List all groups: rackwise groups {} --all"),
            (("simulate", "--add-member", "shp=a"), "there is no group 'shp'", "Did you mean shop? List all groups"),
            (("simulate", "--replication-factor", "order=2"), "there is no topic 'order'", "Did you mean orders? List"),
            (("simulate", "--add-replica", "order-0=1"), "there is no topic 'order'", "Did you mean orders? Write"),
        ],
    )
    def test_a_name_that_there_is_not_brings_the_nearest_one(
        self, file: str, here: Run, asked: tuple[str, ...], sentence: str, remedy: str
    ) -> None:
        done = here(*asked, "--replay", file)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"rackwise: {sentence}\n  why: no broker lists it\n" in done.stderr
        assert remedy.format(f"--replay {file}") in done.stderr

    @pytest.mark.parametrize(
        ("command", "part"), [("topics", ObservationPart.TOPICS), ("groups", ObservationPart.GROUPS)]
    )
    def test_a_name_that_may_not_have_been_read_is_not_said_to_be_absent(
        self, record: Record, here: Run, command: str, part: ObservationPart
    ) -> None:
        file = str(record(priced_cluster().gap(part)))
        done = here(command, "xyz", "--replay", file)
        assert (done.exit_code, done.stdout) == (5, ""), "it may exist"
        why = f"not all {command} could be read (no answer in time), so it may exist"
        assert f"'xyz' was not found\n  why: {why}\n" in done.stderr
        assert "there is no" not in done.stderr

    @pytest.mark.parametrize(
        ("part", "asked"),
        [
            (ObservationPart.TOPICS, ("simulate", "--replication-factor", "xyz=2")),
            (ObservationPart.TOPICS, ("simulate", "--add-replica", "xyz-0=1")),
            (ObservationPart.TOPICS, ("plan", "--add-partitions", "xyz=9")),
            (ObservationPart.GROUPS, ("simulate", "--add-member", "xyz=a")),
            (ObservationPart.GROUPS, ("simulate", "--standbys", "xyz=1")),
            (ObservationPart.GROUPS, ("explain", "group/xyz")),
            (ObservationPart.TOPICS, ("explain", "topic/xyz/0")),
        ],
    )
    def test_every_command_ends_as_partial_for_a_name_that_may_exist(
        self, record: Record, here: Run, part: ObservationPart, asked: tuple[str, ...]
    ) -> None:
        partial = here(*asked, "--replay", str(record(priced_cluster().gap(part))))
        assert (partial.exit_code, partial.stdout) == (5, "")
        assert f"was not found\n  why: not all {part} could be read (no answer in time), so it may exist\n" in (
            partial.stderr
        )
        whole = here(*asked, "--replay", str(record(priced_cluster())))
        assert (whole.exit_code, whole.stdout) == (2, "")
        assert "was not found" not in whole.stderr

    def test_a_group_whose_reads_are_not_visible_is_named(self, two_looks: Callable[..., str], here: Run) -> None:
        file = two_looks(priced_cluster().group("moving", reader("m", "a", ""), state="PreparingRebalance"))
        table = here("topics", "--replay", file, "-o", "table").stdout
        assert "not in the table: reads of group moving that are not visible now\n" in table


def test_a_rack_pays_for_what_comes_in(file: str, here: Run) -> None:
    found = {row["rack"]: row for row in rows(here, "racks", "--replay", file)}
    into = {rack: row["cross_rack_in_bytes_per_s"] for rack, row in found.items()}
    assert into == {"a": 4_000_000.0, "b": 4_000_000.0}
    assert sum(row["usd_per_day"] for row in found.values()) == pytest.approx(8 * A_DAY)
    table = here("racks", "--replay", file, "-o", "table").stdout
    assert "losing a: " in table


def test_status_sums_up_and_names_the_dearest_groups(file: str, here: Run) -> None:
    found = rows(here, "status", "--replay", file)
    assert found["money"]["total"]["usd_per_day"] == pytest.approx(8 * A_DAY)
    assert found["money"]["replicate"]["usd_per_day"] == pytest.approx(4 * A_DAY)
    assert found["money"]["price"] == {"usd_per_gb": 0.02, "pairs_with_own_price": 0}
    assert found["worst_groups"] == [
        {
            "group": "shop",
            "usd_per_day": pytest.approx(4 * A_DAY),
            "at_most_usd_per_day": pytest.approx(4 * A_DAY),
            "cross_rack_bytes_per_s": 4e6,
            "at_most_cross_rack_bytes_per_s": 4e6,
            "unknown_reads": 0,
        }
    ]
    assert found["unknown_groups"] == {
        "groups": [], "unbounded_groups": [], "at_most_cross_rack_bytes_per_s": None, "at_most_usd_per_day": None,
    }  # fmt: skip
    assert "8.0 MB/s, $13.82/day" in here("status", "--replay", file, "-o", "table").stdout


def test_doctor_says_what_a_fault_costs_and_fits_the_terminal(
    file: str, here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    selector = next(row for row in rows(here, "doctor", "--replay", file) if row["check"].startswith("reads go"))
    assert (selector["state"], selector["usd_per_day"]) == ("FAULT", pytest.approx(4 * A_DAY))
    monkeypatch.setenv("COLUMNS", "80")
    lines = here("doctor", "--replay", file, "-o", "table").stdout.splitlines()
    assert "          costs 4.0 MB/s across racks, $6.91/day" in lines
    assert [line for line in lines if len(line) > 80 and not line.lstrip().startswith(">")] == []


class TestMembersInNoBrokersRack:
    """Racks ``A`` and ``zone-b``, where brokers say ``a`` and ``b``: what these members read crosses for certain."""

    def a_world(self) -> Answers:
        answers = priced_cluster().selector(SELECTOR).without_group("shop").without_group("old")
        return answers.group("wrong", reader("m1", "A", "orders-0 orders-2"), reader("m2", "zone-b", "orders-1"))

    def test_doctor_says_what_they_cost_and_the_line_to_change(self, two_looks: Callable[..., str], here: Run) -> None:
        found = {row["check"]: row for row in rows(here, "doctor", "--replay", two_looks(self.a_world()))}
        racks, spelling = found["clients send client.rack"], found["racks have one spelling"]
        assert (racks["state"], racks["cross_rack_bytes_per_s"]) == ("FAULT", 3_000_000.0)
        assert (racks["usd_per_day"], racks["at_most_usd_per_day"]) == (pytest.approx(3 * A_DAY), None)
        assert (spelling["state"], spelling["usd_per_day"]) == ("FAULT", pytest.approx(2 * A_DAY))
        assert (spelling["line"], spelling["fixes"][0]["who"]) == ("client.rack=a", ["group wrong"])

    def test_members_without_a_rack_add_a_bound_to_it(self, two_looks: Callable[..., str], here: Run) -> None:
        file = two_looks(self.a_world().group("norack", reader("n", None, "orders-3")))
        row = next(row for row in rows(here, "doctor", "--replay", file) if row["check"] == "clients send client.rack")
        assert (row["usd_per_day"], row["at_most_usd_per_day"]) == (
            pytest.approx(3 * A_DAY), pytest.approx(4 * A_DAY),
        )  # fmt: skip
        told = here("doctor", "--replay", file, "-o", "table").stdout
        assert "costs 3.0 MB/s across racks, $5.18/day; up to $6.91/day with the reads that are unknown" in " ".join(
            told.split()
        )

    def test_plan_says_what_the_meant_racks_save_and_a_bound_where_one_is_not_certain(
        self, two_looks: Callable[..., str], here: Run
    ) -> None:
        told = here("plan", "--replay", two_looks(self.a_world()), "-o", "table").stdout
        assert "≤ $5.18" in told, "zone-b may mean anything"
        answers = self.a_world().group("wrong", reader("m1", "A", "orders-0 orders-2"), reader("m2", "b", "orders-1"))
        (proposal,) = rows(here, "plan", "--replay", two_looks(answers))
        assert proposal["predicted"]["usd_per_day_before"] == pytest.approx(2 * A_DAY)
        assert proposal["predicted"]["usd_per_day_after"] == 0.0

    def test_what_an_unknown_rack_would_save_is_unknown_and_not_left_empty(
        self, two_looks: Callable[..., str], here: Run
    ) -> None:
        answers = priced_cluster().selector(SELECTOR).without_group("shop").without_group("old").without_group("near")
        file = two_looks(answers.group("norack", reader("n", None, "orders-3")))
        (proposal,) = rows(here, "plan", "--replay", file)
        assert proposal["predicted"]["usd_per_day_before"] is None
        (line,) = [
            line for line in here("plan", "--replay", file, "-o", "table").stdout.splitlines() if "norack" in line
        ][:1]
        assert line.split("norack", 1)[1].split()[0] == "?"

    def test_members_whose_subscriptions_are_too_old_have_a_bound_of_their_own(
        self, two_looks: Callable[..., str], here: Run
    ) -> None:
        answers = priced_cluster().selector(SELECTOR).without_group("shop").without_group("old")
        file = two_looks(answers.group("aged", reader("m1", None, "orders-0", version=1)))
        row = next(row for row in rows(here, "doctor", "--replay", file) if row["check"].startswith("clients are new"))
        assert (row["state"], row["at_most_usd_per_day"]) == ("FAULT", pytest.approx(A_DAY))


def test_plan_says_what_a_proposal_saves_a_day(two_looks: Callable[..., str], here: Run) -> None:
    file = two_looks(priced_cluster().without_group("near"))
    head, *lines = here("plan", "--replay", file, "-o", "csv").stdout.splitlines()
    assert head == "id,kind,subject,usd_per_day_saved,sentence"
    saved = {line.split(",")[2]: line.split(",")[3] for line in lines}
    assert float(saved["topic/orders"]) == pytest.approx(4 * A_DAY)  # four partitions are led where they are not read
    assert "money: at $0.02/GB" in here("plan", "--replay", file, "-o", "table").stdout


def test_plan_prices_the_reads_of_every_group(two_looks: Callable[..., str], here: Run) -> None:
    dear = Limits(price=PriceLimits(between={("a", "b"): 0.02, ("b", "a"): 0.2}))
    shop = {row["group"]: row for row in rows(here, "plan", "--groups", "--replay", two_looks(priced_cluster()))}[
        "shop"
    ]
    assert (shop["now"]["reads"], shop["now"]["crossing_bytes_per_s"]) == (6, 4_000_000.0)
    assert (shop["now"]["usd_per_day"], shop["optimum"]["usd_per_day"]) == (pytest.approx(4 * A_DAY),) * 2
    shop = {row["group"]: row for row in rows(here, "plan", "--groups", "--replay", two_looks(priced_cluster(), dear))}[
        "shop"
    ]
    assert shop["now"]["usd_per_day"] == pytest.approx(2 * A_DAY + 20 * A_DAY)
    simulated = rows(here, "simulate", "--replay", two_looks(priced_cluster(), dear), "--add-member", "shop=a")
    (shop,) = simulated["groups"]
    assert shop["now"]["usd_per_day"] == pytest.approx(2 * A_DAY + 20 * A_DAY)
    assert shop["optimum"]["usd_per_day"] is not None


@pytest.mark.parametrize(
    ("before", "after", "shown", "number"),
    [
        pytest.param(1.0, 1.0321, "costs $0.03", "-0.0321", id="a saving that is a cost says so"),
        pytest.param(0.000_3, 0.000_3 + 1e-12, "$0.00", "0.0", id="nothing has no sign"),
        pytest.param(0.000_518_4, 0.0, "$0.00052", "0.000518", id="little is not nothing"),
        pytest.param(8.0, 1.0, "$7.00", "7.0", id="dollars"),
    ],
)
def test_what_a_proposal_saves_a_day_reads_as_money(before: float, after: float, shown: str, number: str) -> None:
    saves = _saves(PredictedEffect(usd_per_day_before=before, usd_per_day_after=after))
    assert (saves["saves $/day"], str(saves["usd_per_day_saved"])) == (shown, number)


def test_two_looks_of_a_file_are_refused(file: str, here: Run) -> None:
    done = here("groups", "--replay", file, "--for", "10s")
    assert done.exit_code == 2
    assert "--for and --replay contradict each other" in done.stderr


@pytest.mark.parametrize("duration", ["10", "4s", "2h", "soon"])
def test_a_duration_that_rates_cannot_rest_on_is_refused(duration: str, here: Run) -> None:
    done = here("groups", "--for", duration)
    assert done.exit_code == 2
    assert f"--for {duration}" in done.stderr
    assert "from 5s to 1h" in done.stderr


def a_wide_world() -> Answers:
    """Racks, groups and topics with names as long as people give them, a group of unknown racks, an unfixable one."""
    answers = an_observation(**{"eu-central-1a": (1, 4), "eu-central-1b": (2, 5), "eu-central-1c": (3, 6)})
    answers.topic("orders", (1, 2, 3), (2, 3, 1), (3, 1, 2), (4, 5, 6), ends=[0] * 4)
    answers.topic("payments-by-region", (1, 4), (2, 5), ends=[0] * 2)
    answers.group(
        "billing-service", reader("billing-1", "eu-central-1b", "orders-0 orders-2"),
        reader("billing-2", "eu-central-1c", "orders-1 orders-3"),
    )  # fmt: skip
    answers.group("mailer", reader("mailer-1", None, "orders-0 payments-by-region-0"), assignor="roundrobin")
    answers.kip848("search", consumer("m1", "eu-central-1a", "orders-1 orders-2"))
    return sized(answers)


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize(
    "command",
    ["status", "racks", "groups", "groups mailer", "topics", "topics orders", "plan",
     "simulate --add-member billing-service=eu-central-1a", "top --count 1"],
)  # fmt: skip
def test_a_table_reads_well_in_a_terminal_of_any_width(
    two_looks: Callable[..., str], here: Run, monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "60")
    done = here(*command.split(), "--replay", two_looks(a_wide_world()), "-o", "table")
    assert done.exit_code == 0
    page = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", done.stdout).splitlines()
    assert max(map(len, page)) <= width
    cells = [re.split(r" {2,}", line.strip()) for line in page]
    parted = [cell for row in cells for cell in row if re.fullmatch(r"[kMG]?B/s,?|%|/day|to|≥|≤", cell)]
    assert parted == []
    for name in ("billing-service", "mailer", "orders", "payments-by-region", "eu-central-1b"):
        assert [line for line in page if line.strip().endswith(name[:-2])] == [], "an id is whole"
    sentences = [row for row in cells if row[-1].startswith(("Set client.rack", "Move "))]
    assert all(len(row) == 1 or width > 80 for row in sentences), "a sentence has the width of the terminal"


def test_what_crosses_the_borders_of_racks_has_a_table_of_its_own(
    two_looks: Callable[..., str], here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = here("racks", "--replay", two_looks(a_wide_world()), "-o", "table").stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if "from other racks" in line)
    assert re.split(r" {2,}", lines[at]) == ["rack", "from other racks", "to other racks", "$/day for what comes in"]
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
    assert lines[at + 4].startswith("rates: "), "what has no known rack is in no rack's figure"
    assert any(line.startswith("(unknown)") for line in lines[:at])


@pytest.mark.parametrize("command", [("plan",), ("simulate", "--add-member", "shop=a")])
def test_a_table_of_reads_says_by_which_rule_they_cross_and_how_bytes_are_counted(
    two_looks: Callable[..., str], here: Run, command: tuple[str, ...]
) -> None:
    answers = an_observation(a=(1,), b=(2,)).selector(None).topic("orders", (1, 2), (2, 1), ends=[0, 0])
    answers.topic("x", (1,), (1,), ends=[0, 0])
    sized(answers.group("shop", reader("m", "b", "orders-0 orders-1")))
    answers.ends |= {tp(f"orders-{number}"): 0 for number in (2, 3)}
    shown = here(*command, "--replay", two_looks(answers), "-o", "table").stdout
    (row,) = (line for line in shown.splitlines() if line.startswith("shop"))
    assert "0 of 2 cross" in row
    assert "reads cross by Kafka's rule" in shown
    assert "bytes and money are as read" in " ".join(shown.split())
