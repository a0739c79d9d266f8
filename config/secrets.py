"""Secrets in settings, by name and by form, and settings with their secrets masked.

Secret is a value under a secret name, the part of a URL before ``@`` and after ``?``, the value after a secret name in
a text (``-Dx.password=…``), and every argument of a program that is no plain option. Pure, the lowest layer beside
`config.foreign_text`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

MASK = "******"
_WORDS = (
    r"password|passwd|passphrase|pwd|secret|token|jaas|credential|authorization|signature|private.?key|access.?key"
    r"|account.?key|api.?key|shared.?key"
)
_NAME = re.compile(rf"{_WORDS}|(^|[._-])(sas|sig|auth|key)$|^notify\.targets\..*url$", re.IGNORECASE)
"""The address of a target of notifications is secret as a whole: its path and its host may be the token."""
_URL = re.compile(r"(?<![a-z0-9+.-])([a-z0-9+.-]++)://([^\s'\"<>]*)", re.IGNORECASE)
_STORES = frozenset(("abfs", "abfss", "wasb", "wasbs"))
"""Schemes in which a name before ``@`` is that of a container."""
_PAIR = re.compile(
    rf"(?:{_WORDS})[\w.-]*+[\"']?\s*+[=:]\s*+(\"[^\"]*\"|'[^']*'|(?:(?:bearer|basic)\s+)?[^\s,;&\"']+)|\b(?:bearer|basic)\s+([^\s,;\"']+)",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"(true|false|yes|no|none|null|\d{1,6}[a-z]{0,3})?", re.IGNORECASE)
_LEAST_WORD = 4
_known: set[str] = set()
_ARGUMENTS = ".argv"
"""How the name of a setting ends that is a program with its arguments."""


def is_secret_name(name: str) -> bool:
    """Whether a value under that name is secret, such as ``spark.hadoop.fs.s3a.secret.key``.

    The path of a file with secrets, such as ``http.auth.tokens_file``, is none.
    """
    return _NAME.search(name) is not None and not name.endswith("_file")


def without_url_secrets(text: str) -> str:
    """The text with stars for users, passwords and queries of the URLs in it; fit for any text, also a foreign one."""
    return _covered(text, _in_urls(text)) if "://" in text else text


def remember(secrets: Iterable[str]) -> None:
    """What no sentence of this process is to hold: the secrets of its command's settings, and no others."""
    _known.clear()
    _known.update(one for secret in secrets for one in {secret, secret.strip()} if len(one) >= _LEAST_WORD)


def hidden(text: str) -> str:
    """A sentence for a person with stars for the secrets of this process's settings, and for those in URLs."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return without_url_secrets(text)


def masked(text: str) -> str:
    """A setting's text with stars for all that is secret in it."""
    return _covered(text, _inside(text))


def shown(name: str, value: Any) -> Any:
    """A setting's value as it is shown under its dotted name: a text, a list or a map of them, or a number."""
    match value:
        case str():
            return _shown_text(name, value)
        case Mapping():
            return {key: shown(f"{name}.{key}", below) for key, below in value.items()}
        case list() | tuple():
            return _arguments(value) if name.endswith(_ARGUMENTS) else [shown(name, item) for item in value]
        case _:
            return value


def _shown_text(name: str, text: str) -> str:
    if _is_secret(name, text):
        return MASK
    return " ".join(_arguments(_split(text))) if name.endswith(_ARGUMENTS) else masked(text)


def secrets_in(name: str, value: Any) -> Iterator[str]:
    """The secret texts of a setting, for redaction wherever else they may turn up."""
    match value:
        case str() if _is_secret(name, value):
            yield value
        case str():
            yield from (value[start:end] for start, end in _inside(value))
            if name.endswith(_ARGUMENTS):
                yield from secrets_in(name, _split(value))
        case Mapping():
            for key, below in value.items():
                yield from secrets_in(f"{name}.{key}", below)
        case list() | tuple():
            for before, item in zip(("", *value), value, strict=False):
                yield from secrets_in("" if name.endswith(_ARGUMENTS) else name, item)
                option = before.lstrip("-") if isinstance(before, str) and before.startswith("-") else ""
                if isinstance(item, str) and _is_secret(option, item):
                    yield item


def without_resolved(sentence: str, resolved: Mapping[str, str]) -> str:
    """The sentence without resolved values of references; ``resolved`` is that value -> the reference."""
    for text, reference in sorted(resolved.items(), key=lambda pair: -len(pair[0])):
        if not text.strip():
            continue
        kept = sentence.replace(reference, "\0")  # the reference itself is no secret
        for form in (repr(text)[1:-1], text, text.strip()):
            kept = kept.replace(form, "\0")
        for word in sorted(set(re.split(r"[\s'\",;=:]+", text)), key=len, reverse=True):
            if len(word) >= _LEAST_WORD:
                kept = kept.replace(word, MASK)
        sentence = kept.replace("\0", reference)
    return sentence


def _is_secret(name: str, text: str) -> bool:
    """A switch or a number under such a name configures how secrets are handled, and is none."""
    return is_secret_name(name) and _PLAIN.fullmatch(text) is None


def _split(line: str) -> Sequence[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _arguments(argv: Sequence[str]) -> list[str]:
    """The program, and of its arguments the options: any other may be a token."""
    return [masked(one) if number == 0 else _argument(str(one)) for number, one in enumerate(argv)]


def _argument(text: str) -> str:
    option, sign, _ = text.partition("=")
    if not re.fullmatch(r"-[A-Za-z]|--[A-Za-z][\w-]*", option):
        return MASK
    return f"{option}={MASK}" if sign else option


def _inside(text: str) -> list[tuple[int, int]]:
    return [*_in_urls(text), *(found.span(1 if found[1] is not None else 2) for found in _PAIR.finditer(text))]


def _in_urls(text: str) -> Iterator[tuple[int, int]]:
    for found in _URL.finditer(text):
        scheme, rest, at = found[1].lower().lstrip("+-.0123456789"), found[2], found.start(2)
        address, mark, _ = _cut(rest)
        if mark:
            yield at + len(address) + 1, at + len(rest)
        # A secret may hold a slash, as those of s3a:// do: then what looks like a port is none.
        authority = address.partition("/")[0]
        end = authority.rfind("@")
        if end < 0 and re.search(r":(?!\d*$)", authority):
            end = address.rfind("@")
        if end > 0 and (scheme not in _STORES or ":" in address[:end]):
            yield at, at + end


def _cut(rest: str) -> tuple[str, str, str]:
    """The address of a URL without its query and fragment."""
    found = re.search(r"[?#]", rest)
    return (rest, "", "") if found is None else (rest[: found.start()], found[0], rest[found.end() :])


def _covered(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with stars over each of these parts; parts may overlap."""
    covered, at = "", 0
    for start, end in sorted(spans):
        if end <= at or start == end:
            continue
        if start >= at:
            covered += text[at:start] + MASK
        at = end
    return covered + text[at:]
