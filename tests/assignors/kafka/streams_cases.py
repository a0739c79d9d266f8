"""Streams applications as cases (``tests/golden``), made from a seed: for Java as the judge and for benches."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

RACKS = ("rack-a", "rack-b", "rack-c", "rack-d", "rack-e")
STRATEGIES = ("none", "min_traffic", "balance_subtopology")
COSTS = ((None, None), (10, 1), (1, 10), (1, 0), (0, 1), (3, 2))
LAGS = (-3, 0, 0, 1, 50, 100, 101, 5_000, 5_000, 1_000_000)


def an_application(seed: int, *, most_clients: int = 12, most_tasks: int = 40) -> dict[str, Any]:
    """A case of ``streams.ha``: up to five racks, tags, lags of all kinds, few warm-ups, sometimes odd rack facts."""
    rng = Random(seed)
    racks = RACKS[: rng.randint(1, 5)]
    tasks = some_tasks(rng, rng.randint(1, most_tasks))
    stateful = tasks if rng.random() < 0.5 else [task for task in tasks if rng.random() < 0.7]
    clients = [_a_client(rng, stateful) for _ in range(rng.randint(1, most_clients))]
    _give_owners(rng, stateful, clients)
    traffic, non_overlap = rng.choice(COSTS)
    tags = rng.choice(((), (), ("zone",), ("zone", "cluster")))
    return {
        "tasks": {"all": tasks, "stateful": stateful},
        "clients": clients,
        "configs": {
            "acceptable_recovery_lag": rng.choice((0, 100, 100, 10_000, 2**63 - 1)),
            "max_warmup_replicas": rng.choice((1, 1, 2, 5)),
            "num_standby_replicas": rng.choice((0, 0, 1, 1, 2, 3)),
            "probing_rebalance_interval_ms": 600_000,
            "rack_aware_assignment_tags": list(tags),
            "rack_aware_assignment_strategy": rng.choice(STRATEGIES),
            "rack_aware_assignment_traffic_cost": traffic,
            "rack_aware_assignment_non_overlap_cost": non_overlap,
        },
        "rack": _rack_facts(rng, racks, tasks, stateful, clients),
        "iteration": rng.choice(("listed", "java_hash", "sorted")),
    }


def an_optimization(
    seed: int, tasks: int, clients: int, *, strategy: str, racks: int = 3, subtopologies: int = 20, replicas: int = 2
) -> dict[str, Any]:
    """A case of ``streams.rack_optimize``: active tasks dealt round-robin, one source each, costs 10 and 1."""
    rng = Random(seed)
    names = [f"rack-{number:02}" for number in range(racks)]
    ids = sorted((number % subtopologies, number // subtopologies) for number in range(tasks))
    texts = [f"{subtopology}_{partition}" for subtopology, partition in ids]
    processes = [str(UUID(int=number + 1)) for number in range(clients)]
    topics: dict[str, list[list[str]]] = {f"in{subtopology}": [] for subtopology in range(subtopologies)}
    for subtopology, _ in ids:
        topics[f"in{subtopology}"].append(rng.sample(names, replicas))
    return {
        "tasks": {"all": texts, "stateful": texts},
        "clients": [
            {"id": process, "capacity": 1, "tags": {}, "lags": {}, "assigned_active": texts[number::clients]}
            for number, process in enumerate(processes)
        ],
        "configs": {
            "acceptable_recovery_lag": 0,
            "max_warmup_replicas": 2,
            "num_standby_replicas": 0,
            "probing_rebalance_interval_ms": 600_000,
            "rack_aware_assignment_tags": [],
            "rack_aware_assignment_strategy": strategy,
            "rack_aware_assignment_traffic_cost": None,
            "rack_aware_assignment_non_overlap_cost": None,
        },
        "rack": {
            "consumer_racks": {
                process: {"consumer": names[number % racks]} for number, process in enumerate(processes)
            },
            "cluster": topics,
            "described": {},
            "task_partitions": {f"{s}_{p}": [f"in{s}-{p}"] for s, p in ids},
            "changelog_partitions": {},
        },
        "iteration": "sorted",
        "mode": "active",
        "optimize_tasks": texts,
        "traffic_cost": 10,
        "non_overlap_cost": 1,
    }


def some_tasks(rng: Random, count: int) -> list[str]:
    """Tasks of a few subtopologies, in no order."""
    groups = rng.randint(1, 4)
    tasks = [f"{number % groups}_{number // groups}" for number in range(count)]
    rng.shuffle(tasks)
    return tasks


def _a_client(rng: Random, stateful: list[str]) -> dict[str, Any]:
    tags = {"zone": f"z{rng.randint(1, 3)}", "cluster": f"k{rng.randint(1, 2)}"}
    return {
        "id": str(UUID(int=rng.getrandbits(128))),
        "capacity": rng.choice((1, 1, 2, 3, 5)),
        "tags": {key: value for key, value in tags.items() if rng.random() < 0.95},
        "prev_active": [],
        "prev_standby": [],
        "lags": {task: rng.choice(LAGS) for task in stateful},
    }


def _give_owners(rng: Random, stateful: list[str], clients: list[dict[str, Any]]) -> None:
    """Most tasks run somewhere; few clients hold much more than their share, as after a scale-out."""
    few = clients[: rng.randint(1, len(clients))]
    for task in stateful:
        if rng.random() < 0.8:
            owner = rng.choice(few)
            owner["prev_active"].append(task)
            owner["lags"][task] = -2
            if rng.random() < 0.7:
                for client in clients:
                    if client is not owner:
                        client["lags"][task] = rng.choice((5_000, 1_000_000, 1_000_000))


def _rack_facts(
    rng: Random, racks: tuple[str, ...], tasks: list[str], stateful: list[str], clients: list[dict[str, Any]]
) -> dict[str, Any]:
    odd = rng.random()
    partitions: dict[str, list[int]] = {}
    for task in tasks:
        subtopology, partition = task.split("_")
        partitions.setdefault(subtopology, []).append(int(partition))
    sources = {group: [f"in{group}.{number}" for number in range(rng.randint(1, 3))] for group in partitions}
    stores = {group: [f"app-{group}.{number}-changelog" for number in range(rng.randint(1, 2))] for group in partitions}

    def topic(group: str) -> list[list[str | None]]:
        return [list(rng.sample(racks, min(len(racks), rng.choice((1, 1, 2))))) for _ in range(len(partitions[group]))]

    cluster = {name: topic(group) for group, names in sources.items() for name in names}
    described = {name: topic(group) for group, names in stores.items() for name in names}
    consumers: dict[str, dict[str, str | None]] = {
        client["id"]: {f"consumer-{number}": rack for number in range(client["capacity"])}
        for client in clients
        for rack in [rng.choice(racks)]
    }
    if odd < 0.05:
        rng.choice(list(cluster.values()))[0] = []
        described |= {name: replicas for name, replicas in cluster.items() if all(replicas)}
    elif odd < 0.1:
        rng.choice(list(cluster.values()))[0] = [None]
    elif odd < 0.15:
        consumers[clients[0]["id"]]["consumer-0"] = None
    elif odd < 0.2:
        described.pop(next(iter(described)))
    return {
        "consumer_racks": consumers,
        "cluster": cluster,
        "described": described,
        "task_partitions": {task: _named(sources, task) for task in tasks},
        "changelog_partitions": {task: _named(stores, task) for task in stateful},
    }


def _named(topics: dict[str, list[str]], task: str) -> list[str]:
    subtopology, partition = task.split("_")
    return [f"{topic}-{partition}" for topic in topics[subtopology]]
