"""Rates by two looks, by the agent's memory, by weights: what they are, and what is said of where they are from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.money.costs import costs_of
from agent.simulate.evaluation import base_of_agent, evaluate, first_memory, next_look, second_look
from agent.values.clock import ClockReading
from agent.values.limits import Limits, PriceLimits
from agent.values.memory import Memory, RateBase
from agent.values.observation import ObservationPart
from agent.values.rates import RateMeasurement, RateSource, judged, price_sentence, sentence
from agent.values.weights import FreshWeights
from tests.builders import MONOTONIC_MS, TAKEN_MS, Answers, an_observation, reader
from tests.snapshots import a_cluster, tp

LIMITS = Limits()


def a_topic() -> Answers:
    """One partition led in rack a, read in rack b, with sizes of its two replicas."""
    answers = an_observation(a=(1,), b=(2,)).topic("orders", (1, 2), ends=[1_000]).selector(None)
    answers.group("shop", reader("m", "b", "orders-0"))
    return grown(answers, 0)


def grown(answers: Answers, records: int, record_bytes: int = 500) -> Answers:
    answers.ends[tp("orders-0")] += records
    end = answers.ends[tp("orders-0")]
    answers.sizes = {(broker, tp("orders-0")): end * record_bytes for broker in (1, 2)}
    return answers


class TestTwoLooks:
    def test_two_looks_give_the_rate_of_the_time_between_them(self) -> None:
        answers = a_topic()
        memory = first_memory(answers.at(0), LIMITS)
        seen = second_look(grown(answers, 20_000).at(10), memory, LIMITS)
        assert seen.snapshot.bytes_per_s == {tp("orders-0"): 20_000 * 500 / 10}
        assert seen.rates == RateMeasurement(RateSource.COMMAND, 10.0)
        traffic = costs_of(seen.snapshot).groups["shop"]
        assert traffic is not None
        assert traffic.usd_per_day(LIMITS) == pytest.approx(1.728)

    def test_what_the_loop_keeps_only_of_small_clusters_a_command_keeps_of_any(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agent.memory.remember.MAX_PARTITIONS", 0)
        answers = a_topic()
        memory = first_memory(answers.at(0), LIMITS)
        assert second_look(grown(answers, 10).at(10), memory, LIMITS).snapshot.bytes_per_s == {tp("orders-0"): 500.0}

    def test_without_sizes_on_disk_a_growing_partition_has_no_rate_and_it_is_said_why(self) -> None:
        answers = a_topic()
        answers.sizes = {}
        answers.gap(ObservationPart.LOG_DIRS)
        memory = first_memory(answers.at(0), LIMITS)
        answers.ends[tp("orders-0")] += 5
        seen = second_look(answers.at(10), memory, LIMITS)
        assert seen.snapshot.bytes_per_s == {}
        assert "log dirs did not answer" in sentence(seen.rates, seen.snapshot)

    def test_a_partition_into_which_nothing_was_written_has_the_rate_zero(self) -> None:
        answers = a_topic()
        memory = first_memory(answers.at(0), LIMITS)
        assert second_look(answers.at(10), memory, LIMITS).snapshot.bytes_per_s == {tp("orders-0"): 0.0}

    def test_looks_that_go_on_take_the_rate_over_the_last_minute(self) -> None:
        answers = a_topic()
        memory = first_memory(answers.at(0), LIMITS)
        for second in range(5, 125, 5):
            records = 5_000 if second <= 60 else 10_000
            seen, memory = next_look(grown(answers, records).at(second), memory, LIMITS)
        assert seen.snapshot.bytes_per_s[tp("orders-0")] == pytest.approx(2_000 * 500)
        assert seen.rates.seconds == pytest.approx(60, abs=5)


class TestTheAgent:
    def base(self, age_s: float, base_age_s: float) -> tuple[Memory, RateMeasurement]:
        """An agent on another clock, whose newest look is so old and rests on a base that is so old."""
        agents_ms = 999_000
        memory = Memory(
            cycle=3,
            taken_ms=TAKEN_MS - round(age_s * 1000),
            monotonic_ms=agents_ms,
            rate_bases=(RateBase(agents_ms - round((base_age_s - age_s) * 1000), {tp("orders-0"): 1_000}),),
            bytes_per_record={"orders": 500.0},
        )
        return base_of_agent(memory, "f00d-3", memory.taken_ms, ClockReading(TAKEN_MS, MONOTONIC_MS))

    def test_its_memory_is_a_base_on_the_clock_of_this_process(self) -> None:
        memory, rates = self.base(age_s=8, base_age_s=50)
        assert memory.rate_bases[0].monotonic_ms == MONOTONIC_MS - 50_000
        assert rates == RateMeasurement(RateSource.AGENT, 50.0, "f00d-3", 8_000)

    def test_one_look_with_it_has_rates(self) -> None:
        memory, rates = self.base(age_s=8, base_age_s=50)
        seen = evaluate(grown(a_topic(), 1_000).at(0), memory, LIMITS)
        assert seen.snapshot.bytes_per_s == {tp("orders-0"): 1_000 * 500 / 50}
        assert sentence(judged(rates, seen.snapshot), seen.snapshot) == (
            "rates: from the agent's telemetry (look f00d-3, 8 s old), over 50 s"
        )

    def test_what_it_saw_long_ago_is_no_base_and_its_age_is_said(self) -> None:
        memory, rates = self.base(age_s=7_200, base_age_s=7_260)
        assert memory == Memory()
        assert rates.why_not == "the newest recorded look in the agent's telemetry is 2 h old"

    def test_its_first_full_look_is_no_base_and_the_second_one_is_named(self) -> None:
        now = ClockReading(TAKEN_MS, MONOTONIC_MS)
        _, rates = base_of_agent(Memory(), "f00d-1", TAKEN_MS - 20_000, now)
        snapshot = a_cluster().topic("orders", (1,)).snapshot()
        assert sentence(judged(rates, snapshot), snapshot) == (
            "rates: unknown, as the newest recorded look in the agent's telemetry is its first, 20 s old, and rates "
            "need two, record.every apart; --for 10s measures them"
        )

    def test_a_later_look_without_end_offsets_is_told_apart(self) -> None:
        _, rates = base_of_agent(Memory(cycle=9), "f00d-9", TAKEN_MS, ClockReading(TAKEN_MS, MONOTONIC_MS))
        assert rates.why_not is not None
        assert rates.why_not.endswith("keeps no end offsets: none were read, or those of more than 10,000 partitions")

    def test_a_look_of_the_future_is_no_base_as_nothing_tells_how_long_ago_it_was(self) -> None:
        memory, rates = self.base(age_s=-30, base_age_s=12)
        assert memory == Memory()
        assert rates.why_not == (
            "the newest look in the agent's telemetry is 30 s in the future, so the time since it is unknown"
        )

    def test_findings_are_those_of_this_look_alone(self) -> None:
        memory, _ = self.base(age_s=8, base_age_s=50)
        assert (memory.first_seen, memory.topics, memory.throttles, memory.cycle) == ({}, {}, {}, 0)


class TestWhatIsSaid:
    def test_without_two_looks_rates_are_unknown_and_the_option_is_named(self) -> None:
        snapshot = a_cluster().topic("orders", (1,)).snapshot()
        assert sentence(judged(RateMeasurement(), snapshot), snapshot) == (
            "rates: unknown, as this is one look; --for 10s measures them"
        )

    @pytest.mark.parametrize(
        ("measured", "ends"),
        [
            (RateSource.COMMAND, "so the size of a record is not known"),
            (RateSource.FILE, "or no log dir grew before it"),
            (RateSource.AGENT, "so the size of a record is not known; --for 10s measures them"),
        ],
    )
    def test_two_looks_without_rates_are_not_called_one_and_the_option_is_named_where_it_helps(
        self, measured: RateSource, ends: str
    ) -> None:
        snapshot = a_cluster().topic("orders", (1,)).snapshot()
        snapshot = replace(snapshot, end_offsets={tp("orders-0"): 1}, size_bytes={tp("orders-0"): 1})
        told = sentence(judged(RateMeasurement(measured, 10.0), snapshot), snapshot)
        assert "one look" not in told
        assert told.endswith(ends)

    def test_weights_are_named_where_all_rates_are_theirs(self) -> None:
        snapshot = a_cluster().topic("orders", (1,), rate=5.0).snapshot()
        snapshot = replace(snapshot, weighed=FreshWeights({}, {}, {}, {tp("orders-0"): 5.0}))
        assert judged(RateMeasurement(RateSource.COMMAND, 10.0), snapshot) == RateMeasurement(RateSource.WEIGHTS)

    def test_weights_of_some_partitions_are_told_beside_what_was_measured(self) -> None:
        snapshot = a_cluster().topic("orders", (1,), (2,), rate=5.0).snapshot()
        snapshot = replace(snapshot, weighed=FreshWeights({}, {}, {}, {tp("orders-0"): 5.0}))
        rates = judged(RateMeasurement(RateSource.COMMAND, 10.0), snapshot)
        assert sentence(rates, snapshot) == (
            "rates: measured over 10 s by this command; weights of the pipeline for 1 of 2 partitions"
        )

    @pytest.mark.parametrize(
        ("limits", "said"),
        [
            (Limits(), "money: at $0.02/GB (price.usd_per_gb), both directions together"),
            (Limits(price=PriceLimits(usd_per_gb=None)), "no price is set (price.usd_per_gb), so no money is shown"),
            (
                Limits(price=PriceLimits(between={("a", "b"): 0.01})),
                (
                    "money: at $0.02/GB (price.usd_per_gb), both directions together; "
                    "price.between sets another price for 1 pair of racks"
                ),
            ),
        ],
    )
    def test_the_price_is_named(self, limits: Limits, said: str) -> None:
        assert price_sentence(limits) == said
