"""One look for a command: the whole line once, with nothing published and nothing remembered."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import typer

from agent.cli.output import say

if TYPE_CHECKING:
    from pathlib import Path

    from agent.cycle import Cycle
    from agent.replay import Replayed
    from config.load import Loaded


def look(loaded: Loaded, *, planning: bool = True) -> Cycle:
    """What one look shows, finds and would propose. Raises what `agent.observe.observe` raises."""
    from agent.clock import system_clock
    from agent.cut import to_limits, to_scope
    from agent.look_with_weights import weights_beside
    from agent.observe import Clients, observe

    # Most of a look is waiting for brokers: the stages that follow it are loaded meanwhile.
    threading.Thread(target=import_module, args=("agent.loop",), name="loading").start()
    with Clients.open(loaded.settings.kafka) as clients, weights_beside(loaded.settings) as beside:
        observation = beside(lambda: observe(clients, system_clock, to_scope(loaded.settings)))
    from agent.loop import Line, run_cycle
    from agent.memory import Memory

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


def replayed(path: Path) -> Replayed:
    """The last whole look of a telemetry file, lived through again. Raises ``BadInput``."""
    from agent.errors import BadInput
    from agent.record.files import read_events
    from agent.replay import recorded_looks, replay_look

    todo = "Name a file that `record.file` wrote."
    try:
        looks = list(recorded_looks(read_events(path)))
    except OSError as error:
        raise BadInput(f"{path} cannot be read", why=str(error), todo=todo) from error
    if not looks:
        raise BadInput(f"{path} holds no whole look", why="no look's events are complete", todo=todo)
    return replay_look(looks[-1])


def leave(cycle: Cycle, exit_code: int = 0) -> NoReturn:
    """End a command that has answered: gaps go to stderr in every form, and a partial answer has an exit code."""
    from agent.cycle import PARTIAL_EXIT, is_partial

    for gap in cycle.snapshot.gaps:
        say(f"not seen: {gap.part}{' of ' + gap.subject if gap.subject else ''}: {gap.cause} ({gap.detail})")
    raise typer.Exit(PARTIAL_EXIT if is_partial(cycle.snapshot) else exit_code)
