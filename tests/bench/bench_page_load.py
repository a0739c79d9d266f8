"""What readers of the page cost a running agent: 50 open tabs in CPU, 20 that reload in the length of its cycles.

Before that, the first paint of the overview in a browser that has just been started.

A tab listens to events and fetches its page anew after each look, as the script of the page does. The agent is a
process of its own, in a dry run beside three brokers; its CPU is the kernel's count, so that other work on the machine
counts little. A client comes from an address of its own. Clients, brokers and agent share two cores, so a cycle is also
timed while the same clients get the same bytes from a server of files: their share of the machine is not the agent's.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from statistics import median, median_grouped

import httpx
import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.agent_process import Running, wait_for
from tests.browser.browser import chromium

TABS, RELOADERS = 50, 20
TOPICS, PARTITIONS = 40, 12
RELOAD_EVERY_S = 5.0
PHASE_S = 60.0
_PATHS = ("/", "/racks", "/findings", "/proposals", "/groups")
_ROUNDS = 3
_BROWSERS = 5
_MOST_PAINT_S = 1.0
_MOST_SHARE, _MOST_SLOWER = 0.05, 1.05


@asynccontextmanager
async def client(number: int, address: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.AsyncHTTPTransport(local_address=f"127.78.0.{number + 1}")
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{address}", timeout=30) as opened:
        yield opened


async def tab(number: int, address: str) -> None:
    """An open tab."""
    path = _PATHS[number % len(_PATHS)]
    async with client(number, address) as own:
        await refreshed(own, path)
        async with own.stream("GET", "/api/v1/events", timeout=None) as events:
            async for line in events.aiter_lines():
                if line == "event: look":
                    await refreshed(own, path)


async def refreshed(own: httpx.AsyncClient, path: str) -> None:
    """Fetch the page as its script does: after a moment of its own, and again when the server is busy."""
    for _ in range(20):
        await asyncio.sleep(random.uniform(0.15, 0.85))
        if (answer := await own.get(path)).status_code != httpx.codes.SERVICE_UNAVAILABLE:
            answer.raise_for_status()
            return
    raise TimeoutError(path)


async def reloader(number: int, address: str) -> None:
    """A person who reloads."""
    path = _PATHS[number % len(_PATHS)]
    async with client(number, address) as own:
        await asyncio.sleep(RELOAD_EVERY_S * number / RELOADERS)
        while True:
            await refreshed(own, path)
            await asyncio.sleep(RELOAD_EVERY_S)


async def beside(people: int, one: Callable[[int, str], Awaitable[None]], address: str, seconds: float) -> None:
    """So many people for that long. Raises what went wrong for one of them."""
    tasks = [asyncio.ensure_future(one(number, address)) for number in range(people)]
    if not tasks:
        await asyncio.sleep(seconds)
        return
    ended, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    for task in ended:
        task.result()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks)


def line(case: str, cpu_s: float, **more: object) -> None:
    print(
        json.dumps({"bench": "page_load", "case": case, "size": TOPICS * PARTITIONS, "cpu_s": cpu_s, **more}),
        flush=True,
    )


def cpu_share(agent: Running, address: str, people: int) -> float:
    """CPU seconds of the agent per second, with so many open tabs."""
    process = psutil.Process(agent.process.pid)
    before = process.cpu_times()
    asyncio.run(beside(people, tab, address, PHASE_S))
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / PHASE_S


def first_paint_s(address: str) -> float:
    """Seconds from the request to the first content on the screen, in a new browser with an empty cache."""
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"http://{address}/", wait_until="load")
        painted = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        return float(page.wait_for_function(painted).json_value()) / 1_000


@contextmanager
def server_of_files(agent_address: str, folder: Path) -> Iterator[str]:
    """The address of a process that answers each page with the bytes that the agent answered just now."""
    for path in _PATHS:
        (folder / (path[1:] or "index.html")).write_bytes(httpx.get(f"http://{agent_address}{path}").content)
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().partition("http://")[2].partition("/")[0]
    finally:
        process.terminate()
        process.wait(10)


def cycle_ms(agent: Running, address: str, people: int) -> list[float]:
    """The lengths of the cycles while so many people reload."""
    first = len(agent.events("cycle"))
    asyncio.run(beside(people, reloader, address, PHASE_S / 2))
    return [float(event["took_ms"]) for event in agent.events("cycle")[first + 1 :]]


def started(cluster: EmbeddedCluster, folder: Path, poll: str) -> tuple[Running, str]:
    """An agent that has looked three times, and its address."""
    config = folder / f"{poll}.yaml"
    config.write_text(f"mode: propose\nhttp.port: 0\nlog.format: json\npoll.interval: {poll}\nplan.interval: {poll}\n")
    agent = Running(cluster, config, folder / f"{poll}.log")
    wait_for(lambda: len(agent.events("cycle")) >= 3)
    return agent, agent.events("listening")[0]["address"]


def main() -> None:
    """Print one line per figure."""
    with EmbeddedCluster.start(ClusterSpec()) as cluster, tempfile.TemporaryDirectory() as name:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topics = [NewTopic(f"topic-{one}", PARTITIONS, 2) for one in range(TOPICS)]
        for made in admin.create_topics(topics).values():
            made.result(60)
        agent, address = started(cluster, Path(name), "10s")
        try:
            paints = [first_paint_s(address) for _ in range(_BROWSERS)]
            alone, watched = cpu_share(agent, address, 0), cpu_share(agent, address, TABS)
        finally:
            agent.end(signal.SIGTERM)
        line(
            f"first paint, s (median of {_BROWSERS} new browsers)", median(paints),
            goal="<= 1", worst=max(paints), ok=median(paints) <= _MOST_PAINT_S,
        )  # fmt: skip
        line("an agent alone, share of a core", round(alone, 4))
        more = round(watched - alone, 4)
        line(f"{TABS} open tabs, share of a core", more, goal="<= 0.05", ok=more <= _MOST_SHARE)
        agent, address = started(cluster, Path(name), "1s")
        quiet, beside_clients, busy = [], [], []
        try:
            with server_of_files(address, Path(name)) as files:
                for _ in range(_ROUNDS):  # by turns, so that other work on the machine meets all
                    quiet += cycle_ms(agent, address, 0)
                    beside_clients += cycle_ms(agent, files, RELOADERS)
                    busy += cycle_ms(agent, address, RELOADERS)
        finally:
            agent.end(signal.SIGTERM)
        # The log counts whole milliseconds, a fifteenth of a cycle: the grouped median reads between them.
        alone, elsewhere, watched = (median_grouped(some) for some in (quiet, beside_clients, busy))
        slower = watched / elsewhere
        reload = f"{RELOADERS} clients reload every {RELOAD_EVERY_S:.0f} s"
        line("a cycle, s (median)", round(alone / 1_000, 5))
        line(f"a cycle while {reload} from a server of files, s (median)", round(elsewhere / 1_000, 5))
        line(
            f"a cycle while {reload} from the agent, s (median)", round(watched / 1_000, 5),
            goal="<= 1.05 times the one before", slower=round(slower, 3), ok=slower <= _MOST_SLOWER,
        )  # fmt: skip


if __name__ == "__main__":
    main()
