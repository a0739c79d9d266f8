"""The moves: plans with their progress by partition and broker, throttles, and reassignments of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from agent.documents.journal import history_rows, reassign_status
from agent.values.number_format import counted, lasted, sized
from agent.values.observation import ObservationPart
from agent.values.reassignment import ENDED, PlanState, attempt
from agent.web.access.person import AccessRole
from agent.web.page.acting_records import ActingRecords
from agent.web.page.environment import address, rendered
from agent.web.page.move_tables import (
    broker_table,
    copy_table,
    other_table,
    plan_table,
    target_table,
    throttle_table,
)
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.proposals import history_table
from agent.web.page.svg_progress import plan_bar, progress_by_broker

if TYPE_CHECKING:
    from agent.documents.proposals import CopyRow, PlanRow, ReassignStatus

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
        open_plans=[plan_shown(row, document["copies"]) for row in open_plans],
        picture=progress_by_broker(brokers) if brokers else None,
        document=document,
        acting=acting,
        told=acting.told,
        may=may_words(asked),
    )


def status_of(asked: PageRequest, acting: ActingRecords) -> ReassignStatus:
    """What ``reassign status`` prints, from the last look and the journal."""
    return reassign_status(acting.records, asked.agent.moves(), asked.agent.copies())


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
    elif document["reassignments"]:
        parts.append(f"{counted(len(document['reassignments']), 'partition moves', 'partitions move')} now")
        parts += pace_words(document["copies"])
    elif not plans:
        parts.append("nothing moves now" if acting.records.known else "the brokers report no reassignment")
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def pace_words(copies: Sequence[CopyRow]) -> list[str]:
    """How fast copies come, and how long they take; only what is known of all is said of all."""
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


def plan_shown(row: PlanRow, copies: Sequence[CopyRow]) -> PlanShown:
    """The plan with its own copies alone."""
    own = {f"{target['topic']}-{target['partition']}" for target in row["targets"]}
    pace = pace_words([one for one in copies if one["partition"] in own])
    return PlanShown(row, plan_bar(row), "; ".join(pace), plan_link(row["plan"]))


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
    history = [one for one in history_rows(acting.view) if (one["about"] or "").partition(" of ")[0] == wanted]
    return asked.page(
        "plan.html",
        f"Plan {wanted}",
        tables=(
            target_table(row, racks, copies, moving),
            throttle_table([one for one in document["throttles"] if one["plan"] == wanted], ""),
            history_table(history, acting.unreadable),
        ),
        shown=plan_shown(row, document["copies"]),
        is_open=row["state"] not in _ENDED,
        goes_back=row["state"] == PlanState.ROLLING_BACK.value,
        proposal=attempt(wanted).of,
        told=acting.told,
        may=may_words(asked),
        ends=rendered("ends.html", ends=row["ends"]),
    )


VIEWS = (PageView("/moves", moves_view), PageView("/moves/plan", plan_view))
