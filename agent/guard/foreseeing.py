"""What does a verdict mean for an approval that is given now? So that the answer says what the agent is going to do.

Pure.
"""

from __future__ import annotations

from agent.execute.commanded import Foreseen
from agent.values.verdict import Allow, Hold, Verdict


def foreseen(verdict: Verdict) -> Foreseen:
    """A refused proposal does not come: it is proposed anew, and approved then."""
    match verdict:
        case Allow():
            return Foreseen(allowed=True, sentence="")
        case Hold():
            sentence = verdict.sentence.removeprefix("held: ")
            return Foreseen(allowed=False, sentence=sentence, comes=verdict.passes, until_ms=verdict.until_ms)
        case _:
            return Foreseen(allowed=False, sentence=verdict.sentence.removeprefix("refused: "), comes=False)
