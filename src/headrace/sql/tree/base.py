"""Base classes of the syntax tree: a position in the text, and a printed form."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar

from headrace.model.errors import Position
from headrace.model.requests import QueryKind
from headrace.model.types import Array, Field, Map, SqlType, Struct, quote
from headrace.sql.keywords import RESERVED

# A way to write names: `quoted` where they need it, or `bare`.
Names = Callable[[str], str]


@dataclass(frozen=True)
class Node:
    """Any part of the tree."""

    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)

    def sql(self, names: Names) -> str:
        """Its text, as ksqlDB prints it."""
        raise NotImplementedError


class Effect(Enum):
    """What a statement does to the server."""

    READS = "reads"
    CHANGES = "changes"
    SESSION = "session"  # it holds for the statements that follow it, and is then forgotten


@dataclass(frozen=True)
class Statement(Node):
    """Anything that ends with a semicolon. Whoever may only read may not run what changes: a new
    statement changes something unless it says otherwise."""

    effect: ClassVar[Effect] = Effect.CHANGES
    title: ClassVar[str]  # the words that it begins with

    @classmethod
    def read(cls, p: Any, position: Position, words: Sequence[str]) -> Statement:
        """One that begins with these words, at this position; the parser stands behind them."""
        raise NotImplementedError

    @classmethod
    def query_kind(cls, words: Sequence[str]) -> QueryKind | None:
        """Whether a statement that ends with these words pushes or pulls; None for neither."""
        return None


@dataclass(frozen=True)
class TypeRef(SqlType):
    """A type known by name only: a custom type, which planning finds in the catalog.

    It may stand inside arrays, maps and structs (`headrace.model.types.walk` finds it there).
    """

    name: str

    def __str__(self) -> str:
        return quote(self.name)


# ---------------------------------------------------------------------------------------- text

_UNQUOTED = re.compile(r"[A-Z_][A-Z0-9_@]*|[0-9][A-Z0-9_@]+")
_NUMBER = re.compile(r"[0-9]+(E[0-9]+)?")


@lru_cache(maxsize=4096)
def needs_quotes(name: str) -> bool:
    """Whether the name, written as it is, would not be read as this name."""
    return (
        _UNQUOTED.fullmatch(name) is None or name in RESERVED or _NUMBER.fullmatch(name) is not None
    )


def quoted(name: str) -> str:
    return quote(name) if needs_quotes(name) else name


def bare(name: str) -> str:
    return name


def string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def listed(nodes: Iterable[Node], names: Names) -> str:
    return ", ".join(node.sql(names) for node in nodes)


def words(*parts: str | tuple[bool, str]) -> str:
    """The words that are not empty or switched off, with blanks between them."""
    pairs = (part if isinstance(part, tuple) else (bool(part), part) for part in parts)
    return " ".join(word for shown, word in pairs if shown)


def type_text(type_: SqlType, names: Names) -> str:
    match type_:
        case Array(element):
            return f"ARRAY<{type_text(element, names)}>"
        case Map(key, value):
            return f"MAP<{type_text(key, names)}, {type_text(value, names)}>"
        case Struct(fields):
            return f"STRUCT<{', '.join(_field(f, names) for f in fields) or ' '}>"
        case TypeRef(name):
            return names(name)
    return str(type_)


def _field(one: Field, names: Names) -> str:
    return f"{names(one.name)} {type_text(one.type, names)}"


# ------------------------------------------------------------------------------------- the walk


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node, in written order."""
    return (child for name in FIELD_NAMES[type(node)] for child in _nodes(getattr(node, name)))


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, outermost first."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        todo += reversed([*children(one)])


class _FieldNames(dict[type[object], tuple[str, ...]]):
    """The fields of each kind of node that say what was written, looked up once."""

    def __missing__(self, kind: type[Any]) -> tuple[str, ...]:
        names = self[kind] = tuple(f.name for f in dataclasses.fields(kind) if f.compare)
        return names


FIELD_NAMES = _FieldNames()


def _nodes(value: object) -> Iterable[Node]:
    if isinstance(value, Node):
        return (value,)
    if isinstance(value, tuple):
        return [node for item in value for node in _nodes(item)]
    return ()
