"""What is fuzzed: every decoder and every reader of foreign records, each with whole inputs to begin from.

A reader says whether it has read the input or refused it by its own documented error; anything else that it raises is
a finding. What it has read goes on to what the agent or a command does with it first.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple

from agent.act.inbox import command_of
from agent.act.journal.file_journal import _transaction
from agent.decode.members import decode_members
from agent.decode.values import DecodedMember, Undecodable, UndecodableFieldError, from_modified_utf8
from agent.execute.commands.apply import apply_commands
from agent.execute.commands.command_context import CommandOrigin
from agent.journal import plan_entries
from agent.journal.approvals import plan_hash
from agent.journal.commands import CommandVerb, OperatorCommand, command_to_json
from agent.journal.entries import Entry, JournalWrite, UnreadableEntryError, entry_of, to_bytes
from agent.memory.codec import UnreadableMemoryError, memory_from_json, memory_to_json
from agent.observe.cluster_listing import _Unusable, parse_application_lags
from agent.observe.context import TableForm
from agent.observe.locator_table import read_table
from agent.propose.codec import BadReassignmentFile, proposal_to_bytes, read_reassignment_json
from agent.record.proposals import proposals_in, standing_in
from agent.record.reader import ConsumerRecord, newest_memory
from agent.record.weights import KeptWeights, read_record
from agent.simulate.evaluation import evaluate
from agent.telemetry.changes import whole_look
from agent.telemetry.events import TelemetryEvent, from_lines, to_lines
from agent.telemetry.looks import IncompleteLookError, observation_from_events
from agent.telemetry.topic_records import CREATED, VOID, to_records
from agent.values.cycle import figures_rest_on
from agent.values.limits import Limits
from agent.values.memory import Memory, after_restart
from agent.values.observation import Observation, RawMember
from agent.values.proposal import Proposal
from agent.values.reassignment import Batch, PartitionEnd, PartitionEndReason, ReassignmentPlan
from agent.values.reassignment import ReassignmentTarget as Move
from agent.values.typed_json import ForeignJsonError, UnreadableError, read_json
from agent.wire.failure import CallFailed
from assignors.cases.registry import read_cases
from assignors.optimal.columns import read_columns
from assignors.problem import BadProblem, TopicPartition
from config.properties import parse_properties
from config.setting_mistake import SettingMistake
from config.yaml_file import yaml_value
from tests.assignors.kafka.golden import FOLDER as GOLDEN
from tests.assignors.problem_files import FOLDER as PROBLEMS
from tests.builders import Run
from tests.decode.assignments import to_modified_utf8
from tests.decode.generate import LAYOUTS, NAMES
from tests.decode.test_members import ASSIGNMENT, SUBSCRIPTION, assigned, group, member, observation, subscribed
from tests.fuzz.mutate import mutated, mutated_json
from tests.memory.test_remember import a_rich_memory
from tests.record.test_changes import written
from tests.record.test_proposals import a_proposal, as_read, step
from tests.record.test_telemetry import SMALL
from tests.recorded_looks import observation_to_events
from tests.snapshots import NOW_MS
from tests.telemetry.test_weights import BILLING, ORDERS

Reader = Callable[[bytes], bool]


class Target(NamedTuple):
    """Where broken inputs come from, and who reads each of them."""

    name: str
    make: Callable[[Random], bytes]
    readers: tuple[Reader, ...]


def targets() -> tuple[Target, ...]:
    """Every one, in order; building the whole inputs takes a second."""
    return (*_decoders(), *_topics(), *_files())


# --- members' bytes ---------------------------------------------------------------------------------------------


def _decoders() -> tuple[Target, ...]:
    r = Random(1)
    blobs = tuple(layout.encode(layout.make(r)) for layout in LAYOUTS for _ in range(40))
    texts = tuple(to_modified_utf8(name * times) for name in NAMES for times in (1, 3))
    whole = (subscribed(), assigned(), *blobs)
    protocols = ("range", "sticky", "cooperative-sticky", "stream", "mine")
    return (
        Target("decoders", partial(mutated, seeds=blobs), tuple(partial(_decoded, layout) for layout in LAYOUTS)),
        Target("text of Java", partial(mutated, seeds=texts), (_text,)),
        Target("members", partial(mutated, seeds=whole), tuple(partial(_member, name) for name in protocols)),
    )


def _decoded(layout: Any, data: bytes) -> bool:
    value = layout.decode(data)
    if isinstance(value, Undecodable):
        expect(0 <= value.offset <= len(data), f"a place outside of the bytes: {value}")
        return False
    expect(layout.decode(layout.encode(value)) == value, f"{value} does not come back")
    return True


def _text(data: bytes) -> bool:
    try:
        text = from_modified_utf8(data, 0, "a text")
    except UndecodableFieldError as broken:
        expect(isinstance(broken.value, Undecodable), "no reason")
        return False
    expect(from_modified_utf8(to_modified_utf8(text), 0, "a text") == text, f"{text!r} does not come back")
    return True


def _member(protocol: str, data: bytes) -> bool:
    middle = len(data) // 2
    broken = RawMember("broken", None, "client", "/10.0.0.1", data[:middle], data[middle:])
    healthy = member(subscribed(), assigned(), "healthy")
    read = decode_members(observation(group(broken, healthy, protocol=protocol))).groups[0].members
    expect(read[1] == _alone(protocol), f"the healthy member was read as {read[1]}")
    return not isinstance(read[0].subscription, Undecodable)


@cache
def _alone(protocol: str) -> DecodedMember:
    healthy = member(subscribed(), assigned(), "healthy")
    (read,) = decode_members(observation(group(healthy, protocol=protocol))).groups[0].members
    expect((read.subscription, read.assignment) == (SUBSCRIPTION, ASSIGNMENT), "the healthy member is not healthy")
    return read


# --- topics -----------------------------------------------------------------------------------------------------


def _topics() -> tuple[Target, ...]:
    proposal = a_proposal()
    commands = [
        command_to_json(OperatorCommand(f"c{number}", verb, "ann@desk", NOW_MS, proposal.id, "h", "why", 1, 2, 1, 1))
        for number, verb in enumerate(CommandVerb)
    ]
    entries = [
        to_bytes(Entry("plan/p-1", "plan", {"state": "open", "approved_by": "ann", "parts": [1]}, NOW_MS, 3, 7)),
        to_bytes(Entry("pause", "paused", {"who": "ann", "reason": "", "since_ms": NOW_MS}, NOW_MS, 3, 8)),
    ]
    proposals = [proposal_to_bytes(a_proposal(name)) for name in ("orders", "zahlungen/ä")]
    lives = [record.value or b"" for record in step(dict(step(None, proposal).standing)).records]
    run, _ = a_rich_memory()
    looks = [line for event in observation_to_events(SMALL, run.memory, Limits(), look="l") for line in to_lines(event)]
    full, changed = written(SMALL, replace(SMALL, end_offsets=dict.fromkeys(SMALL.end_offsets, 9)), run.memory)
    by_changes = tuple(line for event in changed for line in to_lines(event))
    weights = [value for reading in (ORDERS, BILLING) for _, value in to_records(reading)]
    return (
        _json("commands", map(json.dumps, commands), _command),
        _json("journal", (*entries, *map(to_bytes, _healthy_plan().values())), _entry, _journal_line, _plans),
        _json("proposals", (*proposals, *lives), partial(_proposal, CREATED), partial(_proposal, VOID)),
        _json("telemetry", looks, partial(_telemetry, tuple(looks)), _restart),
        _json("telemetry by changes", by_changes, partial(_changes, full, by_changes)),
        _json("weights", weights, partial(_weights, ORDERS), partial(_weights, BILLING)),
        _json("memory", [memory_to_json(run.memory), memory_to_json(Memory())], _memory),
        *_looks(),
    )


def _command(data: bytes) -> bool:
    found = command_of(data)
    if found is None:
        return False
    command = _InboxEntry(found[0], found[1], JournalWrite("command-position", "offset", {"next": 1}))
    pause = _InboxEntry(
        "next", command_to_json(OperatorCommand("next", CommandVerb.PAUSE, "ann", NOW_MS)), command.after
    )
    obeyed = apply_commands([command, pause], {}, (a_proposal(),), Limits(), NOW_MS)
    expect(
        any(write.key == "pause" and write.value is not None for write in obeyed.writes), "the next one has no answer"
    )
    for write in obeyed.writes:
        if write.value is not None:
            to_bytes(Entry(write.key, write.kind, write.value, NOW_MS, 1, 1))
    return True


class _InboxEntry(NamedTuple):
    id: str
    value: Any
    after: JournalWrite
    came: CommandOrigin = CommandOrigin()


def _entry(data: bytes) -> bool:
    try:
        entry = entry_of("plan/p-1", data)
    except UnreadableEntryError:
        return False
    expect(entry_of("plan/p-1", to_bytes(entry)) == entry, f"{entry} does not come back")
    return True


@cache
def _healthy_plan() -> dict[str, Entry]:
    """A plan with its partitions and a batch, by key."""
    at = [TopicPartition("orders", number) for number in range(3)]
    targets = tuple(Move(one, "id", (1, 2), (1, 3), 1_000, 2.5, gain=1.0) for one in at)
    batch = Batch("p-1", 1, targets[:2], cancelling=(at[0],), ends=(PartitionEnd(at[1], PartitionEndReason.DONE),))
    lines = [
        line for change in (ReassignmentPlan("p-1", targets), batch) for line in plan_entries.change_writes(change)
    ]
    return {line.key: Entry(line.key, line.kind, line.value or {}, NOW_MS, 3, seq) for seq, line in enumerate(lines)}


def _plans(data: bytes) -> bool:
    """Each record of a plan replaced by the bytes: the plan is read, or the journal says that it cannot be."""
    healthy, known = _healthy_plan(), False
    for key in healthy:
        try:
            view = {**healthy, key: entry_of(key, data)}
            records, ended = plan_entries.open_records(view), plan_entries.compaction_writes(view)
        except (UnreadableEntryError, UnreadableError):
            continue
        known = True
        for change in (*records.plans, *records.batches):
            plan_entries.changed(view, [change])
        expect(all(line.value is None for line in ended), "what is tidied is not deleted")
    return known


def _journal_line(data: bytes) -> bool:
    return _transaction(b"%08x %s\n" % (zlib.crc32(data), data)) is not None


def _proposal(kind: str, data: bytes) -> bool:
    records = as_read(step(None, a_proposal("a", 1), a_proposal("z", 2)).records)
    source = records[0].headers["ce_source"]
    junk = ConsumerRecord(0, 7, "m", data, {"ce_source": source, "ce_type": kind})
    found = proposals_in([records[0], junk, records[1]], "c/1")
    expect(len(found.states) + len(found.left_out) == len(records) + 1, "a record is lost")
    proposals = tuple(state for state in found.states if isinstance(state, Proposal))
    figures_rest_on(proposals)
    for proposal in proposals:
        plan_hash(proposal)
    expect(records[0].key in standing_in([records[0], junk], "c/1"), "another proposal is hidden")
    return not found.left_out


def _telemetry(whole: tuple[str, ...], data: bytes) -> bool:
    left_out: list[str] = []
    list(from_lines([data, data], left_out.append))
    try:
        observation_from_events(from_lines([*whole[1:], data]))
    except (UnreadableError, IncompleteLookError):
        return False
    return not left_out


def _changes(full: list[TelemetryEvent], own: tuple[str, ...], data: bytes) -> bool:
    """A record among those of a look by changes, and one in place of the full look's last."""
    try:
        observation_from_events(whole_look(from_lines([*own, data]), full))
        observation_from_events(whole_look(from_lines(own), [*full[:-1], *from_lines([data])]))
    except (UnreadableError, IncompleteLookError):
        return False
    return True


def _restart(data: bytes) -> bool:
    left_out: list[str] = []
    newest_memory([data], "c", left_out.append)
    return not left_out


def _weights(reading: Any, data: bytes) -> bool:
    ((key, _),) = to_records(reading)
    kept = read_record(key.encode(), data)
    return kept.problem is None


def _looks() -> tuple[Target, ...]:
    """What was read goes through a whole look: a memory or a weight that ends one would end each after it."""
    run, answers = a_rich_memory()
    seen = answers.at(130.0)
    cluster, now_ms = seen.cluster_id, seen.taken_ms
    topic = ORDERS._replace(cluster=cluster, computed_ms=now_ms, to_ms=now_ms)
    group = BILLING._replace(cluster=cluster, computed_ms=now_ms, to_ms=now_ms, group="app")
    records_by_kind = [(one.subject.kind, pair) for one in (topic, group) for pair in to_records(one)]
    return (
        _json("memory in a look", [memory_to_json(run.memory)], partial(_memory_in, seen, run.limits)),
        *(
            _json(f"weights of a {kind} in a look", [value], partial(_weights_in, seen, run, key))
            for kind, (key, value) in records_by_kind
        ),
    )


def _memory_in(seen: Observation, limits: Limits, data: bytes) -> bool:
    try:
        memory = memory_from_json(data.decode("utf-8", "surrogatepass"))
    except (UnreadableMemoryError, UnicodeDecodeError):
        return False
    evaluate(seen, after_restart(memory, seen.taken_ms, seen.monotonic_ms), limits)
    return True


def _weights_in(seen: Observation, run: Run, key: str, data: bytes) -> bool:
    kept = KeptWeights("weights")
    record = read_record(key.encode(), data)
    if record.problem is not None:
        return False
    kept.put(key.encode(), record)
    evaluate(replace(seen, weights=kept.reading(seen.cluster_id)), run.memory, run.limits)
    return True


def _memory(data: bytes) -> bool:
    try:
        memory = memory_from_json(data.decode("utf-8", "surrogatepass"))
    except (UnreadableMemoryError, UnicodeDecodeError):
        return False
    after_restart(memory, NOW_MS, 5)
    memory_to_json(memory)
    return True


# --- files and answers ------------------------------------------------------------------------------------------


def _files() -> tuple[Target, ...]:
    placements = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}'
    lags = {
        "v": 1,
        "application": "orders",
        "observed_ms": NOW_MS,
        "instances": [{"process_id": "p", "rack": "a", "tasks": [{"task": "0_1", "role": "active", "lag": 0}]}],
    }
    cases = json.loads(gzip.decompress((GOLDEN / "consumer.range.json.gz").read_bytes()))
    case = min(cases["cases"], key=lambda one: len(json.dumps(one)))
    yaml = (
        b"poll: {interval: 10s}\nkafka:\n  bootstrap.servers: a:1\n",
        b"a: &a [1, 2.5]\nb: {<<: {c: *a}, d: !!int 3}\n",
        b"broker: {1: a}\nhost.NAME: b\n",
    )
    properties = (b"bootstrap.servers=a:1\nx = \\u0041\\\n  b\n# c\n", b"a:b\nhost.NAME=a\nbroker.1 r1\n")
    return (
        _json("placements", [placements], _placements),
        _json("application lags", [json.dumps(lags)], _lags),
        _json("problems", [json.dumps({**cases, "cases": [case]}), smallest_problem()], _problem),
        Target("YAML", partial(mutated, seeds=yaml), (_yaml, partial(_table, TableForm.YAML))),
        Target("properties", partial(mutated, seeds=properties), (_properties, partial(_table, TableForm.PROPERTIES))),
    )


def smallest_problem() -> bytes:
    """Of the files that ``optimize`` is tested with."""
    files = (gzip.decompress(path.read_bytes()) for path in PROBLEMS.glob("*.json.gz"))
    return min(files, key=len)


def _placements(data: bytes) -> bool:
    try:
        read_reassignment_json(data)
    except BadReassignmentFile:
        return False
    return True


def _lags(data: bytes) -> bool:
    try:
        parse_application_lags(data)
    except _Unusable:
        return False
    return True


def _problem(data: bytes) -> bool:
    try:
        document = read_json(data)
    except ForeignJsonError:
        return False
    read = 0
    for reader in (read_cases, read_columns):
        try:
            reader(document)
            read += 1
        except BadProblem:
            pass
    return read > 0


def _yaml(data: bytes) -> bool:
    try:
        json.dumps(yaml_value(data), default=str, skipkeys=True)
    except ValueError:
        return False
    return True


def _properties(data: bytes) -> bool:
    try:
        parse_properties(data.decode("iso-8859-1"))
    except SettingMistake:
        return False
    return True


def _table(form: TableForm, data: bytes) -> bool:
    try:
        read_table(data, form)
    except CallFailed:
        return False
    return True


# --- building ---------------------------------------------------------------------------------------------------


def _json(name: str, seeds: Iterable[str | bytes], *readers: Reader) -> Target:
    whole = tuple(seed.encode() if isinstance(seed, str) else seed for seed in seeds)
    documents = tuple(json.loads(seed) for seed in whole)
    return Target(name, partial(mutated_json, documents=documents, seeds=whole), readers)


def expect(holds: bool, sentence: str) -> None:
    """Raises AssertionError."""
    if not holds:
        raise AssertionError(sentence)
