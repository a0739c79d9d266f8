"""What was seen of that which a check is about: all of it, nothing, a part, or something that only time can judge.

A check may say "ok" only of what was seen. So each one names here what it looks at (members, partitions, copies,
configs), says so when there is none of it, and names what was hidden: by a right, by a rebalance, by a rack that is not
known, by an answer that did not come. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from agent.detect.assessment import Detection
from agent.detect.awareness import RACK_AWARE, RACK_BLIND
from agent.detect.members import BY_THE_BROKER, is_too_old
from agent.detect.replicas import LEADERS_PER_RACK
from agent.detect.words import count, listed
from agent.limits import Limits
from agent.memory.throttles import idle_throttles
from agent.memory.values import Memory
from agent.model.racks import SELECTOR_CONFIG
from agent.model.snapshot import (
    ConsumerGroup,
    GroupKind,
    Member,
    RackState,
    Snapshot,
    StreamsGroup,
    StreamsProcess,
    TopicState,
)
from agent.observation import Gap, GapCause, Part
from assignors.problem import TaskId

_Group = ConsumerGroup | StreamsGroup


class Sight(NamedTuple):
    """What was seen of what a check is about."""

    fine: str
    """What holds where all of it was seen and nothing is wrong with it."""
    unseen: tuple[str, ...] = ()
    """What was not seen of it, one clause each."""
    nothing: str = ""
    """Why there is nothing to check; empty where there is something."""
    once: str = ""
    """What stands now, where only time can tell whether it is wrong; empty where nothing does."""
    who: tuple[str, ...] = ()
    """What ``unseen`` or ``once`` is about."""


class World(NamedTuple):
    """All that is looked at."""

    snapshot: Snapshot
    detection: Detection
    limits: Limits
    memory: Memory

    @property
    def groups(self) -> list[_Group]:
        """Groups with members that the settings do not leave out; also those that hide their members now."""
        return [
            group
            for group in self.snapshot.groups.values()
            if isinstance(group, ConsumerGroup | StreamsGroup)
            and (group.members or group.hidden)
            and not self.limits.excludes_group(group.id)
        ]

    @property
    def topics(self) -> list[TopicState]:
        """Topics that the settings do not leave out."""
        return [topic for topic in self.snapshot.topics.values() if not self.limits.excludes_topic(topic.name)]


SightOf = Callable[[World], Sight]


def gaps_of(snapshot: Snapshot, parts: Iterable[Part]) -> list[Gap]:
    """Gaps in these parts; what vanished between two calls is none. What rights may hide of groups counts as groups."""
    wanted = frozenset(parts)
    return [
        gap
        for gap in snapshot.gaps
        if gap.cause is not GapCause.VANISHED
        and (
            gap.part in wanted
            or (Part.GROUPS in wanted and gap.part is Part.RIGHTS and gap.subject == Part.GROUPS.value)
        )
    ]


# --- brokers and their racks ------------------------------------------------------------------------------------


def broker_racks(world: World) -> Sight:
    """Whether brokers tell their racks."""
    alive = [broker for broker in world.snapshot.brokers if broker.alive]
    if not alive:
        return Sight("", ("no broker answered",))
    return Sight(f"{_all(len(alive), 'broker')} {'tells' if len(alive) == 1 else 'tell'} a rack")


def selector(world: World) -> Sight:
    """Whether reads go to the nearest replica."""
    racks = _racks_matter(world.snapshot)
    alive = [broker for broker in world.snapshot.brokers if broker.alive]
    if racks.unseen or racks.nothing:
        return racks
    if world.snapshot.selector_is_rack_aware is None:
        configs = world.snapshot.broker_configs
        silent = [str(broker.id) for broker in alive if broker.id not in configs]
        own = {configs[broker.id].get(SELECTOR_CONFIG) for broker in alive if broker.id in configs}
        told = f"the configs of {_brokers(silent)} did not come" if silent else ""
        told = told or f"nothing is known of {SELECTOR_CONFIG}={listed(sorted(filter(None, own)))}"
        return Sight("", (told,), who=tuple(f"broker {name}" for name in silent))
    return Sight(f"{_all(len(alive), 'broker')} {'has' if len(alive) == 1 else 'have'} a rack-aware {SELECTOR_CONFIG}")


def known_racks(world: World) -> Sight:
    """Whether the racks of brokers and members are known, from wherever."""
    if not any(broker.alive for broker in world.snapshot.brokers):
        return Sight("", ("no broker answered",))
    brokers = [f"broker {b.id}" for b in world.snapshot.brokers if b.alive and b.rack.state is not RackState.KNOWN]
    groups = [g.id for g in world.groups if any(m.rack.state is not RackState.KNOWN for m in g.members)]
    told = [f"the racks of {_brokers([name.partition(' ')[2] for name in brokers])} are not known"] if brokers else []
    told += [f"the racks of some members of {_groups(groups)} are not known"] if groups else []
    unseen = (*told, *_hidden_groups(world))
    nothing = "" if world.groups or unseen else "no member was seen"
    return Sight("", unseen, nothing, who=(*brokers, *groups))


def spellings(world: World) -> Sight:
    """Whether brokers and members write each rack one way."""
    sight = known_racks(world)
    broken = [g.id for g in world.groups if not g.hidden and any(not _readable(g, m) for m in g.members)]
    unknown = [str(b.id) for b in world.snapshot.brokers if b.alive and b.rack.state is not RackState.KNOWN]
    told = [f"the racks of {_brokers(unknown)} are not known"] if unknown else []
    told += [f"the subscriptions of some members of {_groups(broken)} cannot be read"] if broken else []
    away = sight.unseen if not any(broker.alive for broker in world.snapshot.brokers) else ()
    unseen = (*away, *told, *_hidden_groups(world))
    nothing = "" if world.groups or unseen else "no member was seen"
    return Sight(
        "brokers and members write each rack one way", unseen, nothing, who=(*_named("broker", unknown), *broken)
    )


def _racks_matter(snapshot: Snapshot) -> Sight:
    """Nothing can be nearer than something else where all brokers stand in one rack."""
    if not any(broker.alive for broker in snapshot.brokers):
        return Sight("", ("no broker answered",))
    racks = {b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN}
    if len(racks) > 1:
        return Sight("")
    unknown = [str(b.id) for b in snapshot.brokers if b.rack.state is not RackState.KNOWN]
    if unknown:
        return Sight("", (f"the racks of {_brokers(unknown)} are not known",), who=_named("broker", unknown))
    return Sight("", nothing=f"all brokers are in rack {listed(racks)}, so nothing can be nearer than something else")


def _blind_brokers(snapshot: Snapshot) -> Sight:
    """Replicas can be compared only where the rack of every broker that may hold one is known."""
    sight = _racks_matter(snapshot)
    unknown = [str(b.id) for b in snapshot.brokers if b.rack.state is not RackState.KNOWN]
    if sight.unseen or sight.nothing or not unknown:
        return sight
    return Sight("", (f"the racks of {_brokers(unknown)} are not known",), who=_named("broker", unknown))


# --- groups and their members -----------------------------------------------------------------------------------


def client_racks(world: World) -> Sight:
    """Whether members that could send their rack do."""
    return _of_members(
        world,
        lambda group, member: _readable(group, member) and not is_too_old(member),
        "all members that could send their rack do ({})",
        "no member that could send its rack was seen",
    )


def subscriptions(world: World) -> Sight:
    """Whether subscriptions have room for a rack."""
    return _of_members(
        world, _readable, "the subscriptions of all members have room for a rack ({})", "no member was seen"
    )


def group_protocols(world: World) -> Sight:
    """Whether assignors look at racks."""
    sight = _of_members(
        world,
        lambda _group, _member: True,
        "every group's assignor looks at racks, or has nothing to choose ({})",
        "no group with members was seen",
    )
    if sight.nothing:
        return sight
    blind = _blind_brokers(world.snapshot)
    absent = [str(broker.id) for broker in world.snapshot.brokers if not broker.alive]
    away = [f"{_brokers(absent)} {'is' if len(absent) == 1 else 'are'} absent"] if absent and not blind.unseen else []
    topics = world.snapshot.topics
    dark = [g.id for g in world.groups if any(name not in topics for name in world.detection.topics.get(g.id, ()))]
    custom = [
        group.id
        for group in world.groups
        if group.kind is GroupKind.CLASSIC_CONSUMER
        and not group.hidden
        and group.assignor not in RACK_AWARE | RACK_BLIND
    ]
    told = [f"topics of {_groups(dark)} are not shown"] if dark else []
    told += [f"nothing is known of the assignor of {_groups(custom)}"] if custom else []
    if world.snapshot.selector_is_rack_aware is None:  # by leaders alone, an assignor's choices may all cost the same
        told.append("it is not known whether reads go to the nearest replica")
    return sight._replace(
        unseen=(*sight.unseen, *blind.unseen, *away, *told), who=(*sight.who, *blind.who, *dark, *custom)
    )


def readable(world: World) -> Sight:
    """Whether members' bytes can be read."""
    groups = world.groups
    hidden = _hidden_groups(world)
    fine = f"the bytes of {_all(sum(len(group.members) for group in groups), 'member')} can be read"
    nothing = "" if groups or hidden else "no group with members was seen"
    return Sight(fine, hidden, nothing, who=_hiding(world))


def assignments(world: World) -> Sight:
    """Whether each partition has one reader, and exists."""
    groups = world.groups
    held = sum(len(member.assigned or ()) for group in groups for member in group.members)
    untold = [g.id for g in groups if not g.hidden and any(member.assigned is None for member in g.members)]
    moving = [g.id for g in groups if not g.hidden and g.id not in untold and g.state != "Stable"]
    topics = world.snapshot.topics
    dark = [g.id for g in groups if any(name not in topics for name in world.detection.topics.get(g.id, ()))]
    told = [f"assignments of {_groups(untold)} are not shown"] if untold else []
    told += [f"{_groups(moving)} {'is' if len(moving) == 1 else 'are'} not Stable"] if moving else []
    told += [f"topics of {_groups(dark)} are not shown"] if dark else []
    unseen = (*_hidden_groups(world), *told)
    return Sight(
        f"{_all(held, 'assigned partition')} {'exists' if held == 1 else 'exist'}, each with one reader",
        unseen,
        "" if held or unseen else "no assigned partition was seen",
        who=(*_hiding(world), *untold, *moving, *dark),
    )


def task_copies(world: World) -> Sight:
    """Whether copies of tasks keep apart."""
    streams = [group for group in world.groups if isinstance(group, StreamsGroup)]
    twice: set[tuple[str, TaskId]] = set()
    dark: list[str] = []
    for group in streams:
        copied = _copied(group.processes)
        twice |= {(group.id, task) for task in copied}
        broken = any(member.defects for member in group.members) or group.topology is None
        rackless = any(process.rack.state is not RackState.KNOWN for process in group.processes)
        if not group.hidden and (broken or (rackless and copied)):
            dark.append(group.id)
    hidden = _hidden_groups(world)
    unseen = (*hidden, *([f"racks or tasks of {_groups(dark)} are not known"] if dark else []))
    nothing = "" if twice or unseen else "no task with a second copy was seen"
    fine = f"no two copies of {_all(len(twice), 'task')} with standbys share a rack or tag while another is free"
    return Sight(fine, unseen, nothing, who=(*_hiding(world), *dark))


def _copied(processes: Iterable[StreamsProcess]) -> list[TaskId]:
    held = Counter(task for process in processes for task in (*process.active, *process.standby))
    return [task for task, times in held.items() if times > 1]


def _of_members(world: World, counts: Callable[[_Group, Member], bool], fine: str, nothing: str) -> Sight:
    """A check of members: which of them count, and whether any was seen."""
    racks = _racks_matter(world.snapshot)
    if racks.nothing:
        return racks
    groups = world.groups
    seen = sum(counts(group, member) for group in groups if not group.hidden for member in group.members)
    broken = [group.id for group in groups if any(not _readable(group, m) for m in group.members) and not group.hidden]
    told = [f"the subscriptions of some members of {_groups(broken)} cannot be read"] if broken else []
    unseen = (*racks.unseen, *_hidden_groups(world), *told)
    return Sight(
        fine.format(count(seen, "member")),
        unseen,
        "" if seen or unseen else nothing,
        who=(*racks.who, *_hiding(world), *broken),
    )


def _readable(group: _Group, member: Member) -> bool:
    """True for a member whose subscription was read: of KIP-848 and KIP-1071 members the broker tells everything."""
    return group.kind in BY_THE_BROKER or member.subscription_version is not None


def _hiding(world: World) -> tuple[str, ...]:
    return tuple([group.id for group in world.groups if group.hidden])


def _hidden_groups(world: World) -> tuple[str, ...]:
    hiding = _hiding(world)
    told = [f"{_groups(hiding)} {'shows' if len(hiding) == 1 else 'show'} no members: rebalancing"] if hiding else []
    lost = world.snapshot.rights.groups_hidden
    return (*told, *([f"{count(lost, 'group')} that were there before are not shown"] if lost else []))


# --- replicas and configs ---------------------------------------------------------------------------------------


def replica_spread(world: World) -> Sight:
    """Whether replicas spread over racks."""
    several = sum(len(state.replicas) > 1 for topic in world.topics for state in topic.partitions)
    fine = f"no replicas share a rack while another is free, in {_all(several, 'partition')} with more than one"
    return _of_replicas(world, fine, "" if several else "no partition with more than one replica was seen")


def leader_spread(world: World) -> Sight:
    """Whether preferred leaders spread over racks."""
    partitions = sum(len(topic.partitions) for topic in world.topics)
    racks = len({b.rack.name for b in world.snapshot.brokers if b.rack.state is RackState.KNOWN})
    few = partitions < LEADERS_PER_RACK * racks
    nothing = f"{count(partitions, 'partition')} were seen, too few to compare {count(racks, 'rack')}" if few else ""
    return _of_replicas(world, "no rack is preferred to lead much more than its share", nothing)


def _of_replicas(world: World, fine: str, nothing: str) -> Sight:
    sight = _blind_brokers(world.snapshot)
    if sight.nothing:
        return sight
    unseen = (*sight.unseen, *_hidden_topics(world.snapshot))
    return Sight(fine, unseen, "" if unseen else nothing, who=sight.who)


def _hidden_topics(snapshot: Snapshot) -> tuple[str, ...]:
    lost = snapshot.rights.topics_hidden
    return (f"{count(lost, 'topic')} that were there before are not shown",) if lost else ()


def throttles(world: World) -> Sight:
    """Whether throttles were left behind, which one look can never tell: they must outlast a grace."""
    snapshot, limits = world.snapshot, world.limits
    unasked = [topic.name for topic in world.topics if topic.min_isr is None]
    silent = [str(b.id) for b in snapshot.brokers if b.alive and b.id not in snapshot.broker_configs]
    told = [f"the configs of {count(len(unasked), 'topic')} ({listed(unasked)}) did not come"] if unasked else []
    told += [f"the configs of {_brokers(silent)} did not come"] if silent else []
    unseen = (*told, *_hidden_topics(snapshot))
    set_now = [
        subject
        for subject in idle_throttles(snapshot)
        if not (subject.startswith("topic/") and limits.excludes_topic(subject.removeprefix("topic/")))
    ]
    once = ""
    if set_now:
        known = [world.memory.throttles[subject] for subject in set_now if subject in world.memory.throttles]
        for_s = (snapshot.monotonic_ms - min(known)) // 1000 if known else 0
        seen = f"seen for {for_s} s" if for_s > 0 else "seen once"
        verb = "throttle is" if len(set_now) == 1 else "throttles are"
        once = (
            f"{len(set_now)} {verb} set and no reassignment runs ({listed(set_now)}), {seen}: "
            f"what is still set so after {limits.throttle_grace_ms // 1000} s was left behind"
        )
    return Sight(
        "no throttle is set without a reassignment that needs it",
        unseen,
        "" if (world.topics and snapshot.broker_configs) or unseen else "no topic was seen",
        once,
        who=tuple(set_now) or tuple(unasked),
    )


def rights(world: World) -> Sight:
    """Whether rackwise may see all it asks for."""
    told = world.snapshot.rights
    unseen = (
        () if None not in (told.cluster_describe, told.cluster_describe_configs) else ("the brokers tell no rights",)
    )
    return Sight("rackwise may see everything it asks for", unseen)


# --- words ------------------------------------------------------------------------------------------------------


def _all(number: int, noun: str) -> str:
    """``the 1 broker``, ``all 3 brokers``."""
    return f"the {noun}" if number == 1 else f"all {number} {noun}s"


def _brokers(names: Iterable[str]) -> str:
    of = list(names)
    return f"broker{'' if len(of) == 1 else 's'} {listed(of)}"


def _groups(names: Iterable[str]) -> str:
    of = list(names)
    return f"group{'' if len(of) == 1 else 's'} {listed(of)}"


def _named(kind: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple([f"{kind} {name}" for name in names])
