"""The reference of the manual is what the code says."""

from __future__ import annotations

import re

import pytest

from agent.guard.judge import ALL_CHECKS
from agent.values.finding import ENDS, FindingReason
from agent.values.proposal import HoldReason, ProposalReason, RefuseReason
from tests.cli.documents import commands
from tests.docs import api_reference
from tests.docs.exit_code_reference import codes
from tests.docs.finding_reference import MEANS, severities
from tests.docs.proposal_reference import KIND_OF
from tests.docs.reference import pages
from tests.docs.reference_pages import FOLDER, ROOT

OPERATIONS = ROOT / "docs" / "operations.md"


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_is_the_one_that_the_code_gives(name: str) -> None:
    assert (FOLDER / name).read_text() == pages()[name](), "write it anew: python -m tests.docs.reference"


def test_no_page_is_left_of_what_is_gone() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == {*pages()}


def test_every_finding_has_a_severity_and_a_remedy_and_no_remedy_is_of_another() -> None:
    assert {*MEANS} == {one.name for one in FindingReason}
    assert {*ENDS} == {*FindingReason}
    assert [reason for reason, found in severities().items() if not found] == []
    page = (FOLDER / "findings.md").read_text()
    assert [one.value for one in FindingReason if f"\n| {one.value} |" not in page] == []


def test_a_proposal_that_moves_something_is_not_called_advice() -> None:
    made = {name for name in KIND_OF if name in {one.name for one in ProposalReason}}
    assert made == {*KIND_OF}
    text = "\n".join(path.read_text() for path in (ROOT / "agent" / "plan").glob("advice*.py"))
    advised = set(re.findall(r"ProposalReason\.([A-Z_]+)", text))
    assert advised == {one.name for one in ProposalReason} - {*KIND_OF}


def test_the_verdicts_have_every_reason_and_every_check() -> None:
    page = (FOLDER / "verdicts.md").read_text()
    assert [one.value for one in (*HoldReason, *RefuseReason) if f"\n| {one.value} |" not in page] == []
    assert len(re.findall(r"^\d+\. ", page, re.MULTILINE)) == len(ALL_CHECKS) + 1


def test_every_command_has_its_section() -> None:
    sections = set(re.findall(r"^## (.+)$", (FOLDER / "commands.md").read_text(), re.MULTILINE))
    assert sections == {name for name, _ in commands()}


def test_the_exit_codes_of_the_errors_are_those_of_the_operations() -> None:
    told = OPERATIONS.read_text().partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", told, re.MULTILINE)} == codes()


def test_the_reference_of_the_api_is_there_where_its_description_is() -> None:
    assert (FOLDER / "api.md").exists() == api_reference.OPENAPI.exists()
