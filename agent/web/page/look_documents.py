"""Documents of one look for the page, each made once; while those of a new look are made, the look before is shown."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from agent.simulate.evaluation import StageEvaluation
from agent.web.agent_view import AgentView, FinishedLook
from agent.web.look_samples import MOST_AT_ONCE

Made = TypeVar("Made")
_MOST_MADE = 512
"""Documents that are kept of one look; the least used ones are made again."""


class DocumentMaker(Protocol):
    """Anything that makes documents of one look."""

    def made(self, key: Hashable, maker: Callable[[StageEvaluation], Made], /) -> Made:
        """What ``maker`` makes of the look, made once per key."""


class LookDocuments:
    """The documents of one look, for any thread."""

    def __init__(self, look: FinishedLook) -> None:
        self.look = look
        self.are_made = True
        """False while those of very many groups are made: a view of all groups then says so instead of waiting."""
        self._lock = threading.Lock()
        self._makers: dict[Hashable, threading.RLock] = {}
        """One lock per document: a quick one does not wait for a slow one."""
        self._made: OrderedDict[Hashable, object] = OrderedDict()

    def made(self, key: Hashable, maker: Callable[[StageEvaluation], Made], /) -> Made:
        """What ``maker`` makes of the look, made once per key; ``key`` names all else that it depends on."""
        with self._lock:
            making = self._makers.setdefault(key, threading.RLock())
        with making:
            with self._lock:
                if key in self._made:
                    self._made.move_to_end(key)
                    return cast("Made", self._made[key])
            document = maker(self.look.evaluation)
            with self._lock:
                self._made[key] = document
                if len(self._made) > _MOST_MADE:
                    self._makers.pop(self._made.popitem(last=False)[0], None)
            return document


Preparation = Callable[[LookDocuments], object]
"""Makes a document that views need."""


class ShownLooks:
    """The look that the page shows: the newest one whose documents are made, unless that would be an old one.

    Documents of many groups take seconds. A request after a new look is answered from the one before, and makes the
    new ones once it is answered; without one before, or where it is older than ``stale_ms``, it waits for its own.
    """

    def __init__(self, agent: AgentView, preparations: Sequence[Preparation], stale_ms: int) -> None:
        self._agent, self._preparations, self._stale_ms = agent, [*preparations], stale_ms
        self._lock = threading.Lock()
        self._shown: LookDocuments | None = None
        self._preparing = 0

    def add(self, preparations: Sequence[Preparation]) -> None:
        """Make these documents too before a look is shown."""
        self._preparations += [one for one in preparations if one not in self._preparations]

    def now(self) -> tuple[LookDocuments | None, Callable[[], None] | None]:
        """(the documents to show, None before the first look; what is to be made after the answer)."""
        newest = self._agent.look()
        with self._lock:
            if newest is None:
                return None, None
            shown = self._shown
            if shown is None or newest.taken_ms - shown.look.taken_ms > self._stale_ms:
                self._shown = shown = LookDocuments(newest)
                shown.are_made = len(newest.evaluation.snapshot.groups) <= MOST_AT_ONCE
            if self._preparing == newest.cycle or (shown.look.cycle == newest.cycle and shown.are_made):
                return shown, None
            self._preparing = newest.cycle
            documents = shown if shown.look.cycle == newest.cycle else LookDocuments(newest)
            return shown, lambda: self._prepare(documents)

    def _prepare(self, documents: LookDocuments) -> None:
        """Make the documents of a look, and show it from then on."""
        try:
            for preparation in self._preparations:
                preparation(documents)
        finally:  # what could not be made is made, or fails, in the view that needs it
            documents.are_made = True
            with self._lock:
                if self._shown is None or self._shown.look.cycle < documents.look.cycle:
                    self._shown = documents


_OF_AGENTS: WeakKeyDictionary[AgentView, ShownLooks] = WeakKeyDictionary()
_SHARING = threading.Lock()


def shown_looks(agent: AgentView, preparations: Sequence[Preparation], stale_ms: int) -> ShownLooks:
    """The looks of this agent that page and API share, with these preparations among theirs."""
    with _SHARING:
        found = _OF_AGENTS.get(agent)
        if found is None:
            found = _OF_AGENTS[agent] = ShownLooks(agent, (), stale_ms)
        found.add(preparations)
        return found
