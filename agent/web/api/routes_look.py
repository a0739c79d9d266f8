"""Routes of one look: cluster, racks, brokers, topics, groups, tasks, findings, checks and money."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from agent.documents import views, views_money
from agent.documents.cluster import (
    AgentLookDocument,
    BrokerDocument,
    CheckDocument,
    FindingDocument,
    RackDocument,
    StatusDocument,
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
from agent.documents.plan import PlanGroup
from agent.documents.status import look_document, status_document, top_document
from agent.plan.new_partitions import unknown_group, unknown_topic
from agent.web.api import paging
from agent.web.api.answers import ApiAnswers, encoded
from agent.web.api.paging import ListQuery, list_query
from agent.web.api.problems import NO_LOOK, NOT_FOUND, ApiProblem, name_of, of_error
from agent.web.page.look_documents import LookDocuments
from agent.web.page.page_documents import (
    shared_checks,
    shared_costs,
    shared_findings,
    shared_groups,
    shared_racks,
)

Query = Annotated[ListQuery, Depends(list_query)]


def look_routes(answers: ApiAnswers) -> APIRouter:
    """The routes that the last finished look answers."""
    router = APIRouter(tags=["look"], responses=NO_LOOK)
    _add_cluster(router, answers)
    _add_topics(router, answers)
    _add_groups(router, answers)
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

    @router.get("/racks", response_model=paging.PageDocument[RackDocument])
    def racks(request: Request, query: Query) -> Response:
        """Racks: what is in them, what crosses their borders, and what losing each costs."""
        return answers.page(request, paging.RACKS, query, "racks", shared_racks)

    @router.get("/brokers", response_model=paging.PageDocument[BrokerDocument])
    def brokers(request: Request, query: Query) -> Response:
        """Brokers by id, absent ones among them."""
        return answers.page(request, paging.BROKERS, query, "brokers", lambda of: views.brokers(of.look.evaluation))

    @router.get("/findings", response_model=paging.PageDocument[FindingDocument])
    def findings(request: Request, query: Query) -> Response:
        """What is wrong or worth knowing, the gravest first."""
        return answers.page(request, paging.FINDINGS, query, "findings", shared_findings)

    @router.get("/doctor", response_model=paging.PageDocument[CheckDocument])
    def doctor(request: Request, query: Query) -> Response:
        """Faults that cause traffic across racks, each with its cost and the line to change; and risks."""
        return answers.page(request, paging.CHECKS, query, "doctor", shared_checks)


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
    @router.get("/topics", response_model=paging.PageDocument[TopicDocument])
    def topics(request: Request, query: Query) -> Response:
        """Topics, costliest first."""
        return answers.page(request, paging.TOPICS, query, "topics", _topics)

    @router.get("/partitions", response_model=paging.PageDocument[ListedPartition])
    def partitions(request: Request, query: Query) -> Response:
        """Partitions of all topics with their replicas."""
        return answers.page(
            request, paging.PARTITIONS, query, "partitions", lambda of: views.partitions(of.look.evaluation)
        )

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

    @router.get("/groups", response_model=paging.PageDocument[GroupDocument])
    def groups(request: Request, query: Query) -> Response:
        """Groups, costliest first; groups without members among them."""
        return answers.page(request, paging.GROUPS, query, "groups", shared_groups)

    @router.get("/comparisons", response_model=paging.PageDocument[PlanGroup])
    def comparisons(request: Request, query: Query) -> Response:
        """Every group that assigns partitions in three columns: now, by its own assignor, and at the optimum."""
        return answers.page(request, paging.COMPARISONS, query, "comparisons", _compared)

    @router.get("/groups/{group}", response_model=GroupDetailsDocument, responses=NOT_FOUND)
    def group(request: Request, group: str) -> Response:
        """One group with its members, its tasks, and its reads by topic."""
        name, of = known(request, group)
        return answers.send(request, encoded(views.group(name, shared_costs(of), of.look.evaluation)))

    @router.get("/groups/{group}/tasks", response_model=paging.PageDocument[TaskCopyDocument], responses=NOT_FOUND)
    def tasks(request: Request, query: Query, group: str) -> Response:
        """The copies of the group's stateful tasks with their lags; none for other groups than Kafka Streams."""
        name, of = known(request, group)
        return answers.send_page(request, paging.TASKS, query, views.task_rows(name, of.look.evaluation))

    @router.get("/groups/{group}/comparison", response_model=PlanGroup, responses=NOT_FOUND)
    def comparison(request: Request, group: str) -> Response:
        """The group in three columns: now, by its own assignor, and at the optimum."""
        name, of = known(request, group)
        evaluation = of.look.evaluation
        compared = group_rows(evaluation.snapshot, evaluation.detection, evaluation.plan, evaluation.limits, only=name)
        if not compared:
            raise ApiProblem(404, f"group {name} is not compared: it assigns no partitions, or is excluded")
        return answers.send(request, encoded(compared[0]))
