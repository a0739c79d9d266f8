"""The journal and the guard's verdicts as one request shows them: each read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from agent.documents.journal import JournalRecords
from agent.journal import plan_entries
from agent.journal.commands import LeaderAnswer, answer_to
from agent.values.journal import JournalState
from agent.values.reassignment import ReassignmentPlan
from agent.values.typed_json import UnreadableError
from agent.values.verdict import Verdict
from agent.web.page.page_request import PageRequest


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
        return {} if self._asked.finished is None else self._asked.finished.verdicts

    @property
    def told(self) -> LeaderAnswer | None:
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
