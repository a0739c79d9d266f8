"""docs/reference/commands.md, read off the application. Write it anew: python -m tests.docs.command_reference"""

from __future__ import annotations

from typing import Any

from agent.cli.app import ORDER
from agent.cli.options import EXAMPLES, SHORT
from testbed.cluster import commands as of_cluster
from testbed.demo import command as of_demo
from tests.cli.documents import commands
from tests.docs.reference_pages import table, write

HEAD = """\
# Commands

Written from the application itself. `rackwise COMMAND --help` has the same. What commands print with `-o json` is
described by [schemas](../operations.md#documents-for-machines), how they end by [exit codes](exit-codes.md).
"""
_EXAMPLES = {**EXAMPLES, **of_cluster.EXAMPLES, **of_demo.EXAMPLES}
_SHORT = {**SHORT, **of_cluster.SHORT}


def page() -> str:
    """A section for each command."""
    every = dict(commands())
    order = {name: number for number, name in enumerate(ORDER)}
    names = sorted(every, key=lambda name: (order.get(name.split()[0], len(order)), name.split()[0]))
    rows = [(f"[`{name}`](#{name.replace(' ', '-')})", _SHORT.get(name, "")) for name in names]
    sections = (_section(name, every[name]) for name in names)
    return "\n".join([HEAD, table(("command", "what it does"), rows), "", *sections])


def _section(name: str, command: Any) -> str:
    context = command.context_class(command, info_name=name)
    usage = " ".join(["rackwise", name, *command.collect_usage_pieces(context)])
    told = _plain(" ".join((command.help or "").split()))
    rows = [row for one in command.params if (row := _row(one, context))]
    parts = [f"## {name}", "", told, "", f"```\n{usage}\n```"]
    if rows:
        parts += ["", table(("option", "meaning"), rows)]
    if name in _EXAMPLES:
        parts += ["", "```", *_EXAMPLES[name], "```"]
    return "\n".join([*parts, ""])


def _row(parameter: Any, context: Any) -> tuple[str, str] | None:
    record = parameter.get_help_record(context)
    if record is None or "--help" in parameter.opts:
        return None
    name, meaning = record
    # A bar within backticks ends a cell for one reader of Markdown, and an escaped one shows its backslash in another.
    shown = f"<code>{_plain(name)}</code>" if "|" in name else f"`{name}`"
    return shown, " ".join(_plain(meaning).split())


def _plain(text: str) -> str:
    """Angle brackets are no elements of HTML, and bars end no cell."""
    return text.replace("<", "&lt;").replace("|", "&#124;")


if __name__ == "__main__":
    write("commands.md", page())
