"""What a group's members tell: racks that are not sent, subscriptions too old for one, bytes that cannot be read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.values.finding import FindingReason as Reason
from agent.values.limits import Limits, ScopeLimits
from tests.builders import Answers, Run, an_observation, consumer, instance, reader, streams_member, subtopology

Prepare = Callable[[Answers], object]


def a_cluster() -> Answers:
    return an_observation().topic("orders", (1, 2), (2, 3), (3, 1))


ORDERS = ("orders-0", "orders-1", "orders-2")


@pytest.mark.parametrize(
    ("prepare", "found"),
    [
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0"), reader("m2", "b", "orders-1")), 0, id="all send it"
        ),
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0"), reader("m2", None, "orders-1")), 1, id="one does not"
        ),
        pytest.param(lambda a: a.group("g", reader("m1", "", "orders-0")), 1, id="an empty rack is none"),
        pytest.param(
            lambda a: a.kip848("g", consumer("m1", None, "orders-0"), consumer("m2", "a", "orders-1")), 1, id="KIP-848"
        ),
        pytest.param(
            lambda a: a.kip1071(
                "g", streams_member(1, None, active="0_0"), subtopologies=(subtopology("0", "orders"),)
            ),
            1,
            id="KIP-1071",
        ),
        pytest.param(lambda a: a.streams("g", instance(1, None, {"0_0": "orders-0"})), 1, id="classic Streams"),
        pytest.param(lambda a: a.group("g", reader("m1", None, "orders-0", version=1)), 0, id="too old to send one"),
        pytest.param(
            lambda a: a.group("g", reader("m1", None, "orders-0", metadata=b"\0\3")), 0, id="bytes that cannot be read"
        ),
        pytest.param(
            lambda a: a.group("g", reader("m1", None, "orders-0"), state="PreparingRebalance"),
            0,
            id="hidden in a rebalance",
        ),
        pytest.param(
            lambda a: a.broker(2, "a").broker(3, "a").group("g", reader("m1", None, "orders-0")), 0, id="one rack only"
        ),
        pytest.param(lambda a: a.group("rackwise-leader", reader("m1", None, "orders-0")), 0, id="a group of our own"),
        pytest.param(lambda a: a.group("g", state="Empty"), 0, id="no members"),
    ],
)
def test_members_without_rack(prepare: Prepare, found: int) -> None:
    answers = a_cluster()
    prepare(answers)
    findings = Run().look(answers.at(0)).of(Reason.MEMBER_WITHOUT_RACK)
    assert [dict(finding.evidence)["members"] for finding in findings] == ([found] if found else [])


def test_one_finding_for_the_group_counts_members_and_names_clients() -> None:
    members = [reader(f"m{n}", None, "orders-0") for n in range(5)]
    (found,) = Run().look(a_cluster().group("g", *members).at(0)).of(Reason.MEMBER_WITHOUT_RACK)
    assert found.sentence == (
        "group g has 5 of 5 members that send no rack (client-m0, client-m1, client-m2 and 2 more): set client.rack"
    )


def test_one_member_is_no_plural() -> None:
    (found,) = Run().look(a_cluster().group("g", reader("m0", None, "orders-0")).at(0)).of(Reason.MEMBER_WITHOUT_RACK)
    assert found.sentence == "group g has 1 of 1 member that sends no rack (client-m0): set client.rack"


@pytest.mark.parametrize(
    ("version", "found"),
    [
        pytest.param(0, True, id="version 0"),
        pytest.param(1, True, id="version 1, cooperative but no rack"),
        pytest.param(2, True, id="version 2, with generation"),
        pytest.param(3, False, id="version 3, with rack"),
        pytest.param(4, False, id="a version to come"),
    ],
)
def test_subscription_too_old(version: int, found: bool) -> None:
    answers = a_cluster().group("g", reader("m1", None, "orders-0", version=version), assignor="range")
    findings = Run().look(answers.at(0)).of(Reason.SUBSCRIPTION_TOO_OLD)
    assert bool(findings) is found
    if found:
        assert f" whose subscription (version {version}) cannot carry a rack (client-m1)" in findings[0].sentence


@pytest.mark.parametrize(
    ("prepare", "found"),
    [
        pytest.param(
            lambda a: a.group("g", reader("m1", None, "orders-0", version=1), reader("m2", "a", "orders-1")),
            "group g runs mixed versions (its members' subscriptions have versions 1 and 3), "
            "so part of it cannot send a rack until the roll ends",
            id="consumers with and without room for a rack",
        ),
        pytest.param(
            lambda a: a.group(
                "g", reader("m1", None, "orders-0", version=1), reader("m2", None, "orders-1", version=1)
            ),
            None,
            id="consumers all of one old version",
        ),
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0", version=3), reader("m2", "b", "orders-1", version=4)),
            None,
            id="consumers of two versions that both carry a rack",
        ),
        pytest.param(
            lambda a: a.streams(
                "g",
                instance(1, "a", {"0_0": "orders-0"}, version=10),
                instance(2, "b", {"0_1": "orders-1"}, version=11),
            ),
            "application g runs mixed versions (its members' metadata has versions 10 and 11), "
            "so rack-aware assignment may be off until the roll ends",
            id="Streams metadata of two versions",
        ),
        pytest.param(
            lambda a: a.streams(
                "g", instance(1, "a", {"0_0": "orders-0"}), instance(2, "b", {"0_1": "orders-1"}, header_only=True)
            ),
            "application g runs mixed versions (its members' metadata has versions 11 and 12), "
            "so rack-aware assignment may be off until the roll ends",
            id="one member is newer than every decoder",
        ),
    ],
)
def test_mixed_versions(prepare: Prepare, found: str | None) -> None:
    answers = a_cluster()
    prepare(answers)
    findings = Run().look(answers.at(0)).of(Reason.MIXED_VERSIONS)
    assert [finding.sentence for finding in findings] == ([found] if found else [])


@pytest.mark.parametrize(
    ("prepare", "what"),
    [
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0", metadata=b"\0")),
            "the subscription of m1",
            id="subscription",
        ),
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0", assignment=b"\0\1\0")),
            "the assignment of m1",
            id="assignment",
        ),
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0", user_data=b"\0\0"), assignor="sticky"),
            "the subscription user data of m1",
            id="the assignor's part of the subscription",
        ),
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0"), assignor="stream"),
            "the subscription user data of m1",
            id="a Streams group with a member that is no Streams member",
        ),
    ],
)
def test_bytes_that_cannot_be_read_are_named_and_others_are_still_judged(prepare: Prepare, what: str) -> None:
    answers = a_cluster().group("healthy", reader("h1", None, "orders-2"))
    prepare(answers)
    run = Run().look(answers.at(0))
    (found,) = run.of(Reason.GROUP_UNDECODABLE)
    assert str(found.subject) == "group/g"
    assert found.sentence.startswith(
        f"group g has 1 of 1 member with bytes that cannot be read: {what} from /10.0.0.1: "
    )
    assert [str(other.subject) for other in run.of(Reason.MEMBER_WITHOUT_RACK)] == ["group/healthy"]


def test_groups_that_the_settings_leave_out_make_no_finding() -> None:
    answers = a_cluster().group("tmp-1", reader("m1", None, "orders-0"))
    assert (
        not Run(Limits(scope=ScopeLimits(exclude_groups=("tmp-*",)))).look(answers.at(0)).of(Reason.MEMBER_WITHOUT_RACK)
    )
