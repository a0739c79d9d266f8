"""The `.properties` reader against Java's own, and the references in it."""

from __future__ import annotations

import base64
import random
import subprocess
from pathlib import Path

import pytest

from config.properties import load_properties, parse_properties, resolve_references
from config.setting_mistake import SettingMistake

ORACLE = Path(__file__).with_name("PropertiesOracle.java")

TEXTS = [
    pytest.param("a=1\nb:2\nc 3\nd\t4\n", id="all four separators"),
    pytest.param("  a   =   b c  \n", id="blanks around the separator go, blanks at the end stay"),
    pytest.param("# a comment\n! another\n\n   \nkey=value", id="comments and blank lines"),
    pytest.param("a=one \\\n   two\\\n three\nb=1", id="continued over three lines"),
    pytest.param("a=x\\\\\nb=y", id="two backslashes at the end do not continue"),
    pytest.param("a=x\\\\\\\n y\nb=z", id="three backslashes do"),
    pytest.param("a=x\\", id="a backslash at the end of the file"),
    pytest.param("a=x\\\n", id="a continuation into nothing"),
    pytest.param("a=x\\\n\nb=y", id="a continuation into an empty line"),
    pytest.param("a=x\\\n   \nb=y", id="a continuation into a blank line"),
    pytest.param("a=x\\\n# no comment\nb=y", id="a continuation into what looks like a comment"),
    pytest.param("# comment \\\na=1", id="a comment is never continued"),
    pytest.param("\\ \\=\\:k=v", id="escaped separators in the key"),
    pytest.param('a=\\t\\n\\r\\f\\x\\\\\\"', id="escapes, known and unknown"),
    pytest.param("a=\\u0041\\u00e9\\u20ac", id="unicode escapes"),
    pytest.param("a=\\ud83d\\ude00", id="a pair of surrogates makes one character"),
    pytest.param("a=\\u00g1", id="a broken unicode escape"),
    pytest.param("a=\\u12", id="a short unicode escape"),
    pytest.param("a=1\r\nb=2\rc=3\n", id="three kinds of line end"),
    pytest.param("a=1\\\r\n 2", id="a continuation before CRLF"),
    pytest.param("a==1\nb=:2\nc = = 3\n", id="only one separator is eaten"),
    pytest.param("a\nb=\n=c\n: d\n", id="no value, no key"),
    pytest.param("a=1\na=2", id="the later duplicate wins"),
    pytest.param("caf\u00e9=\u00fc", id="Latin-1 letters"),
    pytest.param("\ta=1\n\f b=2", id="tabs and form feeds before the key"),
    pytest.param(
        'sasl.jaas.config=x required \\\n  username="u" \\\n  password="p;=#!";', id="a JAAS line as people write it"
    ),
]


def java_pairs(texts: list[str]) -> list[dict[str, str] | None]:
    """What java.util.Properties reads; None where it refuses the text."""
    lines = "\n".join(base64.b64encode(text.encode("iso-8859-1")).decode() for text in texts) + "\n"
    done = subprocess.run(["java", str(ORACLE)], input=lines, capture_output=True, text=True, check=True)
    answers = done.stdout.split("\n")[: len(texts)]
    return [None if answer == "!" else dict(_pair(word) for word in answer.split()) for answer in answers]


def _pair(word: str) -> tuple[str, str]:
    key, _, value = word.partition(":")
    return base64.b64decode(key).decode(), base64.b64decode(value).decode()


def our_pairs(text: str) -> dict[str, str] | None:
    try:
        return parse_properties(text)
    except SettingMistake:
        return None


def test_java_reads_the_same_from_every_text_of_the_table_and_from_random_ones() -> None:
    seeded = random.Random(20)
    alphabet = 'ab=:#! \t\f\\\\\\\n\n\r"ut0041é'
    texts = [str(case.values[0]) for case in TEXTS]
    texts += ["".join(seeded.choices(alphabet, k=seeded.randrange(1, 60))) for _ in range(3000)]
    theirs = java_pairs(texts)
    assert len(theirs) == len(texts)
    wrong = [(text, our_pairs(text), told) for text, told in zip(texts, theirs, strict=True) if our_pairs(text) != told]
    assert wrong == []


@pytest.mark.parametrize("text", TEXTS)
def test_reading_is_total(text: str) -> None:
    assert our_pairs(text) is None or all(isinstance(value, str) for value in parse_properties(text).values())


def test_references_to_the_environment_files_and_directories_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("db=p\\u0061ss\n", encoding="ascii")
    (tmp_path / "token").write_text("t0ken\n", encoding="ascii")
    values = {
        "a": "${env:USER_NAME}",
        "b": f"x${{file:{tmp_path}/secrets.properties:db}}y",
        "c": f"${{directory:{tmp_path}:token}}",
        "d": f"${{file:{tmp_path}/token}}",
        "e": "no reference, $money",
    }
    assert resolve_references(values, {"USER_NAME": "${env:NOT_AGAIN}"}) == {
        "a": "${env:NOT_AGAIN}",
        "b": "xpassy",
        "c": "t0ken",
        "d": "t0ken",
        "e": "no reference, $money",
    }


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        pytest.param("${env:MISSING}", "the environment variable MISSING is not set", id="an unset variable"),
        pytest.param("${file:/no/such:x}", "/no/such cannot be read (No such file or directory)", id="a missing file"),
        pytest.param(
            "${directory:/x:../y}", "${directory:…} needs a path and the name of a file in it", id="a way out"
        ),
        pytest.param("${vault:a:b}", "${vault:…} is no config provider here; use", id="an unknown provider"),
    ],
)
def test_a_reference_that_leads_nowhere_is_named(value: str, sentence: str) -> None:
    with pytest.raises(SettingMistake) as caught:
        resolve_references({"sasl.password": value}, {})
    assert str(caught.value).startswith(f"sasl.password: {sentence}")


def test_a_file_without_the_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.properties"
    path.write_text("other=1", encoding="ascii")
    with pytest.raises(SettingMistake, match=r"holds no db"):
        resolve_references({"k": f"${{file:{path}:db}}"}, {})


def test_a_file_that_is_too_large_for_properties_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.write_bytes(b"#" * 1_048_577)
    with pytest.raises(SettingMistake, match="larger than 1 MiB"):
        load_properties(path)
