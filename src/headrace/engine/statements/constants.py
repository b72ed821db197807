"""Evaluates the constant expressions of INSERT INTO … VALUES."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Row, SparkSession

from headrace.engine.statements.value_coercion import CoercionError, coerced
from headrace.model.errors import StatementError
from headrace.model.java_text import java_text
from headrace.model.schema import Column
from headrace.model.types import NULL, STRING, SqlType, Struct, base_name, quote
from headrace.plan.language import expressions as e
from headrace.plan.language.binder import Binder
from headrace.plan.language.folding import folded
from headrace.plan.language.messages import text
from headrace.spark.lower.expressions import Scope, lower
from headrace.sql import ast

_TIME_HELP = {
    "TIMESTAMP": ". Timestamp format must be yyyy-mm-ddThh:mm:ss[.S]",
    "TIME": ". Time format must be hh:mm:ss[.S]",
    "DATE": ". Date format must be yyyy-mm-dd",
}


def evaluate(
    expressions: Sequence[ast.Expression],
    columns: Sequence[Column],
    binder: Binder,
    spark: SparkSession | None,
    settings: Mapping[str, object],
) -> list[object]:
    """The values in their columns' types; those that Spark computes are null without it. `settings`
    are what functions are told."""
    bound = [_bound(x, binder) for x in expressions]
    hard = {i: x for i, x in enumerate(bound) if not _is_written_out(x)}
    worked_out = (
        dict.fromkeys(hard) if spark is None else _by_spark(hard, spark, Scope(settings=settings))
    )
    values = [worked_out[i] if i in hard else _written_out(x) for i, x in enumerate(bound)]
    return [_fitted(v, x.type, c) for v, x, c in zip(values, bound, columns, strict=True)]


def _bound(expression: ast.Expression, binder: Binder) -> e.Expression:
    if any(isinstance(part, ast.ColumnRef) for part in ast.walk(expression)):
        raise StatementError(f"Unsupported column reference in insert value: {text(expression)}")
    return binder.bind(expression)


def _is_written_out(x: e.Expression) -> bool:
    """Whether it is a constant, or a list, map or struct of such."""
    if isinstance(x, e.MakeArray | e.MakeMap | e.MakeStruct):
        return all(map(_is_written_out, e.children(x)))
    return folded(x) is not None


def _written_out(x: e.Expression) -> object:
    match x:
        case e.MakeArray(_, items):
            return [_written_out(i) for i in items]
        case e.MakeMap(_, entries):
            return {_map_key(k): _written_out(v) for k, v in entries}
        case e.MakeStruct(_, fields):
            return {name: _written_out(value) for name, value in fields}
    constant = folded(x)
    assert constant is not None
    return constant.value


def _map_key(x: e.Expression) -> object:
    """No key is null (see `spark.expressions`): a text says what formats write for one."""
    key = _written_out(x)
    if key is None and x.type not in (STRING, NULL):
        raise StatementError("A map's key cannot be null")
    return "null" if key is None else key


def _by_spark(
    hard: dict[int, e.Expression], spark: SparkSession, scope: Scope
) -> dict[int, object]:
    if not hard:
        return {}
    selected = []
    for i, expression in hard.items():
        lowered = lower(expression, scope)
        selected.append(lowered.value.alias(f"v{i}"))
        if lowered.error is not None:
            selected.append(lowered.error.alias(f"e{i}"))
    row = spark.range(1).select(*selected).collect()[0].asDict(recursive=False)
    for i in hard:
        if row.get(f"e{i}") is not None:
            raise StatementError(str(row[f"e{i}"]))
    return {i: _python_value(row[f"v{i}"]) for i in hard}


def _fitted(value: object, type_: SqlType, column: Column) -> object:
    if value is None or type_ == NULL:
        return None
    try:
        return coerced(value, type_, column.type)
    except CoercionError:
        shown = f"Struct{java_text(value)}" if isinstance(type_, Struct) else java_text(value)
        hint = _TIME_HELP.get(base_name(column.type), "") if base_name(type_) == "STRING" else ""
        raise StatementError(
            f"Expected type {column.type} for field {quote(column.name)} but got "
            f"{base_name(type_)}({shown}){hint}"
        ) from None


def _python_value(value: object) -> object:
    match value:
        case Row():
            return {name: _python_value(v) for name, v in value.asDict().items()}
        case list():
            return [_python_value(v) for v in value]
        case dict():
            return {k: _python_value(v) for k, v in value.items()}
        case bytearray():
            return bytes(value)
    return value
