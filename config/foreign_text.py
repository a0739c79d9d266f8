r"""Foreign text made harmless: the one border in front of every terminal, file, page and log.

Client ids, member ids, group ids, racks, hosts and protocol names come from any client that reaches a broker; as they
are they could steer a terminal, hide or reorder text, forge lines or become formulas. Characters that are not plainly
visible are written as escapes (``\x1b``, ``\u202e``), long text is cut with the number of characters left out. Pure,
the lowest layer: it imports nothing of the project.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

MOST_RUN = 256
"""Characters of a word: more than Kafka's longest topic name has."""
MOST_TEXT = 2_000
"""Characters of one text: a sentence, a cell, a line."""
MOST_ITEMS = 10
"""Items of a list in a cell or a sentence."""
_MARKS = 4
"""Marks above and below one letter; more of them reach into other lines."""

# Characters that `str.isprintable` lets through although they show nothing, or only change the letter before them.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MARKUP = str.maketrans(dict(zip("<>@[]", "\u2039\u203a\uff20\uff3b\uff3d", strict=True)))
"""What begins a mention (@everyone, <!channel>), a tag or a link in a chat -> a sign that looks alike and does not."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?([eE][+-]?\d+)?( ?%)?", re.ASCII)


def is_unsafe(char: str) -> bool:
    """Whether one character is never shown as it is.

    Controls (C0, DEL, C1), formats (bidirectional, zero-width, tags), every space but the plain one, line and paragraph
    separators, lone surrogates, private and unassigned code points, variation selectors and fillers.
    """
    return not char.isprintable() or _UNSEEN.match(char) is not None


def is_mark(char: str) -> bool:
    """Whether a character has no room of its own: it is drawn over the one before it, or joined to it.

    Most marks of Thai and of Indic scripts have the combining class 0, so it does not decide; vowels and finals of
    Hangul join the consonant before them.
    """
    return unicodedata.category(char) in {"Mn", "Me"} or "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"


def harmless(text: str) -> str:
    r"""The text on one line, with every unsafe character as its escape, such as ``\x1b`` or ``\u202e``."""
    return text if _is_plain(text) else "".join(_shown(text))


def shortened(text: str, *, run: int = MOST_RUN, whole: int = MOST_TEXT) -> str:
    """The same, and not too long: a word is cut in the middle, as names often differ at their ends, a text at its end.

    An omitted part is replaced by its number of characters.
    """
    if len(text) <= run and _is_plain(text):
        return text
    short = " ".join(_middle_out(word, run) for word in text.split(" "))
    if len(short) <= whole:
        return short
    kept = short[:whole]
    return f"{kept}… ({len(short) - len(kept):,} more characters)"


def listed(texts: Sequence[str], most: int | None = MOST_ITEMS, *, between: str = ", ") -> str:
    """The first of some texts with ``between``, and how many more there are; all of them where ``most`` is None."""
    more = 0 if most is None else len(texts) - most
    if most is None or more <= 0:
        return between.join(texts)
    return f"{between.join(texts[:most])} and {more:,} more"


def safe_text(text: str, limit: int) -> str:
    """`harmless`, cut at the end to ``limit`` bytes of UTF-8: what a log, a metric or an HTTP answer has room for."""
    head = text[:limit]  # a character is at least a byte: what lies beyond could not be kept anyway
    encoded = harmless(head).encode()
    if len(encoded) <= limit and len(head) == len(text):
        return encoded.decode()
    return f"{encoded[: limit - 24].decode(errors='ignore')}… ({len(text)} characters)"


def json_text(document: object, indent: int | None = None, default: Callable[[Any], Any] = str) -> str:
    r"""The document as JSON that loses nothing: unsafe characters are written as ``\u202e``, and no others."""
    written = json.dumps(document, indent=indent, ensure_ascii=False, default=default)
    return "\n".join(_escaped(line, _json_escape) for line in written.split("\n"))


def yaml_text(document: object) -> str:
    r"""The document (of what JSON knows) as YAML that loses nothing: unsafe text is quoted, with ``\u202e`` in it.

    PyYAML by itself lets bidirectional and zero-width characters through, and writes a line feed as a line.
    """
    import yaml  # noqa: PLC0415 slow, and seldom asked for

    class QuotingDumper(yaml.SafeDumper):
        """Quotes what has to be escaped."""

        def ignore_aliases(self, _data: Any) -> bool:
            """Two equal rows are two rows."""
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if _is_plain(value) else '"')

    QuotingDumper.add_representer(str, text)
    written = yaml.dump(document, Dumper=QuotingDumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return "\n".join(_escaped(line, _yaml_escape) for line in written.rstrip("\n").split("\n"))


def csv_text(text: str) -> str:
    """One cell of CSV: on one line, whole, and no formula; text that begins like one gets an apostrophe before it."""
    shown = harmless(text)
    first = unicodedata.normalize("NFKC", text.lstrip(" ")[:1])  # a spreadsheet takes full-width and small signs alike
    if first.startswith(_FORMULA) and text != "-" and not _NUMBER.fullmatch(text):
        return f"'{shown}"
    return shown


def chat_text(text: str, most: int) -> str:
    """Text for a message to a chat, a pager or a mailbox: one line, no mention, no link, no markup, not too long.

    Each service has a markup of its own, so the signs that begin one are replaced, in whatever format it is sent.
    """
    plain = shortened(text, run=MOST_RUN // 2, whole=most).translate(_MARKUP)
    return plain.replace("://", ":\u2044\u2044")  # no slashes: a chat makes a link of every text that has them


def _is_plain(text: str) -> bool:
    """Whether a text shows what it is; where that is not plain at once, it does not."""
    if not text.isprintable():
        return False
    return text.isascii() or (_UNSEEN.search(text) is None and not any(map(is_mark, text)))


def _shown(text: str) -> Iterable[str]:
    """Every character, or its escape; a mark with no letter below it would change the character before."""
    kinds = {
        char: (is_mark(char), char.isalnum() or unicodedata.category(char) == "Mc", _escaped(char, _escape))
        for char in set(text)  # a text has far fewer different characters than characters
    }
    marks = _MARKS
    for char in text:
        mark, bears_marks, shown = kinds[char]
        marks = marks + 1 if mark else 0 if bears_marks else _MARKS
        yield _escape(char) if marks > _MARKS else shown


def _middle_out(word: str, most: int) -> str:
    """A word of at most ``most`` shown characters, with their escapes."""
    if len(word) <= most and _is_plain(word):
        return word
    pieces = list(_shown(word))
    if sum(map(len, pieces)) <= most:
        return "".join(pieces)
    room = most - len(f"…({len(pieces):,} characters)…")
    head = _fitting(pieces, room - room // 2)
    tail = _fitting(pieces[:head:-1], room // 2)
    while tail and is_mark(pieces[-tail][0]):  # the letter below it is left out
        tail -= 1
    left_out = len(pieces) - head - tail
    return f"{''.join(pieces[:head])}…({left_out:,} characters)…{''.join(pieces[len(pieces) - tail :])}"


def _fitting(pieces: Sequence[str], room: int) -> int:
    """How many of the first pieces fit."""
    for number, piece in enumerate(pieces):
        room -= len(piece)
        if room < 0:
            return number
    return len(pieces)


def _escaped(line: str, escape: Callable[[str], str]) -> str:
    if _is_plain(line):
        return line
    return line.translate({ord(char): escape(char) for char in set(line) if is_unsafe(char)})


def _escape(char: str) -> str:
    return _NAMED.get(char) or _yaml_escape(char)


def _yaml_escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(char: str) -> str:
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def segment_of(name: str) -> str:
    """The segment of a URL's path for a name of any characters, a slash among them."""
    from urllib.parse import quote  # noqa: PLC0415 slow, and seldom asked for

    try:
        return quote(name.encode("utf-8", "surrogatepass"), safe="")
    except UnicodeEncodeError:
        return quote(name.encode("utf-8", "surrogateescape"), safe="")
