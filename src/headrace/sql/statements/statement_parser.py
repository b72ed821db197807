"""Parses statements: a table from a statement's first words to its class, which reads the rest."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, MutableMapping
from typing import TypeVar

from headrace.model.errors import ParseError
from headrace.model.schema import header_type_problem
from headrace.model.types import SqlType, quote
from headrace.model.types import walk as parts_of
from headrace.sql.cursor import at
from headrace.sql.printer import display_expression
from headrace.sql.query_parser import QueryParser
from headrace.sql.tree import (
    HEADER_KINDS,
    Constraint,
    ConstraintKind,
    Duration,
    Literal,
    Properties,
    Query,
    Statement,
    TableElement,
    TypeRef,
)

K = TypeVar("K", bound=type[Statement])
# The class of statements that begin with the same words: theirs, or one with the same effect.
Table = MutableMapping[tuple[str, ...], type[Statement]]

STATEMENTS: Table = {("SELECT",): Query}
# With those that only test files may hold.
TEST_STATEMENTS: Table = ChainMap({}, STATEMENTS)
# LIST and SHOW are the same word.
SYNONYMS = {"LIST": "SHOW"}


def begins(*starts: str, table: Table = STATEMENTS) -> Callable[[K], K]:
    """Declares the words with which statements of a class begin; the first are its title."""

    def declare(kind: K) -> K:
        for start in starts:
            if table.setdefault(tuple(start.split()), kind) is not kind:
                raise ValueError(f"Two statements begin with {start}")
        kind.title = starts[0]
        return kind

    return declare


class StatementParser(QueryParser):
    def whole(self) -> object:
        while self.kind != "eof":
            self.statement()
            self.expect(";")
        return self.expect("eof")

    @property
    def table(self) -> Table:
        return TEST_STATEMENTS if self.tests else STATEMENTS

    def statement(self) -> Statement:
        position = self.position
        table = self.table
        for length in (3, 2, 1):
            words = tuple(SYNONYMS.get(self.peek(i), self.peek(i)) for i in range(length))
            kind = table.get(words)
            if kind is not None:
                self.index += length
                return kind.read(self, position, words)
        # Fail at the first word with which no statement begins or goes on.
        taken: tuple[str, ...] = ()
        while True:
            taken = (*taken, SYNONYMS.get(self.kind, self.kind))
            if not any(words[: len(taken)] == taken for words in table):
                self.fail()
            self.advance()

    def sees_end(self, ahead: int = 0) -> bool:
        """Whether the statement is over."""
        return self.peek(ahead) in (";", "eof")

    # ----------------------------------------------------------------------------- shared clauses

    def accept_if_not_exists(self) -> bool:
        return self.accept("IF", "NOT", "EXISTS")

    def accept_if_exists(self) -> bool:
        return self.accept("IF", "EXISTS")

    def elements(self) -> tuple[TableElement, ...]:
        if not self.accept("("):
            return ()
        elements = self.listed(self._element)
        self.expect(")")
        names = [element.name for element in elements]
        duplicates = [name for name, times in Counter(names).items() if times > 1]
        if duplicates:
            self.reject(f"Duplicate column names: {', '.join(map(quote, duplicates))}")
        return elements

    def _element(self) -> TableElement:
        position = self.position
        name = self.identifier()
        type_ = self.type()
        constraint = self._constraint()
        if constraint is not None and constraint.kind in HEADER_KINDS:
            self._check_header(type_, constraint)
        return TableElement(name, type_, constraint, position=position)

    def _constraint(self) -> Constraint | None:
        position = self.position
        if self.accept("KEY"):
            return Constraint(ConstraintKind.KEY, position=position)
        if self.accept("PRIMARY"):
            self.expect("KEY")
            return Constraint(ConstraintKind.PRIMARY_KEY, position=position)
        if self.accept("HEADERS"):
            return Constraint(ConstraintKind.HEADERS, position=position)
        if self.accept("HEADER"):
            self.expect("(")
            key = self.string().strip()
            self.expect(")")
            if not key:
                self.reject("Header column must have a non-empty header key name defined")
            return Constraint(ConstraintKind.HEADER, key, position=position)
        return None

    def _check_header(self, type_: SqlType, constraint: Constraint) -> None:
        if any(isinstance(part, TypeRef) for part in parts_of(type_)):
            return  # what it stands for is known only to the catalog
        problem = header_type_problem(type_, constraint.header_key)
        if problem is not None:
            self.reject(problem)

    def properties(self, *, keep_case: bool = False) -> Properties:
        if not self.accept("WITH"):
            return ()
        self.expect("(")
        entries = self.listed(self._property)
        self.expect(")")
        seen: dict[str, Literal] = {}
        for name, value in entries:
            key = name if keep_case else name.upper()
            if key in seen:
                old, new = display_expression(seen[key]), display_expression(value)
                self.reject(f"Multiple entries with same key: {name}={old} and {name}={new}")
            seen[key] = value
        return tuple(seen.items())

    def _property(self) -> tuple[str, Literal]:
        name = self.string() if self.kind == "string" else self.identifier()
        self.expect("=")
        return name, self.literal()

    def timeout(self) -> Duration | None:
        return self.duration() if self.accept("TIMEOUT") else None

    def key_must_be(self, wanted: ConstraintKind, elements: tuple[TableElement, ...]) -> None:
        """Streams have keys, tables primary keys: neither takes the other's word."""
        wrong, sources = _OTHER_KEY[wanted]
        for element in elements:
            if element.constraint is not None and element.constraint.kind is wrong:
                message = (
                    f"{at(element.position)}: Column {quote(element.name)} is a '{wrong.value}' "
                    f"column: please use '{wanted.value}' for {sources}.\n"
                    "Tables have PRIMARY KEYs, which are unique and NON NULL.\n"
                    "Streams have KEYs, which have no uniqueness or NON NULL constraints."
                )
                self.problems.append(ParseError(message, element.position, quote(element.name)))
                return


_OTHER_KEY: dict[ConstraintKind, tuple[ConstraintKind, str]] = {
    ConstraintKind.KEY: (ConstraintKind.PRIMARY_KEY, "streams"),
    ConstraintKind.PRIMARY_KEY: (ConstraintKind.KEY, "tables"),
}
