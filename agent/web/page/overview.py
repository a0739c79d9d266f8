"""The overview (how things are, what crosses racks, what to do first, what was not seen), and the list of findings.

A finding is shown with its evidence, since when it is there, and what mends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from agent.explain.doctor_fixes import GroupFaultCosts
from agent.money.traffic import bytes_between, usd_between
from agent.simulate.evaluation import StageEvaluation
from agent.values.cycle import cluster_size, gaps_of, hidden_groups
from agent.values.finding import Finding, FindingSeverity, SubjectId
from agent.values.number_format import counted, few, in_full, lasted, sized, usd, usd_per_gb
from agent.values.observation import ObservationPart
from agent.values.proposal import ProposalKind, saved_usd_per_day
from agent.web.page.environment import finding_link, proposal_link, rendered, subject_link, subject_words
from agent.web.page.look_documents import DocumentMaker
from agent.web.page.page_documents import (
    FindingRemedies,
    FindingRemedy,
    gap_sentences,
    shared_checks,
    shared_findings,
    shared_money,
)
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.proposals import known_savings
from agent.web.page.tables import TableCell, TableChoice, TableColumn, TableRow, TableSource, severity_cell

if TYPE_CHECKING:
    from agent.documents.cluster import CheckDocument
    from agent.documents.groups import CrossingDocument, MoneyDocument
    from agent.simulate.evaluation import StageEvaluation

_SEVERITIES = ("critical", "warning", "info")
_RANK = {name: rank for rank, name in enumerate(_SEVERITIES)}


def findings_view(asked: PageRequest) -> Response:
    """The view; with ``id`` the one finding."""
    rows = shared_findings(asked)
    wanted = asked.query.get("id")
    if wanted is not None:
        rows = [row for row in rows if row["id"] == wanted]
        if not rows:
            return asked.problem(
                404,
                "No such finding",
                "The last look has no finding with this id.",
                "It has ended, or its subject was not seen. The list of findings has what there is now.",
            )
    return asked.page(
        "findings.html",
        "Findings",
        tables=(_table(asked, rows, is_one=wanted is not None),),
        is_one=wanted is not None,
        gaps=bool(asked.look.snapshot.gaps),
    )


def _table(asked: PageRequest, rows: list[Any], *, is_one: bool) -> TableSource:
    look = asked.look
    by_id = asked.made("findings by id", lambda fresh: {one.id: one for one in fresh.detection.findings})
    kinds = sorted({row["subject"].partition("/")[0] for row in rows})

    remedies = asked.made("remedies", FindingRemedies)

    def remedy(row: TableRow) -> FindingRemedy:
        return remedies.of(by_id[row["id"]]) if row["id"] in by_id else FindingRemedy((), ())

    return TableSource(
        title="Findings",
        unit="finding",
        rows=rows,
        columns=(
            TableColumn("severity", "Severity", _severity, lambda row: _RANK[row["severity"]]),
            TableColumn(
                "subject",
                "About",
                lambda row: _subject(row, look),
                lambda row: row["subject"],
            ),
            TableColumn("finding", "Finding", lambda row: _sentence(row, is_open=is_one), lambda row: row["sentence"]),
            TableColumn(
                "since",
                "Since",
                lambda row: TableCell(_age(row, look), hint="time since the first look that saw it"),
                lambda row: row["since_ms"],
                hint="time since the first look that saw it",
            ),
            TableColumn(
                "mends",
                "What mends it",
                lambda row: TableCell(_remedy(remedy(row)), tone="wide"),
                lambda row: remedy(row).words,
                is_sorted=False,
            ),
        ),
        text=lambda row: f"{row['subject']} {row['finding']} {row['sentence']}",
        choices=(
            TableChoice("severity", "Severity", _SEVERITIES, lambda row: row["severity"]),
            TableChoice("kind", "About", kinds, lambda row: row["subject"].partition("/")[0], is_of_rows=True),
        ),
        empty="No part of the cluster is unseen, and nothing was found."
        if not look.snapshot.gaps
        else "Nothing was found in what was seen; parts of the cluster were not seen.",
        page_rows=25,
        stacks=True,
    )


def _severity(row: TableRow) -> TableCell:
    return severity_cell(row["severity"])


def _subject(row: TableRow, look: StageEvaluation) -> TableCell:
    kind, _, name = row["subject"].partition("/")
    is_there = kind != "group" or name in look.snapshot.groups
    link = subject_link(kind, name) if is_there else None
    return TableCell(subject_words(row["subject"]), link, tone="name", hint=row["subject"])


def _sentence(row: TableRow, *, is_open: bool) -> TableCell:
    evidence = [(name.replace("_", " "), _rounded(name, value)) for name, value in row["evidence"].items()]
    return TableCell(rendered("evidence.html", row=row, evidence=evidence, is_open=is_open), tone="wide")


def _rounded(name: str, value: object) -> object:
    """A rate as elsewhere on the page; the document has all its digits."""
    if not isinstance(value, float):
        return value
    return f"{sized(value)}/s" if "bytes/s" in name else f"{value:,.6g}"


def _age(row: TableRow, look: StageEvaluation) -> Markup:
    return rendered("since.html", ms=row["since_ms"], age=lasted(look.snapshot.taken_ms - row["since_ms"]))


def _remedy(remedy: FindingRemedy) -> Markup:
    links = [(f"{kind} {proposal_id}", proposal_link(proposal_id)) for proposal_id, kind in remedy.proposals]
    return rendered("remedy.html", remedy=remedy, links=links)


FIRST = 3
_NAMED = 3
_GAPS_SHOWN = 12
_GRAVITY = {"critical": 0, "warning": 1, "info": 2}


class FirstStep(NamedTuple):
    """One of the things to do first."""

    kind: str
    """A severity, ``fault``, or a kind of proposal."""
    gravity: int
    """0 critical, 1 warning, 2 info."""
    sentence: str
    href: Markup
    words: str
    """Text of the link."""
    usd_per_day: float | None
    """Dollars a day that it may save, or costs until it is mended; None where that is unknown."""
    money: str | None
    """The same in words; None where nothing says what it saves."""
    line: str | None = None
    """The one line to change."""


def overview(asked: PageRequest) -> Response:
    """The view."""
    look, money = asked.look, shared_money(asked)
    severities: Counter[str] = Counter(row["severity"] for row in shared_findings(asked))
    steps = shared_steps(asked)
    gaps = gap_sentences(look.snapshot.gaps)
    return asked.page(
        "overview.html",
        "Overview",
        lead=lead(look, money, severities),
        money=money,
        price=price_words(money, look),
        seen=seen_words(look),
        severities=severities,
        steps=steps,
        gaps=gaps[:_GAPS_SHOWN],
        gaps_more=max(0, len(gaps) - _GAPS_SHOWN),
        unseen=unseen(look, money),
        saves=known_savings(look.proposals),
        proposals=len(look.proposals),
        kinds=sorted(Counter(one.kind.value for one in look.proposals).items()),
        kind_words=_KIND_WORDS,
    )


_KIND_WORDS = {
    ProposalKind.REASSIGN.value: "reassignment",
    ProposalKind.LEADERS.value: "leader change",
    ProposalKind.TRIGGER.value: "rebalance",
    ProposalKind.ADVISE.value: "setting",
}


def seen_words(look: StageEvaluation) -> list[str]:
    """Brokers, racks, topics and groups, each at least where some may be hidden; no rack is known is not no rack."""
    snapshot, size = look.snapshot, cluster_size(look.snapshot)
    words = []
    for count, word, part in (
        (size.brokers, "broker", ObservationPart.BROKERS),
        (size.racks, "rack", ObservationPart.BROKERS),
        (size.topics, "topic", ObservationPart.TOPICS),
        (size.groups, "group", ObservationPart.GROUPS),
    ):
        hides = bool(gaps_of(snapshot, (part,))) or (
            word == "rack" and any(b.rack.name is None for b in snapshot.brokers)
        )
        words.append(f"{word}s unknown" if hides and not count else f"{'≥ ' if hides else ''}{counted(count, word)}")
    return words


def lead(look: StageEvaluation, money: MoneyDocument, severities: Counter[str]) -> str:
    """How things are, in one sentence."""
    crossing = crossing_words(money["total"], look)
    grave = [
        counted(severities[name], word, many)
        for name, word, many in (("critical", "critical finding", None), ("warning", "warning", None))
        if severities[name]
    ]
    found = (
        in_full(grave) if grave else "nothing critical was found" + (" in what was seen" if look.snapshot.gaps else "")
    )
    is_open = counted(len(look.proposals), "proposal is open", "proposals are open")
    return f"{crossing[:1].upper()}{crossing[1:]}; {found}; {is_open if look.proposals else 'nothing is proposed'}."


def crossing_words(total: CrossingDocument, look: StageEvaluation) -> str:
    """What crosses racks, with its price and its bounds; unknown where no rate is known."""
    if not look.snapshot.topics:
        return "No topic was seen, so there is nothing to measure"
    rate = bytes_between(total["bytes_per_s"], total["at_most_bytes_per_s"])
    if rate is None:
        return "What crosses racks is unknown"
    if total["bytes_per_s"] == 0 and total["at_most_bytes_per_s"] == 0:
        return "Nothing crosses racks"
    price = usd_between(total["usd_per_day"], total["at_most_usd_per_day"])
    words = f"{rate} cross racks{'' if price is None else f', which costs {price} a day'}"
    return words.replace("≥ ", "at least ").replace("≤ ", "at most ")


def price_words(money: MoneyDocument, look: StageEvaluation) -> str:
    """The price behind the dollars, or why there is none."""
    price, pairs = money["price"]["usd_per_gb"], money["price"]["pairs_with_own_price"]
    if not look.snapshot.bytes_per_s:
        return money["rates"]["why_not"] or "no rate is known"
    words = "no price is set" if price is None else f"at {usd_per_gb(price)} (price.usd_per_gb)"
    return words + (
        f", {counted(pairs, 'pair of racks has', 'pairs of racks have')} a price of its own" if pairs else ""
    )


def shared_steps(of: DocumentMaker) -> tuple[FirstStep, ...]:
    """What to do first."""
    checks = shared_checks(of)
    return of.made("first steps", lambda look: first_steps(look, checks))


def first_steps(look: StageEvaluation, checks: Sequence[CheckDocument]) -> tuple[FirstStep, ...]:
    """The three things to do first: by money, then by gravity; a critical finding is always among them."""
    answered = {finding for proposal in look.proposals for finding in proposal.findings}
    steps = [*_proposed(look, checks)]
    steps += [_found(one) for one in look.detection.findings if one.id not in answered and _is_grave(one)]
    steps.sort(key=rank)
    chosen = steps[:FIRST]
    critical = next((step for step in sorted(steps, key=lambda step: step.gravity) if step.gravity == 0), None)
    if critical is not None and critical not in chosen:
        chosen = [*chosen[: FIRST - 1], critical]
    return tuple(chosen)


def rank(step: FirstStep) -> tuple[float, int, str]:
    """Where it comes among the others; what costs money mends something else, and is as good as what saves none."""
    return -max(0.0, step.usd_per_day or 0.0), step.gravity, step.sentence


def _is_grave(finding: Finding) -> bool:
    return finding.severity is not FindingSeverity.INFO and not finding.held


def _found(finding: Finding) -> FirstStep:
    severity = finding.severity.value
    href = finding_link(finding.id)
    return FirstStep(severity, _GRAVITY[severity], finding.sentence, href, "Finding", None, None)


def _proposed(look: StageEvaluation, checks: Sequence[CheckDocument]) -> Iterable[FirstStep]:
    gravities = {finding.id: _GRAVITY[finding.severity.value] for finding in look.detection.findings}
    costs = _FaultCosts(look, checks)
    for proposal in look.proposals:
        gravity = min((gravities.get(one, 2) for one in proposal.findings), default=2)
        saves = saved_usd_per_day(proposal.predicted)
        money = None if saves is None else _saving_sentence(saves)
        if saves is None and proposal.line is not None:
            saves = costs.usd_per_day(proposal.subject, proposal.line)
            money = f"costs {usd(saves)} a day until it is mended" if saves else None
        words = f"Proposal {proposal.id}"
        link = proposal_link(proposal.id)
        yield FirstStep(proposal.kind.value, gravity, proposal.sentence, link, words, saves, money, proposal.line)


def _saving_sentence(saves: float) -> str:
    if not saves:
        return "saves no money"
    return f"saves {usd(saves)} a day" if saves > 0 else f"costs {usd(-saves)} a day more"


class _FaultCosts:
    """What faults cost a day, by the lines that mend them."""

    def __init__(self, look: StageEvaluation, checks: Sequence[CheckDocument]) -> None:
        first = checks[::-1]  # of two checks with the same lines the first counts
        self._checks = {
            ("\n".join(fix["lines"]), about): check["check"]
            for check in first
            for fix in check["fixes"]
            for about in fix["who"]
        }
        self._alone = {
            "\n".join(check["fixes"][0]["lines"]): check["usd_per_day"] for check in first if len(check["fixes"]) == 1
        }
        self._of_groups = GroupFaultCosts(look)

    def usd_per_day(self, subject: SubjectId, line: str) -> float | None:
        """Of a group what it has of the cost; None where it is unknown, or doctor has several causes for its figure."""
        if subject.kind != "group":
            return self._alone.get(line)
        check = self._checks.get((line, f"group {subject.name}"))
        return None if check is None else self._of_groups.of(check, subject.name).usd_per_day


def unseen(look: StageEvaluation, money: MoneyDocument) -> list[str]:
    """What the look does not show although every part answered: hidden groups, reads and rates."""
    sentences = []
    hidden = hidden_groups(look.snapshot, look.limits)
    if hidden:
        verb = "rebalances" if len(hidden) == 1 else "rebalance"
        group = "group" if len(hidden) == 1 else "groups"
        sentences.append(f"{group} {few(hidden, _NAMED)} {verb}, so the racks and assignments of members are hidden")
    readers = [name for name in money["groups_with_hidden_reads"] if name not in hidden]
    if readers:
        sentences.append(f"the reads of {few(readers, _NAMED)} are not visible in full")
    total = money["total"]
    if total["unknown"]:
        parts = counted(total["parts"], "read or copy", "reads and copies")
        cross = "crosses" if total["unknown"] == 1 else "cross"
        sentences.append(f"whether {total['unknown']:,} of {parts} {cross} racks")
    if look.snapshot.topics and not look.snapshot.bytes_per_s:
        sentences.append(f"no rate is known: {money['rates']['why_not']}")
    rights = look.snapshot.rights
    if rights.topics_hidden:
        sentences.append(f"{counted(rights.topics_hidden, 'topic')} seen before may be hidden by missing rights")
    if rights.groups_hidden:
        sentences.append(f"{counted(rights.groups_hidden, 'group')} seen before may be hidden by missing rights")
    sentences.append("what producers write across racks, which no broker reports")
    return [f"{one[:1].upper()}{one[1:]}." for one in sentences]


VIEWS = (PageView("/", overview, is_of_all=True), PageView("/findings", findings_view, fields={"id": ()}))
