"""A real cluster whose brokers carry no rack and whose members send none: locators alone say who is where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from agent.propose.codec import proposal_to_json
from agent.simulate.evaluation import replay
from agent.telemetry.events import from_lines, to_lines
from agent.values.assessment import LocalityMeasure
from agent.values.cycle import Cycle
from agent.values.finding import FindingReason
from agent.values.observation import GapCause, ObservationPart
from agent.values.proposal import ProposalKind
from agent.values.snapshot import ConsumerGroup, RackState
from config.load import load_settings
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.command import rackwise
from tests.installed_package import offering
from tests.observe.live import wait_for
from tests.recorded_looks import observation_to_events
from tests.watching_agent import WatchingAgent, cycle_text, findings_of

pytestmark = pytest.mark.integration

SECRET = "canary-77d3"
INVENTORY = """
class Racks:
    def __init__(self, properties):
        assert properties["token"] == "canary-77d3"

    def get_rack_info(self):
        return {3: "c"}
"""


@pytest.fixture(scope="module")
def rackless() -> Iterator[EmbeddedCluster]:
    """Three brokers without rack; topic orders on brokers 1 and 2 alone; two members of group readers."""
    with ExitStack() as stack:
        cluster = stack.enter_context(
            EmbeddedCluster.start(ClusterSpec(racks=(None, None, None), heap="384m"), on_progress=print)
        )
        where = cluster.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": where})
        placed = NewTopic("orders", 4, replica_assignment=[[1, 2], [2, 1], [1, 2], [2, 1]])
        admin.create_topics([placed])["orders"].result(30)
        first, second = (a_member(where, client_id, stack) for client_id in ("orders-eu-a", "orders-eu-c"))
        wait_for(
            lambda: (first.poll(0.1), second.poll(0.1), len(first.assignment()) == len(second.assignment()) == 2)[2],
            "both have two partitions",
        )
        yield cluster


def a_member(where: str, client_id: str, stack: ExitStack) -> Consumer:
    one = Consumer({"bootstrap.servers": where, "group.id": "readers", "client.id": client_id})
    stack.callback(one.close)
    one.subscribe(["orders"])
    return one


@pytest.fixture
def settings_file(rackless: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file tells brokers 1 and 2, a package broker 3, patterns the members, and a command contradicts the file."""
    offering(tmp_path, monkeypatch, "inventory", INVENTORY)
    (tmp_path / "racks.properties").write_text("broker.1=a\n2=a\n")
    program = tmp_path / "racks"
    program.write_text(f"#!/bin/sh\necho '{SECRET}' >&2\necho broker.1=z\n")
    program.chmod(0o755)
    (tmp_path / "inventory.token").write_text(SECRET)
    file = tmp_path / "rackwise.yaml"
    file.write_text(
        f"""
kafka.bootstrap.servers: {rackless.bootstrap_servers}
racks: {{stable_for: 1s, stable_polls: 1}}
rack.locator:
  class: [wire, file, command, regex, inventory]
  properties:
    file.path: {tmp_path / "racks.properties"}
    command.argv: {program}
    regex.client.id: {{-a$: a, -c$: c}}
    inventory.token: ${{file:{tmp_path / "inventory.token"}}}
"""
    )
    return file


@pytest.fixture
def eye(settings_file: Path) -> Iterator[WatchingAgent]:
    with WatchingAgent(load_settings(files=[settings_file], environ={}).settings) as opened:
        yield opened


def racks(cycle: Cycle) -> dict[str, str | None]:
    """Broker id or client id -> rack."""
    group = cycle.snapshot.groups["readers"]
    assert isinstance(group, ConsumerGroup)
    found_racks = {str(broker.id): broker.rack.name for broker in cycle.snapshot.brokers}
    return found_racks | {member.client_id: member.rack.name for member in group.members}


EVERYBODY = {"1": "a", "2": "a", "3": "c", "orders-eu-a": "a", "orders-eu-c": "c"}


def test_locators_know_the_racks_of_brokers_and_members_that_tell_none(eye: WatchingAgent) -> None:
    cycle = eye.look(planning=True)
    assert racks(cycle) == EVERYBODY, cycle_text(cycle)
    assert all(broker.rack is None for broker in cycle.observation.brokers)
    assert [gap for gap in cycle.snapshot.gaps if gap.part is ObservationPart.RACK_LOCATORS] == []
    (move,) = [one for one in cycle.proposals if one.kind is ProposalKind.REASSIGN]
    assert str(move.subject) == "topic/orders", cycle_text(cycle)
    (disagree,) = findings_of(cycle, FindingReason.RACK_LOCATORS_DISAGREE)
    assert disagree.sentence == ("broker 1 has 2 racks by its locators: file knows rack a and is used, command says z")
    assert findings_of(cycle, FindingReason.MEMBER_WITHOUT_RACK, "group/readers")
    assert len(findings_of(cycle, FindingReason.BROKER_RACK_MISSING)) == 3
    assessment = cycle.detection.assessments["readers"]
    (kafka,) = [row for row in assessment.current if row.measure is LocalityMeasure.KAFKA and row.unit == "partitions"]
    assert (kafka.local, kafka.total, kafka.unknown) == (2, 4, 0), "the member in c is near to nothing"


def test_a_recorded_look_gives_the_same_proposals_without_asking_any_locator(
    eye: WatchingAgent, settings_file: Path
) -> None:
    cycle = eye.look(planning=True)
    events = observation_to_events(cycle.observation, cycle.before, cycle.limits, look="l-1")
    lines = [line for event in events for line in to_lines(event)]
    (settings_file.parent / "racks.properties").unlink()
    (settings_file.parent / "racks").unlink()
    again = replay(from_lines(lines))
    assert [json.dumps(proposal_to_json(one)) for one in again] == [
        json.dumps(proposal_to_json(one)) for one in cycle.proposals
    ]
    assert again
    assert SECRET not in "".join(lines)


def test_a_locator_that_fails_leaves_its_last_answer_and_says_how_old_it_is(
    eye: WatchingAgent, settings_file: Path
) -> None:
    file, program = settings_file.parent / "racks.properties", settings_file.parent / "racks"
    eye.look()
    file.unlink()
    program.write_text("#!/bin/sh\nsleep 600\n")
    failed = eye.look()
    assert racks(failed) == EVERYBODY
    gaps = {gap.subject: gap for gap in failed.snapshot.gaps if gap.part is ObservationPart.RACK_LOCATORS}
    assert {name: gap.cause for name, gap in gaps.items()} == {
        "file": GapCause.UNREACHABLE, "command": GapCause.TIMED_OUT,
    }  # fmt: skip
    assert gaps["file"].detail.startswith(f"{file} cannot be read (No such file or directory); its answer from ")
    assert gaps["file"].detail.endswith(" s ago is used")
    ages = {one.name: one.age_ms for one in failed.snapshot.rack_locators}
    assert ages["file"]
    assert ages["command"]
    assert ages["inventory"] == 0
    assert failed.observation.took_ms < 6_000
    file.write_text("1=a\n2=b\n")
    program.write_text("#!/bin/sh\necho broker.1=a\n")
    mended = eye.look()
    assert racks(mended) == {**EVERYBODY, "2": "b"}
    assert [gap for gap in mended.snapshot.gaps if gap.part is ObservationPart.RACK_LOCATORS] == []
    assert findings_of(mended, FindingReason.BROKER_RACK_CHANGED, "broker/2"), cycle_text(mended)
    assert not findings_of(mended, FindingReason.RACK_LOCATORS_DISAGREE)


def test_without_an_answer_from_the_first_look_on_racks_are_unknown_and_it_is_said(
    eye: WatchingAgent, settings_file: Path
) -> None:
    (settings_file.parent / "racks.properties").write_text(f"password={SECRET}\n")
    cycle = eye.look()
    assert racks(cycle) == {**EVERYBODY, "1": "z", "2": None}, "of broker 1 the command knows"
    assert cycle.snapshot.brokers[1].rack.state is RackState.UNKNOWN
    (gap,) = [gap for gap in cycle.snapshot.gaps if gap.part is ObservationPart.RACK_LOCATORS]
    assert gap.detail.endswith("it has never answered, so racks that only it knows are unknown")
    assert SECRET not in repr(cycle.snapshot)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("doctor",), "members: 2 by regex", id="doctor"),
        pytest.param(("explain", "broker/1"), "it gives z, but another locator comes first", id="explain a broker"),
        pytest.param(("explain", "group/readers"), "locators know 2 more", id="explain a group"),
        pytest.param(("groups", "readers"), '"known_from": "regex"', id="a group"),
    ],
)
def test_commands_show_from_where_a_rack_is_known(
    settings_file: Path, arguments: tuple[str, ...], expected: str
) -> None:
    done = rackwise(*arguments, "-c", str(settings_file), "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert expected in done.stdout
    assert SECRET not in done.stdout + done.stderr


def test_racks_counts_what_knows_each_rack(settings_file: Path) -> None:
    rows: list[dict[str, Any]] = rackwise("racks", "-c", str(settings_file), "-o", "json").json
    assert {row["rack"]: (row["known_from"], row["brokers"]) for row in rows} == {
        "a": ({"file": 2, "regex": 1}, [1, 2]),
        "c": ({"inventory": 1, "regex": 1}, [3]),
    }


def test_a_failing_locator_makes_the_answer_of_a_command_partial(settings_file: Path) -> None:
    (settings_file.parent / "racks.properties").unlink()
    done = rackwise("racks", "-c", str(settings_file), "-o", "json")
    assert done.exit_code == 5
    assert "not seen: rack locators of file: could not be reached" in done.stderr
