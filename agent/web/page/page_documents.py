"""Documents that several views share, each made once per look, and the journal, read once per request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from agent.documents.doctor import doctor_checks, doctor_rows
from agent.documents.journal import JournalRecords
from agent.documents.views import findings, groups, plugin_gains, racks
from agent.documents.views_money import money
from agent.explain.doctor_coverage import DoctorContext
from agent.explain.doctor_fixes import ASSIGNOR_REASONS, setting_fixes
from agent.journal import plan_entries
from agent.journal.commands import LeaderAnswer, answer_to
from agent.journal.entries import JournalState
from agent.money.costs import CrossRackCosts
from agent.values.finding import Finding, SubjectId, ends_by
from agent.values.number_format import in_full
from agent.values.observation import Gap
from agent.values.plan import Plan, Unplanned, unplanned_subject
from agent.values.proposal import ProposalReason, Verdict
from agent.values.reassignment import ReassignmentPlan
from agent.values.typed_json import UnreadableError
from agent.web.money_metrics import look_costs
from agent.web.page.page_request import PageRequest

if TYPE_CHECKING:
    from agent.documents.cluster import CheckDocument, FindingDocument, RackDocument
    from agent.documents.groups import GroupDocument, MoneyDocument
    from agent.simulate.evaluation import StageEvaluation
    from agent.web.page.look_documents import DocumentMaker


def shared_costs(of: DocumentMaker) -> CrossRackCosts:
    """All cross-rack traffic of the look."""
    return of.made("costs", lambda look: look_costs(look.snapshot))


def shared_money(of: DocumentMaker) -> MoneyDocument:
    """What crosses racks, with its price."""
    costs = shared_costs(of)
    return of.made("money", lambda look: money(costs, look))


def shared_groups(of: DocumentMaker) -> list[GroupDocument]:
    """Every group, the costliest first."""
    costs, gains = shared_costs(of), shared_gains(of)
    return of.made("groups", lambda look: groups(costs, look, gains=gains))


def shared_gains(of: DocumentMaker) -> Mapping[str, str]:
    """What the plug-in for brokers would bring, by group."""
    return of.made("plug-in", plugin_gains)


def shared_racks(of: DocumentMaker) -> list[RackDocument]:
    """Every rack, with what its loss costs."""
    costs = shared_costs(of)
    return of.made("racks", lambda look: racks(look, costs))


def shared_findings(of: DocumentMaker) -> list[FindingDocument]:
    """Every finding, the gravest first."""
    return of.made("findings", findings)


def shared_checks(of: DocumentMaker) -> list[CheckDocument]:
    """Every check of doctor, with what its fault costs."""
    costs, gains = shared_costs(of), shared_gains(of)
    return of.made("checks", lambda look: doctor_rows(doctor_checks(look, gains), look, costs))


class FindingRemedy(NamedTuple):
    """What mends a finding."""

    lines: tuple[str, ...]
    """Settings or commands; those of others that share the cause are among them."""
    proposals: tuple[tuple[str, str], ...]
    """(id, kind) of the proposals that answer it."""
    why_not: str = ""
    """Why nothing is planned for it; empty where something is, or where that is not known."""
    ends: str = ""
    """What ends such a finding."""
    waits: str = ""
    """Until when nothing is done about it; empty where it is not held."""

    @property
    def words(self) -> str:
        """All of it on one line."""
        parts = (*filter(None, (self.waits,)), *(f"{kind} {id_}" for id_, kind in self.proposals), *self.lines)
        return "; ".join(parts) or self.why_not or self.ends


class FindingRemedies:
    """What mends the findings of one look, by doctor and by the proposals of the look; each worked out when asked for.

    One of very many findings costs no more than one of few: what answers which finding is listed once.
    """

    def __init__(self, look: StageEvaluation) -> None:
        plan = look.plan or Plan()
        self._context = DoctorContext(look.snapshot, look.detection, look.limits, look.before)
        self._unplanned: dict[str | SubjectId, Unplanned] = {}
        for key, why in plan.unplanned:
            self._unplanned.setdefault(unplanned_subject(key), why)
        self._advice = plan.advice
        self._proposals: dict[str, list[tuple[str, str]]] = {}
        for proposal in look.proposals:
            for finding_id in proposal.findings:
                self._proposals.setdefault(finding_id, []).append((proposal.id, proposal.kind.value))
        self._by_finding: dict[str, set[int]] = {}
        self._by_subject: dict[tuple[str, str], set[int]] = {}
        for at, advice in enumerate(plan.advice):
            for finding_id in advice.findings:
                self._by_finding.setdefault(finding_id, set()).add(at)
            self._by_subject.setdefault((advice.subject_kind, advice.subject), set()).add(at)
        self._of_cluster = self._by_subject.get(("cluster", look.snapshot.cluster_id), set())

    def of(self, finding: Finding) -> FindingRemedy:
        """What mends this one."""
        answering = set(self._by_finding.get(finding.id, ()))
        if finding.reason in ASSIGNOR_REASONS:
            # A setting that another finding has advised may be a cause of an assignment without racks as well.
            shared = self._by_subject.get((finding.subject.kind, finding.subject.name), set()) | self._of_cluster
            answering |= {at for at in shared if self._advice[at].findings}
        advice = [self._advice[at] for at in sorted(answering)]
        fixes = setting_fixes([finding], tuple(ProposalReason), advice, self._context)
        lines = dict.fromkeys(line for fix in fixes for line in fix.lines)
        why = self._unplanned.get(finding.id) or self._unplanned.get(finding.subject)
        why_not = "" if why in {None, Unplanned.NO_LEVER} else why.value
        return FindingRemedy(
            tuple(lines), tuple(self._proposals.get(finding.id, ())), why_not, ends_by(finding.reason), _waits(finding)
        )


def _waits(finding: Finding) -> str:
    """Until when nothing is done about a finding that is held."""
    if not finding.held:
        return ""
    broker = finding.subject.kind == "broker"
    whose = (
        "its rack has been stable, or it has been absent,"
        if broker
        else ("the racks of the brokers have been stable, or these absent,")
    )
    return f"waits until {whose} for long enough"


def gap_sentences(gaps: Sequence[Gap]) -> list[str]:
    """One sentence for each thing and cause, with all parts that are missing of it, and why."""
    alike: dict[tuple[str, str, str], list[Gap]] = {}
    for gap in gaps:
        # Without a subject the whole part is missing: only the same words tell that it is for the same reason.
        alike.setdefault((gap.subject, gap.cause.value, "" if gap.subject else gap.detail), []).append(gap)
    return [_gap_sentence(same) for same in alike.values()]


def _gap_sentence(same: Sequence[Gap]) -> str:
    gap = same[0]
    parts = in_full(dict.fromkeys(one.part.value for one in same))
    detail = f" ({gap.detail})" if gap.detail else ""
    return f"{parts[:1].upper()}{parts[1:]}{' of ' + gap.subject if gap.subject else ''}: {gap.cause.value}{detail}"


class ActingRecords:
    """Plans that a newer rackwise wrote make the whole journal unreadable."""

    def __init__(self, asked: PageRequest) -> None:
        self._asked = asked

    @cached_property
    def records(self) -> JournalRecords:
        """The journal as the page shows it."""
        found = self._asked.agent.journal()
        try:
            plan_entries.plans(found.view)
        except UnreadableError as error:
            return JournalRecords({}, "not readable", known=False, why=str(error))
        return found

    @property
    def view(self) -> JournalState:
        """Its entries; none where it cannot be read."""
        return self.records.view

    @cached_property
    def plans(self) -> tuple[ReassignmentPlan, ...]:
        """Every plan of it."""
        return plan_entries.plans(self.view)

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """What the guard said at the last planning."""
        return self._asked.agent.verdicts(self._asked.finished)

    @property
    def answer(self) -> LeaderAnswer | None:
        """The answer to the command that led to this page, which the address names; None where it names none."""
        found = answer_to(self.view, self._asked.query.get("told", "")) if self._asked.query.get("told") else None
        return None if found is None else found.answer

    @property
    def unreadable(self) -> str:
        """Why the journal is unknown, as a sentence; empty where it was read, or where there is none."""
        if self.records.known:
            return ""
        why = f": {self.records.why}" if self.records.why else ""
        return f"The journal cannot be read, so approvals, plans and throttles of rackwise are unknown{why}"

    @property
    def missing(self) -> str:
        """Why there is certainly no journal, so that nothing was approved, moved or throttled; empty where one is."""
        return f"{self.records.why}." if self.records.known and self.records.why else ""
