"""The moves: plans with their progress by partition and broker, throttles, and reassignments of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from agent.documents.journal import history_of_plan, reassign_status, running_moves
from agent.values.number_format import counted, lasted, sized
from agent.values.observation import ObservationPart
from agent.values.reassignment import ENDED, PlanState, attempt, rolled_back_plan
from agent.web.access.person import AccessRole
from agent.web.page.environment import address, percent, rendered
from agent.web.page.page_documents import ActingRecords
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.proposals import history_table
from agent.web.page.svg import plan_bar, progress_by_broker
from agent.web.page.tables import TableCell, TableColumn, TableRow, TableSource, fields_of, replica_tiles
from config.foreign_text import listed

if TYPE_CHECKING:
    from agent.documents.proposals import CopyRow, MoveRow, PlanRow, ReassignStatus, ThrottleRow


_ENDED = frozenset(state.value for state in ENDED)


class BrokerCopies(NamedTuple):
    """All copies that one broker takes; None is unknown."""

    broker: int
    copies: int
    bytes: int | None
    of_bytes: int | None
    bytes_per_s: int | None
    seconds_left: int | None


def moves_view(asked: PageRequest) -> Response:
    """The view."""
    acting = ActingRecords(asked)
    document = status_of(asked, acting)
    brokers = copies_by_broker(document["copies"])
    rows: list[Mapping[str, Any]] = [one._asdict() for one in brokers]
    open_plans = [row for row in document["plans"] if row["state"] not in _ENDED]
    others = [row for row in document["reassignments"] if row["ours"] is not True]
    return asked.page(
        "moves.html",
        "Moves",
        tables=(
            broker_table(rows),
            copy_table(document["copies"]),
            plan_table(document["plans"], acting.unreadable),
            throttle_table(document["throttles"], acting.unreadable),
            other_table(others, _not_reported(asked)),
        ),
        lead=lead(asked, document, acting),
        open_plans=[plan_shown(row, document) for row in open_plans],
        picture=progress_by_broker(brokers) if brokers else None,
        document=document,
        acting=acting,
        answer=acting.answer,
        may=may_words(asked),
    )


def status_of(asked: PageRequest, acting: ActingRecords) -> ReassignStatus:
    """What ``reassign status`` prints, from the last look and the journal, without moves that have ended since."""
    return reassign_status(acting.records, running_moves(acting.records, asked.moves))


def _not_reported(asked: PageRequest) -> bool:
    return any(gap.part is ObservationPart.REASSIGNMENTS and gap.is_missed for gap in asked.look.snapshot.gaps)


def lead(asked: PageRequest, document: ReassignStatus, acting: ActingRecords) -> str:
    """What moves, in one sentence."""
    plans = [row for row in document["plans"] if row["state"] not in _ENDED]
    parts = []
    if plans:
        done, all_ = sum(row["done"] for row in plans), sum(row["partitions"] for row in plans)
        parts.append(
            f"{counted(len(plans), 'plan is', 'plans are')} in progress: {done:,} of {counted(all_, 'partition')} done"
        )
    if _not_reported(asked):
        parts.append("what moves is unknown, as the brokers did not report reassignments")
    elif moving := moving_now(document):
        parts.append(f"{counted(moving, 'partition moves', 'partitions move')} now")
        parts += pace_words(document["copies"])
    elif not plans:
        parts.append("nothing moves now" if acting.records.known else "the brokers report no reassignment")
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def moving_now(document: ReassignStatus) -> int:
    """Partitions that move: of plans by the journal, which is newer than the look; all others by the look."""
    ours = sum(row["moving"] for row in document["plans"] if row["state"] not in _ENDED)
    return ours + sum(row["ours"] is not True for row in document["reassignments"])


def pace_words(copies: Sequence[CopyRow]) -> list[str]:
    """How fast copies come, and how long they take; a figure of all needs the figure of each."""
    if not copies:
        return []
    rates = [one["bytes_per_s"] for one in copies if one["bytes_per_s"] is not None]
    lefts = [one["seconds_left"] for one in copies]
    rate = (
        f"at {sized(sum(rates))}/s{'' if len(rates) == len(copies) else ' or more'}" if rates else "at an unknown rate"
    )
    known = [one for one in lefts if one is not None]
    left = f"{lasted(1_000 * max(known))} left" if known and len(known) == len(lefts) else "time left unknown"
    return [f"{counted(len(copies), 'copy', 'copies')} {rate}, {left}"]


def copies_by_broker(copies: Sequence[CopyRow]) -> list[BrokerCopies]:
    """One row for each broker that takes copies; a sum with an unknown part is unknown."""
    by_broker: dict[int, list[CopyRow]] = {}
    for one in copies:
        by_broker.setdefault(one["to_broker"], []).append(one)
    return [_broker(broker, rows) for broker, rows in sorted(by_broker.items())]


def _broker(broker: int, rows: Sequence[CopyRow]) -> BrokerCopies:
    there, of = _sum([row["bytes"] for row in rows]), _sum([row["of_bytes"] for row in rows])
    rate = _sum([row["bytes_per_s"] for row in rows])
    left = None if there is None or of is None else max(0, of - there)
    seconds = 0 if left == 0 else round(left / rate) if left is not None and rate else None
    return BrokerCopies(broker, len(rows), there, of, rate, seconds)


def _sum(values: Sequence[int | None]) -> int | None:
    return None if None in values else sum(one for one in values if one is not None)


class PlanShown(NamedTuple):
    """A plan in progress with its pace."""

    row: PlanRow
    bar: Markup
    pace: str
    href: Markup


def plan_shown(row: PlanRow, document: ReassignStatus) -> PlanShown:
    """The plan with its own copies alone: another plan may move the same partitions."""
    own = {move["partition"] for move in document["reassignments"] if move["by"] == row["plan"]}
    pace = pace_words([one for one in document["copies"] if one["partition"] in own])
    return PlanShown(row, plan_bar(row), "; ".join(pace), plan_link(row["plan"]))


def _shown_by_name(name: str | None, document: ReassignStatus) -> PlanShown | None:
    """That plan; None without a name, and where the journal has it no more."""
    return next((plan_shown(row, document) for row in document["plans"] if row["plan"] == name), None)


def plan_link(plan: str) -> Markup:
    """The page of one plan."""
    return address("/moves/plan", id=plan)


def may_words(asked: PageRequest) -> str:
    """Why this person cannot change a plan here; empty where the forms are shown."""
    mode = asked.agent.settings.settings.mode
    if mode != "execute":
        return f"This agent runs in mode {mode}: it moves nothing, and takes no commands."
    if not asked.person.may(AccessRole.APPROVE):
        who = "You are not signed in" if asked.person.name is None else f"{asked.person.name} has no role approve"
        return f"{who}, so this page only shows plans. Use the commands."
    return ""


def plan_view(asked: PageRequest) -> Response:
    """One plan with every partition of it."""
    acting = ActingRecords(asked)
    wanted = asked.query.get("id", "")
    document = status_of(asked, acting)
    row = next((one for one in document["plans"] if one["plan"] == wanted), None)
    if row is None:
        return asked.problem(
            404,
            "No such plan",
            acting.unreadable or acting.missing or f"The journal has no plan {wanted or 'without an id'}.",
            "It has not begun, or it has expired from the journal. The view of moves lists the plans.",
        )
    racks = {broker.id: broker.rack.name for broker in asked.look.snapshot.brokers}
    copies = {(one["partition"], one["to_broker"]): one for one in document["copies"]}
    moving = {one["partition"] for one in document["reassignments"] if one["by"] == wanted}
    history = history_of_plan(acting.view, wanted)
    return asked.page(
        "plan.html",
        f"Plan {wanted}",
        tables=(
            target_table(row, racks, copies, moving),
            throttle_table([one for one in document["throttles"] if one["plan"] == wanted], ""),
            history_table(history, acting.unreadable),
        ),
        shown=plan_shown(row, document),
        back=_shown_by_name(row["taken_back_by"], document),
        forth=_shown_by_name(rolled_back_plan(wanted), document),
        is_open=row["state"] not in _ENDED,
        goes_back=row["state"] == PlanState.ROLLING_BACK.value,
        proposal=attempt(wanted).of,
        answer=acting.answer,
        may=may_words(asked),
        ends=rendered("ends.html", ends=row["ends"]),
    )


VIEWS = (PageView("/moves", moves_view), PageView("/moves/plan", plan_view, fields={"id": ()}))


_TONES = {"done": ("good", "✓"), "failed": ("bad", "✕"), "cancelled": ("quiet", "✕"), "rolled back": ("quiet", "↺")}
_OURS = {True: "rackwise", False: "another tool"}


def _size(value: int | None, unit: str = "") -> TableCell:
    return TableCell(None if value is None else f"{sized(value)}{unit}")


def _left(seconds: int | None) -> TableCell:
    return TableCell(None if seconds is None else lasted(1_000 * seconds))


_PROGRESS = (
    TableColumn("bytes", "There", lambda row: _size(row["bytes"]), lambda row: row["bytes"], is_number=True),
    TableColumn("of_bytes", "Of", lambda row: _size(row["of_bytes"]), lambda row: row["of_bytes"],
                is_number=True),
    TableColumn("bytes_per_s", "Rate", lambda row: _size(row["bytes_per_s"], "/s"),
                lambda row: row["bytes_per_s"], is_number=True, falls=True),
    TableColumn("seconds_left", "Time left", lambda row: _left(row["seconds_left"]),
                lambda row: row["seconds_left"], is_number=True, falls=True),
)  # fmt: skip
"""What is there of the bytes to copy, and how fast: of a broker, and of a copy."""


def broker_table(rows: Sequence[TableRow]) -> TableSource:
    """One row for each broker that takes copies."""
    return TableSource(
        key="brokers",
        title="Copies by broker",
        unit="broker",
        rows=rows,
        columns=(
            TableColumn("broker", "Broker", lambda row: TableCell(str(row["broker"])), lambda row: row["broker"]),
            TableColumn("copies", "Copies", lambda row: TableCell(f"{row['copies']:,}"), lambda row: row["copies"],
                        is_number=True, falls=True),
            *_PROGRESS,
        ),
        empty="No broker takes a copy.",
    )  # fmt: skip


def copy_table(rows: Sequence[CopyRow]) -> TableSource:
    """Every replica that is being copied."""
    return TableSource(
        key="copies",
        title="Copies by partition",
        unit="copy",
        rows=rows,
        columns=(
            TableColumn("partition", "Partition", lambda row: TableCell(row["partition"], tone="name"),
                        lambda row: row["partition"]),
            TableColumn("to_broker", "To broker", lambda row: TableCell(str(row["to_broker"])),
                        lambda row: row["to_broker"], is_number=True),
            TableColumn("copied_share", "Copied", _share, lambda row: row["copied_share"], is_number=True),
            *_PROGRESS,
            TableColumn("ours", "By", lambda row: TableCell(_OURS.get(row["ours"])), lambda row: row["ours"]),
        ),
        text=lambda row: f"{row['partition']} broker {row['to_broker']}",
        empty="No replica is being copied.",
        page_rows=25,
    )  # fmt: skip


def _share(row: TableRow) -> TableCell:
    share = row["copied_share"]
    return TableCell(None if share is None else rendered("copied_share.html", share=share, words=percent(share)))


def plan_table(rows: Sequence[PlanRow], unreadable: str) -> TableSource:
    """Every plan of the journal, the latest first."""
    return TableSource(
        key="plans",
        title="Plans of the journal",
        unit="plan",
        rows=tuple(reversed(rows)),
        columns=(
            TableColumn("plan", "Plan",
                        lambda row: TableCell(row["plan"], address("/moves/plan", id=row["plan"]), tone="code"),
                        lambda row: row["plan"]),
            TableColumn("state", "State", state_cell, lambda row: row["state"],
                        beside=fields_of("paused", "taken_back_by")),
            TableColumn("done", "Done", lambda row: TableCell(f"{row['done']:,}"), lambda row: row["done"],
                        is_number=True),
            TableColumn("partitions", "Partitions", lambda row: TableCell(f"{row['partitions']:,}"),
                        lambda row: row["partitions"], is_number=True),
            TableColumn("approved_by", "Approved by", lambda row: TableCell(row["approved_by"]),
                        lambda row: row["approved_by"]),
            TableColumn("sentence", "How", lambda row: TableCell(row["sentence"] or row["reason"], tone="wide"),
                        lambda row: row["sentence"] or row["reason"]),
        ),
        text=lambda row: f"{row['plan']} {row['state']} {row['approved_by']} {row['sentence']}",
        empty=unreadable or "The journal has no plan.",
        is_unknown=bool(unreadable),
        page_rows=10,
        stacks=True,
    )  # fmt: skip


def state_cell(row: TableRow) -> TableCell:
    """The state of a plan, with a sign of its own."""
    tone, mark = _TONES.get(row["state"], ("accent", "▶"))
    words = f"{row['state']}{', paused' if row['paused'] else ''}"
    if row["taken_back_by"] is not None:
        tone, mark, words = "quiet", "↺", f"{words}; rollback: {row['taken_back_by']}"
    return TableCell(rendered("badge.html", tone=tone, mark="⏸" if row["paused"] else mark, words=words))


def target_table(
    plan: PlanRow,
    racks: Mapping[int, str | None],
    copies: Mapping[tuple[str, int], CopyRow],
    moving: frozenset[str] | set[str],
) -> TableSource:
    """The partitions of one plan: before, after, and how far each is."""

    def state(row: TableRow) -> str:
        if row["end"] is not None:
            return str(row["end"])
        return "moves" if f"{row['topic']}-{row['partition']}" in moving else "not begun"

    def least(row: TableRow) -> float | None:
        """The share of the copy that is the least far; None where one is unknown, or nothing is being copied."""
        keys = [(f"{row['topic']}-{row['partition']}", broker) for broker in row["after"]]
        shares = [copies[key]["copied_share"] for key in keys if key in copies] if state(row) == "moves" else []
        known = [one for one in shares if one is not None]
        return min(known) if known and len(known) == len(shares) else None

    def progress(row: TableRow) -> TableCell:
        if row["end"] is not None:
            is_done = row["end"] == "moved as planned"
            return TableCell(row["end"], tone="good" if is_done else "warn", mark="✓" if is_done else "◆")
        if state(row) == "not begun":
            return TableCell("not begun", tone="quiet", mark="○")
        share = least(row)
        if share is None:
            return TableCell(rendered("badge.html", tone="accent", mark="▶", words="moves, how far is unknown"))
        return TableCell(rendered("copied_share.html", share=share, words=f"moves, {percent(share)}"))

    return TableSource(
        key="partitions",
        title="Partitions",
        unit="partition",
        rows=plan["targets"],
        columns=(
            TableColumn("partition", "Partition",
                        lambda row: TableCell(f"{row['topic']}-{row['partition']}", tone="name"),
                        lambda row: [row["topic"], row["partition"]]),
            TableColumn("before", "Before",
                        lambda row: TableCell(replica_tiles(row["before"], row["after"], racks, is_after=False)),
                        lambda row: row["before"]),
            TableColumn("after", "After",
                        lambda row: TableCell(replica_tiles(row["after"], row["before"], racks, is_after=True)),
                        lambda row: row["after"]),
            TableColumn("end", "Progress", progress, state, beside={"copied_share": least}),
        ),
        text=lambda row: f"{row['topic']}-{row['partition']} {row['end'] or ''}",
        empty="The journal keeps the number of this old plan's partitions only.",
        page_rows=25,
    )  # fmt: skip


def throttle_table(rows: Sequence[ThrottleRow], unreadable: str) -> TableSource:
    """Throttle settings of rackwise that are set and are to be removed."""
    return TableSource(
        key="throttles",
        title="Throttles to be removed",
        unit="throttle setting",
        rows=rows,
        columns=(
            TableColumn("resource", "Of", lambda row: TableCell(f"{row['resource_kind']} {row['resource']}"),
                        lambda row: f"{row['resource_kind']}/{row['resource']}"),
            TableColumn("key", "Setting", lambda row: TableCell(row["key"], tone="code"), lambda row: row["key"]),
            TableColumn("rate_bytes_per_s", "Value", _throttle, lambda row: row["rate_bytes_per_s"],
                        beside=fields_of("replicas")),
            TableColumn("plan", "Set by", lambda row: TableCell(row["plan"], address("/moves/plan", id=row["plan"])),
                        lambda row: row["plan"]),
        ),
        empty=unreadable or "No throttle of rackwise is set.",
        is_unknown=bool(unreadable),
        page_rows=10,
    )  # fmt: skip


def _throttle(row: TableRow) -> TableCell:
    if row["rate_bytes_per_s"] is not None:
        return TableCell(f"{sized(row['rate_bytes_per_s'])}/s")
    replicas = row["replicas"] or []
    return TableCell(f"for {counted(len(replicas), 'replica')}", hint=listed(replicas))


def other_table(rows: Sequence[MoveRow], not_reported: bool) -> TableSource:  # noqa: FBT001 (a fact about the rows)
    """Reassignments that are not known to be rackwise's own."""
    return TableSource(
        key="others",
        title="Reassignments of other tools",
        unit="reassignment",
        rows=rows,
        columns=(
            TableColumn("partition", "Partition", lambda row: TableCell(row["partition"], tone="name"),
                        lambda row: row["partition"]),
            TableColumn("adding", "Adds", lambda row: TableCell(_brokers(row["adding"])), lambda row: row["adding"]),
            TableColumn("removing", "Removes", lambda row: TableCell(_brokers(row["removing"])),
                        lambda row: row["removing"]),
            TableColumn("replicas", "Replicas now", lambda row: TableCell(_brokers(row["replicas"])),
                        lambda row: row["replicas"]),
            TableColumn("by", "By", lambda row: TableCell(row["by"]), lambda row: row["by"]),
        ),
        text=lambda row: row["partition"],
        empty="Reassignments are unknown: the brokers did not report them."
        if not_reported
        else "The brokers report no reassignment of another tool.",
        page_rows=10,
    )  # fmt: skip


def _brokers(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"
