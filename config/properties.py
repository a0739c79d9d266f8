r"""Java's ``.properties`` syntax, as ``java.util.Properties``, and the references of Kafka's config providers.

Keys end at the first unescaped ``=``, ``:`` or blank; ``#`` and ``!`` begin comments; an odd number of backslashes at
the end of a line continues it; ``\t \n \r \f \uXXXX`` are escapes and a backslash before any other character is
dropped. Files are ISO-8859-1, as Kafka's own tools read them.

References are those of Kafka's config providers (KIP-297, KIP-421, KIP-887): ``${env:NAME}``,
``${file:/path/to.properties:key}`` and ``${directory:/path:file}``; ``${file:/path}`` alone is the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from config.plain_file import read_plain
from config.setting_mistake import UNREADABLE, SettingMistake

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"
_REFERENCE = re.compile(r"\$\{(\w+):([^}]*)\}")
_MAX_FILE_BYTES = 1_048_576
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def load_properties(path: Path) -> dict[str, str]:
    """All pairs of the file, in order; a later duplicate wins. Raises SettingMistake when it cannot be read."""
    return parse_properties(read_text_file(str(path)))


def parse_properties(text: str) -> dict[str, str]:
    """All pairs of the text, in order; a later duplicate wins, as in Java."""
    return dict(property_pairs(text))


def property_pairs(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of the text one by one, in order; a key may come again. Raises SettingMistake for a broken escape."""
    for line in _logical_lines(text):
        key, value = _split_pair(line)
        yield _unescape(key), _unescape(value)


def resolve_references(values: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The same pairs with every ``${provider:...}`` replaced by what it names, once (what comes in is not resolved)."""
    return {
        key: _REFERENCE.sub(lambda found, key=key: _look_up(key, found, environ), value)  # type: ignore[misc] # mypy cannot infer a lambda with a bound default
        for key, value in values.items()
    }


def read_text_file(path: str) -> str:
    """Text of a small file, ISO-8859-1. Raises SettingMistake when it is missing, binary or over 1 MiB."""
    try:
        content = read_plain(path, _MAX_FILE_BYTES)
    except OSError as error:
        raise SettingMistake("", f"{path} cannot be read ({error.strerror})", UNREADABLE) from error
    if (found := _CONTROL.search(content)) is not None:
        raise SettingMistake("", f"{path} is not text: it has a control character at byte {found.start()}")
    return content.decode("iso-8859-1")


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blank lines, continuations joined."""
    naturals = re.split(r"\r\n|\r|\n", text)
    if naturals[-1] == "":
        naturals.pop()
    held: str | None = None
    for natural in naturals:
        line = natural.lstrip(_BLANK)
        if not held and line[:1] in ("", "#", "!"):
            held = None  # also after a continuation that has brought nothing yet, as in Java
        elif _ends_with_continuation(line):
            held = (held or "") + line[:-1]
        else:
            yield (held or "") + line
            held = None
    if held is not None:
        yield held


def _ends_with_continuation(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split_pair(line: str) -> tuple[str, str]:
    """Key and value, both still escaped."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\":
            out.append(text[at])
            at += 1
            continue
        letter = text[at + 1 : at + 2]
        if letter == "u":
            digits = text[at + 2 : at + 6]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise SettingMistake("", f"a properties file holds \\u{digits}, which is no character; write \\uXXXX")
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            out.append(_ESCAPES.get(letter, letter))
            at += 2
    # Java counts in UTF-16, so two escapes may make one character.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _look_up(key: str, found: re.Match[str], environ: Mapping[str, str]) -> str:
    provider, argument = found.group(1), found.group(2)
    match provider:
        case "env":
            return _from_environment(key, argument, environ)
        case "file":
            return _from_file(key, argument)
        case "directory":
            return _from_directory(key, argument)
        case _:
            raise SettingMistake(
                key,
                f"${{{provider}:…}} is no config provider here; use ${{env:NAME}}, ${{file:PATH:KEY}} or "
                f"${{directory:PATH:FILE}}",
            )


def _from_environment(key: str, name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise SettingMistake(key, f"the environment variable {name} is not set")
    return environ[name]


def _from_file(key: str, argument: str) -> str:
    path, colon, entry = argument.partition(":")
    text = _read_for(key, path)
    if not colon:
        return text.rstrip("\r\n")
    pairs = parse_properties(text)
    if entry not in pairs:
        raise SettingMistake(key, f"{path} holds no {entry}")
    return pairs[entry]


def _from_directory(key: str, argument: str) -> str:
    folder, _, name = argument.partition(":")
    if not name or "/" in name or name in (".", ".."):
        raise SettingMistake(key, "${directory:…} needs a path and the name of a file in it")
    return _read_for(key, f"{folder}/{name}").rstrip("\r\n")


def _read_for(key: str, path: str) -> str:
    try:
        return read_text_file(path)
    except SettingMistake as mistake:
        raise SettingMistake(key, mistake.sentence) from mistake
