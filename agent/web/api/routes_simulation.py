"""Routes of what is not there yet: simulated changes, one question at a time, and new partitions."""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field, create_model

from agent.documents.plan import NewPlacementRow, PendingSimulation, SimulationAnswer, placement_to_json
from agent.errors import BadInput, PartialAnswer
from agent.plan.advice import bootstrap_of, tool
from agent.plan.new_partitions import ClusterPlacer, KafkaPlacer, place_added, place_new_topic
from agent.simulate.change_texts import QUESTIONS, changes_of
from agent.web.api import paging
from agent.web.api.answers import ApiAnswers, encoded
from agent.web.api.paging import ListQuery, list_query
from agent.web.api.problems import HEADERS, NO_LOOK, ApiProblem, ProblemDocument, of_error
from agent.web.what_if_answers import MOST_CHANGES

_LONGEST = 500
_MOST_PARTITIONS = 10_000
"""Partitions that a topic may have for its new ones to be placed here."""
_MOST_REPLICAS = 100
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


def simulation_routes(answers: ApiAnswers) -> APIRouter:
    """Both routes."""
    router = APIRouter(tags=["look"])
    _add_new_partitions(router, answers)

    @router.get("/simulation", response_model=SimulationAnswer, responses=_RESPONSES)
    def simulation(request: Request, query: Annotated[SimulationQuery, Query()]) -> Response:  # type: ignore[valid-type]
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

    return router


def _add_new_partitions(router: APIRouter, answers: ApiAnswers) -> None:
    @router.get("/new-partitions", response_model=paging.PageDocument[NewPlacementRow], responses=NO_LOOK)
    def new_partitions(  # noqa: PLR0917 (its parameters)
        request: Request,
        rows: Annotated[ListQuery, Depends(list_query)],
        topic: Annotated[str, Query(min_length=1, max_length=_LONGEST, description="A topic, new or not.")],
        partitions: Annotated[int, Query(ge=1, le=_MOST_PARTITIONS, description="Partitions that it is to have.")],
        replication_factor: Annotated[
            int | None, Query(ge=1, le=_MOST_REPLICAS, description="Of a new topic; none for one that is there.")
        ] = None,
        placer: Annotated[Literal["striped", "kip-36"], Query(description="Kafka's placer.")] = "striped",
        seed: Annotated[int, Query(ge=-(2**63), le=2**63 - 1, description="Of the placer's random draws.")] = 0,
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
            raise ApiProblem(422, f"{error.what}: {error.why}", todo=error.todo) from None
        servers = bootstrap_of(snapshot)
        command = "kafka-topics.sh" if servers is None else tool("kafka-topics", servers, None)
        return answers.send_page(request, paging.PLACEMENTS, rows, [placement_to_json(one, command) for one in both])
