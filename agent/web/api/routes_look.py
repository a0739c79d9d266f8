"""Routes of one look: cluster, racks, topics, groups, findings, money; and of what changes of it would lead to."""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi import Query as Parameter
from pydantic import BaseModel, Field, create_model

from agent.documents import views, views_money
from agent.documents.cluster import (
    AgentLookDocument,
    BrokerDocument,
    CheckDocument,
    FindingDocument,
    RackDocument,
)
from agent.documents.comparison import group_rows
from agent.documents.groups import (
    GroupDetailsDocument,
    GroupDocument,
    ListedPartition,
    TaskCopyDocument,
    TopDocument,
    TopicDetailsDocument,
    TopicDocument,
)
from agent.documents.plan import NewPlacementRow, PendingSimulation, PlanGroup, SimulationAnswer, placement_to_json
from agent.documents.status import StatusDocument, look_document, status_document, top_document
from agent.errors import BadInput, PartialAnswer
from agent.plan.advice import bootstrap_of, tool
from agent.plan.new_partitions import (
    ClusterPlacer,
    KafkaPlacer,
    did_you_mean,
    place_added,
    place_new_topic,
    unknown_group,
    unknown_topic,
)
from agent.simulate.change_texts import QUESTIONS, changes_of
from agent.web.api.answers import (
    BROKERS,
    CHECKS,
    COMPARISONS,
    FINDINGS,
    GROUPS,
    PARTITIONS,
    PLACEMENTS,
    RACKS,
    TASKS,
    TOPICS,
    ApiAnswers,
    ListQuery,
    PageDocument,
    encoded,
    list_query,
)
from agent.web.api.problems import HEADERS, NO_LOOK, NOT_FOUND, ApiProblem, ProblemDocument, name_of, of_error
from agent.web.page.look_documents import LookDocuments
from agent.web.page.page_documents import (
    shared_checks,
    shared_costs,
    shared_findings,
    shared_groups,
    shared_racks,
)
from agent.web.what_if_answers import MOST_CHANGES

Query = Annotated[ListQuery, Depends(list_query)]


def look_routes(answers: ApiAnswers) -> APIRouter:
    """The routes that the last finished look answers."""
    router = APIRouter(tags=["look"], responses=NO_LOOK)
    _add_cluster(router, answers)
    _add_topics(router, answers)
    _add_groups(router, answers)
    _add_simulation(router, answers)
    _add_new_partitions(router, answers)
    return router


def _add_cluster(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/look", response_model=AgentLookDocument)
    def look(request: Request) -> Response:
        """The last finished look: its time, its gaps, and where rates and prices are from."""
        return answers.send(request, encoded(_agent_look(answers, answers.documents(request))))

    @router.get("/cluster", response_model=StatusDocument)
    def cluster(request: Request) -> Response:
        """The size of the cluster, traffic across racks, its cost and all findings, as ``rackwise status`` has it."""
        return answers.of_look(
            request, "cluster", lambda of: status_document(of.look.evaluation, costs=shared_costs(of))
        )

    @router.get("/money", response_model=TopDocument)
    def money(request: Request) -> Response:
        """Traffic across racks and its cost, by group and by topic, as one look of ``rackwise top``."""
        return answers.of_look(request, "money", lambda of: top_document(of.look.evaluation, shared_costs(of)))

    @router.get("/racks", response_model=PageDocument[RackDocument])
    def racks(request: Request, query: Query) -> Response:
        """Racks: what is in them, what crosses their borders, and what losing each costs."""
        return answers.page(request, RACKS, query, "racks", shared_racks)

    @router.get("/brokers", response_model=PageDocument[BrokerDocument])
    def brokers(request: Request, query: Query) -> Response:
        """Brokers by id, absent ones among them."""
        return answers.page(request, BROKERS, query, "brokers", lambda of: views.brokers(of.look.evaluation))

    @router.get("/findings", response_model=PageDocument[FindingDocument])
    def findings(request: Request, query: Query) -> Response:
        """What is wrong or worth knowing, the gravest first."""
        return answers.page(request, FINDINGS, query, "findings", shared_findings)

    @router.get("/doctor", response_model=PageDocument[CheckDocument])
    def doctor(request: Request, query: Query) -> Response:
        """Faults that cause traffic across racks, each with its cost and the line to change; and risks."""
        return answers.page(request, CHECKS, query, "doctor", shared_checks)


def _topics(of: LookDocuments) -> list[TopicDocument]:
    return views_money.topics(shared_costs(of), of.look.evaluation)


def _agent_look(answers: ApiAnswers, of: LookDocuments) -> AgentLookDocument:
    look, records = of.look, answers.view.journal()
    return {
        **look_document(look.evaluation),
        "cycle": look.cycle,
        "look": look.look,
        "planned_ms": look.planned_ms,
        "groups_with_hidden_reads": list(shared_costs(of).hidden_groups),
        "journal": {"name": records.journal, "known": records.known, "why": records.why or None},
    }


def _add_topics(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/topics", response_model=PageDocument[TopicDocument])
    def topics(request: Request, query: Query) -> Response:
        """Topics, costliest first."""
        return answers.page(request, TOPICS, query, "topics", _topics)

    @router.get("/partitions", response_model=PageDocument[ListedPartition])
    def partitions(request: Request, query: Query) -> Response:
        """Partitions of all topics with their replicas."""
        return answers.page(request, PARTITIONS, query, "partitions", lambda of: views.partitions(of.look.evaluation))

    @router.get("/topics/{topic}", response_model=TopicDetailsDocument, responses=NOT_FOUND)
    def topic(request: Request, topic: str) -> Response:
        """One topic with its readers by rack and its partitions."""
        of, name = answers.documents(request), name_of(topic)
        evaluation = of.look.evaluation
        if name not in evaluation.snapshot.topics:
            raise of_error(unknown_topic(name, evaluation.snapshot))
        return answers.send(request, encoded(views_money.topic_details(name, shared_costs(of), evaluation)))


def _compared(of: LookDocuments) -> list[PlanGroup]:
    look = of.look.evaluation
    return group_rows(look.snapshot, look.detection, look.plan, look.limits)


def _add_groups(router: APIRouter, answers: ApiAnswers) -> None:
    def known(request: Request, segment: str) -> tuple[str, LookDocuments]:
        of, name = answers.documents(request), name_of(segment)
        evaluation = of.look.evaluation
        if name not in evaluation.snapshot.groups:
            raise of_error(unknown_group(name, evaluation.snapshot))
        return name, of

    @router.get("/groups", response_model=PageDocument[GroupDocument])
    def groups(request: Request, query: Query) -> Response:
        """Groups, costliest first; groups without members among them."""
        return answers.page(request, GROUPS, query, "groups", shared_groups)

    @router.get("/comparisons", response_model=PageDocument[PlanGroup])
    def comparisons(request: Request, query: Query) -> Response:
        """Every group that assigns partitions: now, by its own assignor, with the plug-in, and at the optimum."""
        return answers.page(request, COMPARISONS, query, "comparisons", _compared)

    @router.get("/groups/{group}", response_model=GroupDetailsDocument, responses=NOT_FOUND)
    def group(request: Request, group: str) -> Response:
        """One group with its members, its tasks, and its reads by topic."""
        name, of = known(request, group)
        return answers.send(request, encoded(views.group(name, shared_costs(of), of.look.evaluation)))

    @router.get("/groups/{group}/tasks", response_model=PageDocument[TaskCopyDocument], responses=NOT_FOUND)
    def tasks(request: Request, query: Query, group: str) -> Response:
        """The copies of the group's stateful tasks with their lags; none for other groups than Kafka Streams."""
        name, of = known(request, group)
        return answers.send_page(request, TASKS, query, views.task_rows(name, of.look.evaluation))

    @router.get("/groups/{group}/comparison", response_model=PlanGroup, responses=NOT_FOUND)
    def comparison(request: Request, group: str) -> Response:
        """The group now, by its own assignor, with the plug-in (KIP-848), and at the optimum."""
        name, of = known(request, group)
        evaluation = of.look.evaluation
        compared = group_rows(evaluation.snapshot, evaluation.detection, evaluation.plan, evaluation.limits, only=name)
        if not compared:
            raise ApiProblem(404, f"group {name} is not compared: it assigns no partitions, or is excluded")
        return answers.send(request, encoded(compared[0]))


# What is not there yet: simulated changes, one question at a time, and new partitions.

_LONGEST = 500
_MOST_PARTITIONS = 10_000
"""Partitions that a topic may have for its new ones to be placed here."""
_MOST_REPLICAS = 100
_NEW_TOPIC = "For a new topic give replication_factor too. List all topics: GET /api/v1/topics"
_RESPONSES: dict[int | str, dict[str, Any]] = {
    **NO_LOOK,
    202: {"model": PendingSimulation, "description": "The outcome is being worked on: ask the same again."},
    504: {"model": ProblemDocument, "description": "It takes too long, and is waited for no more."},
}


def _field(text: str) -> Any:
    """The texts of one kind of change."""
    one = Annotated[str, Field(min_length=1, max_length=_LONGEST)]
    return Annotated[list[one], Field(max_length=MOST_CHANGES, description=text)]


_FIELDS: dict[str, Any] = {
    one.name.replace("-", "_"): (
        _field(f"{one.form}: {one.sentence}."), Field(default_factory=list, alias=one.name)
    )
    for one in QUESTIONS
}  # fmt: skip
SimulationQuery: type[BaseModel] = create_model("SimulationQuery", **_FIELDS)
"""A parameter for each kind of change, by the name of its option; each may be repeated."""


def _add_simulation(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/simulation", response_model=SimulationAnswer, responses=_RESPONSES)
    def simulation(request: Request, query: Annotated[SimulationQuery, Parameter()]) -> Response:  # type: ignore[valid-type]
        """What changes of the cluster would lead to, as ``rackwise simulate``; nothing is changed."""
        look = answers.documents(request).look
        try:
            changes = changes_of(query.model_dump(by_alias=True))  # type: ignore[attr-defined] # it is a model
        except BadInput as error:
            raise ApiProblem(422, f"{error.what}: {error.why}", todo=error.todo) from None
        answer = answers.view.what_if.ask(look.evaluation, changes)
        if answer.is_pending:
            pending: PendingSimulation = {"sentence": "the outcome is being worked on"}
            headers = {**HEADERS, "retry-after": "1"}
            return Response(encoded(pending).body, 202, headers, media_type="application/json")
        if answer.document is None:
            retry_after_s = 5 if answer.status == 503 else None
            raise ApiProblem(answer.status, answer.refused, todo=answer.remedy, retry_after_s=retry_after_s)
        return answers.send_kept(encoded(answer.document), answer.taken_ms)


def _add_new_partitions(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/new-partitions", response_model=PageDocument[NewPlacementRow], responses=NO_LOOK)
    def new_partitions(  # noqa: PLR0917 (its parameters)
        request: Request,
        rows: Query,
        topic: Annotated[str, Parameter(min_length=1, max_length=_LONGEST, description="A topic, new or not.")],
        partitions: Annotated[int, Parameter(ge=1, le=_MOST_PARTITIONS, description="Partitions that it is to have.")],
        replication_factor: Annotated[
            int | None,
            Parameter(
                ge=1, le=_MOST_REPLICAS, description="Of a new topic, which needs it; none for one that is there."
            ),
        ] = None,
        placer: Annotated[Literal["striped", "kip-36"], Parameter(description="Kafka's placer.")] = "striped",
        seed: Annotated[int, Parameter(ge=-(2**63), le=2**63 - 1, description="Of the placer's random draws.")] = 0,
    ) -> Response:
        """Where new partitions would go by Kafka's own placer and at best, as ``rackwise plan --new-topic``."""
        snapshot = answers.documents(request).look.evaluation.snapshot
        kafka = ClusterPlacer(KafkaPlacer(placer), Random(seed).randrange)  # noqa: S311 (as Kafka draws: no secret)
        try:
            if replication_factor is None:
                both = place_added(snapshot, topic, partitions, kafka)
            else:
                both = place_new_topic(snapshot, topic, partitions, replication_factor, kafka)
        except PartialAnswer as error:
            raise of_error(error) from None
        except BadInput as error:
            is_new = replication_factor is None and topic not in snapshot.topics
            todo = f"{did_you_mean(topic, snapshot.topics)}{_NEW_TOPIC}" if is_new else error.todo
            raise ApiProblem(422, f"{error.what}: {error.why}", todo=todo) from None
        servers = bootstrap_of(snapshot)
        command = "kafka-topics.sh" if servers is None else tool("kafka-topics", servers, None)
        return answers.send_page(request, PLACEMENTS, rows, [placement_to_json(one, command) for one in both])
