"""A recorded campaign over every decoder and reader: ``python -m tests.fuzz.campaign --inputs 100000000``.

Work is done in rounds. A round is a target and the number of its seed, from which all of its inputs follow; each that
is finished is a line of the record, and a campaign that is started again goes on after the last. An input that several
readers are given counts once for each of them. Found is an exception that is not the reader's own, and an input that
takes longer than 50 ms and 50 ms for each of its MiB; such an input is kept beside the record.

    --record FILE    where the record is (build/fuzz/campaign.jsonl)
    --inputs N       readings in all, those of the record included (default 1,000,000)
    --only NAME      this target only; may be given again
    --processes N    processes beside each other (default 1)
    --minutes N      begin no round after that time
    --table          print the record as a table and do nothing else
    --replay NAME N  do one round again
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.fuzz.targets import Reader, Target, targets

ROUND = 20_000
"""Inputs that are made in one round."""
_BATCH = 50
_ALLOWED_S = 0.05
_MIB = 1 << 20


class Round(NamedTuple):
    """What came of one seed."""

    target: str
    seed: int
    inputs: int
    """Readings: made inputs times readers."""
    read: int
    """Of those, which gave a value; the others were refused with the reader's own error."""
    crashes: int
    slow: int
    worst_ms: float
    """CPU time of the slowest input."""
    cpu_s: float


class Finding(NamedTuple):
    """An input that must not be."""

    what: str
    data: bytes


def run_round(target: Target, seed: int, made: int = ROUND) -> tuple[Round, tuple[Finding, ...]]:
    """One round. The same seed makes the same inputs."""
    r = Random(f"{target.name}/{seed}")
    findings: list[Finding] = []
    read = 0
    worst_s = 0.0
    began = time.process_time()
    for first in range(0, made, _BATCH):
        batch = [target.make(r) for _ in range(min(_BATCH, made - first))]
        for reader in target.readers:
            before = time.process_time()
            read += sum(_fed(reader, batch, findings))
            if time.process_time() - before > _ALLOWED_S:
                worst_s = max(worst_s, _slowest(reader, batch, findings))
    crashes = sum(1 for finding in findings if not finding.what.startswith("slow"))
    cpu_s = time.process_time() - began
    inputs = made * len(target.readers)
    result = Round(
        target.name, seed, inputs, read, crashes, len(findings) - crashes, round(worst_s * 1e3, 1), round(cpu_s, 2)
    )
    return result, tuple(findings)


def _fed(reader: Reader, batch: Iterable[bytes], findings: list[Finding]) -> Iterator[bool]:
    for data in batch:
        try:
            yield reader(data)
        except Exception as error:  # noqa: BLE001 whatever it raises is what is looked for
            findings.append(Finding(f"{type(error).__name__}: {error}"[:300], data))
            yield False


def _slowest(reader: Reader, batch: Iterable[bytes], findings: list[Finding]) -> float:
    """The batch took long: input by input, without the collector's walks, and what is slow thrice."""
    worst_s = 0.0
    gc.disable()
    try:
        for data in batch:
            took_s = min(_took_s(reader, data) for _ in range(3))
            worst_s = max(worst_s, took_s)
            if took_s > _ALLOWED_S * (1 + len(data) / _MIB):
                findings.append(Finding(f"slow: {took_s * 1e3:.0f} ms", data))
    finally:
        gc.enable()
    return worst_s


def _took_s(reader: Reader, data: bytes) -> float:
    before = time.process_time()
    list(_fed(reader, [data], []))
    return time.process_time() - before


@cache
def _by_name() -> dict[str, Target]:
    return {target.name: target for target in targets()}


def _one(name: str, seed: int) -> tuple[Round, tuple[Finding, ...]]:
    return run_round(_by_name()[name], seed)


def read_record(record: Path) -> list[Round]:
    """The rounds that are finished; a line that was cut off is none."""
    lines = record.read_text("utf-8").splitlines(keepends=True) if record.exists() else []
    return [Round(**json.loads(line)) for line in lines if line.endswith("\n")]


def _line(result: Round) -> str:
    return json.dumps(result._asdict()) + "\n"


def table(rounds: Sequence[Round]) -> str:
    """One row for each target, as docs/fuzz.md has it."""
    names = dict.fromkeys(one.target for one in rounds)
    rows = [_row(name, [one for one in rounds if one.target == name]) for name in names]
    head = "| target | seeds | readings | of them read | crashes | over 50 ms/MiB | slowest (ms) | CPU (s) |"
    return "\n".join([head, "|---|---|---:|---:|---:|---:|---:|---:|", *rows, _row("all", rounds, seeds=False)])


def _row(name: str, rounds: Sequence[Round], *, seeds: bool = True) -> str:
    last = max((one.seed for one in rounds), default=0)
    return (
        f"| {name} | {f'0 to {last}' if seeds else ''} | {sum(one.inputs for one in rounds):,} "
        f"| {sum(one.read for one in rounds):,} | {sum(one.crashes for one in rounds)} "
        f"| {sum(one.slow for one in rounds)} | {max((one.worst_ms for one in rounds), default=0.0):g} "
        f"| {sum(one.cpu_s for one in rounds):,.0f} |"
    )


def campaign(record: Path, names: Sequence[str], inputs: int, processes: int, until: float) -> int:
    """Rounds until so many readings are recorded; how many findings there are among all of them."""
    record.parent.mkdir(parents=True, exist_ok=True)
    done = read_record(record)
    record.write_text("".join(_line(one) for one in done), "utf-8")
    total = sum(one.inputs for one in done if one.target in names)
    finished = {(one.target, one.seed) for one in done}
    wanted = ((name, seed) for seed in count() for name in names if (name, seed) not in finished)
    found = sum(one.crashes + one.slow for one in done)
    with ProcessPoolExecutor(processes) as pool, record.open("a", encoding="utf-8") as file:
        running: set[Future[tuple[Round, tuple[Finding, ...]]]] = set()
        promised = total
        while running or (promised < inputs and time.monotonic() < until):
            while len(running) < processes and promised < inputs and time.monotonic() < until:
                name, seed = next(wanted)
                running.add(pool.submit(_one, name, seed))
                promised += ROUND * len(_by_name()[name].readers)
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                result, findings = future.result()
                file.write(_line(result))
                file.flush()
                found += len(findings)
                _keep(record, result, findings)
    return found


def _keep(record: Path, result: Round, findings: Sequence[Finding]) -> None:
    for number, finding in enumerate(findings[:20]):
        path = record.with_name(f"{result.target.replace(' ', '-')}-{result.seed}-{number}.bin")
        path.write_bytes(finding.data)
        print(f"{result.target}, seed {result.seed}: {finding.what} ({path})", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, default=Path("build/fuzz/campaign.jsonl"))
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--replay", nargs=2, metavar=("NAME", "SEED"))
    given = parser.parse_args(arguments)
    if given.replay is not None:
        result, findings = _one(given.replay[0], int(given.replay[1]))
        print(result, *(finding.what for finding in findings), sep="\n")
        return bool(findings)
    found = 0
    if not given.table:
        until = time.monotonic() + 60 * given.minutes
        found = campaign(given.record, given.only or list(_by_name()), given.inputs, given.processes, until)
    print(table(read_record(given.record)))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
