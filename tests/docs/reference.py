"""The pages of docs/reference, read off the code. Write all of them anew: python -m tests.docs.reference"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.docs import (
    api_reference,
    command_reference,
    exit_code_reference,
    finding_reference,
    proposal_reference,
    rights_reference,
    verdict_reference,
)
from tests.docs.reference_pages import write


def pages() -> Mapping[str, Callable[[], str]]:
    """File of docs/reference -> what writes it; that of the API where its description is there."""
    made = {
        "commands.md": command_reference.page,
        "exit-codes.md": exit_code_reference.page,
        "findings.md": finding_reference.page,
        "proposals.md": proposal_reference.page,
        "rights.md": rights_reference.page,
        "verdicts.md": verdict_reference.page,
    }
    return made | ({"api.md": api_reference.page} if api_reference.OPENAPI.exists() else {})


if __name__ == "__main__":
    for file, page in pages().items():
        write(file, page())
