"""The findings of one check of doctor in words: equal ones once, of very many the first ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.detect.words import listed, numbered
from agent.values.finding import Finding, Subject

SENTENCES = 10
"""Findings of one check that are named one by one; the rest is counted, and ``rackwise status`` shows all."""


def told_infos(found: Iterable[Finding]) -> list[str]:
    """Findings of which nothing is wrong, as ``status`` calls them."""
    return [f"info: {sentence}" for sentence in few(told_once(each_subject(found)), "infos")]


def each_subject(found: Iterable[Finding]) -> list[Finding]:
    """The first finding of each subject."""
    first: dict[Subject, Finding] = {}
    for finding in found:
        first.setdefault(finding.subject, finding)
    return list(first.values())


def told_once(findings: Iterable[Finding]) -> list[str]:
    """The sentences of these findings; where they differ in the subject's name alone, one with all the names."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kind, name = finding.subject.kind, finding.subject.name
        # Where the name is a number it may be one of the sentence's figures too.
        text = finding.sentence.replace(f"{kind} {name}" if name.isdecimal() else name, "\0")
        key = (kind, text)
        alike.setdefault(key, []).append(finding)
    told = []
    for (kind, _), same in alike.items():
        others = [finding.subject.name for finding in same[1:]]
        told.append(same[0].sentence + (f" (the same for {_more(kind, others)})" if others else ""))
    return told


def _more(kind: str, names: Sequence[str]) -> str:
    of = f"{kind}{'' if len(names) == 1 else 's'}"
    if all(name.isdecimal() for name in names):
        return f"{of} {numbered(map(int, names))}"
    return f"{len(names):,} more {of}: {listed(names)}"


def few(sentences: list[str], what: str) -> list[str]:
    """The first sentences, and how many more there are."""
    if len(sentences) <= SENTENCES:
        return sentences
    return [*sentences[:SENTENCES], f"and {len(sentences) - SENTENCES:,} more {what}: see rackwise status"]
