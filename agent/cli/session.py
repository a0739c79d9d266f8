"""One look for a command, live or from a telemetry file; nothing is published or stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import typer

from agent.cli import options
from agent.cli.output import remember_replay, say
from agent.cli.running_agents import load_beside
from agent.process import stop_collecting
from agent.values.number_format import in_full

if TYPE_CHECKING:
    from pathlib import Path

    from agent.documents.cluster import FindingDocument, LookDocument
    from agent.simulate.evaluation import StageEvaluation
    from agent.telemetry.looks import CycleInputs
    from agent.values.limits import Limits
    from agent.values.memory import Memory
    from agent.values.observation import Gap, Observation, ObservationPart
    from config.load import LoadedSettings

GAPS_SHOWN = 20


def look_or_replay(
    source: options.SettingsOptions,
    replay: Path | None,
    *,
    duration: str | None = None,
    reported: bool = False,
) -> StageEvaluation:
    """What a command shows: a live cluster by the settings, or the last look of a file. Raises as both do.

    With bytes per second, where two looks that are ``duration`` apart, the agent's telemetry or weights tell them.
    """
    from agent.cli import rates
    from agent.errors import BadInput

    for_ms = rates.parsed(duration)
    if replay is not None:
        if for_ms is not None:
            raise BadInput(
                "--for and --replay contradict each other",
                why="a telemetry file has its own rates",
                todo="Leave one of them out.",
            )
        remember_replay(replay)
        if any(source):
            say(f"note: {replay} brings its own settings: --config, --properties, --set and -b are not read")
        return replayed(replay)
    loaded = options.settings(source)
    return rates.look(loaded, for_ms=for_ms, reported=reported)


def look(loaded: LoadedSettings, *, planning: bool = True) -> StageEvaluation:
    """What one look shows, finds and would propose. Raises what `agent.observe.observe` raises."""
    from agent.daemon.limits_from_settings import to_limits
    from agent.values.memory import Memory

    with looking(loaded) as take:
        observation = take()
    return seen_through(observation, Memory(), to_limits(loaded.settings), planning=planning)


@contextmanager
def looking(loaded: LoadedSettings) -> Iterator[Callable[[], Observation]]:
    """What takes a look, as often as it is called, over the same connections."""
    from agent.daemon.limits_from_settings import to_scope
    from agent.observe.context import ObserverClients
    from agent.observe.observe_cluster import observe
    from agent.record.weights import observe_with_weights
    from agent.values.clock import system_clock

    # Most of a look is waiting for brokers: the stages that follow it are loaded meanwhile.
    loading = load_beside("agent.simulate.evaluation")
    scope = to_scope(loaded.settings)
    with ObserverClients.open(loaded.settings.kafka) as clients, observe_with_weights(loaded.settings) as beside:

        def take() -> Observation:
            observation = beside(lambda: observe(clients, system_clock, scope))
            loading.join()
            return observation

        yield take


def seen_through(observation: Observation, memory: Memory, limits: Limits, *, planning: bool = True) -> StageEvaluation:
    """Every stage's answer, with the time that all of it took."""
    from agent.simulate.evaluation import evaluate

    began = time.monotonic_ns()
    evaluation = evaluate(observation, memory, limits, planning=planning)
    return evaluation._replace(took_ms=observation.took_ms + (time.monotonic_ns() - began) // 1_000_000)


def replayed(path: Path) -> StageEvaluation:
    """The last whole look of a telemetry file, lived through again. Raises ``BadInput``."""
    return _lived_through(_whole_looks(path)[-1])


def recorded(path: Path) -> Iterator[StageEvaluation]:
    """Every whole look of a telemetry file, one after the other. Raises ``BadInput``."""
    yield from map(_lived_through, _whole_looks(path))


def _whole_looks(path: Path) -> list[CycleInputs]:
    from agent.errors import BadInput, reason
    from agent.record.files import read_events
    from agent.simulate.evaluation import recorded_looks

    todo = "Name a file that an agent wrote by its setting record.file."
    left_out: list[str] = []
    try:
        looks = list(recorded_looks(read_events(path), left_out.append))
    except OSError as error:
        raise BadInput(f"{path} cannot be read", why=reason(error), todo=todo) from error
    if not looks:
        raise BadInput(f"{path} holds no complete look", why=_of_last(left_out), todo=todo)
    return looks


def _of_last(left_out: list[str]) -> str:
    return (
        f"events are missing from every look in it; of the last one: {left_out[-1]}" if left_out else "it has no look"
    )


def _lived_through(look: CycleInputs) -> StageEvaluation:
    from agent.simulate.evaluation import replay_look
    from agent.values.rates import RateMeasurement, RateSource, judged

    evaluation = replay_look(look)
    return evaluation._replace(rates=judged(RateMeasurement(RateSource.FILE), evaluation.snapshot))


class ShownLook(NamedTuple):
    """A document, with what is true of every document of its look."""

    document: Any
    look: LookDocument


def shown(
    source: options.SettingsOptions,
    given: options.LookOptions,
    route: str,
    maker: Callable[[StageEvaluation], object],
    *,
    reported: bool = False,
) -> ShownLook:
    """What a command shows: of the agent that ``--agent`` names, by its route, else made from one look."""
    from agent.cli import agent_api

    if agent_api.named_agent() is not None:
        refuse_beside_agent(given.replay, given.duration)
        agent_api.note_options(*source)
        return ShownLook(*agent_api.answer(route))
    evaluation = look_or_replay(source, given.replay, duration=given.duration, reported=reported)
    return shown_of(evaluation, maker)


def shown_of(evaluation: StageEvaluation, maker: Callable[[StageEvaluation], object]) -> ShownLook:
    """A document of one look."""
    from agent.documents.status import look_document

    return ShownLook(maker(evaluation), look_document(evaluation))


def refuse_beside_agent(replay: Path | None, duration: str | None) -> None:
    """Raises BadInput for options that an agent has no use for."""
    from agent.errors import BadInput

    for option, value in (("--replay", replay), ("--for", duration)):
        if value is not None:
            raise BadInput(
                f"{option} and --agent contradict each other",
                why="an agent shows its own last look, with its own rates",
                todo="Leave one of them out.",
            )


def none_of(sentence: str, look: LookDocument, *parts: ObservationPart) -> str:
    """The line in place of a table without rows: that there is nothing, or that nothing was seen."""
    from agent.values.cycle import gaps_among
    from agent.values.observation import ObservationPart

    causes = sorted({f"{gap.part}: {gap.cause}" for gap in gaps_among(gaps_in(look), parts)})
    hidden = ObservationPart.GROUPS in parts and look["rebalancing_groups"]
    causes += [f"{ObservationPart.GROUPS}: rebalancing"] if hidden else []
    return f"{sentence}, as far as was seen ({', '.join(causes)})" if causes else sentence


def gaps_in(look: LookDocument) -> list[Gap]:
    """The gaps of a look."""
    from agent.values.observation import Gap, GapCause, ObservationPart

    return [
        Gap(ObservationPart(one["part"]), GapCause(one["cause"]), one["subject"], one["detail"]) for one in look["gaps"]
    ]


def leave(evaluation: StageEvaluation, exit_code: int = 0) -> NoReturn:
    """End a command that has answered from one look, as `leave_look` does."""
    from agent.values.snapshot import is_partial

    _leave(evaluation.snapshot.gaps, exit_code, partial=is_partial(evaluation.snapshot))


def leave_look(look: LookDocument, exit_code: int = 0, *, gaps: Sequence[Gap] | None = None) -> NoReturn:
    """End a command that has answered: gaps go to stderr in every form, and a partial answer has an exit code.

    ``gaps``: those that the answer itself has not named; all by default.
    """
    _leave(gaps_in(look) if gaps is None else gaps, exit_code, partial=look["partial"])


def _leave(gaps: Sequence[Gap], exit_code: int, *, partial: bool) -> NoReturn:
    from agent.errors import PartialAnswer

    lines = gap_lines(gaps)
    for line in lines[:GAPS_SHOWN]:
        say(line)
    if len(lines) > GAPS_SHOWN:
        say(f"not seen: {len(lines) - GAPS_SHOWN:,} more: rackwise status -o json")
    stop_collecting()
    raise typer.Exit(PartialAnswer.exit_code if partial else exit_code)


def gap_lines(gaps: Iterable[Gap]) -> list[str]:
    """One line for each thing and cause, with all parts that are missing of it, and why."""
    alike: dict[tuple[str, str, str], list[Gap]] = {}
    for gap in gaps:
        # Without a subject the whole part is missing: only the same words tell that it is for the same reason.
        alike.setdefault((gap.subject, gap.cause.value, "" if gap.subject else gap.detail), []).append(gap)
    return [_line(same) for same in alike.values()]


def _line(same: Sequence[Gap]) -> str:
    gap = same[0]
    parts = in_full(dict.fromkeys(one.part.value for one in same))
    return f"not seen: {parts}{' of ' + gap.subject if gap.subject else ''}: {gap.cause} ({gap.detail})"


def unnamed(gaps: Iterable[Gap], findings: Iterable[FindingDocument]) -> list[Gap]:
    """The gaps that none of these findings names."""
    named = {
        (one["evidence"].get("part"), one["evidence"].get("cause")) for one in findings if "gaps" in one["evidence"]
    }
    return [gap for gap in gaps if (gap.part.value, _cause(gap)) not in named]


def _cause(gap: Gap) -> str | None:
    """As the evidence of its finding has it: that of a missing right names no cause."""
    from agent.values.observation import GapCause

    return None if gap.cause is GapCause.NOT_ALLOWED else gap.cause.value


def once_each(findings: Iterable[FindingDocument]) -> list[FindingDocument]:
    """Findings for a table: parts that are missing of the same brokers for the same cause are one row."""
    rows: dict[object, list[FindingDocument]] = {}
    for number, finding in enumerate(findings):
        rows.setdefault(_alike(finding) or number, []).append(finding)
    return [_row(same) if len(same) > 1 else same[0] for same in rows.values()]


def _alike(finding: FindingDocument) -> tuple[object, ...] | None:
    """What findings of missing parts have in common; None where the finding is of another kind, or names too many."""
    from agent.values.finding import FindingReason

    evidence = finding["evidence"]
    names = evidence.get("first")
    if finding["finding"] != FindingReason.PART_MISSING.value or not isinstance(names, list) or not names:
        return None
    return (finding["severity"], evidence["cause"], tuple(names)) if evidence["gaps"] == len(names) else None


def _row(same: Sequence[FindingDocument]) -> FindingDocument:
    from agent.values.number_format import listed
    from agent.values.observation import ObservationPart, effect_of

    evidence = same[0]["evidence"]
    names, parts = evidence["first"], [ObservationPart(str(one["evidence"]["part"])) for one in same]
    of = listed(names) if isinstance(names, list) else ""
    sentence = (
        f"{in_full(parts)} of {of}: {evidence['cause']}, so "
        f"{'; '.join(dict.fromkeys(map(effect_of, parts)))} ({evidence['detail']})"
    )
    return {**same[0], "sentence": sentence}
