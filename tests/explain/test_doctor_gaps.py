"""Parts of a cluster that are not seen never make a check of the doctor better, and make no other finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from agent.explain.doctor import CheckState, DoctorCheck
from agent.simulate.evaluation import StageEvaluation, evaluate
from agent.values.finding import FindingReason
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import GapCause, ObservationPart, PrincipalRights, RawMember
from tests.builders import SELECTOR, Answers, consumer, instance, reader
from tests.explain.doctor_checks import LEADER_THROTTLE, checks_in

Lessen = Callable[[Answers], object]
RACKS = st.sampled_from(["a", "b", "c", "C", None])


@st.composite
def worlds(draw: st.DrawFn) -> Answers:
    """Small clusters with anything wrong that a check is about."""
    answers = Answers()
    count = draw(st.integers(1, 4))
    for broker in range(1, count + 1):
        answers.broker(broker, draw(RACKS))
        if draw(st.integers(0, 5)) == 0:
            answers.broker_configs[broker]["leader.replication.throttled.rate"] = "1000"
    selector = draw(st.sampled_from([SELECTOR, SELECTOR, None, "com.acme.Selector"]))
    for configs in answers.broker_configs.values():
        if selector is None:
            configs.pop("replica.selector.class")
        else:
            configs["replica.selector.class"] = selector
    topics: list[str] = []
    for name in draw(st.sampled_from([(), ("t",), ("t", "u")])):
        lists = draw(
            st.lists(
                st.lists(st.integers(1, count), min_size=1, max_size=count, unique=True).map(tuple),
                min_size=1,
                max_size=6,
            )
        )
        throttle = {LEADER_THROTTLE.replace(".", "_"): "0:1"} if draw(st.integers(0, 4)) == 0 else {}
        answers.topic(name, *lists, min_insync_replicas=str(draw(st.integers(1, 2))), **throttle)
        topics += [f"{name}-{number}" for number in range(len(lists))]
    for name in ("g", "h") if topics else ():
        _group(name, topics, answers, draw)
    if len(topics) > 1 and draw(st.booleans()):
        held = {number: {f"0_{number}": topics[number]} for number in (0, 1)}
        answers.streams(
            "app",
            *(
                instance(n + 1, draw(RACKS), held[n], held[1 - n] if draw(st.booleans()) else {}, sums={f"0_{n}": -2})
                for n in (0, 1)
            ),
        )
    if topics and draw(st.integers(0, 4)) == 0:
        answers.moving(topics[0], (1, 2), (2,), (1,))
    return answers


def _group(name: str, topics: list[str], answers: Answers, draw: st.DrawFn) -> None:
    kind = draw(st.sampled_from(["none", "classic", "classic", "kip848", "hidden"]))
    reads: list[list[str]] = [[], []]
    for number, partition in enumerate(topics):
        reads[number % 2].append(partition)
    if draw(st.integers(0, 4)) == 0:
        reads[1].append(topics[0])
    if draw(st.integers(0, 5)) == 0:
        reads[0].append("t-99")
    racks = [draw(RACKS), draw(RACKS)]
    if kind == "kip848":
        answers.kip848(name, *(consumer(f"m{n}", racks[n], " ".join(reads[n])) for n in (0, 1)))
    elif kind != "none":
        members: list[RawMember] = []
        for number in (0, 1):
            version = draw(st.sampled_from([3, 3, 1, 0]))
            rack = racks[number] if version == 3 else None
            member = reader(f"m{number}", rack, " ".join(reads[number]), version=version)
            members.append(member._replace(metadata=b"\x00") if draw(st.integers(0, 7)) == 0 else member)
        assignor = draw(st.sampled_from(["range", "cooperative-sticky", "roundrobin", "acme"]))
        state = "PreparingRebalance" if kind == "hidden" else "Stable"
        answers.group(name, *members, assignor=assignor, state=state)


def _no_topics(answers: Answers) -> None:
    answers.topics, answers.topic_configs, answers.ends = {}, {}, {}


def _no_groups(answers: Answers) -> None:
    answers.groups, answers.listed = {}, {}


def _no_broker_racks(answers: Answers) -> None:
    answers.brokers = {broker: row._replace(rack=None) for broker, row in answers.brokers.items()}


def _no_brokers(answers: Answers) -> None:
    answers.brokers = {}


def _no_broker_configs(answers: Answers) -> None:
    answers.broker_configs = {}


def _no_topic_configs(answers: Answers) -> None:
    answers.topic_configs = {}


def _no_moves(answers: Answers) -> None:
    answers.moves = {}


def _nothing(_answers: Answers) -> None:
    """The part comes with no data that a check looks at."""


WHOLE: dict[ObservationPart, Lessen] = {
    ObservationPart.TOPICS: _no_topics,
    ObservationPart.GROUPS: _no_groups,
    ObservationPart.BROKERS: _no_brokers,
    ObservationPart.BROKER_CONFIGS: _no_broker_configs,
    ObservationPart.TOPIC_CONFIGS: _no_topic_configs,
    ObservationPart.REASSIGNMENTS: _no_moves,
    ObservationPart.LOG_DIRS: _nothing,
    ObservationPart.END_OFFSETS: lambda answers: answers.ends.clear(),
    ObservationPart.RIGHTS: lambda answers: setattr(answers, "rights", PrincipalRights()),
}


def refused(draw: st.DrawFn, answers: Answers) -> Iterable[tuple[str, Answers]]:
    """The same world with a part, or one thing of it, that did not answer and is named by a gap."""
    part = draw(st.sampled_from(sorted(WHOLE)))
    cause = draw(st.sampled_from([GapCause.NOT_ALLOWED, GapCause.TIMED_OUT, GapCause.UNSUPPORTED]))
    less = deepcopy(answers)
    WHOLE[part](less)
    yield f"{part}: {cause}", less.gap(part, cause)
    for kind, names in (("brokers", answers.brokers), ("topics", answers.topics), ("groups", answers.groups)):
        if names:
            name = draw(st.sampled_from(sorted(names, key=str)))
            less = deepcopy(answers)
            del getattr(less, kind)[name]
            if kind == "groups":
                del less.listed[str(name)]
            yield f"{kind} {name}: {cause}", less.gap(ObservationPart[kind.upper()], cause, str(name))


def silenced(answers: Answers) -> Iterable[tuple[str, Answers]]:
    """The same world where a part says of itself that it is empty."""
    for lessen in (_no_topics, _no_groups, _no_broker_racks, _no_broker_configs, _no_topic_configs):
        less = deepcopy(answers)
        lessen(less)
        yield lessen.__name__, less


def glanced(answers: Answers) -> StageEvaluation:
    """A look without planning."""
    return evaluate(answers.at(), Memory(), Limits(), planning=False)


def better(
    before: dict[str, DoctorCheck], after: dict[str, DoctorCheck], floor: CheckState, *, no_tasks: bool
) -> list[str]:
    """The checks that reassure more than they did, and more than what is not seen may.

    Where a cluster says with full rights that it has no application, no task can be at risk.
    """
    return [
        f"{key}: {before[key].state} ({before[key].sentence}) -> {check.state} ({check.sentence})"
        for key, check in after.items()
        if key in before
        and check.state.rank < min(before[key].state.rank, floor.rank)
        and not (no_tasks and key.startswith("losing rack "))
    ]


@pytest.mark.timeout(1_800)  # at night it sees 5,000 worlds, each a dozen times
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_who_sees_less_never_hears_better(data: st.DataObject) -> None:
    answers = data.draw(worlds())
    full = glanced(answers)
    before = checks_in(full)
    event(f"states: {sorted({check.state.value for check in before.values()})}")
    hidden = [(what, less, CheckState.UNKNOWN) for what, less in refused(data.draw, answers)]
    gone = [(what, less, CheckState.NOTHING) for what, less in silenced(answers)]
    for what, less, floor in (*hidden, *gone):
        seen = glanced(less)
        assert not better(before, checks_in(seen), floor, no_tasks=what == _no_groups.__name__), what
        _no_group_gets_to_its_optimum(full, seen, what)


FOLLOWS_FROM_LESS = {
    FindingReason.RIGHTS_MISSING,
    FindingReason.PART_MISSING,
    FindingReason.STATE_UNKNOWN,
    FindingReason.BROKER_RACK_MISSING,  # of a broker that holds replicas and did not answer
    FindingReason.RACK_AWARENESS_OFF,  # of a group that may have something to gain after all
}
"""What may be found because something was not seen; of all else a gap makes no finding."""
BY_OLD_AND_NEW = {FindingReason.REPLICAS_SHARE_RACK, FindingReason.LEADER_SKEW, FindingReason.AT_MIN_ISR}
"""Judged by old and new replicas together where reassignments are hidden; the guard holds all moves then."""


@pytest.mark.timeout(1_800)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_is_not_seen_makes_no_other_finding(data: st.DataObject) -> None:
    answers = data.draw(worlds())
    known = {finding.id for finding in glanced(answers).detection.findings}
    for what, less in refused(data.draw, answers):
        new = [one for one in glanced(less).detection.findings if one.id not in known]
        event(f"new: {sorted({one.reason.name for one in new})}")
        allowed = FOLLOWS_FROM_LESS | (BY_OLD_AND_NEW if what.startswith(ObservationPart.REASSIGNMENTS) else set())
        assert {one.reason for one in new} <= allowed, f"{what}: {[one.sentence for one in new]}"


def _no_group_gets_to_its_optimum(full: StageEvaluation, less: StageEvaluation, what: str) -> None:
    for name, assessment in less.detection.assessments.items():
        known = full.detection.assessments.get(name)
        assert not assessment.at_optimum or (known is not None and known.at_optimum), f"{what}: {name}"
