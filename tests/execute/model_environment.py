"""What brokers and other people may do next in a system of the model checker."""

from __future__ import annotations

from collections.abc import Iterator

from agent.execute.reassign.messages import AppendJournal, RequestFate
from agent.values.kafka import LEADER_RATE
from agent.values.throttles import ThrottleResource
from tests.execute.abstract_cluster import Cluster, Part, back_up, begun, cancelled, caught_up, lost
from tests.execute.model_system import Scenario, System


def broker_steps(scenario: Scenario, system: System) -> Iterator[tuple[str, System]]:
    cluster, left = system.cluster, system.left
    for index, part in enumerate(cluster.parts):
        after = caught_up(part, cluster.up)
        if after != part:
            yield f"t-{index} catches up", system._replace(cluster=with_part(cluster, index, after))
    if left.brokers:
        for broker in sorted(cluster.up):
            yield (
                f"broker {broker} is killed",
                system._replace(cluster=lost(cluster, broker), left=left._replace(brokers=left.brokers - 1)),
            )
    for broker in down(scenario, cluster):
        yield f"broker {broker} is back", system._replace(cluster=back_up(cluster, broker))
    if left.min_isr:
        spent = left._replace(min_isr=left.min_isr - 1)
        for more in sorted({2, 3} - {cluster.min_isr}):
            yield f"min ISR is {more}", system._replace(cluster=cluster._replace(min_isr=more), left=spent)
    if cluster.min_isr != 1:
        yield "min ISR is lowered", system._replace(cluster=cluster._replace(min_isr=1))


def steps_of_others(scenario: Scenario, system: System) -> Iterator[tuple[str, System]]:
    """Other people, but never in the instant between the last look before a request and its arrival."""
    writing = any(isinstance(agent.state.waiting, AppendJournal) for agent in system.agents)
    if system.wire or (scenario.others_wait and writing):
        return
    cluster, left = system.cluster, system.left
    if left.foreign:
        for index, part in enumerate(cluster.parts):
            if part.moving and not part.foreign:
                undone, kind, _ = cancelled(part, cluster.up)
                spent = left._replace(foreign=left.foreign - 1)
                if kind is RequestFate.OK:
                    yield (
                        f"someone else cancels the move of t-{index}",
                        system._replace(cluster=with_part(cluster, index, undone), left=spent),
                    )
            target = part.target[1:] + tuple(sorted(scenario.cluster.up - set(part.replicas)))[:1]
            if len(target) == len(part.target):
                after = begun(part, target, foreign=True, up=cluster.up)
                yield (
                    f"someone else moves t-{index}",
                    system._replace(
                        cluster=with_part(cluster, index, after), left=left._replace(foreign=left.foreign - 1)
                    ),
                )
    if left.deletions and cluster.parts:
        gone = left._replace(deletions=left.deletions - 1)
        settings = tuple(it for it in cluster.settings if it[0].kind != "topic")
        yield "t is deleted", system._replace(cluster=cluster._replace(parts=(), settings=settings), left=gone)
        anew = tuple(it._replace(topic_id="other") for it in scenario.cluster.parts)
        yield "t is made anew", system._replace(cluster=cluster._replace(parts=anew, settings=settings), left=gone)
    if left.throttles:
        for resource, key, value in ((ThrottleResource(broker=1), LEADER_RATE, "7"),):
            values = {(it[0], it[1]): it[2] for it in cluster.settings} | {(resource, key): value}
            yield (
                "someone else sets a rate",
                system._replace(
                    cluster=cluster._replace(settings=tuple(sorted((*it, value) for it, value in values.items()))),
                    left=left._replace(throttles=left.throttles - 1),
                ),
            )


def down(scenario: Scenario, cluster: Cluster) -> list[int]:
    return sorted(scenario.cluster.up - cluster.up)


def with_part(cluster: Cluster, index: int, part: Part) -> Cluster:
    return cluster._replace(parts=(*cluster.parts[:index], part, *cluster.parts[index + 1 :]))
