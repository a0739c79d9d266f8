"""The views of what is proposed, done, asked and reported: proposals, moves, time line, what if, reports."""

from __future__ import annotations

from agent.web.page import command_forms, moves, proposal, proposals, reports, timeline, whatif
from agent.web.page.page_request import PageView

OPERATING_VIEWS: tuple[PageView, ...] = (
    *proposals.VIEWS,
    *proposal.VIEWS,
    *moves.VIEWS,
    *timeline.VIEWS,
    *whatif.VIEWS,
    *reports.VIEWS,
    *command_forms.VIEWS,
)
