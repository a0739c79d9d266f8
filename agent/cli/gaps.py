"""Parts of the cluster that were not seen, once for each cause: several parts that one broker owes are one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agent.detect.rights import effect_of
from agent.detect.words import listed
from agent.values.finding import FindingReason
from agent.values.observation import Gap, GapCause, Part
from agent.values.words import in_full

if TYPE_CHECKING:
    from agent.cli.documents.status import FindingDocument


def gap_lines(gaps: Iterable[Gap]) -> list[str]:
    """One line for each thing and cause, with all parts that are missing of it, and why."""
    alike: dict[tuple[str, str, str], list[Gap]] = {}
    for gap in gaps:
        # Without a subject the whole part is missing: only the same words tell that it is for the same reason.
        alike.setdefault((gap.subject, gap.cause.value, "" if gap.subject else gap.detail), []).append(gap)
    return [_line(same) for same in alike.values()]


def _line(same: Sequence[Gap]) -> str:
    gap = same[0]
    parts = in_full(dict.fromkeys(one.part.value for one in same))
    return f"not seen: {parts}{' of ' + gap.subject if gap.subject else ''}: {gap.cause} ({gap.detail})"


def untold(gaps: Iterable[Gap], findings: Iterable[FindingDocument]) -> list[Gap]:
    """The gaps that none of these findings names."""
    told = {
        (one["evidence"].get("part"), one["evidence"].get("cause")) for one in findings if "gaps" in one["evidence"]
    }
    return [gap for gap in gaps if (gap.part.value, _cause(gap)) not in told]


def _cause(gap: Gap) -> str | None:
    """As the evidence of its finding has it: that of a missing right names no cause."""
    return None if gap.cause is GapCause.NOT_ALLOWED else gap.cause.value


def once_each(findings: Iterable[FindingDocument]) -> list[FindingDocument]:
    """Findings for a table: parts that are missing of the same brokers for the same cause are one row."""
    rows: dict[object, list[FindingDocument]] = {}
    for number, finding in enumerate(findings):
        rows.setdefault(_alike(finding) or number, []).append(finding)
    return [_row(same) if len(same) > 1 else same[0] for same in rows.values()]


def _alike(finding: FindingDocument) -> tuple[object, ...] | None:
    """What findings of missing parts have in common; None where the finding is of another kind, or names too many."""
    evidence = finding["evidence"]
    names = evidence.get("first")
    if finding["finding"] != FindingReason.PART_MISSING.value or not isinstance(names, list) or not names:
        return None
    return (finding["severity"], evidence["cause"], tuple(names)) if evidence["gaps"] == len(names) else None


def _row(same: Sequence[FindingDocument]) -> FindingDocument:
    evidence = same[0]["evidence"]
    names, parts = evidence["first"], [Part(str(one["evidence"]["part"])) for one in same]
    of = listed(names) if isinstance(names, list) else ""
    sentence = (
        f"{in_full(parts)} of {of}: {evidence['cause']}, so "
        f"{'; '.join(dict.fromkeys(map(effect_of, parts)))} ({evidence['detail']})"
    )
    return {**same[0], "sentence": sentence}
