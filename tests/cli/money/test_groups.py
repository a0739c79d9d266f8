"""Money of groups: ``groups`` over a recorded look."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest

from agent.values.limits import Limits, PriceLimits
from tests.builders import reader
from tests.cli.conftest import Record, Run
from tests.cli.money.recorded import A_DAY, priced_cluster, rows


class TestGroups:
    def test_every_group_with_members_has_its_price_the_dearest_first(self, file: str, here: Run) -> None:
        shop, near, _ = rows(here, "groups", "--replay", file)
        assert (shop["group"], near["group"]) == ("shop", "near")
        assert (shop["cross_rack_bytes_per_s"], shop["usd_per_day"]) == (4_000_000.0, pytest.approx(4 * A_DAY))
        assert (near["cross_rack_bytes_per_s"], near["usd_per_day"]) == (0.0, 0.0)
        assert (shop["local_share"], shop["best_local_share"], shop["unknown_share"]) == (0.0, 1.0, 0.0)
        assert (shop["reads"], shop["unknown_reads"], shop["rates"]) == (6, 0, "file")

    def test_lag_stands_beside_locality(self, file: str, here: Run) -> None:
        shop, near, _ = rows(here, "groups", "--replay", file)
        assert (shop["lag_records"], shop["lag_unknown_partitions"]) == (1_001, 0)
        assert (shop["lag_worst_partition"], shop["lag_worst_records"]) == ("orders-0", 1_000)
        assert (near["lag_records"], near["lag_unknown_partitions"]) == (None, 1)

    def test_a_table_leaves_groups_without_members_to_all_and_counts_them(self, file: str, here: Run) -> None:
        table = here("groups", "--replay", file, "-o", "table").stdout
        assert "1 group without members not shown: --all" in table
        assert "old" not in table
        assert "old" in here("groups", "--replay", file, "-o", "table", "--all").stdout
        assert [row["group"] for row in rows(here, "groups", "--replay", file)] == ["shop", "near", "old"]

    def test_the_table_fits_80_columns_and_names_rates_and_price(
        self, file: str, here: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        lines = here("groups", "--replay", file, "-o", "table").stdout.splitlines()
        assert max(map(len, lines)) <= 80
        assert lines[1].split() == ["shop", "classic", "consumer", "2", "0", "%", "100", "%", "4.0", "MB/s", "$6.91",
                                    "1,001"]  # fmt: skip
        assert lines[-3:-1] == [
            "rates: as the agent that wrote the file measured them",
            "money: at $0.02/GB (price.usd_per_gb), both directions together",
        ]

    def test_without_a_price_no_table_has_a_column_of_money(self, two_looks: Callable[..., str], here: Run) -> None:
        file = two_looks(priced_cluster(), Limits(price=PriceLimits(usd_per_gb=None)))
        for command in (("groups",), ("groups", "shop"), ("topics",), ("topics", "orders"), ("racks",), ("status",)):
            assert "$" not in here(*command, "--replay", file, "-o", "table").stdout.replace("$/GB", "")

    def test_a_field_without_a_value_is_empty_in_csv(self, file: str, here: Run) -> None:
        for command in (("groups",), ("plan", "--groups"), ("topics",), ("plan",)):
            told = here(*command, "--replay", file, "-o", "csv").stdout
            assert not {"?", "-"} & {cell for row in csv.reader(io.StringIO(told)) for cell in row}

    def test_a_rack_that_is_not_known_is_null(self, two_looks: Callable[..., str], here: Run) -> None:
        answers = priced_cluster().group("shop", reader("m1", "b", "orders-0"), reader("m2", None, "orders-1"))
        shop = rows(here, "groups", "shop", "--replay", two_looks(answers))
        assert shop["racks"] == ["b", None]
        assert [row["rack"] for row in shop["member_list"]] == ["b", None]

    def test_the_costliest_groups_of_a_status_have_a_heading(self, file: str, here: Run) -> None:
        assert "\ncostliest groups (" in here("status", "--replay", file, "-o", "table").stdout

    def test_reads_and_bytes_that_are_local_have_rules_of_different_names(self, file: str, here: Run) -> None:
        rules = [row["rule"] for row in rows(here, "explain", "group/shop", "--replay", file)]
        local = [rule for rule in rules if rule.startswith("as local as possible")]
        assert len(local) == len(set(local)) == 4

    def test_one_group_tells_what_it_reads_of_each_topic(self, file: str, here: Run) -> None:
        shop = rows(here, "groups", "shop", "--replay", file)
        read = [(row["topic"], row["rack"], row["partitions"], row["usd_per_day"]) for row in shop["topic_list"]]
        dollars = pytest.approx(2 * A_DAY)
        assert read == [
            ("orders", "a", 2, dollars),
            ("orders", "b", 2, dollars),
            ("audit", "a", 1, 0.0),
            ("audit", "b", 1, 0.0),
        ]
        assert [(row["member"], row["rack"]) for row in shop["member_list"]] == [("m1", "a"), ("m2", "b")]
        assert here("groups", "shop", "--replay", file, "-o", "table").exit_code == 0

    def test_what_is_unknown_in_part_has_its_bounds(
        self, two_looks: Callable[..., str], here: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "120")  # both bounds of a cell on one line
        answers = priced_cluster().group("shop", reader("m1", "b", "orders-0"), reader("m2", None, "orders-1"))
        file = two_looks(answers)
        row = next(row for row in rows(here, "groups", "--replay", file) if row["group"] == "shop")
        assert (row["usd_per_day"], row["unknown_reads"], row["reads"]) == (pytest.approx(A_DAY), 1, 2)
        assert row["at_most_usd_per_day"] == pytest.approx(2 * A_DAY)
        assert "$1.73 to $3.46" in here("groups", "--replay", file, "-o", "table").stdout

    def test_a_group_of_unknown_cost_shows_its_bound_and_is_ranked_by_it(
        self, two_looks: Callable[..., str], here: Run
    ) -> None:
        answers = priced_cluster().without_group("near").group("shop", reader("m1", "b", "orders-0"))
        answers.group("lost", reader("n1", None, "orders-0 orders-1")).group("new", reader("x", None, ""))
        file = two_looks(answers)
        lost, shop, *_ = rows(here, "groups", "--replay", file)
        assert (lost["group"], lost["usd_per_day"], lost["at_most_usd_per_day"]) == (
            "lost", None, pytest.approx(2 * A_DAY),
        )  # fmt: skip
        assert (shop["group"], shop["at_most_usd_per_day"]) == ("shop", pytest.approx(A_DAY))
        assert "≤ $3.46" in here("groups", "--replay", file, "-o", "table").stdout
        status = rows(here, "status", "--replay", file)
        assert [row["group"] for row in status["worst_groups"]] == ["lost", "shop"]
        assert status["unknown_groups"]["groups"] == ["lost"]
        assert (
            "1 group with unknown cost, at most $3.46/day: lost\n"
            in here("status", "--replay", file, "-o", "table").stdout
        )
        doctor = here("doctor", "--replay", file, "-o", "table").stdout
        assert "costs up to $3.46/day" in doctor, "the same bound"

    def test_groups_with_and_without_a_bound_are_named_apart_and_none_is_rackwises(
        self, two_looks: Callable[..., str], here: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "160")
        answers = priced_cluster().group("lost", reader("n1", None, "orders-0 orders-1"))
        answers.group("gone", reader("n1", None, "orders-0 gone-0")).group(
            "rackwise-leader", reader("x", None, "gone-0")
        )
        shown = here("status", "--replay", two_looks(answers), "-o", "table").stdout
        assert "2 groups with unknown cost: lost at most $3.46/day; no bound is known for gone\n" in shown

    def test_without_a_rate_there_is_no_bound_and_doctor_tells_none(
        self, two_looks: Callable[..., str], here: Run
    ) -> None:
        answers = priced_cluster().group("lost", reader("n1", None, "orders-0 gone-0"))
        file = two_looks(answers)
        lost = next(row for row in rows(here, "groups", "--replay", file) if row["group"] == "lost")
        assert (lost["usd_per_day"], lost["at_most_usd_per_day"]) == (None, None)
        assert rows(here, "status", "--replay", file)["unknown_groups"]["unbounded_groups"] == ["lost"]
        assert (
            "1 group with unknown cost, and no bound is known: lost\n"
            in here("status", "--replay", file, "-o", "table").stdout
        )
        assert "costs up to" not in here("doctor", "--replay", file, "-o", "table").stdout

    def test_after_one_look_money_is_unknown_and_never_zero(self, record: Record, here: Run) -> None:
        file = str(record(priced_cluster()))
        shop = next(row for row in rows(here, "groups", "--replay", file) if row["group"] == "shop")
        assert (shop["cross_rack_bytes_per_s"], shop["usd_per_day"], shop["rates"]) == (None, None, "unknown")
        table = here("groups", "--replay", file, "-o", "table").stdout
        assert (
            "rates: unknown, as the look in the file is the first of its agent, or no log dir grew before it"
            in " ".join(table.split())
        )
        assert "--for" not in table, "it contradicts --replay"
        line = next(line for line in table.splitlines() if line.startswith("shop"))
        assert "$" not in line

    def test_without_a_price_there_are_bytes_and_no_dollars(self, two_looks: Callable[..., str], here: Run) -> None:
        file = two_looks(priced_cluster(), Limits(price=PriceLimits(usd_per_gb=None)))
        shop = rows(here, "groups", "--replay", file)[0]
        assert (shop["cross_rack_bytes_per_s"], shop["usd_per_day"]) == (4_000_000.0, None)
        assert "no price is set (price.usd_per_gb)" in here("groups", "--replay", file, "-o", "table").stdout
