"""Server time of every view of the page and of the API's lists at 1,000 and 10,000 groups: once documents are made, and
to make them.

While the documents of a new look are made, the look before is shown; where there is none and groups are very many, a
page that says so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from statistics import median
from time import process_time

import httpx

from agent.web.agent_view import AgentView
from agent.web.page.look_documents import LookDocuments
from agent.web.page.routes import PREPARATIONS, page_routes
from tests.web.api.servers import app_of
from tests.web.page.worlds import clock, many, viewed

GOALS_MS = {1_000: 300, 10_000: 500}
API_GOAL_MS = 250
AGAIN = 5
PATHS = (
    "/",
    "/racks",
    "/racks?rack=eu-1a",
    "/groups",
    "/groups?q=group-0009&sort=-lag_records&page=2",
    "/groups/group?id=group-000007",
    "/warmups",
    "/findings",
    "/findings?severity=info&sort=subject",
    "/proposals",
    "/moves",
    "/timeline",
    "/whatif",
    "/reports",
    "/api/v1/groups?limit=100",
    "/api/v1/groups?q=group-00&sort=-usd_per_day",
    "/api/v1/groups?limit=1000&sort=group",
    "/api/v1/topics?limit=100",
    "/api/v1/cluster",
    "/api/v1/racks",
    "/api/v1/findings",
    "/api/v1/doctor",
    "/api/v1/brokers",
    "/api/v1/look",
)


async def timed(view: AgentView) -> dict[str, list[float]]:
    """Path -> CPU seconds of its answers, once the documents of the look are made."""
    transport = httpx.ASGITransport(app=app_of(view, clock, page_routes(view, clock)))
    found: dict[str, list[float]] = {}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in ("/", "/api/v1/look"):  # with what is made after them, and what is imported with the first answer
            await client.get(path)
        for path in PATHS:
            for _ in range(AGAIN):
                began = process_time()
                answer = await client.get(path)
                found.setdefault(path, []).append(process_time() - began)
                answer.raise_for_status()
    return found


def prepared_s(view: AgentView) -> float:
    """CPU seconds to make the documents of a look."""
    look = view.look()
    assert look is not None
    began = process_time()
    documents = LookDocuments(look)
    for preparation in PREPARATIONS:
        preparation(documents)
    return process_time() - began


def row(case: str, size: int, cpu_s: float, goal_ms: int | None) -> str:
    """One line as `make bench` reads it."""
    line: dict[str, object] = {"bench": "page", "case": case, "size": size, "cpu_s": round(cpu_s, 4)}
    if goal_ms is not None:
        line |= {"goal": f"<= {goal_ms} ms", "ok": cpu_s <= goal_ms / 1_000}
    return json.dumps(line)


def main(sizes: Sequence[int] = tuple(GOALS_MS)) -> None:
    """Print one line per view and size."""
    asyncio.run(timed(viewed(many(10))))  # imports what answers need
    for size in sizes:
        view = viewed(many(size))
        print(row("documents of a new look, beside the page", size, prepared_s(view), None), flush=True)
        for path, times in asyncio.run(timed(view)).items():
            # The first answer of a list of the API makes its documents; those of later looks are made beside.
            first_goal_ms, goal_ms = (None, API_GOAL_MS) if path.startswith("/api") else (GOALS_MS[size],) * 2
            print(row(f"{path}, first", size, times[0], first_goal_ms), flush=True)
            print(row(path, size, median(times[1:]), goal_ms), flush=True)


if __name__ == "__main__":
    main()
