"""Names that are no longer shown: gone, hidden, or shown wrongly; by what a second witness says."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from agent.observe.cluster_details import NameVisibility, VanishedNames, names_to_ask, vanished_names
from agent.values.observation import GapCause, ObservationPart

TEN = frozenset(f"t{number}" for number in range(10))
ALL = tuple(sorted(TEN))
NOT_ALLOWED, DOUBTED = GapCause.NOT_ALLOWED, GapCause.DOUBTED


class Expected(NamedTuple):
    """What is to be believed."""

    gone: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    causes: tuple[GapCause, ...] = ()


def judged(
    shown: frozenset[str],
    words: dict[str, NameVisibility],
    *,
    complete: bool = True,
    share: float = 0.2,
    known: frozenset[str] = TEN,
) -> VanishedNames:
    return vanished_names(ObservationPart.TOPICS, known, shown, words, complete=complete, shrink_share=share)


@pytest.mark.parametrize(
    ("missing", "words", "complete", "expected"),
    [
        pytest.param((), {}, True, Expected(), id="nothing vanished"),
        pytest.param(
            ("t1",), {"t1": NameVisibility.GONE}, True, Expected(gone=("t1",)), id="one was deleted, a broker says so"
        ),
        pytest.param(
            ("t1",),
            {"t1": NameVisibility.HIDDEN},
            True,
            Expected((), ("t1",), (NOT_ALLOWED,)),
            id="one may no longer be seen",
        ),
        pytest.param(
            ("t1",),
            {"t1": NameVisibility.THERE},
            True,
            Expected((), ("t1",), (DOUBTED,)),
            id="another broker still shows it",
        ),
        pytest.param(("t1",), {}, True, Expected(), id="one vanished, and no broker could be asked"),
        pytest.param(("t1",), {}, False, Expected((), ("t1",)), id="one vanished while a broker was silent"),
        pytest.param(
            ("t1", "t2", "t3"),
            {},
            True,
            Expected((), ("t1", "t2", "t3"), (DOUBTED,)),
            id="many vanished without a witness",
        ),
        pytest.param(ALL, dict.fromkeys(ALL, NameVisibility.GONE), True, Expected(ALL), id="all were really deleted"),
        pytest.param(
            ALL,
            dict.fromkeys(ALL, NameVisibility.HIDDEN),
            True,
            Expected((), ALL, (NOT_ALLOWED,)),
            id="all rights were lost",
        ),
        pytest.param(
            ("t1", "t2", "t3", "t4"),
            {"t1": NameVisibility.GONE, "t2": NameVisibility.HIDDEN, "t3": NameVisibility.THERE},
            True,
            Expected(("t1",), ("t2", "t3"), (NOT_ALLOWED, DOUBTED)),
            id="each told apart; the fourth is within the share that may vanish",
        ),
    ],
)
def test_what_is_believed_of_names_that_vanished(
    missing: tuple[str, ...], words: dict[str, NameVisibility], complete: bool, expected: Expected
) -> None:
    judgement = judged(TEN - set(missing), words, complete=complete)
    assert judgement.gone == frozenset(expected.gone)
    assert judgement.hidden == frozenset(expected.hidden)
    assert [gap.cause for gap in judgement.gaps] == list(expected.causes)
    assert all(gap.subject for gap in judgement.gaps), "an empty subject would say that the whole part is missing"


def test_the_sentences_name_a_few_and_count_the_rest() -> None:
    lost = judged(frozenset(), dict.fromkeys(TEN, NameVisibility.HIDDEN)).gaps[0]
    assert lost.subject == "10 topics"
    assert lost.detail == (
        "10 topics (t0, t1, t2 and 7 more) are no longer visible: DESCRIBE is denied; grant DESCRIBE on topics"
    )
    one = judged(TEN - {"t4"}, {"t4": NameVisibility.HIDDEN}).gaps[0]
    assert (one.subject, one.detail) == ("t4", "t4 is no longer visible: DESCRIBE is denied; grant DESCRIBE on topics")


def test_what_a_witness_said_about_names_that_are_shown_does_not_matter() -> None:
    assert judged(TEN, {"t1": NameVisibility.GONE, "unknown": NameVisibility.HIDDEN}) == VanishedNames(
        frozenset(), frozenset(), ()
    )


def test_no_more_names_are_asked_about_than_the_limit() -> None:
    assert names_to_ask(TEN, frozenset({"t0", "new"}), 3) == ("t1", "t2", "t3")
    assert names_to_ask(frozenset(), TEN, 3) == ()
