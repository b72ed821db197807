"""The parser's entry points: text to statements, an expression, or a type."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from headrace.model.errors import ParseError, Position
from headrace.model.types import SqlType
from headrace.sql.cursor import MAX_NESTING, TOO_LARGE, Cursor, Unexpected, at
from headrace.sql.diagnosis import diagnose
from headrace.sql.expression_parser import ExpressionParser
from headrace.sql.statements.statement_parser import StatementParser
from headrace.sql.tokens import tokenize
from headrace.sql.tree import ColumnRef, Expression, Node, Statement, children
from headrace.sql.type_parser import TypeParser

T = TypeVar("T")


@dataclass(frozen=True)
class ParsedStatement:
    """A statement and its exact text, from its first word to its semicolon."""

    text: str
    statement: Statement


@dataclass(frozen=True)
class StatementText:
    """One statement of a script, not yet parsed.

    `directives` are the comments `--@…` after the statement before and before this one's end.
    """

    text: str
    position: Position
    directives: tuple[str, ...] = ()


def parse(text: str, *, tests: bool = False) -> list[ParsedStatement]:
    """All statements of a text; `tests` allows those that only test files may hold."""
    source = tokenize(text)
    parsed: list[ParsedStatement] = []
    problems: list[ParseError] = []
    index = 0
    while source.tokens[index].kind != "eof":
        parser = StatementParser(source, tests=tests, start=index)
        statement = read_statement(parser)
        own_text = text[source.tokens[index].start : source.tokens[parser.index - 1].end]
        parsed.append(ParsedStatement(own_text, statement))
        problems += statement_problems(parser, own_text)
        index = parser.index
    if problems:
        raise problems[0]
    return parsed


def parse_statement(text: str, *, tests: bool = False) -> Statement:
    """The only statement of a text."""
    parsed = parse(text, tests=tests)
    if len(parsed) != 1:
        raise ParseError(f"Expected exactly one KSQL statement; found {len(parsed)} instead")
    return parsed[0].statement


def parse_expression(text: str) -> Expression:
    parser = ExpressionParser(tokenize(text))
    return _only(parser, parser.expression)


def parse_type(text: str) -> SqlType:
    parser = TypeParser(tokenize(text))
    return _only(parser, parser.type)


def parse_column(text: str) -> str:
    """The name in a text that names a column, as the TIMESTAMP property does."""
    try:
        expression = parse_expression(text)
    except ParseError:
        expression = None
    if not isinstance(expression, ColumnRef):
        raise ParseError(f"Cannot parse text that is not column reference: {text}", statement=text)
    return expression.name


def split(text: str) -> Iterator[StatementText]:
    """The statements of a script by their semicolons alone, so that each can fail by itself."""
    source = tokenize(text)
    directives = deque(source.directives)
    start = None
    for token in source.tokens:
        if start is None:
            start = token
        if token.kind == ";" or (token.kind == "eof" and token is not start):
            own = []
            while directives and directives[0].start < token.end:
                own.append(directives.popleft().text)
            end = token.end if token.kind == ";" else len(text.rstrip())
            yield StatementText(text[start.start : end], source.position(start.start), tuple(own))
            start = None


def read_statement(parser: StatementParser) -> Statement:
    """One statement and its semicolon."""

    def read() -> Statement:
        statement = parser.statement()
        parser.expect(";")
        return statement

    return _bounded(parser, read)


def statement_problems(parser: StatementParser, text: str) -> Iterator[ParseError]:
    """What is wrong with a well-formed statement; its text goes with each error."""
    problems = [*parser.problems, *_unknown_sources(parser), *_unresolved_variables(parser)]
    for problem in problems:
        if problem.statement is None:
            problem.statement = text
        yield problem


def _only(parser: Cursor, read: Callable[[], T]) -> T:
    """What is read, if nothing is wrong with it and nothing follows."""

    def whole() -> T:
        result = read()
        parser.expect("eof")
        return result

    result = _bounded(parser, whole)
    for problem in (*parser.problems, *_unresolved_variables(parser)):
        raise problem
    return result


def _bounded(parser: Cursor, read: Callable[[], T]) -> T:
    """The result of reading, unless it is nested too deeply to be walked."""
    source = parser.source
    try:
        result = read()
    except Unexpected as unexpected:
        raise diagnose(parser, unexpected) from None
    except RecursionError:
        raise ParseError(TOO_LARGE, statement=source.text) from None
    if (
        len(source.tokens) > MAX_NESTING
        and isinstance(result, Node)
        and _depth(result) > MAX_NESTING
    ):
        raise ParseError(TOO_LARGE, statement=source.text)
    return result


def _depth(root: Node) -> int:
    deepest = 0
    todo = [(root, 1)]
    while todo:
        node, depth = todo.pop()
        deepest = max(deepest, depth)
        todo += ((child, depth + 1) for child in children(node))
    return deepest


def _unknown_sources(parser: StatementParser) -> Iterator[ParseError]:
    for name, position in parser.qualifiers:
        if name not in parser.sources:
            message = f"'{name}' is not a valid stream/table name or alias."
            yield ParseError(f"Failed to prepare statement: {message}", position)


def _unresolved_variables(parser: Cursor) -> Iterator[ParseError]:
    for use in parser.variables:
        yield illegal_argument("${" + use.name + "}", use.position, name=not use.may_be_literal)


def illegal_argument(value: str, position: Position, *, name: bool) -> ParseError:
    """A variable's value that may not stand where the variable stands."""
    rule = (
        " Identifier names cannot start with '@' and may only contain alphanumeric values and '_'."
        if name
        else ""
    )
    return ParseError(f"Illegal argument at {at(position)}.{rule} Got: '{value}'", position)
