"""What the principal may do, and what its rights keep it from seeing.

Invariant: a list that is empty, or may be cut short, because a right is missing is never without a gap that says so.
"""

from __future__ import annotations

from agent.values.observation import Gap, GapCause, Part, Rights

_ALTER = 7
_DESCRIBE = 8
_DESCRIBE_CONFIGS = 10


def rights_of(operations: frozenset[int] | None, *, topics_hidden: int | None, groups_hidden: int | None) -> Rights:
    """Rights on the cluster as the broker told them; None where it did not."""
    if operations is None:
        return Rights(topics_hidden=topics_hidden, groups_hidden=groups_hidden)
    return Rights(
        cluster_describe=_DESCRIBE in operations,
        cluster_describe_configs=_DESCRIBE_CONFIGS in operations,
        cluster_alter=_ALTER in operations,
        topics_hidden=topics_hidden,
        groups_hidden=groups_hidden,
    )


def rights_gaps(rights: Rights, *, topics_shown: int | None, groups_shown: int | None) -> tuple[Gap, ...]:
    """What may be hidden for want of rights; a count is None when that part did not answer (it has its own gap)."""
    gaps: list[Gap] = []
    if rights.cluster_describe is None:
        gaps.append(
            Gap(Part.RIGHTS, GapCause.UNSUPPORTED, "", "the broker does not report rackwise's authorized operations")
        )
    if groups_shown is not None and not rights.cluster_describe:
        gaps.append(_groups_gap(groups_shown))
    if topics_shown == 0 and not rights.cluster_describe:
        detail = "no topic is listed; without DESCRIBE on topics a broker lists none, and returns no error"
        gaps.append(Gap(Part.TOPICS, GapCause.NOT_ALLOWED, "", detail))
    return tuple(gaps)


def _groups_gap(shown: int) -> Gap:
    if shown == 0:
        detail = (
            "no group is listed; without DESCRIBE on the cluster or on groups a broker lists none, and returns no error"
        )
        return Gap(Part.GROUPS, GapCause.NOT_ALLOWED, "", detail)
    detail = "only groups with DESCRIBE are listed; grant DESCRIBE on the cluster to see all"
    return Gap(Part.RIGHTS, GapCause.NOT_ALLOWED, "groups", detail)
