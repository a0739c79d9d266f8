"""docs/reference/rights.md, read off docs/operations.md. Write it anew: python -m tests.docs.rights_reference"""

from __future__ import annotations

from tests.act.rights import Right, documented
from tests.docs.reference_pages import table, write

HEAD = """\
# Rights

The rights of each role, as the commands in [operations](../operations.md#rights) give them; tests run with exactly
these on brokers with an authorizer. What is missing without one of the executor's: [rights for
acting](../operations.md#rights-for-acting). What no role may: [who may command](../operations.md#who-may-command).

| role | is |
|---|---|
| reader | a person that looks: `status`, `doctor`, `plan`, `proposals` |
| observer | the agent's connection, in every mode |
| executor | the agent's second connection, `execute.kafka`, in mode `execute` alone |
| operator | a person that approves, cancels, pauses |

For a look alone, without proposals and journal, three rights are enough: [look with read-only
rights](../howto/look.md).
"""
ROLES = ("reader", "observer", "executor", "operator")
_KIND = {"--cluster": "Cluster", "--topic": "Topic", "--group": "Group", "--transactional-id": "TransactionalId"}


def page() -> str:
    """A row for each resource, a column for each role."""
    given = {role: documented(role) for role in ROLES}
    resources = dict.fromkeys(_resource(right) for role in ROLES for right in given[role])
    rows = [
        (resource, *(", ".join(one.operation for one in given[role] if _resource(one) == resource) for role in ROLES))
        for resource in sorted(
            resources, key=lambda name: (list(_KIND.values()).index(name.split()[0].rstrip(",")), name)
        )
    ]
    return f"{HEAD}\n## By resource\n\n{table(('resource', *ROLES), rows)}\n"


def _resource(right: Right) -> str:
    if right.kind == "--cluster":
        return "Cluster"
    return f"{_KIND[right.kind]}{', prefixed' if right.prefixed else ''} `{right.name}`"


if __name__ == "__main__":
    write("rights.md", page())
