"""What an operator can read is kept as a list, so that review sees a change of wording; and its words are plain."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest

from agent.values.finding import FindingReason
from agent.values.proposal import ProposalReason
from agent.web.metrics import METRICS
from config.catalogue import catalogue
from tests.cli.documents import commands
from tests.docs import sentences as listing
from tests.docs.sentences import GOLDEN, PLACEHOLDER, TO_REWRITE, forbidden_words, kept, offending, sentences


@pytest.fixture(scope="module")
def now() -> list[str]:
    return sentences()


def test_every_sentence_that_an_operator_can_see_is_in_the_list(now: list[str]) -> None:
    changed = list(difflib.unified_diff(kept(GOLDEN), now, "tests/golden/sentences.txt", "the code", n=0, lineterm=""))
    assert not changed, "\n".join(["Sentences changed. If they read well: make sentences, and commit.", *changed])


def test_sentences_hold_no_forbidden_word_but_for_those_still_to_be_rewritten(now: list[str]) -> None:
    new = [f"{line}   <- {', '.join(forbidden_words(line))}" for line in offending(now) if line not in kept(TO_REWRITE)]
    assert not new, "\n".join(["Say it in plain Kafka English (FORBIDDEN in tests/docs/sentences.py):", *new])


def test_the_list_of_sentences_to_rewrite_only_shrinks(now: list[str]) -> None:
    done = sorted({*kept(TO_REWRITE)} - {*offending(now)})
    assert not done, "\n".join(["These are rewritten, so they leave the list: make sentences", *done])


def test_the_list_is_read_off_all_kinds_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = '''
"""A docstring of a module is not in it."""
from enum import Enum
KEY = "look_taken"
LOOK_UP = {"key": "value of a table", Reason.ONE: "chosen"}
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait.")]
class Reason(Enum):
    """A docstring of a class."""
    ONE = "reason"
class GivenSettings(BaseModel):
    """A docstring of a model."""
    rate: int = 1
    """The sentence of a setting."""
def told(number: int, option: Annotated[str, typer.Option(help="What it is.")] = "") -> str:
    """A docstring of a function."""
    if number == 0:
        return "nothing"
    log.info("look_taken", sentence=f"{number} {'look' if number == 1 else 'looks'} of {topic} came"
        " in time")
    re.compile("a pattern of words")
    return row["not a text"] or f"{topic}-{number}"
'''
    path = tmp_path / "agent" / "made_up.py"
    path.parent.mkdir()
    path.write_text(source)
    monkeypatch.setattr(listing, "ROOT", tmp_path)
    assert sorted(text for _, text in listing._of_file(path)) == sorted(
        [
            "value of a table",
            "chosen",
            "Seconds to wait.",
            "reason",
            "The sentence of a setting.",
            "What it is.",
            "nothing",
            "{} {} of {} came in time",
            "look",
            "looks",
        ]
    )


def test_a_forbidden_word_is_found_in_the_text_and_not_in_the_name_of_the_module() -> None:
    assert offending(["agent.who: the plan ends", "agent.web: Nobody has approved it", "agent.a: whole of it"]) == [
        "agent.web: Nobody has approved it"
    ]


def test_what_is_told_of_settings_options_metrics_and_findings_is_in_the_list(now: list[str]) -> None:
    texts = {line.partition(": ")[2] for line in now}
    told = [entry.sentence for entry in catalogue()]
    told += [option.help for _, command in commands() for option in command.params if getattr(option, "help", None)]
    told += [metric.sentence for metric in METRICS]
    told += [reason.value for reason in (*FindingReason, *ProposalReason)]
    flat = {" ".join(text.split()) for text in told} - texts
    made = [re.escape(text).replace(r"\{\}", ".*") for text in texts if text.count(PLACEHOLDER) == 1 and len(text) > 30]
    assert len(told) > 300
    assert [text for text in sorted(flat) if not any(re.fullmatch(one, text) for one in made)] == []
