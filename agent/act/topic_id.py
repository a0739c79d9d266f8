"""Is a topic the one that it was? By its id (KIP-516), where brokers report one.

Brokers that know no ids report zero for every topic: such an id is none, and equals no other.
"""

from __future__ import annotations

UNKNOWN = ""
"""The id of a topic of which none is reported."""
_ZERO = "A" * 22
"""Zero as clients write it: 16 bytes in base64 for URLs, without padding."""


def id_of(reported: object) -> str:
    """A topic id as a client, or the journal, has it; `UNKNOWN` for zero and for none."""
    text = "" if reported is None else str(reported)
    return UNKNOWN if text == _ZERO else text


def is_other(one: str, another: str) -> bool:
    """Whether these are two topics beyond doubt: both ids are known and differ."""
    return UNKNOWN not in (one, another) and one != another
