"""What follows when an agent wins the leadership."""

from __future__ import annotations

from tests.act.test_execute_mode import Box, Leading, acting
from tests.act.triggers import MemoryJournal
from tests.observe.live import wait_for


def test_a_won_leadership_is_followed_by_a_planning_at_once() -> None:
    """Verdicts of the planning before say that this agent does not lead."""
    looks: list[int] = []
    leading = Leading(MemoryJournal(), Box())
    with acting(leading, look_now=lambda: looks.append(1)) as one:
        wait_for(lambda: one.view() is not None, "it leads", 20)
        wait_for(lambda: looks == [1], "it asks for a look", 20)
        leading.own = MemoryJournal()
        wait_for(lambda: looks == [1, 1], "it asks again in the next epoch", 20)
