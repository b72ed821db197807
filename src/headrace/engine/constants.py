"""Values of expressions that need no row: INSERT INTO … VALUES (…)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from headrace.catalog.catalog import Catalog
from headrace.model.errors import StatementError
from headrace.model.schema import Column
from headrace.model.types import NULL, base_name, is_numeric
from headrace.plan import expressions as e
from headrace.plan.binder import Binder
from headrace.plan.coercion import convert, string_value
from headrace.spark.answers import plain
from headrace.spark.expressions import lower
from headrace.sql import ast


def evaluate(
    expressions: Sequence[ast.Expression],
    columns: Sequence[Column],
    catalog: Catalog,
    spark: SparkSession,
) -> list[object]:
    """The values in their columns' types: constants are known at once, the rest Spark works out."""
    binder = Binder({}, catalog.type)
    bound = [
        _fitted(binder.bind(x), column) for x, column in zip(expressions, columns, strict=True)
    ]
    hard = [i for i, x in enumerate(bound) if not isinstance(x, e.Literal)]
    values = [x.value if isinstance(x, e.Literal) else None for x in bound]
    if hard:
        lowered = [lower(bound[i]) for i in hard]
        selected = []
        for i, item in zip(hard, lowered, strict=True):
            selected.append(item.value.alias(f"v{i}"))
            if item.error is not None:
                selected.append(item.error.alias(f"e{i}"))
        row = spark.range(1).select(*selected).collect()[0].asDict(recursive=False)
        for i in hard:
            if row.get(f"e{i}") is not None:
                raise StatementError(str(row[f"e{i}"]))
            values[i] = plain(row[f"v{i}"])
    return values


def _fitted(x: e.Expression, column: Column) -> e.Expression:
    if x.type == NULL:
        return e.Literal(column.type, None)
    if x.type == column.type:
        return x
    source, target = base_name(x.type), base_name(column.type)
    fits = (
        (is_numeric(x.type) and is_numeric(column.type) and _widens(source, target))
        or (source == "STRING" and target in ("DATE", "TIME", "TIMESTAMP", "BYTES", "DECIMAL"))
        or source == target
    )
    if not fits:
        shown = string_value(x.value) if isinstance(x, e.Literal) else str(x.type)
        raise StatementError(
            f"Expected type {column.type} for field `{column.name}` but got {x.type}({shown})"
        )
    return convert(x, column.type)


_RANK = {"INTEGER": 0, "BIGINT": 1, "DECIMAL": 2, "DOUBLE": 3}


def _widens(source: str, target: str) -> bool:
    return _RANK[source] <= _RANK[target]
