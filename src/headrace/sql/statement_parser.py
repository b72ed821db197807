"""Parses statements: a table from a statement's first words to its class and parser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from headrace.model.errors import ParseError, Position
from headrace.model.schema import header_type_problem
from headrace.model.types import SqlType, quote, walk
from headrace.sql import ast
from headrace.sql.ast import (
    HEADER_KINDS,
    ConnectorType,
    Constraint,
    ConstraintKind,
    Properties,
    Statement,
)
from headrace.sql.cursor import at
from headrace.sql.printer import display_expression
from headrace.sql.query_parser import QueryParser

Reader = Callable[["StatementParser", Position], Statement]


class Form(NamedTuple):
    """What statements that begin with the same words are: of `kind`, or of one with its effect."""

    kind: type[Statement]
    read: Reader


_ENDS = frozenset({";", "eof"})


class StatementParser(QueryParser):
    def whole(self) -> object:
        while self.kind != "eof":
            self.statement()
            self.expect(";")
        return self.expect("eof")

    def statement(self) -> Statement:
        position = self.position
        readers = TEST_STATEMENTS if self.tests else STATEMENTS
        for length in (3, 2, 1):
            words = tuple(SYNONYMS.get(self.peek(i), self.peek(i)) for i in range(length))
            form = readers.get(words)
            if form is not None:
                self.index += length
                return form.read(self, position)
        # Fail at the first word with which no statement begins or goes on.
        taken: tuple[str, ...] = ()
        while True:
            taken = (*taken, SYNONYMS.get(self.kind, self.kind))
            if not any(words[: len(taken)] == taken for words in readers):
                self.fail()
            self.advance()

    # ----------------------------------------------------------------------------- shared clauses

    def accept_if_not_exists(self) -> bool:
        return self.accept("IF", "NOT", "EXISTS")

    def accept_if_exists(self) -> bool:
        return self.accept("IF", "EXISTS")

    def elements(self) -> tuple[ast.TableElement, ...]:
        if not self.accept("("):
            return ()
        elements = self.listed(self._element)
        self.expect(")")
        names = [element.name for element in elements]
        duplicates = [name for name, times in Counter(names).items() if times > 1]
        if duplicates:
            self.reject(f"Duplicate column names: {', '.join(map(quote, duplicates))}")
        return elements

    def _element(self) -> ast.TableElement:
        position = self.position
        name = self.identifier()
        type_ = self.type()
        constraint = self._constraint()
        if constraint is not None and constraint.kind in HEADER_KINDS:
            self._check_header(type_, constraint)
        return ast.TableElement(name, type_, constraint, position=position)

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
        if any(isinstance(part, ast.TypeRef) for part in walk(type_)):
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
        seen: dict[str, ast.Literal] = {}
        for name, value in entries:
            key = name if keep_case else name.upper()
            if key in seen:
                old, new = display_expression(seen[key]), display_expression(value)
                self.reject(f"Multiple entries with same key: {name}={old} and {name}={new}")
            seen[key] = value
        return tuple(seen.items())

    def _property(self) -> tuple[str, ast.Literal]:
        name = self.string() if self.kind == "string" else self.identifier()
        self.expect("=")
        return name, self.literal()

    def timeout(self) -> ast.Duration | None:
        return self.duration() if self.accept("TIMEOUT") else None

    def row(self, keyword: str) -> ast.InsertValues:
        """A target, its columns, and their values after the keyword."""
        position = self.position
        target = self.source_name()
        columns: tuple[str, ...] = ()
        if self.accept("("):
            columns = self.listed(self.identifier)
            self.expect(")")
        self.expect(keyword)
        self.expect("(")
        values = () if self.kind == ")" else self.listed(self.value)
        self.expect(")")
        if not values:
            self.reject("Expected some values for INSERT INTO statement.")
        elif columns and len(columns) != len(values):
            self.reject(
                f"Expected number columns and values to match: {len(columns)}, {len(values)}"
            )
        return ast.InsertValues(target, columns, values, position=position)

    def key_must_be(self, wanted: ConstraintKind, elements: tuple[ast.TableElement, ...]) -> None:
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


# ------------------------------------------------------------------------------- CREATE, INSERT


def _create_stream(p: StatementParser, position: Position) -> Statement:
    return _create(p, position, "STREAM")


def _create_table(p: StatementParser, position: Position) -> Statement:
    return _create(p, position, "TABLE")


def _create_or_replace(p: StatementParser, position: Position) -> Statement:
    is_source = p.accept("SOURCE")
    kind = "TABLE" if p.kind == "TABLE" else "STREAM"
    p.expect(kind)
    return _create(p, position, kind, or_replace=True, is_source=is_source)


def _create_source_stream(p: StatementParser, position: Position) -> Statement:
    return _create(p, position, "STREAM", is_source=True)


def _create_source_table(p: StatementParser, position: Position) -> Statement:
    return _create(p, position, "TABLE", is_source=True)


def _create(
    p: StatementParser,
    position: Position,
    kind: str,
    *,
    or_replace: bool = False,
    is_source: bool = False,
) -> Statement:
    if_not_exists = p.accept_if_not_exists()
    name = p.source_name()
    elements = p.elements()
    properties = p.properties()
    if not elements and not is_source and p.accept("AS"):
        query = p.query(persistent=True)
        if query.limit is not None:
            p.reject(f"CREATE {kind} AS SELECT statements don't support LIMIT clause.")
        return _CREATE_AS[kind](
            name, query, properties, or_replace, if_not_exists, position=position
        )
    p.key_must_be(_KEYS[kind], elements)
    return _CREATE[kind](
        name, elements, properties, or_replace, if_not_exists, is_source, position=position
    )


_CREATE: dict[str, type[ast.CreateSource]] = {"STREAM": ast.CreateStream, "TABLE": ast.CreateTable}
_CREATE_AS: dict[str, type[ast.CreateAsSelect]] = {
    "STREAM": ast.CreateStreamAsSelect,
    "TABLE": ast.CreateTableAsSelect,
}
_KEYS = {"STREAM": ConstraintKind.KEY, "TABLE": ConstraintKind.PRIMARY_KEY}


def _create_type(p: StatementParser, position: Position) -> Statement:
    if_not_exists = p.accept_if_not_exists()
    name = p.identifier()
    p.expect("AS")
    return ast.CreateType(name, p.type(), if_not_exists, position=position)


def _create_connector(type_: ConnectorType) -> Reader:
    def read(p: StatementParser, position: Position) -> Statement:
        if_not_exists = p.accept_if_not_exists()
        name = p.identifier()
        if p.kind != "WITH":
            p.expect("WITH")
        properties = p.properties(keep_case=True)
        return ast.CreateConnector(name, type_, properties, if_not_exists, position=position)

    return read


def _insert(p: StatementParser, position: Position) -> Statement:
    if p.peek(1) in ("(", "VALUES"):
        return p.row("VALUES")
    target_position = p.position
    target = p.source_name()
    properties = p.properties()
    query = p.query(persistent=True)
    return ast.InsertInto(target, query, properties, position=target_position)


# --------------------------------------------------------------------------------- DROP, ALTER


def _drop_source(make: type[ast.DropSource]) -> Reader:
    def read(p: StatementParser, position: Position) -> Statement:
        if_exists = p.accept_if_exists()
        name = p.source_name()
        delete_topic = p.accept("DELETE")
        if delete_topic:
            p.expect("TOPIC")
        return make(name, if_exists, delete_topic, position=position)

    return read


def _drop_named(make: type[ast.DropType] | type[ast.DropConnector]) -> Reader:
    def read(p: StatementParser, position: Position) -> Statement:
        if_exists = p.accept_if_exists()
        return make(p.identifier(), if_exists, position=position)

    return read


def _alter_source(make: type[ast.AlterSource]) -> Reader:
    def option(p: StatementParser) -> ast.AlterOption:
        position = p.position_of(p.expect("ADD"))
        if p.kind == "COLUMN" and p.sees_name(1) and not _ends_type(p.peek(2)):
            p.advance()
        return ast.AlterOption(p.identifier(), p.type(), position=position)

    def read(p: StatementParser, position: Position) -> Statement:
        name = p.source_name()
        return make(name, p.listed(lambda: option(p)), position=position)

    return read


def _ends_type(kind: str) -> bool:
    """Whether a type that begins before this token is over: `COLUMN INT` is a column COLUMN."""
    return kind in _ENDS or kind in (",", "(", "<")


def _alter_system(p: StatementParser, position: Position) -> Statement:
    name = p.string()
    p.expect("=")
    return ast.AlterSystem(name, p.string(), position=position)


# ------------------------------------------------------------------------- settings and variables


def _set(p: StatementParser, position: Position) -> Statement:
    name = p.string()
    p.expect("=")
    return ast.SetProperty(name, p.string(), position=position)


def _unset(p: StatementParser, position: Position) -> Statement:
    return ast.UnsetProperty(p.string(), position=position)


def _variable_name(p: StatementParser) -> str:
    if p.kind != "identifier" and not p.kind.isupper():  # any word may name a variable
        p.fail()
    return p.advance().text


def _define(p: StatementParser, position: Position) -> Statement:
    name = _variable_name(p)
    p.expect("=")
    return ast.DefineVariable(name, p.string(), position=position)


def _undefine(p: StatementParser, position: Position) -> Statement:
    return ast.UndefineVariable(_variable_name(p), position=position)


# ------------------------------------------------------------------------- queries and questions


def _select(p: StatementParser, position: Position) -> Statement:
    return p.query_body(position)


def _control(make: type[ast.QueryControl]) -> Reader:
    def read(p: StatementParser, position: Position) -> Statement:
        query_id = None if p.accept("ALL") else p.identifier()
        return make(query_id, position=position)

    return read


def _words_only(make: Callable[..., Statement]) -> Reader:
    """A statement that is nothing but its words."""

    def read(p: StatementParser, position: Position) -> Statement:
        return make(position=position)

    return read


def _extendable(make: Callable[..., Statement], **fixed: bool) -> Reader:
    """A statement that EXTENDED may follow."""

    def read(p: StatementParser, position: Position) -> Statement:
        return make(extended=p.accept("EXTENDED"), position=position, **fixed)

    return read


def _list_connectors(type_: ConnectorType | None) -> Reader:
    def read(p: StatementParser, position: Position) -> Statement:
        return ast.ListConnectors(type_, position=position)

    return read


def _describe(p: StatementParser, position: Position) -> Statement:
    name = p.source_name()
    return ast.DescribeSource(name, p.accept("EXTENDED"), position=position)


def _describe_function(p: StatementParser, position: Position) -> Statement:
    if p.kind in _ENDS or p.kind == "EXTENDED":  # a source that is called FUNCTION
        return ast.DescribeSource("FUNCTION", p.accept("EXTENDED"), position=position)
    text = p.token.text
    p.identifier()
    return ast.DescribeFunction(text, position=position)


def _describe_connector(p: StatementParser, position: Position) -> Statement:
    return ast.DescribeConnector(p.identifier(), position=position)


def _explain(p: StatementParser, position: Position) -> Statement:
    readers = TEST_STATEMENTS if p.tests else STATEMENTS
    begins = any(words[0] == SYNONYMS.get(p.kind, p.kind) for words in readers)
    if begins and not (p.sees_name() and p.peek(1) in _ENDS):
        p.deeper()
        statement = p.statement()
        p.shallower()
        return ast.Explain(statement=statement, position=position)
    return ast.Explain(query_id=p.identifier(), position=position)


def _print(p: StatementParser, position: Position) -> Statement:
    topic = p.resource_name()
    from_beginning = p.accept("FROM")
    if from_beginning:
        p.expect("BEGINNING")
    interval = None
    if p.accept("INTERVAL") or p.accept("SAMPLE"):
        interval = p.integer("INTERVAL")
    return ast.PrintTopic(topic, from_beginning, interval, p.limit(), position=position)


# ------------------------------------------------------------------------------------ assertions


def _assert_topic(exists: bool) -> Reader:
    def read(p: StatementParser, position: Position) -> Statement:
        topic = p.resource_name()
        properties = p.properties()
        return ast.AssertTopic(topic, properties, p.timeout(), exists, position=position)

    return read


def _assert_schema(exists: bool) -> Reader:
    def read(p: StatementParser, position: Position) -> Statement:
        subject = p.resource_name() if p.accept("SUBJECT") else None
        literal = p.literal() if p.accept("ID") else None
        if literal is not None and not isinstance(literal, ast.IntegerLiteral):
            p.reject("ID must be an integer")
        if subject is None and literal is None:
            p.reject("ASSERT SCHEMA statements much include a subject name or an id")
        id_ = literal.value if isinstance(literal, ast.IntegerLiteral) else None
        return ast.AssertSchema(subject, id_, p.timeout(), exists, position=position)

    return read


def _assert_absent(p: StatementParser, position: Position) -> Statement:
    if p.accept("SCHEMA"):
        return _assert_schema(exists=False)(p, position)
    p.expect("TOPIC")
    return _assert_topic(exists=False)(p, position)


def _assert_values(p: StatementParser, position: Position) -> Statement:
    return ast.AssertValues(p.row("VALUES"), position=position)


def _assert_tombstone(p: StatementParser, position: Position) -> Statement:
    return ast.AssertTombstone(p.row("KEY"), position=position)


def _assert_stream(p: StatementParser, position: Position) -> Statement:
    name, elements = p.source_name(), p.elements()
    p.key_must_be(ConstraintKind.KEY, elements)
    expected = ast.CreateStream(name, elements, p.properties(), position=position)
    return ast.AssertStream(expected, position=position)


def _assert_table(p: StatementParser, position: Position) -> Statement:
    name, elements = p.source_name(), p.elements()
    p.key_must_be(ConstraintKind.PRIMARY_KEY, elements)
    expected = ast.CreateTable(name, elements, p.properties(), position=position)
    return ast.AssertTable(expected, position=position)


def _run_script(p: StatementParser, position: Position) -> Statement:
    return ast.RunScript(p.string(), position=position)


# ------------------------------------------------------------------------------------ the table

# LIST and SHOW are the same word.
SYNONYMS = {"LIST": "SHOW"}

STATEMENTS: dict[tuple[str, ...], Form] = {
    ("SELECT",): Form(ast.Query, _select),
    ("CREATE", "STREAM"): Form(ast.CreateStream, _create_stream),
    ("CREATE", "TABLE"): Form(ast.CreateTable, _create_table),
    ("CREATE", "OR", "REPLACE"): Form(ast.CreateSource, _create_or_replace),
    ("CREATE", "SOURCE", "STREAM"): Form(ast.CreateStream, _create_source_stream),
    ("CREATE", "SOURCE", "TABLE"): Form(ast.CreateTable, _create_source_table),
    ("CREATE", "TYPE"): Form(ast.CreateType, _create_type),
    ("CREATE", "SOURCE", "CONNECTOR"): Form(
        ast.CreateConnector, _create_connector(ConnectorType.SOURCE)
    ),
    ("CREATE", "SINK", "CONNECTOR"): Form(
        ast.CreateConnector, _create_connector(ConnectorType.SINK)
    ),
    ("INSERT", "INTO"): Form(ast.InsertInto, _insert),
    ("DROP", "STREAM"): Form(ast.DropStream, _drop_source(ast.DropStream)),
    ("DROP", "TABLE"): Form(ast.DropTable, _drop_source(ast.DropTable)),
    ("DROP", "TYPE"): Form(ast.DropType, _drop_named(ast.DropType)),
    ("DROP", "CONNECTOR"): Form(ast.DropConnector, _drop_named(ast.DropConnector)),
    ("ALTER", "STREAM"): Form(ast.AlterStream, _alter_source(ast.AlterStream)),
    ("ALTER", "TABLE"): Form(ast.AlterTable, _alter_source(ast.AlterTable)),
    ("ALTER", "SYSTEM"): Form(ast.AlterSystem, _alter_system),
    ("TERMINATE",): Form(ast.TerminateQuery, _control(ast.TerminateQuery)),
    ("PAUSE",): Form(ast.PauseQuery, _control(ast.PauseQuery)),
    ("RESUME",): Form(ast.ResumeQuery, _control(ast.ResumeQuery)),
    ("SET",): Form(ast.SetProperty, _set),
    ("UNSET",): Form(ast.UnsetProperty, _unset),
    ("DEFINE",): Form(ast.DefineVariable, _define),
    ("UNDEFINE",): Form(ast.UndefineVariable, _undefine),
    ("SHOW", "PROPERTIES"): Form(ast.ListProperties, _words_only(ast.ListProperties)),
    ("SHOW", "TOPICS"): Form(ast.ListTopics, _extendable(ast.ListTopics)),
    ("SHOW", "ALL", "TOPICS"): Form(ast.ListTopics, _extendable(ast.ListTopics, all=True)),
    ("SHOW", "STREAMS"): Form(ast.ListStreams, _extendable(ast.ListStreams)),
    ("SHOW", "TABLES"): Form(ast.ListTables, _extendable(ast.ListTables)),
    ("SHOW", "QUERIES"): Form(ast.ListQueries, _extendable(ast.ListQueries)),
    ("SHOW", "FUNCTIONS"): Form(ast.ListFunctions, _words_only(ast.ListFunctions)),
    ("SHOW", "CONNECTORS"): Form(ast.ListConnectors, _list_connectors(None)),
    ("SHOW", "SOURCE", "CONNECTORS"): Form(
        ast.ListConnectors, _list_connectors(ConnectorType.SOURCE)
    ),
    ("SHOW", "SINK", "CONNECTORS"): Form(ast.ListConnectors, _list_connectors(ConnectorType.SINK)),
    ("SHOW", "CONNECTOR", "PLUGINS"): Form(
        ast.ListConnectorPlugins, _words_only(ast.ListConnectorPlugins)
    ),
    ("SHOW", "TYPES"): Form(ast.ListTypes, _words_only(ast.ListTypes)),
    ("SHOW", "VARIABLES"): Form(ast.ListVariables, _words_only(ast.ListVariables)),
    ("DESCRIBE",): Form(ast.DescribeSource, _describe),
    ("DESCRIBE", "STREAMS"): Form(ast.DescribeStreams, _extendable(ast.DescribeStreams)),
    ("DESCRIBE", "TABLES"): Form(ast.DescribeTables, _extendable(ast.DescribeTables)),
    ("DESCRIBE", "FUNCTION"): Form(ast.DescribeFunction, _describe_function),
    ("DESCRIBE", "CONNECTOR"): Form(ast.DescribeConnector, _describe_connector),
    ("EXPLAIN",): Form(ast.Explain, _explain),
    ("PRINT",): Form(ast.PrintTopic, _print),
    ("ASSERT", "TOPIC"): Form(ast.AssertTopic, _assert_topic(exists=True)),
    ("ASSERT", "NOT", "EXISTS"): Form(ast.AssertTopic, _assert_absent),
    ("ASSERT", "SCHEMA"): Form(ast.AssertSchema, _assert_schema(exists=True)),
}

TEST_STATEMENTS: dict[tuple[str, ...], Form] = STATEMENTS | {
    ("ASSERT", "VALUES"): Form(ast.AssertValues, _assert_values),
    ("ASSERT", "NULL", "VALUES"): Form(ast.AssertTombstone, _assert_tombstone),
    ("ASSERT", "STREAM"): Form(ast.AssertStream, _assert_stream),
    ("ASSERT", "TABLE"): Form(ast.AssertTable, _assert_table),
    ("RUN", "SCRIPT"): Form(ast.RunScript, _run_script),
}
