"""Trees to text, as ksqlDB prints them.

`format_statement` and `format_expression` give text that parses to the same tree again.
`display_expression` gives the text that ksqlDB shows in messages and uses for names: the same, but
with no name in quotes.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from headrace.model.types import Array, Field, Map, SqlType, Struct
from headrace.model.types import quote as quoted
from headrace.sql import ast
from headrace.sql.ast import Expression, Node, Statement
from headrace.sql.keywords import RESERVED

_PLAIN_NAME = re.compile(r"[A-Z_][A-Z0-9_@]*|[0-9][A-Z0-9_@]+")
_NUMBER = re.compile(r"[0-9]+(E[0-9]+)?")
# Words that may be names, but begin something else when the symbol beside them follows.
_AMBIGUOUS = frozenset({"ARRAY", "MAP", "STRUCT"})


def format_statement(statement: Statement) -> str:
    """The statement as SQL, ending with a semicolon."""
    return _print(statement, _name).rstrip("\n") + ";"


def format_expression(expression: Expression) -> str:
    return _print(expression, _name)


def display_expression(expression: Expression) -> str:
    return _print(expression, _bare)


def format_type(type_: SqlType) -> str:
    return _type(type_, _name)


@lru_cache(maxsize=4096)
def needs_quotes(name: str) -> bool:
    """Whether the name, written as it is, would not be read as this name."""
    return (
        _PLAIN_NAME.fullmatch(name) is None
        or name in RESERVED
        or _NUMBER.fullmatch(name) is not None
    )


# A way to write names: quoted where needed, or never.
Names = Callable[[str], str]


def _name(name: str) -> str:
    return quoted(name) if needs_quotes(name) else name


def _bare(name: str) -> str:
    return name


def _print(node: Node, names: Names) -> str:
    text: str = _PRINTERS[type(node)](node, names)
    return text


def _list(nodes: Iterable[Node], names: Names) -> str:
    return ", ".join(_print(node, names) for node in nodes)


def _string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _type(type_: SqlType, names: Names) -> str:
    match type_:
        case Array(element):
            return f"ARRAY<{_type(element, names)}>"
        case Map(key, value):
            return f"MAP<{_type(key, names)}, {_type(value, names)}>"
        case Struct(fields):
            return f"STRUCT<{', '.join(_field(f, names) for f in fields) or ' '}>"
        case ast.TypeRef(name):
            return names(name)
    return str(type_)


def _field(field: Field, names: Names) -> str:
    return f"{names(field.name)} {_type(field.type, names)}"


# ---------------------------------------------------------------------------------- expressions


def _decimal(literal: ast.DecimalLiteral, names: Names) -> str:
    if names is _bare:
        return str(literal.value)
    text = format(literal.value, "f")  # an exponent would make it a DOUBLE
    return text if "." in text else text + "."


def _double(literal: ast.DoubleLiteral, _: Names) -> str:
    """In scientific notation with the fewest digits, which no other literal is written in."""
    sign, digits, exponent = decimal.Decimal(repr(literal.value)).normalize().as_tuple()
    assert isinstance(exponent, int)  # literals are finite
    text = "".join(map(str, digits))
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{'-' if sign else ''}{text[0]}{fraction}E{exponent + len(text) - 1}"


def _column(column: ast.ColumnRef, names: Names) -> str:
    if column.stands_for is not None:
        return column.stands_for
    return f"{names(column.source)}.{names(column.name)}" if column.source else names(column.name)


def _sign(node: ast.Sign, names: Names) -> str:
    operand = _print(node.operand, names)
    if names is _name and isinstance(node.operand, ast.Literal) and not operand.startswith("-"):
        return f"{node.op}({operand})"  # else the sign would become part of the number
    space = " " if operand.startswith("-") and node.op == "-" else ""  # two make a comment
    return f"{node.op}{space}{operand}"


def _base(node: Expression, names: Names) -> str:
    """What a subscript, a field or a time zone is taken of."""
    text = _print(node, names)
    if names is _name:
        if isinstance(node, ast.Sign):
            return f"({text})"
        if isinstance(node, ast.ColumnRef | ast.LambdaVar) and text in _AMBIGUOUS:
            return quoted(text)
    return text


def _binary(node: Any, names: Names) -> str:
    return f"({_print(node.left, names)} {node.op} {_print(node.right, names)})"


def _like(node: ast.Like, names: Names) -> str:
    escape = f" ESCAPE {_string(node.escape)}" if node.escape is not None else ""
    return f"({_print(node.value, names)} LIKE {_print(node.pattern, names)}{escape})"


def _case(node: ast.SearchedCase | ast.SimpleCase, names: Names) -> str:
    parts = ["CASE"]
    if isinstance(node, ast.SimpleCase):
        parts.append(_print(node.operand, names))
    parts += [_print(when, names) for when in node.whens]
    if node.default is not None:
        parts += ["ELSE", _print(node.default, names)]
    return f"({' '.join(parts)} END)"


def _call(node: ast.Call, names: Names) -> str:
    args = "*" if node.name == "COUNT" and not node.args else _list(node.args, names)
    name = names(node.name)
    # MAP() and STRUCT() without arguments are constructors.
    return f"{quoted(name) if name in _AMBIGUOUS and names is _name else name}({args})"


def _map(node: ast.CreateMap, names: Names) -> str:
    entries = (f"{_print(k, names)}:={_print(v, names)}" for k, v in node.entries)
    return f"MAP({', '.join(entries)})"


def _struct(node: ast.CreateStruct, names: Names) -> str:
    fields = (f"{names(name)}:={_print(value, names)}" for name, value in node.fields)
    return f"STRUCT({', '.join(fields)})"


# -------------------------------------------------------------------------------------- queries


def _query(node: ast.Query, names: Names) -> str:
    items = [_print(item, names) for item in node.select]
    lines = [f"SELECT {items[0]}" if len(items) == 1 else "SELECT\n  " + ",\n  ".join(items)]
    lines.append(f"FROM {_print(node.source, names)}")
    if node.window is not None:
        lines.append(f"WINDOW {_print(node.window, names)} ")
    if node.where is not None:
        lines.append(f"WHERE {_print(node.where, names)}")
    for clause, group in (("GROUP BY", node.group_by), ("PARTITION BY", node.partition_by)):
        if group is not None:
            lines.append(f"{clause} {_list(group, names)}")
    if node.having is not None:
        lines.append(f"HAVING {_print(node.having, names)}")
    if node.emit is not None:
        lines.append(f"EMIT {node.emit.value}")
    if node.limit is not None:
        lines.append(f"LIMIT {node.limit}")
    return "\n".join(lines)


def _window(kind: str, *parts: str) -> str:
    return f"{kind} ( {' , '.join(part for part in parts if part)} )"


def _clause(words: str, duration: ast.Duration | None) -> str:
    return f"{words} {_duration(duration)}" if duration is not None else ""


def _duration(node: ast.Duration) -> str:
    return f"{node.value} {node.unit.name}"


def _tail(node: ast.TumblingWindow | ast.HoppingWindow | ast.SessionWindow) -> tuple[str, str]:
    return _clause("RETENTION", node.retention), _clause("GRACE PERIOD", node.grace)


def _single_column(node: ast.SingleColumn, names: Names) -> str:
    alias = f" {names(node.alias)}" if node.alias is not None else ""
    return _print(node.expression, names) + alias


def _joined(node: ast.JoinedSource, names: Names) -> str:
    within = _print(node.within, names) if node.within is not None else ""
    relation = _print(node.relation, names)
    return f"\n{node.type.value} JOIN {relation}{within} ON ({_print(node.on, names)})"


def _within(node: ast.Within, _: Names) -> str:
    before, after = _duration(node.before), _duration(node.after)
    grace = f" {_clause('GRACE PERIOD', node.grace)}" if node.grace is not None else ""
    return f" WITHIN {before if before == after else f'({before}, {after})'}{grace}"


# ----------------------------------------------------------------------------------- statements


def _with(properties: ast.Properties, names: Names, before: str = " ") -> str:
    if not properties:
        return ""
    entries = (f"{_property_name(name)}={_print(value, names)}" for name, value in properties)
    return f"{before}WITH ({', '.join(entries)})"


def _property_name(name: str) -> str:
    return _string(name) if needs_quotes(name) else name


def _elements(elements: tuple[ast.TableElement, ...], names: Names) -> str:
    return f" ({_list(elements, names)})" if elements else ""


def _element(node: ast.TableElement, names: Names) -> str:
    constraint = f" {_print(node.constraint, names)}" if node.constraint is not None else ""
    return f"{names(node.name)} {_type(node.type, names)}{constraint}"


def _constraint(node: ast.Constraint, _: Names) -> str:
    key = f"({_string(node.header_key)})" if node.header_key is not None else ""
    return node.kind.value + key


def _words(*words: str | tuple[bool, str]) -> str:
    """The words that are not empty or switched off, with blanks between them."""
    pairs = (word if isinstance(word, tuple) else (bool(word), word) for word in words)
    return " ".join(word for switch, word in pairs if switch)


def _create(kind: str) -> Callable[[Any, Names], str]:
    def text(node: ast.CreateSource, names: Names) -> str:
        head = _words(
            "CREATE",
            (node.or_replace, "OR REPLACE"),
            (node.is_source, "SOURCE"),
            kind,
            (node.if_not_exists, "IF NOT EXISTS"),
            names(node.name),
        )
        return head + _elements(node.elements, names) + _with(node.properties, names)

    return text


def _create_as(kind: str) -> Callable[[Any, Names], str]:
    def text(node: ast.CreateAsSelect, names: Names) -> str:
        head = _words(
            "CREATE",
            (node.or_replace, "OR REPLACE"),
            kind,
            (node.if_not_exists, "IF NOT EXISTS"),
            names(node.name),
        )
        return f"{head}{_with(node.properties, names)} AS {_print(node.query, names)}"

    return text


def _row(verb: str, keyword: str) -> Callable[[ast.InsertValues, Names], str]:
    def text(node: ast.InsertValues, names: Names) -> str:
        columns = f"({', '.join(map(names, node.columns))}) " if node.columns else ""
        values = _list(node.values, names)
        return f"{verb} {names(node.target)} {columns}{keyword} ({values})"

    return text


_insert_values = _row("INSERT INTO", "VALUES")
_assert_values = _row("ASSERT VALUES", "VALUES")
_assert_tombstone = _row("ASSERT NULL VALUES", "KEY")


def _insert_into(node: ast.InsertInto, names: Names) -> str:
    properties = _with(node.properties, names)
    return f"INSERT INTO {names(node.target)}{properties} {_print(node.query, names)}"


def _drop(kind: str) -> Callable[[Any, Names], str]:
    def text(node: Any, names: Names) -> str:
        delete_topic = getattr(node, "delete_topic", False)
        return _words(
            f"DROP {kind}",
            (node.if_exists, "IF EXISTS"),
            names(node.name),
            (delete_topic, "DELETE TOPIC"),
        )

    return text


def _alter(kind: str) -> Callable[[Any, Names], str]:
    def text(node: ast.AlterSource, names: Names) -> str:
        options = ",\n".join(
            f"ADD COLUMN {names(option.name)} {_type(option.type, names)}"
            for option in node.options
        )
        return f"ALTER {kind} {names(node.name)}\n{options}"

    return text


def _create_connector(node: ast.CreateConnector, names: Names) -> str:
    head = _words(
        f"CREATE {node.type.value} CONNECTOR",
        (node.if_not_exists, "IF NOT EXISTS"),
        names(node.name),
    )
    return head + _with(node.properties, names)


def _control(verb: str) -> Callable[[Any, Names], str]:
    def text(node: ast.QueryControl, names: Names) -> str:
        return f"{verb} {'ALL' if node.query_id is None else names(node.query_id)}"

    return text


def _extendable(words: str) -> Callable[[Any, Names], str]:
    def text(node: Any, _: Names) -> str:
        return _words(words, (node.extended, "EXTENDED"))

    return text


def _explain(node: ast.Explain, names: Names) -> str:
    if node.statement is not None:
        return f"EXPLAIN \n{_print(node.statement, names)}"
    return f"EXPLAIN \n{names(node.query_id or '')}"


def _print_topic(node: ast.PrintTopic, _: Names) -> str:
    return _words(
        f"PRINT {_string(node.topic)}",
        (node.from_beginning, "FROM BEGINNING"),
        (node.interval is not None, f"INTERVAL {node.interval}"),
        (node.limit is not None, f"LIMIT {node.limit}"),
    )


def _assert_topic(node: ast.AssertTopic, names: Names) -> str:
    exists = "" if node.exists else "NOT EXISTS "
    timeout = f" {_clause('TIMEOUT', node.timeout)}" if node.timeout is not None else ""
    return f"ASSERT {exists}TOPIC {_string(node.topic)}{_with(node.properties, names)}{timeout}"


def _assert_schema(node: ast.AssertSchema, _: Names) -> str:
    return _words(
        "ASSERT",
        (not node.exists, "NOT EXISTS"),
        "SCHEMA",
        (node.subject is not None, f"SUBJECT {_string(node.subject or '')}"),
        (node.id is not None, f"ID {node.id}"),
        _clause("TIMEOUT", node.timeout),
    )


def _source_of(name: str, names: Names) -> str:
    """A source to describe; without quotes TABLES would mean all of them."""
    return quoted(name) if name in ("TABLES", "FUNCTION") else names(name)


# ------------------------------------------------------------------------------------ the table

_PRINTERS: dict[type[Node], Callable[[Any, Names], str]] = {
    ast.NullLiteral: lambda n, _: "null",
    ast.BooleanLiteral: lambda n, _: "true" if n.value else "false",
    ast.IntegerLiteral: lambda n, _: str(n.value),
    ast.LongLiteral: lambda n, _: str(n.value),
    ast.DecimalLiteral: _decimal,
    ast.DoubleLiteral: _double,
    ast.StringLiteral: lambda n, _: _string(n.value),
    ast.ColumnRef: _column,
    ast.Arithmetic: _binary,
    ast.Sign: _sign,
    ast.Comparison: _binary,
    ast.Logical: _binary,
    ast.Not: lambda n, names: f"(NOT {_print(n.operand, names)})",
    ast.IsNull: lambda n, names: f"({_print(n.operand, names)} IS NULL)",
    ast.IsNotNull: lambda n, names: f"({_print(n.operand, names)} IS NOT NULL)",
    ast.Between: lambda n, names: (
        f"({_print(n.value, names)} BETWEEN {_print(n.lower, names)} AND {_print(n.upper, names)})"
    ),
    ast.InList: lambda n, names: f"({_print(n.value, names)} IN ({_list(n.items, names)}))",
    ast.Like: _like,
    ast.When: lambda n, names: f"WHEN {_print(n.condition, names)} THEN {_print(n.result, names)}",
    ast.SearchedCase: _case,
    ast.SimpleCase: _case,
    ast.Cast: lambda n, names: f"CAST({_print(n.operand, names)} AS {_type(n.type, names)})",
    ast.AtTimeZone: lambda n, names: f"({_base(n.operand, names)} AT TIME ZONE {_string(n.zone)})",
    ast.Subscript: lambda n, names: f"{_base(n.base, names)}[{_print(n.index, names)}]",
    ast.Dereference: lambda n, names: f"{_base(n.base, names)}->{names(n.field)}",
    ast.CreateArray: lambda n, names: f"ARRAY[{_list(n.items, names)}]",
    ast.CreateMap: _map,
    ast.CreateStruct: _struct,
    ast.Call: _call,
    ast.Lambda: lambda n, names: f"({', '.join(map(names, n.params))}) => {_print(n.body, names)}",
    ast.LambdaVar: lambda n, names: names(n.name),
    ast.IntervalUnit: lambda n, _: n.unit.name,
    ast.Query: _query,
    ast.TumblingWindow: lambda n, _: _window("TUMBLING", f"SIZE {_duration(n.size)}", *_tail(n)),
    ast.HoppingWindow: lambda n, _: _window(
        "HOPPING",
        f"SIZE {_duration(n.size)}",
        f"ADVANCE BY {_duration(n.advance)}",
        *_tail(n),
    ),
    ast.SessionWindow: lambda n, _: _window("SESSION", _duration(n.gap), *_tail(n)),
    ast.SingleColumn: _single_column,
    ast.AllColumns: lambda n, names: f"{names(n.source)}.*" if n.source is not None else "*",
    ast.StructAll: lambda n, names: f"{_base(n.base, names)}->*",
    ast.AliasedRelation: lambda n, names: f"{names(n.name)} {names(n.alias)}",
    ast.Join: lambda n, names: (
        _print(n.left, names) + "".join(_print(source, names) for source in n.sources)
    ),
    ast.JoinedSource: _joined,
    ast.Within: _within,
    ast.TableElement: _element,
    ast.Constraint: _constraint,
    ast.CreateStream: _create("STREAM"),
    ast.CreateTable: _create("TABLE"),
    ast.CreateStreamAsSelect: _create_as("STREAM"),
    ast.CreateTableAsSelect: _create_as("TABLE"),
    ast.InsertInto: _insert_into,
    ast.InsertValues: _insert_values,
    ast.DropStream: _drop("STREAM"),
    ast.DropTable: _drop("TABLE"),
    ast.DropType: _drop("TYPE"),
    ast.DropConnector: _drop("CONNECTOR"),
    ast.AlterStream: _alter("STREAM"),
    ast.AlterTable: _alter("TABLE"),
    ast.AlterSystem: lambda n, _: f"ALTER SYSTEM {_string(n.name)}={_string(n.value)}",
    ast.CreateType: lambda n, names: _words(
        "CREATE TYPE",
        (n.if_not_exists, "IF NOT EXISTS"),
        f"{names(n.name)} AS {_type(n.type, names)}",
    ),
    ast.CreateConnector: _create_connector,
    ast.TerminateQuery: _control("TERMINATE"),
    ast.PauseQuery: _control("PAUSE"),
    ast.ResumeQuery: _control("RESUME"),
    ast.SetProperty: lambda n, _: f"SET {_string(n.name)}={_string(n.value)}",
    ast.UnsetProperty: lambda n, _: f"UNSET {_string(n.name)}",
    ast.DefineVariable: lambda n, _: f"DEFINE {n.name}={_string(n.value)}",
    ast.UndefineVariable: lambda n, _: f"UNDEFINE {n.name}",
    ast.ListProperties: lambda n, _: "SHOW PROPERTIES",
    ast.ListTopics: lambda n, _: _words("SHOW", (n.all, "ALL"), "TOPICS", (n.extended, "EXTENDED")),
    ast.ListStreams: _extendable("SHOW STREAMS"),
    ast.ListTables: _extendable("SHOW TABLES"),
    ast.ListQueries: _extendable("SHOW QUERIES"),
    ast.ListFunctions: lambda n, _: "SHOW FUNCTIONS",
    ast.ListConnectors: lambda n, _: _words(
        "SHOW", n.type.value if n.type is not None else "", "CONNECTORS"
    ),
    ast.ListConnectorPlugins: lambda n, _: "SHOW CONNECTOR PLUGINS",
    ast.ListTypes: lambda n, _: "SHOW TYPES",
    ast.ListVariables: lambda n, _: "SHOW VARIABLES",
    ast.DescribeSource: lambda n, names: _words(
        "DESCRIBE", _source_of(n.name, names), (n.extended, "EXTENDED")
    ),
    ast.DescribeStreams: _extendable("DESCRIBE STREAMS"),
    ast.DescribeTables: _extendable("DESCRIBE TABLES"),
    ast.DescribeFunction: lambda n, _: f"DESCRIBE FUNCTION {n.name}",
    ast.DescribeConnector: lambda n, names: f"DESCRIBE CONNECTOR {names(n.name)}",
    ast.Explain: _explain,
    ast.PrintTopic: _print_topic,
    ast.AssertTopic: _assert_topic,
    ast.AssertSchema: _assert_schema,
    ast.AssertValues: lambda n, names: _assert_values(n.row, names),
    ast.AssertTombstone: lambda n, names: _assert_tombstone(n.row, names),
    ast.AssertStream: lambda n, names: "ASSERT" + _print(n.expected, names).removeprefix("CREATE"),
    ast.AssertTable: lambda n, names: "ASSERT" + _print(n.expected, names).removeprefix("CREATE"),
    ast.RunScript: lambda n, _: f"RUN SCRIPT {_string(n.path)}",
}
