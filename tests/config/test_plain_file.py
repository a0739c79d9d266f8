"""Files that an operator names: regular ones, at once, and within a size."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from config.load import SettingsRefusedError, load_settings
from config.plain_file import open_plain, read_plain
from config.yaml_file import yaml_value


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def sparse(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(10_000_000_000)
    return path


def listening(path: Path) -> Path:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def link_to_a_pipe(path: Path) -> Path:
    path.symlink_to(pipe(path.with_name("behind")))
    return path


NO_FILES = [
    pytest.param(pipe, "it is a named pipe, and a regular file is expected", id="a pipe without a writer"),
    pytest.param(link_to_a_pipe, "it is a named pipe", id="a link to a pipe"),
    pytest.param(folder, "it is a directory", id="a directory"),
    pytest.param(listening, "it is a socket", id="a socket"),
    pytest.param(lambda _path: Path("/dev/zero"), "it is a device", id="a device without end"),
    pytest.param(lambda _path: Path("/dev/tty"), "it is a device", id="a terminal"),
    pytest.param(lambda _path: Path("/dev/null"), "it is a device", id="nothing"),
    pytest.param(sparse, "it is larger than 1 MiB", id="a sparse file of 10 GB"),
    pytest.param(lambda path: path, "No such file or directory", id="no file"),
    pytest.param(lambda path: path / "a\0b", "its name holds a null character", id="a name with a null character"),
]


@pytest.mark.parametrize(("make", "why"), NO_FILES)
def test_what_is_no_file_of_that_size_is_an_error_that_says_what_it_is(
    make: Callable[[Path], Path], why: str, tmp_path: Path
) -> None:
    with pytest.raises(OSError, match=why) as refused:
        read_plain(make(tmp_path / "x"), 1_048_576)
    assert why in (refused.value.strerror or "")


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"x" * 100)
    link = tmp_path / "link"
    link.symlink_to(file)
    assert read_plain(link, 100) == b"x" * 100
    with open_plain(link) as opened:
        assert opened.read(3) == b"xxx"
    with pytest.raises(OSError, match="it is larger than 99 bytes"):
        read_plain(file, 99)


def test_a_file_whose_size_is_not_told_is_bounded_as_well() -> None:
    with pytest.raises(OSError, match="it is larger than 2 bytes"):
        read_plain("/proc/self/status", 2)


@pytest.mark.parametrize(("make", "why"), NO_FILES)
@pytest.mark.parametrize("source", ["files", "properties", "file:", "directory:"])
def test_settings_name_what_is_no_file_in_one_sentence(
    source: str, make: Callable[[Path], Path], why: str, tmp_path: Path
) -> None:
    path = make(tmp_path / "x.yaml")
    if source in ("files", "properties"):
        named = {source: [path]}
    else:
        secret = f"${{{source}{path}}}" if source == "file:" else f"${{{source}{path.parent}:{path.name}}}"
        properties = tmp_path / "client.properties"
        properties.write_text(f"bootstrap.servers=h:1\nsasl.jaas.config={secret}\n".replace("\0", "\\u0000"))
        named = {"properties": [properties]}
    with pytest.raises(SettingsRefusedError) as refused:
        load_settings(environ={}, **named)  # type: ignore[arg-type] # one of its keywords
    sentences = [str(mistake) for mistake in refused.value.mistakes]
    assert any(why in sentence and str(path.name) in sentence for sentence in sentences), sentences


@pytest.mark.parametrize("name", ["ssl.ca.location", "ssl.crl.location"])
@pytest.mark.parametrize("make", [pipe, folder, listening, lambda _path: Path("/dev/zero")])
def test_a_certificate_that_is_no_file_is_named_before_a_client_waits_for_it(
    make: Callable[[Path], Path], name: str, tmp_path: Path
) -> None:
    path = make(tmp_path / "ca.pem")
    settings = ["kafka.bootstrap.servers=h:1", "kafka.security.protocol=SSL", f"kafka.{name}={path}"]
    with pytest.raises(SettingsRefusedError, match=rf"kafka\.{name}: {path} cannot be read \(it is a"):
        load_settings(assignments=settings, environ={})


def unfolding(item: str) -> str:
    """Ten lines that stand for ten billion values."""
    lines = [f"a0: &a0 {item}"]
    for number in range(1, 10):
        before = f"*a{number - 1}"
        ten = ", ".join([before] * 10)
        lines.append(f"a{number}: &a{number} " + (f"{{<<: [{ten}]}}" if item.startswith("{") else f"[{ten}]"))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(unfolding("[x, x]"), "unfold it to more than 100,000 values (line", id="lists of lists"),
        pytest.param(unfolding("{x: 1, y: 2}"), "unfold it to more than 100,000 values (line", id="merged mappings"),
        pytest.param("a: &a [*a]", "an alias of what it is a part of (line 1)", id="a list in itself"),
        pytest.param("a: &a {b: *a}", "an alias of what it is a part of", id="a mapping in itself"),
        pytest.param("a: &a {<<: *a}", "an alias of what it is a part of", id="a mapping merged into itself"),
        pytest.param("a: [" + "x, " * 300_000 + "]", "more than 100,000 values", id="very many values"),
        pytest.param("- " * 500_000, "nested too deeply", id="nested by dashes"),
        pytest.param("a: " + "9" * 30, "a number of more than 64 bits (line 1)", id="30 digits"),
        pytest.param("a: " + "9" * 400, "a number of more than 64 bits", id="400 digits"),
        pytest.param("a: " + "9" * 5_000, "a number of more than 64 bits", id="5,000 digits"),
        pytest.param("a: 0x" + "f" * 5_000, "a number of more than 64 bits", id="hexadecimal"),
        pytest.param("a: 1" + ":59" * 300, "a number of more than 64 bits", id="to the base of sixty"),
        pytest.param("a: .inf", "a number of more than 64 bits", id="infinity"),
        pytest.param("a: .nan", "a number of more than 64 bits", id="not a number"),
        pytest.param("a: !!bool x", "a value is not what its tag says", id="no truth value"),
        pytest.param("a: !!timestamp 9999999999999999", "a value is not what its tag says", id="no time"),
        pytest.param("a: !!float x", "could not convert", id="no number"),
        pytest.param("!" * 100_000, "could not determine a constructor", id="a tag without end"),
    ],
)
def test_yaml_without_bounds_is_one_short_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as refused:
        yaml_value(text)
    assert why in str(refused.value)
    assert len(str(refused.value)) < 300


def test_yaml_with_a_few_aliases_is_read() -> None:
    found = yaml_value("a: &a {x: 1}\nb: {<<: *a, y: 2.5}\nc: [*a, *a]")
    assert found == {"a": {"x": 1}, "b": {"x": 1, "y": 2.5}, "c": [{"x": 1}, {"x": 1}]}


LONG = ["9" * 30, "9" * 30 + "s", "9" * 400 + "s", "9" * 30 + "GB", "9" * 5_000, "1e999", "inf", "nan", "-inf"]


@pytest.mark.parametrize("value", LONG)
@pytest.mark.parametrize(
    "name", ["poll.interval", "record.file_max_bytes", "proposals.max_moves", "price.usd_per_gb", "http.port"]
)
def test_a_number_without_bounds_is_one_sentence_with_the_name_of_its_setting(name: str, value: str) -> None:
    with pytest.raises(SettingsRefusedError) as refused:
        load_settings(assignments=[f"{name}={value}", "kafka.bootstrap.servers=h:1"], environ={})
    (sentence,) = [str(mistake) for mistake in refused.value.mistakes]
    assert sentence.startswith(f"{name}: ")
    assert len(sentence) < 600
