"""What the views of proposals and moves read of a running agent beside its look: verdicts, journal and progress."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Protocol, cast

from agent.documents.journal import JournalRecords, plans_in
from agent.values.journal import JournalState
from agent.values.reassignment import ReassignmentPlan
from agent.values.typed_json import UnreadableError
from agent.values.verdict import Verdict
from agent.web.page.page_request import PageRequest, PageSource


class ActingSource(PageSource, Protocol):
    """A running agent with its journal; `agent.web.agent_view.AgentView` is one."""

    def verdicts(self) -> Mapping[str, Verdict]:
        """Id of a proposal -> what the guard said of it at the last planning."""

    def journal(self) -> JournalRecords:
        """The journal, or why it cannot be read."""


class ActingRecords:
    """The journal of one request, read once. Plans that a newer rackwise wrote make the whole journal unreadable."""

    def __init__(self, asked: PageRequest) -> None:
        self._source = cast("ActingSource", asked.source)

    @cached_property
    def records(self) -> JournalRecords:
        """The journal as the page shows it."""
        found = self._source.journal()
        try:
            plans_in(found.view)
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
        return plans_in(self.view)

    @cached_property
    def verdicts(self) -> Mapping[str, Verdict]:
        """What the guard said at the last planning."""
        return self._source.verdicts()


def unreadable_words(records: JournalRecords) -> str:
    """Why the journal is not shown; empty where it is."""
    if not records.known:
        return (
            f"The journal cannot be read, so approvals, plans and throttles of rackwise are unknown: {records.why}"
            if records.why
            else "The journal cannot be read, so approvals, plans and throttles of rackwise are unknown."
        )
    return f"There is no journal: {records.why}." if records.why else ""
