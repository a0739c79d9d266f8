"""The sentence below each setting, read off the models' source on demand.

pydantic can read these too, but does so whenever a model is made, in every command.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


@cache
def sentences(model: type[BaseModel]) -> Mapping[str, str]:
    """Public name of each field -> its sentence on one line; a model's own go before those of what it derives from."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel and "__annotations__" in vars(kind):
            found.update(_below_fields(kind))
    fields = model.model_fields
    return {fields[name].alias or name: text for name, text in found.items() if name in fields}


def _below_fields(kind: type[BaseModel]) -> Iterator[tuple[str, str]]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    (definition,) = tree.body
    if not isinstance(definition, ast.ClassDef):
        return
    for field, below in pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())
