"""What an executor says and does in single situations; that it is safe in all of them is the model checker's part."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from agent.execute.machine import begins, resume, step
from agent.execute.messages import (
    Accepted,
    Alter,
    Answered,
    Append,
    Appended,
    Cancel,
    Command,
    Configure,
    Elect,
    Fenced,
    Finish,
    Kind,
    Look,
    Looked,
    May,
    Result,
    Said,
    Say,
    Seen,
    SeenMove,
    SeenThrottle,
    Tick,
    Word,
)
from agent.execute.state import Rest, State, answered, appended
from agent.execute.values import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Batch,
    BatchState,
    Plan,
    PlanState,
    Policy,
    Records,
    Resource,
    Target,
    moved_of,
)
from assignors.problem import TopicPartition
from tests.execute.abstract import Cluster, a_part, carried_out, caught_up, lost, seen_of

P0 = TopicPartition("t", 0)
MOVE = Target(P0, "id", (1, 2), (3, 2), bytes=1000)
ORDER = Target(P0, "id", (1, 2), (2, 1))
POLICY = Policy(throttle_bytes_per_s=10, throttle_ceiling_bytes_per_s=15)


class Live:
    """A machine with an abstract cluster under it; copies are whole only when `catch_up` says so."""

    def __init__(
        self, moves: Target | Plan = MOVE, *, look_as=seen_of, answer_as=carried_out, **cluster: object
    ) -> None:
        plan = moves if isinstance(moves, Plan) else Plan("p", (moves,))
        parts = tuple(a_part(*target.before) for target in plan.targets)
        self.cluster = Cluster(parts, frozenset({1, 2, 3}))._replace(**cluster)
        self.journal = Records()
        self.said: list[Say] = []
        self.acts: list[object] = []
        self.finished: list[Finish] = []
        self.ended: list[Plan] = []
        self.closed: list[Batch] = []
        self.look_as = look_as
        self.answer_as = answer_as
        self.lead()
        self.tell(Accepted(plan))

    def lead(self) -> None:
        """Begin with nothing but the journal."""
        self.state, commands = resume(self.journal, POLICY)
        self.carry_out(commands)
        self.tell(May(begin=True))

    def tell(self, event: object) -> None:
        self.state, commands = step(self.state, event, POLICY)
        self.carry_out(commands)

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.tell(Tick(500))

    def carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Append():
                    self.ended += [it for it in command.changes if isinstance(it, Plan) and it.ended]
                    self.closed += [
                        it for it in command.changes if isinstance(it, Batch) and it.state is BatchState.CLOSED
                    ]
                    self.journal = appended(State(self.journal), command).records
                    self.tell(Appended())
                case Look():
                    self.tell(Looked(self.look_as(self.cluster)))
                case Alter() | Cancel() | Configure() | Elect():
                    self.acts.append(command)
                    self.cluster, answer = self.answer_as(self.cluster, command)
                    self.tell(answer)
                case Say():
                    self.said.append(command)
                case Finish():
                    self.finished.append(command)

    def catch_up(self) -> None:
        self.cluster = self.cluster._replace(parts=tuple(caught_up(it, self.cluster.up) for it in self.cluster.parts))

    def kinds(self) -> list[str]:
        return [type(act).__name__ for act in self.acts]

    def alarms(self) -> list[str]:
        return [say.sentence for say in self.said if say.alarm]

    def sentences(self) -> str:
        return "\n".join(say.sentence for say in self.said)


def test_a_move_is_throttled_sent_cleared_and_told():
    live = Live()
    live.wait(3)
    assert live.kinds() == ["Configure", "Alter"]
    live.catch_up()
    live.wait(3)
    assert live.kinds() == ["Configure", "Alter", "Configure"]
    assert live.cluster.settings == ()
    assert live.finished == [Finish("p", PlanState.DONE, "1 partition moved as planned")]
    assert live.state.idle
    assert "batch 1: 1 partition, 1.0 kB to copy; most to broker 3: 1.0 kB; 100 s at 10 B/s" in [
        say.sentence for say in live.said
    ]


def test_leaders_alone_move_no_data_and_are_elected_at_the_end():
    live = Live(ORDER)
    live.wait(10)
    assert live.kinds() == ["Alter", "Elect"]
    assert live.cluster.parts[0].leader == 2
    assert live.finished[0].state is PlanState.DONE


def test_a_leaders_plan_is_taken_back():
    live = Live(ORDER)
    live.tell(Said(Word.ROLLBACK, "p", "ann"))
    live.wait(10)
    assert live.cluster.parts[0].replicas == (1, 2)
    assert live.cluster.parts[0].leader == 1
    assert live.finished[0].state is PlanState.ROLLED_BACK
    assert "by ann" in live.finished[0].sentence


def rolled_back_twice() -> Live:
    """Two partitions were moved; the first is back, the second is about to be moved back."""
    first, second = MOVE, MOVE._replace(id=TopicPartition("t", 1))
    live = Live(Plan("p", (first, second), max_moves=1), parts=(a_part(1, 2), a_part(1, 2)))
    for _ in range(2):
        live.wait(5)
        live.catch_up()
    live.tell(May(begin=False, sentence="blackout until 06:00"))
    live.wait(5)
    live.tell(Said(Word.ROLLBACK, "p", "ann", "c1"))
    live.wait(5)
    assert [part.replicas for part in live.cluster.parts] == [(3, 2), (3, 2)]
    assert "no new batch: blackout until 06:00" in live.sentences()
    live.tell(May(begin=True))
    live.wait(5)
    live.catch_up()
    live.wait(5)
    assert [part.moving for part in live.cluster.parts] == [False, True]
    return live


def test_a_rollback_is_cancelled_and_its_moves_are_taken_back_and_what_is_back_stays():
    live = rolled_back_twice()
    live.tell(Said(Word.CANCEL, "p", "bob", "c2"))
    live.wait(10)
    assert [part.replicas for part in live.cluster.parts] == [(1, 2), (3, 2)]
    assert live.finished == [
        Finish(
            "p", PlanState.CANCELLED, "cancel requested by bob; 1 partition moved as planned; 1 partition moved back"
        )
    ]


def test_a_plan_that_ended_says_what_it_has_left_moved():
    live = rolled_back_twice()
    live.tell(Said(Word.CANCEL, "p", "bob", "c2"))
    live.wait(10)
    assert [moved_of(plan) for plan in live.ended] == [{TopicPartition("t", 1)}]


def test_a_rollback_that_was_cancelled_and_asked_for_again_takes_the_rest_back():
    def busy(cluster, asked):
        if isinstance(asked, Cancel):
            return cluster, Answered(tuple(Result(one, Kind.RETRY) for one in asked.partitions))
        return carried_out(cluster, asked)

    live = rolled_back_twice()
    live.answer_as = busy
    live.tell(Said(Word.CANCEL, "p", "bob", "c2"))
    live.tell(Said(Word.ROLLBACK, "p", "ann", "c3"))
    live.answer_as = carried_out
    for _ in range(3):
        live.wait(5)
        live.catch_up()
    assert [part.replicas for part in live.cluster.parts] == [(1, 2), (1, 2)]
    assert live.finished == [Finish("p", PlanState.ROLLED_BACK, "rollback requested by ann; 2 partitions moved back")]


@pytest.mark.parametrize("held", [Said(Word.PAUSE, "p"), May(begin=False, sentence="ann paused acting")])
def test_a_pause_holds_the_batches_that_take_back_and_what_moves_goes_on(held):
    live = rolled_back_twice()
    live.tell(held)
    live.catch_up()
    live.wait(10)
    assert [part.replicas for part in live.cluster.parts] == [(1, 2), (1, 2)]
    assert not live.finished
    live.tell(Said(Word.RESUME, "p") if isinstance(held, Said) else May(begin=True))
    live.wait(5)
    assert live.finished[0].state is PlanState.ROLLED_BACK


def test_a_back_batch_that_was_announced_is_withdrawn_when_a_pause_comes_before_it_is_sent():
    live = Live()
    live.wait(5)
    live.catch_up()
    live.tell(May(begin=False, sentence="x"))
    live.wait(5)
    live.tell(Said(Word.ROLLBACK, "p"))

    def paused_while_set(cluster, asked):
        if isinstance(asked, Configure):
            live.state = live.state._replace(may=May(begin=False, sentence="ann paused acting"))
        return carried_out(cluster, asked)

    live.answer_as = paused_while_set
    live.acts.clear()
    live.tell(May(begin=True))
    live.wait(10)
    assert "Alter" not in live.kinds()
    assert live.cluster.settings == ()


def test_a_command_that_is_repeated_counts_once():
    live = Live()
    live.tell(Said(Word.PAUSE, "p", "ann", "c1"))
    live.tell(Said(Word.RESUME, "p", "ann", "c2"))
    live.tell(Said(Word.RESUME, "p", "ann", "c2"))
    assert (live.journal.plans[0].paused, live.journal.plans[0].heard) == (False, "c2")
    assert live.sentences().count("resume p: nothing to do") == 1


def test_what_is_stuck_is_named_re_paced_once_and_then_cancelled():
    live = Live()
    live.wait(305)
    assert "no progress for 300 s: t-0; the rate is now 15 B/s" in live.alarms()
    assert {value for _, key, value in live.cluster.settings if key in (LEADER_RATE, FOLLOWER_RATE)} == {"15"}
    assert "Cancel" not in live.kinds()
    live.wait(310)
    assert "t-0: no progress; its move is cancelled" in live.alarms()
    assert live.kinds().count("Cancel") == 1
    assert live.cluster.parts[0].replicas == (1, 2)
    assert live.cluster.settings == ()
    assert live.finished == [Finish("p", PlanState.FAILED, "1 partition back on the former replicas")]


def test_a_move_whose_progress_is_unknown_is_not_taken_for_one_that_stands_still():
    live = Live()
    live.look_as = lambda cluster: seen_of(cluster)._replace(bytes=())
    live.wait(3_000)
    assert live.kinds() == ["Configure", "Alter"]
    assert not live.alarms()
    assert "1 partition moving; the progress of t-0 is unknown: log dirs did not answer" in live.sentences()
    live.look_as = seen_of
    live.wait(295)
    assert not live.alarms(), "its time begins when it is known"
    live.wait(10)
    assert any("no progress for 300 s: t-0" in sentence for sentence in live.alarms())


def test_a_copy_that_is_whole_or_on_a_broker_that_is_down_needs_no_size():
    live = Live(Plan("p", (MOVE._replace(before=(1, 2), after=(3, 4)),)), up=frozenset({1, 2, 3, 4}))
    part = live.cluster.parts[0]
    live.cluster = lost(live.cluster._replace(parts=(part._replace(isr=frozenset({1, 2, 3})),)), 4)
    live.look_as = lambda cluster: seen_of(cluster)._replace(bytes=())
    live.wait(10)
    assert "progress of t-0 is unknown" not in live.sentences()


def test_a_dead_target_is_waited_for_and_then_its_move_is_cancelled():
    live = Live()
    live.cluster = lost(live.cluster, 3)
    live.wait(50)
    assert "Cancel" not in live.kinds()
    live.wait(20)
    assert "t-0: a broker that gets a copy is down; its move is cancelled" in live.alarms()
    assert live.cluster.parts[0].replicas == (1, 2)
    # Its own throttle is taken away when it is back, and not before.
    assert [(it[0].name, it[1]) for it in live.cluster.settings] == [("3", FOLLOWER_RATE)]
    assert [debt.resource.name for debt in live.journal.debts] == ["3"]
    live.wait(60)
    assert "1 throttle of rackwise stays set until it can be removed" in live.sentences()
    assert f"{FOLLOWER_RATE} of broker 3 cannot be reached now" in live.sentences()
    live.cluster = live.cluster._replace(up=frozenset({1, 2, 3}))
    live.wait(40)
    assert live.cluster.settings == ()
    assert live.state.idle


def test_a_cancel_that_would_be_unclean_is_kept_told_once_and_tried_again():
    live = Live()
    part = live.cluster.parts[0]
    live.cluster = live.cluster._replace(parts=(part._replace(isr=frozenset({3}), leader=3),))
    live.tell(Said(Word.CANCEL, "p"))
    live.wait(30)
    unclean = [sentence for sentence in live.alarms() if "unclean" in sentence]
    assert len(unclean) == 1
    assert live.kinds().count("Cancel") > 1
    assert not live.finished
    live.cluster = live.cluster._replace(parts=(part,))
    live.wait(10)
    assert live.finished[0].state is PlanState.CANCELLED


def test_under_min_isr_nothing_begins_and_what_runs_goes_back_after_the_grace():
    idle = Live(min_isr=3)
    idle.wait(10)
    assert idle.acts == []
    assert "no new batch: t-0 is under its min ISR" in idle.sentences()

    live = Live()
    live.cluster = live.cluster._replace(min_isr=3)
    live.wait(50)
    assert "Cancel" not in live.kinds()
    live.wait(20)
    assert live.kinds().count("Cancel") == 1
    assert live.finished[0].state is PlanState.CANCELLED
    assert live.cluster.parts[0].replicas == (1, 2)


def test_what_others_move_is_named_and_waited_for():
    foreign = SeenMove(TopicPartition("u", 7), (1, 2, 3), (3,), (1,))
    live = Live(look_as=lambda cluster: seen_of(cluster)._replace(moves=(foreign,)))
    live.wait(10)
    assert live.acts == []
    assert "no new batch: 1 partition moved by another tool, u-7 first" in live.sentences()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(
            {"unread": frozenset({Resource("broker", "1")})},
            "no new batch: the settings of broker 1 did not answer",
            id="settings that did not answer",
        ),
        pytest.param(
            {"partitions": ()},
            "no new batch: t-0 is not visible",
            id="a topic that cannot be seen",
        ),
        pytest.param(
            {"brokers": frozenset({1, 2})},
            "no new batch: of what is left, t-0 has replicas of before and after without a reassignment, "
            "or needs a broker that is down",
            id="a target that is down",
        ),
    ],
)
def test_what_is_not_known_holds_a_batch(change, sentence):
    live = Live(look_as=lambda cluster: seen_of(cluster)._replace(**change))
    live.wait(10)
    assert live.acts == []
    assert sentence in live.sentences()


TOPIC_T, LEADERLESS = Resource("topic", "t"), {"leader": None, "leader_known": False}


def blind(seen: Seen, *, unread: frozenset[Resource] = frozenset(), **changes: object) -> Seen:
    """The same look with less in it: settings that did not answer are not shown."""
    shown = tuple(it for it in seen.throttles if it.resource not in unread)
    partitions = tuple(it._replace(**changes) for it in seen.partitions)
    return seen._replace(unread=unread, throttles=shown, partitions=partitions)


@pytest.mark.parametrize(
    ("hidden", "why"),
    [
        pytest.param({"unread": frozenset({TOPIC_T})}, "the settings of topic t did not answer", id="throttle lists"),
        pytest.param(
            {"unread": frozenset({Resource("broker", "3")})}, "the settings of broker 3 did not answer", id="a rate"
        ),
        pytest.param({"min_isr": None}, "the min ISR of t-0 is unknown", id="the min ISR"),
        pytest.param(LEADERLESS, "brokers do not agree about the leader of t-0", id="the leader"),
    ],
)
def test_what_is_not_read_between_the_announcement_and_the_request_is_not_taken_for_well(hidden, why):
    """The answer to the throttle lists is lost as well: they are not set, and nobody may say that they are."""
    lost = [TOPIC_T]

    def loses(cluster, asked):
        if not isinstance(asked, Configure):
            return carried_out(cluster, asked)
        kept = Configure(tuple(it for it in asked.settings if it.resource not in lost))
        after, answer = carried_out(cluster, kept)
        return after, Answered(tuple(it for it in answer.results if it.subject not in lost))

    live = Live(min_isr=3, answer_as=loses)  # nothing begins yet
    live.cluster = live.cluster._replace(min_isr=1)
    live.look_as = lambda cluster: seen_of(cluster) if not live.acts else blind(seen_of(cluster), **hidden)
    live.wait(40)
    assert set(live.kinds()) == {"Configure"}
    assert not live.cluster.parts[0].moving
    assert why in live.sentences() or why in [batch.sentence for batch in live.journal.batches]
    assert not live.finished
    live.look_as = seen_of
    lost.clear()
    live.wait(40)
    assert {key for _, key, _ in live.cluster.settings} >= {FOLLOWER_REPLICAS, LEADER_REPLICAS}
    assert live.cluster.parts[0].moving


def test_a_leader_that_brokers_do_not_agree_about_cancels_nothing():
    live = Live()
    live.look_as = lambda cluster: blind(seen_of(cluster), **LEADERLESS)
    live.wait(120)
    assert "Cancel" not in live.kinds()
    assert live.cluster.parts[0].moving


def test_a_broker_that_is_down_and_gets_no_copy_is_known_and_holds_nothing():
    """Its throttle is not set, as it cannot be; what is down is not unread."""
    down = Plan("p", (Target(P0, "id", (1, 2), (1, 3), bytes=1000),))
    live = Live(down, min_isr=3)
    live.cluster = lost(live.cluster._replace(min_isr=1), 2)
    live.wait(5)
    assert live.kinds() == ["Configure", "Alter"]
    assert {it[0].name for it in live.cluster.settings} == {"1", "3", "t"}


@pytest.mark.parametrize(
    ("holds", "why"),
    [
        pytest.param({"min_isr": 3}, "t-0 is under its min ISR", id="under its min ISR"),
        pytest.param({"min_isr": None}, "the min ISR of t-1 is unknown", id="the min ISR did not answer"),
    ],
)
def test_a_request_is_not_repeated_while_it_would_not_be_begun(holds, why):
    """One of two partitions moves; the controller did not take the other one."""
    second = TopicPartition("t", 1)

    def half(cluster, asked):
        if not isinstance(asked, Alter):
            return carried_out(cluster, asked)
        after, answer = carried_out(cluster, Alter(tuple(it for it in asked.moves if it.id != second)))
        return after, Answered((*answer.results, Result(second, Kind.RETRY, "NOT_CONTROLLER")))

    live = Live(Plan("p", (MOVE, MOVE._replace(id=second))), answer_as=half)
    assert [part.moving for part in live.cluster.parts] == [True, False]
    live.answer_as, live.look_as = carried_out, lambda cluster: blind(seen_of(cluster), **holds)
    live.wait(50)
    assert live.kinds().count("Alter") == 1
    assert f"batch 1: 1 partition not moving yet: {why}" in live.sentences()
    live.look_as = seen_of
    live.wait(5)
    assert [part.moving for part in live.cluster.parts] == [True, True]


def test_what_the_controller_has_acknowledged_is_not_sent_again_while_brokers_lag_behind():
    """Two partitions; the second is not taken, and brokers still show the first at its former replicas."""
    second = TopicPartition("t", 1)

    def half(cluster, asked):
        if not isinstance(asked, Alter):
            return carried_out(cluster, asked)
        after, answer = carried_out(cluster, Alter(tuple(it for it in asked.moves if it.id != second)))
        return after, Answered((*answer.results, Result(second, Kind.RETRY, "NOT_CONTROLLER")))

    def behind(cluster):
        return seen_of(cluster._replace(parts=(a_part(1, 2), a_part(1, 2))))

    live = Live(Plan("p", (MOVE, MOVE._replace(id=second))), answer_as=half, look_as=behind)
    live.answer_as = carried_out
    live.wait(5)
    sent = [[move.id for move in act.moves] for act in live.acts if isinstance(act, Alter)]
    assert sent == [[P0, second], [second]]


def test_a_cancel_without_an_answer_is_not_sent_again_while_it_may_still_take_effect():
    def lost_on_the_way(cluster, asked):
        return (cluster, Answered(())) if isinstance(asked, Cancel) else carried_out(cluster, asked)

    live = Live(answer_as=lost_on_the_way)
    live.tell(Said(Word.CANCEL, "p"))
    live.wait(8)
    assert live.kinds().count("Cancel") == 1
    live.answer_as = carried_out
    live.wait(15)
    assert live.kinds().count("Cancel") == 2
    assert live.finished[0].state is PlanState.CANCELLED


def test_what_was_sent_and_did_not_begin_is_given_up_while_nothing_may_begin():
    """Its answer was lost, no such request can be under way any more, and another tool moves by then."""

    def lost_on_the_way(cluster, asked):
        return (cluster, Answered(())) if isinstance(asked, Alter) else carried_out(cluster, asked)

    foreign = SeenMove(TopicPartition("u", 7), (1, 2, 3), (3,), (1,))
    live = Live(answer_as=lost_on_the_way)
    live.answer_as, live.look_as = carried_out, lambda cluster: seen_of(cluster)._replace(moves=(foreign,))
    live.wait(8)
    assert live.journal.batches[0].state is BatchState.SENT, "it may still take effect"
    live.wait(10)
    (batch,) = live.journal.batches
    assert (batch.state, batch.sendings, batch.ends) == (BatchState.CLOSED, 1, ())
    assert live.cluster.settings == ()
    live.look_as = seen_of
    live.wait(5)
    assert live.cluster.parts[0].moving
    assert [batch.number for batch in live.journal.batches] == [1, 2]


def test_a_plan_does_not_end_well_on_a_leader_that_is_not_known():
    live = Live()
    live.catch_up()
    live.look_as = lambda cluster: blind(seen_of(cluster), **LEADERLESS)
    live.wait(20)
    assert not live.finished
    assert "the leader of t-0 is unknown" in live.sentences()


def test_a_partition_that_a_topic_made_anew_does_not_have_is_replaced_and_not_waited_for():
    live = Live(Plan("p", (MOVE, MOVE._replace(id=TopicPartition("t", 1)))), min_isr=3)
    live.cluster = live.cluster._replace(parts=(a_part(1, 2)._replace(topic_id="other"),), min_isr=1)
    live.wait(10)
    assert live.finished[0].sentence == "2 partitions not moved: the topic was deleted and created again"


def test_nothing_begins_in_a_blackout_or_pause_and_it_goes_on_afterwards():
    live = Live(min_isr=3)
    live.tell(May(begin=False, sentence="blackout until 06:00"))
    live.cluster = live.cluster._replace(min_isr=1)
    live.wait(10)
    assert live.acts == []
    assert "no new batch: blackout until 06:00" in live.sentences()
    live.tell(Said(Word.PAUSE, "p"))
    live.tell(May(begin=True))
    live.wait(10)
    assert live.acts == []
    assert live.journal.plans[0].paused
    live.tell(Said(Word.RESUME, "p"))
    live.wait(10)
    assert live.kinds() == ["Configure", "Alter"]


def test_a_throttle_that_cannot_be_set_ends_the_plan_before_anything_moves():
    def refused(cluster: Cluster, act: Configure) -> tuple[Cluster, Answered]:
        resources = sorted({setting.resource for setting in act.settings})
        return cluster, Answered(tuple(Result(resource, Kind.REFUSED, "no right") for resource in resources))

    live = Live(answer_as=refused)
    live.wait(60)
    assert set(live.kinds()) == {"Configure"}
    assert len(live.acts) == POLICY.max_configurings
    assert live.finished[0].state is PlanState.CANCELLED
    assert "cannot be set" in live.finished[0].sentence


def test_a_rate_for_the_whole_cluster_stays_and_is_told():
    default = SeenThrottle(Resource("broker", "1"), LEADER_RATE, None, "500")
    live = Live(look_as=lambda cluster: seen_of(cluster)._replace(throttles=(default,)))
    assert f"{LEADER_RATE} of broker 1 stays 500, which rackwise did not set" in live.sentences()


def test_a_plan_is_accepted_once():
    live = Live()
    live.tell(Accepted(Plan("p", (MOVE,))))
    assert "p is not accepted: it was accepted before" in live.sentences()
    assert len(live.journal.plans) == 1


def test_a_fenced_agent_asks_for_nothing_more():
    live = Live()
    live.tell(Fenced())
    for event in (Tick(60_000), May(begin=True), Said(Word.CANCEL, "p"), Accepted(Plan("q", (MOVE,)))):
        state, commands = step(live.state, event, POLICY)
        assert commands == ()
        assert state.fenced


def test_an_answer_that_nobody_waits_for_changes_nothing():
    state, _ = resume(Records(), POLICY)
    for event in (Appended(), Answered(()), Looked(None)):
        assert step(state, event, POLICY) == (state, ())


def test_a_new_leader_adopts_what_moves_and_closes_nothing_before_late_requests_are_over():
    live = Live()
    unanswered = live.journal.batches[0]._replace(state=BatchState.SENT)
    live.journal = live.journal._replace(batches=(unanswered,))
    live.acts.clear()
    live.lead()
    live.catch_up()
    live.wait(8)
    assert live.acts == []
    assert live.journal.batches[0].state is not BatchState.CLOSED
    live.wait(15)
    assert live.finished[0].state is PlanState.DONE
    assert live.kinds() == ["Configure"]


@pytest.mark.parametrize(
    ("failed", "ends"),
    [
        pytest.param(Looked(None, silent=True), False, id="nobody answered, so the time without a controller is none"),
        pytest.param(Looked(None), True, id="brokers that contradict each other for a moment prove nothing"),
    ],
)
def test_the_wait_for_late_requests_begins_anew_when_there_was_no_controller(failed, ends):
    live = Live()
    sent = live.journal.batches[0]._replace(state=BatchState.SENT)
    live.journal = live.journal._replace(batches=(sent,))
    live.lead()
    live.catch_up()
    live.wait(8)
    live.state, commands = step(live.state._replace(waiting=Look((), ())), failed, POLICY)
    live.carry_out(commands)
    live.wait(7)
    assert bool(live.finished) is ends
    live.wait(15)
    assert live.finished[0].state is PlanState.DONE


def test_a_batch_whose_partitions_have_all_ended_before_it_was_sent_asks_for_nothing():
    live = Live()
    unsent = live.journal.batches[0]._replace(state=BatchState.INTENT, sendings=0)
    live.journal = live.journal._replace(batches=(unsent,))
    rates = tuple(it for it in live.cluster.settings if it[0].kind == "broker")
    live.cluster = live.cluster._replace(parts=(a_part(1, 2)._replace(topic_id="other"),), settings=rates)
    live.acts.clear()
    live.lead()
    live.wait(8)
    assert live.acts == []
    assert live.journal.batches[0].state is BatchState.INTENT
    assert live.journal.batches[0].sendings == 0
    live.wait(15)
    assert live.kinds() == ["Configure"]
    assert live.cluster.settings == ()
    assert live.finished == [
        Finish("p", PlanState.FAILED, "1 partition not moved: the topic was deleted and created again")
    ]


def test_two_plans_are_carried_out_one_after_the_other():
    live = Live()
    live.tell(Accepted(Plan("q", (MOVE.back(),))))
    live.wait(3)
    live.catch_up()
    live.wait(5)
    live.catch_up()
    live.wait(5)
    assert [it.proposal_id for it in live.finished] == ["p", "q"]
    assert live.cluster.parts[0].replicas == (1, 2)


@pytest.mark.parametrize("act", [Configure, Alter], ids=["a throttle", "a reassignment"])
def test_what_it_was_too_late_to_send_was_not_asked_for_and_is_tried_until_it_is_sent(act):
    def answer(cluster, asked):
        if isinstance(asked, act) and late:
            late.pop()
            subjects = {it.resource for it in asked.settings} if act is Configure else {it.id for it in asked.moves}
            return cluster, Answered(tuple(Result(it, Kind.NOT_SENT) for it in subjects))
        return carried_out(cluster, asked)

    late = [True] * 8
    live = Live(answer_as=answer)
    live.wait(60)
    assert not live.finished
    assert live.cluster.parts[0].moving
    assert live.journal.batches[0].sendings == 1
    assert {debt.tries for debt in live.journal.debts} == {1}
    assert not live.alarms()


def test_what_the_controller_takes_no_notice_of_is_tried_again_ever_more_rarely():
    def busy(cluster, asked):
        if isinstance(asked, Alter):
            return cluster, Answered((Result(P0, Kind.RETRY, "NOT_CONTROLLER"),))
        return carried_out(cluster, asked)

    live = Live(answer_as=busy)
    live.wait(300)
    assert 9 <= live.kinds().count("Alter") <= 15
    assert not live.finished
    assert not live.alarms()
    assert "no new batch: requested again later: NOT_CONTROLLER" in live.sentences()
    while live.journal.batches[0].state is BatchState.SENT:
        live.wait(1)
    (batch,) = live.journal.batches
    assert (batch.number, batch.sendings) == (1, 0), "nothing was asked, so nothing counts"
    assert live.cluster.settings == (), "nothing is throttled meanwhile"
    live.answer_as = carried_out
    live.wait(35)
    live.catch_up()
    live.wait(5)
    assert live.finished == [Finish("p", PlanState.DONE, "1 partition moved as planned")]


def test_a_right_that_is_missing_for_a_while_is_waited_for():
    def forbidden(cluster, asked):
        if not isinstance(asked, Configure):
            return carried_out(cluster, asked)
        kept = Configure(tuple(it for it in asked.settings if it.resource.kind == "broker"))
        after, answer = carried_out(cluster, kept)
        return after, Answered((*answer.results, Result(TOPIC_T, Kind.RETRY, "TOPIC_AUTHORIZATION_FAILED")))

    live = Live(answer_as=forbidden)
    live.wait(600)
    assert not live.finished
    assert set(live.kinds()) == {"Configure"}
    live.answer_as = carried_out
    live.wait(40)
    assert live.cluster.parts[0].moving


def test_what_is_held_by_refusals_can_be_cancelled():
    def busy(cluster, asked):
        if isinstance(asked, Alter):
            return cluster, Answered((Result(P0, Kind.RETRY, "NOT_CONTROLLER"),))
        return carried_out(cluster, asked)

    live = Live(answer_as=busy)
    live.wait(30)
    live.tell(Said(Word.CANCEL, "p"))
    live.wait(5)
    assert live.finished[0].state is PlanState.CANCELLED


def test_a_rate_that_is_the_highest_already_is_not_set_again_for_what_is_stuck():
    live = Live(Plan("p", (MOVE,), throttle_bytes_per_s=POLICY.throttle_ceiling_bytes_per_s))
    live.wait(310)
    assert live.alarms() == ["no progress for 300 s: t-0"]
    assert live.kinds() == ["Configure", "Alter"]


def test_a_rate_that_another_tool_has_changed_is_not_raised_for_what_is_stuck():
    """Only the rates that are still ours become higher."""
    live = Live()
    theirs = tuple(
        (resource, key, "7" if resource.name == "1" and key == LEADER_RATE else value)
        for resource, key, value in live.cluster.settings
    )
    live.cluster = live.cluster._replace(settings=theirs)
    live.wait(310)
    raised = {(one.resource.name, one.key) for act in live.acts[2:] for one in act.settings}
    assert raised == {("2", LEADER_RATE), ("3", FOLLOWER_RATE)}
    assert (Resource("broker", "1"), LEADER_RATE, "7") in live.cluster.settings


def test_bytes_of_another_partition_on_the_same_broker_are_no_progress_of_a_stuck_one():
    copied = [0]

    def growing(cluster):
        copied[0] += 1
        seen = seen_of(cluster)
        sizes = tuple((id_, broker, copied[0] if id_ == OTHER.id else size) for id_, broker, size in seen.bytes)
        return seen._replace(bytes=sizes)

    live = Live(Plan("p", (MOVE, OTHER)), look_as=growing)
    live.wait(310)
    assert live.alarms() == ["no progress for 300 s: t-0; the rate is now 15 B/s"]


def test_what_another_tool_has_moved_elsewhere_by_now_is_not_waited_for():
    live = Live()
    live.cluster = live.cluster._replace(parts=(a_part(2, 4),))
    live.wait(10)
    assert live.finished == [Finish("p", PlanState.FAILED, "1 partition changed by another tool")]


def test_a_move_that_another_tool_cancelled_is_back_once_brokers_cannot_lag_behind_any_more():
    live = Live()
    live.cluster = live.cluster._replace(parts=(a_part(1, 2),))
    live.wait(9)
    assert not live.finished
    live.wait(4)
    assert live.finished == [Finish("p", PlanState.FAILED, "1 partition back on the former replicas")]


def test_leaders_that_do_not_change_are_elected_a_few_times_and_told_of():
    def unmoved(cluster, asked):
        if isinstance(asked, Elect):
            return cluster, Answered(tuple(Result(one, Kind.RETRY) for one in asked.partitions))
        return carried_out(cluster, asked)

    live = Live(ORDER, answer_as=unmoved)
    live.wait(60)
    assert live.kinds().count("Elect") == POLICY.max_elections
    assert live.finished == [
        Finish("p", PlanState.DONE, "1 partition moved as planned; 1 partition not led by the preferred leader")
    ]


def test_an_announced_batch_that_is_cancelled_is_closed_unsent_and_says_why():
    def unset(cluster, asked):
        return cluster, Answered(tuple(Result(it.resource, Kind.NOT_SENT) for it in asked.settings))

    live = Live(answer_as=unset)
    live.answer_as = carried_out
    live.tell(Said(Word.CANCEL, "p", "ann"))
    live.wait(10)
    (batch,) = live.closed
    assert (batch.sendings, batch.ends, batch.sentence) == (0, (), "cancel requested by ann")
    assert live.finished == [Finish("p", PlanState.CANCELLED, "cancel requested by ann; 1 partition not begun")]


def test_a_plan_that_moves_again_is_not_left_alone_for_what_was_refused_before():
    live = Live()
    rested = live.state._replace(rests=(Rest("p", 0, 5, "NOT_CONTROLLER"), Rest("q", 7, 1, "NOT_CONTROLLER")))
    alter = live.acts[1]
    assert isinstance(alter, Alter)
    took = answered(rested, alter, Answered((Result(P0, Kind.OK),)), POLICY)
    assert took.rests == (Rest("q", 7, 1, "NOT_CONTROLLER"),)
    assert answered(rested, alter, Answered((Result(P0, Kind.NOT_SENT),)), POLICY).rests == rested.rests


def test_an_order_that_a_cancel_left_is_put_back_without_asking_whether_moves_may_begin():
    live = Live()
    alter = live.acts[1]
    assert isinstance(alter, Alter)
    assert begins(live.state, alter)
    cancelling = live.journal.batches[0]._replace(cancelling=(P0,))
    assert not begins(live.state._replace(records=live.journal._replace(batches=(cancelling,))), alter)
    assert begins(State(Records()), alter)


def test_a_throttle_that_cannot_be_reached_is_looked_for_more_rarely_than_what_moves():
    live = Live()
    live.cluster = lost(live.cluster, 3)
    live.wait(120)
    assert (live.journal.plans, len(live.journal.debts)) == ((), 1)
    waits = set()
    for _ in range(100):
        live.tell(Tick(500))
        waits.add(live.state.next_look_ms)
    assert max(waits) == POLICY.idle_look_ms


# --- several plans ------------------------------------------------------------------------------------------------


OTHER = MOVE._replace(id=TopicPartition("t", 1))


def two(*events: object, first: Target = MOVE, second: Target = OTHER) -> Live:
    """Two plans, and what happened before anything of them may begin."""
    live = Live(Plan("p", (first,)), parts=(a_part(1, 2), a_part(1, 2)), min_isr=3)
    live.tell(Accepted(Plan("q", (second,))))
    for event in events:
        live.tell(event)
    live.cluster = live.cluster._replace(min_isr=1)
    return live


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(May(begin=True, held=(("p", "t is excluded"),)), id="the guard holds the first"),
        pytest.param(Said(Word.PAUSE, "p"), id="the first is paused"),
    ],
)
def test_a_plan_that_waits_is_not_in_the_way_of_the_next_one(held):
    live = two(held)
    live.wait(10)
    assert [part.moving for part in live.cluster.parts] == [False, True]
    live.tell(May(begin=True))
    live.tell(Said(Word.RESUME, "p"))
    live.catch_up()
    live.wait(10)
    live.catch_up()
    live.wait(10)
    assert {it.proposal_id: it.state for it in live.finished} == {"p": PlanState.DONE, "q": PlanState.DONE}


def test_a_plan_that_cannot_be_seen_or_whose_broker_is_down_is_not_in_the_way_of_the_next_one():
    blinded = two()
    blinded.look_as = lambda cluster: seen_of(cluster)._replace(
        partitions=tuple(it for it in seen_of(cluster).partitions if it.id != P0)
    )
    blinded.wait(20)
    assert [part.moving for part in blinded.cluster.parts] == [False, True]
    down = two(first=MOVE._replace(after=(4, 2)))
    down.wait(20)
    assert [part.moving for part in down.cluster.parts] == [False, True]


def test_each_plan_says_once_what_it_waits_for():
    live = two(May(begin=True, held=(("p", "t is excluded"), ("q", "outside the windows"))))
    live.wait(60)
    told = [(say.proposal_id, say.sentence) for say in live.said]
    assert told.count(("p", "no new batch: t is excluded")) == 1
    assert told.count(("q", "no new batch: outside the windows")) == 1


def test_one_attempt_at_a_plan_is_in_progress_at_a_time():
    live = Live()
    live.tell(Accepted(Plan("p.2", (MOVE,))))
    assert "p.2 is not accepted: attempt p has not ended" in live.sentences()
    live.tell(Accepted(Plan("p-back", (MOVE.back(),))))
    assert [plan.proposal_id for plan in live.journal.plans] == ["p", "p-back"]


def test_a_plan_about_the_same_partitions_waits_for_the_earlier_one():
    live = two(May(begin=True, held=(("p", "t is excluded"),)), second=MOVE.back())
    live.wait(30)
    assert not live.finished, "its partition has the planned replicas already, but not for long"
    live.tell(May(begin=True))
    live.wait(10)
    live.catch_up()
    live.wait(10)
    live.catch_up()
    live.wait(10)
    assert [it.proposal_id for it in live.finished] == ["p", "q"]
    assert live.cluster.parts[0].replicas == (1, 2)


def test_a_plan_of_which_no_batch_was_sent_ends_with_its_approval_and_one_that_has_begun_goes_on():
    why = "void: its approval ended 1 min ago, and no batch of it was sent"
    live = two(May(begin=True, held=(("q", "outside the windows"),)))
    live.wait(10)
    assert [part.moving for part in live.cluster.parts] == [True, False]
    live.tell(May(begin=True, lapsed=(("p", why), ("q", why))))
    live.wait(10)
    assert live.finished == [Finish("q", PlanState.CANCELLED, why)]
    live.catch_up()
    live.wait(10)
    assert live.finished[1] == Finish("p", PlanState.DONE, "1 partition moved as planned")


def test_an_announced_batch_is_withdrawn_when_its_approval_ends_before_it_is_sent():
    def unset(cluster, asked):
        return cluster, Answered(tuple(Result(it.resource, Kind.NOT_SENT) for it in asked.settings))

    live = Live(answer_as=unset)
    assert live.journal.batches[0].state is BatchState.INTENT
    live.answer_as = carried_out
    live.tell(May(begin=True, lapsed=(("p", "void: its approval ended"),)))
    live.wait(10)
    assert live.finished == [Finish("p", PlanState.CANCELLED, "void: its approval ended")]
    assert live.cluster.settings == ()
    assert not live.cluster.parts[0].moving
