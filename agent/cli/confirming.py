"""Asks for yes or no on a terminal; input that ends before the answer is an error that names the option to give."""

from __future__ import annotations

import typer

from agent.errors import GaveUp


def confirmed(question: str, *, option: str) -> bool:
    """The answer. ``option``: the one that answers yes beforehand. Raises GaveUp where the input ends first."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # Ctrl-C ends the command, as everywhere
            raise KeyboardInterrupt from None
        raise GaveUp(
            "No answer was given", why="the input ended before it", todo=f"Answer, or give {option}."
        ) from None
