"""Server time of every view of the page: of the first request after a look, and of those that follow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from statistics import median
from time import perf_counter

import httpx
from starlette.applications import Starlette

from agent.web.agent_view import AgentView
from agent.web.page.routes import page_routes
from tests.web.page.worlds import clock, many, viewed

SIZES = (1_000, 10_000)
AGAIN = 7
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
)


def timed(view: AgentView, path: str, times: int) -> list[float]:
    """Milliseconds of so many answers, the first one first."""

    async def asked() -> list[float]:
        transport = httpx.ASGITransport(app=Starlette(routes=page_routes(view, clock)))
        found = []
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for _ in range(times):
                began = perf_counter()
                answer = await client.get(path)
                found.append((perf_counter() - began) * 1_000)
                answer.raise_for_status()
        return found

    return asyncio.run(asked())


def main(sizes: Sequence[int] = SIZES) -> None:
    """Print one row per view and size."""
    print("| groups | view | first after a look, ms | alone after a look, ms | again, ms (median) |")
    print("|---|---|---|---|---|")
    for size in sizes:
        shared = viewed(many(size))
        for path in PATHS:
            times = timed(shared, path, AGAIN)
            alone = timed(viewed(many(size)), path, 1)[0]
            print(f"| {size:,} | `{path}` | {times[0]:.0f} | {alone:.0f} | {median(times[1:]):.0f} |")


if __name__ == "__main__":
    main()
