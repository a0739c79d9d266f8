"""Addresses of what the views show, each written once: a group, a rack, a finding, a proposal."""

from __future__ import annotations

import re

from markupsafe import Markup

from agent.web.page.environment import address

_COPY_OF_TASK = re.compile(r"(task/.+/[^/]*\d+_\d+)/[^/]+", re.DOTALL)


def group_link(name: str) -> Markup:
    """The page of one group."""
    return address("/groups/group", id=name)


def rack_link(name: str) -> Markup:
    """The rack map with the loss of one rack."""
    return address("/racks", rack=name) + Markup("#loss")


def finding_link(finding_id: str) -> Markup:
    """One finding."""
    return address("/findings", id=finding_id)


def proposal_link(proposal_id: str) -> Markup:
    """One proposal."""
    return address("/proposals/proposal", id=proposal_id)


def subject_words(subject: str) -> str:
    """What a finding is about, without the id of the process that holds the copy of a task."""
    found = _COPY_OF_TASK.fullmatch(subject)
    return subject if found is None else found[1]


def subject_link(kind: str, name: str) -> Markup | None:
    """The page of what a finding or a proposal is about; None where it has none of its own."""
    if kind == "group":
        return group_link(name)
    return address("/warmups", q=name.partition("/")[0]) if kind == "task" else None
