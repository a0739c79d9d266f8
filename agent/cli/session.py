"""One look for a command: the whole line once, with nothing published and nothing remembered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from agent.cli import options
from agent.cli.hints import remember_replay
from agent.cli.loading import load_beside
from agent.cli.output import say
from agent.values.collector import walk_no_more

if TYPE_CHECKING:
    from pathlib import Path

    from agent.simulate.evaluation import Seen
    from agent.telemetry.looks import Recorded
    from agent.values.limits import Limits
    from agent.values.memory import Memory
    from agent.values.observation import Gap, Observation, Part
    from config.load import Loaded

GAPS_SHOWN = 20


def look_or_replay(
    config: list[Path] | None,
    properties: list[Path] | None,
    assign: list[str] | None,
    bootstrap: str | None,
    replay: Path | None,
    *,
    planning: bool = True,
    duration: str | None = None,
    reported: bool = False,
) -> Seen:
    """What a command shows: a live cluster by the settings, or the last look of a file. Raises as both do.

    With bytes per second, where two looks that are ``duration`` apart, the agent's telemetry or weights tell them.
    """
    from agent.cli import measuring
    from agent.errors import BadInput

    for_ms = measuring.parsed(duration)
    if replay is not None:
        if for_ms is not None:
            raise BadInput(
                "--for and --replay contradict each other",
                why="a telemetry file has its own rates",
                todo="Leave one of them out.",
            )
        remember_replay(replay)
        if config or properties or assign or bootstrap:
            say(f"note: {replay} brings its own settings: --config, --properties, --set and -b are not read")
        return replayed(replay)
    loaded = options.settings(config, properties, assign, bootstrap)
    return measuring.look(loaded, planning=planning, for_ms=for_ms, reported=reported)


def look(loaded: Loaded, *, planning: bool = True) -> Seen:
    """What one look shows, finds and would propose. Raises what `agent.observe.observe` raises."""
    from agent.daemon.limits_from_settings import to_limits
    from agent.values.memory import Memory

    with looking(loaded) as take:
        observation = take()
    return seen_through(observation, Memory(), to_limits(loaded.settings), planning=planning)


@contextmanager
def looking(loaded: Loaded) -> Iterator[Callable[[], Observation]]:
    """What takes a look, as often as it is called, over the same connections."""
    from agent.daemon.limits_from_settings import to_scope
    from agent.observe.context import Clients
    from agent.observe.look import observe
    from agent.record.weights import weights_beside
    from agent.values.clock import system_clock

    # Most of a look is waiting for brokers: the stages that follow it are loaded meanwhile.
    loading = load_beside("agent.simulate.evaluation")
    scope = to_scope(loaded.settings)
    with Clients.open(loaded.settings.kafka) as clients, weights_beside(loaded.settings) as beside:

        def take() -> Observation:
            observation = beside(lambda: observe(clients, system_clock, scope))
            loading.join()
            return observation

        yield take


def seen_through(observation: Observation, memory: Memory, limits: Limits, *, planning: bool = True) -> Seen:
    """Every stage's answer, with the time that all of it took."""
    from agent.simulate.evaluation import see

    began = time.monotonic_ns()
    seen = see(observation, memory, limits, planning=planning)
    return seen._replace(took_ms=observation.took_ms + (time.monotonic_ns() - began) // 1_000_000)


def replayed(path: Path) -> Seen:
    """The last whole look of a telemetry file, lived through again. Raises ``BadInput``."""
    return _lived_through(_whole_looks(path)[-1])


def recorded(path: Path) -> Iterator[Seen]:
    """Every whole look of a telemetry file, one after the other. Raises ``BadInput``."""
    yield from map(_lived_through, _whole_looks(path))


def _whole_looks(path: Path) -> list[Recorded]:
    from agent.errors import BadInput, reason
    from agent.record.files import read_events
    from agent.simulate.replay import recorded_looks

    todo = "Name a file that an agent wrote by its setting record.file."
    try:
        looks = list(recorded_looks(read_events(path)))
    except OSError as error:
        raise BadInput(f"{path} cannot be read", why=reason(error), todo=todo) from error
    if not looks:
        raise BadInput(f"{path} holds no complete look", why="events are missing from every look in it", todo=todo)
    return looks


def _lived_through(look: Recorded) -> Seen:
    from agent.simulate.replay import replay_look
    from agent.values.rates import Rates, RatesFrom, judged

    seen = replay_look(look)
    return seen._replace(rates=judged(Rates(RatesFrom.FILE), seen.snapshot))


def none_of(sentence: str, seen: Seen, *parts: Part) -> str:
    """The line in place of a table without rows: that there is nothing, or that nothing was seen."""
    from agent.values.observation import Part
    from agent.values.unseen import gaps_of, hidden_groups

    causes = sorted({f"{gap.part}: {gap.cause}" for gap in gaps_of(seen.snapshot, parts)})
    hidden = Part.GROUPS in parts and hidden_groups(seen.snapshot, seen.limits)
    causes += [f"{Part.GROUPS}: rebalancing"] if hidden else []
    return f"{sentence}, as far as was seen ({', '.join(causes)})" if causes else sentence


def leave(seen: Seen, exit_code: int = 0, *, gaps: Sequence[Gap] | None = None) -> NoReturn:
    """End a command that has answered: gaps go to stderr in every form, and a partial answer has an exit code.

    ``gaps``: those that the answer itself has not named; all by default.
    """
    from agent.cli.gaps import gap_lines
    from agent.simulate.evaluation import PARTIAL_EXIT, is_partial

    lines = gap_lines(seen.snapshot.gaps if gaps is None else gaps)
    for line in lines[:GAPS_SHOWN]:
        say(line)
    if len(lines) > GAPS_SHOWN:
        say(f"not seen: {len(lines) - GAPS_SHOWN:,} more: rackwise status -o json")
    walk_no_more()
    raise typer.Exit(PARTIAL_EXIT if is_partial(seen.snapshot) else exit_code)
