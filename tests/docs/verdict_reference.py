"""docs/reference/verdicts.md, read off the guard. Write it anew: python -m tests.docs.verdict_reference"""

from __future__ import annotations

from agent.guard.judge import ALL_CHECKS, APPROVED, check_name
from agent.values.proposal import Hold, HoldReason, RefuseReason
from tests.docs.reference_pages import table, write

HEAD = """\
# Verdicts of the guard

The guard judges each proposal right before it could be carried out. The first check that does not pass, gravest
first, gives the verdict; `rackwise explain PROPOSAL` shows them all with their numbers. *Allowed*: all passed.
*Held*: it waits. *Refused*: this proposal is over, and the next planning makes a new one if there is still something
to propose.

What to do about each: [what each refusal means](../operations.md#what-each-refusal-means).
"""


def page() -> str:
    """Reasons of holds and refusals, and the order of the checks."""
    lasts = "no: a change of settings, or of the client or broker by its owner, ends it"
    holds = [(one.value, "yes" if Hold("", one, "").passes else lasts) for one in HoldReason]
    refusals = [(one.value,) for one in RefuseReason]
    names = [*map(check_name, ALL_CHECKS), APPROVED]
    return "\n".join(
        [
            HEAD, "## Held", "",
            "A check may also mark a single hold as one that only settings can end; its sentence says so.", "",
            table(("because", "ends by itself, by the agent, or by an approval"), holds), "",
            "## Refused", "", table(("because",), refusals), "",
            "## The checks in their order", "",
            "`rackwise explain PROPOSAL` shows each by this name, which is true where the check holds.", "",
            *(f"{number}. `{name}`" for number, name in enumerate(names, start=1)), "",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    write("verdicts.md", page())
