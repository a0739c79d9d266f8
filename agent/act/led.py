"""One leadership, from taking over to letting go: its journal, the hands that write in it, and who tells of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.act.inbox import Inbox
from agent.act.journal import Journal
from agent.act.mover import Mover
from agent.act.trigger import Trigger
from agent.errors import Fatal, RackwiseError
from agent.journal.entry import View
from agent.observation import Observation
from agent.wire.hand import WireHand


class Leads(Protocol):
    """What tells whether this agent leads (`agent.act.leadership.Leadership`)."""

    def start(self) -> None:
        """Take part."""

    def observed(self, observation: Observation) -> None:
        """A look was taken."""

    def journal(self) -> Journal | None:
        """The journal of this leadership. Raises what ends the agent."""

    def inbox(self) -> Inbox | None:
        """Operators' commands."""

    def may_act(self) -> bool:
        """Whether it leads, beyond doubt, now."""

    def leads_for_s(self) -> float:
        """For how many seconds it surely leads."""

    def problem(self) -> str | None:
        """Why it cannot lead."""

    def notices(self) -> tuple[str, ...]:
        """What is not as it should be, and keeps nobody from leading."""

    def ignored(self) -> int | None:
        """Records of the journal's topic that are ignored; None where that is not known."""

    def close(self) -> None:
        """Leave."""


@dataclass(slots=True)
class Led:
    """What acts under one leadership."""

    journal: Journal
    hand: WireHand
    trigger: Trigger
    mover: Mover
    worded: View | None = None
    """The view whose words the mover has heard."""

    def check(self) -> None:
        """Raises what ended the mover; a fault as one that ends the agent: without a mover it must not keep leading."""
        try:
            self.mover.check()
        except RackwiseError:
            raise
        except Exception as error:
            raise defect(error) from error

    def close(self) -> None:
        """Begin nothing more."""
        self.mover.close()
        self.hand.close()


def defect(error: Exception) -> Fatal:
    """What ends the agent where something was raised that nobody expected."""
    return Fatal(
        "Mode execute ended by a fault in rackwise itself",
        why=repr(error),
        todo="Start the agent again: plans that have begun are in the journal. Please report this.",
    )
