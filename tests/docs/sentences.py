"""Every sentence and word that an operator can see, read off the code. Write the list anew: make sentences

In the list are: constants and f-strings that hold words (each placeholder is ``{}``, a constant of Kafka's its value),
enum values, words that an f-string or a function that returns text puts together, help texts of commands, and the
sentences of settings. Not in it are docstrings, log keys, names, patterns, and the texts of schemas.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from typer.main import get_command

from agent.cli.app import full_application

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "sentences.txt"
TO_REWRITE = ROOT / "tests" / "golden" / "sentences_to_rewrite.txt"
PACKAGES = ("agent", "assignors", "config", "pipeline", "testbed")
# Texts of schemas are kept in docs/schemas and docs/tables.md.
NOT_READ = (
    "agent.documents.cluster",
    "agent.documents.config",
    "agent.documents.groups",
    "agent.documents.plan",
    "agent.documents.proposals",
    "pipeline.schemas",
)
# Modules whose single words are answers that people read: rules, checks and their verdicts.
ANSWERING = (
    "agent.explain",
    "agent.guard",
    "agent.cli.tables",
    "agent.documents.journal",
)
# Not Kafka's words, or not plain ones: a thing is the subject of a sentence, and no unknown person does anything.
FORBIDDEN = (
    r"whoever", r"whomever", r"nobody", r"somebody", r"someone", r"anybody", r"anyone", r"everybody", r"everyone",
    r"who", r"no one", r"(?:is|was|are|were|be|been) told", r"what stands", r"nothing stood", r"stands? against",
    r"it said", r"(?:said|say) last", r"by the kafka measure", r"cost-equal only", r"equal cost only",
    r"lines were done", r"did not do its part", r"it has the planned replicas", r"shall", r"lately", r"begin anew",
    r"asked anew",
)  # fmt: skip
PLACEHOLDER = "{}"
# Modules whose constants are spelled out in sentences.
FACTS = ("agent.values.kafka", "config.kafka_keys", "config.value_kinds", "assignors.kafka.streams_problem")
_LONE = re.compile(r"[a-z][a-z-]+")
_FORBIDDEN = re.compile(rf"\b(?:{'|'.join(FORBIDDEN)})\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_TWO_WORDS = re.compile(r"(?:[A-Za-z]{2,}|\{\})[,;:.)'\"]* [('\"]*(?:[A-Za-z]{2,}|\{\})")
_WORD = re.compile(r"[a-z][a-z-]+")
# What takes code, names or patterns: no person reads what is given to these.
_CODE_CALLS = frozenset(
    {
        "compile", "expr", "selectExpr", "sql", "getattr", "hasattr", "import_module", "TypeVar", "NewType",
        "fullmatch", "findall", "sub", "finditer", "search", "namedtuple", "getLogger", "get_logger", "Struct",
        "fromhex", "unpack", "pack", "filterwarnings", "startswith", "endswith", "alias", "col", "withColumn", "split",
        "partition", "rpartition", "removeprefix", "removesuffix", "strftime", "strptime", "model_config", "ConfigDict",
    }
)  # fmt: skip
_TEXT = frozenset({"str", "str | None", "Iterator[str]", "list[str]", "tuple[str, ...]", "tuple[str, str]"})


def sentences() -> list[str]:
    """The whole list, as ``module: text``, sorted, each once."""
    found = {f"{module}: {text}" for path in _files() for module, text in _of_file(path)}
    found |= {f"{module}: {text}" for module, text in _helps()}
    return sorted(found)


def offending(lines: Iterable[str]) -> list[str]:
    """The lines whose text holds a forbidden word; the module's name is no text."""
    return [line for line in lines if _FORBIDDEN.search(line.partition(": ")[2])]


def forbidden_words(line: str) -> list[str]:
    """Which ones."""
    return _FORBIDDEN.findall(line.partition(": ")[2])


def kept(path: Path) -> list[str]:
    """The lines of a list that is kept; a list that is gone has none."""
    return path.read_text().splitlines() if path.exists() else []


def write() -> None:
    """The list as it is now; what was still to be rewritten is only ever shortened."""
    now = sentences()
    GOLDEN.write_text("".join(f"{line}\n" for line in now))
    still = {*offending(now)}
    TO_REWRITE.write_text("".join(f"{line}\n" for line in kept(TO_REWRITE) if line in still))


def _files() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not _module(path).startswith(NOT_READ):
                yield path


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _of_file(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text())
    module = _module(path)
    reader = _Reader(answers=module.startswith(ANSWERING), facts=_facts(module, tree))
    reader.visit(tree)
    for text in reader.found:
        yield module, " ".join(text.split())


def _facts(module: str, tree: ast.Module) -> dict[str, str]:
    """The constants of `FACTS` that a module imports or has."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in FACTS]
    names = [(str(node.module), alias.name) for node in imports for alias in node.names]
    if module in FACTS:
        names += [(module, name) for name in vars(import_module(module))]
    values = {name: getattr(import_module(home), name) for home, name in names if name.isupper()}
    return {name: str(value) for name, value in values.items() if isinstance(value, str | int)}


def _helps() -> Iterator[tuple[str, str]]:
    """Help texts of commands and groups, which are docstrings: typer makes them the help."""

    def of(command: object) -> Iterator[tuple[str, str]]:
        callback = getattr(command, "callback", None)
        module = getattr(inspect.unwrap(callback), "__module__", "agent.cli.app") if callback else "agent.cli.app"
        for text in (getattr(command, "help", None), getattr(command, "epilog", None)):
            for paragraph in (text or "").split("\n\n"):
                if paragraph.strip():
                    yield module, " ".join(paragraph.replace("\b", "").split())
        for below in getattr(command, "commands", {}).values():
            yield from of(below)

    yield from of(get_command(full_application(loaded=True)))


class _Reader(ast.NodeVisitor):
    """Walks one module; ``found`` are its texts, placeholders as ``{}``."""

    def __init__(self, *, answers: bool, facts: Mapping[str, str]) -> None:
        self.found: list[str] = []
        self._facts = facts
        self._answers = answers
        self._words = [False]

    # --- what is no text for people ----------------------------------------------------------------------------

    def visit_Module(self, node: ast.Module) -> None:
        self._body(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        bases = {ast.unparse(base) for base in node.bases}
        self._settings(node)
        enum = any(base.rpartition(".")[2] in {"Enum", "StrEnum"} for base in bases)
        if enum:
            for value in (one.value for one in node.body if isinstance(one, ast.Assign)):
                for constant in ast.walk(value):
                    if isinstance(constant, ast.Constant) and isinstance(constant.value, str) and constant.value:
                        self.found.append(constant.value)
        self._body(node, skip=(ast.Assign,) if enum else ())

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        for decorator in node.decorator_list:
            self.visit(decorator)
        for argument in (*node.args.args, *node.args.kwonlyargs):
            self._annotation(argument.annotation)
        self._words.append(node.returns is not None and ast.unparse(node.returns) in _TEXT)
        self._body(node)
        self._words.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        # NAME = Annotated[...] is a type with its help text
        self._annotation(node.value) if isinstance(node.value, ast.Subscript) else self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if not isinstance(node.slice, ast.Constant):
            self.visit(node.slice)

    def visit_Compare(self, node: ast.Compare) -> None:
        for one in (node.left, *node.comparators):
            if not isinstance(one, ast.Constant | ast.Set | ast.Tuple | ast.List):
                self.visit(one)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self.visit(node.func)
        if name in _CODE_CALLS:
            return
        words = self._answers or name in {"counted", "count", "_plural", "plural"}
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            if words:
                self._choice(argument)
            self.visit(argument)

    # --- what is ------------------------------------------------------------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._sentence(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        text = "".join(
            part.value if isinstance(part, ast.Constant) else self._placeholder(part)
            for part in node.values
            if not isinstance(part, ast.Constant) or isinstance(part.value, str)
        )
        self._sentence(text)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self._choice(part.value)
                self.visit(part.value)

    def _placeholder(self, part: ast.expr) -> str:
        match part:
            case ast.FormattedValue(value=ast.Name(id=name)):
                return self._facts.get(name, PLACEHOLDER)
            case _:
                return PLACEHOLDER

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            if self._words[-1]:
                self._choice(node.value)
            self.visit(node.value)

    def visit_Dict(self, node: ast.Dict) -> None:
        """The values of a table from constants of the code to words; keys are names."""
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Attribute):
                self._choice(value)
            elif key is not None and not isinstance(key, ast.Constant):
                self.visit(key)
            self.visit(value)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        for one in (node.body, node.orelse):
            self.visit(one)

    # --- small things -------------------------------------------------------------------------------------------

    def _body(self, node: ast.Module | ast.ClassDef | ast.FunctionDef, skip: tuple[type[ast.AST], ...] = ()) -> None:
        for statement in node.body:
            if not isinstance(statement, skip):
                self.visit(statement)

    def _annotation(self, node: ast.expr | None) -> None:
        """Only text in calls: ``Annotated[str, typer.Option(help=...)]``."""
        for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)) if node is not None else ():
            for keyword in call.keywords:
                self.visit(keyword.value)

    def _settings(self, node: ast.ClassDef) -> None:
        """The sentence below a setting is shown by `config show` and stands in docs/operations.md."""
        if any(ast.unparse(base).endswith(("BaseModel", "Settings")) for base in node.bases):
            for field, below in pairwise(node.body):
                match field, below:
                    case ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(text))):
                        self._sentence(text)

    def _choice(self, node: ast.expr) -> None:
        """A word that is chosen: ``'yes' if there else 'no'``, ``name or 'none'``, or a plain one."""
        match node:
            case ast.Constant(value=str(text)):
                self._word(text)
            case ast.IfExp(body=body, orelse=orelse):
                self._choice(body)
                self._choice(orelse)
            case ast.BoolOp(values=values):
                for one in values:
                    self._choice(one)

    def _word(self, text: object) -> None:
        if isinstance(text, str) and _LONE.fullmatch(text.strip()):
            self.found.append(text.strip())

    def _sentence(self, text: str) -> None:
        flat = " ".join(text.split())
        if _TWO_WORDS.search(flat) and _WORD.search(flat.replace(PLACEHOLDER, "")):
            self.found.append(flat)


if __name__ == "__main__":
    write()
