"""One look for a command: the whole line once, with nothing published and nothing remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.cycle import Cycle
    from config.load import Loaded


def look(loaded: Loaded, *, planning: bool = True) -> Cycle:
    """What one look shows, finds and would propose. Raises what `agent.observe.observe` raises."""
    from agent.clock import system_clock
    from agent.cut import to_limits, to_scope
    from agent.loop import Line, run_cycle
    from agent.memory import Memory
    from agent.observe import Clients, observe

    with Clients.open(loaded.settings.kafka) as clients:
        observation = observe(clients, system_clock, to_scope(loaded.settings))
    # The guard's second look is the first one again: a command decides nothing.
    return run_cycle(
        Line(to_limits(loaded.settings)),
        lambda: observation,
        observation,
        Memory(),
        number=1,
        name="command",
        planning=planning,
    )
