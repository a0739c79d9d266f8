"""What a principal with certain rights is able to do, each ability asked of real brokers by the parts that need it.

An ability that is there answers None; one that is lost answers with the sentence that tells so.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from agent.act.leadership import JournalLeadership
from agent.act.lease import LeadershipPlan, committed_watermark
from agent.observe.context import ObserverClients, ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.throttles import OpType, ThrottleChange, ThrottleResource
from agent.wire.admin_client import JoinRequest, WireAdminClient
from agent.wire.changes import ChangeResult
from agent.wire.failure import CallFailed
from assignors.problem import TopicPartition
from config.kafka_client import KafkaClientConfig
from testbed.cluster import EmbeddedCluster

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_MS = 10_000
_LEADS_WITHIN_S = 6.0
"""So long after a refusal an agent may still come to lead; a broker tells a refused fetch before it is chosen."""
TOPIC, GROUP = "orders", "billing"
ZERO = TopicPartition(TOPIC, 0)
_KINDS = {
    "--cluster": ResourceType.BROKER,
    "--topic": ResourceType.TOPIC,
    "--group": ResourceType.GROUP,
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
}


class Right(NamedTuple):
    """One operation on one resource, as the documentation lists it."""

    kind: str
    name: str
    prefixed: bool
    operation: str

    def __str__(self) -> str:
        return f"{self.kind.strip('-')} {self.name}{' (prefixed)' if self.prefixed else ''}: {self.operation}"

    def under(self, prefix: str) -> Right:
        """The same right where names begin with another prefix than ``rackwise``."""
        own = self.name.startswith(("rackwise.", "rackwise-"))
        return self._replace(name=prefix + self.name.removeprefix("rackwise")) if own else self

    def binding(self, user: str) -> AclBinding:
        return AclBinding(*self._parts(user))

    def filter(self, user: str) -> AclBindingFilter:
        return AclBindingFilter(*self._parts(user))

    def _parts(self, user: str) -> tuple[object, ...]:
        pattern = ResourcePatternType.PREFIXED if self.prefixed else ResourcePatternType.LITERAL
        word = re.sub(r"(?<!^)(?=[A-Z])", "_", self.operation).upper()
        operation, allow = AclOperation[word], AclPermissionType.ALLOW
        return _KINDS[self.kind], self.name, pattern, f"User:{user}", "*", operation, allow


def documented(role: str) -> tuple[Right, ...]:
    """The rights of that role as `docs/operations.md` grants them, command by command."""
    text = (ROOT / "docs" / "operations.md").read_text()
    commands = text.partition(f"<!-- {role} -->")[2].split("```")[1].strip().splitlines()
    return tuple(right for command in commands for right in _rights(shlex.split(command)))


def _rights(words: list[str]) -> list[Right]:
    kind = next(word for word in words if word in _KINDS)
    name = "kafka-cluster" if kind == "--cluster" else words[words.index(kind) + 1]
    operations = [words[at + 1] for at, word in enumerate(words) if word == "--operation"]
    return [Right(kind, name, "prefixed" in words, operation) for operation in operations]


class Grants:
    """Gives and takes rights of one user, as the cluster's administrator."""

    def __init__(self, cluster: EmbeddedCluster, user: str) -> None:
        self._admin = AdminClient(config_of(cluster, "admin").confluent())
        self._user = user

    def give(self, *rights: Right) -> None:
        if not rights:  # the client refuses to ask for nothing
            return
        for future in self._admin.create_acls([right.binding(self._user) for right in rights]).values():
            future.result(10)

    def take(self, *rights: Right) -> None:
        if not rights:
            return
        for future in self._admin.delete_acls([right.filter(self._user) for right in rights]).values():
            assert future.result(10), "there was such a right"


def config_of(cluster: EmbeddedCluster, user: str) -> KafkaClientConfig:
    return KafkaClientConfig.of({**cluster.client_properties(user), "bootstrap.servers": cluster.bootstrap_servers})


def abilities(
    config: KafkaClientConfig, eyes: KafkaClientConfig, *, prefix: str, lead_within_s: float
) -> dict[str, str | None]:
    """Ability -> None, or how its loss is reported; rackwise's own names begin with that prefix.

    An agent looks with the rights of its observer (``eyes``), which are others than those that are asked here.
    """
    found: dict[str, str | None] = {}
    with WireAdminClient(config.kafka_python()) as admin_client:
        admin_client.describe_brokers(DEADLINE_MS)
        for name, asked in ASKED.items():
            try:
                found[name] = asked(admin_client)
            except CallFailed as failed:
                found[name] = str(failed.detail)
    return found | _leadership_problems(config, eyes, prefix, lead_within_s)


def _moves(admin_client: WireAdminClient) -> str | None:
    admin_client.list_reassignments(DEADLINE_MS)
    return None


def _topics(admin_client: WireAdminClient) -> str | None:
    answer = admin_client.describe_topics(DEADLINE_MS, names=[TOPIC])
    (topic,) = answer.topics
    return topic.error


def _sizes(admin_client: WireAdminClient) -> str | None:
    answer = admin_client.describe_log_dirs(DEADLINE_MS)
    if answer.gaps:
        return answer.gaps[0].detail
    return None if answer.replica_bytes else "no size is shown, and nothing says why"


def _reassign(admin_client: WireAdminClient) -> str | None:
    return _change_failure(admin_client.alter_placements({ZERO: (1,)}, DEADLINE_MS)[ZERO])


def _elect(admin_client: WireAdminClient) -> str | None:
    return _change_failure(admin_client.elect_preferred([ZERO], DEADLINE_MS)[ZERO])


def _throttles_read(admin_client: WireAdminClient) -> str | None:
    gaps = admin_client.describe_throttles([TOPIC], [1], DEADLINE_MS).gaps
    return "; ".join(gap.detail for gap in gaps) or None


def _broker_rate(admin_client: WireAdminClient) -> str | None:
    return _throttle(admin_client, (ThrottleResource(broker=1), "leader.replication.throttled.rate"), "1000000")


def _topic_list(admin_client: WireAdminClient) -> str | None:
    return _throttle(admin_client, (ThrottleResource(topic=TOPIC), "leader.replication.throttled.replicas"), "0:1")


def _throttle(admin_client: WireAdminClient, setting: tuple[ThrottleResource, str], value: str) -> str | None:
    """Set and taken away again."""
    first = admin_client.change_throttles([ThrottleChange(*setting, OpType.SET, value)], DEADLINE_MS)[setting[0]]
    if not first.done:
        return _change_failure(first)
    return _change_failure(
        admin_client.change_throttles([ThrottleChange(*setting, OpType.DELETE)], DEADLINE_MS)[setting[0]]
    )


def _group_description(admin_client: WireAdminClient) -> str | None:
    line = admin_client.group_line(GROUP, DEADLINE_MS)
    try:
        line.describe(DEADLINE_MS)
    finally:
        line.close()
    return None


def _group_asked(admin_client: WireAdminClient) -> str | None:
    """A member id is asked for and given back; nothing joins."""
    line = admin_client.group_line(GROUP, DEADLINE_MS)
    try:
        answer = line.join(JoinRequest("cooperative-sticky", b"", 6_000, 6_000, "rights"), "", DEADLINE_MS)
        if answer.error != "MEMBER_ID_REQUIRED":
            return answer.error
        return line.leave(answer.member_id, "rights", DEADLINE_MS)
    finally:
        line.close()


def _transactions(admin_client: WireAdminClient) -> str | None:
    """Brokers leave out what may not be seen, without a word: that is why nothing seen never means none."""
    rows, failures = admin_client.list_transactions(DEADLINE_MS)
    if failures:
        return next(iter(failures.values())).detail
    theirs = [row for row in rows if not row.transactional_id.startswith("rackwise")]
    return None if theirs else "no transactional id but our own is shown"


ASKED: Mapping[str, Callable[[WireAdminClient], str | None]] = {
    "see moves": _moves,
    "see topics": _topics,
    "see sizes": _sizes,
    "reassign": _reassign,
    "elect": _elect,
    "read throttles": _throttles_read,
    "throttle a broker": _broker_rate,
    "throttle a topic": _topic_list,
    "see the group": _group_description,
    "ask the group": _group_asked,
    "see transactions": _transactions,
}


def _leadership_problems(
    config: KafkaClientConfig, eyes: KafkaClientConfig, prefix: str, within_s: float
) -> dict[str, str | None]:
    """Make the topics where they are missing, be chosen, open the journal, read commands; else what the agent says."""
    plan = LeadershipPlan(
        config=config.confluent(),
        agent="one",
        prefix=prefix,
        journal_topic=f"{prefix}.journal",
        leader_topic=f"{prefix}.leader",
        commands_topic=f"{prefix}.commands",
    )
    leadership = JournalLeadership(plan)
    leadership.start()
    until = time.monotonic() + within_s
    try:
        with ObserverClients.open(eyes) as clients:
            recall = ObserverState()
            while time.monotonic() < until and not leadership.may_act():
                if _is_refused(leadership.problem()):  # it may lead all the same: a refused fetch ends no membership
                    until = min(until, time.monotonic() + _LEADS_WITHIN_S)
                leadership.observed(observe(clients, system_clock, ObserveScope(), recall))
                time.sleep(0.3)
        if not leadership.may_act():
            lost = leadership.problem() or "it does not lead, and nothing says why"
            return {"lead": lost, "obey": lost, "remember": lost}
        return {"lead": None, "obey": _obeys(leadership), "remember": _remembers(leadership, within_s / 2)}
    finally:
        leadership.close()


def _is_refused(problem: str | None) -> bool:
    return problem is not None and "authoriz" in problem.lower()


def _obeys(leadership: JournalLeadership) -> str | None:
    """Commands are read, over a few reads: what brokers refuse comes with one of them."""
    journal, inbox = leadership.journal(), leadership.inbox()
    if journal is None or inbox is None:
        return "it leads no longer"
    until = time.monotonic() + 3
    while time.monotonic() < until:
        inbox.read(journal.view())
        if (problem := inbox.problem()) is not None:
            return problem
    return None


def _remembers(leadership: JournalLeadership, within_s: float) -> str | None:
    """The group remembers how far the journal has come."""
    journal, until = leadership.journal(), time.monotonic() + within_s
    reached = getattr(journal, "reached", None)
    while time.monotonic() < until:
        if committed_watermark(leadership._lease_plan(), DEADLINE_MS) == reached:
            return None
        time.sleep(0.3)
    return "; ".join(leadership.notices()) or "it is not remembered, and nothing says why"


def _change_failure(answer: ChangeResult) -> str | None:
    return None if answer.done else f"{answer.fate.value}: {answer.error} {answer.detail}"
