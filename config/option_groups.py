"""Groups of options on the command line: each field of a parameter of a `NamedTuple` type is an option."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Config = Annotated[
    list[Path] | None,
    typer.Option("--config", "-c", metavar="FILE", help="YAML file with settings; repeatable, later files win."),
]
Properties = Annotated[
    list[Path] | None,
    typer.Option("--properties", metavar="FILE", help="Properties file of a Kafka client to import; repeatable."),
]
Assign = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set one setting; repeatable.")]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers", "-b", metavar="HOST:PORT,...", help="Brokers to connect to first, as in Kafka's tools."
    ),
]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it: the fields of a parameter that is a `NamedTuple` are options of their own."""
    groups: dict[str, Any] = {}
    shown: list[inspect.Parameter] = []
    for own in inspect.signature(command, eval_str=True).parameters.values():
        if hasattr(own.annotation, "_fields"):
            groups[own.name] = own.annotation
            shown += _fields(own.annotation)
        else:
            shown.append(own.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        made = {name: group(*(given.pop(field) for field in group._fields)) for name, group in groups.items()}
        command(**given, **made)

    vars(run)["__signature__"] = inspect.Signature(shown)
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


def _fields(group: Any) -> list[inspect.Parameter]:
    types, defaults = get_type_hints(group, include_extras=True), group._field_defaults
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, kind, default=defaults[name], annotation=types[name]) for name in group._fields]
