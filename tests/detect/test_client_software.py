"""kafka-python and aiokafka: no upgrade makes them send a rack, the drop-in assignors do; and what others are told."""

from __future__ import annotations

import ast

import pytest

from agent.detect.members import rack_aware_arguments
from agent.simulate.evaluation import StageEvaluation, evaluate
from agent.values.finding import FindingReason as Reason
from agent.values.limits import GroupLimits, Limits
from agent.values.memory import Memory
from agent.values.proposal import Proposal, ProposalReason
from tests.builders import an_observation, reader

ADVICE = (ProposalReason.UPGRADE_CLIENT, ProposalReason.USE_DROP_IN_ASSIGNOR)


def looked(*clients: str, version: int = 0, assignor: str = "range", limits: Limits | None = None) -> StageEvaluation:
    answers = an_observation().topic("orders", (1, 2), (2, 3), (3, 1))
    members = (
        reader(f"m{n}", None, f"orders-{n}", version=version, client_id=client) for n, client in enumerate(clients)
    )
    return evaluate(answers.group("g", *members, assignor=assignor).at(), Memory(), limits or Limits())


def sentence_of(seen: StageEvaluation) -> str:
    (finding,) = [one for one in seen.detection.findings if one.reason is Reason.SUBSCRIPTION_TOO_OLD]
    return finding.sentence


def advice(seen: StageEvaluation) -> dict[ProposalReason, Proposal]:
    return {one.reason: one for one in seen.proposals if one.reason in ADVICE}


@pytest.mark.parametrize(
    ("clients", "software", "library"),
    [
        pytest.param(("kafka-python-3.0.1",), None, "kafka-python", id="kafka-python by its client id"),
        pytest.param(("aiokafka-0.12.0",), None, "aiokafka", id="aiokafka by its client id"),
        pytest.param(("billing",), "kafka-python", "kafka-python", id="by what the settings say of the group"),
        pytest.param(("billing",), "aiokafka 0.14", "aiokafka", id="by what the settings say, with a version"),
    ],
)
def test_python_clients_are_given_an_assignor_and_no_upgrade(
    clients: tuple[str, ...], software: str | None, library: str
) -> None:
    limits = Limits(groups={"g": GroupLimits(client_software_name=software)})
    seen = looked(*clients, limits=limits)
    assert f"no version of {library} sends a rack: use the assignors of assignors.clients" in sentence_of(seen)
    assert "librdkafka" not in sentence_of(seen)
    given = advice(seen)
    assert set(given) == {ProposalReason.USE_DROP_IN_ASSIGNOR}
    proposal = given[ProposalReason.USE_DROP_IN_ASSIGNOR]
    module = library.replace("-", "_")
    assert proposal.line == (
        'client_rack="<a|b|c>", partition_assignment_strategy=Strategy("range", client_rack="<a|b|c>")'
        f"  # from assignors.clients.{module} import Strategy, see docs/clients.md"
    )
    assert proposal.sentence.startswith("Give 1 client of g an assignor of assignors.clients: ")


def test_a_group_of_both_is_told_both() -> None:
    seen = looked("kafka-python-2.0.2", "billing", version=1)
    assert "no version of kafka-python sends a rack" in sentence_of(seen)
    assert "and for all others use kafka-clients 3.5 or librdkafka 2.2.0, or newer" in sentence_of(seen)
    given = advice(seen)
    assert [move.subject for move in given[ProposalReason.UPGRADE_CLIENT].moves] == ["billing"]
    assert [move.subject for move in given[ProposalReason.USE_DROP_IN_ASSIGNOR].moves] == ["kafka-python-2.0.2"]


def test_a_subscription_of_version_0_may_be_of_either_and_is_told_so() -> None:
    seen = looked("billing")
    assert sentence_of(seen).endswith(
        "use kafka-clients 3.5 or librdkafka 2.2.0, or newer, or for kafka-python and aiokafka the assignors of "
        "assignors.clients (docs/clients.md)"
    )
    line = advice(seen)[ProposalReason.UPGRADE_CLIENT].line
    assert line is not None
    assert line.endswith("(kafka-python, aiokafka: docs/clients.md)")


def test_librdkafka_with_racks_begins_at_2_2_0() -> None:
    seen = looked("rdkafka", version=1)
    assert sentence_of(seen).endswith("use kafka-clients 3.5 or librdkafka 2.2.0, or newer")


@pytest.mark.parametrize("library", ["kafka-python", "aiokafka"])
@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky", "roundrobin", None])
def test_the_line_can_be_pasted_into_a_consumer(library: str, assignor: str | None) -> None:
    line = rack_aware_arguments(library, assignor, "az-a")
    call = ast.parse(f"KafkaConsumer({line}\n)").body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert [keyword.arg for keyword in call.value.keywords] == ["client_rack", "partition_assignment_strategy"]
    imported = line.partition("# ")[2].partition(",")[0]
    namespace: dict[str, object] = {}
    exec(imported, namespace)  # noqa: S102 (the very line that is proposed)
    strategy = eval(ast.unparse(call.value.keywords[1].value), namespace)  # noqa: S307
    assert strategy is not None
