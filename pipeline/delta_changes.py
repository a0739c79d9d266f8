"""Changes of Delta tables that several processes write: the one that comes second tries again.

Delta lets a change through where it can tell that the other's has no part in it. Where it cannot, and where an object
store refuses the second file of a version, the change is made anew, from what the table is then. Invariant: a change
that is refused has changed nothing. A commit whose answer was lost looks like one that was refused; so what is tried
again must come to the same when it is there already: an append by the number of its batch, the others as they replace
rows.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

_SECOND = re.compile(
    r"DELTA_CONCURRENT|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|DELTA_PATH_EXISTS|DELTA_TABLE_ALREADY_EXISTS"
    r"|Concurrent(Append|Write|Transaction|DeleteRead|DeleteDelete|Modification)Exception"
    r"|(Metadata|Protocol)ChangedException|RemoteFileChangedException|FileAlreadyExistsException|PreconditionFailed"
)
_TRIES = 12
_PAUSE_S = 0.2
_LONGEST_S = 5.0


def settled(change: Callable[[bool], None]) -> None:
    """Make the change, and again while other writers are first; ``change`` takes whether it is the first try."""
    for number in range(_TRIES):
        try:
            change(number == 0)
        except Exception as error:  # Spark's errors have no common base: what Java raises has one of Py4J
            if number == _TRIES - 1 or not is_second(error):
                raise
            time.sleep(random.uniform(0.5, 1) * min(_LONGEST_S, _PAUSE_S * 2**number))  # noqa: S311 no secret
        else:
            return


def is_second(error: Exception) -> bool:
    """Whether another writer changed the table first."""
    return _SECOND.search(f"{type(error).__name__} {error}"[:20_000]) is not None
