"""One of a thing has no plural: counts in sentences are made by `counted`, in the list as {}."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from agent.values.number_format import counted, usd
from tests.docs.sentences import ROOT, sentences

NOUNS = (
    "partitions", "groups", "tasks", "members", "replicas", "brokers", "topics", "reads", "copies", "records",
    "rebalances", "moves", "leaders", "standbys", "throttles", "proposals", "looks", "cycles", "parts", "readers",
    "findings", "batches", "warm-ups", "events", "offsets", "items", "processes", "instances", "threads", "clients",
    "names", "reassignments", "times", "hours", "days", "minutes", "rows", "files", "settings", "patterns", "triggers",
    "pairs",
)  # fmt: skip
# assignors/ is apart: it knows nothing of the project, and what it says is of files that hold many of everything.
NOT_READ = ("assignors.",)
# A count that is never one there, or a noun that is no plural of that number.
FINE = frozenset(
    {
        # a verb
        "agent.detect.groups: group {} reads {} across racks, by Kafka's measure, and could read {}{}",
        (
            "agent.detect.groups: group {} reads {}/s of {}/s across racks, by Kafka's measure and weights of "
            "the pipeline, and could read {}/s"
        ),
        "agent.explain.doctor_groups: it is unknown whether the assignor of {} looks at racks",
        "agent.explain.doctor_coverage: it is unknown whether replica.selector.class={} looks at racks",
        "agent.explain.group: {} moves",
        "agent.explain.topic: its replicas {} on brokers {}: {} in rack {}, while {} could take one",
        "agent.explain.topic: its replicas {} on brokers {}; no rack holds more of them than it must",
        "agent.execute.commands.plan_commands: {}; {} moves {} back{}{}",
        "pipeline.backtest.strategy_replay: strategy {} reads looks otherwise, so it needs whole ones",
        "pipeline.backtest.slices: look {} of cluster {} names {}, which was never written",
        "pipeline.commands.report: --output {} names {}",
        "pipeline.csv_files: {}, which {} names, cannot be read",
        "pipeline.report.first: what group {} reads",
        "pipeline.report.focus: group {} reads topic {}",
        (
            "agent.record.own_topics: {}, so {} {} fewer replicas than topics.replication_factor, and rackwise adds "
            "none later: reassign the partitions and raise min.insync.replicas after the outage"
        ),
        # a name
        "agent.cli.options: rackwise plan {} --reassignment-json moves.json --rollback-json back.json",
        "pipeline.report.advice: Give {} leaders in the racks of its readers",
        # a figure with its unit, or a range
        "agent.act.journal.kafka_journal: another client wrote {} at offsets {} to {}",
        "agent.predict.broker_groups: it does not converge within {} rebalances",
        "agent.values.clock: and no opening within {} days",
        (
            "pipeline.backtest.ranking: The bytes of groups are unknown, in part or in full, for {} group hours; "
            "their cost is not included."
        ),
        "pipeline.jobs.weights: {} records written",
        "pipeline.report.words: {} days",
        # never one
        (
            "agent.web.what_if_answers: The cluster has {} partitions and reads of them, and questions are answered "
            "here up to {}: a longer one would slow the agent's own looks."
        ),
        "agent.act.journal.journal: {} has {} partitions, and only partition 0 counts",
        "agent.process: {} settings cannot be used",  # one mistake has its own sentence
        "agent.execute.reassign.executor_view: {} has replicas {}, not {} as when the move was decided",
        "agent.act.journal.journal_topic: it has {} partitions, and the journal needs exactly one",
        "agent.execute.commands.command_context: {} moves at once are more than execute.max_moves_per_cluster ({})",
        "agent.plan.new_partitions: {} new partitions are too many",
        "agent.telemetry.looks: the events belong to {} looks; give those of one",
    }
)  # fmt: skip
_PLURAL = re.compile(rf"\{{\}} (?!with |of |off |in |no |without |across )(?:[a-z-]+ )?(?:{'|'.join(NOUNS)})\b(?!/s)")


def test_no_sentence_has_a_plural_beside_a_number_that_may_be_one() -> None:
    found = [line for line in sentences() if _PLURAL.search(line.partition(": ")[2]) and not line.startswith(NOT_READ)]
    assert sorted({*found} - FINE) == []


def test_what_is_held_to_be_fine_is_still_said() -> None:
    assert sorted(FINE - {*sentences()}) == []


_PLURAL_VERB = re.compile(
    r"(?: (?:of|with|in) (?:no |the |its |their )?[\w'-]+(?: [\w'-]+)?)? "
    r"(are|were|have|do|send|cross|read|share|become|cover|need|belong|that (?!were\b)\w+[^s\W])\b"
)
"""A verb of many things after their number; what follows a comma is about something else."""
_NOT_OF_THE_COUNT = (
    " with replicas that share", " with copies that share",
    " are being made.", " are not shown while",  # the figures of these groups, the racks of these members
    " are asked for, and at most",  # more than the most, which is not one
    " read",  # looks that were read
)  # fmt: skip
_MODAL = re.compile(r"that (can|cannot|could|may|more|did|must|no|will|would|should)\b")


def test_no_count_of_one_has_the_verb_of_many() -> None:
    """``1 of 3 members that send no rack``: where the number may be one, the verb goes by it."""
    found = [
        f"{path.relative_to(ROOT)}: {shown}"
        for package in ("agent", "pipeline")
        for path in sorted((ROOT / package).rglob("*.py"))
        for shown in _with_plural_verb(ast.parse(path.read_text()))
    ]
    pages = sorted((ROOT / "agent" / "web" / "page" / "templates").glob("*.html"))
    counts = re.compile(r"\|counted\((\"[^\"]*\"|[^()\"]*)\) \}\}(?P<then>[^{<]*)")
    found += [
        f"{page.name}: {one[0]}"
        for page in pages
        for one in counts.finditer(page.read_text())
        if _is_of_many(one["then"])
    ]
    assert not found, "\n".join(found)


def _is_of_many(words: str) -> bool:
    """Whether these words after a count begin with a verb of many."""
    fine = any(words == one or (len(one) > 6 and words.startswith(one)) for one in _NOT_OF_THE_COUNT)
    return bool(_PLURAL_VERB.match(words)) and not _MODAL.search(words) and not fine


def _with_plural_verb(tree: ast.Module) -> Iterator[str]:
    """Texts in which a count with one noun alone is followed by a verb of many."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        counts = {
            name.id
            for given in ast.walk(function)
            if isinstance(given, ast.Assign) and _is_count(given.value)
            for name in given.targets
            if isinstance(name, ast.Name)
        }
        for text in ast.walk(function):
            if isinstance(text, ast.JoinedStr):
                for part, then in zip(text.values, text.values[1:], strict=False):
                    is_count = isinstance(part, ast.FormattedValue) and (
                        _is_count(part.value) or (isinstance(part.value, ast.Name) and part.value.id in counts)
                    )
                    words = then.value if isinstance(then, ast.Constant) else ""
                    if is_count and _is_of_many(words):
                        yield ast.unparse(text)


def _is_count(value: ast.expr) -> bool:
    """Whether it is a count with a noun and without a verb, which has two forms."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return False
    with_verb = any(isinstance(one, ast.Constant) and " " in str(one.value) for one in value.args[1:])
    return value.func.id in ("counted", "of_all") and not with_verb and not any(map(_is_starred, value.args))


def _is_starred(value: ast.expr) -> bool:
    return isinstance(value, ast.Starred)


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 batches"), (1, "1 batch"), (2, "2 batches"), (1_200, "1,200 batches")]
)
def test_a_count_has_the_noun_that_belongs_to_it(number: int, words: str) -> None:
    assert counted(number, "batch", "batches") == words


@pytest.mark.parametrize(
    ("dollars", "words"),
    [
        (0.0, "$0.00"), (-0.0, "$0.00"), (3.1, "$3.10"), (1_234.5, "$1,234.50"), (0.01, "$0.01"), (0.004, "$0.0040"),
        (0.000_012_3, "$0.000012"), (1e-9, "< $0.000001"), (-0.5, "\N{MINUS SIGN}$0.50"),
    ],
)  # fmt: skip
def test_money_has_two_digits_that_count_and_no_sign_of_nothing(dollars: float, words: str) -> None:
    assert usd(dollars) == words
