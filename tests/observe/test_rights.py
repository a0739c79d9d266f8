"""A missing right is never taken for an empty cluster; and the small values of a look."""

from __future__ import annotations

import pytest

from agent.errors import AuthenticationFailed, ClusterUnreachable, UnsupportedCluster
from agent.observe.context import ObserveScope
from agent.observe.observe_cluster import folded, no_answer, rights_gaps, rights_of, wrong_cluster
from agent.values.observation import Gap, GapCause, ObservationPart, PrincipalRights
from agent.wire.failure import CallFailed


@pytest.mark.parametrize(
    ("operations", "rights"),
    [
        pytest.param(None, PrincipalRights(), id="an old broker does not tell"),
        pytest.param(
            frozenset(),
            PrincipalRights(cluster_describe=False, cluster_describe_configs=False, cluster_alter=False),
            id="none",
        ),
        pytest.param(
            frozenset({8, 10}),
            PrincipalRights(cluster_describe=True, cluster_describe_configs=True, cluster_alter=False),
            id="observer",
        ),
        pytest.param(
            frozenset({5, 7, 8, 9, 10, 11, 12}),
            PrincipalRights(cluster_describe=True, cluster_describe_configs=True, cluster_alter=True),
            id="no authorizer: everything",
        ),
    ],
)
def test_rights_are_read_from_kafkas_operation_codes(
    operations: frozenset[int] | None, rights: PrincipalRights
) -> None:
    assert rights_of(operations, topics_hidden=None, groups_hidden=None) == rights


@pytest.mark.parametrize(
    ("describe", "topics", "groups", "expected"),
    [
        pytest.param(True, 0, 0, [], id="a right to describe and nothing there: a true empty cluster"),
        pytest.param(
            False,
            0,
            0,
            [(ObservationPart.GROUPS, GapCause.NOT_ALLOWED, ""), (ObservationPart.TOPICS, GapCause.NOT_ALLOWED, "")],
            id="no right, nothing shown: both parts are missing",
        ),
        pytest.param(
            False,
            5,
            3,
            [(ObservationPart.RIGHTS, GapCause.NOT_ALLOWED, "groups")],
            id="no right, some groups shown: more may exist",
        ),
        pytest.param(
            False, 5, 0, [(ObservationPart.GROUPS, GapCause.NOT_ALLOWED, "")], id="no right, topics but no group"
        ),
        pytest.param(False, None, None, [], id="parts that did not answer have their own gap"),
        pytest.param(
            None,
            0,
            0,
            [
                (ObservationPart.RIGHTS, GapCause.UNSUPPORTED, ""),
                (ObservationPart.GROUPS, GapCause.NOT_ALLOWED, ""),
                (ObservationPart.TOPICS, GapCause.NOT_ALLOWED, ""),
            ],
            id="rights unknown and nothing shown",
        ),
    ],
)
def test_a_list_that_rights_may_have_cut_short_has_a_gap(
    describe: bool | None, topics: int | None, groups: int | None, expected: list[tuple[ObservationPart, GapCause, str]]
) -> None:
    gaps = rights_gaps(PrincipalRights(cluster_describe=describe), topics_shown=topics, groups_shown=groups)
    assert [gap[:3] for gap in gaps] == expected
    assert all("DESCRIBE" in gap.detail for gap in gaps if gap.cause is GapCause.NOT_ALLOWED)


def test_gaps_are_sorted_without_duplicates_and_many_of_a_kind_are_counted() -> None:
    many = [Gap(ObservationPart.TOPIC_CONFIGS, GapCause.NOT_ALLOWED, f"t{number:03}", "no") for number in range(150)]
    whole = Gap(ObservationPart.TOPICS, GapCause.TIMED_OUT, "", "late")
    few = [Gap(ObservationPart.GROUPS, GapCause.VANISHED, name, "gone") for name in "ba"]
    assert folded([*many, *few, whole, whole, *few]) == (
        Gap(ObservationPart.GROUPS, GapCause.VANISHED, "a", "gone"),
        Gap(ObservationPart.GROUPS, GapCause.VANISHED, "b", "gone"),
        Gap.of_several(
            ObservationPart.TOPIC_CONFIGS, GapCause.NOT_ALLOWED, "150 of them", "among them t000, t001, t002: no"
        ),
        whole,
    )


def test_a_silent_broker_is_named_among_many_groups_without_an_answer() -> None:
    silent = Gap.of_broker(ObservationPart.GROUPS, GapCause.TIMED_OUT, 2, "late")
    many = [Gap(ObservationPart.GROUPS, GapCause.TIMED_OUT, f"g{number:03}", "late") for number in range(150)]
    counted = Gap.of_several(
        ObservationPart.GROUPS, GapCause.TIMED_OUT, "150 of them", "among them g000, g001, g002: late"
    )
    assert set(folded([*many, silent])) == {silent, counted}


@pytest.mark.parametrize(
    ("include", "exclude", "taken"),
    [
        pytest.param((), (), ["orders", "orders-dlq", "__consumer_offsets"], id="no pattern takes all"),
        pytest.param(("orders*",), (), ["orders", "orders-dlq"], id="only what is included"),
        pytest.param((), ("*-dlq", "__*"), ["orders"], id="not what is excluded"),
        pytest.param(("orders*",), ("*-dlq",), ["orders"], id="exclusion wins"),
        pytest.param(("ORDERS",), (), [], id="patterns are case-sensitive, as topics are"),
    ],
)
def test_patterns_choose_what_is_seen(include: tuple[str, ...], exclude: tuple[str, ...], taken: list[str]) -> None:
    names = ["orders", "orders-dlq", "__consumer_offsets"]
    topics = ObserveScope(include_topics=include, exclude_topics=exclude)
    groups = ObserveScope(include_groups=include, exclude_groups=exclude)
    assert [name for name in names if topics.takes_topic(name)] == taken
    assert [name for name in names if groups.takes_group(name)] == taken


@pytest.mark.parametrize(
    ("failure", "kind", "sentence", "exit_code"),
    [
        pytest.param(
            CallFailed(GapCause.TIMED_OUT, "h:1 did not answer to ApiVersions in time"),
            ClusterUnreachable,
            "No broker answered within 5 s: h:1 did not answer to ApiVersions in time."
            " Check bootstrap.servers and that the brokers run.",
            5,
            id="silence",
        ),
        pytest.param(
            CallFailed(GapCause.UNREACHABLE, "x", error=AuthenticationFailed("no", why="bad", todo="Change it.")),
            AuthenticationFailed,
            "no: bad. Change it.",
            2,
            id="a refusal keeps its own sentence",
        ),
        pytest.param(
            CallFailed(GapCause.UNSUPPORTED, "h:1 does not offer DescribeCluster v0 or newer"),
            UnsupportedCluster,
            "The brokers are too old: h:1 does not offer DescribeCluster v0 or newer."
            " rackwise needs Apache Kafka 3.0 or newer.",
            1,
            id="an ancient broker",
        ),
    ],
)
def test_no_answer_at_all_names_its_cause(failure: CallFailed, kind: type, sentence: str, exit_code: int) -> None:
    error = no_answer(failure, 5_000, 5_001.0)
    assert type(error) is kind
    assert (str(error), error.exit_code) == (sentence, exit_code)


def test_a_time_that_did_not_pass_is_not_claimed() -> None:
    refused = CallFailed(GapCause.UNREACHABLE, "127.0.0.1:9: connection refused")
    todo = " Check bootstrap.servers and that the brokers run."
    assert str(no_answer(refused, 5_000, 3.0)) == f"No broker answered: 127.0.0.1:9: connection refused.{todo}"
    halved = CallFailed(GapCause.UNREACHABLE, "h:1 did not answer to ApiVersions in time; h:2: connection refused")
    assert no_answer(halved, 5_000, 2_500.0).what == "No broker answered"


def test_a_wrong_cluster_is_named_with_both_ids() -> None:
    error = wrong_cluster("abc", "xyz")
    assert (
        str(error)
        == "The brokers belong to cluster abc: cluster xyz is expected. Check bootstrap.servers, or cluster.id."
    )
    assert error.exit_code == 2
